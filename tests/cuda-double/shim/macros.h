// CUDA's keywords, read by the preprocessor alone (g++ -E -imacros); nvrtc.cpp replaces the words between @ marks afterwards.
#define CUDA_EMU 1
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __global__ @kernel@
#define __shared__ @shared@
#define __launch_bounds__(...) @bounds[__VA_ARGS__]@
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#define __constant__ CUDA_DOUBLE_has_no_constant_memory
#define __managed__ CUDA_DOUBLE_has_no_managed_memory
