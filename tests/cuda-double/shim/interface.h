// Between libcuda's stand-in and the modules that nvrtc's makes.
#pragma once
#include <stddef.h>

struct EmuKernel {
    const char* name;
    void (*run)(void** parameters);
    unsigned parameters;
    const unsigned* sizes;
    const unsigned char* pointers;
    int max_threads;
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

// Every module exports `emu_kernels`, ended by an entry without a name, and `emu_launch`, which returns an error or null.
typedef const char* (*EmuLaunchFunction)(const EmuLaunch* launch);
