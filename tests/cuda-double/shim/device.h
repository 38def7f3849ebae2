// CUDA's device functions. What is missing here stops the compiler, which is a clear failure; add it when a kernel needs it.
#pragma once

// Beside the kernels, which are in here too: the C library has functions of its own called __expf.
namespace {

#define EMU_LINE int line = __builtin_LINE()

static inline void __syncthreads(EMU_LINE) { emu::sync_threads(line); }
static inline void __syncwarp(unsigned mask = ~0u, EMU_LINE) { emu::sync_warp(mask, line); }
// Every write is seen at once: a missing fence goes unnoticed.
static inline void __threadfence() {}
static inline void __threadfence_block() {}

// cp.async, which is PTX: kernels call these in its place where CUDA_EMU is defined.
static inline void emu_copy_async(void* to, const void* from, int bytes, bool there) { emu::copy_async(to, from, bytes, there); }
static inline void emu_copies_close() { emu::copies[emu::block.current].group++; }
static inline void emu_copies_wait(int left) { emu::wait_copies(left); }

template <class T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, EMU_LINE) {
    int lane = emu::block.current % 32;
    return emu::shuffle(mask, value, (lane & ~(width - 1)) | (source & (width - 1)), line);
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32, EMU_LINE) {
    int lane = emu::block.current % 32;
    return emu::shuffle(mask, value, (lane & (width - 1)) + (int)distance < width ? lane + (int)distance : lane, line);
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32, EMU_LINE) {
    int lane = emu::block.current % 32;
    return emu::shuffle(mask, value, (lane & (width - 1)) >= (int)distance ? lane - (int)distance : lane, line);
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, EMU_LINE) {
    int lane = emu::block.current % 32, other = lane ^ bits;
    return emu::shuffle(mask, value, (other & ~(width - 1)) <= (lane & ~(width - 1)) ? other & 31 : lane, line);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate, EMU_LINE) {
    int lane = emu::block.current % 32;
    auto& warp = emu::warps[emu::block.current / 32];
    unsigned turn = warp.phase & 1, result = 0;
    warp.value[turn][lane] = predicate != 0;
    emu::sync_warp(mask, line);
    for (int other = 0; other < 32; other++) {
        if (warp.came[turn] >> other & 1) result |= (unsigned)(warp.value[turn][other] & 1) << other;
    }
    return result;
}
static inline int __any_sync(unsigned mask, int predicate, EMU_LINE) { return __ballot_sync(mask, predicate, line) != 0; }
static inline int __all_sync(unsigned mask, int predicate, EMU_LINE) { return __ballot_sync(mask, !predicate, line) == 0; }

// One thread runs at a time, so plain reads and writes are atomic.
#define EMU_ATOMIC(name, T, ...)              \
    static inline T name(T* place, T value) { \
        T old = *place;                       \
        *place = __VA_ARGS__;                 \
        return old;                           \
    }
#define EMU_ATOMICS(T)                                        \
    EMU_ATOMIC(atomicAdd, T, (T)(old + value))                \
    EMU_ATOMIC(atomicMax, T, old < value ? value : old)       \
    EMU_ATOMIC(atomicMin, T, value < old ? value : old)       \
    EMU_ATOMIC(atomicExch, T, value)                          \
    static inline T atomicCAS(T* place, T compare, T value) { \
        T old = *place;                                       \
        if (old == compare) *place = value;                   \
        return old;                                           \
    }
#define EMU_ATOMIC_BITS(T)                \
    EMU_ATOMIC(atomicSub, T, old - value) \
    EMU_ATOMIC(atomicAnd, T, old& value)  \
    EMU_ATOMIC(atomicOr, T, old | value)  \
    EMU_ATOMIC(atomicXor, T, old ^ value)
EMU_ATOMICS(int)
EMU_ATOMICS(unsigned)
EMU_ATOMICS(unsigned long long)
EMU_ATOMIC_BITS(int)
EMU_ATOMIC_BITS(unsigned)
EMU_ATOMIC_BITS(unsigned long long)
EMU_ATOMIC(atomicAdd, float, old + value)
EMU_ATOMIC(atomicAdd, double, old + value)
EMU_ATOMIC(atomicExch, float, value)

#define EMU_LOAD(name)                     \
    template <class T>                     \
    static inline T name(const T* place) { \
        return *place;                     \
    }
EMU_LOAD(__ldg)
EMU_LOAD(__ldca)
EMU_LOAD(__ldcg)
EMU_LOAD(__ldcs)
#define EMU_STORE(name)                          \
    template <class T, class V>                  \
    static inline void name(T* place, V value) { \
        *place = value;                          \
    }
EMU_STORE(__stcg)
EMU_STORE(__stcs)
EMU_STORE(__stwt)

// Rounding is the host's: a GPU's fast functions differ in their last digits, which tests must allow.
static inline float __expf(float x) { return expf(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dmul_rn(double x, double y) { return x * y; }

#define EMU_BITS(name, To, From)       \
    static inline To name(From from) { \
        To to;                         \
        memcpy(&to, &from, sizeof to); \
        return to;                     \
    }
EMU_BITS(__int_as_float, float, int)
EMU_BITS(__float_as_int, int, float)
EMU_BITS(__uint_as_float, float, unsigned)
EMU_BITS(__float_as_uint, unsigned, float)
EMU_BITS(__longlong_as_double, double, long long)
EMU_BITS(__double_as_longlong, long long, double)
static inline int __float2int_rn(float x) { return (int)nearbyintf(x); }
static inline int __float2int_rz(float x) { return (int)x; }
static inline int __float2int_rd(float x) { return (int)floorf(x); }
static inline unsigned __float2uint_rn(float x) { return (unsigned)nearbyintf(x); }
static inline unsigned __float2uint_rz(float x) { return (unsigned)x; }
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }

#define EMU_LIMITS(T)                                       \
    static inline T min(T x, T y) { return y < x ? y : x; } \
    static inline T max(T x, T y) { return x < y ? y : x; }
EMU_LIMITS(int)
EMU_LIMITS(unsigned)
EMU_LIMITS(long)
EMU_LIMITS(unsigned long)
EMU_LIMITS(long long)
EMU_LIMITS(unsigned long long)
static inline float min(float x, float y) { return fminf(x, y); }
static inline float max(float x, float y) { return fmaxf(x, y); }
static inline double min(double x, double y) { return fmin(x, y); }
static inline double max(double x, double y) { return fmax(x, y); }

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((uint64_t)x * y >> 32); }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)((((uint64_t)high << 32 | low) << (shift & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}
static inline unsigned __byte_perm(unsigned first, unsigned second, unsigned choice) {
    const uint64_t all = (uint64_t)second << 32 | first;
    unsigned result = 0;
    for (int byte = 0; byte < 4; byte++) result |= (unsigned)(all >> 8 * (choice >> 4 * byte & 7) & 255) << 8 * byte;
    return result;
}
static inline unsigned __brev(unsigned x) {
    unsigned result = 0;
    for (int bit = 0; bit < 32; bit++) result |= (x >> bit & 1) << (31 - bit);
    return result;
}

}  // namespace
