# Checks of the programs in a place where they were built; to be sourced. RUN is a function that runs a command there.

# The doctor's line that fits a pattern. The doctor ends with 3 where there is no data set.
doctor() { # RUN PATTERN
  { "$1" dps-train doctor || [ $? = 3 ]; } | grep -E "$2"
}

# A study on two ranks, and its report.
ranks() { # RUN CONFIGS DATA
  "$1" sh -c "mpirun --oversubscribe -n 2 dps-train $2/examples/own-data-digits.toml --data $3 --batch-size 32 --sparsity 0,0.9 --trials 2 \
    --set workload.max_steps=200 --quiet -o digits.h5 && dps-report digits.h5" | grep '^Report'
}
