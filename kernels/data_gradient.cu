// The gradient of a convolution's input, made for each layer that needs it: the gradient of the layer's sum [slot][position][out] (of a pooled
// layer the one that `unpool` writes) x weights [k k out][in]. The result, `output` [slot][in_height][in_width][in], is the gradient of the sum
// that the input comes from, or, where L::through_relu is 0, of the map read. L::through_relu masks the product by the ReLU of the layer before,
// with `rectified`, the map that this layer reads. `bypass`, the gradient of the residual block's last sum, is added for the block's shortcut:
// after that mask where L::bypass_factor is 0 (the shortcut is an identity), else before the mask (the shortcut is the mean of the rectified map
// over factor x factor).
//
// Rows are taken by the class of their position modulo the stride, then by position, then by image: the rows of a tile have the same taps, or
// nearly (few images have several positions in a tile), and no tap that meets nothing in the whole tile is multiplied. `choice` is for
// kernels/plain.cu.
#define DATA_GRADIENT \
    int images, const int *which, const Stored *weights, int pitch, const Stored *gradient, const u8 *choice, const Stored *rectified, \
        const Stored *bypass, Stored *output
#define DATA_GRADIENT_ARGUMENTS images, which, weights, pitch, gradient, choice, rectified, bypass, output

template <class L, class T>
struct DataGradient {
    // Slabs of a tap: 16 output channels each.
    static constexpr int SLAB = 16, SLABS = (L::out + SLAB - 1) / SLAB, TAPS = L::kernel * L::kernel;
    // Gradients and weights are copied 16 bytes at a time where output channels and weights begin at multiples of 4.
    static constexpr bool WIDE = L::out % 4 == 0, WIDE_WEIGHTS = WIDE && L::weights % 4 == 0;
    typedef ByTerm<T::M, SLAB> A;
    typedef ByTerm<T::N, SLAB> B;
    static constexpr bool APART = SLABS_LATE > 1;
    static constexpr int STAGE = A::FLOATS + B::FLOATS + (APART ? 4 : 0), STAGES = 3, SPACE = STAGES * STAGE;
    // Positions of a class.
    static constexpr int WIDTH = L::in_width / L::stride, POSITIONS = L::in_height / L::stride * WIDTH;

    // Positions of the bordered map that a tile covers, in steps of the stride.
    struct Covered {
        int top, bottom, left, right;
    };

    // Whether tap k of one direction reaches some of the positions low ... high from `size` sums.
    static __device__ __forceinline__ bool reaches(int low, int high, int k, int size) {
        return (low - k) % L::stride == 0 && high >= k && (low - k) / L::stride < size;
    }

    // The first tap from `tap` on, in rows, that reaches what the tile covers; TAPS if there is none.
    static __device__ __forceinline__ int next_tap(int tap, const Covered& tile) {
#pragma unroll 1
        while (tap < TAPS &&
               !(reaches(tile.top, tile.bottom, tap / L::kernel, L::height) && reaches(tile.left, tile.right, tap % L::kernel, L::width)))
            tap++;
        return tap;
    }

    static __device__ __forceinline__ void compute(DATA_GRADIENT, float* space) {
        constexpr int QUARTERS = SLAB / 4, LOADS = T::M * QUARTERS / T::THREADS, STEP = T::THREADS / QUARTERS;
        const int thread = threadIdx.x, lane = blockIdx.z, left_column = blockIdx.y * T::N;
        const int slot = lane * images, rows = images * POSITIONS, tiles = (rows + T::M - 1) / T::M;
        const int of_class = blockIdx.x / tiles, class_y = of_class / L::stride, class_x = of_class % L::stride;
        const int start = (blockIdx.x - of_class * tiles) * T::M;
        const Stored* w = weights + (i64)which[lane] * pitch + L::weights;
        gradient += (i64)slot * (L::height * L::width * L::out);
        const int quarter = thread % QUARTERS * 4, first_row = thread / QUARTERS;
        // For each row that this thread copies: row and column in the bordered map, far below it where there is none; and where the gradient that tap
        // (0, 0) reads begins, or would begin if there were one.
        int place[LOADS], origin[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const int p = start + row_in<T, A>(first_row + i * STEP), position = p / images, image = p - position * images;
            const int y = position / WIDTH * L::stride + class_y + L::in_before, x = position % WIDTH * L::stride + class_x + L::in_before;
            place[i] = p < rows ? y << 7 | x : 1 << 20;
            origin[i] = (image * (L::height * L::width) + y / L::stride * L::width + x / L::stride) * L::out;
        }
        Covered covered;
        {
            const int one = start / images, other = ((start + T::M < rows ? start + T::M : rows) - 1) / images;
            const bool line = one / WIDTH == other / WIDTH;
            covered.top = one / WIDTH * L::stride + class_y + L::in_before;
            covered.bottom = other / WIDTH * L::stride + class_y + L::in_before;
            covered.left = (line ? one % WIDTH : 0) * L::stride + class_x + L::in_before;
            covered.right = (line ? other % WIDTH : WIDTH - 1) * L::stride + class_x + L::in_before;
        }
        // How many taps there are, and the next slab's tap and first output channel.
        int taps = 0;
        for (int tap = next_tap(0, covered); tap < TAPS; tap = next_tap(tap + 1, covered)) taps++;
        int tap = next_tap(0, covered), from = 0;
        // `source`: where each row's gradients for the tap begin, from the lane's first on. `met`: a bit for each row, 1 where the tap meets a sum.
        int source[LOADS];
        u32 met = 0;
        // Finds, once a tap, where each row's gradients for the tap begin; a row's output channels lie side by side.
        const auto find_sources = [&]() {
            const int ky = tap / L::kernel, kx = tap % L::kernel;
            // A row meets sums through the taps of its class alone: y - ky and x - kx are multiples of the stride there, and y / stride less
            // (y - ky) / stride is the same for all rows of the class.
            const int up = (class_y + L::in_before) / L::stride - (class_y + L::in_before - ky) / L::stride;
            const int left = (class_x + L::in_before) / L::stride - (class_x + L::in_before - kx) / L::stride;
            const int back = (up * L::width + left) * L::out;
            met = 0;
#pragma unroll
            for (int i = 0; i < LOADS; i++) {
                // Below 0 these are large numbers.
                const u32 below = (place[i] >> 7) - ky, right = (place[i] & 127) - kx;
                const bool meets = below < L::height * L::stride && right < L::width * L::stride;
                source[i] = meets ? origin[i] - back : 0;
                met |= (u32)meets << i;
            }
        };
        find_sources();
        // Operand B stores columns in the order of column_in(), which permutes bits: a thread's n-th column is a constant away from its first one.
        static_assert((STEP & (STEP - 1)) == 0 && LOADS <= 32, "a thread's rows are a power of two apart, and have a bit each");
        const int own_column = left_column + column_in<T>(first_row);
        const Stored* const own_weights = known(w + own_column * L::out + quarter);
        // Which slabs are summed apart follows from a slab's number among those of all taps; its group's number lies behind the
        // slab. Tiles leave out different taps, and the bits of a sum must not tell: what taps that meet nothing add is 0.
        Sums<T, APART ? 0 : 1> sums;
        int group = 0;
        pipeline<STAGES, STAGE>(
            taps * SLABS, space,
            [&](float* a) {
                float* const to = a + first_row * A::PITCH + quarter;
                // Behind the last channel nothing is read.
                const int left = L::out - from - quarter;
                const bool inside = L::out % SLAB == 0 || left > 0;
                const Stored* const values = known(gradient + (inside ? from + quarter : 0));
#pragma unroll
                for (int i = 0; i < LOADS; i++) copy_four<WIDE>(to + i * STEP * A::PITCH, values + source[i], (met >> i & 1) && inside, left);
                const Stored* const of_tap = known(own_weights + tap * (L::in_channels * L::out) + from);
#pragma unroll
                for (int i = 0; i < (T::N * QUARTERS + T::THREADS - 1) / T::THREADS; i++) {
                    if (T::N * QUARTERS % T::THREADS != 0 && thread + i * T::THREADS >= T::N * QUARTERS) break;
                    const bool has = (L::in_channels % T::N == 0 || own_column + column_in<T>(i * STEP) < L::in_channels) && inside;
                    copy_four<WIDE_WEIGHTS>(
                        to + A::FLOATS + i * STEP * B::PITCH, has ? of_tap + column_in<T>(i * STEP) * L::out : w, has, left);
                }
                if (APART && thread == 0) a[STAGE - 4] = __int_as_float((tap * SLABS + from / SLAB) / SLABS_LATE);
                from += SLAB;
                if (from >= L::out) {
                    from = 0;
                    tap = next_tap(tap + 1, covered);
                    find_sources();
                }
            },
            [&](const float* a) {
                if (APART && __float_as_int(a[STAGE - 4]) != group) {
                    group = __float_as_int(a[STAGE - 4]);
                    sums.settle();
                }
                multiply<T, A, B>(a, a + A::FLOATS, sums);
            });
        sums.settle();
        typedef Together<T::TOGETHER, L::in_channels> V;
        const int first = start + T::row();
        int position = first / images, at_image = first - position * images;
#pragma unroll
        for (int row = 0; row < T::OWN_ROWS; row++) {
            if (first + row >= rows) break;
            const int y = position / WIDTH * L::stride + class_y, x = position % WIDTH * L::stride + class_x;
            const i64 here = slot + at_image;
            // Where the thread's first column is.
            const i64 first_column = ((here * L::in_height + y) * L::in_width + x) * L::in_channels + left_column + T::column(0);
            Stored* const to = known(output + first_column);
#pragma unroll
            for (int own = 0; own < T::OWN_COLUMNS; own += T::TOGETHER) {
                const int column = left_column + T::column(own);
                if (L::in_channels % T::N != 0 && column >= L::in_channels) continue;
                const i64 into = first_column + T::columns_before(own);
                V value;
#pragma unroll
                for (int n = 0; n < T::TOGETHER; n++) value.value[n] = sums.total[row][own + n];
                if constexpr (L::bypass > 0 && L::bypass_factor > 0) {
                    constexpr int FACTOR = L::bypass_factor;
                    const i64 from = (here * (L::in_height / FACTOR) + y / FACTOR) * (L::in_width / FACTOR) + x / FACTOR;
                    // Four at once where both numbers of channels are multiples of 4.
                    const Together<T::TOGETHER, L::in_channels % 4 == 0 ? L::bypass : 1> added(bypass + from * L::bypass + column, L::in_channels - column);
#pragma unroll
                    for (int n = 0; n < T::TOGETHER; n++) value.value[n] += added.value[n] * (1.0f / (FACTOR * FACTOR));
                }
                if (L::through_relu) {
                    const V seen(
                        rectified + here * L::in_len + (L::in_before + y) * L::in_row + (L::in_before + x) * L::in_channels + column,
                        L::in_channels - column);
#pragma unroll
                    for (int n = 0; n < T::TOGETHER; n++) value.value[n] = seen.value[n] > 0.0f ? value.value[n] : 0.0f;
                }
                if (L::bypass > 0 && L::bypass_factor == 0) {
                    const V added(bypass + into, L::in_channels - column);
#pragma unroll
                    for (int n = 0; n < T::TOGETHER; n++) value.value[n] += added.value[n];
                }
                value.store(to + T::columns_before(own), L::in_channels - column);
            }
            at_image++;
            if (at_image == images) at_image = 0, position++;
        }
    }
};
