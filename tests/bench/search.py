"""Whether a search finds faster points by more trials in a box around its best ones, and by confirming more points with fewer seeds first.

    search.py FOLDER STUDIES [--quick]

FOLDER has dps-train. STUDIES is the folder for the result files; what lies there is not measured again. Each cell has 100 trials in the search space
of the paper (learning rate and momentum). Then 24 more trials, those after the hundred, are drawn from the whole space, or from a box: the ranges of
the best three points, widened on each side by a tenth of the space, the distance between neighbours of 100 points. A plan confirms the three
points with the fewest steps of its trials with 16 fresh seeds. Confirmed steps are the geometric mean that dps-report has: the point is chosen by
one half of the seeds and measured by the other, both ways round. A training that fails counts as four times the steps-to-result of its search.
"""

import argparse
import math
import subprocess
from pathlib import Path
from statistics import geometric_mean, median, stdev

import h5py

# The search space of the paper, as (least, greatest, scale).
SPACE = {"learning_rate": (1e-4, 1.0, "log"), "momentum": (0.9, 0.9999, "reverse-log")}
CELLS = [
    (network, batch, sparsity, goal)
    for network, batch, goal in [("simple-cnn", 32, 0.18), ("lenet-300-100", 256, 0.16)]
    for sparsity in (0, 0.9)
]
TRIALS, MORE, SEEDS, BEST = 100, 24, 16, 3
# Student's t of a 95 % interval of the mean of four cells.
T_OF_3 = 3.182
# Points, and seeds of each, of which the best three go on to all seeds.
CANDIDATES, FIRST_SEEDS = 8, 4


def on_scale(value, scale):
    return math.log(1 - value if scale == "reverse-log" else value)


def off_scale(value, scale):
    return 1 - math.exp(value) if scale == "reverse-log" else math.exp(value)


def box(points):
    """The ranges of `points`, widened by a tenth of the space on each side, and within it."""
    ranges = {}
    for name, (least, greatest, scale) in SPACE.items():
        ends = sorted((on_scale(least, scale), on_scale(greatest, scale)))
        margin = (ends[1] - ends[0]) / math.sqrt(TRIALS)
        at = [on_scale(point[name], scale) for point in points]
        inner = max(min(at) - margin, ends[0]), min(max(at) + margin, ends[1])
        ranges[name] = (*sorted(off_scale(end, scale) for end in inner), scale)
    return ranges


def measure(programs, file, cell, ranges, first, trials, points, seeds):
    """The result file of `trials` trials from the number `first` on in `ranges`, of which `points` points are confirmed."""
    network, batch, sparsity, goal = cell
    if not file.with_suffix(".done").exists():
        toml = file.with_suffix(".toml")
        lines = [f'{name} = {{ min = {least!r}, max = {greatest!r}, scale = "{scale}" }}' for name, (least, greatest, scale) in ranges.items()]
        toml.write_text(
            f"""[workload]
dataset = "fashion-mnist"
network = "{network}"
optimizer = "momentum"
goal_error = {goal}
max_steps = 4_000
evaluate_every = 8

[grid]
batch_sizes = [{batch}]
sparsities = [{sparsity}]
trials = {trials}

[pruning]
examples = 6_000

[search]
first_trial = {first}
"""
            + "\n".join(lines)
            + f"""

[execution]
race = 2

[confirm]
points = {points}
seeds = {seeds}
"""
        )
        subprocess.run([programs / "dps-train", toml, "-o", file, "--threads", "1", "--quiet"], check=True)
        file.with_suffix(".done").touch()
    return h5py.File(file)


class Found:
    """The complete trials of a result file, the fewest steps first, each with its point and the steps of its confirmations by seed."""

    def __init__(self, file):
        trials, confirmations = file["trials"][:], file["confirmations"][:]
        complete = h5py.check_enum_dtype(file["trials"].dtype["status"])["complete"]
        self.fewest = min(trials["steps"][trials["status"] == complete])
        values = {name: file["metaparameters"][name][:] for name in SPACE}
        self.trials = []
        for row, trial in enumerate(trials):
            if trial["status"] != complete:
                continue
            runs = confirmations[confirmations["point"] == trial["trial"]]
            steps = {int(run["number"]): float(run["steps"]) if run["status"] == complete else math.inf for run in runs}
            point = {name: float(value[row]) for name, value in values.items()}
            self.trials.append((int(trial["steps"]), int(trial["trial"]), point, steps))
        self.trials.sort(key=lambda trial: trial[:2])


def confirmed(points, numbers, limit):
    """The geometric mean of the steps of the points that each half of the seeds `numbers` chooses, measured by the other half."""
    halves = numbers[::2], numbers[1::2]
    measured = []
    for chosen_by, measured_by in (halves, halves[::-1]):
        best = min(points, key=lambda steps: (median(steps[number] for number in chosen_by), list(steps.values())))
        measured += [min(best[number], limit) for number in measured_by]
    return geometric_mean(measured)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=Path)
    parser.add_argument("studies", type=Path)
    parser.add_argument("--quick", action="store_true", help="one cell of few trials, to show that it works")
    options = parser.parse_args()
    options.studies.mkdir(parents=True, exist_ok=True)
    trials, more = (16, 8) if options.quick else (TRIALS, MORE)
    rows = []
    for cell in CELLS[2:3] if options.quick else CELLS:
        network, batch, sparsity, _ = cell

        def study(name, ranges, first, count, points):
            file = options.studies / f"{network}-{batch}-{sparsity}-{name}-{count}-trials-{points}-points-{SEEDS}-seeds.h5"
            return Found(measure(options.programs, file, cell, ranges, first, count, points, SEEDS))

        base = study("base", SPACE, 0, trials, CANDIDATES)
        whole = study("whole", SPACE, trials, more, BEST)
        boxed = study("box", box([point for _, _, point, _ in base.trials[:BEST]]), trials, more, BEST)
        limit = 4.0 * base.fewest

        def best_of(*searches):
            found = sorted((trial for search in searches for trial in search.trials), key=lambda trial: trial[:2])[:BEST]
            return [steps for _, _, _, steps in found]

        seeds = list(range(SEEDS))
        one, two, three = (confirmed(best_of(*searches), seeds, limit) for searches in ((base,), (base, whole), (base, boxed)))
        candidates = [steps for _, _, _, steps in base.trials[:CANDIDATES] if len(steps) == SEEDS]
        first, rest = seeds[:FIRST_SEEDS], seeds[FIRST_SEEDS:]
        sieved = sorted(candidates, key=lambda steps: geometric_mean([min(steps[number], limit) for number in first]))[:BEST]
        four, five = confirmed(best_of(base), rest, limit), confirmed(sieved, rest, limit)
        rows.append((f"{network}, {batch}, {sparsity}", base.fewest, one, two, three, len(candidates), four, five))
    print(
        f"| network, batch size, sparsity | K* | {trials} trials | and {more} of the whole space | and {more} in the box | candidates | "
        f"three points | three of the candidates |\n|---|---|---|---|---|---|---|---|"
    )
    for name, fewest, one, two, three, count, four, five in rows:
        steps = f"{one:,.0f} | {two:,.0f} ({two / one:.2f}) | {three:,.0f} ({three / one:.2f})"
        print(f"| {name} | {fewest:,} | {steps} | {count} | {four:,.0f} | {five:,.0f} ({five / four:.2f}) |")
    if len(rows) > 1:
        for words, ratios in [
            ("the box : the whole space", [row[4] / row[3] for row in rows]),
            (f"three of {CANDIDATES} : three", [row[7] / row[6] for row in rows]),
        ]:
            middle, width = geometric_mean(ratios), T_OF_3 * stdev(map(math.log, ratios)) / math.sqrt(len(ratios))
            print(f"{words}: geometric mean {middle:.3f}, 95 % interval {middle * math.exp(-width):.3f} to {middle * math.exp(width):.3f}")


if __name__ == "__main__":
    main()
