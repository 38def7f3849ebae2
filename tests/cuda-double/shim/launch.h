// How libcuda finds and runs the kernels of a compiled source.
#pragma once
#include "interface.h"

extern "C" char __start_emu_shared[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_emu_shared[] __attribute__((weak, visibility("hidden")));

namespace emu {

// Reads the parameters' sizes, and which are pointers, from the kernel's own type.
template <auto Kernel, class Type>
struct Thunk;
template <auto Kernel, class... A>
struct Thunk<Kernel, void (*)(A...)> {
    static constexpr unsigned sizes[sizeof...(A) + 1] = {(unsigned)sizeof(A)..., 0};
    static constexpr unsigned char pointers[sizeof...(A) + 1] = {(unsigned char)std::is_pointer<A>::value..., 0};
    template <size_t... I>
    static inline void call(void** parameters, std::index_sequence<I...>) {
        Kernel(*(std::remove_reference_t<A>*)parameters[I]...);
    }
    static void run(void** parameters) { call(parameters, std::index_sequence_for<A...>{}); }
    static constexpr EmuKernel describe(const char* name, int max_threads = kMaxThreads, int = 0, int = 0) {
        return {name, &run, (unsigned)sizeof...(A), sizes, pointers, max_threads, nullptr};
    }
};

static void number_threads(dim3 size) {
    block.threads = size.x * size.y * size.z;
    for (int thread = 0; thread < block.threads; thread++) {
        unsigned t = thread;
        block.index[thread] = {t % size.x, t / size.x % size.y, t / (size.x * size.y)};
        block.sequence[thread] = block.order == kReverse ? block.threads - 1 - thread : thread;
    }
}

}  // namespace emu

extern "C" __attribute__((visibility("default"))) const char* emu_launch(const EmuLaunch* launch) {
    using namespace emu;
    block.order = (Order)launch->order;
    block.random = launch->seed;
    block.kernel = launch->kernel->run;
    block.parameters = launch->parameters;
    block.shared = launch->shared;
    block.error[0] = 0;
    if (fibers.arena != launch->stacks) {
        fibers.arena = launch->stacks;
        fibers.idles = fibers.count = 0;
    }
    // The stacks are shared by all modules: what an earlier launch of another one left in them is gone.
    fibers.idles = fibers.count = 0;
    gridDim = dim3(launch->grid[0], launch->grid[1], launch->grid[2]);
    blockDim = dim3(launch->block[0], launch->block[1], launch->block[2]);
    number_threads(blockDim);
    uint64_t blocks = (uint64_t)gridDim.x * gridDim.y * gridDim.z;
    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t b = emu_block(i, blocks, block.order, launch->seed);
        blockIdx = {(unsigned)(b % gridDim.x), (unsigned)(b / gridDim.x % gridDim.y), (unsigned)(b / ((uint64_t)gridDim.x * gridDim.y))};
        // Poison: shared memory that is read before it is written is a NaN.
        memset(block.shared, 0xff, launch->shared_bytes);
        if (__stop_emu_shared > __start_emu_shared) memset(__start_emu_shared, 0xff, __stop_emu_shared - __start_emu_shared);
        if (!run_block()) return block.error;
    }
    return nullptr;
}
