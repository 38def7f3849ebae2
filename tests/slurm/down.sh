#!/bin/bash
# Ends the cluster that up.sh started in FOLDER, its jobs first: down.sh FOLDER.
folder=$1
export SLURM_CONF=$folder/slurm.conf
[ -f "$SLURM_CONF" ] || exit 0

# Waits up to 10 s for a condition.
patiently() { for _ in $(seq 100); do "$@" && return; sleep 0.1; done; }
no_jobs() { [ -z "$(squeue -h 2>/dev/null)" ]; }
# Processes of a job's steps outlive it by a moment; other clusters' are not ours.
steps() {
  local process
  for process in $(pgrep -x slurmstepd); do
    tr '\0' '\n' 2>/dev/null <"/proc/$process/environ" | grep -qx "SLURM_CONF=$SLURM_CONF" && echo "$process"
  done
}
no_steps() { [ -z "$(steps)" ]; }

squeue -h -o %A 2>/dev/null | sort -u | xargs -r scancel --full 2>/dev/null
patiently no_jobs
patiently no_steps
daemons=$(cat "$folder"/run/*.pid 2>/dev/null)
living() { local process; for process in $daemons; do kill -0 "$process" 2>/dev/null && echo "$process"; done; }
ended() { [ -z "$(living)" ]; }
for process in $daemons; do kill "$process" 2>/dev/null; done
patiently ended
for process in $(living) $(steps); do
  echo "down.sh: kills process $process, which did not end in 10 s" >&2
  kill -KILL "$process" 2>/dev/null
done
exit 0
