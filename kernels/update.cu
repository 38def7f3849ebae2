// From gradients of parts of a batch to the next weights.
//
// sums is [lane][place][pitch] or, packed, [place][lane][pitch]: a place holds the gradient summed over a node of the batch's tree, and the loss
// behind it. kept is [lane][most] (the parameters a lane trains, in ascending order) with kept_count[lane] of them, or null where all are.

// A lane's optimizer and metaparameters, the same at every step: numbers of src/optimizer/rule.rs. Rust's is in src/backend/cuda/launch/update.rs.
struct UpdateRule {
    float momentum;
    int optimizer;
    // The decay that is added to the gradient, and the share of averaged weights that a step's weights make up; 0 for none.
    float weight_decay, share_of_average;
    // Adam's: the shares of its two averages that a step's gradient makes up, and the number that keeps its divisor from 0.
    float share_of_gradients, share_of_squares, epsilon;
};

// A lane's numbers at one step, from the host's schedule: the learning rate; for Adam, with the corrections of bias, and the share that AdamW takes
// off the weights.
struct StepNumbers {
    float rate, scale, shrink;
};

#define SGD 0
#define MOMENTUM 1
#define NESTEROV 2
#define ADAM 3

// update: one optimizer step of every lane, by the tree sum of its parts over the batch size; what is not kept stays as it is (zero). The arithmetic
// is src/optimizer/rule.rs's. numbers is [step][lane], from the step clock[2] on. velocity holds Adam's average of the gradients, too; squares is
// read by Adam alone, average where the lane averages its weights. A lane whose mean loss is not finite stops: broken[lane] is set to the step, and
// nothing else of it changes any more. The clock: clock[1] is the step under way, which clock_step copied from clock[0]; nobody else writes it here,
// and the first block moves clock[0] on to the next step, which nobody reads here. Bound by bytes: 4 (parts + 4) a parameter with momentum, 4 (parts
// + 2) with SGD: 3.0 MB for 62,346 parameters and 8 parts.
extern "C" __global__ void __launch_bounds__(256) update(
    int parameters, int batch, int packed, Parts parts, i64 lane_stride, i64 part_stride, int loss_at, int pitch, const UpdateRule* rules,
    const StepNumbers* numbers, const int* kept, const int* kept_count, int most, const float* sums, float* weights, float* velocity, float* squares,
    float* average, float* losses, int* broken, u32* clock) {
    __shared__ float shared_loss;
    const int lane = blockIdx.z;
    const UpdateRule rule = rules[lane];
    const u32 step = clock[1];
    sums += lane * lane_stride;
    weights += (i64)lane * pitch;
    velocity += (i64)lane * pitch;
    squares += (i64)lane * pitch;
    average += (i64)lane * pitch;
    if (threadIdx.x == 0) shared_loss = tree_sum(sums + loss_at, part_stride, parts) / (float)batch;
    __syncthreads();
    const float loss = shared_loss;
    const bool finite = fabsf(loss) < INFINITE;
    // Another block of the lane may read broken[lane] before or after the first block sets the flag below. Either way that block changes no weight,
    // since it computes the same loss, which is not finite then.
    const bool alive = broken[lane] < 0;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        if (alive) losses[lane] = loss;
        if (alive && !finite) broken[lane] = (int)step;
        if (lane == 0) clock[0] = step + 1;
    }
    if (alive && finite) {
        const StepNumbers at = numbers[(i64)(step - clock[2]) * gridDim.z + lane];
        const int count = kept ? kept_count[lane] : parameters;
        for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < count; k += gridDim.x * blockDim.x) {
            const int j = kept ? kept[(i64)lane * most + k] : k;
            float w = weights[j];
            float g = tree_sum(sums + (packed ? k : j), part_stride, parts) / (float)batch;
            if (rule.weight_decay != 0.0f) g += rule.weight_decay * w;
            if (rule.optimizer == ADAM) {
                const float a = velocity[j] + rule.share_of_gradients * (g - velocity[j]);
                const float s = squares[j] + rule.share_of_squares * (g * g - squares[j]);
                velocity[j] = a;
                squares[j] = s;
                w -= at.shrink * w;
                w -= at.rate * a / (sqrtf(s) * at.scale + rule.epsilon);
            } else {
                float change = g;
                if (rule.optimizer != SGD) {
                    const float v = rule.momentum * velocity[j] + g;
                    velocity[j] = v;
                    change = rule.optimizer == MOMENTUM ? v : g + rule.momentum * v;
                }
                w -= at.rate * change;
            }
            weights[j] = w;
            if (rule.share_of_average != 0.0f) average[j] += rule.share_of_average * (w - average[j]);
        }
    }
}

// store: `count` weights as convolutions' products read them where these are pairs. Bound by bytes: 8 a weight.
extern "C" __global__ void __launch_bounds__(256) store(i64 count, const float* weights, Stored* to) {
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (i64)gridDim.x * blockDim.x) to[i] = weights[i];
}

// clock_step: begins a step, once everything of the last one is done.
extern "C" __global__ void clock_step(u32* clock) {
    if (blockIdx.x == 0 && threadIdx.x == 0) clock[1] = clock[0];
}

// pack: the tree sums over some of a lane's places, kept entries only and the loss at `most`: what a rank sends. sums [lane][places][pitch],
// places from `first`; to[lane * packed_pitch + ...].
// Bound by bytes: 4 (parts + 1) a kept parameter.
extern "C" __global__ void __launch_bounds__(256) pack(
    int parameters, int first, Parts parts, i64 lane_stride, int pitch, const int* kept, const int* kept_count, int most, int packed_pitch,
    const float* sums, float* to) {
    const int lane = blockIdx.z;
    const int count = kept ? kept_count[lane] : parameters;
    sums += lane * lane_stride + (i64)first * pitch;
    to += (i64)lane * packed_pitch;
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < packed_pitch; k += gridDim.x * blockDim.x) {
        const int j = k == most ? parameters : kept ? kept[(i64)lane * most + (k < count ? k : 0)] : k;
        to[k] = (k < count || k == most) && parts.count > 0 ? tree_sum(sums + j, pitch, parts) : 0.0f;
    }
}

// squares: the sum of the squares of each place's kept gradients, in 64 bits: sums [place][pitch] -> to [place]. kept as for one lane, `count` of
// them. Bound by bytes: 4 a parameter.
extern "C" __global__ void __launch_bounds__(256) squares(int places, int pitch, const int* kept, int count, const float* sums, double* to) {
    __shared__ double scratch[256];
    for (int place = blockIdx.x; place < places; place += gridDim.x) {
        double sum = 0.0;
        for (int k = threadIdx.x; k < count; k += blockDim.x) {
            const double g = sums[(i64)place * pitch + (kept ? kept[k] : k)];
            sum += g * g;
        }
        sum = sum_of_threads(sum, scratch);
        if (threadIdx.x == 0) to[place] = sum;
    }
}

// retain: state of the lanes in `from` to the first places: [lane][pitch] of weights, velocities, squares or averages. Bound by bytes: 8 a parameter
// kept.
extern "C" __global__ void __launch_bounds__(256) retain(int pitch, const int* from, const float* old, float* kept) {
    const int lane = blockIdx.z;
    for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < pitch; j += gridDim.x * blockDim.x) {
        kept[(i64)lane * pitch + j] = old[(i64)from[lane] * pitch + j];
    }
}
