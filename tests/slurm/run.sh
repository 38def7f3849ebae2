#!/bin/bash
# Tests the batch scripts in slurm/ on a real Slurm on this machine: run.sh FOLDER_OF_PROGRAMS [ALONE]. Prints a line a check, then
# "N passed, M failed". ALONE is the folder of the programs that work as single processes, such as an archive's; by default they are the same.
#
# Needs root and Debian's packages slurm-wlm, munge and openmpi-bin. Every wait is bounded; the whole takes two to seven minutes on two cores, much of
# it waiting for requeued jobs: Slurm lets up to a minute and a half pass before it starts one again.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../checks/check.bash"
need_root
programs=$(cd "${1:?usage: run.sh FOLDER_OF_PROGRAMS [ALONE]}" && pwd) || exit 2
alone=$(cd "${2:-$programs}" && pwd) || exit 2
for needed in {"$programs","$alone"}/dps-{train,report} slurmctld slurmd munged mpirun python3; do
  if ! command -v "$needed" >/dev/null; then
    echo "expected $needed, found none; build the programs, and apt-get install slurm-wlm munge openmpi-bin python3" >&2
    exit 2
  fi
done

work=$(mktemp -d /tmp/dps-slurm.XXXX)
tear_down() {
  "$here/down.sh" "$work/c"
  clean "$work"
}
trap tear_down EXIT
trap 'exit 1' INT TERM

train() { "$DPS_TRAIN" "$@"; }
# A study has taken steps that its checkpoint has; one of its cells is not finished.
under_way() { [[ $(train status --progress "$1" 2>/dev/null) =~ step\ [1-9] ]]; }
all_measured() { [[ $(train status --progress "$1" 2>/dev/null) == "cells $2 "* ]]; }
# Cells of two results have the same records: merge refuses others.
same() { rm -f "$work/same.h5" && train merge "$1" "$2" --output "$work/same.h5" >"$work/same.log" 2>&1 && said "$work/same.log" "$3 cells from 2 files, complete"; }

export SLURM_CONF=$work/c/slurm.conf OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export DPS_TRAIN=$programs/dps-train DPS_REPORT=$programs/dps-report DPS_LAUNCH="mpirun --bind-to none"
cd "$work" || exit 2
"$here/up.sh" "$work/c" 8 || exit 1
python3 "$here/make_study.py" "$work" || exit 1
slurm=$here/../../slurm
study=(small.toml --data data --quiet)
logged whole.log train "${study[@]}" --output whole.h5

# A study, one of whose tasks is warned of its time limit.
submitted=$(DPS_RESULTS=a "$slurm/submit.sh" --ntasks-per-node=2 --time=5 -- "${study[@]}")
read -r _ array _ report <<<"$submitted"
array=${array%,}
warned=a/small.parts/batch-16-sparsity-0
check "task 2 takes steps" within 60 under_way $warned.h5
check "status names its job" said <(train status $warned.h5) "process .* on "
scancel --batch --signal=USR1 "${array}_2"
check "USR1 requeues it" within 90 at_least "${array}_2" Restarts 1
check "it says where it was" said a/small.parts/2.log "requeued after exit code 75 at: cells 0 trials [0-9]* step [1-9]"
check "the report waits for the array" is "$report" JobState PENDING
check "the report is made" within 240 is "$report" JobState COMPLETED
for task in 0 1 2 3; do check "task $task has completed" is "${array}_$task" JobState COMPLETED; done
check "the warned task ran twice" said a/small.parts/2.log "run 2, on"
check "and went on in the same journal" said <(train status --json $warned.h5) '"restarts":1,"causes":."a stop".'
check "another ran once" never_said a/small.parts/1.log "run 2, on"
check "the results are those of the study run alone" same whole.h5 a/small.h5 4
check "with a page" test -s a/small-report/index.html

# A study that is cancelled and submitted again, each task a single process.
submit_alone() {
  DPS_TRAIN=$alone/dps-train DPS_REPORT=$alone/dps-report DPS_LAUNCH="" DPS_RESULTS=b \
    "$slurm/submit.sh" --ntasks-per-node=1 --time=5 -- "${study[@]}"
}
submitted=$(submit_alone)
read -r _ array _ report <<<"$submitted"
array=${array%,}
last=b/small.parts/batch-16-sparsity-0.9
check "the last task takes steps" within 60 under_way $last.h5
scancel "${array}_3"
check "scancel ends it" within 30 is "${array}_3" JobState CANCELLED
check "the report of the others fails" within 240 is "$report" JobState FAILED
check "naming the missing cell" said b/small.parts/report.log "not measured: batch size 16, sparsity 0.9"
check "the cancelled task was not requeued" is "${array}_3" JobState CANCELLED
check "what there is was merged" all_measured b/small.h5 3
check "status says that it stopped" said <(train status --json $last.h5) '"state":"stopped"'
submitted=$(submit_alone)
read -r _ array _ report <<<"$submitted"
check "submitted again, it is finished" within 240 is "$report" JobState COMPLETED
check "from where it was" said <(train status --json $last.h5) '"restarts":1'
check "the results are the same" same whole.h5 b/small.h5 4

# One cell under srun, whose ranks get the signal from Slurm itself.
job=$(DPS_LAUNCH="srun --mpi=pmix" DPS_SLURM=$slurm sbatch --parsable --ntasks-per-node=3 --time=5 --output=c.log "$slurm/cell.sbatch" \
  c.h5 "${study[@]}" --batch-size 16 --sparsity 0.9)
# And one that loses a rank, under supervise.
supervised=$(DPS_LAUNCH="$DPS_TRAIN supervise -- mpirun --bind-to none" DPS_SLURM=$slurm sbatch --parsable --ntasks-per-node=2 --time=5 --output=g.log \
  "$slurm/cell.sbatch" g.h5 "${study[@]}" --batch-size 16 --sparsity 0.9)
# And one that loses a rank with nobody but the script to start it again.
lost=$(DPS_SLURM=$slurm sbatch --parsable --ntasks-per-node=2 --time=5 --output=h.log "$slurm/cell.sbatch" h.h5 "${study[@]}" --batch-size 16 --sparsity 0)
check "srun's ranks take steps" within 60 under_way c.h5
check "two ranks under supervise take steps" within 60 under_way g.h5
check "one of them is killed" pkill -KILL -n -f '^[^ ]*dps-train small[.]toml .*g[.]h5'
check "two ranks without supervise take steps" within 120 under_way h.h5
check "one of them is killed, too" pkill -KILL -n -f '^[^ ]*dps-train small[.]toml .*h[.]h5'
scancel --signal=USR1 "$job"
check "USR1 to the ranks requeues the job" within 60 at_least "$job" Restarts 1
check "they take steps again" within 180 said c.log "run 2, on"
check "to the end" within 240 is "$job" JobState COMPLETED
check "the cell is the same" same whole.h5 c.h5 4
check "the job that lost a rank has completed" within 240 is "$supervised" JobState COMPLETED
check "it was not requeued" is "$supervised" Restarts 0
check "but started again by supervise" said g.log "supervise: start 1 ended .*; started again in"
check "its cell is the same" same whole.h5 g.h5 4

check "the other one was requeued" within 60 at_least "$lost" Restarts 1
check "and says after what" said h.log "requeued after exit code"
check "it has completed" within 240 is "$lost" JobState COMPLETED
check "its journal says after what, too" said <(train status h.h5) "restarted 1 time, after signal 9 killed it"
check "its cell is the same, too" same whole.h5 h.h5 4

# Under an srun that speaks no protocol of MPI's, no rank works alone.
timeout 90 srun --mpi=none --ntasks=3 --time=2 "$DPS_TRAIN" "${study[@]}" --output n.h5 >n.log 2>&1
check "srun --mpi=none ends with the exit code of ranks that do not find each other" [ "$?" = 5 ]
check "and names the protocol that works" said n.log "expected 3 ranks of one study, as srun started 3 processes .*use srun --mpi=pmix"
check "and measures nothing" [ ! -e n.h5 ]

# A warning that comes before the ranks have started, and a job requeued by hand.
job=$(DPS_SLURM=$slurm sbatch --parsable --ntasks-per-node=2 --time=5 --output=f.log "$slurm/cell.sbatch" f.h5 "${study[@]}")
check "a job begins" within 60 said f.log "run 1, on"
scancel --batch --signal=USR1 "$job"
check "USR1 at its start requeues it" within 120 at_least "$job" Restarts 1
check "it runs again" within 180 said f.log "run 2, on"
scontrol requeue "$job"
check "requeued by hand, it runs a third time" within 180 said f.log "run 3, on"
check "to the end of all cells" within 240 is "$job" JobState COMPLETED
check "which are the same" same whole.h5 f.h5 4

# A program that is stopped whenever it starts, and one that refuses its command line.
printf '#!/bin/sh\n[ "$1" = status ] && exec "%s" "$@"\nexit 75\n' "$DPS_TRAIN" >stops
chmod +x stops
job=$(DPS_TRAIN=./stops DPS_LAUNCH="" DPS_SLURM=$slurm sbatch --parsable --ntasks-per-node=1 --time=5 --output=d.log "$slurm/cell.sbatch" d.h5 "${study[@]}")
wrong=$(DPS_LAUNCH="" DPS_SLURM=$slurm sbatch --parsable --ntasks-per-node=1 --time=5 --output=e.log "$slurm/cell.sbatch" e.h5 "${study[@]}" --trials none)
check "a job without progress is given up" within 300 said d.log "given up: ended 3 times in a row"
check "and has failed" within 30 is "$job" JobState FAILED
check "after three runs" is "$job" Restarts 2
check "a wrong command line fails" within 30 is "$wrong" JobState FAILED
check "with the program's exit code" is "$wrong" ExitCode 2:0
check "and is not run again" is "$wrong" Restarts 0

finish
