#!/usr/bin/env bash
# build.sh FOLDER [FEATURES]: puts all that a machine with a GPU needs into FOLDER, small enough to travel: run.py and three archives that it unpacks.
#
# programs.tar.xz has dps-train, tests/cuda.rs, cuda_networks.rs and cuda_products.rs, configurations, kernels that NVRTC compiles here, and what the
# CPU and the stand-in for CUDA compute here for the GPU to be compared with; data.tar.xz has MNIST, where it is there; nvrtc.tar.xz has NVRTC (make
# nvrtc). By default that machine needs no MPI, no HDF5 and no Rust (features cuda,static-hdf5; the latter needs CMake 3.26 here, which comes from
# PyPI where it is missing).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
features=${2:-cuda,static-hdf5}
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# Folder of the parts that are made once, and again only where they are out of date.
made=$target/kit
mkdir -p "$made/nvrtc"

if [[ ,$features, = *,static-hdf5,* ]] && ! printf '3.26\n%s\n' "$(cmake --version 2> /dev/null | sed -n '1s/.* //p')" | sort -CV; then
    [ -x "$made/python/bin/cmake" ] || { python3 -m venv "$made/python" && "$made/python/bin/pip" install --quiet --disable-pip-version-check cmake==4.4.5; }
    export PATH=$made/python/bin:$PATH
fi

rm -rf "$folder"/{run.py,*.tar.xz} "$made/programs"
mkdir -p "$made/programs/configs" "$made/programs/kernels"
cargo build --release --no-default-features --features "$features" --bin dps-train
cargo test --release --no-run --no-default-features --features "$features" --test cuda --test cuda_networks --test cuda_products 2>&1 | tee /dev/stderr |
    sed -nE 's/^ *Executable tests.([a-z_]+)\.rs \((.*)\)$/\1 \2/p' | while read -r name built; do install -s -m 755 "$built" "$made/programs/$name"; done
install -s -m 755 "$target/release/dps-train" "$made/programs"
cp configs/*.toml "$made/programs/configs"

# NVRTC goes by the name that the program tries first, and by the name of NVIDIA's package.
nvrtc=$target/nvrtc/nvidia/cuda_nvrtc/lib
[ -e "$nvrtc/libnvrtc.so.12" ] || { echo "expected NVRTC in $nvrtc, found none; run: make nvrtc" >&2; exit 1; }
cp -u "$nvrtc"/{libnvrtc.so.12,libnvrtc-builtins.so.12.8} "$made/nvrtc"
ln -sf libnvrtc.so.12 "$made/nvrtc/libnvrtc.so"

# The kernels: in the program's own cache, of which the files that are asked for travel.
echo "compiling kernels for GPUs of compute capability 7.0, 8.0 and 9.0"
LD_LIBRARY_PATH=$made/nvrtc XDG_CACHE_HOME=$made/cache "$made/programs/cuda_networks" --exact kernels_are_compiled_ahead --ignored --nocapture |
    sed -nE 's/^kept for .*: ([0-9a-f]+\.cubin)$/\1/p' > "$made/kept"
while read -r file; do cp "$made/cache/dps/$file" "$made/programs/kernels"; done < "$made/kept"
[ -s "$made/kept" ] || { echo "expected the names of compiled kernels, found none; see kernels_are_compiled_ahead in tests/cuda_networks.rs" >&2; exit 1; }

# Margins and a gradient that the stand-in for CUDA finds in NVRTC's PTX, for a GPU's to be compared with.
tests/cuda-double/build.sh "$target/cuda-double"
LD_LIBRARY_PATH=$target/cuda-double XDG_CACHE_HOME=/dev/null CUDA_EMU_CACHE=$target/cuda-double CUDA_EMU_CODE=ptx CUDA_EMU_NVRTC=$nvrtc DPS_NEED_CUDA=1 \
    "$made/programs/cuda" --exact numbers_that_a_gpu_is_to_find --ignored --nocapture | grep -E '^(margins|gradient), ' > "$made/programs/predicted.txt"

packed() { # NAME FILTER FOLDER…: the archive NAME, of folders beside each other. FILTER is --x86 for machine code.
    tar -C "$3" --sort=name --owner=0 --group=0 --numeric-owner -cf - "${@:4}" | xz ${2:+"$2"} --lzma2=preset=9e,dict=128MiB > "$made/$1.new"
    mv "$made/$1.new" "$made/$1"
}
data=${DPS_DATA:-data}
if [ ! -d "$data/mnist" ]; then
    echo "no MNIST in $data: run.py will time ResNet-8 alone (dps-train data fetch mnist)" >&2
else
    if [ -n "$(find "$data/mnist/" -newer "$made/data.tar.xz" 2>&1)" ]; then
        rm -rf "$made/data"
        mkdir -p "$made/data/mnist"
        # Contents of a data file say whether it is compressed, not its name. xz compresses it better.
        for file in "$data"/mnist/*; do gzip --decompress --stdout --force "$file" > "$made/data/mnist/$(basename "$file" .gz)"; done
        packed data.tar.xz "" "$made" data
    fi
    cp "$made/data.tar.xz" "$folder"
    ln -sfn "$made/data" "$made/programs/data"
    cp tests/gpu/run.py "$made/programs"
    "$made/programs/run.py" --expect "$made/programs/expected.json"
    rm "$made/programs/"{run.py,data}
fi
[ "$made/nvrtc.tar.xz" -nt "$made/nvrtc/libnvrtc.so.12" ] || packed nvrtc.tar.xz --x86 "$made" nvrtc
packed programs.tar.xz --x86 "$made/programs" .
cp "$made"/{nvrtc,programs}.tar.xz "$folder"
install -m 755 tests/gpu/run.py "$folder"

# The kit may travel with the repository, in 64 MiB together.
bytes=$(du -scb "$folder"/* | tail -n 1 | cut -f 1)
tracked=$(git ls-files -z 2> /dev/null | du -cb --files0-from=- | tail -n 1 | cut -f 1)
glibc=$(grep -aoh 'GLIBC_2\.[0-9]*' "$made/programs/"{dps-train,cuda*} | sort -uV | tail -n 1)
printf '%s: %d MB in %d files, %d MB with what git tracks; it needs %s\n' "$folder" $((bytes / 1000000)) "$(ls "$folder"/* | wc -l)" $(((bytes + tracked) / 1000000)) "$glibc"
if [ $((bytes + tracked)) -gt $((64 << 20)) ]; then
    echo "expected at most $((64 << 20)) bytes of $folder and of what git tracks, found $((bytes + tracked)); leave something out of the kit" >&2
    exit 1
fi
echo "copy the folder to a machine with a GPU, and run there: python3 run.py --plan first; python3 run.py --plan second"
