#!/bin/bash
# Builds HDF5 with zlib, Open MPI and dps in a folder, without root and without packages of the system: prefix.sh PREFIX.
#
# Needs a C and a C++ compiler, make, pkg-config, curl, bzip2, xz, Rust, and Python 3 with pip or venv. The libraries come as Debian's copies of their
# releases, checked by their SHA-256, and libclang, which reads MPI's headers, from PyPI. A part that is there is not built again. The programs
# lie in PREFIX/bin afterwards; an MPI or HDF5 that the system has too is not used.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prefix=$(mkdir -p "${1:?usage: prefix.sh PREFIX}" && cd "$1" && pwd)
if [[ $prefix = *[[:space:]]* ]]; then
  echo "expected a folder without spaces, since compilers get it in lists of options, found $prefix: name another" >&2
  exit 2
fi
# rustup installs here and may not be in the PATH yet.
export PATH=$PATH:$HOME/.cargo/bin
for tool in cc c++ make pkg-config curl bzip2 xz cargo python3; do
  command -v "$tool" >/dev/null || { echo "expected $tool, found none: install it, or load its module; Rust comes from https://rustup.rs" >&2 && exit 2; }
done

fetch() { # URL SHA-256 FOLDER: unpacks an archive.
  local archive=$prefix/sources/${1##*/}
  mkdir -p "$3"
  if [ ! -e "$archive" ]; then
    curl --fail --silent --show-error --location --output "$archive.part" "$1"
    echo "$2  $archive.part" | sha256sum --check --quiet
    mv "$archive.part" "$archive"
  fi
  tar -xf "$archive" -C "$3" --strip-components=1
}

install() { # NAME URL SHA-256 OPTION…: configures, builds and installs a library.
  local name=$1 folder=$prefix/sources/$1
  [ ! -e "$folder/done" ] || return 0
  echo "$name: its log is $folder.log"
  rm -rf "$folder"
  fetch "$2" "$3" "$folder"
  if ! (cd "$folder" && ./configure --prefix="$prefix" "${@:4}" && make -j"$(nproc)" && make install) >"$folder.log" 2>&1; then
    echo "$name was not built; its log ends so:" >&2
    tail -n 5 "$folder.log" >&2
    exit 1
  fi
  touch "$folder/done"
}

mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}/pool/main
mkdir -p "$prefix/sources"
# HDF5 compresses by zlib. The archive libz.a becomes a part of HDF5's library, so that nothing has to find it when programs start.
CFLAGS="-O2 -fPIC" install zlib "$mirror/z/zlib/zlib_1.2.13.dfsg.orig.tar.bz2" 71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1 \
  --static
install hdf5-with-zlib "$mirror/h/hdf5/hdf5_1.10.8+repack1.orig.tar.gz" 7b38e58ff83b13fd8959a90b13bf896bc318ba096c940ab0847abf3ad41a0b31 \
  --with-zlib="$prefix" --disable-static --disable-tests --disable-tools
install openmpi "$mirror/o/openmpi/openmpi_4.1.4.orig.tar.xz" ddaee7dbdb01eb4fab1fda5b5e03e8bbff026711806c095c1f39bb410f99f263 \
  --disable-static --disable-mpi-fortran --disable-oshmem --disable-io-romio

clang=$prefix/libclang
if [ ! -e "$clang/done" ]; then
  pip=(python3 -m pip)
  if ! "${pip[@]}" --version &>/dev/null; then
    python3 -m venv "$prefix/sources/python"
    pip=("$prefix/sources/python/bin/pip")
  fi
  "${pip[@]}" install --quiet --disable-pip-version-check --no-deps --target "$clang" libclang==18.1.1
  touch "$clang/done"
fi

# The programs find both libraries by themselves. libclang alone has no headers of a compiler: it is told where gcc keeps them.
export PATH=$prefix/bin:$PATH HDF5_DIR=$prefix MPICC=$prefix/bin/mpicc LIBCLANG_PATH=$clang/clang/native
export BINDGEN_EXTRA_CLANG_ARGS="-I$(cc -print-file-name=include)" RUSTFLAGS="${RUSTFLAGS-} -C link-arg=-Wl,-rpath,$prefix/lib"
cd "$here/.."
cargo build --release --locked --bins --target-dir "$prefix/sources/dps"
cp "$prefix/sources/dps/release/"{dps-train,dps-report} "$prefix/bin"
echo "PATH=$prefix/bin:\$PATH has dps-train, dps-report and mpirun; $prefix/sources is not needed any more"
