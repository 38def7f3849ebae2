// PTX executed on the host: kernels as they are read, and the block of threads that executes one.
//
// A warp's 32 threads, its lanes, go through the instructions side by side. A register is a row of 32 values, one for each lane; constants and the
// numbers of threads are rows too, so that every operand is one. Lanes that a branch parts are those with the same next instruction; the lanes that
// are furthest behind go first, so that they meet the others again.
#pragma once
#include <climits>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "../driver/driver.h"

namespace ptx {

constexpr int kLanes = 32, kMostThreads = 1024, kMostShared = 100 * 1024;

struct Warp;
struct Instruction;
using Run = void (*)(Warp&, const Instruction&);

// kTogether: an operation that all lanes of a warp execute at once.
enum class Kind : uint8_t { kPlain, kBranch, kReturn, kBarrier, kTogether };

struct Instruction {
    Run run = nullptr;
    Kind kind = Kind::kPlain;
    bool negated = false;    // the predicate
    uint8_t count = 1;       // numbers that a load or a store moves
    uint32_t guard = 0;      // the row of its predicate; 0: none
    uint32_t row[14] = {};   // of its operands, in order, without addresses
    struct {
        uint32_t row;
        bool narrow;  // 32 bits
        int64_t offset;
    } address[2] = {};
    int number = 0;  // a literal operand; of a branch: the instruction to go to
    int place = 0;   // its number among the kernel's instructions
    int line = 0;    // in the PTX
};

struct Variable {
    uint32_t from, bytes;
};

struct Kernel {
    std::string name;
    int max_threads = kMostThreads;
    std::vector<unsigned> sizes, offsets;  // of parameters
    std::vector<unsigned char> pointers;   // not known from PTX: every access is looked at instead
    unsigned parameter_bytes = 0;
    std::vector<Variable> shared;
    uint32_t local_bytes = 0;  // of each thread's own memory
    std::vector<Instruction> code;
    uint32_t row_bytes = 0;  // of all rows of a warp
    struct Constant {
        uint32_t row;
        int bytes;
        uint64_t value;
    };
    std::vector<Constant> constants;
    std::map<std::string, uint32_t> specials;  // rows of %tid.x and its like
    const std::vector<std::string>* lines = nullptr;
};

struct Module {
    std::vector<Kernel> kernels;
    std::vector<EmuKernel> table;
    std::vector<std::string> lines;
};

// Form of an opcode: how it runs, and its operands, a letter for each. p, h, w, d: a row of predicates, of 16, 32 or 64 bits. r: registers of any one
// width, for which `by_width` has the code (2, 4, 8 bytes). a: an address in brackets. n: a literal. l: a label.
struct Form {
    Run run = nullptr;
    std::string operands;
    Kind kind = Kind::kPlain;
    Run by_width[3] = {};
};
using Forms = std::map<std::string, Form>;
void add_arithmetic(Forms& forms);
void add_memory(Forms& forms);
void add_warps(Forms& forms);

// Reads a module; throws a std::runtime_error that names kernel and line where it knows an instruction or an operand not.
void read_module(const char* text, Module& module);
// Runs a kernel of a module's table; what went wrong, or null.
const char* launch(const EmuLaunch* launch);

// An asynchronous copy into shared memory that its thread has not waited for.
struct Copy {
    int lane, group;
    uint32_t to;
    const char* from;
    int bytes, there;  // of `bytes`, `there` are copied; zeros follow
};

struct Warp {
    char* rows;
    int number;
    uint32_t live, active;
    uint32_t waiting;               // lanes at an operation of the whole warp that other lanes have not reached
    alignas(64) uint32_t mask[kLanes];  // all ones for each active lane
    int next;                       // instruction of the active lanes
    int parked[kLanes];             // instruction of each live lane that is not active
    int merge;                      // where active lanes come to parked ones, or pass them
    uint8_t phase;                  // barriers of the warp that it has passed, in a circle
    int group[kLanes];              // of copies, the one that is open
    std::vector<Copy> copies;

    template <class T>
    T* row(uint32_t at) const {
        return (T*)(rows + at);
    }
    void activate(uint32_t lanes) {
        active = lanes;
        for (int lane = 0; lane < kLanes; lane++) mask[lane] = lanes >> lane & 1 ? ~0u : 0;
    }
    uint64_t address(const Instruction& in, int which, int lane) const {
        auto& own = in.address[which];
        return (own.narrow ? row<uint32_t>(own.row)[lane] : row<uint64_t>(own.row)[lane]) + own.offset;
    }
    template <class Do>
    void each(Do&& what) const {
        for (uint32_t left = active; left; left &= left - 1) what(__builtin_ctz(left));
    }
};

// The block under way.
struct Block {
    const Kernel* kernel;
    unsigned index[3], threads;
    std::vector<char> parameters, local;
    uint32_t begun, time;          // barriers passed, counted on from block to block: when the block began, and now
    std::vector<Memory> accessed;  // for each instruction the allocation that it last met
    long turns;                    // branches backward
    uint32_t first_shared;         // where the first variable in shared memory ends; it begins at 0
};
extern Block block;

// Ends the launch: what a lane did that it may not.
[[noreturn]] void fault(const Warp& warp, int lane, const char* format, ...) __attribute__((format(printf, 3, 4)));

// Shared memory is nobody's at the start of a block.
void begin_shared_memory();

}  // namespace ptx
