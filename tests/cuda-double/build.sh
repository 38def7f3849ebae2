#!/usr/bin/env bash
# build.sh FOLDER: builds the four libraries into FOLDER, under the names that cudarc tries first. Only what changed is built again.
set -euo pipefail
source=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
exec 9> "$folder/.lock"
flock 9

compile() { # NAME SOURCES… -- OPTIONS…
    local name=$1 sources=() options=()
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do sources+=("$source/$1"); shift; done
    shift || true
    options=("$@")
    local library=$folder/lib$name.so
    if [ -e "$library" ] && [ -z "$(find "$source" -newer "$library" -type f -name '*.[ch]*')" ]; then return; fi
    "${CXX:-g++}" -std=c++17 -O2 -Wall -Wextra -fPIC -shared -fvisibility=hidden -Wl,-soname,"lib$name.so" -Wl,-z,now \
        "${sources[@]}" -o "$library.new" "${options[@]}" -ldl -lpthread
    mv "$library.new" "$library"
}

# Rows of registers are vectors of the machine that it is built on, where it stays.
compile cuda driver/{device,memory,modules,streams}.cpp ptx/{arithmetic,execute,memory,read,warps}.cpp -- \
    -std=c++20 -O3 -march=native -ffp-contract=off -fwrapv -fno-strict-aliasing
others=(-L"$folder" -lcuda -Wl,-rpath,'$ORIGIN')
compile nvrtc nvrtc.cpp -- -DSHIM="\"$source/shim\""
compile cublas cublas.cpp -- -O3 "${others[@]}"
compile nccl nccl.cpp -- "${others[@]}" -lrt
