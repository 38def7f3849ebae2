// Runs a block: one OS thread, each CUDA thread a fiber with a stack of its own that is entered only when needed.
//
// A thread that meets no barrier runs from start to end on the fiber that began it, and the next thread begins on the same fiber; so only
// barriers and warp operations cost a switch of stacks. x86-64 alone.
#pragma once
#if !defined(__x86_64__)
#error "the CUDA double switches stacks in x86-64 assembler"
#endif

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static const int warpSize = 32;

namespace emu {

enum { kMaxThreads = 1024, kStack = 64 * 1024 };
// The odd 192 bytes spread the tops of the stacks over the cache's sets: 10 ns a switch instead of 48.
enum { kSlot = kStack + 192 };
enum State : unsigned char { kUnborn, kReady, kAtBarrier, kAtWarp, kGone };
enum Order { kForward, kReverse, kRandom };

// The block under way. Numbers that end in `threads` count CUDA threads.
static struct {
    Order order;
    unsigned random;
    int threads, live, waiting, gone;
    int next;     // place in `sequence` of the next unborn thread
    int place;    // place in `sequence` of the thread that runs
    int current;  // the thread that runs
    int sequence[kMaxThreads];
    State state[kMaxThreads];
    int line[kMaxThreads];  // where a waiting thread waits
    int fiber_of[kMaxThreads];
    uint3 index[kMaxThreads];
    dim3 index_dim;
    char* shared;  // dynamic shared memory
    void (*kernel)(void**);
    void** parameters;
    char error[256];
} block;

// Warp operations: each lane puts its value down, and takes another's once all live lanes have. Two buffers, used in turn, since a lane may
// reach the next operation before the last one has read this one's.
static struct {
    uint64_t value[2][32];
    unsigned came[2];  // the lanes that put one down
    unsigned arrived, live, phase;
    int line;
} warps[kMaxThreads / 32];

// Asynchronous copies into shared memory: each thread's wait here until it waits for them, so that a missing wait shows.
enum { kMostCopies = 256 };
struct Copy {
    void* to;
    const void* from;  // null: zeros
    int bytes, group;
};
static struct {
    Copy copy[kMostCopies];
    int count, group;  // how many wait, and the group that is open
} copies[kMaxThreads];

static struct {
    void* stack[kMaxThreads];  // saved stack pointer of each fiber
    int idle[kMaxThreads], idles, count, current;
    void* scheduler;  // saved stack pointer of whoever runs the block
    char* arena;      // kMaxThreads slots, owned by libcuda
} fibers;

template <class... A>
static void fail(const char* format, A... arguments) {
    if (!block.error[0]) snprintf(block.error, sizeof block.error, format, arguments...);
}

__attribute__((naked, noinline)) static void switch_stack(void** save, void* to) {
    asm volatile(
        "pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
        "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
        "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n"
        // A jump: the processor's guess at a return would always be wrong here.
        "popq %rcx\n jmp *%rcx\n");
}

static inline void become(int thread) {
    block.current = thread;
    threadIdx = block.index[thread];
}

static void fiber_main();

static int new_fiber() {
    int fiber = fibers.count++;
    void** top = (void**)((uintptr_t)(fibers.arena + (size_t)(fiber + 1) * kSlot) & ~(uintptr_t)63);
    *--top = nullptr;
    *--top = (void*)fiber_main;
    for (int i = 0; i < 6; i++) *--top = nullptr;
    fibers.stack[fiber] = top;
    return fiber;
}

static inline int take_fiber() { return fibers.idles ? fibers.idle[--fibers.idles] : new_fiber(); }

// Leaves the running thread, which waits or is gone, for one that can run; else for the scheduler.
static void yield() {
    int from = fibers.current;
    if (block.next < block.threads) {
        fibers.current = take_fiber();
        switch_stack(&fibers.stack[from], fibers.stack[fibers.current]);
        return;
    }
    for (int place = block.place + 1; place < block.threads; place++) {
        int thread = block.sequence[place];
        if (block.state[thread] == kReady) {
            block.place = place;
            become(thread);
            fibers.current = block.fiber_of[thread];
            switch_stack(&fibers.stack[from], fibers.stack[fibers.current]);
            return;
        }
    }
    switch_stack(&fibers.stack[from], fibers.scheduler);
}

static void release_barrier() {
    if (block.gone) fail("__syncthreads with %d of the block's %d threads already gone", block.gone, block.threads);
    int first = -1;
    for (int thread = 0; thread < block.threads; thread++) {
        if (block.state[thread] != kAtBarrier) continue;
        block.state[thread] = kReady;
        if (first < 0) first = thread;
        if (block.line[thread] != block.line[first]) {
            fail("__syncthreads is not the same for all: thread %d waits at line %d, thread %d at line %d", first, block.line[first],
                 thread, block.line[thread]);
        }
    }
    block.waiting = 0;
}

static void release_warp(int number) {
    auto& warp = warps[number];
    if (!warp.arrived || (warp.arrived & warp.live) != warp.live) return;
    warp.came[warp.phase & 1] = warp.arrived;
    warp.arrived = 0;
    warp.phase++;
    for (int thread = 32 * number; thread < 32 * number + 32 && thread < block.threads; thread++) {
        if (block.state[thread] == kAtWarp) block.state[thread] = kReady;
    }
}

static void fiber_main() {
    for (;;) {
        while (block.next < block.threads) {
            block.place = block.next++;
            int thread = block.sequence[block.place];
            block.fiber_of[thread] = fibers.current;
            block.state[thread] = kReady;
            become(thread);
            block.kernel(block.parameters);
            thread = block.current;
            block.state[thread] = kGone;
            block.live--;
            block.gone++;
            warps[thread / 32].live &= ~(1u << (thread % 32));
            if (block.waiting && block.waiting == block.live) release_barrier();
            release_warp(thread / 32);
        }
        fibers.idle[fibers.idles++] = fibers.current;
        yield();
    }
}

static void sync_threads(int line) {
    int thread = block.current;
    block.line[thread] = line;
    block.state[thread] = kAtBarrier;
    if (++block.waiting == block.live) {
        release_barrier();
        // In order, the last to arrive may go on at once.
        if (block.order == kForward && block.next >= block.threads) return;
    }
    yield();
}

// Waits until every live lane of the warp is here. `mask` must name them all: a part of a warp is beyond this double.
static void sync_warp(unsigned mask, int line) {
    int thread = block.current, number = thread / 32;
    auto& warp = warps[number];
    if ((mask & warp.live) != warp.live)
        fail("line %d: a warp operation of mask %08x, where lanes %08x live: full masks only", line, mask, warp.live);
    if (warp.arrived && warp.line != line) fail("lanes of one warp wait at line %d and at line %d", warp.line, line);
    warp.line = line;
    warp.arrived |= 1u << (thread % 32);
    unsigned phase = warp.phase;
    block.state[thread] = kAtWarp;
    release_warp(number);
    if (warp.phase != phase) return;
    yield();
}

template <class T>
static inline T shuffle(unsigned mask, T value, int source, int line) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    int lane = block.current % 32;
    auto& warp = warps[block.current / 32];
    unsigned turn = warp.phase & 1;
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    warp.value[turn][lane] = bits;
    sync_warp(mask, line);
    // A lane that is gone, or never was, gives no value: all ones, a NaN.
    bits = warp.came[turn] >> source & 1 ? warp.value[turn][source] : ~(uint64_t)0;
    T result;
    memcpy(&result, &bits, sizeof(T));
    return result;
}

static inline void copy_async(void* to, const void* from, int bytes, bool there) {
    auto& own = copies[block.current];
    if (((uintptr_t)to | (there ? (uintptr_t)from : 0)) % bytes) fail("an asynchronous copy of %d bytes is not aligned", bytes);
    if (own.count == kMostCopies) return fail("more than %d asynchronous copies under way", kMostCopies);
    // An address that cannot be read fails here, where the copy begins.
    if (there) (void)*(const volatile char*)from;
    own.copy[own.count++] = {to, there ? from : nullptr, bytes, own.group};
}

// Waits for all groups but the last `left` closed ones.
static inline void wait_copies(int left) {
    auto& own = copies[block.current];
    int kept = 0;
    for (int i = 0; i < own.count; i++) {
        Copy& copy = own.copy[i];
        if (copy.group >= own.group - left) {
            own.copy[kept++] = copy;
        } else if (copy.from) {
            memcpy(copy.to, copy.from, copy.bytes);
        } else {
            memset(copy.to, 0, copy.bytes);
        }
    }
    own.count = kept;
}

static void begin_block() {
    for (int thread = 0; thread < block.threads; thread++) copies[thread].count = copies[thread].group = 0;
    block.live = block.threads;
    block.waiting = block.gone = block.next = 0;
    block.place = -1;
    memset(block.state, kUnborn, block.threads);
    for (int first = 0; first < block.threads; first += 32) {
        int lanes = block.threads - first;
        warps[first / 32].live = lanes >= 32 ? ~0u : (1u << lanes) - 1;
        warps[first / 32].arrived = 0;
    }
    if (block.order == kRandom) {
        for (int i = block.threads - 1; i > 0; i--) {
            block.random = block.random * 1664525u + 1013904223u;
            std::swap(block.sequence[i], block.sequence[(block.random >> 8) % (i + 1)]);
        }
    }
}

static inline void resume(int fiber) {
    fibers.current = fiber;
    switch_stack(&fibers.scheduler, fibers.stack[fiber]);
}

// False where the block failed; block.error says how.
static bool run_block() {
    begin_block();
    while (block.live) {
        if (block.next < block.threads) {
            resume(take_fiber());
            continue;
        }
        bool progress = false;
        for (int place = 0; place < block.threads && !progress; place++) {
            int thread = block.sequence[place];
            if (block.state[thread] != kReady) continue;
            progress = true;
            block.place = place;
            become(thread);
            resume(block.fiber_of[thread]);
        }
        if (!progress) {
            int thread = 0;
            while (block.state[thread] == kGone) thread++;
            fail("deadlock: %d of %d threads wait for ever, thread %d %s", block.live, block.threads, thread,
                 block.state[thread] == kAtBarrier ? "at __syncthreads" : "in a warp operation");
            // The fibers of this block are lost in the middle of their work: begin anew.
            fibers.idles = fibers.count = 0;
            return false;
        }
    }
    return !block.error[0];
}

}  // namespace emu
