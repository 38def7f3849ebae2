#!/bin/bash
# Tests studies on two nodes, by ssh and by Slurm, one of which is lost: run.sh FOLDER_OF_PROGRAMS. A line a check, then "N passed, M failed".
#
# Needs root and Debian's packages iproute2, openssh-server, openmpi-bin, slurm-wlm, munge and python3. The nodes are namespaces on this machine, so
# that the test says nothing about speed. Every wait is bounded; the whole takes four to ten minutes on two cores.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../checks/check.bash"
need_root
programs=$(cd "${1:?usage: run.sh FOLDER_OF_PROGRAMS}" && pwd) || exit 2
for needed in "$programs/dps-train" "$programs/dps-report" ip nsenter /usr/sbin/sshd slurmctld slurmd munged mpirun python3; do
  if ! command -v "$needed" >/dev/null; then
    echo "expected $needed, found none; build the programs, and apt-get install iproute2 openssh-server openmpi-bin slurm-wlm munge python3" >&2
    exit 2
  fi
done

work=$(mktemp -d /tmp/dps-nodes.XXXX)
tear_down() {
  on n1 "$here/../slurm/down.sh" "$work/c" 2>/dev/null
  "$here/down.sh" "$work/nodes"
  clean "$work"
}
trap tear_down EXIT
trap 'exit 1' INT TERM

on() { nsenter --target "$(cat "$work/nodes/$1.pid")" --all --wd="$work" -- "${@:2}"; }
train() { "$programs/dps-train" "$@"; }
status_says() { said <(train status "$1") "$2"; }
# All cells are measured, with the same records: merge refuses others.
same() { [[ $(train status --progress "$1") == "cells 4 "* ]] && rm -f same.h5 && train merge whole.h5 "$1" --output same.h5 >same.log 2>&1 && said same.log "4 cells from 2 files, complete"; }
# One cell is finished, and the checkpoint has steps of the next one.
under_way() { [[ $(train status --progress "$1" 2>/dev/null) =~ "cells "[1-3].*step\ [1-9] ]]; }
received() { nsenter --target "$(cat "$work/nodes/switch.pid")" --net cat /proc/net/dev | sed -n "s/^ *$1: *\([0-9]*\) .*/\1/p"; }

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cd "$work" || exit 2
"$here/up.sh" "$work/nodes" n1 n2 || exit 1
python3 "$here/../slurm/make_study.py" "$work" || exit 1
sed -i 's/^max_steps = .*/max_steps = 1600/' small.toml
study=("$programs/dps-train" small.toml --data data --quiet --output)
logged whole.log "${study[@]}" whole.h5

ssh="ssh -F $work/nodes/ssh"
mpirun=(mpirun --mca plm_rsh_agent "$ssh" --bind-to none -n 4)
echo "== ssh"
before=$(received n2)
check "a study runs on two nodes of two ranks" on n1 timeout 240 "${mpirun[@]}" --host n1:2,n2:2 "${study[@]}" a.h5
check "its ranks exchange gradients over the network" [ $(($(received n2) - before)) -gt 1000000 ]
check "its records are those of one process" same a.h5

on n1 "${mpirun[@]}" --host n1:2,n2:2 "${study[@]}" b.h5 >b.log 2>&1 &
check "another study takes steps" within 60 under_way b.h5
check "status on the other node says where it runs" said <(on n2 "$programs/dps-train" status b.h5) "process .* on n1,"
on n2 "${study[@]}" b.h5 >b2.log 2>&1
check "a second job of that study, on the other node, is refused" [ "$?" = 7 ]
check "with the first one's node" said b2.log "on n1"
check "the other node dies" "$here/down.sh" "$work/nodes" n2
check "the ranks on the first one end" within 90 status_says b.h5 "^b: stopped;"
check "the node comes back" "$here/up.sh" "$work/nodes" n2
check "the same command goes on, on one node" on n1 timeout 240 "${mpirun[@]}" --host n1:4 "${study[@]}" b.h5
check "its records are the same" same b.h5

echo "== supervise"
on n1 "$programs/dps-train" supervise --hosts n1:2,n2:2 --reach "$ssh -o ConnectTimeout=5" --ask-every 5 -- "${mpirun[@]}" "${study[@]}" s.h5 >s.log 2>&1 &
supervised=$!
check "a supervised study takes steps on both" within 60 under_way s.h5
check "the other node's cable is pulled" nsenter --target "$(cat "$work/nodes/switch.pid")" --net ip link set n2 down
check "supervise notices the silence" within 60 said s.log "no answer from n2, twice in a row, and no progress: the command is killed"
check "and goes on with the ranks of one node" within 120 said s.log "no answer from n2: goes on with 2 of 4 ranks on the other hosts"
check "to the end" wait "$supervised"
check "its records are the same, too" same s.h5
check "the cable is put back" nsenter --target "$(cat "$work/nodes/switch.pid")" --net ip link set n2 up

echo "== Slurm"
# Processes that the lost node was left with end as well.
"$here/down.sh" "$work/nodes" n2 && "$here/up.sh" "$work/nodes" n2 || exit 1
"$here/../slurm/up.sh" "$work/c" 4 "$work/nodes" n1 n2 || exit 1
export SLURM_CONF=$work/c/slurm.conf DPS_TRAIN=$programs/dps-train DPS_SLURM=$here/../../slurm
controller=(on n1)
submit() { # LAUNCHER NAME
  on n1 env DPS_LAUNCH="$1" sbatch --parsable --nodes=2 --ntasks-per-node=2 --time=10 --output="$2.log" "$DPS_SLURM/cell.sbatch" "$2.h5" "${study[@]:1:4}"
}
for launcher in "mpirun --bind-to none" "srun --mpi=pmix"; do
  name=${launcher%% *}
  job=$(submit "$launcher" "$name")
  check "a job of two nodes completes ($name)" within 240 is "$job" JobState COMPLETED
  check "its journal names both nodes ($name)" said "$name.journal" "n1, n2"
  check "its records are those of one process ($name)" same "$name.h5"
done
job=$(submit "mpirun --bind-to none" lost)
check "a job takes steps on two nodes" within 60 under_way lost.h5
check "one of them dies" "$here/down.sh" "$work/nodes" n2
check "Slurm has the job run again" within 120 at_least "$job" Restarts 1
check "the node comes back (Slurm)" "$here/up.sh" "$work/nodes" n2
check "and its slurmd" on n2 slurmd -N n2 -f "$SLURM_CONF"
check "the job completes" within 300 is "$job" JobState COMPLETED
check "from where it was" said <(train status --json lost.h5) '"restarts":1'
check "its records are the same (Slurm)" same lost.h5

finish
