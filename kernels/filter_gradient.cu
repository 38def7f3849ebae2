// The gradients of a layer's weights and bias, made for each layer: summed over each leaf of `length` images, at
// sums[(lane * places + leaf) * pitch + weights]: [k k in + 1][out], since the bias lies behind the weights. A leaf is blockIdx.y: what it sums, and
// in which order, depends on nothing else. `gradient` is that of the layer's sum, [slot][position][out], of a pooled layer the one that `unpool`
// writes; where L::gradient_pooled is 1, it is that of the pooled map, with the pool's `choice`.
#define FILTER_GRADIENT int images, int length, int places, int pitch, const Stored *input, const Stored *gradient, const u8 *choice, float *sums
#define FILTER_GRADIENT_ARGUMENTS images, length, places, pitch, input, gradient, choice, sums

template <class L, class T>
struct FilterGradient {
    // The last row of the gradient is the bias's: the map's values are ones there.
    static constexpr int ROWS = L::kernel * L::run, POSITIONS = L::height * L::width;
    // The layer with its positions in the order in which `gradient` has them.
    struct InGradientsOrder : L {
        static constexpr int pooled = L::gradient_pooled;
    };
    static constexpr bool WIDE = L::in_channels % 4 == 0, WIDE_GRADIENT = L::out % 4 == 0;
    static constexpr int SLAB = 16 * T::ALONG;
    typedef ByRow<T::M, SLAB> A;
    typedef ByRow<T::N, SLAB> B;
    static constexpr int STAGE = A::FLOATS + B::FLOATS, STAGES = T::ALONG > 1 ? 2 : 3;
    // Where the positions of an image begin in the map, if that takes little room.
    static constexpr int BASES = POSITIONS > 1 && POSITIONS <= 1024 ? POSITIONS : 0;
    static constexpr int OPERANDS = STAGES * STAGE, PARTIAL = T::ALONG > 1 ? (T::ALONG - 1) * T::M * T::N : 0;
    static constexpr int SPACE = (OPERANDS > PARTIAL ? OPERANDS : PARTIAL) + BASES;

    static __device__ __forceinline__ int base(const int* bases, int p) {
        const InGradientsOrder c;
        if (POSITIONS == 1) return p * L::in_len;
        if (BASES == 0) return base_of(c, p);
        return p / POSITIONS * L::in_len + bases[p % POSITIONS];
    }

    static __device__ __forceinline__ void compute(FILTER_GRADIENT, float* space) {
        const InGradientsOrder c;
        int* const bases = (int*)(space + SPACE - BASES);
        const int thread = threadIdx.x, lane = blockIdx.z, leaf = blockIdx.y;
        constexpr int TILES = (ROWS + 1 + T::M - 1) / T::M;
        const int top = blockIdx.x % TILES * T::M, left_column = blockIdx.x / TILES * T::N;
        const int slot = lane * images, first = leaf * length;
        const int count = ((first + length < images ? first + length : images) - first) * POSITIONS;
        gradient += ((i64)slot + first) * (POSITIONS * L::out / (L::gradient_pooled ? 4 : 1));
        if (L::gradient_pooled) choice += ((i64)slot + first) * (POSITIONS / 4 * L::out);
        input += ((i64)slot + first) * L::in_len;
        sums += ((i64)lane * places + leaf) * pitch + L::weights;
        for (int p = thread; p < BASES; p += T::THREADS) bases[p] = base_of(c, p);
        // Rows that no copy writes stay what they are here: ones for the bias, zeros behind it, both of which are the same words as floats and
        // Stored. The last tile alone has such rows.
        constexpr int BEHIND = TILES * T::M - ROWS;
        if (top + T::M > ROWS) {
            for (int at = thread; at < STAGES * SLAB * BEHIND; at += T::THREADS) {
                const int row = at % BEHIND, term = at / BEHIND % SLAB, stage = at / BEHIND / SLAB;
                space[stage * STAGE + term * A::PITCH + T::M - BEHIND + row] = row == 0 ? 1.0f : 0.0f;
            }
        }
        __syncthreads();
        Sums<T, SLABS_LATE> products;
        auto& total = products.total;
        int next = 0;
        const auto multiply_stage = [&](const float* a) { multiply<T, A, B>(a, a + A::FLOATS, products); };
        // From the map a thread copies WIDTH neighbouring rows of the product, for OWN positions that follow each other.
        static_assert(T::THREADS >= T::M, "a thread copies one row's numbers");
        constexpr int WIDTH = WIDE ? 4 : 1, THREADS_A_POSITION = T::M / WIDTH, OWN = SLAB / (T::THREADS / THREADS_A_POSITION);
        const int own_row = thread % THREADS_A_POSITION * WIDTH, own_term = thread / THREADS_A_POSITION * OWN;
        const bool copies = top + own_row < ROWS;
        const int offset = offset_of(c, top + own_row);
        const Stored* image = input;
        int within = 0;
        const auto stage_input = [&](float* a, int from) {
            if (!copies) return;
            if constexpr (BASES > 0 && POSITIONS % SLAB == 0) {
                // A slab lies within an image.
                int begin[OWN];
#pragma unroll
                for (int i = 0; i < OWN; i++) begin[i] = bases[within + own_term + i] + offset;
#pragma unroll
                for (int i = 0; i < OWN; i++) COPY_ASYNC_OF(WIDTH, a + own_term * A::PITCH + own_row + i * A::PITCH, image + begin[i], true);
                within += SLAB;
                if (within == POSITIONS) within = 0, image += L::in_len;
            } else {
#pragma unroll
                for (int i = 0; i < OWN; i++) {
                    const int p = from + own_term + i;
                    const bool there = p < count;
                    COPY_ASYNC_OF(WIDTH, a + own_term * A::PITCH + own_row + i * A::PITCH, input + (there ? base(bases, p) + offset : 0), there);
                }
            }
        };
        // A thread copies gradients of one channel, or of four side by side, for positions that are the same number apart.
        constexpr int WIDTH_OF_GRADIENT = WIDE_GRADIENT ? 4 : 1, ACROSS = T::N / WIDTH_OF_GRADIENT, TERM_STEP = T::THREADS / ACROSS;
        static_assert(T::THREADS % ACROSS == 0, "a thread copies the same channels for every position");
        const int gradient_term = thread / ACROSS, column = thread % ACROSS * WIDTH_OF_GRADIENT;
        const bool has = L::out % T::N == 0 || left_column + column < L::out;
        const Stored* const own_gradient = known(gradient + gradient_term * L::out + left_column + column);
        const auto stage_gradient = [&](float* b, int from) {
            float* const to = b + gradient_term * B::PITCH + column;
            const Stored* const values = known(own_gradient + from * L::out);
#pragma unroll
            for (int i = 0; i < (SLAB + TERM_STEP - 1) / TERM_STEP; i++) {
                const int term = gradient_term + i * TERM_STEP;
                if (SLAB % TERM_STEP != 0 && term >= SLAB) break;
                const bool there = (POSITIONS % SLAB == 0 || from + term < count) && has;
                COPY_ASYNC_OF(WIDTH_OF_GRADIENT, to + i * TERM_STEP * B::PITCH, there ? values + i * TERM_STEP * L::out : gradient, there);
            }
        };
        if constexpr (!L::gradient_pooled) {
            pipeline<STAGES, STAGE>(
                (count + SLAB - 1) / SLAB, space,
                [&](float* a) {
                    stage_input(a, next);
                    stage_gradient(a + A::FLOATS, next);
                    next += SLAB;
                },
                multiply_stage);
        } else {
            // Pooled gradients are loaded into registers one slab ahead. When a slab is staged, each gradient is stored at the position of its window
            // that the pool chose, and zeros at the window's other three positions.
            constexpr int WINDOWS = SLAB / 4 * ACROSS;
            constexpr int LOADS = (WINDOWS + T::THREADS - 1) / T::THREADS;
            Together<WIDTH_OF_GRADIENT, L::out> value[LOADS];
            // The pool's choices, a byte each.
            u32 chosen[LOADS];
            const auto load = [&](int from) {
#pragma unroll
                for (int i = 0; i < LOADS; i++) {
                    const int at = thread + i * T::THREADS, window = from / 4 + at / ACROSS, o = left_column + at % ACROSS * WIDTH_OF_GRADIENT;
                    const bool there = (WINDOWS % T::THREADS == 0 || at < WINDOWS) && window * 4 < count && (L::out % T::N == 0 || o < L::out);
                    const int place = there ? window * L::out + o : 0;
                    // The words themselves, as they lie in memory.
                    value[i] = Together<WIDTH_OF_GRADIENT, L::out>((const float*)gradient + place, WIDTH_OF_GRADIENT);
                    chosen[i] = WIDTH_OF_GRADIENT == 4 ? *(const u32*)(choice + place) : choice[place];
                    if (!there) chosen[i] = DEAD * 0x01010101u;
                }
            };
            load(0);
            pipeline<STAGES, STAGE>(
                (count + SLAB - 1) / SLAB, space,
                [&](float* a) {
                    float* b = a + A::FLOATS;
                    stage_input(a, next);
#pragma unroll
                    for (int i = 0; i < LOADS; i++) {
                        const int at = thread + i * T::THREADS;
                        if (WINDOWS % T::THREADS != 0 && at >= WINDOWS) break;
#pragma unroll
                        for (int place = 0; place < 4; place++) {
                            value[i].of_place(place, chosen[i]).store(b + (at / ACROSS * 4 + place) * B::PITCH + at % ACROSS * WIDTH_OF_GRADIENT, WIDTH_OF_GRADIENT);
                        }
                    }
                    next += SLAB;
                    load(next);
                },
                multiply_stage);
        }
        products.settle();
        if constexpr (T::ALONG > 1) {
            // Warps that share a part add up theirs in order.
            constexpr int OTHERS = T::THREADS / T::ALONG, OWN_SUMS = T::OWN_ROWS * T::OWN_COLUMNS;
            float* const partial = space + thread % OTHERS;
            const int along = T::along();
            __syncthreads();
            if (along > 0) {
#pragma unroll
                for (int row = 0; row < T::OWN_ROWS; row++) {
#pragma unroll
                    for (int own = 0; own < T::OWN_COLUMNS; own++) {
                        partial[((along - 1) * OWN_SUMS + row * T::OWN_COLUMNS + own) * OTHERS] = total[row][own];
                    }
                }
            }
            __syncthreads();
            if (along > 0) return;
#pragma unroll
            for (int other = 0; other < T::ALONG - 1; other++) {
#pragma unroll
                for (int row = 0; row < T::OWN_ROWS; row++) {
#pragma unroll
                    for (int own = 0; own < T::OWN_COLUMNS; own++) {
                        total[row][own] += partial[(other * OWN_SUMS + row * T::OWN_COLUMNS + own) * OTHERS];
                    }
                }
            }
        }
#pragma unroll
        for (int own = 0; own < T::OWN_ROWS; own++) {
            const int row = top + T::warp_row() + row_slot<A>(T::group(), own);
            if (row >= ROWS + L::has_bias) continue;
#pragma unroll
            for (int across = 0; across < T::OWN_COLUMNS; across += T::TOGETHER) {
                const int column = left_column + T::column(across);
                if (L::out % T::N != 0 && column >= L::out) continue;
                Together<T::TOGETHER, WIDE_GRADIENT && L::weights % 4 == 0 ? 4 : 1> value;
#pragma unroll
                for (int n = 0; n < T::TOGETHER; n++) value.value[n] = total[own][across + n];
                value.store(sums + row * L::out + column, L::out - column);
            }
        }
    }
};
