// Between libcuda's stand-in and the modules that nvrtc's makes.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct EmuKernel {
    const char* name;
    void (*run)(void** parameters);
    unsigned parameters;
    const unsigned* sizes;
    const unsigned char* pointers;
    int max_threads;
    const void* code;  // of a kernel in PTX, which has no `run`
};

struct EmuLaunch {
    const EmuKernel* kernel;
    unsigned grid[3], block[3];
    void** parameters;
    char* shared;  // dynamic shared memory
    size_t shared_bytes;
    char* stacks;  // EMU_STACK_BYTES
    int order;     // emu::Order
    unsigned seed;
};

// 1024 threads' stacks of 64 KiB and 192 bytes, and room to align.
#define EMU_STACK_BYTES ((size_t)(64 * 1024 + 192) * 1024 + 4096)

// The block that is the i-th to run.
static inline uint64_t emu_block(uint64_t i, uint64_t blocks, int order, unsigned seed) {
    if (order == 1) return blocks - 1 - i;
    if (order == 0 || blocks <= 2) return i;
    // A stride without a common divisor visits every block once, in an order that looks random.
    uint64_t stride = (uint64_t)(0.618 * blocks) | 1;
    for (;; stride += 2) {
        uint64_t a = stride, b = blocks;
        while (b) {
            const uint64_t rest = a % b;
            a = b, b = rest;
        }
        if (a == 1) break;
    }
    return (seed % blocks + i * (stride % blocks)) % blocks;
}

// Every module exports `emu_kernels`, ended by an entry without a name, and `emu_launch`, which returns an error or null.
typedef const char* (*EmuLaunchFunction)(const EmuLaunch* launch);
