#!/usr/bin/env bash
# run.sh: on a machine with a GPU, from the folder that build.sh made: what is there, every operation against the CPU's, and how fast it
# trains. Ends with "test-gpu: PASSED" and 0, "test-gpu: FAILED" and 1, or, without a GPU, "test-gpu: SKIPPED" and 77.
set -uo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
end() { # CODE WORDS…
    echo "test-gpu: ${*:2}"
    exit "$1"
}

# Where pip put NVIDIA's libraries, if it did.
if [ -z "${VIRTUAL_ENV-}" ] && command -v python3 > /dev/null; then
    VIRTUAL_ENV=$(python3 -c 'import sys; print(sys.prefix)')
    export VIRTUAL_ENV
fi

found=$("$folder/dps-train" doctor --gpu --data "$folder/data")
code=$?
echo "$found"
if [[ $found == *CUDA-EMU* ]]; then end 1 "FAILED: this is the host test double, not a GPU; take it out of LD_LIBRARY_PATH"; fi
if [ $code = 6 ]; then
    if nvidia-smi -L 2> /dev/null | grep -q GPU; then end 1 "FAILED: nvidia-smi shows a GPU that dps cannot use"; fi
    end 77 "SKIPPED, nothing was tested: there is no GPU here"
fi
nvidia-smi 2> /dev/null || true

echo "== Every operation against the CPU's"
for test in cuda cuda_products; do
    if ! DPS_NEED_CUDA=1 "$folder/$test" --test-threads 1; then end 1 "FAILED: the GPU does not do what the CPU does"; fi
done

if [ ! -d "$folder/data/mnist" ]; then end 0 "PASSED; speed was not measured, because MNIST is not in $folder/data"; fi
echo "== Speed: Simple-CNN on MNIST, momentum, dense; between a run and one of three times as many steps, so that starting does not count"
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
run() { # BATCH TRIALS STEPS PRODUCTS TF32: seconds
    local begun ended
    begun=$(date +%s.%N)
    timeout 300 "$folder/dps-train" "$folder/configs/mnist-simple-cnn-momentum.toml" --data "$folder/data" --output "$results/$1-$3-$4-$5.h5" \
        --device cuda --quiet --batch-size "$1" --sparsity 0 --trials "$2" --set "workload.max_steps=$3" --set "workload.evaluate_every=$3" \
        --set workload.goal_error=0.0002 --set search.learning_rate=0.001 --set search.momentum=0.9 --set execution.race=false \
        --set execution.checkpoint_seconds=0 --set "execution.products=$4" --set "execution.tf32=$5" >&2 || return 1
    ended=$(date +%s.%N)
    awk "BEGIN { print $ended - $begun }"
}
printf '%10s %8s %9s %6s %14s %14s\n' "batch size" trials products tf32 "steps/s" "images/s"
while read -r batch trials steps products tf32; do
    if ! short=$(run "$batch" "$trials" "$steps" "$products" "$tf32") || ! long=$(run "$batch" "$trials" $((3 * steps)) "$products" "$tf32"); then
        end 1 "FAILED: a study of batch size $batch with products = $products"
    fi
    awk -v b="$batch" -v t="$trials" -v s="$steps" -v p="$products" -v f="$tf32" -v short="$short" -v long="$long" \
        'BEGIN { rate = 2 * s / (long - short); printf "%10d %8d %9s %6s %14.1f %14.0f\n", b, t, p, f, rate, rate * t * b }'
done << 'ROWS'
2 1 2000 fused false
2 100 2000 fused false
64 100 400 fused false
1024 20 200 fused false
1024 20 200 fused true
1024 20 200 cublas false
1024 20 200 cublas true
16384 4 40 fused false
16384 4 40 cublas true
ROWS
end 0 "PASSED"
