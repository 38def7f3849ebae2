// Code that convolutions share: their shapes, where a position's numbers lie, ReLU and pooling. Convolutions are matrix products that read their
// operands where they lie (kernels/forward.cu, data_gradient.cu, filter_gradient.cu).
//
// Layouts: maps [slot][bordered rows][columns][channels], the border zero, so that every padding is a plain one; weights of a lane
// [kernel][kernel][in][out], the bias behind them; sums and their gradients [slot][position][out] without border.
//
// The products, for one lane, with I images and P positions of the sum:
//   forward           [I P][out]              = map [I P][k k in]   x weights [k k in][out]      6.55 MFLOP an image (conv2 of Simple-CNN)
//   data_gradient     [I inner positions][in] = sums' gradient      x weights [k k out][in]      as many, where every position has all taps
//   filter_gradient   [k k in + 1][out]       = map^T [.][I P]      x gradient [I P][out]        as many; the last row is ones: the bias
// An element of a map lies at base(position) + offset(term): both operands are gathered by two small integers.
//
// `make gpu-cost` counts the instructions of each of these kernels for a configuration's network, and predicts times. A step is 12 launches for
// Simple-CNN and 28 for ResNet-8 (one more with PAIRS), whatever the lanes, where the images fit one pass.

#define DEAD 4 // the pool's choice where the ReLU let nothing through; 0 ... 3 are the positions of a window in reading order

// The shape of one convolution. Rust's is in src/backend/cuda/launch/convolution.rs.
struct ConvolutionShape {
    int kernel, stride;
    // Floats that an output reads in one input row, and where the lane's weights and bias begin.
    int run, weights, bias;
    // The map read: channels, row and image in floats, border before, rows and columns without border.
    int in_channels, in_row, in_len, in_before, in_height, in_width;
    // The convolution's sum: its rows, columns and channels.
    int height, width, out;
    // 1: the sum is rectified and pooled over 2 x 2, and its positions lie in the order of the windows.
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

// The mean of the rectified values of FACTOR x FACTOR positions, `row` floats from one row to the next and `column` from one column.
template <int FACTOR>
__device__ __forceinline__ float rectified_mean(const float* from, int row, int column) {
    if constexpr (FACTOR == 2) {
        return 0.25f * ((relu(from[0]) + relu(from[column])) + (relu(from[row]) + relu(from[row + column])));
    }
    float sum = 0.0f;
    for (int i = 0; i < FACTOR * FACTOR; i++) sum += relu(from[i / FACTOR * row + i % FACTOR * column]);
    return sum / (float)(FACTOR * FACTOR);
}

// The larger of two numbers; a NaN is larger than all.
__device__ __forceinline__ float larger(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
#else
    return a != a || a > b ? a : b;
#endif
}

// The largest of a window's sums where the ReLU lets one through, and which: the first of equal ones. A NaN wins, so that it is seen in the loss.
__device__ __forceinline__ float pooled(const float sums[4], int& chosen) {
    const float best = larger(larger(sums[0], sums[1]), larger(sums[2], sums[3]));
    chosen = 3;
#pragma unroll
    for (int i = 2; i >= 0; i--) chosen = sums[i] == best ? i : chosen;
    chosen = best <= 0.0f ? DEAD : chosen;
    return best <= 0.0f ? 0.0f : best;
}

// Where position `p` of the sums is: in the order of the 2 x 2 windows where the sums are pooled, the four of a window one after the other, else
// in rows.
// Here and below `C` is ConvolutionShape, or a layer, whose numbers are known when its kernels are compiled.
template <class C>
__device__ __forceinline__ void locate(const C& c, int p, int& image, int& y, int& x) {
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

// Index of the first float that position `p` of the sums reads, from the lane's first image.
template <class C>
__device__ __forceinline__ int base_of(const C& c, int p) {
    int image, y, x;
    locate(c, p, image, y, x);
    return image * c.in_len + y * c.stride * c.in_row + x * c.stride * c.in_channels;
}

// The offset of term (ky, kx, in) from the float that base_of() gives for a position.
template <class C>
__device__ __forceinline__ int offset_of(const C& c, int term) { return term / c.run * c.in_row + term % c.run; }
