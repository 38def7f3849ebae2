#!/usr/bin/env python3
"""Reads data in the layout of Shallue et al. by the rules of their analysis: check_shallue.py FOLDER [RESULT.h5…] [--goal ERROR].

Their rules: a workload's folder holds one folder a batch size, a study's one a trial, both named by whole numbers; only trials that are COMPLETE are
read; the steps-to-result of a batch size are those of the first measurement, by step and then by trial, whose validation error is strictly below the
goal.

Prints every workload's steps-to-result. Of an export of dps-report it checks that they, and the trials they belong to, are what the export says and,
where result files are given, what these say; and that every trial is sound. Of other data, as their own, nothing is known to compare with: give a
goal."""

import argparse
import csv
import json
import pathlib
import sys

# Names of a trial's end there.
STATUS = {"complete": "COMPLETE", "incomplete": "COMPLETE", "censored": "INCOMPLETE", "infeasible": "INFEASIBLE"}


def check(condition, problem):
    if not condition:
        sys.exit(f"{arguments.folder}: {problem}")


def numbered(folder):
    places = [place for place in folder.iterdir() if place.is_dir()]
    check(places, f"no folders in {folder}")
    check(all(place.name.isdigit() for place in places), f"{folder}: a folder's name is no number")
    return sorted(places, key=lambda place: int(place.name))


def measurements(place):
    """(step, validation error) of a trial; nan, which is below nothing, where an evaluation has no error."""
    with open(place / "measurements.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    steps = [int(row["step"]) for row in rows]
    check(steps == sorted(set(steps)), f"{place}: steps are not in order")
    return [(step, float(row["val/classification_error"] or "nan")) for step, row in zip(steps, rows)]


def steps_to_result(folder, study, goal):
    """(steps, trial), or None where no trial gets below the goal."""
    found, loaded = [], 0
    for place in numbered(folder):
        trial = json.loads((place / "metadata.json").read_text())
        check(trial["trial_id"] == int(place.name), f"{place}: calls itself trial {trial['trial_id']}")
        check(set(trial["parameters"]) == set(study["parameter_configs"]), f"{place}: other metaparameters than its study's")
        if "dps" in study:
            ended = trial["dps"]["status"]
            check(trial["status"] == STATUS[ended], f"{place}: {ended} is exported as {trial['status']}")
            check(trial["steps"] <= study["train_steps"], f"{place}: more steps than the study has")
        below = [(step, trial["trial_id"]) for step, error in measurements(place) if error < goal]
        if trial["status"] == "COMPLETE":
            loaded += 1
            found += below
        else:
            check("dps" not in study or arguments.goal is not None or not below, f"{place}: below the goal and not COMPLETE")
    # The loader of Shallue et al. fails on a study without a COMPLETE trial; ours has none where every trial diverged.
    check(loaded or "dps" in study, f"{folder}: no COMPLETE trial")
    return min(found, default=None)


def recorded(path):
    """(dataset, network, optimizer, batch size, sparsity) → (steps, trial) or None, of a result file."""
    import h5py

    with h5py.File(path) as file:
        workload, cells = file["workload"].attrs, file["cells"][:]
        names = [bytes(workload[name]).decode().replace("-", "_").replace(" ", "_") for name in ("dataset", "network", "optimizer")]
    steps = lambda cell: (int(cell["steps_to_result"]), int(cell["best_trial"])) if cell["steps_to_result"] >= 0 else None
    return {(*names, int(cell["batch_size"]), float(cell["sparsity"])): steps(cell) for cell in cells}


def main():
    expected = {key: value for path in arguments.results for key, value in recorded(path).items()}
    unseen = set(expected)
    workloads = sorted({path.parent.parent for path in pathlib.Path(arguments.folder).rglob("study.json")})
    check(workloads, "no study.json below it")
    for workload in workloads:
        for folder in numbered(workload):
            study = json.loads((folder / "study.json").read_text())
            dataset, model, optimizer, batch_size = folder.parts[-4:]
            check(str(study["batch_size"]) == batch_size and study["optimizer"] == optimizer, f"{folder}: its study.json is of another folder")
            ours = study.get("dps")
            check(ours or arguments.goal is not None, f"{folder}: no goal in study.json; give --goal")
            goal = arguments.goal if arguments.goal is not None else ours["strict_goal_error"]
            found = steps_to_result(folder, study, goal)
            steps = found[0] if found else None
            if ours and arguments.goal is None:
                check(study["dataset"] == dataset and study["model"] == model, f"{folder}: its study.json is of another folder")
                check(steps == ours["steps_to_result"], f"{folder}: {steps} steps to the goal, where the program says {ours['steps_to_result']}")
            if expected and not (ours and ours["confirmations"]):
                network, sparsity = model.removesuffix(f"_sparsity_{ours['sparsity']}"), float(ours["sparsity"])
                key = (dataset, network, "nesterov" if optimizer == "nesterov_momentum" else optimizer, int(batch_size), sparsity)
                check(key in expected, f"{folder}: in none of the result files")
                check(found == expected[key], f"{folder}: (steps, trial) {found}, where the result file has {expected[key]}")
                unseen.discard(key)
            print(f"{workload.relative_to(arguments.folder)}, batch size {batch_size}: {'no trial reached the goal' if found is None else f'{steps} steps, trial {found[1]}'}")
    check(not unseen, f"without cells of the result files: {sorted(unseen)}")
    if expected:
        print(f"{len(expected)} cells: the same steps-to-result and trials as in the result files")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("results", nargs="*", metavar="RESULT.h5")
    parser.add_argument("--goal", type=float, help="validation error to get below, instead of an export's own")
    arguments = parser.parse_args()
    main()
