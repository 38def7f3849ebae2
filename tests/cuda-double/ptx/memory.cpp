// Loads, stores and asynchronous copies, and what each is checked for.
//
// Global memory: an access lies in one allocation that lives, at a multiple of its size, and reads what somebody has written. Shared memory: the same
// of the kernel's variables; and of two accesses to a word, by two threads, one of which writes, one comes after a barrier that the other came
// before. An asynchronous copy writes twice: where it begins, and where its thread waits for it; between the two nobody else touches the word.
#include <algorithm>
#include <cstring>

#include "ptx.h"

namespace ptx {

// ---- global memory

static bool all_written(const unsigned char* written, unsigned bytes) {
    for (; bytes >= 4; bytes -= 4, written += 4) {
        uint32_t four;
        memcpy(&four, written, sizeof four);
        if (four != 0x01010101) return false;
    }
    while (bytes) {
        if (!written[--bytes]) return false;
    }
    return true;
}

// The allocation in which an access lies.
static const Memory& allocation(const Warp& w, const Instruction& in, Address at, unsigned bytes, int lane) {
    Memory& memory = block.accessed[in.place];
    if (at < memory.from || at + bytes > memory.to) {
        if (!find_memory(at, memory)) {
            describe_address(at);
            fault(w, lane, "%u bytes at %#llx, in no allocation", bytes, at);
        }
        if (at + bytes > memory.to) fault(w, lane, "%u bytes at %#llx, of which %llu are behind an allocation", bytes, at, at + bytes - memory.to);
    }
    return memory;
}

static void aligned(const Warp& w, Address at, unsigned bytes, int lane) {
    if (at % bytes) fault(w, lane, "%u bytes at %#llx, misaligned", bytes, at);
}

static const char* readable(const Warp& w, const Instruction& in, Address at, unsigned bytes, int lane) {
    const Memory& memory = allocation(w, in, at, bytes, lane);
    if (memory.written && !all_written(memory.written + (at - memory.from), bytes)) {
        fault(w, lane, "%u bytes are read, %llu bytes into an allocation of %llu, that nobody has written", bytes, at - memory.from,
              memory.to - memory.from);
    }
    return (const char*)at;
}

template <class Number, class Register>
static void load_global(Warp& w, const Instruction& in) {
    const unsigned bytes = sizeof(Number) * in.count;
    w.each([&](int lane) {
        const Address at = w.address(in, 0, lane);
        aligned(w, at, bytes, lane);
        const Number* from = (const Number*)readable(w, in, at, bytes, lane);
        for (int n = 0; n < in.count; n++) w.row<Register>(in.row[n])[lane] = (Register)from[n];
    });
}

template <class Number, class Register>
static void store_global(Warp& w, const Instruction& in) {
    const unsigned bytes = sizeof(Number) * in.count;
    w.each([&](int lane) {
        const Address at = w.address(in, 0, lane);
        aligned(w, at, bytes, lane);
        const Memory& memory = allocation(w, in, at, bytes, lane);
        if (memory.written) memset(memory.written + (at - memory.from), 1, bytes);
        for (int n = 0; n < in.count; n++) ((Number*)at)[n] = (Number)w.row<Register>(in.row[n])[lane];
    });
}

// ---- a thread's own memory: arrays that are no registers

template <class Number>
static Number* own(const Warp& w, const Instruction& in, int lane) {
    const uint64_t at = w.address(in, 0, lane), bytes = sizeof(Number) * in.count;
    if (at % bytes || at + bytes > block.kernel->local_bytes) fault(w, lane, "%llu bytes of its own memory, at %lld", (Address)bytes, (long long)at);
    return (Number*)(block.local.data() + (size_t)(w.number * kLanes + lane) * block.kernel->local_bytes + at);
}

template <class Number, class Register>
static void load_local(Warp& w, const Instruction& in) {
    w.each([&](int lane) {
        const Number* from = own<Number>(w, in, lane);
        for (int n = 0; n < in.count; n++) w.row<Register>(in.row[n])[lane] = (Register)from[n];
    });
}

template <class Number, class Register>
static void store_local(Warp& w, const Instruction& in) {
    w.each([&](int lane) {
        Number* to = own<Number>(w, in, lane);
        for (int n = 0; n < in.count; n++) to[n] = (Number)w.row<Register>(in.row[n])[lane];
    });
}

// ---- parameters

template <class Number, class Register>
static void load_parameter(Warp& w, const Instruction& in) {
    const unsigned bytes = sizeof(Number) * in.count;
    w.each([&](int lane) {
        const uint64_t at = w.address(in, 0, lane);
        if (at % bytes || at + bytes > block.parameters.size()) fault(w, lane, "%u bytes of the parameters, at %llu", bytes, (Address)at);
        const Number* from = (const Number*)(block.parameters.data() + at);
        for (int n = 0; n < in.count; n++) w.row<Register>(in.row[n])[lane] = (Register)from[n];
    });
}

// ---- shared memory

// A thread, or one of these.
enum : uint16_t { kNobody = 0xffff, kSeveral = 0xfffe, kOfWarp = 0x8000 };

// Accesses to four bytes. Times are those of the block; a phase is the warp's, for threads of one warp with a barrier of the warp between them.
struct Word {
    uint32_t written, read;
    uint16_t writer, reader, flyer;
    uint8_t write_phase, read_phase;
};
static Word words[kMostShared / 4];
alignas(16) static char shared[kMostShared];

void begin_shared_memory() {
    block.first_shared = block.kernel->shared.empty() ? 0 : block.kernel->shared[0].bytes;
    // Words that were written or read before this block began are as if they never were.
    for (auto& variable : block.kernel->shared) {
        for (uint32_t at = variable.from / 4; at < (variable.from + variable.bytes) / 4; at++) words[at].flyer = kNobody;
    }
}

static bool of_warp(uint16_t who, int warp) {
    return who != kNobody && who != kSeveral && (who & kOfWarp ? (who & ~kOfWarp) == warp : who / kLanes == warp);
}

static inline void inside(const Warp& w, uint32_t at, unsigned bytes, int lane) {
    if (at % bytes) fault(w, lane, "%u bytes of shared memory at %u, misaligned", bytes, at);
    // Most kernels have one.
    if (at + bytes <= block.first_shared) return;
    for (auto& variable : block.kernel->shared) {
        if (at >= variable.from && at + bytes <= variable.from + variable.bytes) return;
    }
    const auto& last = block.kernel->shared.empty() ? Variable{0, 0} : block.kernel->shared.back();
    fault(w, lane, "%u bytes of shared memory at %u, in no variable (the last ends at %u)", bytes, at, last.from + last.bytes);
}

[[noreturn]] static void hazard(const Warp& w, int lane, uint32_t at, const char* what, int other) {
    char who[32];
    snprintf(who, sizeof who, other == kSeveral ? "several threads" : other & kOfWarp ? "threads of warp %d" : "thread %d", other & ~kOfWarp);
    fault(w, lane, "shared memory at %u: %s %s, without a barrier between", at, what, who);
}

static inline void note_read(const Warp& w, int lane, uint32_t at) {
    Word& word = words[at / 4];
    const uint16_t me = w.number * kLanes + lane;
    // Others have read it since the last barrier, and nothing is new.
    if (word.read == block.time && word.written != block.time && word.flyer == kNobody && word.read_phase == w.phase &&
        (word.reader == me || word.reader == (kOfWarp | w.number) || word.reader == kSeveral))
        return;
    if (word.flyer != kNobody) fault(w, lane, "shared memory at %u is read while an asynchronous copy of thread %d is under way", at, word.flyer);
    if (word.written < block.begun) fault(w, lane, "shared memory at %u is read, and nobody has written it", at);
    if (word.written == block.time && word.writer != me && !(of_warp(word.writer, w.number) && word.write_phase != w.phase))
        hazard(w, lane, at, "a read after a write by", word.writer);
    const bool mine = word.read == block.time && of_warp(word.reader, w.number);
    if (word.read != block.time || (mine && word.read_phase != w.phase)) {
        word.read = block.time, word.reader = me, word.read_phase = w.phase;
    } else if (word.reader != me) {
        word.reader = mine ? kOfWarp | w.number : kSeveral;
    }
}

static inline void note_write(const Warp& w, int lane, uint32_t at) {
    Word& word = words[at / 4];
    const uint16_t me = w.number * kLanes + lane;
    if (word.flyer != kNobody) fault(w, lane, "shared memory at %u is written while an asynchronous copy of thread %d is under way", at, word.flyer);
    if (word.read == block.time && word.reader != me && !(of_warp(word.reader, w.number) && word.read_phase != w.phase))
        hazard(w, lane, at, "a write after a read by", word.reader);
    if (word.written == block.time && word.writer != me && !(of_warp(word.writer, w.number) && word.write_phase != w.phase))
        hazard(w, lane, at, "a write after a write by", word.writer);
    word.written = block.time, word.writer = me, word.write_phase = w.phase;
}

template <class Number, class Register>
static void load_shared(Warp& w, const Instruction& in) {
    const unsigned bytes = sizeof(Number) * in.count;
    // Four lanes before the first one, so that each may be compared with one four before it.
    uint32_t all[4 + kLanes], *const at = all + 4;
    std::fill_n(all, 4 + kLanes, ~0u);
    w.each([&](int lane) {
        at[lane] = w.address(in, 0, lane);
        // Lanes beside each other, or every fourth one, read the same in products of matrices: what holds for one of them holds for all.
        if (at[lane] == at[lane - 1] || at[lane] == at[lane - 4]) {
            for (uint32_t word = at[lane] / 4; word < (at[lane] + bytes) / 4; word++) {
                if (words[word].reader != kSeveral) words[word].reader = kOfWarp | w.number;
            }
            return;
        }
        inside(w, at[lane], bytes, lane);
        for (uint32_t word = at[lane]; word < at[lane] + bytes; word += 4) note_read(w, lane, word);
    });
    for (int n = 0; n < in.count; n++) {
        Register* to = w.row<Register>(in.row[n]);
        w.each([&](int lane) { to[lane] = (Register)((const Number*)(shared + at[lane]))[n]; });
    }
}

template <class Number, class Register>
static void store_shared(Warp& w, const Instruction& in) {
    const unsigned bytes = sizeof(Number) * in.count;
    w.each([&](int lane) {
        const uint32_t at = w.address(in, 0, lane);
        inside(w, at, bytes, lane);
        for (uint32_t word = at; word < at + bytes; word += 4) note_write(w, lane, word);
        for (int n = 0; n < in.count; n++) ((Number*)(shared + at))[n] = (Number)w.row<Register>(in.row[n])[lane];
    });
}

// ---- asynchronous copies: bytes are moved where their thread waits for them, as late as they may be

template <int BYTES>
static void copy_async(Warp& w, const Instruction& in) {
    w.each([&](int lane) {
        const uint32_t to = w.address(in, 0, lane);
        const Address from = w.address(in, 1, lane);
        const uint32_t there = w.row<uint32_t>(in.row[0])[lane];
        if (in.number != BYTES || there > BYTES) fault(w, lane, "an asynchronous copy of %u of %d bytes", there, in.number);
        aligned(w, from, BYTES, lane);
        inside(w, to, BYTES, lane);
        if (there) readable(w, in, from, there, lane);
        for (uint32_t word = to; word < to + BYTES; word += 4) {
            note_write(w, lane, word);
            words[word / 4].flyer = w.number * kLanes + lane;
        }
        w.copies.push_back({lane, w.group[lane], to, (const char*)from, BYTES, (int)there});
    });
}

static void close_group(Warp& w, const Instruction&) {
    w.each([&](int lane) { w.group[lane]++; });
}

static void wait_for_groups(Warp& w, const Instruction& in) {
    size_t kept = 0;
    for (const Copy& copy : w.copies) {
        if (!(w.active >> copy.lane & 1) || copy.group >= w.group[copy.lane] - in.number) {
            w.copies[kept++] = copy;
            continue;
        }
        memcpy(shared + copy.to, copy.from, copy.there);
        memset(shared + copy.to + copy.there, 0, copy.bytes - copy.there);
        for (uint32_t word = copy.to; word < copy.to + copy.bytes; word += 4) {
            words[word / 4].flyer = kNobody;
            note_write(w, copy.lane, word);
        }
    }
    w.copies.resize(kept);
}

// ---- their names

template <class Number, class Register>
static void add_width(Forms& forms, const std::string& type, int width) {
    for (int count : {1, 2, 4}) {
        if (count * sizeof(Number) > 16) continue;
        const std::string vector = count == 1 ? "" : ".v" + std::to_string(count), values(count, 'r');
        auto add = [&](const std::string& name, const std::string& operands, Run run) {
            Form& form = forms[name + vector + "." + type];
            form.operands = operands;
            form.by_width[width] = run;
        };
        for (const char* name : {"ld.global", "ld.global.nc"}) add(name, values + "a", load_global<Number, Register>);
        add("st.global", "a" + values, store_global<Number, Register>);
        add("ld.local", values + "a", load_local<Number, Register>);
        add("st.local", "a" + values, store_local<Number, Register>);
        add("ld.param", values + "a", load_parameter<Number, Register>);
        // Words are what is known of shared memory.
        if (sizeof(Number) < 4) continue;
        add("ld.shared", values + "a", load_shared<Number, Register>);
        add("st.shared", "a" + values, store_shared<Number, Register>);
    }
}

template <class Number>
static void add_type(Forms& forms, const std::string& type) {
    if (sizeof(Number) <= 2) add_width<Number, uint16_t>(forms, type, 0);
    if (sizeof(Number) <= 4) add_width<Number, uint32_t>(forms, type, 1);
    add_width<Number, uint64_t>(forms, type, 2);
}

void add_memory(Forms& forms) {
    for (const char* type : {"u8", "b8"}) add_type<uint8_t>(forms, type);
    for (const char* type : {"u16", "b16"}) add_type<uint16_t>(forms, type);
    for (const char* type : {"u32", "b32", "f32"}) add_type<uint32_t>(forms, type);
    for (const char* type : {"u64", "b64", "s64", "f64"}) add_type<uint64_t>(forms, type);
    add_type<int8_t>(forms, "s8");
    add_type<int16_t>(forms, "s16");
    add_type<int32_t>(forms, "s32");
    forms["cp.async.ca.shared.global"] = {copy_async<4>, "aanw", Kind::kPlain, {}};
    forms["cp.async.cg.shared.global"] = {copy_async<16>, "aanw", Kind::kPlain, {}};
    forms["cp.async.commit_group"] = {close_group, "", Kind::kPlain, {}};
    forms["cp.async.wait_group"] = {wait_for_groups, "n", Kind::kPlain, {}};
}

}  // namespace ptx
