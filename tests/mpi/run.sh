#!/bin/bash
# Tests dps-train with several MPIs: run.sh FOLDER. Prints a line a check, then "N passed, M failed".
#
# The MPIs are the system's, and Open MPI 5 and MPICH 5 from PyPI, which are installed into FOLDER/mpi-*. The program is built with each, without
# CUDA. Each program is started by each MPI's own mpirun: by that of its MPI on 1 and 3 ranks, which must record the same, and by the others on 3,
# which must end at once with a sentence, or record the same.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mkdir -p "${1:?usage: run.sh FOLDER}" && cd "$1" && pwd) || exit 2
cd "$here/../.." || exit 2
work=$(mktemp -d /tmp/dps-mpi.XXXX)
source "$here/../checks/check.bash"
trap 'clean "$work"' EXIT
trap 'exit 1' INT TERM

install() { # NAME VERSION: a wheel of PyPI, in a folder of its own.
  local at=$folder/mpi-$1
  [ "$(cat "$at/done" 2>/dev/null)" != "$2" ] || return 0
  rm -rf "$at"
  python3 -m venv "$at" && "$at/bin/pip" install --quiet --disable-pip-version-check "$1==$2" && echo "$2" >"$at/done"
}

# The wrapper of the C compiler and the launcher of an MPI; its libraries, where the loader does not find them by itself.
compiler() { if [ "$1" = system ]; then type -P mpicc; else echo "$folder/mpi-$1/bin/mpicc"; fi; }
launcher() { if [ "$1" = system ]; then type -P mpirun; else echo "$folder/mpi-$1/bin/mpirun"; fi; }
libraries() { if [ "$1" != system ]; then echo "$folder/mpi-$1/lib"; fi; }

build() { # NAME: the program with that MPI, as FOLDER/mpi-NAME/dps-train.
  local built=$folder/mpi-build options=() library
  mkdir -p "$folder/mpi-$1" "$built"
  export CARGO_TARGET_DIR=$built MPICC
  MPICC=$(compiler "$1")
  # mpi-sys does not notice that another MPI is asked for.
  if [ "$(cat "$built/mpi" 2>/dev/null)" != "$1" ]; then cargo clean --quiet --package mpi-sys 2>/dev/null; fi
  echo "$1" >"$built/mpi"
  library=$(libraries "$1")
  # The wrapper would pass this on to a C program; mpi-sys takes the folders of libraries from it, and nothing else.
  if [ -n "$library" ]; then options=(-C "link-arg=-Wl,-rpath,$library"); fi
  cargo rustc --quiet --bin dps-train --no-default-features --features mpi -- "${options[@]}" >"$work/build-$1.log" 2>&1 &&
    cp "$built/debug/dps-train" "$folder/mpi-$1/dps-train"
}

start() { # PROGRAM LAUNCHER RANKS OUTPUT: the study, with the exit code of its launcher.
  local options=()
  if [[ $("$(launcher "$2")" --version 2>/dev/null) == *"Open MPI"* ]]; then options=(--oversubscribe --bind-to none); fi
  timeout --signal=KILL 300 "$(launcher "$2")" "${options[@]}" -n "$3" "$folder/mpi-$1/dps-train" small.toml --data data --quiet --output "$4" </dev/null
}

same() { # A B: all cells of two results are there, with the same records: merge refuses others.
  rm -f same.h5
  "$folder/mpi-system/dps-train" merge "$1" "$2" --output same.h5 2>&1 | grep -q "4 cells from 2 files, complete"
}
measures() { start "$1" "$2" "$3" "$1-$2-$3.h5" >"$1-$2-$3.log" 2>&1 && same whole.h5 "$1-$2-$3.h5"; }
names() { "$folder/mpi-$1/dps-train" doctor --data data | grep -q "^MPI .*$2"; }
# Three processes that are each alone, or three ranks; never one study that works alone beside two that find it locked.
measures_or_refuses() {
  local log=$1-by-$2.log code begun=$SECONDS
  start "$1" "$2" 3 "$1-by-$2.h5" >"$log" 2>&1
  code=$?
  if [ "$code" = 0 ]; then
    echo "        (works)"
    same whole.h5 "$1-by-$2.h5"
  else
    echo "        (exit code $code: $(grep -m 1 '^dps-train: ' "$log" | cut -c1-150))"
    [ "$code" = 5 ] && [ $((SECONDS - begun)) -lt 20 ] && [ "$(grep -c "expected 3 ranks of one study, as .* started 3 processes" "$log")" = 1 ]
  fi
}

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Open MPI 5 starts its ranks by PRRTE, which has a name of its own for that.
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
declare -A version=([openmpi]=5.0.11 [mpich]=5.0.2) words=([system]="Open MPI" [openmpi]="Open MPI v5" [mpich]="MPICH")
mpis=(system openmpi mpich)
for mpi in openmpi mpich; do check "$mpi ${version[$mpi]} is installed" install "$mpi" "${version[$mpi]}"; done
for mpi in "${mpis[@]}"; do check "dps-train is built with it ($mpi)" build "$mpi"; done

python3 "$here/../slurm/make_study.py" "$work" || exit 1
cd "$work" || exit 2
check "the study is measured without MPI's launcher" "$folder/mpi-system/dps-train" small.toml --data data --quiet --output whole.h5
for program in "${mpis[@]}"; do
  check "doctor names the program's MPI ($program)" names "$program" "${words[$program]}"
  for ranks in 1 3; do check "$program, $ranks ranks by its own mpirun" measures "$program" "$program" "$ranks"; done
done
for program in "${mpis[@]}"; do
  for launcher in "${mpis[@]}"; do
    if [ "$program" != "$launcher" ]; then check "$program by the mpirun of $launcher" measures_or_refuses "$program" "$launcher"; fi
  done
done
finish
