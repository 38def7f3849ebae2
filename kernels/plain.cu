// Plain kernels, for layers that the tiles of forward.cu, data_gradient.cu and filter_gradient.cu do not know: a thread computes one number, in a
// loop over its terms. They are made for each such layer, take the same arguments, and write the same things. No speed is claimed.
//
// A block takes 8 rows of 32 columns: `Tile::PLAIN` of src/backend/cuda/launch/layers.rs.

#define PLAIN_ROWS 8
#define PLAIN_COLUMNS 32

// The gradient of the layer's sum for output `o` at position (y, x) of a slot. In a pooled layer only the position that the pool chose has the pooled
// map's gradient; every other position has 0.
template <class L>
__device__ __forceinline__ float gradient_of_sum(const Stored* gradient, const u8* choice, i64 slot, int y, int x, int o) {
    if constexpr (L::pooled) {
        // Positions left over at the lower and right edges of an odd map are in no window.
        if (y / 2 >= L::height / 2 || x / 2 >= L::width / 2) return 0.0f;
        const i64 at = ((slot * (L::height / 2) + y / 2) * (L::width / 2) + x / 2) * L::out + o;
        return choice[at] == y % 2 * 2 + x % 2 ? gradient[at] : 0.0f;
    } else {
        return gradient[((slot * L::height + y) * L::width + x) * L::out + o];
    }
}

template <class L>
struct PlainForward {
    // The sum of output `o` at a position of an image's map.
    static __device__ __forceinline__ float sum(const Stored* w, const Stored* map, int y, int x, int o) {
        const Stored* from = map + y * L::stride * L::in_row + x * L::stride * L::in_channels;
        float sum = 0.0f;
        for (int ky = 0; ky < L::kernel; ky++) {
            for (int term = 0; term < L::run; term++) sum += from[ky * L::in_row + term] * w[(ky * L::run + term) * L::out + o];
        }
        return sum;
    }

    // The shortcut's value, which a residual block adds: see OutputMap.
    static __device__ __forceinline__ float added(const float* shortcut, i64 slot, int y, int x, int o) {
        if constexpr (L::shortcut > 0 && L::shortcut_factor == 0) return shortcut[((slot * L::height + y) * L::width + x) * L::out + o];
        if constexpr (L::shortcut > 0 && L::shortcut_factor > 0) {
            constexpr int FACTOR = L::shortcut_factor, WIDTH = FACTOR * L::width;
            if (o >= L::shortcut) return 0.0f;
            const float* from = shortcut + ((slot * (FACTOR * L::height) + FACTOR * y) * WIDTH + FACTOR * x) * L::shortcut + o;
            return rectified_mean<FACTOR>(from, WIDTH * L::shortcut, L::shortcut);
        }
        return 0.0f;
    }

    static __device__ __forceinline__ void compute(FORWARD) {
        constexpr int STEP = L::pooled ? 2 : 1, HEIGHT = L::height / STEP, WIDTH = L::width / STEP;
        const int lane = blockIdx.z, o = blockIdx.y * PLAIN_COLUMNS + threadIdx.x % PLAIN_COLUMNS;
        const int p = blockIdx.x * PLAIN_ROWS + threadIdx.x / PLAIN_COLUMNS;
        if (o >= L::out || p >= images * (HEIGHT * WIDTH)) return;
        const int y = p / WIDTH % HEIGHT, x = p % WIDTH;
        const i64 slot = (i64)lane * images + p / (HEIGHT * WIDTH);
        const Stored* w = weights + (i64)which[lane] * pitch;
        const float bias = L::has_bias ? w[L::bias + o] : 0.0f;
        const Stored* map = input + slot * L::in_len;
        w += L::weights;
        Stored* to = output + slot * L::to_len + (L::to_before + y) * L::to_row + (L::to_before + x) * L::out + o;
        if constexpr (L::pooled) {
            float four[4];
            int chosen;
            for (int i = 0; i < 4; i++) four[i] = sum(w, map, 2 * y + i / 2, 2 * x + i % 2, o) + bias;
            *to = pooled(four, chosen);
            if (choice) choice[((slot * HEIGHT + y) * WIDTH + x) * L::out + o] = (u8)chosen;
        } else {
            const float value = sum(w, map, y, x, o) + bias + added(shortcut, slot, y, x, o);
            if (L::stream) stream[((slot * HEIGHT + y) * WIDTH + x) * L::out + o] = value;
            *to = L::relu ? relu(value) : value;
        }
    }
};

template <class L>
struct PlainDataGradient {
    static __device__ __forceinline__ void compute(DATA_GRADIENT) {
        const int lane = blockIdx.z, channel = blockIdx.y * PLAIN_COLUMNS + threadIdx.x % PLAIN_COLUMNS;
        const int p = blockIdx.x * PLAIN_ROWS + threadIdx.x / PLAIN_COLUMNS;
        if (channel >= L::in_channels || p >= images * (L::in_height * L::in_width)) return;
        const int y = p / L::in_width % L::in_height, x = p % L::in_width;
        const i64 slot = (i64)lane * images + p / (L::in_height * L::in_width);
        const Stored* w = weights + (i64)which[lane] * pitch + L::weights;
        float sum = 0.0f;
        for (int tap = 0; tap < L::kernel * L::kernel; tap++) {
            const int below = y + L::in_before - tap / L::kernel, right = x + L::in_before - tap % L::kernel;
            if (below < 0 || right < 0 || below % L::stride != 0 || right % L::stride != 0) continue;
            const int from_y = below / L::stride, from_x = right / L::stride;
            if (from_y >= L::height || from_x >= L::width) continue;
            const Stored* row = w + (tap * L::in_channels + channel) * L::out;
            for (int o = 0; o < L::out; o++) sum += gradient_of_sum<L>(gradient, choice, slot, from_y, from_x, o) * row[o];
        }
        const i64 into = ((slot * L::in_height + y) * L::in_width + x) * L::in_channels + channel;
        if constexpr (L::bypass > 0 && L::bypass_factor > 0) {
            constexpr int FACTOR = L::bypass_factor;
            const i64 at = (slot * (L::in_height / FACTOR) + y / FACTOR) * (L::in_width / FACTOR) + x / FACTOR;
            sum += bypass[at * L::bypass + channel] / (float)(FACTOR * FACTOR);
        }
        if (L::through_relu) {
            const float seen = rectified[slot * L::in_len + (L::in_before + y) * L::in_row + (L::in_before + x) * L::in_channels + channel];
            sum = seen > 0.0f ? sum : 0.0f;
        }
        if (L::bypass > 0 && L::bypass_factor == 0) sum += bypass[into];
        output[into] = sum;
    }
};

template <class L>
struct PlainFilterGradient {
    static __device__ __forceinline__ void compute(FILTER_GRADIENT) {
        constexpr int ROWS = L::kernel * L::run, TILES = (ROWS + PLAIN_ROWS) / PLAIN_ROWS;
        const int lane = blockIdx.z, leaf = blockIdx.y;
        const int row = blockIdx.x % TILES * PLAIN_ROWS + threadIdx.x / PLAIN_COLUMNS;
        const int o = blockIdx.x / TILES * PLAIN_COLUMNS + threadIdx.x % PLAIN_COLUMNS;
        // The last row is the bias's.
        if (row >= ROWS + L::has_bias || o >= L::out) return;
        const int first = leaf * length, last = first + length < images ? first + length : images;
        const int offset = row / L::run * L::in_row + row % L::run;
        float sum = 0.0f;
        for (int image = first; image < last; image++) {
            const i64 slot = (i64)lane * images + image;
            for (int p = 0; p < L::height * L::width; p++) {
                const int y = p / L::width, x = p % L::width;
                const float from = row == ROWS ? 1.0f : input[slot * L::in_len + y * L::stride * L::in_row + x * L::stride * L::in_channels + offset];
                sum += from * gradient_of_sum<L>(gradient, choice, slot, y, x, o);
            }
        }
        sums[((i64)lane * places + leaf) * pitch + L::weights + row * L::out + o] = sum;
    }
};

// Windows over a map that has no border. Rust's is in src/backend/cuda/layer/pool.rs.
struct PoolShape {
    int size, stride, average;
    // The map read.
    int in_height, in_width, channels;
    // The map written: its extents, and floats of a row and an image with its border.
    int height, width, row, len, before;
    // Whether ReLU follows.
    int relu;
};

// Where the largest of a window's values is, the first of equal ones; a NaN wins over everything after it.
__device__ __forceinline__ int largest_in(const PoolShape& s, const Stored* window) {
    int best = 0;
    for (int i = 1; i < s.size * s.size; i++) {
        const int at = (i / s.size * s.in_width + i % s.size) * s.channels;
        if (window[best] == window[best] && !(window[at] <= window[best])) best = at;
    }
    return best;
}

// pool_forward: map [slot][in_height][in_width][channels] -> map [slot][bordered height][width][channels].
extern "C" __global__ void __launch_bounds__(256) pool_forward(PoolShape shape, int slots, const Stored* map, Stored* to) {
    const int size = shape.height * shape.width * shape.channels;
    for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < (i64)slots * size; at += (i64)gridDim.x * blockDim.x) {
        const i64 slot = at / size;
        const int within = (int)(at % size), channel = within % shape.channels;
        const int x = within / shape.channels % shape.width, y = within / shape.channels / shape.width;
        const Stored* window = map + ((slot * shape.in_height + y * shape.stride) * shape.in_width + x * shape.stride) * shape.channels + channel;
        float value = 0.0f;
        if (shape.average) {
            for (int i = 0; i < shape.size * shape.size; i++) value += window[(i / shape.size * shape.in_width + i % shape.size) * shape.channels];
            value /= (float)(shape.size * shape.size);
        } else {
            value = window[largest_in(shape, window)];
        }
        to[slot * shape.len + (shape.before + y) * shape.row + (shape.before + x) * shape.channels + channel] = shape.relu ? relu(value) : value;
    }
}

// pool_backward: gradient of the windows' values [slot][height][width][channels] -> that of the map read, or, where through_relu is 1, of what its
// ReLU read.
extern "C" __global__ void __launch_bounds__(256) pool_backward(
    PoolShape shape, int slots, int through_relu, const Stored* map, const Stored* gradient, Stored* to) {
    const int size = shape.in_height * shape.in_width * shape.channels;
    for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < (i64)slots * size; at += (i64)gridDim.x * blockDim.x) {
        const i64 slot = at / size;
        const int within = (int)(at % size), channel = within % shape.channels;
        const int x = within / shape.channels % shape.in_width, y = within / shape.channels / shape.in_width;
        // The windows that hold the position.
        const int top = y < shape.size ? 0 : (y - shape.size) / shape.stride + 1, left = x < shape.size ? 0 : (x - shape.size) / shape.stride + 1;
        float sum = 0.0f;
        for (int from_y = top; from_y < shape.height && from_y * shape.stride <= y; from_y++) {
            for (int from_x = left; from_x < shape.width && from_x * shape.stride <= x; from_x++) {
                const float received = gradient[((slot * shape.height + from_y) * shape.width + from_x) * shape.channels + channel];
                const i64 begin =
                    ((slot * shape.in_height + from_y * shape.stride) * shape.in_width + from_x * shape.stride) * shape.channels + channel;
                if (shape.average) {
                    sum += received / (float)(shape.size * shape.size);
                } else if (begin + largest_in(shape, map + begin) == at) {
                    sum += received;
                }
            }
        }
        to[at] = through_relu && !(map[at] > 0.0f) ? 0.0f : sum;
    }
}

// A normalisation of groups of channels, over maps without a border. Rust's is in src/backend/cuda/layer/norm.rs.
struct GroupNormShape {
    int groups, group_channels, positions, channels;
    // Where a lane's parameters have the scales and the biases.
    int scale_at, bias_at;
    // A number added to each variance, so that nothing divides by 0.
    float epsilon;
    // The map written: its columns, and floats of a row and an image with its border.
    int width, row, len, before;
    // Whether ReLU follows.
    int relu;
};

// The mean of an image's group that begins at `from`, and 1 / sqrt(variance + epsilon), on every thread. `scratch` has a float for each warp.
__device__ __forceinline__ void group_statistics(const GroupNormShape& s, const Stored* from, float* scratch, float& mean, float& factor) {
    const int count = s.positions * s.group_channels;
    float sum = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < count; i += blockDim.x) sum += from[(i64)(i / s.group_channels) * s.channels + i % s.group_channels];
    mean = sum_of_warps(warp_sum(sum), scratch) / (float)count;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        const float centred = from[(i64)(i / s.group_channels) * s.channels + i % s.group_channels] - mean;
        squares += centred * centred;
    }
    factor = 1.0f / sqrtf(sum_of_warps(warp_sum(squares), scratch) / (float)count + s.epsilon);
}

// group_norm_forward: map [slot][positions][channels] -> map [slot][bordered height][width][channels]. A block takes a group of an image at a time.
extern "C" __global__ void __launch_bounds__(256) group_norm_forward(
    GroupNormShape shape, int images, const int* which, const float* weights, int pitch, const Stored* map, Stored* to) {
    __shared__ float scratch[8];
    const int lane = blockIdx.z, count = shape.positions * shape.group_channels;
    const float* w = weights + (i64)which[lane] * pitch;
    for (i64 block = blockIdx.x; block < (i64)images * shape.groups; block += gridDim.x) {
        const i64 slot = (i64)lane * images + block / shape.groups;
        const int first = (int)(block % shape.groups) * shape.group_channels;
        const Stored* from = map + slot * shape.positions * shape.channels + first;
        float mean, factor;
        group_statistics(shape, from, scratch, mean, factor);
        for (int i = threadIdx.x; i < count; i += blockDim.x) {
            const int place = i / shape.group_channels, channel = i % shape.group_channels;
            const float normalised = (from[(i64)place * shape.channels + channel] - mean) * factor;
            const float value = normalised * w[shape.scale_at + first + channel] + w[shape.bias_at + first + channel];
            const int y = shape.before + place / shape.width, x = shape.before + place % shape.width;
            to[slot * shape.len + y * shape.row + x * shape.channels + first + channel] = shape.relu ? relu(value) : value;
        }
    }
}

// group_norm_backward: gradient of the map written [slot][positions][channels] -> that of the map read, or, where through_relu is 1, of what its ReLU
// read; and the gradients of scales and biases, summed over each leaf, at sums[(lane * places + leaf) * pitch + parameter]. A block takes a group of
// a leaf of a lane, image by image; a warp takes a channel at a time.
extern "C" __global__ void __launch_bounds__(256) group_norm_backward(
    GroupNormShape shape, int images, int length, int places, int through_relu, const int* which, const float* weights, int pitch,
    const Stored* map, const Stored* gradient, Stored* to, float* sums) {
    __shared__ float scratch[8];
    const int lane = blockIdx.z, leaf = blockIdx.y, from = blockIdx.x * shape.group_channels, count = shape.positions * shape.group_channels;
    const int warp = threadIdx.x >> 5, thread = threadIdx.x & 31;
    const float* scale = weights + (i64)which[lane] * pitch + shape.scale_at + from;
    float* own = sums + ((i64)lane * places + leaf) * pitch + from;
    const int first = leaf * length, last = first + length < images ? first + length : images;
    for (int image = first; image < last; image++) {
        const i64 begin = ((i64)lane * images + image) * shape.positions * shape.channels + from;
        float mean, factor, shift = 0.0f, slope = 0.0f;
        group_statistics(shape, map + begin, scratch, mean, factor);
        for (int c = warp; c < shape.group_channels; c += (int)(blockDim.x >> 5)) {
            float sum = 0.0f, product = 0.0f;
            // Unrolled, the loop spills registers for compute capability 7.0.
#pragma unroll 1
            for (int p = thread; p < shape.positions; p += 32) {
                const i64 at = begin + (i64)p * shape.channels + c;
                sum += gradient[at];
                product += gradient[at] * (map[at] - mean);
            }
            sum = warp_sum(sum);
            product = warp_sum(product) * factor;
            if (thread == 0) {
                own[shape.bias_at + c] = image == first ? sum : own[shape.bias_at + c] + sum;
                own[shape.scale_at + c] = image == first ? product : own[shape.scale_at + c] + product;
            }
            shift += scale[c] * sum;
            slope += scale[c] * product;
        }
        shift = sum_of_warps(shift, scratch) / (float)count;
        slope = sum_of_warps(slope, scratch) / (float)count;
#pragma unroll 1
        for (int i = threadIdx.x; i < count; i += blockDim.x) {
            const int c = i % shape.group_channels;
            const i64 at = begin + (i64)(i / shape.group_channels) * shape.channels + c;
            const float value = factor * (gradient[at] * scale[c] - shift - (map[at] - mean) * factor * slope);
            to[at] = through_relu && !(map[at] > 0.0f) ? 0.0f : value;
        }
    }
}
