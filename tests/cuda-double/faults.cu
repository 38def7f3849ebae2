// Kernels for the double's own test: first right ones, then one for each fault that the double must catch.

extern "C" __global__ void add(float* out, const float* a, const float* b, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = a[i] + b[i];
}

__device__ __forceinline__ float warp_sum(float value) {
    for (int distance = 16; distance > 0; distance >>= 1) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

template <int WARPS>
__device__ float block_sum(float value) {
    __shared__ float part[WARPS];
    value = warp_sum(value);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0.0f;
    for (int warp = 0; warp < WARPS; warp++) sum += part[warp];
    return sum;
}

// One sum over all, by warps, shared memory and an atomic; out[1] counts the blocks' positive ballots.
extern "C" __global__ void __launch_bounds__(256) sum(float* out, const float* a, int n) {
    float value = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) value += a[i];
    unsigned ballot = __ballot_sync(0xffffffffu, threadIdx.x % 2);
    value = block_sum<8>(value);
    if (threadIdx.x == 0) {
        atomicAdd(&out[0], value);
        if (ballot == 0xaaaaaaaau) atomicAdd(&out[1], 1.0f);
    }
}

// Row-major c[m, n] = a[m, k] b[k, n] by 16 x 16 tiles; dynamic shared memory of 2 * 16 * 16 floats.
#define TILE 16
extern "C" __global__ void multiply(float* c, const float* a, const float* b, int m, int n, int k) {
    extern __shared__ float tiles[];
    float *left = tiles, *right = tiles + TILE * TILE;
    int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
    float total = 0.0f;
    for (int from = 0; from < k; from += TILE) {
        left[y * TILE + x] = row < m && from + x < k ? a[row * k + from + x] : 0.0f;
        right[y * TILE + x] = from + y < k && column < n ? b[(from + y) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; i++) total += left[y * TILE + i] * right[i * TILE + x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = total;
}

extern "C" __global__ void scale(float* a, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] *= by;
}

struct Many {
    float a;
    int b[5];
    float* out;
};
extern "C" __global__ void arguments(Many many, char c, double d, long long e, const float* in) {
    *many.out = many.a + many.b[4] + c + (float)d + (float)e + in[0];
}

#if defined(TWIN) && !defined(CUDA_EMU)
extern "C" __global__ void twin(float* out) { asm("this is no instruction;"); }
#else
extern "C" __global__ void twin(float* out) { out[0] = 2.0f; }
#endif

// ---- faults

extern "C" __global__ void reads_behind(float* out, const float* a, int n) { out[0] = a[n]; }
extern "C" __global__ void writes_just_behind(float* out, int n) { out[n] = 0.0f; }
extern "C" __global__ void writes_before(float* out) { out[-1] = 0.0f; }
extern "C" __global__ void misaligned(float* out, const float* a) { *(float4*)out = *(const float4*)(a + 1); }

// Reverses a block through shared memory without waiting for the others' parts.
extern "C" __global__ void forgets_to_wait(float* out, const float* a) {
    __shared__ float s[256];
    s[threadIdx.x] = a[threadIdx.x];
    out[threadIdx.x] = s[255 - threadIdx.x];
}
extern "C" __global__ void waits_apart(float* out) {
    if (threadIdx.x < 100) __syncthreads();
    else
        __syncthreads();
    out[threadIdx.x] = 1.0f;
}
extern "C" __global__ void leaves_before_the_barrier(float* out, int n) {
    if (threadIdx.x >= n) return;
    __syncthreads();
    out[threadIdx.x] = 1.0f;
}
extern "C" __global__ void half_a_warp(float* out) {
    float value = threadIdx.x;
    if (threadIdx.x < 16) value = __shfl_xor_sync(0xffffu, value, 1);
    out[threadIdx.x] = value;
}
extern "C" __global__ void asks_a_lane_that_left(float* out) {
    if (threadIdx.x < 8) return;
    out[threadIdx.x] = __shfl_sync(0xffffffffu, 1.0f, 0);
}
