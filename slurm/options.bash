# Sourced by submit.sh and continue.bash: settings and options that would go wrong in the queue end here with 2 and a sentence.

if ! [[ ${DPS_STALLS:=3} =~ ^[1-9][0-9]{0,5}$ ]]; then
  echo "expected DPS_STALLS to be a whole number from 1 on, found ${DPS_STALLS@Q}: set how many runs in a row may end without progress" >&2
  exit 2
fi

# check_options CONFIG [OPTION…]: a job array itself decides on cells, an output and a fresh start, and help or a version is no study.
check_options() {
  local config=$1 word
  shift
  for word; do
    # -[qv]*[ohV]*: short options in one word.
    case $word in --batch-size* | --sparsity* | --output* | -o* | -[qv]*[ohV]* | --fresh | --help | -h* | --version | -V*)
      echo "expected options of a study with the cells from $config and an output of the array's own, found $word: leave it out, or use --set grid.batch_sizes=… and the like" >&2
      exit 2
      ;;
    esac
  done
}
