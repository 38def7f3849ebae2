"""Whether steps to the goal are the same with `execution.convolutions = "winograd"` as with "direct", and what a step takes with each.

    convolutions.py FOLDER STUDIES [--seeds N]

FOLDER has dps-train. STUDIES is the folder for the result files; what was measured there is not measured again. One point of the metaparameters, the
best one of MNIST with Simple-CNN and Momentum at batch size 256, dense, is trained with N = 30 seeds to the goal error 0.02 with each value. Both run
at once, a thread each on a core of its own, so that other programs slow both alike. Seeds are paired.
"""

import argparse
import math
import os
import subprocess
from pathlib import Path
from statistics import median

import h5py
from scipy.stats import mannwhitneyu, ttest_1samp

VALUES = ("direct", "winograd")
CONFIGURATION = """
[workload]
dataset = "mnist"
network = "simple-cnn"
optimizer = "momentum"
schedule = "constant"
goal_error = 0.02
goal_comparison = "integers"
max_steps = 40_000
evaluate_every = 16

[grid]
batch_sizes = [256]
sparsities = [0]
trials = {seeds}

[search]
# Trial 64 of the paper's hundred points; a range needs two ends.
learning_rate = {{ min = 0.01240937, max = 0.01240938, scale = "log" }}
momentum = {{ min = 0.95041931, max = 0.95041932, scale = "reverse-log" }}

[execution]
race = 4 # nearly every seed gets there
convolutions = "{value}"
"""


def start(program, folder, value, seeds, core):
    """The training of all seeds with `value`; dps-train goes on where it was stopped, and does nothing where it was done."""
    toml = folder / f"{value}.toml"
    toml.write_text(CONFIGURATION.format(value=value, seeds=seeds))
    command = [program, toml, "--output", toml.with_suffix(".h5"), "--threads", "1", "--progress", "none"]
    return subprocess.Popen(["taskset", "--cpu-list", str(core), *command], stdout=subprocess.DEVNULL)


def measured(folder, value):
    """Steps to the goal of each seed (infinite: not there), and the seconds of a step with its share of evaluations."""
    with h5py.File(folder / f"{value}.h5") as file:
        trials = file["trials"][:]
    steps = [float(steps) if status == 0 else math.inf for status, steps in zip(trials["status"], trials["steps"])]
    return steps, trials["seconds"].sum() / trials["steps_run"].sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("studies", type=Path)
    parser.add_argument("--seeds", type=int, default=30)
    options = parser.parse_args()
    options.studies.mkdir(parents=True, exist_ok=True)
    cores = sorted(os.sched_getaffinity(0))
    runs = [start(options.folder / "dps-train", options.studies, value, options.seeds, cores[place % len(cores)]) for place, value in enumerate(VALUES)]
    for value, run in zip(VALUES, runs):
        if run.wait():
            for other in runs:
                other.terminate()
            raise SystemExit(f"dps-train ended with exit code {run.returncode} for {value}: what it said stands above.")
    (direct, slow), (winograd, fast) = (measured(options.studies, value) for value in VALUES)
    for value, steps in zip(VALUES, (direct, winograd)):
        print(f"{value}: {len(steps)} seeds, {steps.count(math.inf)} not there, median {median(steps):,.0f} steps")
    pairs = [math.log(ours / theirs) for ours, theirs in zip(winograd, direct) if math.isfinite(ours) and math.isfinite(theirs)]
    low, high = map(math.exp, ttest_1samp(pairs, 0).confidence_interval())
    print(f"steps, winograd over direct, by seed: {math.sqrt(low * high):.3f} ({low:.3f} to {high:.3f})")
    print(f"Mann-Whitney: p = {mannwhitneyu(direct, winograd).pvalue:.2f}")
    print(f"seconds a step, with its evaluations: {slow:.4f} and {fast:.4f}, ratio {fast / slow:.2f}")


if __name__ == "__main__":
    main()
