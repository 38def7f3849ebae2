#!/bin/bash
# Submits a study: a job array with a task a cell, and a job after it that puts the results together and reports on them.
#
#   slurm/submit.sh [sbatch options --] CONFIG [dps-train options]
#   slurm/submit.sh configs/quickstart.toml
#   slurm/submit.sh --partition=gpu --time=08:00:00 -- configs/mnist-simple-cnn-sgd.toml --data /scratch/data
#
# Prints the two jobs' numbers. Submitting a study again goes on with it: cells that are measured are not measured again.
#
# Environment: DPS_TRAIN and DPS_REPORT (the programs), DPS_LAUNCH and DPS_STALLS (continue.bash), DPS_AT_ONCE (tasks at a time, default all),
# DPS_RESULTS (folder of the results, default results), and sbatch's own SBATCH_PARTITION, SBATCH_ACCOUNT and so on, which both jobs heed, as they do
# --partition, --account, --qos and --clusters. Other options of sbatch are for the array alone.
set -euo pipefail

options=()
for word; do
  if [ "$word" = -- ]; then
    while [ "$1" != -- ]; do
      options+=("$1")
      shift
    done
    shift
    break
  fi
done
usage="usage: submit.sh [sbatch options --] CONFIG [dps-train options]"
if [[ $# = 1 && $1 =~ ^(-h|--help)$ ]]; then
  echo "$usage"
  exit
fi
if [ $# -lt 1 ]; then
  echo "$usage" >&2
  exit 2
fi
if [[ $1 = -* ]]; then
  echo "expected CONFIG, found $1; -- goes between sbatch's options and CONFIG: submit.sh [sbatch options --] CONFIG [dps-train options]" >&2
  exit 2
fi
DPS_SLURM=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export DPS_SLURM
. "$DPS_SLURM/options.bash"
check_options "$@"
cells=$("${DPS_TRAIN:-dps-train}" "$@" --cells)
if line=$(grep -Evm 1 '^[0-9]+ [0-9]+ [0-9][0-9.e-]* [0-9]+$' <<<"$cells"); then
  echo "expected cells as number, batch size, sparsity and trials from ${DPS_TRAIN:-dps-train} --cells, found '$line': set DPS_TRAIN to the program of this version" >&2
  exit 2
fi
last=$(($(wc -l <<<"$cells") - 1))
results=${DPS_RESULTS:-results}
name=$(basename "$1" .toml)
parts=$results/$name.parts
if [ -e "$results/$name.journal" ]; then
  echo "expected no study at $results/$name.h5, to which the report job merges the cells, found $results/$name.journal of one; move $results/$name.h5 and $results/$name.journal away, and the report job makes the file anew from the cells in $parts, or set DPS_RESULTS to another folder" >&2
  exit 7
fi
mkdir -p "$parts"
# Where the array runs and who pays for it holds for the report too.
both=()
for place in "${!options[@]}"; do
  case ${options[place]} in
  --partition=* | --account=* | --qos=* | --clusters=* | -[pAqM]?*) both+=("${options[place]}") ;;
  --partition | --account | --qos | --clusters | -[pAqM]) both+=("${options[@]:place:2}") ;;
  esac
done

array=$(sbatch --parsable --job-name="$name" --output="$parts/%a.log" --array="0-$last${DPS_AT_ONCE:+%$DPS_AT_ONCE}" ${options[@]+"${options[@]}"} \
  "$DPS_SLURM/study.sbatch" "$parts" "$@")
# Some clusters print job;cluster.
array=${array%%;*}
report=$(sbatch --parsable --job-name="$name-report" --output="$parts/report.log" --dependency="afterany:$array" ${both[@]+"${both[@]}"} \
  "$DPS_SLURM/report.sbatch" "$parts" "$results/$name.h5" "$@") || {
  echo "array $array is submitted, but not the report after it: scancel $array, or submit slurm/report.sbatch by hand (docs/cluster.md)" >&2
  exit 1
}
echo "array $array, report ${report%%;*}"
