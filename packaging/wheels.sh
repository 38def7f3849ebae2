#!/bin/bash
# Makes wheels for pip of the programs and of Python's package dps_results: wheels.sh FOLDER ARCHITECTURE…
#
# Writes FOLDER/dps_results-VERSION-….whl for each ARCHITECTURE, of the archive that archives.sh wrote into FOLDER. pip installs dps-train and
# dps-report beside its python.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(cd "${1:?usage: wheels.sh FOLDER ARCHITECTURE…}" && pwd)
shift
work=$(mktemp -d "$folder/work.XXXX")
trap 'rm -rf "$work"' EXIT
python=$folder/python/bin/python
version=$(sed -nE '0,/^version = /s/^version = "(.*)"/\1/p' "$here/../Cargo.toml")

"$python" -m pip install --quiet --disable-pip-version-check wheel==0.48.0
# A copy: setuptools builds beside the sources.
cp -r "$here/../examples/dps-results" "$work/package"
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work" "$work/package"

for architecture; do
  tar -xzf "$folder/dps-$version-$architecture-linux.tar.gz" -C "$work"
  programs=$work/dps-$version-$architecture-linux
  rm -rf "$work/wheel"
  "$python" -m wheel unpack --dest "$work/wheel" "$work/dps_results-$version-py3-none-any.whl" >/dev/null
  unpacked=$work/wheel/dps_results-$version
  sed -i 's/^Root-Is-Purelib: true/Root-Is-Purelib: false/' "$unpacked/dps_results-$version.dist-info/WHEEL"
  mkdir -p "$unpacked/dps_results-$version.data/scripts" "$unpacked/dps_results-$version.dist-info/licenses"
  cp "$programs/bin/"* "$unpacked/dps_results-$version.data/scripts"
  cp -r "$programs/LICENSE" "$programs/licences" "$unpacked/dps_results-$version.dist-info/licenses"
  "$python" -m wheel pack --dest-dir "$work/wheel" "$unpacked" >/dev/null
  # The programs open no shared library, so that they run beside any C library.
  name=$("$python" -m wheel tags --remove --platform-tag "manylinux2014_$architecture.musllinux_1_1_$architecture" "$work/wheel"/*.whl)
  mv "$work/wheel/$name" "$folder"
  ls -sh "$folder/$name"
done
