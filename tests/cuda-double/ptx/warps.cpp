// Operations that a warp's lanes do together: shuffles, barriers of the warp, and products of tensor cores.
#include <cmath>
#include <cstring>

#include "ptx.h"

namespace ptx {

// All lanes that live must take part, and the mask must name them.
static void masked(const Warp& w, uint32_t row) {
    w.each([&](int lane) {
        const uint32_t mask = w.row<uint32_t>(row)[lane];
        if ((mask & w.live) != w.live) fault(w, lane, "an operation of lanes %08x, where lanes %08x live", mask, w.live);
    });
}

// ---- shuffles: value | found, own, other lane, limits, mask

template <auto Source, bool SAYS_IF_FOUND, bool UP = false>
static void shuffle(Warp& w, const Instruction& in) {
    const uint32_t* row = in.row + SAYS_IF_FOUND;
    masked(w, row[4]);
    uint32_t own[kLanes];
    memcpy(own, w.row<uint32_t>(row[1]), sizeof own);
    w.each([&](int lane) {
        const int by = w.row<uint32_t>(row[2])[lane] & 31, limits = w.row<uint32_t>(row[3])[lane], segment = limits >> 8 & 31;
        const int limit = (lane & segment) | (limits & 31 & ~segment);
        int source = Source(lane, by, segment);
        const bool found = UP ? source >= limit : source <= limit;
        if (!found) source = lane;
        if (!(w.active >> source & 1)) fault(w, lane, "a shuffle from lane %d, which is gone", source);
        w.row<uint32_t>(in.row[0])[lane] = own[source];
        if (SAYS_IF_FOUND) w.row<uint32_t>(in.row[1])[lane] = found ? ~0u : 0;
    });
}

static void warp_barrier(Warp& w, const Instruction& in) {
    masked(w, in.row[0]);
    w.phase++;
}

// ---- tensor cores
//
// A model, not hardware: NVIDIA does not say how its tensor cores round. Factors of TF32 lose all but 11 significant bits. The eight products
// (of bfloat16 numbers sixteen) and the number that they are added to are exact; each is cut off 24 bits below the leading bit of the largest of the
// nine (seventeen); these add up exactly; and the sum is cut off to a float. So a result is off by less than 9 (17) * 2^-24 of the largest of these
// numbers and 2^-23 of itself, always towards zero. Measurements of real ones (Fasi, Higham, Mikaitis and Pranesh, 2021) found sums like this one,
// with a bit or two more kept.

// Term number `n` of the EACH that a register holds: a TF32 number, or one of two bfloat16 numbers, the first in the lower half.
template <int EACH>
static double term_of(uint32_t bits, int n) {
    bits = EACH == 1 ? bits & ~0x1fffu : bits >> 16 * n << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static double from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Who has which numbers is the PTX manual's: a lane is (group, place) = (lane / 4, lane % 4) and has of a (group, place), (group + 8, place), (group,
// place + 4) and (group + 8, place + 4); of b (place, group) and (place + 4, group); of sums (group, 2 place), (group, 2 place + 1), (group + 8, 2
// place) and (group + 8, 2 place + 1). Where a register holds two terms, they are 2 place and 2 place + 1, or 8 more.
template <int EACH>
static void multiply(Warp& w, const Instruction& in) {
    constexpr int kTerms = 8 * EACH;
    double left[16][kTerms], right[kTerms][8];  // right[term][column]
    float sums[4][kLanes];
    for (int i = 0; i < 4; i++) memcpy(sums[i], w.row<float>(in.row[10 + i]), sizeof sums[i]);
    for (int lane = 0; lane < kLanes; lane++) {
        for (int n = 0; n < EACH; n++) {
            const int place = lane % 4 * EACH + n;
            for (int i = 0; i < 4; i++)
                left[lane / 4 + i % 2 * 8][place + i / 2 * 4 * EACH] = term_of<EACH>(w.row<uint32_t>(in.row[4 + i])[lane], n);
            for (int i = 0; i < 2; i++) right[place + 4 * EACH * i][lane / 4] = term_of<EACH>(w.row<uint32_t>(in.row[8 + i])[lane], n);
        }
    }
    for (int row = 0; row < 16; row++) {
        double terms[kTerms + 1][8], most[8], sum[8];
        for (int column = 0; column < 8; column++) {
            terms[kTerms][column] = sums[row / 8 * 2 + column % 2][row % 8 * 4 + column / 2];
            most[column] = std::fabs(terms[kTerms][column]);
            sum[column] = 0;
        }
        for (int k = 0; k < kTerms; k++) {
            for (int column = 0; column < 8; column++) {
                terms[k][column] = left[row][k] * right[k][column];
                const double size = std::fabs(terms[k][column]);
                most[column] = most[column] < size || size != size ? size : most[column];
            }
        }
        for (int column = 0; column < 8; column++) {
            // The leading bit of the largest, down 24.
            const uint64_t leading = bits_of(most[column]) & 0x7ff0000000000000;
            float result;
            if (leading == 0x7ff0000000000000) {
                for (auto& term : terms) sum[column] += term[column];
                result = (float)sum[column];
            } else if (leading == 0) {
                result = 0.0f;
            } else {
                const double unit = from_bits(leading) * 0x1p-24, units = 1 / unit;
                for (auto& term : terms) sum[column] += std::trunc(term[column] * units);
                result = (float)from_bits(bits_of(sum[column] * unit) & ~(uint64_t)0x1fffffff);
            }
            w.row<float>(in.row[row / 8 * 2 + column % 2])[row % 8 * 4 + column / 2] = result;
        }
    }
}

template <int EACH>
static void multiply_of_all(Warp& w, const Instruction& in) {
    if (w.active != ~0u) fault(w, __builtin_ctz(w.active), "a product of tensor cores by lanes %08x", w.active);
    multiply<EACH>(w, in);
}

void add_warps(Forms& forms) {
    auto add = [&](const std::string& name, Run alone, Run says) {
        forms["shfl.sync." + name + ".b32"] = {alone, "wwwww", Kind::kTogether, {}};
        forms["shfl.sync." + name + ".b32|p"] = {says, "wpwwww", Kind::kTogether, {}};
    };
    constexpr auto butterfly = [](int lane, int by, int) { return lane ^ by; };
    constexpr auto up = [](int lane, int by, int) { return lane - by; };
    constexpr auto down = [](int lane, int by, int) { return lane + by; };
    constexpr auto index = [](int lane, int by, int segment) { return (lane & segment) | (by & ~segment); };
    add("bfly", shuffle<butterfly, false>, shuffle<butterfly, true>);
    add("up", shuffle<up, false, true>, shuffle<up, true, true>);
    add("down", shuffle<down, false>, shuffle<down, true>);
    add("idx", shuffle<index, false>, shuffle<index, true>);
    forms["bar.warp.sync"] = {warp_barrier, "w", Kind::kTogether, {}};
    forms["mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"] = {multiply_of_all<1>, "wwwwwwwwwwwwww", Kind::kTogether, {}};
    forms["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"] = {multiply_of_all<2>, "wwwwwwwwwwwwww", Kind::kTogether, {}};
}

}  // namespace ptx
