"""How the cost of a step grows with batch size, trials, ranks, threads and sparsity, and whether `--plan` knows the memory.

    costs.py FOLDER [--quick] [--rounds N] [--turn SECONDS] [--figure FILE.svg] [--json FILE]

FOLDER has dps-train, which runs real studies on real data, in turns. Seconds a step are medians over the rounds; memory is the most that a
rank took (its peak resident set), beside what `--plan` says of the same study. One thread a rank unless it says so.
"""

import argparse
import json
import os
from pathlib import Path

from studies import Stepper, Studies

SWEEPS = {
    "batch size": [dict(batch=batch) for batch in (2, 8, 64, 512, 4096, 16384)],
    "trials at once": [dict(batch=16, trials=trials) for trials in (1, 4, 16, 64, 128)],
    "ranks": [dict(batch=256, ranks=ranks, settings=(f"execution.data_parallel={ranks}",)) for ranks in (1, 2, 3, 4)],
    "sparsity": [dict(batch=64, sparsity=sparsity) for sparsity in (0, 0.5, 0.7, 0.9, 0.95, 0.99)],
    "threads at sparsity 0.9": [dict(batch=batch, sparsity=0.9, threads=threads) for batch in (2, 16, 64) for threads in (1, 2)],
}
# Of these the memory alone is of interest, and a step or two tell it.
MEMORY = [
    dict(batch=2, trials=128, sparsity=0.9),
    dict(batch=128, trials=128, sparsity=0.9, ranks=2),
    dict(batch=128, trials=128, ranks=2),
    dict(batch=128, trials=128, ranks=3),
    dict(batch=128, trials=128, ranks=2, settings=("execution.data_parallel=1",)),
    dict(batch=16, trials=128, settings=("execution.lanes=16",)),
    dict(batch=16384, threads=2),
    dict(batch=2, trials=16, threads=2, settings=("execution.race=false",)),
    dict(batch=16, trials=128, steps=8, settings=("execution.checkpoint_seconds=1",)),
    dict(batch=16, trials=128, steps=8, sparsity=0.9, ranks=2, settings=("execution.checkpoint_seconds=1",)),
    dict(batch=128, network="resnet-8"),
    dict(batch=2, network="resnet-8", trials=64, ranks=2),
    dict(batch=2, network="resnet-8", trials=64, sparsity=0.9, threads=2),
]


def title(case):
    settings = [setting.removeprefix("execution.") for setting in case.get("settings", ())]
    plain = {name: value for name, value in case.items() if name not in ("settings", "network", "steps")}
    return ", ".join([case.get("network", "simple-cnn")] * ("network" in case) + [f"{name} {value:,}" for name, value in plain.items()] + settings)


def memory(row):
    return f"{row['bytes'] / 1e6:>10,.0f}{row['planned'] / 1e6:>10,.0f}{row['planned'] / row['bytes'] - 1:>+8.0%}"


def measure(options, studies):
    cases = {name: [Stepper(studies, **case) for case in sweep] for name, sweep in SWEEPS.items()}
    for _ in range(options.rounds):
        for stepper in (stepper for sweep in cases.values() for stepper in sweep):
            stepper.turn(options.turn)
    rows = {}
    for name, sweep in cases.items():
        rows[name] = []
        for stepper in sweep:
            examples = stepper.case["batch"] * stepper.case.get("trials", 1)
            low, high = min(stepper.times), max(stepper.times)
            row = dict(case=stepper.case, step=stepper.median(), low=low, high=high, image=stepper.median() / examples, bytes=stepper.peak)
            rows[name].append(row | dict(planned=studies.planned_bytes(**stepper.case, steps=2)))
    return rows


def show(rows, remembered):
    print(f"{'':<46}{'ms/step':>10}{'(lowest to highest)':>22}{'µs/image':>10}{'MB seen':>10}{'planned':>10}{'off':>8}")
    for name, sweep in rows.items():
        print(name)
        for row in sweep:
            spread = f"({1e3 * row['low']:,.2f} to {1e3 * row['high']:,.2f})"
            print(f"  {title(row['case']):<44}{1e3 * row['step']:>10,.2f}{spread:>22}{1e6 * row['image']:>10,.1f}{memory(row)}")
    print("memory alone")
    for row in remembered:
        print(f"  {title(row['case']):<86}{memory(row)}")
    pairs = zip(rows["threads at sparsity 0.9"][::2], rows["threads at sparsity 0.9"][1::2])
    slower = [f"{two['step'] / one['step']:.1f} times the step at batch {one['case']['batch']}" for one, two in pairs if two["low"] > one["high"]]
    print("Two threads take no longer than one." if not slower else f"Two threads, with one trial to share, are slower than one: {', '.join(slower)}.")
    everything = [row for sweep in rows.values() for row in sweep] + remembered
    worst = max(everything, key=lambda row: abs(row["planned"] / row["bytes"] - 1))
    print(f"The plan is furthest off, by {worst['planned'] / worst['bytes'] - 1:+.0%}, at {title(worst['case'])}.")


def draw(rows, figure):
    try:
        import matplotlib
    except ModuleNotFoundError:
        print("Missing: matplotlib, so no figure")
        return
    matplotlib.use("svg")
    from matplotlib import pyplot

    keys = {"batch size": "batch", "trials at once": "trials", "ranks": "ranks", "sparsity": "sparsity"}
    _, axes = pyplot.subplots(2, len(keys), figsize=(13, 6), sharex="col", constrained_layout=True)
    for (time, space), (name, key) in zip(axes.T, keys.items()):
        at = [row["case"].get(key, 0 if key == "sparsity" else 1) for row in rows[name]]
        milliseconds = [[1e3 * row[which] for row in rows[name]] for which in ("step", "low", "high")]
        time.plot(at, milliseconds[0], "o-", color="#1f77b4")
        time.fill_between(at, *milliseconds[1:], color="#1f77b4", alpha=0.2)
        space.plot(at, [row["bytes"] / 1e6 for row in rows[name]], "o", color="#d62728", label="seen")
        space.plot(at, [row["planned"] / 1e6 for row in rows[name]], "-", color="#7f7f7f", label="planned")
        if key in ("batch", "trials"):
            time.set_xscale("log", base=2)
            time.set_yscale("log")
        else:
            time.set_ylim(bottom=0)
        space.set_ylim(0, 1.2e-6 * max(row["bytes"] for row in rows[name]))
        space.set_xlabel(name)
        if key == "ranks":
            space.set_xticks(at)
        fixed = {k: v for k, v in rows[name][0]["case"].items() if k not in (key, "settings")}
        time.set_title(title(fixed), fontsize=9)
    axes[0][0].set_ylabel("milliseconds a step")
    axes[1][0].set_ylabel("megabytes a rank")
    axes[1][0].legend(loc="lower right")
    pyplot.savefig(figure)
    print(f"Figure: {figure}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="one round of short turns: to see that it works")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turn", type=float, default=0.4, help="seconds of a turn")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("DPS_DATA", "data")))
    parser.add_argument("--figure", type=Path, default=Path("costs.svg"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.turn = 1, 0.1
    studies = Studies(options.folder, options.data)
    print("\nWhat a step costs, and the memory of a rank (Simple-CNN on Fashion-MNIST unless it says ResNet-8, which is on CIFAR-10)", flush=True)
    rows = measure(options, studies)
    remembered = []
    for case in MEMORY:
        if case.get("network") == "resnet-8" and not (options.data / "cifar-10").exists():
            print(f"Missing: {options.data}/cifar-10, so not {title(case)}")
            continue
        case = {"steps": 1, **case}
        remembered.append(dict(case=case, bytes=studies.run(**case).peak, planned=studies.planned_bytes(**case)))
    show(rows, remembered)
    draw(rows, options.figure)
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "memory": remembered}, indent=1, default=str))


if __name__ == "__main__":
    main()
