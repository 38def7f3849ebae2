#!/usr/bin/env python3
"""Reads an export in the layout of Shallue et al.'s data as their loader does, with Python's library alone: check_shallue.py FOLDER.

Prints the steps-to-result of every workload, batch size by batch size: those of the first measurement, by step and then by trial, whose validation error is
below the goal. Exits with 0 where they are what the exporting program says, and every trial is sound."""

import csv
import json
import pathlib
import sys

COMPLETE = {"complete", "incomplete"}


def check(condition, problem):
    if not condition:
        sys.exit(f"{sys.argv[1]}: {problem}")


def measurements(trial):
    """(step, validation error) of whole evaluations; of the others there is no error."""
    with open(trial / "measurements.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    steps = [int(row["step"]) for row in rows]
    check(steps == sorted(set(steps)), f"{trial}: steps are not in order")
    return [(int(row["step"]), float(row["val/classification_error"])) for row in rows if row["val/classification_error"]]


def steps_to_result(folder, study):
    goal, found = study["dps"]["strict_goal_error"], []
    trials = sorted((place for place in folder.iterdir() if place.is_dir()), key=lambda place: int(place.name))
    check(trials, f"{folder}: no trials")
    for place in trials:
        trial = json.loads((place / "metadata.json").read_text())
        check(trial["trial_id"] == int(place.name), f"{place}: calls itself trial {trial['trial_id']}")
        check(set(trial["parameters"]) == set(study["parameter_configs"]), f"{place}: other metaparameters than its study's")
        ended = trial["dps"]["status"]
        expected = "COMPLETE" if ended in COMPLETE else "INFEASIBLE" if ended == "infeasible" else "INCOMPLETE"
        check(trial["status"] == expected, f"{place}: {ended} is exported as {trial['status']}")
        check(trial["steps"] <= study["train_steps"], f"{place}: more steps than the study has")
        found += [(step, trial["trial_id"]) for step, error in measurements(place) if error < goal]
    return min(found)[0] if found else None


def main():
    studies = sorted(pathlib.Path(sys.argv[1]).glob("*/*/*/*/study.json"), key=lambda path: (*path.parts[:-2], int(path.parts[-2])))
    check(studies, "no study.json four folders down")
    for path in studies:
        folder, study = path.parent, json.loads(path.read_text())
        dataset, model, optimizer, batch_size = folder.parts[-4:]
        check((study["dataset"], study["model"], study["optimizer"], str(study["batch_size"])) == (dataset, model, optimizer, batch_size), f"{path}: of another folder")
        steps = steps_to_result(folder, study)
        check(steps == study["dps"]["steps_to_result"], f"{path}: {steps} steps to the goal, where the program says {study['dps']['steps_to_result']}")
        print(f"{dataset}/{model}/{optimizer}, batch size {batch_size}: {steps} steps")


if __name__ == "__main__":
    main()
