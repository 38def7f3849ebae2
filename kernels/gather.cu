// Batches: which examples, and their normalised pixels.
//
// gather: images [n][height][width][channels] -> map [slot][bordered map], whose shape is IMAGE_MAP, and labels [slot]. Images are `floats`, or,
// where these are null, bytes, which become floats through a table of 256 a channel (the back end's only normalisation: the same floats as the
// CPU's). Image i of a lane is example listed[lane * pitch + i], where there are lists; shuffled, it is sampled(seed, step * batch + first + i);
// else first + i, for every lane. Bound by bytes: 784 read and 3,136 written an image of 28 x 28 (3,072 and 12,288 of 32 x 32 x 3). The order costs
// some 500 integer operations an image: eight images a block find theirs side by side.

#define GATHERED 8

// A bordered map: its extents without border, floats of a row and an image with it, and its width before them. Rust's is in
// src/backend/cuda/launch/gather.rs.
struct MapShape {
    int height, width, channels;
    int row, len, before;
};

extern "C" __global__ void __launch_bounds__(256) gather(
    int images, int shuffled, int first, int batch, int n, const u64* seeds, const u32* clock, const u32* listed,
    int pitch, const u8* pixels, const float* table, const float* floats, const u16* labels, Stored* map, u16* slot_labels) {
    __shared__ u32 example[GATHERED];
    constexpr MapShape shape = {IMAGE_MAP};
    const int lane = blockIdx.z;
    const int row = shape.width * shape.channels, size = shape.height * row;
    for (int group = blockIdx.x; group * GATHERED < images; group += gridDim.x) {
        const int here = images - group * GATHERED < GATHERED ? images - group * GATHERED : GATHERED;
        const i64 slot = (i64)lane * images + group * GATHERED;
        __syncthreads();
        if ((int)threadIdx.x < here) {
            const int image = first + group * GATHERED + threadIdx.x;
            const u32 index = listed     ? listed[(i64)lane * pitch + image]
                              : shuffled ? sampled(seeds[lane], (u64)clock[0] * batch + image, n)
                                         : (u32)image;
            example[threadIdx.x] = index;
            slot_labels[slot + threadIdx.x] = labels[index];
        }
        __syncthreads();
        for (int at = threadIdx.x; at < here * size; at += blockDim.x) {
            const int image = at / size, number = at % size;
            const int y = number / row, x = number % row;
            const i64 from = (i64)example[image] * size + number;
            map[(slot + image) * shape.len + (shape.before + y) * shape.row + shape.before * shape.channels + x] =
                floats ? floats[from] : table[x % shape.channels * 256 + pixels[from]];
        }
    }
}
