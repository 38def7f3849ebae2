// Convolutions as matrix products that read their operands where they lie: no im2col buffer, no unpooled gradient is ever written.
//
// Layouts: maps [slot][bordered rows][columns][channels], the border zero, so that every padding is a plain one; weights of a lane
// [kernel][kernel][in][out], the bias behind them; sums and their gradients [slot][height][width][out] without border.
//
// The products, for one lane, with I images and P positions of the sum:
//   forward           [I P][out]              = map [I P][k k in]   x weights [k k in][out]      6.55 MFLOP an image (conv2 of Simple-CNN)
//   data_gradient     [I inner positions][in] = sums' gradient      x weights [k k out][in]      as many, where every position has all taps
//   filter_gradient   [k k in + 1][out]       = map^T [.][I P]      x gradient [I P][out]        as many; the last row is ones: the bias
// An element of a map lies at base(row) + offset(term): both operands are gathered by two small integers.
//
// A block of 128 threads computes a tile of 4096 sums (fewer for small filters): N = out columns, 4096 / N rows; a thread has 8 rows x 4 columns
// in registers and goes through the terms in order, so a sum does not depend on what else is computed. Slabs of K terms go through shared memory, in a
// software pipeline: the first slab is loaded into registers before the loop; each turn stores the slab in the registers to shared memory, loads
// the next one, if there is one, and multiplies what it stored, so that loads and products overlap.
// Bound by FLOP: 3 shared 16-byte loads for 32 multiply-adds; an operand is read from memory (N / 2 or M / 2 FLOP a float) about once a tile, which
// for 64 x 64 tiles is 16 FLOP a byte from the second-level cache, and 83 FLOP a byte of memory for conv2's forward pass (6.55 MFLOP; 18.4 KB of map
// read, 4.1 KB + 1 KB written, an image).
//
// What one training image of Simple-CNN needs, each operand of a kernel moved once (predicted; nothing here was measured):
//
//   kernel                    bytes read  bytes written  MFLOP
//   gather                           784          3,136      -
//   convolution_forward conv1      3,136         23,040   0.92
//   convolution_forward conv2     18,432          5,120   6.55
//   dense_forward                  4,096             40   0.02
//   filter_gradient dense          4,136     (a leaf's)   0.02
//   dense_backward                    40          4,096   0.02
//   filter_gradient conv2         23,552     (a leaf's)   6.55
//   data_gradient conv2            5,120         18,432   6.55, up to 14.7 for few images a lane: its tiles then cover many positions
//   filter_gradient conv1         26,176     (a leaf's)   0.92
//   all                           85,472         53,864   21.6: 155 FLOP a byte
//
// and a leaf of a step writes a gradient of 249 KB, which update reads once, beside 249 KB of weights and as much of velocities read and written.
// At batch 2 that is 1 MB an image, as long on its way as 4.3 TB/s need 0.2 us for; from batch 64 (8 leaves of 8 images) on it is below 0.1 MB.
// A step is 11 launches for Simple-CNN and 28 for ResNet-8, whatever the lanes, where the images fit one pass.
// The pooled sums' positions are taken in the order of the 2 x 2 windows, so that a thread has whole windows and pools what it has summed.

#define THREADS 128
#define DEAD 4 // the pool's choice where the ReLU let nothing through; 0 ... 3 are the positions of a window in reading order

// The shape of one convolution. Rust's is in src/backend/cuda/launch/convolution.rs.
struct ConvolutionShape {
    int kernel, stride;
    // Floats that an output reads in one input row, and where the lane's weights and bias begin.
    int run, weights, bias;
    // The map read: channels, row and image in floats, border before, rows and columns without border.
    int in_channels, in_row, in_len, in_before, in_height, in_width;
    // The sum.
    int height, width, out;
    // 1: the sum is rectified and pooled, and its gradient is the pooled map's, with the pool's choice.
    int pooled;
};

// The map that a forward pass writes.
struct OutputMap {
    int row, len, before;
    // Channels of the shortcut added to the sum: 0 for none; the sum's own for an identity; fewer: rectified, averaged over 2 x 2, zero beyond.
    int shortcut;
};

// ReLU. A NaN stays a NaN, so that it is seen in the loss.
__device__ __forceinline__ float relu(float value) { return value <= 0.0f ? 0.0f : value; }

// The mean of a window's four rectified values, `row` floats from one row to the next and `column` from one column.
__device__ __forceinline__ float rectified_mean(const float* from, int row, int column) {
    return 0.25f * ((relu(from[0]) + relu(from[column])) + (relu(from[row]) + relu(from[row + column])));
}

// The largest of a window's sums where the ReLU lets one through, and which.
__device__ __forceinline__ float pooled(const float sums[4], int& chosen) {
    float best = 0.0f;
    chosen = DEAD;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        // Written so that a NaN wins and is seen in the loss, instead of turning into a zero here.
        if (!(sums[i] <= best) && best == best) {
            best = sums[i];
            chosen = i;
        }
    }
    return best;
}

// Where row `p` of the sums is.
__device__ __forceinline__ void locate(const ConvolutionShape& c, int p, int& image, int& y, int& x) {
    if (c.pooled) {
        const int width = c.width / 2, size = c.height / 2 * width;
        const int window = p >> 2, within = window % size;
        image = window / size;
        y = within / width * 2 + (p >> 1 & 1);
        x = within % width * 2 + (p & 1);
    } else {
        const int size = c.height * c.width, within = p % size;
        image = p / size;
        y = within / c.width;
        x = within % c.width;
    }
}

// Index of the first float that row `p` of the sums reads, from the lane's first image.
__device__ __forceinline__ int base_of(const ConvolutionShape& c, int p) {
    int image, y, x;
    locate(c, p, image, y, x);
    return image * c.in_len + y * c.stride * c.in_row + x * c.stride * c.in_channels;
}

// Where term (ky, kx, in) is from there.
__device__ __forceinline__ int offset_of(const ConvolutionShape& c, int term) { return term / c.run * c.in_row + term % c.run; }

// With USE_TF32 the products of tiles of 8 rows a thread are the tensor cores', their factors rounded to TF32's 10 bits (to the nearest, ties away
// from zero) and added up in 32 bits. Else all is 32-bit arithmetic.
#ifdef USE_TF32
#define PAD 8 // a fragment's loads, 4 terms x 8 rows, then meet 32 different banks
#else
#define PAD 4
#endif

template <int N, int ROWS>
struct Tile {
    enum { M = ROWS * 4 * THREADS / N, A_PITCH = M + PAD, B_PITCH = N + PAD, SETTLED_PITCH = N + 4 };
};

// Aligned for loads of four floats: a float array alone is not.
#ifdef USE_TF32
#define SHARED(N, ROWS, K) \
    __shared__ __align__(16) float a[K * Tile<N, ROWS>::A_PITCH]; \
    __shared__ __align__(16) float b[K * Tile<N, ROWS>::B_PITCH]; \
    __shared__ float settled[ROWS == 8 ? (int)Tile<N, ROWS>::M * Tile<N, ROWS>::SETTLED_PITCH : 1]
#else
#define SHARED(N, ROWS, K) \
    __shared__ __align__(16) float a[K * Tile<N, ROWS>::A_PITCH]; \
    __shared__ __align__(16) float b[K * Tile<N, ROWS>::B_PITCH]; \
    float* const settled = 0
#endif

#ifdef USE_TF32

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

// sums += a b for a warp, 16 x 8 x 8: the fragments are mma.m16n8k8's of the PTX manual. A thread is (group, place) = (lane / 4, lane % 4) and has
// a: (group, place), (group + 8, place), (group, place + 4), (group + 8, place + 4); b: (place, group), (place + 4, group);
// sums: (group, 2 place), (group, 2 place + 1), (group + 8, 2 place), (group + 8, 2 place + 1).
__device__ __forceinline__ void mma(float sums[4], const float a[4], const float b[2]) {
#ifdef CUDA_EMU
    const int group = (threadIdx.x & 31) >> 2, place = threadIdx.x & 3;
    for (int k = 0; k < 8; k++) {
        const float upper = __shfl_sync(FULL_WARP, a[k / 4 * 2], group * 4 + k % 4);
        const float lower = __shfl_sync(FULL_WARP, a[k / 4 * 2 + 1], group * 4 + k % 4);
        const float left = __shfl_sync(FULL_WARP, b[k / 4], 2 * place * 4 + k % 4);
        const float right = __shfl_sync(FULL_WARP, b[k / 4], (2 * place + 1) * 4 + k % 4);
        sums[0] += upper * left;
        sums[1] += upper * right;
        sums[2] += lower * left;
        sums[3] += lower * right;
    }
#else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(__float_as_int(a[0])), "r"(__float_as_int(a[1])), "r"(__float_as_int(a[2])), "r"(__float_as_int(a[3])),
                   "r"(__float_as_int(b[0])), "r"(__float_as_int(b[1])));
#endif
}

// A warp's part of a tile: 32 x 32, or 64 x 16, in fragments of 16 x 8.
template <int N>
struct Warp {
    enum { COLUMNS = N < 32 ? N : 32, ROWS = 1024 / COLUMNS, ACROSS = COLUMNS / 8, DOWN = ROWS / 16 };

    static __device__ __forceinline__ int column() { return (threadIdx.x >> 5) % (N / COLUMNS) * COLUMNS; }
    static __device__ __forceinline__ int row() { return (threadIdx.x >> 5) / (N / COLUMNS) * ROWS; }
};

// sums += a^T b over a slab; sums[down * ACROSS + across] is a fragment.
template <int N, int K>
__device__ __forceinline__ void multiply_fragments(const float* a, const float* b, float sums[8][4]) {
    typedef Tile<N, 8> T;
    typedef Warp<N> W;
    const int group = (threadIdx.x & 31) >> 2, place = threadIdx.x & 3;
    const int row = W::row() + group, column = W::column() + group;
#pragma unroll
    for (int k = 0; k < K; k += 8) {
        float right[W::ACROSS][2];
#pragma unroll
        for (int across = 0; across < W::ACROSS; across++) {
            right[across][0] = b[(k + place) * T::B_PITCH + column + 8 * across];
            right[across][1] = b[(k + place + 4) * T::B_PITCH + column + 8 * across];
        }
#pragma unroll
        for (int down = 0; down < W::DOWN; down++) {
            const float* from = a + (k + place) * T::A_PITCH + row + 16 * down;
            const float left[4] = {from[0], from[8], from[4 * T::A_PITCH], from[4 * T::A_PITCH + 8]};
#pragma unroll
            for (int across = 0; across < W::ACROSS; across++) mma(sums[down * W::ACROSS + across], left, right[across]);
        }
    }
}

// From fragments to 8 rows x 4 columns a thread, through shared memory.
template <int N>
__device__ __forceinline__ void settle_fragments(float* settled, float sums[8][4]) {
    typedef Tile<N, 8> T;
    typedef Warp<N> W;
    const int group = (threadIdx.x & 31) >> 2, place = threadIdx.x & 3;
    // Whoever still reads the tile before this one: the barriers of its slabs came in between.
#pragma unroll
    for (int down = 0; down < W::DOWN; down++) {
#pragma unroll
        for (int across = 0; across < W::ACROSS; across++) {
            const float* fragment = sums[down * W::ACROSS + across];
            float* to = settled + (W::row() + 16 * down + group) * T::SETTLED_PITCH + W::column() + 8 * across + 2 * place;
            to[0] = fragment[0];
            to[1] = fragment[1];
            to[8 * T::SETTLED_PITCH] = fragment[2];
            to[8 * T::SETTLED_PITCH + 1] = fragment[3];
        }
    }
    __syncthreads();
    const int column = threadIdx.x % (N / 4) * 4, row = threadIdx.x / (N / 4) * 8;
#pragma unroll
    for (int i = 0; i < 8; i++) {
#pragma unroll
        for (int n = 0; n < 4; n++) sums[i][n] = settled[(row + i) * T::SETTLED_PITCH + column + n];
    }
}

#endif

// What an operand is when it is stored for the products.
template <int ROWS>
__device__ __forceinline__ float operand(float value) {
#ifdef USE_TF32
    if (ROWS == 8) return rounded(value);
#endif
    return value;
}

// sums += a^T b over a slab: a is [K][A_PITCH], b [K][B_PITCH].
template <int N, int ROWS, int K>
__device__ __forceinline__ void multiply(const float* a, const float* b, float sums[ROWS][4]) {
#ifdef USE_TF32
    if constexpr (ROWS == 8) {
        multiply_fragments<N, K>(a, b, sums);
        return;
    }
#endif
    typedef Tile<N, ROWS> T;
    const int column = threadIdx.x % (N / 4) * 4, row = threadIdx.x / (N / 4) * ROWS;
#pragma unroll
    for (int k = 0; k < K; k++) {
        float left[ROWS];
        const float4 right = *(const float4*)&b[k * T::B_PITCH + column];
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (ROWS % 4 != 0) {
                left[i] = a[k * T::A_PITCH + row + i];
            } else if (i % 4 == 0) {
                const float4 four = *(const float4*)&a[k * T::A_PITCH + row + i];
                left[i] = four.x;
                left[i + 1] = four.y;
                left[i + 2] = four.z;
                left[i + 3] = four.w;
            }
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            sums[i][0] += left[i] * right.x;
            sums[i][1] += left[i] * right.y;
            sums[i][2] += left[i] * right.z;
            sums[i][3] += left[i] * right.w;
        }
    }
}

// After the last slab: every thread has its sums.
template <int N, int ROWS>
__device__ __forceinline__ void settle(float* settled, float sums[ROWS][4]) {
#ifdef USE_TF32
    if constexpr (ROWS == 8) settle_fragments<N>(settled, sums);
#endif
}

// ---- forward -------------------------------------------------------------------------------------------------------------------------------------

// What the forward kernels are given: `images` of every lane; which[lane]: the lane's place in `weights`, which are [place][pitch]. `output` is the map written; `choice` [slot][pooled positions][out], null in evaluations; `stream`
// [slot][sums], null but in residual blocks, with `shortcut` the stream at the block's input, [slot][2 height][2 width][fewer channels] or as the sum.
#define FORWARD \
    ConvolutionShape c, OutputMap to, int images, const int* which, const float* weights, int pitch, const float* input, float* output, \
        u8* choice, float* stream, const float* shortcut
#define FORWARD_ARGUMENTS c, to, images, which, weights, pitch, input, output, choice, stream, shortcut

template <int N, int K>
__device__ __forceinline__ void convolution_forward(FORWARD, float* a, float* b, float* settled) {
    typedef Tile<N, 8> T;
    enum { M = T::M, A_LOADS = M * K / THREADS, B_LOADS = (N * K + THREADS - 1) / THREADS, A_STEP = THREADS / K };
    const int thread = threadIdx.x, lane = blockIdx.z;
    const int slot = lane * images;
    const int rows = images * c.height * c.width, terms = c.kernel * c.run;
    const float* w = weights + (i64)which[lane] * pitch;
    const float* bias = w + c.bias;
    w += c.weights;
    input += (i64)slot * c.in_len;
    const int column = thread % (N / 4) * 4, row = thread / (N / 4) * 8;
    for (int tile = blockIdx.x; tile * M < rows; tile += gridDim.x) {
        int base[A_LOADS];
        float next_a[A_LOADS], next_b[B_LOADS], sums[8][4];
#pragma unroll
        for (int i = 0; i < A_LOADS; i++) {
            const int p = tile * M + thread / K + i * A_STEP;
            base[i] = p < rows ? base_of(c, p) : -1;
        }
#pragma unroll
        for (int i = 0; i < 8; i++) sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = 0.0f;
        // Term of this thread's loads, and where it is from the first: they go on by K from slab to slab, without a division.
        int within = thread % K, offset = 0;
        // Loads this thread's part of the slab of terms from `from` on into registers; zeros behind the last term.
        const auto load = [&](int from) {
            const bool there = from + thread % K < terms;
            while (within >= c.run) {
                within -= c.run;
                offset += c.in_row;
            }
#pragma unroll
            for (int i = 0; i < A_LOADS; i++) next_a[i] = there && base[i] >= 0 ? input[base[i] + offset + within] : 0.0f;
            within += K;
#pragma unroll
            for (int i = 0; i < B_LOADS; i++) {
                const int at = thread + i * THREADS;
                next_b[i] = at < N * K && from + at / N < terms ? w[from * N + at] : 0.0f;
            }
        };
        load(0);
        for (int from = 0; from < terms; from += K) {
            __syncthreads();
#pragma unroll
            for (int i = 0; i < A_LOADS; i++) a[thread % K * T::A_PITCH + thread / K + i * A_STEP] = operand<8>(next_a[i]);
#pragma unroll
            for (int i = 0; i < B_LOADS; i++) {
                const int at = thread + i * THREADS;
                if (at < N * K) b[at / N * T::B_PITCH + at % N] = operand<8>(next_b[i]);
            }
            __syncthreads();
            if (from + K < terms) load(from + K);
            multiply<N, 8, K>(a, b, sums);
        }
        // The last slab's readers are done before the next tile's first one is stored: that store comes behind a barrier.
        settle<N, 8>(settled, sums);
        const int first = tile * M + row;
        if (c.pooled) {
#pragma unroll
            for (int window = 0; window < 2; window++) {
                if (first + 4 * window >= rows) continue;
                int image, y, x;
                locate(c, first + 4 * window, image, y, x);
                const i64 place = ((i64)(slot + image) * (c.height / 2) + y / 2) * (c.width / 2) + x / 2;
                float* into = output + (i64)(slot + image) * to.len + (to.before + y / 2) * to.row + (to.before + x / 2) * N + column;
#pragma unroll
                for (int n = 0; n < 4; n++) {
                    float four[4];
                    int chosen;
#pragma unroll
                    for (int i = 0; i < 4; i++) four[i] = sums[4 * window + i][n] + bias[column + n];
                    into[n] = pooled(four, chosen);
                    if (choice) choice[place * N + column + n] = (u8)chosen;
                }
            }
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                if (first + i >= rows) continue;
                int image, y, x;
                locate(c, first + i, image, y, x);
                float* into = output + (i64)(slot + image) * to.len + (to.before + y) * to.row + (to.before + x) * N + column;
                const i64 place = (((i64)(slot + image) * c.height + y) * c.width + x) * N + column;
#pragma unroll
                for (int n = 0; n < 4; n++) {
                    float value = sums[i][n] + bias[column + n];
                    if (to.shortcut == N) value += shortcut[place + n];
                    if (to.shortcut < N && column + n < to.shortcut) {
                        const int width = 2 * c.width;
                        const float* from =
                            shortcut + (((i64)(slot + image) * 2 * c.height + 2 * y) * width + 2 * x) * to.shortcut + column + n;
                        value += rectified_mean(from, width * to.shortcut, to.shortcut);
                    }
                    if (stream) stream[place + n] = value;
                    into[n] = relu(value);
                }
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) convolution_forward_16(FORWARD) {
    SHARED(16, 8, 8);
    convolution_forward<16, 8>(FORWARD_ARGUMENTS, a, b, settled);
}

extern "C" __global__ void __launch_bounds__(THREADS) convolution_forward_32(FORWARD) {
    SHARED(32, 8, 8);
    convolution_forward<32, 8>(FORWARD_ARGUMENTS, a, b, settled);
}

extern "C" __global__ void __launch_bounds__(THREADS) convolution_forward_64(FORWARD) {
    SHARED(64, 8, 16);
    convolution_forward<64, 16>(FORWARD_ARGUMENTS, a, b, settled);
}

// ---- gradients -----------------------------------------------------------------------------------------------------------------------------------

// Where the gradients of the sum at (image, y, x) are, times four, and the position in the pool's window that they belong to: where there is a
// pool, the pooled map's gradient is kept, and belongs to the position that the pool chose.
__device__ __forceinline__ int gradients_at(const ConvolutionShape& c, int image, int y, int x) {
    if (!c.pooled) return ((image * c.height + y) * c.width + x) * c.out << 2;
    return ((image * (c.height / 2) + y / 2) * (c.width / 2) + x / 2) * c.out << 2 | (y & 1) << 1 | (x & 1);
}

// data_gradient: gradient of the layer's sum -> gradient `output` [slot][in_height][in_width][in] of the sum (or, where `rectified` is null, of the
// pooled map) that its input comes from: through that layer's ReLU, by the rectified map this layer reads, and with what `bypass`, the gradient
// of the residual block's last sum, sends through the shortcut: past the ReLU where `bypass_channels` is `in` (an identity), through it where there are
// more (the 2 x 2 average of the rectified map).
// Rows are taken by the class of their position modulo the stride, then by position, then by image: the rows of a tile have the same taps, or
// nearly (few images have several positions in a tile), and no tap that meets nothing in the whole tile is multiplied. in is 16, 32 or 64; out a multiple of 16; stride 1 or 2;
// maps have at most 64 rows and columns, border included, and a lane fewer than 2^19 images.
#define DATA_GRADIENT \
    ConvolutionShape c, int images, const int* which, const float* weights, int pitch, const float* gradient, const u8* choice, const float* rectified, \
        const float* bypass, int bypass_channels, float* output
#define DATA_GRADIENT_ARGUMENTS c, images, which, weights, pitch, gradient, choice, rectified, bypass, bypass_channels, output

// Positions of the bordered map that a tile covers: from, to and between, in steps of the stride.
struct Covered {
    int top, bottom, left, right;
};

// Whether tap k of one direction reaches some of the positions low ... high from `size` sums.
__device__ __forceinline__ bool reaches(int stride, int low, int high, int k, int size) {
    const int shift = stride - 1;
    return ((low - k) & shift) == 0 && high >= k && (low - k) >> shift < size;
}

// The first tap from `tap` on, in rows, that reaches what the tile covers; kernel * kernel if there is none.
__device__ __forceinline__ int next_tap(const ConvolutionShape& c, int tap, const Covered& tile) {
    while (tap < c.kernel * c.kernel && !(reaches(c.stride, tile.top, tile.bottom, tap / c.kernel, c.height) &&
                                          reaches(c.stride, tile.left, tile.right, tap % c.kernel, c.width))) {
        tap++;
    }
    return tap;
}

template <int N, int K>
__device__ __forceinline__ void data_gradient(DATA_GRADIENT, float* a, float* b, float* settled) {
    typedef Tile<N, 8> T;
    enum { M = T::M, A_LOADS = M * K / THREADS, B_LOADS = (N * K + THREADS - 1) / THREADS, A_STEP = THREADS / K };
    const int thread = threadIdx.x, lane = blockIdx.z;
    const int slot = lane * images;
    const int shift = c.stride - 1, classes = c.stride * c.stride;
    const int width = c.in_width / c.stride;
    const int rows = images * (c.in_height / c.stride) * width, tiles = (rows + M - 1) / M, taps = c.kernel * c.kernel;
    const float* w = weights + (i64)which[lane] * pitch + c.weights;
    const i64 size = c.pooled ? (c.height / 2) * (c.width / 2) * c.out : c.height * c.width * c.out;
    gradient += slot * size;
    if (c.pooled) choice += slot * size;
    const int column = thread % (N / 4) * 4, row = thread / (N / 4) * 8;
    for (int tile = blockIdx.x; tile < tiles * classes; tile += gridDim.x) {
        const int of_class = tile / tiles, class_y = of_class / c.stride, class_x = of_class % c.stride;
        const int start = tile % tiles * M;
        int place[A_LOADS], source[A_LOADS];
        float next_a[A_LOADS], next_b[B_LOADS], sums[8][4];
#pragma unroll
        for (int i = 0; i < A_LOADS; i++) {
            const int p = start + thread / K + i * A_STEP;
            // Image, and row and column in the bordered map, in 6 bits each.
            const int y = p / images / width * c.stride + class_y + c.in_before, x = p / images % width * c.stride + class_x + c.in_before;
            place[i] = p < rows ? p % images << 12 | y << 6 | x : -1;
        }
#pragma unroll
        for (int i = 0; i < 8; i++) sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = 0.0f;
        Covered covered;
        {
            const int one = start / images, other = ((start + M < rows ? start + M : rows) - 1) / images;
            const bool line = one / width == other / width;
            covered.top = one / width * c.stride + class_y + c.in_before;
            covered.bottom = other / width * c.stride + class_y + c.in_before;
            covered.left = (line ? one % width : 0) * c.stride + class_x + c.in_before;
            covered.right = (line ? other % width : width - 1) * c.stride + class_x + c.in_before;
        }
        // The slab that is loaded next: K output channels from `from` on, of a tap.
        int tap = next_tap(c, 0, covered), from = 0;
        // Loads this thread's part of it into registers, and goes on to the slab behind it.
        const auto load = [&]() {
            // The rows' gradients for a tap lie side by side: where is found once a tap.
            if (from == 0) {
                const int ky = tap / c.kernel, kx = tap % c.kernel;
#pragma unroll
                for (int i = 0; i < A_LOADS; i++) {
                    const int y = (place[i] >> 6 & 63) - ky, x = (place[i] & 63) - kx;
                    const bool there = place[i] >= 0 && y >= 0 && x >= 0 && y >> shift < c.height && x >> shift < c.width;
                    source[i] = there ? gradients_at(c, place[i] >> 12, y >> shift, x >> shift) : -1;
                }
            }
            // What is not there is read from the first place and let go: no load waits for another one, or for a branch.
            const int o = from + thread % K;
            if (c.pooled) {
#pragma unroll
                for (int i = 0; i < A_LOADS; i++) {
                    const int at = ((source[i] < 0 ? 0 : source[i]) >> 2) + o;
                    const float value = gradient[at];
                    next_a[i] = choice[at] == (source[i] & 3) && source[i] >= 0 ? value : 0.0f;
                }
            } else {
#pragma unroll
                for (int i = 0; i < A_LOADS; i++) {
                    const float value = gradient[((source[i] < 0 ? 0 : source[i]) >> 2) + o];
                    next_a[i] = source[i] >= 0 ? value : 0.0f;
                }
            }
#pragma unroll
            for (int i = 0; i < B_LOADS; i++) {
                const int at = thread + i * THREADS;
                next_b[i] = at < N * K ? w[(tap * N + at / K) * c.out + from + at % K] : 0.0f;
            }
            from += K;
            if (from >= c.out) {
                from = 0;
                tap = next_tap(c, tap + 1, covered);
            }
        };
        bool loaded = tap < taps;
        if (loaded) load();
        while (loaded) {
            __syncthreads();
#pragma unroll
            for (int i = 0; i < A_LOADS; i++) a[thread % K * T::A_PITCH + thread / K + i * A_STEP] = operand<8>(next_a[i]);
#pragma unroll
            for (int i = 0; i < B_LOADS; i++) {
                const int at = thread + i * THREADS;
                if (at < N * K) b[at % K * T::B_PITCH + at / K] = operand<8>(next_b[i]);
            }
            __syncthreads();
            loaded = tap < taps;
            if (loaded) load();
            multiply<N, 8, K>(a, b, sums);
        }
        settle<N, 8>(settled, sums);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int p = start + row + i;
            if (p >= rows) continue;
            const i64 at = slot + p % images;
            const int y = p / images / width * c.stride + class_y, x = p / images % width * c.stride + class_x;
            const float* seen = rectified ? rectified + at * c.in_len + (c.in_before + y) * c.in_row + (c.in_before + x) * N + column : 0;
            const i64 into = ((at * c.in_height + y) * c.in_width + x) * N + column;
#pragma unroll
            for (int n = 0; n < 4; n++) {
                float value = sums[i][n];
                if (bypass && bypass_channels != N) {
                    value += 0.25f * bypass[((at * (c.in_height / 2) + y / 2) * (c.in_width / 2) + x / 2) * bypass_channels + column + n];
                }
                if (seen && !(seen[n] > 0.0f)) value = 0.0f;
                if (bypass && bypass_channels == N) value += bypass[into + n];
                output[into + n] = value;
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 3) data_gradient_16(DATA_GRADIENT) {
    SHARED(16, 8, 8);
    data_gradient<16, 8>(DATA_GRADIENT_ARGUMENTS, a, b, settled);
}

extern "C" __global__ void __launch_bounds__(THREADS, 3) data_gradient_32(DATA_GRADIENT) {
    SHARED(32, 8, 16);
    data_gradient<32, 16>(DATA_GRADIENT_ARGUMENTS, a, b, settled);
}

extern "C" __global__ void __launch_bounds__(THREADS, 3) data_gradient_64(DATA_GRADIENT) {
    SHARED(64, 8, 8);
    data_gradient<64, 8>(DATA_GRADIENT_ARGUMENTS, a, b, settled);
}

// filter_gradient: the gradients of weights and bias summed over each leaf of `length` images, at
// sums[(lane * places + leaf) * pitch + weights]: [k k in + 1][out], since the bias lies behind the weights. A leaf is blockIdx.y: what it sums, and in
// which order, depends on nothing else. out is N, or less (the logits).
#define FILTER_GRADIENT \
    ConvolutionShape c, int images, int length, int places, int pitch, const float* input, const float* gradient, const u8* choice, float* sums
#define FILTER_GRADIENT_ARGUMENTS c, images, length, places, pitch, input, gradient, choice, sums

template <int N, int ROWS, int K>
__device__ __forceinline__ void filter_gradient(FILTER_GRADIENT, float* a, float* b, float* settled, int* bases) {
    typedef Tile<N, ROWS> T;
    // A thread's loads are of the same term or, where a tile has more rows than a block threads, of M / THREADS terms in turn.
    enum { M = T::M, A_LOADS = M * K / THREADS, B_LOADS = (N * K + THREADS - 1) / THREADS, OWN = M > THREADS ? M / THREADS : 1 };
    const int thread = threadIdx.x, lane = blockIdx.z, leaf = blockIdx.y;
    const int slot = lane * images;
    const int terms = c.kernel * c.run, positions = c.height * c.width;
    const int first = leaf * length * positions;
    const int last = (leaf * length + length < images ? leaf * length + length : images) * positions;
    const i64 size = c.pooled ? positions / 4 * c.out : positions * c.out;
    gradient += slot * size;
    if (c.pooled) choice += slot * size;
    input += (i64)slot * c.in_len;
    sums += ((i64)lane * places + leaf) * pitch + c.weights;
    const int column = thread % (N / 4) * 4, row = thread / (N / 4) * ROWS;
    for (int tile = blockIdx.x; tile * M <= terms; tile += gridDim.x) {
        float next_a[A_LOADS], next_b[B_LOADS], total[ROWS][4];
        // Where a term is from a position's base; −1: it is the row of ones; −2: beyond the last.
        int offset[OWN];
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            const int term = tile * M + (M > THREADS ? thread + i * THREADS : thread % M);
            offset[i] = term < terms ? offset_of(c, term) : term == terms ? -1 : -2;
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) total[i][0] = total[i][1] = total[i][2] = total[i][3] = 0.0f;
        // Here the pipeline's first load is a turn of the loop as well, because a second copy of it would need too many registers: a turn loads the
        // slab of positions from `next` on, while it multiplies the one before it, if there is one. The last turn loads zeros.
        for (int next = first; next < last + K; next += K) {
            const bool multiplying = next > first;
            if (multiplying) {
                __syncthreads();
#pragma unroll
                for (int i = 0; i < A_LOADS; i++) {
                    const int at = thread + i * THREADS;
                    a[at / M * T::A_PITCH + at % M] = operand<ROWS>(next_a[i]);
                }
#pragma unroll
                for (int i = 0; i < B_LOADS; i++) {
                    const int at = thread + i * THREADS;
                    if (at < N * K) b[at / N * T::B_PITCH + at % N] = operand<ROWS>(next_b[i]);
                }
            }
            // Where the positions of the next slabs begin: a thread finds one each, for THREADS / K slabs.
            if (((next - first) & (THREADS - 1)) == 0) {
                __syncthreads();
                bases[thread] = next + thread < last ? base_of(c, next + thread) : 0;
            }
            __syncthreads();
#pragma unroll
            for (int i = 0; i < A_LOADS; i++) {
                const int p = next + (thread + i * THREADS) / M, from_base = offset[i % OWN];
                const bool there = p < last && from_base >= 0;
                const float value = input[there ? bases[(p - first) & (THREADS - 1)] + from_base : 0];
                next_a[i] = there ? value : p < last && from_base == -1 ? 1.0f : 0.0f;
            }
            // As in data_gradient, what is not there is read from the first place and let go.
            int where[B_LOADS];
#pragma unroll
            for (int i = 0; i < B_LOADS; i++) {
                const int at = thread + i * THREADS, p = next + at / N, o = at % N;
                where[i] = at < N * K && p < last && o < c.out ? (c.pooled ? p >> 2 : p) * c.out + o : -1;
                next_b[i] = gradient[where[i] < 0 ? 0 : where[i]];
            }
            if (c.pooled) {
                int chosen[B_LOADS];
#pragma unroll
                for (int i = 0; i < B_LOADS; i++) chosen[i] = choice[where[i] < 0 ? 0 : where[i]];
#pragma unroll
                for (int i = 0; i < B_LOADS; i++) next_b[i] = chosen[i] == (next + (thread + i * THREADS) / N & 3) ? next_b[i] : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < B_LOADS; i++) next_b[i] = where[i] < 0 ? 0.0f : next_b[i];
            if (multiplying) multiply<N, ROWS, K>(a, b, total);
        }
        settle<N, ROWS>(settled, total);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const int term = tile * M + row + i;
#pragma unroll
            for (int n = 0; n < 4; n++) {
                if (term <= terms && column + n < c.out) sums[term * c.out + column + n] = total[i][n];
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) filter_gradient_16(FILTER_GRADIENT) {
    SHARED(16, 8, 8);
    __shared__ int bases[THREADS];
    filter_gradient<16, 8, 8>(FILTER_GRADIENT_ARGUMENTS, a, b, settled, bases);
}

extern "C" __global__ void __launch_bounds__(THREADS) filter_gradient_32(FILTER_GRADIENT) {
    SHARED(32, 8, 8);
    __shared__ int bases[THREADS];
    filter_gradient<32, 8, 8>(FILTER_GRADIENT_ARGUMENTS, a, b, settled, bases);
}

extern "C" __global__ void __launch_bounds__(THREADS, 3) filter_gradient_64(FILTER_GRADIENT) {
    SHARED(64, 8, 16);
    __shared__ int bases[THREADS];
    filter_gradient<64, 8, 16>(FILTER_GRADIENT_ARGUMENTS, a, b, settled, bases);
}

// For a filter of at most 31 weights an output (the layer that reads the image): tiles of 32 rows.
extern "C" __global__ void __launch_bounds__(THREADS) filter_gradient_small_16(FILTER_GRADIENT) {
    SHARED(16, 1, 16);
    __shared__ int bases[THREADS];
    filter_gradient<16, 1, 16>(FILTER_GRADIENT_ARGUMENTS, a, b, settled, bases);
}

extern "C" __global__ void __launch_bounds__(THREADS) filter_gradient_small_32(FILTER_GRADIENT) {
    SHARED(32, 2, 16);
    __shared__ int bases[THREADS];
    filter_gradient<32, 2, 16>(FILTER_GRADIENT_ARGUMENTS, a, b, settled, bases);
}
