#!/bin/bash
# Runs the tests of the CPU back end on NEON, Arm's vector unit, under qemu: neon.sh FOLDER, where FOLDER is that of the archives, which has Zig.
# They compare every vector unit of a machine with the plain reference, and its numbers with PyTorch's. A test that starts programs of its own is
# left out: the system cannot start those of another processor, and make test-dist starts them under qemu.
set -euo pipefail

folder=$(mkdir -p "${1:?usage: neon.sh FOLDER}" && cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
needed=(rustup python3 qemu-aarch64-static)
source packaging/zig.bash
target=aarch64-unknown-linux-musl
rustup --quiet target add "$target"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER=qemu-aarch64-static
build=(cargo-zigbuild test --locked --target "$target" --no-default-features --features static-hdf5)
"${build[@]}" --lib -- backend::cpu
"${build[@]}" --test kernels -- --skip the_journal_keeps_each_mask_once
