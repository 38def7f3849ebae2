// Instructions that compute a row of rows.
#include <cmath>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ptx.h"

namespace ptx {

// Predicates are stored as 32 zeros or ones.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, uint32_t, T>;

template <class T>
static inline Stored<T> stored(T value) {
    if constexpr (std::is_same_v<T, bool>) return value ? ~0u : 0u;
    else return value;
}

template <class T>
static constexpr char letter() {
    return std::is_same_v<T, bool> ? 'p' : sizeof(T) == 2 ? 'h' : sizeof(T) == 4 ? 'w' : 'd';
}

// An instruction whose lanes each get what a function, a lambda without captures, makes of their operands.
template <class Function, class Type = decltype(+Function{})>
struct Each;
template <class Function, class To, class... From>
struct Each<Function, To (*)(From...)> {
    template <size_t... I>
    static inline void go(Warp& w, const Instruction& in, std::index_sequence<I...>) {
        Stored<To>* to = w.row<Stored<To>>(in.row[0]);
        const std::tuple<const Stored<From>*...> from(w.row<const Stored<From>>(in.row[I + 1])...);
        if (w.active == ~0u) {
#pragma GCC ivdep
            for (int lane = 0; lane < kLanes; lane++) to[lane] = stored<To>(Function{}((From)std::get<I>(from)[lane]...));
        } else {
            for (int lane = 0; lane < kLanes; lane++) {
                if (w.mask[lane]) to[lane] = stored<To>(Function{}((From)std::get<I>(from)[lane]...));
            }
        }
    }
    static void run(Warp& w, const Instruction& in) { go(w, in, std::index_sequence_for<From...>{}); }
    static Form form() { return {run, {letter<To>(), letter<From>()...}, Kind::kPlain, {}}; }
};

template <class Function>
static Form each(Function) {
    return Each<Function>::form();
}

// The least number by -1 overflows, which the host's processor does not divide.
template <class T>
static bool minus_one(T b) {
    return std::is_signed_v<T> && b == (T)-1;
}

// IEEE's numbers, and none of C's rules for signed ones: this file is compiled with -fwrapv and -ffp-contract=off.
template <class T>
static void add_integers(Forms& forms, const std::string& type) {
    using U = std::make_unsigned_t<T>;
    constexpr unsigned kBits = 8 * sizeof(T);
    // Products of 16-bit numbers are ints in C++.
    using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    forms["add." + type] = each([](T a, T b) -> T { return a + b; });
    forms["sub." + type] = each([](T a, T b) -> T { return a - b; });
    forms["mul.lo." + type] = each([](T a, T b) -> T { return (T)((Wide)a * (Wide)b); });
    forms["mad.lo." + type] = each([](T a, T b, T c) -> T { return (T)((Wide)a * (Wide)b + (Wide)c); });
    forms["min." + type] = each([](T a, T b) -> T { return a < b ? a : b; });
    forms["max." + type] = each([](T a, T b) -> T { return a < b ? b : a; });
    forms["neg." + type] = each([](T a) -> T { return -a; });
    forms["div." + type] = each([](T a, T b) -> T {
        if (!b) throw std::runtime_error("a division by zero");
        return minus_one(b) ? (T)(0 - (U)a) : (T)(a / b);
    });
    forms["rem." + type] = each([](T a, T b) -> T {
        if (!b) throw std::runtime_error("a remainder by zero");
        return minus_one(b) ? (T)0 : (T)(a % b);
    });
    forms["shr." + type] = each([](T a, uint32_t by) -> T { return by < kBits ? (T)(a >> by) : a < 0 ? (T)-1 : (T)0; });
    if constexpr (sizeof(T) <= 4) {
        using Twice = std::conditional_t<
            sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
            std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>>;
        forms["mul.wide." + type] = each([](T a, T b) -> Twice { return (Twice)a * (Twice)b; });
        forms["mad.wide." + type] = each([](T a, T b, Twice c) -> Twice { return (Twice)a * (Twice)b + c; });
        forms["mul.hi." + type] = each([](T a, T b) -> T { return (T)(((Twice)a * (Twice)b) >> kBits); });
    } else {
        using Twice = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
        forms["mul.hi." + type] = each([](T a, T b) -> T { return (T)(((Twice)a * (Twice)b) >> kBits); });
    }
    forms["setp.eq." + type] = each([](T a, T b) { return a == b; });
    forms["setp.ne." + type] = each([](T a, T b) { return a != b; });
    forms["setp.lt." + type] = each([](T a, T b) { return a < b; });
    forms["setp.le." + type] = each([](T a, T b) { return a <= b; });
    forms["setp.gt." + type] = each([](T a, T b) { return a > b; });
    forms["setp.ge." + type] = each([](T a, T b) { return a >= b; });
}

template <class U>
static void add_bits(Forms& forms, const std::string& width) {
    for (const char* type : {"b", "u", "s", "f"}) {
        forms["mov." + (type + width)] = each([](U a) { return a; });
        forms["selp." + (type + width)] = each([](U a, U b, bool first) -> U { return first ? a : b; });
    }
    forms["and.b" + width] = each([](U a, U b) -> U { return a & b; });
    forms["or.b" + width] = each([](U a, U b) -> U { return a | b; });
    forms["xor.b" + width] = each([](U a, U b) -> U { return a ^ b; });
    forms["not.b" + width] = each([](U a) -> U { return ~a; });
    forms["shl.b" + width] = each([](U a, uint32_t by) -> U { return by < 8 * sizeof(U) ? (U)(a << by) : (U)0; });
    forms["setp.eq.b" + width] = each([](U a, U b) { return a == b; });
    forms["setp.ne.b" + width] = each([](U a, U b) { return a != b; });
}

template <class T>
static void add_floats(Forms& forms, const std::string& type) {
    forms["add." + type] = forms["add.rn." + type] = each([](T a, T b) { return a + b; });
    forms["sub." + type] = forms["sub.rn." + type] = each([](T a, T b) { return a - b; });
    forms["mul." + type] = forms["mul.rn." + type] = each([](T a, T b) { return a * b; });
    forms["div.rn." + type] = each([](T a, T b) { return a / b; });
    forms["rcp.rn." + type] = each([](T a) -> T { return 1 / a; });
    forms["sqrt.rn." + type] = each([](T a) -> T { return std::sqrt(a); });
    forms["fma.rn." + type] = each([](T a, T b, T c) -> T { return std::fma(a, b, c); });
    forms["neg." + type] = each([](T a) -> T { return -a; });
    forms["abs." + type] = each([](T a) -> T { return std::fabs(a); });
    // Without .NaN the other argument counts where one is NaN.
    forms["min." + type] = each([](T a, T b) -> T { return a != a ? b : b != b ? a : a < b ? a : b; });
    forms["max." + type] = each([](T a, T b) -> T { return a != a ? b : b != b ? a : a < b ? b : a; });
    forms["min.NaN." + type] = each([](T a, T b) -> T { return a != a ? a : b != b ? b : a < b ? a : b; });
    forms["max.NaN." + type] = each([](T a, T b) -> T { return a != a ? a : b != b ? b : a < b ? b : a; });
    // Ordered comparisons are false of a NaN, unordered ones true.
    forms["setp.eq." + type] = each([](T a, T b) { return a == b; });
    forms["setp.ne." + type] = each([](T a, T b) { return a < b || a > b; });
    forms["setp.lt." + type] = each([](T a, T b) { return a < b; });
    forms["setp.le." + type] = each([](T a, T b) { return a <= b; });
    forms["setp.gt." + type] = each([](T a, T b) { return a > b; });
    forms["setp.ge." + type] = each([](T a, T b) { return a >= b; });
    forms["setp.equ." + type] = each([](T a, T b) { return !(a < b || a > b); });
    forms["setp.neu." + type] = each([](T a, T b) { return a != b; });
    forms["setp.ltu." + type] = each([](T a, T b) { return !(a >= b); });
    forms["setp.leu." + type] = each([](T a, T b) { return !(a > b); });
    forms["setp.gtu." + type] = each([](T a, T b) { return !(a <= b); });
    forms["setp.geu." + type] = each([](T a, T b) { return !(a < b); });
    forms["setp.num." + type] = each([](T a, T b) { return a == a && b == b; });
    forms["setp.nan." + type] = each([](T a, T b) { return a != a || b != b; });
}

template <class To, class From>
static void add_conversion(Forms& forms, const std::string& names) {
    forms["cvt." + names] = each([](From a) -> To { return (To)a; });
    // A register may be wider than what is converted.
    if constexpr (std::is_integral_v<From> && sizeof(From) < 8) forms["cvt." + names + ":d"] = each([](uint64_t a) -> To { return (To)(From)a; });
}

// a b + c rounded down.
static float fma_down(float a, float b, float c) {
    const float nearest = std::fma(a, b, c);
    // 128 bits hold the sum of numbers that are not too far apart, and which of the two is larger in any case.
    return (__float128)nearest > (__float128)a * b + c ? std::nextafterf(nearest, -INFINITY) : nearest;
}

// TF32's nearest, ties away from zero.
static uint32_t rounded_tf32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & ~0x1fffu;
}

// bfloat16's nearest, ties to even.
static uint32_t rounded_bfloat16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value != value ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

template <class Whole, class Half>
static void unpack(Warp& w, const Instruction& in) {
    w.each([&](int lane) {
        const Whole whole = w.row<Whole>(in.row[2])[lane];
        w.row<Half>(in.row[0])[lane] = (Half)whole;
        w.row<Half>(in.row[1])[lane] = (Half)(whole >> 8 * sizeof(Half));
    });
}

void add_arithmetic(Forms& forms) {
    add_integers<int16_t>(forms, "s16");
    add_integers<uint16_t>(forms, "u16");
    add_integers<int32_t>(forms, "s32");
    add_integers<uint32_t>(forms, "u32");
    add_integers<int64_t>(forms, "s64");
    add_integers<uint64_t>(forms, "u64");
    add_bits<uint16_t>(forms, "16");
    add_bits<uint32_t>(forms, "32");
    add_bits<uint64_t>(forms, "64");
    add_floats<float>(forms, "f32");
    add_floats<double>(forms, "f64");
    forms["mov.pred"] = each([](bool a) { return a; });
    forms["not.pred"] = each([](bool a) { return !a; });
    forms["and.pred"] = each([](bool a, bool b) -> bool { return a & b; });
    forms["or.pred"] = each([](bool a, bool b) -> bool { return a | b; });
    forms["xor.pred"] = each([](bool a, bool b) -> bool { return a ^ b; });
    add_conversion<int64_t, int32_t>(forms, "s64.s32");
    add_conversion<uint64_t, uint32_t>(forms, "u64.u32");
    add_conversion<uint64_t, uint16_t>(forms, "u64.u16");
    add_conversion<uint32_t, uint64_t>(forms, "u32.u64");
    add_conversion<uint16_t, uint64_t>(forms, "u16.u64");
    add_conversion<uint16_t, uint32_t>(forms, "u16.u32");
    add_conversion<uint32_t, uint16_t>(forms, "u32.u16");
    add_conversion<int32_t, int16_t>(forms, "s32.s16");
    add_conversion<float, int32_t>(forms, "rn.f32.s32");
    add_conversion<float, uint32_t>(forms, "rn.f32.u32");
    add_conversion<float, uint16_t>(forms, "rn.f32.u16");
    add_conversion<double, float>(forms, "f64.f32");
    add_conversion<float, double>(forms, "rn.f32.f64");
    forms["cvt.sat.f32.f32"] = each([](float a) -> float { return !(a > 0) ? 0 : a > 1 ? 1 : a; });
    forms["cvt.rna.tf32.f32"] = each([](float a) { return rounded_tf32(a); });
    forms["cvt.rn.bf16x2.f32"] = each([](float upper, float lower) { return rounded_bfloat16(upper) << 16 | rounded_bfloat16(lower); });
    forms["fma.rm.f32"] = each([](float a, float b, float c) { return fma_down(a, b, c); });
    // The host's: a GPU's is off by up to 2 in the last place.
    forms["ex2.approx.ftz.f32"] = each([](float a) -> float {
        const float power = std::exp2(a);
        return power < 1.17549435e-38f ? 0 : power;
    });
    forms["shf.l.wrap.b32"] =
        each([](uint32_t low, uint32_t high, uint32_t by) -> uint32_t { return ((uint64_t)high << 32 | low) << (by & 31) >> 32; });
    forms["clz.b32"] = each([](uint32_t a) -> uint32_t { return a ? __builtin_clz(a) : 32; });
    forms["bfi.b32"] = each([](uint32_t a, uint32_t into, uint32_t at, uint32_t bits) -> uint32_t {
        at &= 255, bits &= 255;
        if (at > 31) return into;
        const uint32_t mask = (bits > 31 ? ~0u : (1u << bits) - 1) << at;
        return (into & ~mask) | (a << at & mask);
    });
    forms["prmt.b32"] = each([](uint32_t a, uint32_t b, uint32_t choice) -> uint32_t {
        const uint64_t all = (uint64_t)b << 32 | a;
        uint32_t result = 0;
        for (int byte = 0; byte < 4; byte++) {
            const uint32_t own = choice >> 4 * byte, value = all >> 8 * (own & 7) & 255;
            result |= (own & 8 ? value >> 7 ? 255 : 0 : value) << 8 * byte;
        }
        return result;
    });
    // Two 16-bit numbers by the lower or upper two bytes, added up.
    forms["dp2a.lo.u32.u32"] = each([](uint32_t a, uint32_t b, uint32_t c) { return c + (a & 65535) * (b & 255) + (a >> 16) * (b >> 8 & 255); });
    forms["dp2a.hi.u32.u32"] = each([](uint32_t a, uint32_t b, uint32_t c) { return c + (a & 65535) * (b >> 16 & 255) + (a >> 16) * (b >> 24); });
    forms["bfe.u32"] = each([](uint32_t a, uint32_t at, uint32_t bits) -> uint32_t {
        at &= 255, bits &= 255;
        return at > 31 ? 0 : a >> at & (bits > 31 ? ~0u : (1u << bits) - 1);
    });
    // Halves in braces.
    forms["mov.b32:pack"] = each([](uint16_t low, uint16_t high) -> uint32_t { return (uint32_t)high << 16 | low; });
    forms["mov.b64:pack"] = each([](uint32_t low, uint32_t high) { return (uint64_t)high << 32 | low; });
    forms["mov.b32:unpack"] = {unpack<uint32_t, uint16_t>, "hhw", Kind::kPlain, {}};
    forms["mov.b64:unpack"] = {unpack<uint64_t, uint32_t>, "wwd", Kind::kPlain, {}};
    for (const char* name : {"cvta.to.global.u64", "cvta.global.u64", "cvta.local.u64", "cvta.to.local.u64"})
        forms[name] = each([](uint64_t a) { return a; });
}

}  // namespace ptx
