// The forward pass of a convolution, made for each layer: sums = map [I P][k k in] x weights [k k in][out], with bias, then the layer's epilogue.

// Arguments of the kernels: `images` of every lane; which[lane]: the lane's place in `weights`, which are [place][pitch]. `output` is the map
// written; `choice` [slot][pooled positions][out], null in evaluations; `stream` [slot][sums], null where L::stream is 0. Where
// L::shortcut is not 0, `shortcut` is the stream at the block's input: as the sum where L::shortcut_factor is 0, else
// [slot][factor height][factor width][as many channels or fewer].
#define FORWARD \
    int images, const int *which, const Stored *weights, int pitch, const Stored *input, Stored *output, u8 *choice, float *stream, \
        const float *shortcut
#define FORWARD_ARGUMENTS images, which, weights, pitch, input, output, choice, stream, shortcut

template <class L, class T>
struct Forward {
    static constexpr int TERMS = L::kernel * L::run;
    // A map of 4, 8, 12, ... channels is copied 16 bytes at a time, another number by number.
    static constexpr bool WIDE = L::in_channels % 4 == 0, WIDE_WEIGHTS = L::out % 4 == 0 && L::weights % 4 == 0;
    // Terms of a slab: all of them where they are few. Of a wide map they are rounded up to a power of two, so that the threads that copy four terms
    // of a row each divide the block; for tensor cores to what these multiply at a time.
    static constexpr int POWER = TERMS <= TERMS_AT_ONCE ? TERMS_AT_ONCE : TERMS <= 8 ? 8 : TERMS <= 16 ? 16 : 32;
    static constexpr int ROUNDED = TERMS_AT_ONCE > 4 ? (TERMS + TERMS_AT_ONCE - 1) / TERMS_AT_ONCE * TERMS_AT_ONCE : TERMS;
    static constexpr int SLAB = TERMS > 32 ? 16 : WIDE ? POWER : ROUNDED;
    static constexpr int SLABS = (TERMS + SLAB - 1) / SLAB;
    typedef typename Either<WIDE, ByTerm<T::M, SLAB>, ByRow<T::M, SLAB>>::Type A;
    typedef ByRow<T::N, SLAB> B;
    static constexpr int STAGE = A::FLOATS + B::FLOATS, STAGES = 3, SPACE = (SLABS < STAGES ? SLABS : STAGES) * STAGE;

    static __device__ __forceinline__ void compute(FORWARD, float* space) {
        const L c;
        const int thread = threadIdx.x, lane = blockIdx.z, left_column = blockIdx.y * T::N;
        const int slot = lane * images, rows = images * L::height * L::width, top = blockIdx.x * T::M;
        const Stored* w = weights + (i64)which[lane] * pitch;
        const Stored* bias = w + L::bias;
        w += L::weights;
        input += (i64)slot * L::in_len;
        // Rows behind the last read position 0; their sums are not stored.
        const auto base = [&](int stored) {
            const int p = top + row_in<T, A>(stored);
            return base_of(c, p < rows ? p : 0);
        };
        // A thread copies weights of one column, or of four side by side, for terms that are the same number apart.
        constexpr int WIDTH = WIDE_WEIGHTS ? 4 : 1, ACROSS = T::N / WIDTH, TERM_STEP = T::THREADS / ACROSS;
        static_assert(T::THREADS % ACROSS == 0, "a thread copies the same columns for every term");
        static_assert((TERM_STEP & (TERM_STEP - 1)) == 0, "the slots of a thread's terms are those of its first one and of the steps");
        const int own_term = thread / ACROSS, own_column = thread % ACROSS * WIDTH;
        const bool has = L::out % T::N == 0 || left_column + own_column < L::out;
        const Stored* const own_weights = known(w + own_term * L::out + left_column + own_column);
        const auto stage_weights = [&](float* b, int first) {
            float* const to = b + term_slot<A>(own_term) * B::PITCH + own_column;
            const Stored* const from = known(own_weights + first * L::out);
#pragma unroll
            for (int i = 0; i < (SLAB + TERM_STEP - 1) / TERM_STEP; i++) {
                const int term = own_term + i * TERM_STEP;
                if (SLAB % TERM_STEP != 0 && term >= SLAB) break;
                const bool there = (TERMS % SLAB == 0 || first + term < TERMS) && has;
                COPY_ASYNC_OF(WIDTH, to + term_slot<A>(i * TERM_STEP) * B::PITCH, there ? from + i * TERM_STEP * L::out : w, there);
            }
        };
        Sums<T, SLABS_LATE> sums;
        const auto multiply_stage = [&](const float* a) { multiply<T, A, B>(a, a + A::FLOATS, sums); };
        if constexpr (WIDE) {
            // A thread copies four terms of some rows.
            constexpr int QUARTERS = SLAB / 4, LOADS = T::M * QUARTERS / T::THREADS, STEP = T::THREADS / QUARTERS;
            static_assert(T::THREADS % QUARTERS == 0 && LOADS * STEP == T::M, "every row is copied");
            const Stored* from[LOADS];
            const int quarter = thread % QUARTERS * 4, first_row = thread / QUARTERS;
#pragma unroll
            for (int i = 0; i < LOADS; i++) from[i] = input + base(first_row + i * STEP) + quarter;
            int slab = 0, within = quarter, offset = 0;
            pipeline<STAGES, STAGE>(
                SLABS, space,
                [&](float* a) {
                    if (L::run % SLAB == 0) {
                        if (within >= L::run) within -= L::run, offset += L::in_row - L::run;
                    } else {
                        while (within >= L::run) within -= L::run, offset += L::in_row - L::run;
                    }
                    const bool there = TERMS % SLAB == 0 || slab * SLAB + quarter < TERMS;
#pragma unroll
                    for (int i = 0; i < LOADS; i++) {
                        COPY_ASYNC(a + first_row * A::PITCH + quarter + i * STEP * A::PITCH, from[i] + (there ? offset : 0), 16, there);
                    }
                    stage_weights(a + A::FLOATS, slab * SLAB);
                    within += SLAB;
                    offset += SLAB;
                    slab++;
                },
                multiply_stage);
        } else {
            // A thread copies all terms of some rows: where they are from the row's first one is known when this is compiled.
            constexpr int LOADS = (T::M + T::THREADS - 1) / T::THREADS;
            int from[LOADS];
#pragma unroll
            for (int i = 0; i < LOADS; i++) from[i] = base(thread + i * T::THREADS);
            int slab = 0;
            const auto stage_slab = [&](float* a, int first) {
#pragma unroll
                for (int i = 0; i < LOADS; i++) {
#pragma unroll
                    for (int k = 0; k < SLAB; k++) {
                        const bool there = TERMS % SLAB == 0 || first + k < TERMS;
                        COPY_ASYNC(a + k * A::PITCH + thread + i * T::THREADS, input + from[i] + (there ? offset_of(c, first + k) : 0), 4, there);
                    }
                }
                stage_weights(a + A::FLOATS, first);
            };
            if constexpr (SLABS == 1) {
                stage_slab(space, 0);
                COPIES_CLOSE();
                COPIES_WAIT(0);
                __syncthreads();
                multiply_stage(space);
            } else {
                pipeline<STAGES, STAGE>(
                    SLABS, space,
                    [&](float* a) {
                        stage_slab(a, slab * SLAB);
                        slab++;
                    },
                    multiply_stage);
            }
        }
        sums.settle();
        // The code without the pool's choices is for evaluations.
        const int first = top + T::row();
        if (L::pooled && choice) {
            finish<L::pooled>(slot, rows, first, left_column, bias, sums.total, output, choice, stream, shortcut);
        } else {
            finish<false>(slot, rows, first, left_column, bias, sums.total, output, choice, stream, shortcut);
        }
    }

    // Writes a thread's sums, OWN_ROWS consecutive rows from `first` on, and what the pool chooses.
    template <bool CHOOSES>
    static __device__ __forceinline__ void finish(
        int slot, int rows, int first, int left_column, const Stored* bias, const float (&sums)[T::OWN_ROWS][T::OWN_COLUMNS],
        Stored* output, u8* choice, float* stream, const float* shortcut) {
        const L c;
        typedef Together<T::TOGETHER, L::out> V;
        constexpr int SIDE = L::pooled ? 2 : 1, STEP = SIDE * SIDE, PARTS = T::OWN_COLUMNS / T::TOGETHER;
        Together<T::TOGETHER, 1> offsets[PARTS];
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const int column = left_column + T::column(part * T::TOGETHER), left = L::has_bias ? L::out - column : 0;
            offsets[part] = Together<T::TOGETHER, 1>(bias + (left > 0 ? column : 0), left);
        }
#pragma unroll
        for (int row = 0; row < T::OWN_ROWS; row += STEP) {
            const int p = first + row;
            if (p >= rows) continue;
            int image, y, x;
            locate(c, p, image, y, x);
            const i64 here = slot + image;
            // Where the thread's first column is: of the map written, and of what lies [slot][sums or windows][out] without a border.
            const int left = left_column + T::column(0), down = y / SIDE, right = x / SIDE;
            Stored* const to = known(output + here * L::to_len + (L::to_before + down) * L::to_row + (L::to_before + right) * L::out + left);
            const i64 bare = ((here * (L::height / SIDE) + down) * (L::width / SIDE) + right) * L::out + left;
            float* const stream_to = L::stream ? known(stream + bare) : nullptr;
#pragma unroll
            for (int own = 0; own < T::OWN_COLUMNS; own += T::TOGETHER) {
                const int column = left_column + T::column(own);
                if (L::out % T::N != 0 && column >= L::out) continue;
                const auto& offset = offsets[own / T::TOGETHER];
                V value;
                if constexpr (L::pooled) {
                    // The pool's choices, a byte each.
                    u32 chose = 0;
#pragma unroll
                    for (int n = 0; n < T::TOGETHER; n++) {
                        float four[4];
                        int chosen;
#pragma unroll
                        for (int i = 0; i < 4; i++) four[i] = sums[row + i][own + n] + offset.value[n];
                        value.value[n] = pooled(four, chosen);
                        chose |= (u32)chosen << 8 * n;
                    }
                    value.store(to + T::columns_before(own), L::out - column);
                    if constexpr (CHOOSES) {
                        u8* const into = choice + bare + T::columns_before(own);
                        if constexpr (V::WIDE && T::TOGETHER == 4) {
                            *(u32*)into = chose;
                        } else if constexpr (V::WIDE && T::TOGETHER == 2) {
                            *(u16*)into = (u16)chose;
                        } else {
#pragma unroll
                            for (int n = 0; n < T::TOGETHER; n++) {
                                if (n < L::out - column) into[n] = (u8)(chose >> 8 * n);
                            }
                        }
                    }
                } else {
                    const i64 place = bare + T::columns_before(own);
                    V added;
                    if constexpr (L::shortcut > 0 && L::shortcut_factor == 0) {
                        added = V(shortcut + place, L::out - column);
                    } else if constexpr (L::shortcut > 0) {
                        // The mean over a window of fewer channels, and zeros beyond them.
                        constexpr int FACTOR = L::shortcut_factor, ROW = FACTOR * L::width * L::shortcut;
                        const float* from =
                            shortcut + (here * FACTOR * L::height + FACTOR * y) * ROW + FACTOR * x * L::shortcut + column;
                        if constexpr (FACTOR == 2) {
                            // The window's four positions, and of each the channels side by side.
                            Together<T::TOGETHER, L::shortcut> window[4];
#pragma unroll
                            for (int i = 0; i < 4; i++) {
                                if (column < L::shortcut) {
                                    window[i] = Together<T::TOGETHER, L::shortcut>(from + i / 2 * ROW + i % 2 * L::shortcut, L::shortcut - column);
                                } else {
                                    for (int n = 0; n < T::TOGETHER; n++) window[i].value[n] = 0.0f;
                                }
                            }
#pragma unroll
                            for (int n = 0; n < T::TOGETHER; n++) {
                                const float four[4] = {window[0].value[n], window[1].value[n], window[2].value[n], window[3].value[n]};
                                added.value[n] = rectified_mean<2>(four, 2, 1);
                            }
                        } else {
#pragma unroll
                            for (int n = 0; n < T::TOGETHER; n++) {
                                added.value[n] = column + n < L::shortcut ? rectified_mean<FACTOR>(from + n, ROW, L::shortcut) : 0.0f;
                            }
                        }
                    }
#pragma unroll
                    for (int n = 0; n < T::TOGETHER; n++) {
                        value.value[n] = sums[row][own + n] + offset.value[n];
                        if (L::shortcut > 0) value.value[n] += added.value[n];
                    }
                    if (L::stream) value.store(stream_to + T::columns_before(own), L::out - column);
#pragma unroll
                    for (int n = 0; n < T::TOGETHER; n++) value.value[n] = L::relu ? relu(value.value[n]) : value.value[n];
                    value.store(to + T::columns_before(own), L::out - column);
                }
            }
        }
    }
};
