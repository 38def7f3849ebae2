#!/usr/bin/env bash
# build.sh FOLDER [FEATURES]: puts all that a machine with a GPU needs into FOLDER, small enough to travel: dps-train, tests/cuda.rs,
# cuda_networks.rs and cuda_products.rs, run.py, configurations and, where it is there, MNIST. By default it needs no MPI, no HDF5 and no Rust on that
# machine (features cuda,static-hdf5; the latter needs CMake 3.26 here).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
features=${2:-cuda,static-hdf5}
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")

cargo build --release --no-default-features --features "$features" --bin dps-train
cargo test --release --no-run --no-default-features --features "$features" --test cuda --test cuda_networks --test cuda_products 2>&1 | tee /dev/stderr |
    sed -nE 's/^ *Executable tests.([a-z_]+)\.rs \((.*)\)$/\1 \2/p' | while read -r name built; do install -s -m 755 "$built" "$folder/$name"; done
install -s -m 755 "$target/release/dps-train" "$folder"
install -m 755 tests/gpu/run.py "$folder"
mkdir -p "$folder/configs" "$folder/data"
cp configs/*.toml "$folder/configs"
data=${DPS_DATA:-data}/mnist
if [ -d "$data" ]; then
    mkdir -p "$folder/data/mnist"
    # What a data file holds says whether it is compressed, not its name.
    for file in "$data"/*; do
        if gzip --test "$file" 2> /dev/null; then cp "$file" "$folder/data/mnist"; else gzip --stdout "$file" > "$folder/data/mnist/${file##*/}"; fi
    done
else
    echo "no MNIST in $data: run.py will time ResNet-8 alone (dps-train data fetch mnist)" >&2
fi
echo "$folder is ready: copy it to a machine with a GPU and run run.py there"
