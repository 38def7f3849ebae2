# Sourced by the batch scripts of this folder: runs dps-train on all tasks of the job, and has the job requeued where it was stopped to go on, or lost
# a rank.
#
# Settings, all from the environment that sbatch passes on:
#   DPS_TRAIN     the program (default: dps-train)
#   DPS_LAUNCH    what starts it on all tasks (default: mpirun; srun --mpi=pmix where the cluster prefers it; "" for one process)
#   DPS_STALLS    how many runs in a row may end without progress before the job is given up (default: 3)
#
# The signal before the time limit comes with --signal=B:USR1@120. B: sends it to this shell alone, and the shell passes it on to the
# launcher: without B: it would reach the tasks of srun, but not those of mpirun, which is no step of Slurm's on the job's first node.

. "$(dirname "${BASH_SOURCE[0]}")/options.bash"

signal=
signals=0
launched=
warning=
trap 'signal=${signal:-USR1} signals=$((signals + 1)); pass_warning' USR1
# Cancelled, preempted or at its time limit: Slurm says itself what becomes of the job, so it is not requeued from here.
trap 'signal=TERM signals=$((signals + 1)); end_ranks' TERM
end_ranks() { [ -z "$launched" ] || kill -TERM "$launched" 2>/dev/null || true; }
# Open MPI's mpirun hangs on a signal that comes while its ranks are being started, so the warning waits until the study is being worked on.
# Where that does not happen, mpirun hangs already (it may when a rank was lost), and would do so until the time limit.
warn() {
  local waited=0
  until "$dps_train" status --json "$output" | grep -q '"state":"running"'; do
    [ $((waited += 1)) -le 45 ] || kill -KILL "$launched"
    kill -0 "$launched" && sleep 1 || return
  done
  while kill -USR1 "$launched"; do sleep 10; done
} 2>/dev/null
pass_warning() {
  if [[ -n $launched && $signal = USR1 && -z $warning ]]; then
    warn &
    warning=$!
  fi
}

dps_train=${DPS_TRAIN:-dps-train}
read -ra dps_launch <<<"${DPS_LAUNCH-mpirun}"

# The number that a file begins with, 0 where there is none. The file lies in a folder that others may be able to write to, and bash runs commands
# that an arithmetic expression names, so nothing but digits gets out of here; a link, a pipe or an endless file has none.
count_in() { # FILE
  local text=
  [ ! -f "$1" ] || [ -L "$1" ] || read -r -n 7 text <"$1" || true
  if [[ $text =~ ^[0-9]{1,6}$ ]]; then echo "$((10#$text))"; else echo 0; fi
}

# Replaces FILE by one that has NUMBER; noclobber makes bash write to a new file or none, never through a link.
put_count() { # NUMBER FILE
  rm -f "$2" && (set -o noclobber && echo "$1" >"$2")
}

# run_and_continue OUTPUT CONFIG [OPTION…]: measures CONFIG into OUTPUT and ends the job with the program's exit code, or requeues it.
run_and_continue() {
  output=$1
  local code=0 before after stalls=0 counter word
  shift
  for word; do
    if [ "$word" = --fresh ]; then
      echo "expected a command that goes on, found one with --fresh, which each run of a requeued job would begin anew: move the study's files aside instead" >&2
      exit 2
    fi
  done
  # Beside the results, where every node can read it.
  counter=${output%.h5}.stalls
  echo "$(date -u +%FT%TZ) job ${SLURM_JOB_ID:-none}, run $((${SLURM_RESTART_COUNT:-0} + 1)), on ${SLURM_JOB_NODELIST:-this host}: dps-train ${*@Q} --output ${output@Q}"
  # The program makes it too, but a job that ends before counts its runs there.
  mkdir -p "$(dirname "$output")" || exit 7
  # A job that was just submitted has all its chances.
  [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] || rm -f "$counter"
  # Nothing is known of a study that has not begun.
  before=$("$dps_train" status --progress "$output" 2>/dev/null) || before=none

  if [ -z "$signal" ]; then
    "${dps_launch[@]}" "$dps_train" "$@" --output "$output" &
    launched=$!
    # A signal that comes between the fork and the line above finds nobody to be passed on to.
    [ "$signal" != TERM ] || end_ranks
    pass_warning
    local seen
    while true; do
      seen=$signals
      # A trapped signal ends wait; the study takes a moment longer.
      wait "$launched"
      code=$?
      [ "$seen" -ne "$signals" ] || break
    done
    [ -z "$warning" ] || kill "$warning" 2>/dev/null
    launched=
    # 138: USR1 came before the program listened; 137: killed above. Nothing is lost by either.
    if [[ $signal = USR1 && $code =~ ^13[78]$ ]]; then code=75; fi
  else
    code=75
  fi

  # A new start mends what dps-train supervise would start again: 75, stopped; 5, a rank was lost; above 128, a signal's death, but for an interrupt.
  if [[ $code -ne 75 && $code -ne 5 && ($code -le 128 || $code -eq 130) ]]; then
    rm -f "$counter"
    exit "$code"
  fi
  [ "$signal" != TERM ] || exit "$code"

  # For the next run to record; a study that was stopped has written of that itself.
  "$dps_train" ended "$output" --code "$code" || true
  after=$("$dps_train" status --progress "$output" 2>/dev/null) || after=none
  if [ "$before" = "$after" ]; then
    stalls=$(($(count_in "$counter") + 1))
    # Without a count the job would be requeued for ever.
    put_count "$stalls" "$counter" || exit "$code"
  else
    rm -f "$counter"
  fi
  if [ "$stalls" -ge "$DPS_STALLS" ]; then
    local advice="look at the log above"
    [ "$code" -ne 75 ] || advice="give the job more time than a first step takes"
    echo "given up: ended $stalls times in a row without progress ($after), with exit code $code at last; $advice, and submit it again" >&2
    exit "$code"
  fi
  # Slurm may end this shell before scontrol has answered.
  echo "$(date -u +%FT%TZ) to be requeued after exit code $code at: $after"
  scontrol requeue "$SLURM_JOB_ID" || echo "scontrol could not have the job requeued, for the reason above: submit it again to go on" >&2
  exit "$code"
}
