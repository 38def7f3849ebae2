// Code that every kernel shares: types, reductions in a fixed order, the tree of gradient sums, and the counter-based sampler.
//
// Rules for all of kernels/: no float atomics, so that a sum has one order; reductions through this file alone, with full warp masks; no early
// return before a barrier; grid-stride loops, but in the kernels of layers, whose blocks have a tile each; no waiting between blocks. A lane (one
// trial) is blockIdx.z and never meets another.
// A slot is one image of one lane: slot = lane * images + image, and every buffer of a micro-batch is [slot][...].

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define FULL_WARP 0xffffffffu
#define INFINITE __int_as_float(0x7f800000)

#ifdef CUDA_EMU // the host double of tests/cuda-double, whose compiler fuses nothing
#define __dadd_rn(a, b) ((a) + (b))
#define __dmul_rn(a, b) ((a) * (b))
#endif

// ---- numbers of maps ---------------------------------------------------------------------------------------------------------------------------

// A number of a map (but of a residual stream, which is floats) or of a map's gradient, or a weight that a convolution multiplies by, as it lies in
// memory, in four bytes: a float; with PAIRS (execution.products = "pairs") two bfloat16 numbers of 8 significant bits, whose sum is the number to
// within 2^-17 of itself, from 2^-116 on. The upper half is the number, rounded; the lower half what that leaves, rounded. An infinite number, or
// one that bfloat16 rounds to infinity, becomes a NaN.
#ifdef PAIRS

// Two bfloat16 numbers, rounded to the nearest, ties to even: `upper` in the upper half.
__device__ __forceinline__ u32 bfloats(float upper, float lower) {
#ifdef CUDA_EMU
    const auto rounded = [](float value) -> u32 {
        const u32 bits = __float_as_uint(value);
        return value != value ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    };
    return rounded(upper) << 16 | rounded(lower);
#else
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(upper), "f"(lower));
    return both;
#endif
}

struct Stored {
    u32 word;

    __device__ __forceinline__ Stored() {}
    __device__ __forceinline__ explicit Stored(float value)
        : word(bfloats(value, value - __uint_as_float(bfloats(value, 0.0f)))) {}
    __device__ __forceinline__ Stored& operator=(float value) { return *this = Stored(value); }
    __device__ __forceinline__ operator float() const { return __uint_as_float(word & 0xffff0000u) + __uint_as_float(word << 16); }
};

#else
typedef float Stored;
#endif

// The number that a word, loaded as a float, stands for, and the word that stands for a number: in memory that the pointer points to.
__device__ __forceinline__ float number_of(const float*, float word) { return word; }
__device__ __forceinline__ float word_of(const float*, float number) { return number; }
#ifdef PAIRS
__device__ __forceinline__ float number_of(const Stored*, float word) {
    Stored stored;
    stored.word = __float_as_uint(word);
    return stored;
}
__device__ __forceinline__ float word_of(const Stored*, float number) { return __uint_as_float(Stored(number).word); }
#endif

// The sum over a warp, the same bits in all of its threads.
__device__ __forceinline__ float warp_sum(float value) {
    for (int distance = 16; distance > 0; distance >>= 1) value += __shfl_xor_sync(FULL_WARP, value, distance);
    return value;
}

// The sum of one value a warp over a block, in the order of the warps, on every thread. `scratch` has a float for each warp.
__device__ __forceinline__ float sum_of_warps(float value, float* scratch) {
    __syncthreads();
    if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = value;
    __syncthreads();
    float sum = 0.0f;
    for (int warp = 0; warp < (int)(blockDim.x >> 5); warp++) sum += scratch[warp];
    return sum;
}

// The sum of one value a thread over a block whose size is a power of two, halves added to halves, on every thread. `scratch` has a place for
// each thread.
__device__ __forceinline__ double sum_of_threads(double value, double* scratch) {
    __syncthreads();
    scratch[threadIdx.x] = value;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    }
    __syncthreads();
    return scratch[0];
}

// ---- the tree of gradient sums -----------------------------------------------------------------------------------------------------------------

#define MOST_PARTS 64
#define TREE_LEVELS 8

// The parts of a sum, in order. Each part is a node of the tree over the batch's leaves (src/comm/tree.rs): `level` has the node's level in the tree,
// `place` the node's place in the buffer. The same struct in Rust is in src/backend/cuda/launch/update.rs.
struct Parts {
    int count;
    // Equal to `count` where the parts are single leaves, one after the other, and a power of two of them; else 0.
    int leaves;
    u8 level[MOST_PARTS];
    u16 place[MOST_PARTS];
};

// Adds up parts as the tree does, whoever computed which of them: a part joins the sum that waits at its level, and the two go up a level.
struct Tree {
    float waiting[TREE_LEVELS];
    u32 occupied;

    __device__ __forceinline__ Tree() : occupied(0) {}

    __device__ __forceinline__ void add(float value, int level) {
        bool moving = true;
#pragma unroll
        for (int at = 0; at < TREE_LEVELS; at++) {
            if (!moving || at < level) continue;
            if (occupied >> at & 1) {
                value = waiting[at] + value;
                occupied &= ~(1u << at);
            } else {
                waiting[at] = value;
                occupied |= 1u << at;
                moving = false;
            }
        }
    }

    __device__ __forceinline__ float total() const {
        float sum = 0.0f;
        bool any = false;
#pragma unroll
        for (int at = 0; at < TREE_LEVELS; at++) {
            if (occupied >> at & 1) {
                sum = any ? waiting[at] + sum : waiting[at];
                any = true;
            }
        }
        return sum;
    }
};

// The sum of LEAVES leaves, one after the other: a power of two of them make halves of halves.
template <int LEAVES>
__device__ __forceinline__ float leaf_sum(const float* from, i64 stride) {
    if constexpr (LEAVES == 1) {
        return *from;
    } else {
        const float left = leaf_sum<LEAVES / 2>(from, stride);
        return left + leaf_sum<LEAVES / 2>(from + LEAVES / 2 * stride, stride);
    }
}

// The sum over parts of `from[place * stride]`.
__device__ __forceinline__ float tree_sum(const float* from, i64 stride, const Parts& parts) {
    switch (parts.leaves) {
        case 1: return leaf_sum<1>(from, stride);
        case 2: return leaf_sum<2>(from, stride);
        case 4: return leaf_sum<4>(from, stride);
        case 8: return leaf_sum<8>(from, stride);
        case 16: return leaf_sum<16>(from, stride);
        case 32: return leaf_sum<32>(from, stride);
    }
    Tree tree;
    for (int part = 0; part < parts.count; part++) tree.add(from[parts.place[part] * stride], parts.level[part]);
    return tree.total();
}

// ---- random numbers: bit for bit src/random and src/data/sampler.rs ------------------------------------------------------------------------------

__device__ __forceinline__ u32 rotate(u32 x, int by) { return x << by | x >> (32 - by); }

__device__ __forceinline__ void quarter_round(u32& a, u32& b, u32& c, u32& d) {
    a += b; d = rotate(d ^ a, 16);
    c += d; b = rotate(b ^ c, 12);
    a += b; d = rotate(d ^ a, 8);
    c += d; b = rotate(b ^ c, 7);
}

#define PURPOSE_ORDER 3u

// Words 0 ... 7 of ChaCha8 block `index` of (seed, purpose): Numbers::block.
__device__ __forceinline__ void chacha8(u64 seed, u32 purpose, u64 index, u32 words[8]) {
    const u32 start[16] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u, (u32)seed, (u32)(seed >> 32), purpose, 0, 0, 0, 0, 0,
                           (u32)index, (u32)(index >> 32), 0, 0};
    u32 s[16];
#pragma unroll
    for (int i = 0; i < 16; i++) s[i] = start[i];
#pragma unroll
    for (int round = 0; round < 8; round += 2) {
        quarter_round(s[0], s[4], s[8], s[12]);
        quarter_round(s[1], s[5], s[9], s[13]);
        quarter_round(s[2], s[6], s[10], s[14]);
        quarter_round(s[3], s[7], s[11], s[15]);
        quarter_round(s[0], s[5], s[10], s[15]);
        quarter_round(s[1], s[6], s[11], s[12]);
        quarter_round(s[2], s[7], s[8], s[13]);
        quarter_round(s[3], s[4], s[9], s[14]);
    }
#pragma unroll
    for (int i = 0; i < 8; i++) words[i] = s[i] + start[i];
}

__device__ __forceinline__ u32 scramble(u32 x, u32 key) {
    x = x * 0x9e3779b9u ^ key;
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    x ^= x >> 16;
    return x >> 8;
}

// Element `i` of the permutation of 0..n with these keys: Permutation::at.
__device__ __forceinline__ u32 permuted(u32 i, u32 n, const u32 keys[8]) {
    u32 bits = n > 1 ? 32 - __clz((int)(n - 1)) : 0;
    bits = bits < 6 ? 6 : bits;
    const u32 high_bits = bits / 2, low_bits = bits - high_bits;
    const u32 high_mask = (1u << high_bits) - 1, low_mask = (1u << low_bits) - 1;
    u32 x = i;
    do {
        u32 high = x >> low_bits, low = x & low_mask;
#pragma unroll
        for (int round = 0; round < 8; round += 2) {
            high ^= scramble(low, keys[round]) & high_mask;
            low ^= scramble(high, keys[round + 1]) & low_mask;
        }
        x = high << low_bits | low;
    } while (x >= n);
    return x;
}

// The training example at a position of the endless stream of shuffled epochs: Sampler::index.
__device__ __forceinline__ u32 sampled(u64 seed, u64 position, u32 n) {
    u32 keys[8];
    chacha8(seed, PURPOSE_ORDER, position / n, keys);
    return permuted((u32)(position % n), n, keys);
}
