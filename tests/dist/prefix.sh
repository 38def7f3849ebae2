#!/bin/bash
# Builds zlib, HDF5, Open MPI and dps in a home folder, by packaging/prefix.sh: prefix.sh FOLDER. Prints a line a check, then "N passed, M failed".
#
# The build runs in a root folder of Debian 12 that has compilers, and neither MPI nor HDF5 nor libclang, as a user who is not root. The root folder
# gets this machine's Rust and the crates that cargo has fetched here. Needs root, and Debian's package mmdebstrap.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mkdir -p "${1:?usage: prefix.sh FOLDER}" && cd "$1" && pwd) || exit 2
cd "$here/../.." || exit 2
source tests/checks/check.bash
source tests/dist/programs.bash
command -v mmdebstrap >/dev/null || { echo "expected mmdebstrap, found none; apt-get install mmdebstrap" >&2 && exit 2; }
root=$folder/root
home=/home/someone
tear_down() { for at in dev proc; do mountpoint -q "$root/$at" && umount -l "$root/$at"; done; }
trap tear_down EXIT

base() {
  # The last step makes this file: a root folder whose making was interrupted is made anew.
  [ ! -e "$root/complete" ] || return 0
  local sysroot
  sysroot=$(rustc --print sysroot)
  rm -rf --one-file-system "$root"
  mmdebstrap --quiet --variant=minbase --mode=root \
    --include=bzip2,ca-certificates,curl,g++,gcc,libc6-dev,make,pkg-config,python3,python3-venv,xz-utils bookworm "$root" &&
    chroot "$root" useradd --create-home --uid 1000 someone && mkdir -p "$root/opt/rust" "$root$home/.cargo" &&
    cp -r "$sysroot/bin" "$sysroot/lib" "$root/opt/rust" &&
    cp -r "${CARGO_HOME:-$HOME/.cargo}/registry" "$root$home/.cargo" &&
    # The certificates and the mirrors that this machine fetches by.
    cp -r /etc/ssl/certs "$root/etc/ssl" && { [ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc"; } &&
    cp /etc/resolv.conf "$root/etc" && touch "$root/complete"
}
# The files of this working tree, committed or not.
sources() {
  [ -d "$root$home" ] && rm -rf "$root$home/dps" && mkdir "$root$home/dps" &&
    git ls-files --cached --others --exclude-standard -z | tar --null --files-from=- -cf - | tar -xf - -C "$root$home/dps" &&
    chown -R 1000:1000 "$root$home"
}
mounts() { mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev"; }
inside() { # COMMAND…: as a user of the root folder, with what this machine says of proxies.
  # Open MPI looks for ssh when it starts, which the root folder has not, and does not use it for ranks of one host.
  local kept=(HOME=$home USER=someone PATH=/opt/rust/bin:$home/prefix/bin:/usr/bin:/bin OMPI_MCA_plm_rsh_agent=true)
  local name
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL PIP_CERT SSL_CERT_FILE CURL_CA_BUNDLE; do
    [ -z "${!name-}" ] || kept+=("$name=${!name}")
  done
  chroot --userspec=1000:1000 "$root" /usr/bin/env -i "${kept[@]}" /bin/bash -c 'cd ~/dps && "$@"' - "$@"
}
has_none() { ! compgen -G "$root/usr/bin/mpi*" && ! compgen -G "$root/usr/lib/*/libhdf5*" && [ ! -e "$root/usr/include/zlib.h" ]; }

check "a root folder with compilers" base
check "the sources are there" sources
check "it has neither MPI nor HDF5 nor what programs are built with zlib by" has_none
mounts || exit 1
check "zlib, HDF5, Open MPI and dps are built" inside packaging/prefix.sh $home/prefix
check "the doctor finds the new Open MPI" doctor inside '^MPI +Open MPI v4.1.4'
check "a study on two ranks, and its report" ranks inside configs tests/fixtures/data
check "the report of a published result file" inside dps-report docs/experiments/data/adamw-fashion-mnist.h5 --output published

finish
