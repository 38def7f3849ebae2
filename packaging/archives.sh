#!/bin/bash
# Makes archives of both programs that need nothing of a machine but Linux: archives.sh FOLDER ARCHITECTURE…
#
# Writes FOLDER/dps-VERSION-ARCHITECTURE-linux.tar.gz for each ARCHITECTURE, x86_64 or aarch64. The programs contain HDF5 and musl, a C library, and
# open no shared library: they have neither MPI nor GPUs. Zig compiles HDF5 and links the programs for either architecture on either; it comes from
# PyPI with cargo-zigbuild and CMake, and rustup gets each target's standard library. An archive for another architecture than this machine's needs
# qemu-user-static, to have its program write the manual pages.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mkdir -p "${1:?usage: archives.sh FOLDER ARCHITECTURE…}" && cd "$1" && pwd)
shift
cd "$here/.."
needed=(rustup python3)
for architecture; do
  case $architecture in
  x86_64 | aarch64) [ "$architecture" = "$(uname -m)" ] || needed+=("qemu-$architecture-static") ;;
  *) echo "expected x86_64 or aarch64, found $architecture" >&2 && exit 2 ;;
  esac
done
source "$here/zig.bash"
work=$(mktemp -d "$folder/work.XXXX")
trap 'rm -rf "$work"' EXIT

export CARGO_PROFILE_RELEASE_STRIP=symbols
zig=$("$python/bin/python" -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent)')
features=(--no-default-features --features static-hdf5,pictures)
version=$(sed -nE '0,/^version = /s/^version = "(.*)"/\1/p' Cargo.toml)

for architecture; do
  target=$architecture-unknown-linux-musl
  name=dps-$version-$architecture-linux
  rustup --quiet target add "$target"
  cargo zigbuild --release --locked --bins --target "$target" "${features[@]}"

  made=$work/$name
  mkdir -p "$made/bin" "$made/completions" "$made/licences"
  cp "$folder/build/$target/release/"{dps-train,dps-report} "$made/bin"
  run=()
  if [ "$architecture" != "$(uname -m)" ]; then run=("qemu-$architecture-static"); fi
  for shell in bash zsh fish; do "${run[@]}" "$made/bin/dps-train" completions "$shell" >"$made/completions/dps.$shell"; done
  "${run[@]}" "$made/bin/dps-train" man "$made/man" >/dev/null
  # Pages link to each other; the measured studies are ten times as large as all of them.
  cp -r configs slurm docs README.md CHANGELOG.md CITATION.cff CONTRIBUTING.md LICENSE "$made"
  rm "$made"/docs/experiments/data/*.h5
  # Notices of all that the programs contain: crates and HDF5, Rust's library, musl, and what Zig and LLVM add to a program.
  tests/checks/licences.py --texts "$made/licences/crates-and-hdf5.txt" -- "${features[@]}" --filter-platform "$target" >/dev/null
  cp "$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html" "$made/licences/rust-library.html"
  cp "$zig/lib/libc/musl/COPYRIGHT" "$made/licences/musl.txt"
  cp "$zig/LICENSE" "$made/licences/zig.txt"
  cp "$zig/lib/libunwind/LICENSE.TXT" "$made/licences/llvm.txt"
  # Equal programs give equal archives.
  tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r-w --mtime="@$(git log -1 --format=%ct 2>/dev/null || echo 0)" \
    -cf - "$name" | gzip -9n >"$folder/$name.tar.gz"
  ls -sh "$folder/$name.tar.gz"
done
