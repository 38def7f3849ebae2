// Products of matrices on a block's tile: how operands come into shared memory, and how a warp multiplies them.
//
// A block computes a tile of M x N sums. Its warps stand DOWN x ACROSS over the tile, each with ROWS x COLUMNS sums; a thread has ROWS / 8 x
// COLUMNS / 4 of them in registers. Slabs of TERMS terms of both operands go through shared memory: while a slab is multiplied, the copies of
// later ones are under way.
//
// Thread t of a warp is (group, place) = (t / 4, t % 4). By arithmetic in 32 bits it goes through the terms in order. With
// TENSOR_PRODUCTS the tensor cores multiply: 1: factors rounded to TF32 (11 significant bits); 3: each factor split into two TF32 numbers, and
// the three largest of the four products added up, each product too small by at most 2^-19 of itself. With PAIRS factors lie in memory as two
// bfloat16 numbers each (common.cuh), and the three largest of their four products are added up, each product off by at most 2^-15 of itself.

// TERMS_A_REGISTER: terms that a register of the tensor cores' factors holds. TERMS_SIDE_BY_SIDE: terms that a thread takes from where they lie side
// by side. SLABS_LATE: slabs whose products are summed apart from the others, by the tensor cores alone.
#ifdef PAIRS
#define TENSOR_PRODUCTS 3
#define MMA "m16n8k16.row.col.f32.bf16.bf16.f32"
#define TERMS_A_REGISTER 2
#define TERMS_SIDE_BY_SIDE 4
#define SLABS_LATE 8
#else
#define MMA "m16n8k8.row.col.f32.tf32.tf32.f32"
#define TERMS_A_REGISTER 1
#define TERMS_SIDE_BY_SIDE 1
#define SLABS_LATE 1
#endif

#if defined(CUDA_EMU)
#define COPY_ASYNC(to, from, bytes, there) emu_copy_async(to, from, bytes, there)
#define COPIES_CLOSE() emu_copies_close()
#define COPIES_WAIT(n) emu_copies_wait(n)
#elif __CUDA_ARCH__ >= 800
// The copy of 4 or 16 bytes into shared memory, or of zeros where nothing is `there`.
#define COPY_ASYNC(to, from, bytes, there)                                                                                                        \
    asm volatile("cp.async." COPY_CACHE_##bytes ".shared.global [%0], [%1], " #bytes ", %2;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from), \
                 "r"((there) ? bytes : 0)                                                                                                         \
                 : "memory")
#define COPY_CACHE_4 "ca"
#define COPY_CACHE_16 "cg"
#define COPIES_CLOSE() asm volatile("cp.async.commit_group;" ::: "memory")
#define COPIES_WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#else
// GPUs before compute capability 8.0 copy through registers.
#define COPY_ASYNC(to, from, bytes, there) copy_now_##bytes(to, from, there)
#define COPIES_CLOSE()
#define COPIES_WAIT(n)
__device__ __forceinline__ void copy_now_4(float* to, const float* from, bool there) { *to = there ? *from : 0.0f; }
__device__ __forceinline__ void copy_now_16(float* to, const float* from, bool there) {
    *(float4*)to = there ? *(const float4*)from : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}
#endif

// The copy of `count` numbers, 1 or 4.
#define COPY_ASYNC_OF(count, to, from, there) \
    do {                                      \
        if constexpr ((count) == 4) {         \
            COPY_ASYNC(to, from, 16, there);  \
        } else {                              \
            COPY_ASYNC(to, from, 4, there);   \
        }                                     \
    } while (false)

// The copy of four numbers, of which `left` are there, or of zeros: at once where they begin at a multiple of 16 bytes.
template <bool WIDE>
__device__ __forceinline__ void copy_four(float* to, const Stored* from, bool there, int left) {
    if constexpr (WIDE) {
        COPY_ASYNC(to, from, 16, there);
    } else {
#pragma unroll
        for (int n = 0; n < 4; n++) COPY_ASYNC(to + n, from + (n < left ? n : 0), 4, there && n < left);
    }
}

// Returns an address in the GPU's memory, and hides from the compiler how it was computed: what follows then adds offsets to one address, and does
// not compute the address again. Behind a long address NVRTC would also store numbers that lie side by side one by one.
template <class T>
__device__ __forceinline__ T* known(T* address) {
#ifndef CUDA_EMU
    asm("" : "+l"(address));
    __builtin_assume(__isGlobal(address));
#endif
    return address;
}

// A type chosen at compile time: A if FIRST, else B.
template <bool FIRST, class A, class B>
struct Either {
    typedef A Type;
};
template <class A, class B>
struct Either<false, A, B> {
    typedef B Type;
};

// Terms that `multiply` takes at a time: those of a tensor core's product, of which a register has one or two, or of a load of 16 bytes.
#ifdef TENSOR_PRODUCTS
#define TERMS_AT_ONCE (8 * TERMS_A_REGISTER)
#else
#define TERMS_AT_ONCE 4
#endif

// COUNT numbers that lie side by side where CHANNELS, the numbers from one position to the next, is a multiple of COUNT; `left` of them are there.
// In memory they are floats or, of a map, Stored.
template <int COUNT, int CHANNELS>
struct Together {
    static constexpr bool WIDE = CHANNELS % COUNT == 0;
    float value[COUNT];

    __device__ __forceinline__ Together() {}
    template <class N>
    __device__ __forceinline__ Together(const N* from, int left) {
        if constexpr (WIDE && COUNT == 4) {
            const float4 four = *(const float4*)from;
            value[0] = number_of(from, four.x), value[1] = number_of(from, four.y);
            value[2] = number_of(from, four.z), value[3] = number_of(from, four.w);
        } else if constexpr (WIDE && COUNT == 2) {
            const float2 two = *(const float2*)from;
            value[0] = number_of(from, two.x), value[1] = number_of(from, two.y);
        } else {
#pragma unroll
            for (int n = 0; n < COUNT; n++) value[n] = n < left ? from[n] : 0.0f;
        }
    }
    // Of a max pool's outputs, the numbers that belong to a place of their windows: those that the pool `chose` there, a byte each; else 0.
    __device__ __forceinline__ Together of_place(int place, u32 chose) const {
        Together own;
#pragma unroll
        for (int n = 0; n < COUNT; n++) own.value[n] = (chose >> 8 * n & 0xff) == place ? value[n] : 0.0f;
        return own;
    }
    template <class N>
    __device__ __forceinline__ void store(N* to, int left) const {
        if constexpr (WIDE && COUNT == 4) {
            *(float4*)to = make_float4(word_of(to, value[0]), word_of(to, value[1]), word_of(to, value[2]), word_of(to, value[3]));
        } else if constexpr (WIDE && COUNT == 2) {
            *(float2*)to = make_float2(word_of(to, value[0]), word_of(to, value[1]));
        } else {
#pragma unroll
            for (int n = 0; n < COUNT; n++) {
                if (n < left) to[n] = value[n];
            }
        }
    }
};

// A tile, and who computes what of it.
template <int ROWS_, int COLUMNS_, int DOWN_, int ACROSS_, int ALONG_ = 1>
struct Tile {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, DOWN = DOWN_, ACROSS = ACROSS_, ALONG = ALONG_;
    static constexpr int M = ROWS * DOWN, N = COLUMNS * ACROSS, THREADS = 32 * DOWN * ACROSS * ALONG;
    // A thread's sums, and how many of its columns lie side by side.
    static constexpr int OWN_ROWS = ROWS / 8, OWN_COLUMNS = COLUMNS / 4, TOGETHER = TERMS_AT_ONCE > 4 ? 2 : 4;

    static __device__ __forceinline__ int group() { return (threadIdx.x & 31) >> 2; }
    static __device__ __forceinline__ int place() { return threadIdx.x & 3; }
    static __device__ __forceinline__ int warp() { return threadIdx.x >> 5; }
    // Where the warp's part begins. Warps ALONG the terms have the same part, each with its own terms of a slab.
    static __device__ __forceinline__ int warp_row() { return warp() % DOWN * ROWS; }
    static __device__ __forceinline__ int warp_column() { return warp() / DOWN % ACROSS * COLUMNS; }
    static __device__ __forceinline__ int along() { return warp() / (DOWN * ACROSS); }
    // The first of the thread's consecutive rows, and its column number `own`, in the tile.
    static __device__ __forceinline__ int row() { return warp_row() + group() * OWN_ROWS; }
    static __device__ __forceinline__ int column(int own) { return warp_column() + place() * TOGETHER + columns_before(own); }
    // From its column number 0 to its column number `own`.
    static __device__ __forceinline__ constexpr int columns_before(int own) { return own / TOGETHER * 4 * TOGETHER + own % TOGETHER; }
};

// An operand's slab in shared memory: SIZE rows (or columns) of TERMS terms, terms side by side.
template <int SIZE, int TERMS_>
struct ByTerm {
    static constexpr bool TERMS_TOGETHER = true;
    static constexpr int TERMS = TERMS_;
#ifdef PAIRS
    // 4, 12, 20, ... 16-byte words, so that a warp's threads read four words each of 2 rows from different banks.
    static constexpr int PITCH = TERMS / 4 % 8 == 4 ? TERMS : TERMS + 16;
#else
    // An odd number of 16-byte words, so that a warp's threads read 8 rows from different banks.
    static constexpr int PITCH = TERMS / 4 % 2 ? TERMS : TERMS + 4;
#endif
    static constexpr int FLOATS = SIZE * PITCH;
};

// The layout with rows side by side.
template <int SIZE, int TERMS_>
struct ByRow {
    static constexpr bool TERMS_TOGETHER = false;
    // A warp's threads read 4 terms of 8 rows from different banks.
    static constexpr int TERMS = TERMS_, PITCH = SIZE + 8, FLOATS = TERMS * PITCH;
};

// Where a slab of layout ByRow has a term, if the other operand is A. In pairs a thread takes, of every 16 terms, the four from 4 place on where
// they lie side by side: then ByRow has these four at place, place + 4, place + 8 and place + 12. The slot of a sum is the sum of the slots where
// the one term is less than a power of two, and the other a multiple of it.
template <class A>
__device__ __forceinline__ constexpr int term_slot(int term) {
#ifdef PAIRS
    if (A::TERMS_TOGETHER) return term / 16 * 16 + term % 4 * 4 + term / 4 % 4;
#endif
    return term;
}

// The slot in operand A of the row that is the thread's number `own`. Rows are stored in another order than a tile's, so that no two threads of a
// warp meet in a bank.
template <class A>
__device__ __forceinline__ int row_slot(int group, int own) {
#ifndef TENSOR_PRODUCTS
    if (!A::TERMS_TOGETHER) return own / 4 * 32 + group * 4 + own % 4;
#endif
    return group + 8 * own;
}

// The row of the tile that lies in a slot of operand A.
template <class T, class A>
__device__ __forceinline__ int row_in(int slot) {
    const int within = slot % T::ROWS;
#ifndef TENSOR_PRODUCTS
    if (!A::TERMS_TOGETHER) return slot - within + within / 4 % 8 * T::OWN_ROWS + within / 32 * 4 + within % 4;
#endif
    return slot - within + within % 8 * T::OWN_ROWS + within / 8;
}

// The column of the tile that lies in a slot of operand B where its terms are side by side.
template <class T>
__device__ __forceinline__ int column_in(int slot) {
#ifdef TENSOR_PRODUCTS
    return slot;
#else
    const int within = slot % T::COLUMNS, own = within / 4;
    return slot - within + own / 4 * 16 + within % 4 * 4 + own % 4;
#endif
}

#ifdef TENSOR_PRODUCTS

#ifdef PAIRS

// The factors of two terms as the tensor cores take them: the upper halves of their words side by side, and the lower halves.
struct Factor {
    float high, low;

    __device__ __forceinline__ Factor() {}
    __device__ __forceinline__ explicit Factor(const float (&words)[2]) {
        const u32 first = __float_as_uint(words[0]), second = __float_as_uint(words[1]);
        high = __uint_as_float(__byte_perm(first, second, 0x7632));
        low = __uint_as_float(__byte_perm(first, second, 0x5410));
    }
};

#else

// A number's part that TF32 holds, to the nearest, ties away from zero.
__device__ __forceinline__ float rounded(float value) {
#ifdef CUDA_EMU
    const int bits = __float_as_int(value);
    return (bits & 0x7f800000) == 0x7f800000 ? value : __int_as_float((bits + 0x1000) & ~0x1fff);
#else
    u32 bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
    return __int_as_float((int)bits);
#endif
}

// A factor as the tensor cores take it, which cut off the last 13 of a number's bits: rounded; or, where products are split, its first 11 significant
// bits and the rest, of which the first 11 count: to round it, too, would take a tenth of a step's instructions. (A NaN stays one in `high`. Of an
// infinite factor the rest is NaN, which as a TF32 number may be 0: its products are infinite or NaN.)
struct Factor {
    float high, low;

    __device__ __forceinline__ Factor() {}
    __device__ __forceinline__ explicit Factor(const float (&words)[1]) {
        const float value = words[0];
        if (TENSOR_PRODUCTS == 3) {
            high = __int_as_float(__float_as_int(value) & ~0x1fff);
            low = value - high;
        } else {
            high = rounded(value);
            low = 0.0f;
        }
    }
};

#endif

// A register's term number `n` as the tensor cores see it: a TF32 number, cut off; or one of two bfloat16 numbers, the first in the lower half.
#ifdef CUDA_EMU
#ifdef PAIRS
__device__ __forceinline__ float term_of(float held, int n) { return __uint_as_float(__float_as_uint(held) >> 16 * n << 16); }
#else
__device__ __forceinline__ float term_of(float held, int) { return __int_as_float(__float_as_int(held) & ~0x1fff); }
#endif
#endif

// sums += a b for a warp, 16 x 8 x TERMS_AT_ONCE: the fragments are those of mma.m16n8k8 and m16n8k16 in the PTX manual. With a term a register, a
// thread has a: (group, place), (group + 8, place), (group, place + 4), (group + 8, place + 4); b: (place, group), (place + 4, group); with two terms
// a register the terms 2 place and 2 place + 1 in place of `place`, and 8 more in place of 4 more. In both cases it has
// sums: (group, 2 place), (group, 2 place + 1), (group + 8, 2 place), (group + 8, 2 place + 1).
__device__ __forceinline__ void mma(float sums[4], const float a[4], const float b[2]) {
#ifdef CUDA_EMU
    const int group = (threadIdx.x & 31) >> 2, place = threadIdx.x & 3;
    for (int k = 0; k < TERMS_AT_ONCE; k++) {
        const int held = k / (4 * TERMS_A_REGISTER), by = k / TERMS_A_REGISTER % 4, n = k % TERMS_A_REGISTER;
        const float upper = term_of(__shfl_sync(FULL_WARP, a[held * 2], group * 4 + by), n);
        const float lower = term_of(__shfl_sync(FULL_WARP, a[held * 2 + 1], group * 4 + by), n);
        const float left = term_of(__shfl_sync(FULL_WARP, b[held], 2 * place * 4 + by), n);
        const float right = term_of(__shfl_sync(FULL_WARP, b[held], (2 * place + 1) * 4 + by), n);
        sums[0] += upper * left;
        sums[1] += upper * right;
        sums[2] += lower * left;
        sums[3] += lower * right;
    }
#else
    asm volatile("mma.sync.aligned." MMA " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(__float_as_int(a[0])), "r"(__float_as_int(a[1])), "r"(__float_as_int(a[2])), "r"(__float_as_int(a[3])), "r"(__float_as_int(b[0])),
          "r"(__float_as_int(b[1])));
#endif
}

// The words of the terms that a register holds: the thread's register number `part`, of those for TERMS_AT_ONCE terms, of a row or column. `from`
// is where the thread's first one is, `across` and `term` are how far away the row or column and the first of TERMS_AT_ONCE terms are.
template <class OPERAND>
__device__ __forceinline__ void load_words(float (&words)[TERMS_A_REGISTER], const float* from, int across, int term, int part) {
#pragma unroll
    for (int n = 0; n < TERMS_A_REGISTER; n++) {
        const int own = part * TERMS_A_REGISTER + n, apart = 4 / TERMS_SIDE_BY_SIDE;
        words[n] = from[OPERAND::TERMS_TOGETHER ? across * OPERAND::PITCH + term + apart * own : (term + 4 * own) * OPERAND::PITCH + across];
    }
}

// A thread's sums. Tensor cores cut off what does not fit a sum; so that this does not add up, the products of LATE slabs (0: those until
// the next settle()) are summed apart, and then added, rounded, to the sums.
template <class T, int LATE = 1>
struct Sums {
    float total[T::OWN_ROWS][T::OWN_COLUMNS] = {};
    float fresh[LATE != 1 ? T::ROWS / 16 : 1][T::COLUMNS / 8][4] = {};
    int slabs = 0;

    // Adds what was summed apart to the sums.
    __device__ __forceinline__ void settle() {
        slabs = 0;
#pragma unroll
        for (int down = 0; LATE != 1 && down < T::ROWS / 16; down++) add(down, fresh[down]);
    }

    // Adds products to the sums, and makes them 0.
    __device__ __forceinline__ void add(int down, float (&products)[T::COLUMNS / 8][4]) {
#pragma unroll
        for (int across = 0; across < T::COLUMNS / 8; across++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                total[2 * down + i / 2][2 * across + i % 2] += products[across][i];
                products[across][i] = 0.0f;
            }
        }
    }
};

// sums += a b over the slab's terms of this warp.
template <class T, class A, class B, int LATE>
__device__ __forceinline__ void multiply(const float* a, const float* b, Sums<T, LATE>& sums) {
    constexpr int TERMS = A::TERMS / T::ALONG, ACROSS = T::COLUMNS / 8;
    static_assert(TERMS % TERMS_AT_ONCE == 0, "whole products of the tensor cores");
    const int first = T::ALONG > 1 ? T::along() * TERMS : 0, top = T::warp_row() + T::group(), left = T::warp_column() + T::group();
    // Where the thread's first row and column are; all else is a constant away.
    a += A::TERMS_TOGETHER ? top * A::PITCH + first + T::place() * TERMS_SIDE_BY_SIDE : (first + T::place()) * A::PITCH + top;
    b += B::TERMS_TOGETHER ? left * B::PITCH + first + T::place() * TERMS_SIDE_BY_SIDE : (first + T::place()) * B::PITCH + left;
    Factor right[TERMS / TERMS_AT_ONCE][ACROSS][2];
#pragma unroll
    for (int k = 0; k < TERMS; k += TERMS_AT_ONCE) {
#pragma unroll
        for (int across = 0; across < ACROSS; across++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float words[TERMS_A_REGISTER];
                load_words<B>(words, b, 8 * across, k, half);
                right[k / TERMS_AT_ONCE][across][half] = Factor(words);
            }
        }
    }
#pragma unroll
    for (int down = 0; down < T::ROWS / 16; down++) {
        float slab[ACROSS][4] = {};
        float (&fresh)[ACROSS][4] = LATE != 1 ? sums.fresh[LATE != 1 ? down : 0] : slab;
#pragma unroll
        for (int k = 0; k < TERMS; k += TERMS_AT_ONCE) {
            float high[4], low[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float words[TERMS_A_REGISTER];
                load_words<A>(words, a, 16 * down + i % 2 * 8, k, i / 2);
                const Factor factor(words);
                high[i] = factor.high;
                low[i] = factor.low;
            }
            // The smallest products are added first. An mma waits for an earlier one into the same sums, so each product takes all sums in turn.
#pragma unroll
            for (int product = 3 - TENSOR_PRODUCTS; product < 3; product++) {
#pragma unroll
                for (int across = 0; across < ACROSS; across++) {
                    const Factor* own = right[k / TERMS_AT_ONCE][across];
                    const float right_high[2] = {own[0].high, own[1].high}, right_low[2] = {own[0].low, own[1].low};
                    mma(fresh[across], product == 0 ? low : high, product == 1 ? right_low : right_high);
                }
            }
        }
        if (LATE == 1) sums.add(down, slab);
    }
    if (LATE > 1 && ++sums.slabs == LATE) sums.settle();
}

#else

// A thread's sums.
template <class T, int LATE = 1>
struct Sums {
    float total[T::OWN_ROWS][T::OWN_COLUMNS] = {};

    __device__ __forceinline__ void settle() {}
};

// sums += a b over the slab's terms of this warp, in order.
template <class T, class A, class B, int LATE>
__device__ __forceinline__ void multiply(const float* a, const float* b, Sums<T, LATE>& sums) {
    constexpr int TERMS = A::TERMS / T::ALONG;
    static_assert(TERMS % 4 == 0 || !(A::TERMS_TOGETHER || B::TERMS_TOGETHER), "terms that lie side by side are loaded four at a time");
    const int first = T::ALONG > 1 ? T::along() * TERMS : 0;
    // Where the thread's first row and column are; all else is a constant away.
    a += A::TERMS_TOGETHER ? (T::warp_row() + T::group()) * A::PITCH + first : first * A::PITCH + T::warp_row() + T::group() * 4;
    b += B::TERMS_TOGETHER ? (T::warp_column() + T::place()) * B::PITCH + first : first * B::PITCH + T::warp_column() + T::place() * 4;
#pragma unroll
    for (int k = 0; k < TERMS; k += 4) {
        float left[4][T::OWN_ROWS], right[4][T::OWN_COLUMNS];
#pragma unroll
        for (int own = 0; own < T::OWN_ROWS; own += A::TERMS_TOGETHER ? 1 : 4) {
#pragma unroll
            for (int i = 0; i < (A::TERMS_TOGETHER ? 1 : 4) && k + i < TERMS; i++) {
                const float4 four = *(const float4*)&a[A::TERMS_TOGETHER ? own * 8 * A::PITCH + k : (k + i) * A::PITCH + own * 8];
                const float numbers[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
                for (int n = 0; n < 4; n++) left[A::TERMS_TOGETHER ? n : i][A::TERMS_TOGETHER ? own : own + n] = numbers[n];
            }
        }
#pragma unroll
        for (int own = 0; own < T::OWN_COLUMNS; own += B::TERMS_TOGETHER ? 1 : 4) {
#pragma unroll
            for (int i = 0; i < (B::TERMS_TOGETHER ? 1 : 4) && k + i < TERMS; i++) {
                const float4 four = *(const float4*)&b[B::TERMS_TOGETHER ? own * 4 * B::PITCH + k : (k + i) * B::PITCH + own * 4];
                const float numbers[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
                for (int n = 0; n < 4; n++) right[B::TERMS_TOGETHER ? n : i][B::TERMS_TOGETHER ? own : own + n] = numbers[n];
            }
        }
#pragma unroll
        for (int i = 0; i < 4 && k + i < TERMS; i++) {
#pragma unroll
            for (int row = 0; row < T::OWN_ROWS; row++) {
#pragma unroll
                for (int column = 0; column < T::OWN_COLUMNS; column++) sums.total[row][column] += left[i][row] * right[i][column];
            }
        }
    }
}

#endif

// Goes through `slabs` slabs, STAGES of them under way at once: stage(space) starts the copies of the slab that is next into a stage of shared
// memory, FLOATS long; multiply(space) multiplies it. Every thread of the block takes part.
template <int STAGES, int FLOATS, class Stage, class Multiply>
__device__ __forceinline__ void pipeline(int slabs, float* space, const Stage& stage, const Multiply& multiply) {
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) {
        if (i < slabs) stage(space + i * FLOATS);
        COPIES_CLOSE();
    }
    int into = (STAGES - 1) * FLOATS, from = 0;
#pragma unroll 1
    for (int slab = 0; slab < slabs; slab++) {
        // COPIES_WAIT waits for this thread's copies of the slab. After the barrier all threads' copies are there, and no thread reads the stage that
        // is written next.
        COPIES_WAIT(STAGES - 2);
        __syncthreads();
        if (slab + STAGES - 1 < slabs) stage(space + into);
        COPIES_CLOSE();
        multiply(space + from);
        from = from == (STAGES - 1) * FLOATS ? 0 : from + FLOATS;
        into = into == (STAGES - 1) * FLOATS ? 0 : into + FLOATS;
    }
    // Shared memory may be overwritten afterwards.
    COPIES_WAIT(0);
    __syncthreads();
}
