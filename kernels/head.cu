// End of a network: the mean over positions, the fully connected layer, softmax cross-entropy and the margin of a classification.
//
// CLASSES is the network's number of classes. Up to 16 a thread has an image's logits in registers; more lie in memory, and a warp shares them.

// global_mean: map [slot][bordered height][width][channels] -> mean [slot][channels]. Bound by bytes: 16 KB read an image of 8 x 8 x 64.
extern "C" __global__ void __launch_bounds__(256) global_mean(MapShape shape, int slots, const Stored* map, Stored* mean) {
    for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < (i64)slots * shape.channels; at += (i64)gridDim.x * blockDim.x) {
        const Stored* from = map + at / shape.channels * shape.len + shape.before * (shape.row + shape.channels) + at % shape.channels;
        float sum = 0.0f;
        for (int y = 0; y < shape.height; y++) {
            for (int x = 0; x < shape.width; x++) sum += from[y * shape.row + x * shape.channels];
        }
        mean[at] = sum / (float)(shape.height * shape.width);
    }
}

// global_mean_backward: gradient of the mean [slot][channels] -> gradient of the map [slot][height][width][channels], or, where through_relu is 1, of
// what its ReLU read. Bound by bytes: 32 KB an image of 8 x 8 x 64.
extern "C" __global__ void __launch_bounds__(256) global_mean_backward(
    MapShape shape, int slots, int through_relu, const Stored* map, const Stored* gradient, Stored* to) {
    const int width = shape.width, channels = shape.channels, before = shape.before, size = shape.height * width * channels;
    for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < (i64)slots * size; at += (i64)gridDim.x * blockDim.x) {
        const i64 slot = at / size;
        const int within = (int)(at % size), channel = within % channels, place = within / channels;
        const float value = map[slot * shape.len + (before + place / width) * shape.row + (before + place % width) * channels + channel];
        to[at] = !through_relu || value > 0.0f ? gradient[slot * channels + channel] / (float)(shape.height * width) : 0.0f;
    }
}

#if CLASSES <= 16

// The loss of an image with these logits, in nats; `share` / `sum` are its softmax.
__device__ __forceinline__ float cross_entropy(const float logits[CLASSES], int label, float share[CLASSES], float& sum) {
    float own = 0.0f, largest = -INFINITE;
#pragma unroll
    for (int o = 0; o < CLASSES; o++) {
        own = o == label ? logits[o] : own;
        largest = fmaxf(largest, logits[o]);
    }
    sum = 0.0f;
#pragma unroll
    for (int o = 0; o < CLASSES; o++) {
        share[o] = expf(logits[o] - largest);
        sum += share[o];
    }
    return logf(sum) + largest - own;
}

// The label's logit less the largest other one, its sign bit saying whether the image is classified wrongly: of equal logits the first is the
// prediction, a NaN is an error, and a margin that is NaN is infinite. The twin of `margin` in src/backend/margin.rs.
__device__ __forceinline__ float margin_of(const float logits[CLASSES], int label) {
    float own = 0.0f, other = -INFINITE;
#pragma unroll
    for (int o = 0; o < CLASSES; o++) {
        own = o == label ? logits[o] : own;
        other = o == label ? other : fmaxf(other, logits[o]);
    }
    bool right = true;
#pragma unroll
    for (int o = 0; o < CLASSES; o++) right = right && (o < label ? logits[o] < own : logits[o] <= own);
    const float distance = fabsf(own - other);
    return copysignf(distance == distance ? distance : INFINITE, right ? 1.0f : -1.0f);
}

#else

// The largest value of a warp's threads, on all of them.
__device__ __forceinline__ float warp_largest(float value) {
    for (int distance = 16; distance > 0; distance >>= 1) value = fmaxf(value, __shfl_xor_sync(FULL_WARP, value, distance));
    return value;
}

// The loss of an image with the logits `row`, in nats, and its gradient by the logits, Stored, in their place. A warp takes an image; all of its
// threads have the loss.
__device__ __forceinline__ float cross_entropy(float* row, int label) {
    const int thread = threadIdx.x & 31;
    const float own = row[label];
    float largest = -INFINITE, sum = 0.0f;
    for (int o = thread; o < CLASSES; o += 32) largest = fmaxf(largest, row[o]);
    largest = warp_largest(largest);
    for (int o = thread; o < CLASSES; o += 32) sum += expf(row[o] - largest);
    sum = warp_sum(sum);
    __syncwarp();
    for (int o = thread; o < CLASSES; o += 32) ((Stored*)row)[o] = expf(row[o] - largest) / sum - (o == label ? 1.0f : 0.0f);
    return logf(sum) + largest - own;
}

// The margin, as for few classes, above.
__device__ __forceinline__ float margin_of(const float* row, int label) {
    const float own = row[label];
    float other = -INFINITE, wrong = 0.0f;
    for (int o = threadIdx.x & 31; o < CLASSES; o += 32) {
        if (o != label) other = fmaxf(other, row[o]);
        if (!(o < label ? row[o] < own : row[o] <= own)) wrong = 1.0f;
    }
    const float distance = fabsf(own - warp_largest(other));
    return copysignf(distance == distance ? distance : INFINITE, warp_sum(wrong) == 0.0f ? 1.0f : -1.0f);
}

#endif

// dense_forward: features [slot][inputs] and weights [inputs][CLASSES], bias [CLASSES] of the lane (none where bias_at is negative) -> logits, and
// from these
//   - training (sums not null): the gradient of the loss by the logits [slot][CLASSES] in `logits`, and the loss summed over each group of
//     `length` images at sums[(lane * places + group) * pitch + parameters], in nats;
//   - evaluation (margins not null): margins[(lane * places + group) * length + image of the group].
// A block takes a group (blockIdx.y) of a lane (blockIdx.z); a warp takes an image at a time. A group is always summed the same way.
// Bound by the second-level cache: 40 KB of weights for 20 KFLOP an image of 1024 inputs and 10 classes, from the first-level cache after a group's
// first image.
extern "C" __global__ void __launch_bounds__(256) dense_forward(
    int images, int length, int places, int inputs, int weights_at, int bias_at, const int* which, const float* weights, int pitch,
    const Stored* features, const u16* labels, Stored* logits, float* sums, int parameters, float* margins) {
    __shared__ float scratch[8];
    const int lane = blockIdx.z, group = blockIdx.y;
    const int warp = threadIdx.x >> 5, thread = threadIdx.x & 31;
    const float* w = weights + (i64)which[lane] * pitch + weights_at;
    const float* bias = bias_at < 0 ? nullptr : weights + (i64)which[lane] * pitch + bias_at;
    const int first = group * length;
    const int last = first + length < images ? first + length : images;
    const i64 place = (i64)lane * places + group;
    float loss = 0.0f;
    for (int image = first + warp; image < last; image += 8) {
        const i64 slot = (i64)lane * images + image;
        const Stored* x = features + slot * inputs;
        const int label = labels[slot];
#if CLASSES <= 16
        float own[CLASSES];
#pragma unroll
        for (int o = 0; o < CLASSES; o++) own[o] = 0.0f;
        for (int i = thread; i < inputs; i += 32) {
            const float value = x[i];
#pragma unroll
            for (int o = 0; o < CLASSES; o++) own[o] += value * w[i * CLASSES + o];
        }
#pragma unroll
        for (int o = 0; o < CLASSES; o++) own[o] = warp_sum(own[o]) + (bias ? bias[o] : 0.0f);
        if (margins) {
            if (thread == 0) margins[place * length + image - first] = margin_of(own, label);
            continue;
        }
        float sum, share[CLASSES];
        loss += cross_entropy(own, label, share, sum);
        if (thread == 0) {
#pragma unroll
            for (int o = 0; o < CLASSES; o++) logits[slot * CLASSES + o] = share[o] / sum - (o == label ? 1.0f : 0.0f);
        }
#else
        float* row = (float*)logits + slot * CLASSES;
        // Sixteen classes at a time.
        for (int from = 0; from < CLASSES; from += 16) {
            float own[16] = {};
            for (int i = thread; i < inputs; i += 32) {
                const float value = x[i];
#pragma unroll
                for (int n = 0; n < 16; n++) own[n] += from + n < CLASSES ? value * w[i * CLASSES + from + n] : 0.0f;
            }
#pragma unroll
            for (int n = 0; n < 16; n++) {
                const float sum = warp_sum(own[n]);
                if (thread == 0 && from + n < CLASSES) row[from + n] = sum + (bias ? bias[from + n] : 0.0f);
            }
        }
        __syncwarp();
        if (margins) {
            const float margin = margin_of(row, label);
            if (thread == 0) margins[place * length + image - first] = margin;
        } else {
            loss += cross_entropy(row, label);
        }
#endif
    }
    if (margins) return;
    // Every thread of a warp has its warp's sum.
    const float total = sum_of_warps(loss, scratch);
    if (threadIdx.x == 0) sums[place * pitch + parameters] = total;
}

#define BACKWARD_IMAGES 8
#define BACKWARD_CLASSES (CLASSES < 16 ? CLASSES : 16)

// dense_backward: gradient of the logits [slot][CLASSES] -> gradient of the features [slot][inputs], or, where `rectified` is not null, of what the
// ReLU read that these are the output of. A thread takes a feature of eight images, whose weights it keeps in registers, 16 classes at a time.
// Bound by bytes: 4 KB written an image of 1024 inputs (20 KFLOP for 10 classes). The gradient of the weights is filter_gradient's, for which the
// layer is a convolution with one position.
extern "C" __global__ void __launch_bounds__(256) dense_backward(
    int images, int inputs, int weights_at, const int* which, const float* weights, int pitch, const Stored* gradient, const Stored* rectified,
    Stored* to) {
    // Rows of 16 floats, so that a thread reads four at once.
    __shared__ __align__(16) float received[BACKWARD_IMAGES][16];
    const int lane = blockIdx.z, blocks = (inputs + blockDim.x - 1) / blockDim.x;
    const float* w = weights + (i64)which[lane] * pitch + weights_at;
    for (int block = blockIdx.x; block < (images + BACKWARD_IMAGES - 1) / BACKWARD_IMAGES * blocks; block += gridDim.x) {
        const int first = block / blocks * BACKWARD_IMAGES, here = images - first;
        const int i = block % blocks * blockDim.x + threadIdx.x;
        const i64 slot = (i64)lane * images + first;
        float sums[BACKWARD_IMAGES] = {};
#pragma unroll 1
        for (int from = 0; from < CLASSES; from += 16) {
            __syncthreads();
            if (threadIdx.x < BACKWARD_IMAGES * 16) {
                const int image = threadIdx.x / 16, o = from + threadIdx.x % 16;
                received[image][threadIdx.x % 16] = image < here && o < CLASSES ? (float)gradient[(slot + image) * CLASSES + o] : 0.0f;
            }
            __syncthreads();
            if (i >= inputs) continue;
            float own[BACKWARD_CLASSES];
#pragma unroll
            for (int n = 0; n < BACKWARD_CLASSES; n++) own[n] = from + n < CLASSES ? w[i * CLASSES + from + n] : 0.0f;
#pragma unroll
            for (int image = 0; image < BACKWARD_IMAGES; image++) {
#pragma unroll
                for (int n = 0; n < BACKWARD_CLASSES; n++) sums[image] += received[image][n] * own[n];
            }
        }
        if (i >= inputs) continue;
#pragma unroll
        for (int image = 0; image < BACKWARD_IMAGES; image++) {
            if (image >= here) break;
            const i64 at = (slot + image) * inputs + i;
            to[at] = rectified && !(rectified[at] > 0.0f) ? 0.0f : sums[image];
        }
    }
}

// softmax_loss: dense_forward's second half, where the products are cuBLAS's: `logits` [slot][CLASSES] without bias -> the same losses or margins,
// and in training (sums not null) the gradient in the logits' place. A block takes a group of a lane; a thread takes an image at a time, or a warp
// does where there are more than 16 classes. Bound by latency: 80 bytes and 10 exponentials an image of 10 classes.
extern "C" __global__ void __launch_bounds__(256) softmax_loss(
    int images, int length, int places, int bias_at, const float* weights, int pitch, const u16* labels, float* logits, float* sums,
    int parameters, float* margins) {
    __shared__ float scratch[8];
    const int lane = blockIdx.z, group = blockIdx.y;
    const float* bias = weights + (i64)lane * pitch + bias_at;
    const int first = group * length;
    const int last = first + length < images ? first + length : images;
    const i64 place = (i64)lane * places + group;
    float loss = 0.0f;
#if CLASSES <= 16
    for (int image = first + threadIdx.x; image < last; image += blockDim.x) {
        const i64 slot = (i64)lane * images + image;
        float* row = logits + slot * CLASSES;
        const int label = labels[slot];
        float sum, share[CLASSES], own[CLASSES];
#pragma unroll
        for (int o = 0; o < CLASSES; o++) own[o] = row[o] + bias[o];
        if (margins) {
            margins[place * length + image - first] = margin_of(own, label);
            continue;
        }
        loss += cross_entropy(own, label, share, sum);
#pragma unroll
        for (int o = 0; o < CLASSES; o++) row[o] = share[o] / sum - (o == label ? 1.0f : 0.0f);
    }
    loss = warp_sum(loss);
#else
    for (int image = first + (threadIdx.x >> 5); image < last; image += blockDim.x >> 5) {
        const i64 slot = (i64)lane * images + image;
        float* row = logits + slot * CLASSES;
        for (int o = threadIdx.x & 31; o < CLASSES; o += 32) row[o] += bias[o];
        __syncwarp();
        if (margins) {
            const float margin = margin_of(row, labels[slot]);
            if ((threadIdx.x & 31) == 0) margins[place * length + image - first] = margin;
        } else {
            loss += cross_entropy(row, labels[slot]);
        }
    }
#endif
    if (margins) return;
    const float total = sum_of_warps(loss, scratch);
    if (threadIdx.x == 0) sums[place * pitch + parameters] = total;
}
