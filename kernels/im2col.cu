// Kernels around cuBLAS's products where execution.products = "cublas": patches of a map as a matrix, and the epilogue of the sums.
//
// The products, for each lane of a chunk of `count` images a lane, P positions of the sum and T = k k in terms, rows in the order of locate():
//   forward           sums [count P][out]    = patches [count P][T]        x weights [T][out]
//   filter_gradient   [T][out] of a leaf     = patches^T [T][length P]     x gradient [length P][out]
//   data_gradient     patches' [count P][T]  = gradient [count P][out]     x weights^T [out][T]        and then patch_sums
//
// FLOP are those of convolution.cu: 2 P T out a product. Each product writes or reads its patches once
// more than the fused path does: 8 P T bytes an image, which is 4 / out bytes a FLOP, whatever the kernel's size.
//                          MFLOP   patches   sums   fused: bytes read and written      (forward, an image; the gradients are alike)
//   Simple-CNN conv1        0.92     58 KB   74 KB      26 KB
//              conv2        6.55    205 KB   16 KB      24 KB
//   ResNet-8   conv0        0.88    111 KB   66 KB     145 KB
//              16 -> 16     4.72    590 KB   66 KB     140 KB, 271 KB with the stream
//              16 -> 32     2.36    147 KB   33 KB     102 KB
//              32 -> 32     4.72    295 KB   33 KB     173 KB with the stream
//              32 -> 64     2.36     74 KB   16 KB      53 KB
//              64 -> 64     4.72    147 KB   16 KB      91 KB with the stream
// In 32 bits the products save no FLOP and can only gain by a better rate. Measured on an H200 (docs/gpu.md), Simple-CNN at batch size 1,024 takes
// 189 ms a step with cuBLAS and 49 ms with fused products.
//
// Images of a chunk begin at slot `slot` of the micro-batch for lane 0 and are `images` slots apart from lane to lane; what a chunk needs beside the
// micro-batch's buffers is [lane][image of the chunk]. weights are [lane][pitch]. A lane is blockIdx.z. There are no atomics: patch_sums gathers.

// patches: map -> [lane][count][P][T]. A warp takes a row, so that its writes are whole lines; terms of a row of the kernel lie side by side in the
// map, in fours (patches_4) where the channels are a multiple of 4. Bound by bytes: 4 P T written an image; the map is read from the caches.
template <typename T>
__device__ __forceinline__ void gather_patches(const ConvolutionShape& c, int images, i64 slot, int count, const float* map, float* to) {
    const int each = sizeof(T) / sizeof(float);
    const int warps = blockDim.x >> 5, thread = threadIdx.x & 31;
    const int rows = count * c.height * c.width, terms = c.kernel * c.run;
    map += (slot + (i64)blockIdx.z * images) * c.in_len;
    to += (i64)blockIdx.z * rows * terms;
    for (int row = blockIdx.x * warps + (threadIdx.x >> 5); row < rows; row += gridDim.x * warps) {
        const float* from = map + base_of(c, row);
        float* into = to + (i64)row * terms;
        for (int term = thread * each; term < terms; term += 32 * each) *(T*)&into[term] = *(const T*)&from[offset_of(c, term)];
    }
}

extern "C" __global__ void __launch_bounds__(256) patches_1(ConvolutionShape c, int images, i64 slot, int count, const float* map, float* to) {
    gather_patches<float>(c, images, slot, count, map, to);
}

extern "C" __global__ void __launch_bounds__(256) patches_4(ConvolutionShape c, int images, i64 slot, int count, const float* map, float* to) {
    gather_patches<float4>(c, images, slot, count, map, to);
}

// convolution_tail: sums [lane][count][P][out] without bias -> what convolution_forward writes. Bound by bytes: 4 P out read an image, and the map
// written.
extern "C" __global__ void __launch_bounds__(256) convolution_tail(
    ConvolutionShape c, OutputMap to, int images, i64 slot, int count, const float* weights, int pitch, const float* sums, float* output, u8* choice,
    float* stream, const float* shortcut) {
    const int rows = count * c.height * c.width, step = c.pooled ? 4 : 1;
    const float* bias = weights + (i64)blockIdx.z * pitch + c.bias;
    slot += (i64)blockIdx.z * images;
    sums += (i64)blockIdx.z * rows * c.out;
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < rows / step * c.out; at += gridDim.x * blockDim.x) {
        const int o = at % c.out, row = at / c.out * step;
        const float* from = sums + (i64)row * c.out + o;
        int image, y, x;
        locate(c, row, image, y, x);
        const i64 here = slot + image;
        float* into = output + here * to.len + o;
        if (c.pooled) {
            float four[4];
            int chosen;
#pragma unroll
            for (int i = 0; i < 4; i++) four[i] = from[i * c.out] + bias[o];
            into[(to.before + y / 2) * to.row + (to.before + x / 2) * c.out] = pooled(four, chosen);
            if (choice) choice[((here * (c.height / 2) + y / 2) * (c.width / 2) + x / 2) * c.out + o] = (u8)chosen;
            continue;
        }
        const i64 place = ((here * c.height + y) * c.width + x) * c.out + o;
        float value = from[0] + bias[o];
        if (to.shortcut == c.out) value += shortcut[place];
        if (to.shortcut < c.out && o < to.shortcut) {
            const int width = 2 * c.width;
            const float* add = shortcut + ((here * 2 * c.height + 2 * y) * width + 2 * x) * to.shortcut + o;
            value += rectified_mean<2>(add, width * to.shortcut, to.shortcut);
        }
        if (stream) stream[place] = value;
        into[(to.before + y) * to.row + (to.before + x) * c.out] = relu(value);
    }
}

// unpool: gradient of the pooled map and the pool's choice -> gradient of the sums [lane][count][P][out], positions as locate() has them: in windows
// where c.pooled is 1, else in rows. A thread takes the four positions of a window, of one channel, or of four (unpool_4) where the channels are a
// multiple of 4. Bound by bytes: 4 P out written an image. It also serves products that are not cuBLAS's: it moves words, whatever numbers they are.
template <int CHANNELS>
__device__ __forceinline__ void unpool(
    const ConvolutionShape& c, int images, i64 slot, int count, const float* gradient, const u8* choice, float* to) {
    const u32 out = c.out, width = c.width / 2, windows = c.height / 2 * width, elements = count * windows * out;
    // The windows of a row of windows are two rows of positions.
    const u32 below = c.pooled ? 2 * out : c.width * out, back = c.pooled ? 0 : 2 * out;
    const i64 from = (slot + (i64)blockIdx.z * images) * windows * out;
    to += (i64)blockIdx.z * elements * 4;
    for (u32 at = (blockIdx.x * blockDim.x + threadIdx.x) * CHANNELS; at < elements; at += gridDim.x * blockDim.x * CHANNELS) {
        const Together<CHANNELS, CHANNELS> value(gradient + from + at, CHANNELS);
        const u32 chose = CHANNELS == 4 ? *(const u32*)&choice[from + at] : choice[from + at], window = at / out;
        float* const into = known(to + ((i64)window * 3 * out + at - window % width * back));
#pragma unroll
        for (int place = 0; place < 4; place++) value.of_place(place, chose).store(into + place / 2 * below + place % 2 * out, CHANNELS);
    }
}

extern "C" __global__ void __launch_bounds__(256) unpool_1(
    ConvolutionShape c, int images, i64 slot, int count, const float* gradient, const u8* choice, float* to) {
    unpool<1>(c, images, slot, count, gradient, choice, to);
}

extern "C" __global__ void __launch_bounds__(256) unpool_4(
    ConvolutionShape c, int images, i64 slot, int count, const float* gradient, const u8* choice, float* to) {
    unpool<4>(c, images, slot, count, gradient, choice, to);
}

// patch_sums (col2im): gradient of the patches [lane][count][P][T] -> what data_gradient writes: each element of the map adds up the patches that
// hold it, in the order of the taps. Bound by bytes: 4 P T read an image.
extern "C" __global__ void __launch_bounds__(256) patch_sums(
    ConvolutionShape c, int images, i64 slot, int count, const float* patches, const float* rectified, const float* bypass, int bypass_channels,
    float* output) {
    const int terms = c.kernel * c.run, positions = c.height * c.width;
    const int elements = count * c.in_height * c.in_width * c.in_channels;
    slot += (i64)blockIdx.z * images;
    patches += (i64)blockIdx.z * count * positions * terms;
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < elements; at += gridDim.x * blockDim.x) {
        const int channel = at % c.in_channels, place = at / c.in_channels;
        const int x = place % c.in_width, y = place / c.in_width % c.in_height, image = place / (c.in_width * c.in_height);
        float sum = 0.0f;
        for (int tap = 0; tap < c.kernel * c.kernel; tap++) {
            const int below = y + c.in_before - tap / c.kernel, right = x + c.in_before - tap % c.kernel;
            const int oy = below / c.stride, ox = right / c.stride;
            if (below < 0 || right < 0 || below % c.stride != 0 || right % c.stride != 0 || oy >= c.height || ox >= c.width) continue;
            const int row = c.pooled ? (oy / 2 * (c.width / 2) + ox / 2) * 4 + (oy & 1) * 2 + (ox & 1) : oy * c.width + ox;
            sum += patches[((i64)image * positions + row) * terms + tap * c.in_channels + channel];
        }
        const i64 here = slot + image, into = ((here * c.in_height + y) * c.in_width + x) * c.in_channels + channel;
        if (bypass && bypass_channels != c.in_channels) {
            sum += 0.25f * bypass[((here * (c.in_height / 2) + y / 2) * (c.in_width / 2) + x / 2) * bypass_channels + channel];
        }
        if (rectified && !(rectified[here * c.in_len + (c.in_before + y) * c.in_row + (c.in_before + x) * c.in_channels + channel] > 0.0f)) sum = 0.0f;
        if (bypass && bypass_channels == c.in_channels) sum += bypass[into];
        output[into] = sum;
    }
}

#define BIAS_COLUMNS 16
#define BIAS_ROWS 64

// bias_gradient: gradient [slot][kept][out] of the sums, or of the pooled map with the pool's choice, summed over each leaf of `length` images, at
// sums[(lane * places + leaf) * pitch + bias]. A leaf is blockIdx.y, and 16 outputs are a block, which adds up 64 rows at a time.
// Bound by bytes: 4 kept out read an image (and a quarter of that for the choice).
extern "C" __global__ void __launch_bounds__(BIAS_COLUMNS * BIAS_ROWS) bias_gradient(
    int images, int length, int places, int pitch, int bias, int kept, int out, const float* gradient, const u8* choice, float* sums) {
    __shared__ float scratch[BIAS_COLUMNS * BIAS_ROWS];
    const int lane = blockIdx.z, leaf = blockIdx.y;
    const int o = blockIdx.x * BIAS_COLUMNS + threadIdx.x % BIAS_COLUMNS;
    const i64 first = (i64)lane * images + leaf * length;
    const i64 rows = (i64)(leaf * length + length < images ? length : images - leaf * length) * kept;
    float sum = 0.0f;
    for (i64 row = threadIdx.x / BIAS_COLUMNS; row < rows && o < out; row += BIAS_ROWS) {
        const i64 at = (first * kept + row) * out + o;
        if (!choice || choice[at] != DEAD) sum += gradient[at];
    }
    scratch[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x < BIAS_COLUMNS && o < out) {
        float total = 0.0f;
        for (int row = 0; row < BIAS_ROWS; row++) total += scratch[row * BIAS_COLUMNS + threadIdx.x];
        sums[((i64)lane * places + leaf) * pitch + bias + o] = total;
    }
}
