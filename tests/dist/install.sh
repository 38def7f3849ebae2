#!/bin/bash
# Tries the ways of docs/install.md one after another, each by its own test: install.sh FOLDER [WORD…]. Each gives a row of FOLDER/transcript.md:
# the command, how it ended, what it printed last, its minutes, the commit and the day. Words choose the ways whose names have one of them; the
# rows of the others stay, those of docs/install.md where FOLDER has none. With WRITE=1 the table is put into docs/install.md too. Ends with 1
# where a way failed. Logs are in FOLDER.
#
# Needs root and what the tests need. All ways take more than an hour of two cores.
set -uo pipefail

folder=$(mkdir -p "${1:?usage: install.sh FOLDER [WORD…]}/rows" && cd "$1" && pwd) || exit 2
shift
words=("$@")
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
data=$PWD/tests/fixtures/data
archive=$folder/archive
dist=$folder/../dist
tried=0
failed=0

is_wanted() { # NAME
  local word
  [ ${#words[@]} -gt 0 ] || return 0
  for word in "${words[@]}"; do [[ $1 != *"$word"* ]] || return 0; done
  return 1
}

way() { # NAME SHOWN COMMAND…: SHOWN is the command as the table names it.
  local name=$1 shown=$2 log row code=0 begun=$SECONDS outcome last
  shift 2
  tried=$((tried + 1))
  # In the order of this file.
  row=$folder/rows/$(printf '%02d' "$tried")
  [ -e "$row" ] || grep -F "| $name | \`$shown\` |" docs/install.md >"$row" || echo "| $name | \`$shown\` | not tried | | | |" >"$row"
  is_wanted "$name" || return 0
  log=$folder/${name//[^A-Za-z0-9]/-}.log
  echo "== $name: $shown"
  "$@" </dev/null >"$log" 2>&1 || code=$?
  outcome=passed
  [ "$code" = 0 ] || { outcome="FAILED with exit code $code" && failed=1 && tail -n 20 "$log"; }
  last=$(grep -v -e '^[[:space:]]*$' -e '^make' "$log" | tail -n 1 | tr -d '|`' | sed "s#$PWD/##g" | cut -c1-100)
  echo "| $name | \`$shown\` | $outcome | $last | $(((SECONDS - begun + 30) / 60)) | $(git rev-parse --short HEAD), $(date -u +%Y-%m-%d) |" | tee "$row"
}

# A build from nothing, a study and its report by what it made, and the report of a study that another build compressed.
one_process() { # FEATURES
  local target=$folder/one-process
  rm -rf "$target" && cargo build --release --no-default-features --features "$1" --target-dir "$target" &&
    "$target/release/dps-train" configs/examples/own-data-digits.toml --data "$data" --batch-size 32 --sparsity 0,0.9 --trials 2 \
      --set workload.max_steps=200 --quiet --output "$target/digits.h5" &&
    "$target/release/dps-report" docs/experiments/data/adamw-fashion-mnist.h5 --output "$target/published" &&
    "$target/release/dps-report" "$target/digits.h5" --output "$target/report"
}
job_array() {
  rm -rf "$archive" && mkdir "$archive" && tar -xzf "$dist"/dps-*-"$(uname -m)"-linux.tar.gz --strip-components=1 -C "$archive" &&
    make test-slurm ALONE="$archive/bin"
}

way "source, with MPI" "make quickstart" make quickstart RESULTS="$folder/results"
way "source, one process" "cargo build --release --no-default-features --features pictures" one_process pictures
way "archives and wheel" "make test-dist" make test-dist
# Where this machine has no CMake, that of the archives builds HDF5.
PATH=$PATH:$dist/python/bin
way "source, one process, with its own HDF5" "cargo build --release --no-default-features --features pictures,static-hdf5" one_process pictures,static-hdf5
way "archive in a job array" "make test-slurm ALONE=FOLDER" job_array
way "container" "make test-container" make test-container
way "cluster without root" "make test-prefix" make test-prefix
way "other MPIs" "make test-mpi" make test-mpi
way "several nodes" "make test-nodes" make test-nodes
way "types by the oldest Rust, for macOS and Arm" "make check-targets" make check-targets
way "kernels for Arm" "make test-neon" make test-neon

{
  printf 'On %s, %s, %s processors:\n\n' "$(. /etc/os-release && echo "$PRETTY_NAME")" "$(uname -m)" "$(nproc)"
  printf '| way | tried by | outcome | its last line | minutes | commit |\n|---|---|---|---|---|---|\n'
  cat "$folder/rows"/*
} >"$folder/transcript.md"
if [ -n "${WRITE:-}" ]; then
  python3 - "$folder/transcript.md" docs/install.md <<'END'
import pathlib
import re
import sys

table, page = map(pathlib.Path, sys.argv[1:])
part = re.compile(r"(<!-- transcript: .*?-->\n).*?(<!-- end of transcript -->)", re.S)
text, parts = part.subn(lambda found: f"{found[1]}\n{table.read_text()}\n{found[2]}", page.read_text())
if parts != 1:
    sys.exit(f"expected a part \"transcript\" in {page}, found {parts}")
page.write_text(text)
END
fi
echo "$folder/transcript.md has the table"
exit "$failed"
