// Products of matrices on a block's tile: how operands come into shared memory, and how a warp multiplies them.
//
// A block computes a tile of M x N sums. Its warps stand DOWN x ACROSS over the tile, each with ROWS x COLUMNS sums; a thread has ROWS / 8 x
// COLUMNS / 4 of them in registers. Slabs of TERMS terms of both operands go through shared memory: while a slab is multiplied, the copies of
// later ones are under way.
//
// Thread t of a warp is (group, place) = (t / 4, t % 4). By arithmetic in 32 bits it goes through the terms in order. With
// TENSOR_PRODUCTS the tensor cores multiply: 1: factors rounded to TF32 (11 significant bits); 3: each factor split into two TF32 numbers, and
// the three largest of the four products added up, each product too small by at most 2^-19 of itself.

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
__device__ __forceinline__ void copy_four(float* to, const float* from, bool there, int left) {
    if constexpr (WIDE) {
        COPY_ASYNC(to, from, 16, there);
    } else {
#pragma unroll
        for (int n = 0; n < 4; n++) COPY_ASYNC(to + n, from + (n < left ? n : 0), 4, there && n < left);
    }
}

// Returns `from`, and hides from the compiler how `from` was computed: copies then add offsets to one address, and do not compute the address again.
__device__ __forceinline__ const float* known(const float* from) {
#ifndef CUDA_EMU
    asm("" : "+l"(from));
#endif
    return from;
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

// Terms that `multiply` takes at a time: those of a tensor core's product, or of a load of 16 bytes.
#ifdef TENSOR_PRODUCTS
#define TERMS_AT_ONCE 8
#else
#define TERMS_AT_ONCE 4
#endif

// COUNT numbers that lie side by side where CHANNELS, the numbers from one position to the next, is a multiple of COUNT; `left` of them are there.
template <int COUNT, int CHANNELS>
struct Together {
    static constexpr bool WIDE = CHANNELS % COUNT == 0;
    float value[COUNT];

    __device__ __forceinline__ Together() {}
    __device__ __forceinline__ Together(const float* from, int left) {
        if constexpr (WIDE && COUNT == 4) {
            const float4 four = *(const float4*)from;
            value[0] = four.x, value[1] = four.y, value[2] = four.z, value[3] = four.w;
        } else if constexpr (WIDE && COUNT == 2) {
            const float2 two = *(const float2*)from;
            value[0] = two.x, value[1] = two.y;
        } else {
#pragma unroll
            for (int n = 0; n < COUNT; n++) value[n] = n < left ? from[n] : 0.0f;
        }
    }
    __device__ __forceinline__ void store(float* to, int left) const {
        if constexpr (WIDE && COUNT == 4) {
            *(float4*)to = make_float4(value[0], value[1], value[2], value[3]);
        } else if constexpr (WIDE && COUNT == 2) {
            *(float2*)to = make_float2(value[0], value[1]);
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
    static constexpr int OWN_ROWS = ROWS / 8, OWN_COLUMNS = COLUMNS / 4, TOGETHER = TERMS_AT_ONCE == 8 ? 2 : 4;

    static __device__ __forceinline__ int group() { return (threadIdx.x & 31) >> 2; }
    static __device__ __forceinline__ int place() { return threadIdx.x & 3; }
    static __device__ __forceinline__ int warp() { return threadIdx.x >> 5; }
    // Where the warp's part begins. Warps ALONG the terms have the same part, each with its own terms of a slab.
    static __device__ __forceinline__ int warp_row() { return warp() % DOWN * ROWS; }
    static __device__ __forceinline__ int warp_column() { return warp() / DOWN % ACROSS * COLUMNS; }
    static __device__ __forceinline__ int along() { return warp() / (DOWN * ACROSS); }
    // The first of the thread's consecutive rows, and its column number `own`, in the tile.
    static __device__ __forceinline__ int row() { return warp_row() + group() * OWN_ROWS; }
    static __device__ __forceinline__ int column(int own) {
        return warp_column() + own / TOGETHER * 4 * TOGETHER + place() * TOGETHER + own % TOGETHER;
    }
};

// An operand's slab in shared memory: SIZE rows (or columns) of TERMS terms, terms side by side.
template <int SIZE, int TERMS_>
struct ByTerm {
    static constexpr bool TERMS_TOGETHER = true;
    // An odd number of 16-byte words, so that a warp's threads read 8 rows from different banks.
    static constexpr int TERMS = TERMS_, PITCH = TERMS / 4 % 2 ? TERMS : TERMS + 4, FLOATS = SIZE * PITCH;
};

// The layout with rows side by side.
template <int SIZE, int TERMS_>
struct ByRow {
    static constexpr bool TERMS_TOGETHER = false;
    // A warp's threads read 4 terms of 8 rows from different banks.
    static constexpr int TERMS = TERMS_, PITCH = SIZE + 8, FLOATS = TERMS * PITCH;
};

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
    __device__ __forceinline__ explicit Factor(float value) {
        if (TENSOR_PRODUCTS == 3) {
            high = __int_as_float(__float_as_int(value) & ~0x1fff);
            low = value - high;
        } else {
            high = rounded(value);
            low = 0.0f;
        }
    }
};

#ifdef CUDA_EMU
// A number as the tensor cores see it: cut off to TF32.
__device__ __forceinline__ float cut_off(float value) { return __int_as_float(__float_as_int(value) & ~0x1fff); }
#endif

// sums += a b for a warp, 16 x 8 x 8: the fragments are mma.m16n8k8's of the PTX manual. A thread has
// a: (group, place), (group + 8, place), (group, place + 4), (group + 8, place + 4); b: (place, group), (place + 4, group);
// sums: (group, 2 place), (group, 2 place + 1), (group + 8, 2 place), (group + 8, 2 place + 1).
__device__ __forceinline__ void mma(float sums[4], const float a[4], const float b[2]) {
#ifdef CUDA_EMU
    const int group = (threadIdx.x & 31) >> 2, place = threadIdx.x & 3;
    for (int k = 0; k < 8; k++) {
        const float upper = cut_off(__shfl_sync(FULL_WARP, a[k / 4 * 2], group * 4 + k % 4));
        const float lower = cut_off(__shfl_sync(FULL_WARP, a[k / 4 * 2 + 1], group * 4 + k % 4));
        const float left = cut_off(__shfl_sync(FULL_WARP, b[k / 4], 2 * place * 4 + k % 4));
        const float right = cut_off(__shfl_sync(FULL_WARP, b[k / 4], (2 * place + 1) * 4 + k % 4));
        sums[0] += upper * left;
        sums[1] += upper * right;
        sums[2] += lower * left;
        sums[3] += lower * right;
    }
#else
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(__float_as_int(a[0])), "r"(__float_as_int(a[1])), "r"(__float_as_int(a[2])), "r"(__float_as_int(a[3])), "r"(__float_as_int(b[0])),
          "r"(__float_as_int(b[1])));
#endif
}

// sums += a b over the slab's terms of this warp. Tensor cores cut off what does not fit a sum; so that this does not add up, a slab's products are
// summed by themselves and then added, rounded, to the sums.
template <class T, class A, class B>
__device__ __forceinline__ void multiply(const float* a, const float* b, float (&sums)[T::OWN_ROWS][T::OWN_COLUMNS]) {
    constexpr int TERMS = A::TERMS / T::ALONG, ACROSS = T::COLUMNS / 8;
    const int first = (T::ALONG > 1 ? T::along() * TERMS : 0) + T::place(), top = T::warp_row() + T::group(), left = T::warp_column() + T::group();
    // Where the thread's first row and column are; all else is a constant away.
    a += A::TERMS_TOGETHER ? top * A::PITCH + first : first * A::PITCH + top;
    b += B::TERMS_TOGETHER ? left * B::PITCH + first : first * B::PITCH + left;
    Factor right[TERMS / 8][ACROSS][2];
#pragma unroll
    for (int k = 0; k < TERMS; k += 8) {
#pragma unroll
        for (int across = 0; across < ACROSS; across++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int term = k + 4 * half, column = 8 * across;
                right[k / 8][across][half] = Factor(b[B::TERMS_TOGETHER ? column * B::PITCH + term : term * B::PITCH + column]);
            }
        }
    }
#pragma unroll
    for (int down = 0; down < T::ROWS / 16; down++) {
        float fresh[ACROSS][4];
#pragma unroll
        for (int across = 0; across < ACROSS; across++) fresh[across][0] = fresh[across][1] = fresh[across][2] = fresh[across][3] = 0.0f;
#pragma unroll
        for (int k = 0; k < TERMS; k += 8) {
            float high[4], low[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int term = k + i / 2 * 4, row = 16 * down + i % 2 * 8;
                const Factor factor(a[A::TERMS_TOGETHER ? row * A::PITCH + term : term * A::PITCH + row]);
                high[i] = factor.high;
                low[i] = factor.low;
            }
            // The smallest products are added first. An mma waits for an earlier one into the same sums, so each product takes all sums in turn.
#pragma unroll
            for (int product = 3 - TENSOR_PRODUCTS; product < 3; product++) {
#pragma unroll
                for (int across = 0; across < ACROSS; across++) {
                    const Factor* own = right[k / 8][across];
                    const float right_high[2] = {own[0].high, own[1].high}, right_low[2] = {own[0].low, own[1].low};
                    mma(fresh[across], product == 0 ? low : high, product == 1 ? right_low : right_high);
                }
            }
        }
#pragma unroll
        for (int across = 0; across < ACROSS; across++) {
#pragma unroll
            for (int i = 0; i < 4; i++) sums[2 * down + i / 2][2 * across + i % 2] += fresh[across][i];
        }
    }
}

#else

// sums += a b over the slab's terms of this warp, in order.
template <class T, class A, class B>
__device__ __forceinline__ void multiply(const float* a, const float* b, float (&sums)[T::OWN_ROWS][T::OWN_COLUMNS]) {
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
                for (int column = 0; column < T::OWN_COLUMNS; column++) sums[row][column] += left[i][row] * right[i][column];
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
