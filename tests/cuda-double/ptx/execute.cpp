// Launches: blocks one after the other, warps of a block in turns that end at barriers, lanes of a warp side by side.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ptx.h"

namespace ptx {

Block block;

// A block that branches backward as often as this is taken to have no end.
constexpr long kMostTurns = 1l << 28;

namespace {
struct Fault : std::runtime_error {
    using std::runtime_error::runtime_error;
};
}  // namespace

void fault(const Warp& w, int lane, const char* format, ...) {
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    throw Fault("thread " + std::to_string(w.number * kLanes + lane) + ": " + what);
}

static uint32_t set_lanes(const uint32_t* predicate) {
    uint32_t lanes = 0;
    for (int lane = 0; lane < kLanes; lane++) lanes |= (predicate[lane] & 1) << lane;
    return lanes;
}

static std::string line_of(int place) {
    const int line = block.kernel->code[place].line;
    return "PTX line " + std::to_string(line) + " (" + (*block.kernel->lines)[line - 1] + ")";
}

// Takes up the lanes that are furthest behind. Those that wait for the rest of their warp go on once all are with them.
static void regroup(Warp& w) {
    w.each([&](int lane) { w.parked[lane] = w.next; });
    uint32_t ready = w.live & ~w.waiting;
    if (!ready) {
        ready = w.live, w.waiting = 0;
        const int first = __builtin_ctz(ready);
        for (uint32_t left = ready; left; left &= left - 1) {
            const int lane = __builtin_ctz(left);
            if (w.parked[lane] != w.parked[first]) {
                w.next = w.parked[first];
                fault(w, lane, "waits at %s, and thread %d of its warp at another line", line_of(w.parked[lane]).c_str(),
                      w.number * kLanes + first);
            }
        }
    }
    w.next = w.merge = INT_MAX;
    uint32_t group = 0;
    for (uint32_t left = ready; left; left &= left - 1) {
        const int lane = __builtin_ctz(left), at = w.parked[lane];
        if (at < w.next) w.merge = w.next, w.next = at, group = 0;
        else if (at > w.next) w.merge = std::min(w.merge, at);
        if (at == w.next) group |= 1u << lane;
    }
    w.activate(group);
}

// Goes on to the next barrier of the block (true), or to the end of all lanes.
static bool advance(Warp& w) {
    const Instruction* const code = block.kernel->code.data();
    for (;;) {
        if (w.next >= w.merge) regroup(w);
        const Instruction& in = code[w.next];
        uint32_t lanes = w.active;
        if (in.guard) {
            const uint32_t set = set_lanes(w.row<uint32_t>(in.guard));
            lanes &= in.negated ? ~set : set;
            if (!lanes) {
                w.next++;
                continue;
            }
        }
        switch (in.kind) {
            case Kind::kPlain:
                if (lanes == w.active) {
                    in.run(w, in);
                } else {
                    const uint32_t all = w.active;
                    w.activate(lanes);
                    in.run(w, in);
                    w.activate(all);
                }
                w.next++;
                break;
            case Kind::kBranch:
                if (in.number <= w.next && ++block.turns > kMostTurns) fault(w, __builtin_ctz(lanes), "a loop without an end");
                if (lanes == w.active) {
                    w.next = in.number;
                } else {
                    w.each([&](int lane) { w.parked[lane] = lanes >> lane & 1 ? in.number : w.next + 1; });
                    w.active = 0;
                    regroup(w);
                }
                break;
            case Kind::kReturn:
                w.live &= ~lanes;
                w.activate(w.active & ~lanes);
                if (w.active) {
                    w.next++;
                } else if (w.live) {
                    regroup(w);
                } else {
                    return false;
                }
                break;
            case Kind::kBarrier:
            case Kind::kTogether:
                if (lanes != w.active) fault(w, __builtin_ctz(lanes), "an operation of the whole warp, under a condition that parts it");
                if (lanes != w.live) {
                    w.waiting |= lanes;
                    regroup(w);
                    break;
                }
                if (in.kind == Kind::kBarrier) return true;
                in.run(w, in);
                w.next++;
        }
    }
}

static std::vector<Warp> warps;

static unsigned random_number(unsigned& state) { return (state = state * 1664525u + 1013904223u) >> 8; }

static void run_block(int order, unsigned& random) {
    const unsigned count = (block.threads + kLanes - 1) / kLanes;
    block.begun = ++block.time;
    block.turns = 0;
    begin_shared_memory();
    // Memory that nothing was put into is NaN.
    block.local.assign((size_t)block.kernel->local_bytes * count * kLanes, (char)0xff);
    std::vector<unsigned> sequence(count);
    for (unsigned i = 0; i < count; i++) {
        Warp& w = warps[i];
        const unsigned lanes = std::min(block.threads - i * kLanes, (unsigned)kLanes);
        w.live = lanes == kLanes ? ~0u : (1u << lanes) - 1;
        w.activate(w.live);
        w.waiting = w.phase = 0;
        w.next = 0, w.merge = INT_MAX;
        w.copies.clear();
        std::fill(w.group, w.group + kLanes, 0);
        for (int axis = 0; axis < 3; axis++) {
            auto special = block.kernel->specials.find(std::string("%ctaid.") + "xyz"[axis]);
            if (special == block.kernel->specials.end()) continue;
            std::fill_n(w.row<uint32_t>(special->second), kLanes, block.index[axis]);
        }
        sequence[i] = order == 1 ? count - 1 - i : i;
    }
    for (unsigned gone = 0; gone < count;) {
        if (order == 2) {
            for (unsigned i = count - 1; i > 0; i--) std::swap(sequence[i], sequence[random_number(random) % (i + 1)]);
        }
        int barrier = -1;
        for (unsigned i : sequence) {
            Warp& w = warps[i];
            try {
                if (!advance(w)) {
                    gone++;
                } else if (barrier >= 0 && w.next != barrier) {
                    fault(w, 0, "waits here, and another warp of the block at %s", line_of(barrier).c_str());
                } else {
                    barrier = w.next;
                }
            } catch (const std::runtime_error& problem) {
                throw std::runtime_error(line_of(w.next) + ", block " + std::to_string(block.index[0]) + " " + std::to_string(block.index[1]) +
                                         " " + std::to_string(block.index[2]) + ": " + problem.what());
            }
        }
        if (barrier < 0) continue;
        for (unsigned i = 0; i < count; i++) {
            const unsigned threads = std::min(block.threads - i * kLanes, (unsigned)kLanes);
            if (__builtin_popcount(warps[i].live) != (int)threads)
                throw std::runtime_error(line_of(barrier) + ": a barrier that some of the block's threads are gone from already");
            warps[i].next++;
        }
        block.time++;
    }
}

// Rows of all warps, which keep their memory from launch to launch.
static void begin_launch(const EmuLaunch* launch) {
    static std::vector<char> memory;
    const Kernel& kernel = *(block.kernel = (const Kernel*)launch->kernel->code);
    block.threads = launch->block[0] * launch->block[1] * launch->block[2];
    block.parameters.assign(kernel.parameter_bytes, 0);
    for (size_t i = 0; i < kernel.sizes.size(); i++)
        memcpy(block.parameters.data() + kernel.offsets[i], launch->parameters[i], kernel.sizes[i]);
    block.accessed.assign(kernel.code.size(), {});
    if (block.time > 1u << 31) throw std::runtime_error("more barriers than are counted");
    const size_t bytes = (kernel.row_bytes + 63) / 64 * 64, count = (block.threads + kLanes - 1) / kLanes;
    if (memory.size() < count * bytes + 64) memory.resize(count * bytes + 64);
    char* first = (char*)(((uintptr_t)memory.data() + 63) & ~(uintptr_t)63);
    // A register that nothing was put into is NaN.
    memset(first, 0xff, count * bytes);
    warps.resize(count);
    for (size_t i = 0; i < count; i++) {
        Warp& w = warps[i];
        w.rows = first + i * bytes;
        w.number = (int)i;
        memset(w.rows, 0, 256);
        for (auto& constant : kernel.constants) {
            for (int lane = 0; lane < kLanes; lane++) memcpy(w.rows + constant.row + lane * constant.bytes, &constant.value, constant.bytes);
        }
        for (auto& [name, row] : kernel.specials) {
            for (int lane = 0; lane < kLanes; lane++) {
                const unsigned thread = i * kLanes + lane, x = launch->block[0], y = launch->block[1];
                const unsigned index[3] = {thread % x, thread / x % y, thread / x / y};
                const int axis = name.back() - 'x';
                uint32_t& value = w.row<uint32_t>(row)[lane];
                if (name == "%laneid") value = lane;
                else if (name.rfind("%tid", 0) == 0) value = index[axis];
                else if (name.rfind("%ntid", 0) == 0) value = launch->block[axis];
                else if (name.rfind("%nctaid", 0) == 0) value = launch->grid[axis];
            }
        }
    }
}

const char* launch(const EmuLaunch* launch) {
    static std::string problem;
    try {
        if (launch->shared_bytes) throw std::runtime_error("dynamic shared memory, which tests/cuda-double/ptx does not know");
        begin_launch(launch);
        unsigned random = launch->seed;
        const uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
        for (uint64_t i = 0; i < blocks; i++) {
            const uint64_t at = emu_block(i, blocks, launch->order, launch->seed);
            block.index[0] = at % launch->grid[0];
            block.index[1] = at / launch->grid[0] % launch->grid[1];
            block.index[2] = at / ((uint64_t)launch->grid[0] * launch->grid[1]);
            run_block(launch->order, random);
        }
        return nullptr;
    } catch (const std::runtime_error& caught) {
        problem = caught.what();
        return problem.c_str();
    }
}

}  // namespace ptx
