#!/bin/bash
# Tests the archives and wheels that packaging/ made: run.sh FOLDER ARCHITECTURE… Prints a line a check, then "N passed, M failed".
#
# Each archive is unpacked into an empty root, to which the test adds /proc, /dev and the data of tests/fixtures. Its programs examine the machine,
# measure a small study and report it there. All architectures must record the same bits. qemu-user-static runs programs of another architecture; it
# is registered in user namespaces of the test's own, so the machine keeps its settings. The wheel for this machine is installed into a new virtual
# environment, which also has h5py for the comparison.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(cd "${1:?usage: run.sh FOLDER ARCHITECTURE…}" && pwd) || exit 2
shift
cd "$here/../.." || exit 2
work=$(mktemp -d /tmp/dps-dist.XXXX)
source tests/checks/check.bash
trap 'clean "$work"' EXIT

version=$(sed -nE '0,/^version = /s/^version = "(.*)"/\1/p' Cargo.toml)
study=(--batch-size 32 --sparsity 0,0.9 --trials 2 --set workload.max_steps=200 --threads 2 --quiet)

# Runs a program in ROOT, as the root of namespaces of its own.
in_root() { # ARCHITECTURE ROOT COMMAND…
  timeout --signal=KILL 600 unshare --user --map-root-user --mount --pid --fork bash "$here/in_root.bash" "$@" </dev/null
}

begins() { # ARCHITECTURE: no data set of the doctor's list is there, which is exit code 3.
  in_root "$1" "$work/$1" /dps/bin/dps-train doctor --data /data >"$work/$1.doctor"
  [ $? = 3 ] && grep -Eq '^HDF5 +[0-9]+\.[0-9]+' "$work/$1.doctor"
}
has_unit() { grep -Eq "^CPU .*, ($2)\$" "$work/$1.doctor"; }
measures() { in_root "$1" "$work/$1" /dps/bin/dps-train /dps/configs/examples/own-data-digits.toml --data /data "${study[@]}" -o /digits.h5; }
reports() { # ARCHITECTURE NAME: of NAME.h5.
  in_root "$1" "$work/$1" /dps/bin/dps-report "/$2.h5" -o "/$2" >"$work/$1.$2" 2>&1 && tests/checks/check_report.py "$work/$1/$2"
}
contains() { # ARCHITECTURE
  local path
  for path in bin/dps-report completions/dps.bash man/dps-train.1 configs/quickstart.toml slurm/submit.sh README.md docs/install.md LICENSE licences/musl.txt; do
    [ -s "$work/$1/dps/$path" ] || { echo "no $path" && return 1; }
  done
  grep -q '^hdf5-metno-src ' "$work/$1/dps/licences/crates-and-hdf5.txt"
}
is_small() { [ "$(stat -c %s "$1")" -le 15000000 ]; }

for architecture; do
  archive=$folder/dps-$version-$architecture-linux.tar.gz
  mkdir -p "$work/$architecture"/{dev,proc,dps}
  tar -xzf "$archive" --strip-components=1 -C "$work/$architecture/dps" || exit 1
  cp -r tests/fixtures/data "$work/$architecture/data"
  # A result file that a build with the system's HDF5 compressed.
  cp docs/experiments/data/adamw-fashion-mnist.h5 "$work/$architecture/published.h5"
  check "$architecture: the archive has at most 15 MB" is_small "$archive"
  check "$architecture: the archive has all that it should" contains "$architecture"
  check "$architecture: the doctor in an empty root" begins "$architecture"
  if [ "$architecture" = aarch64 ]; then check "aarch64: vectors of NEON" has_unit aarch64 NEON; fi
  check "$architecture: a study in an empty root" measures "$architecture"
  check "$architecture: a report in an empty root" reports "$architecture" digits
  check "$architecture: a report of a published result file in an empty root" reports "$architecture" published
done

python3 -m venv "$work/venv" || exit 1
wheels=("$folder/dps_results-$version-"*"$(uname -m)"*.whl)
installs() { "$work/venv/bin/pip" install --quiet --disable-pip-version-check "${wheels[0]}"; }
opens() { # The study by the wheel's program, and what Python finds in it.
  "$work/venv/bin/dps-train" configs/examples/own-data-digits.toml --data tests/fixtures/data "${study[@]}" -o "$work/wheel.h5" &&
    "$work/venv/bin/dps-report" "$work/wheel.h5" -o "$work/wheel-report" >"$work/wheel.report" 2>&1 &&
    "$work/venv/bin/python" - "$work/wheel.h5" <<'END'
import sys
import dps_results
import h5py

with h5py.File(sys.argv[1]) as file:
    assert file["trials"].compression == "gzip", file["trials"].compression
study = dps_results.open(sys.argv[1])
assert study.complete and len(study.cells) == 2 and len(study.trials) == 4, study
print(study.steps_to_result())
END
}
check "the wheel is installed by pip" installs
check "a study by the wheel's programs, read by its package" opens
same() { "$work/venv/bin/python" tests/checks/same_records.py --files "$work/wheel.h5" "$1"; }
for architecture; do check "$architecture: the same records as by the wheel's program" same "$work/$architecture/digits.h5"; done

finish
