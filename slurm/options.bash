# Sourced by submit.sh and study.sbatch: what a job array decides itself may not be among the options of dps-train.

# check_options CONFIG [OPTION…]: ends with 2 and a sentence where an option names cells, an output or a fresh start.
check_options() {
  local config=$1 word
  shift
  for word; do
    case $word in --batch-size* | --sparsity* | --output* | -o* | --fresh)
      echo "expected the cells from $config and an output of the array's own, found $word: leave it out, or use --set grid.batch_sizes=… and the like" >&2
      exit 2
      ;;
    esac
  done
}
