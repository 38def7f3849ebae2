#!/usr/bin/env python3
"""Checks result files with h5py alone, independently of the program that wrote them: check_results.py [--self-test] FILE…

Prints a line a file and exits with 0 where all are sound and each has a cell that reached the goal, or is of a study that was stopped before its
first cell. Else it says what is wrong and exits with 1. --self-test also changes one column of the tables after the other, and sees that this is
noticed."""

import contextlib
import math
import shutil
import sys
import tempfile

import h5py
import numpy as np

try:
    import tomllib
except ImportError:  # Python before 3.11
    import tomli as tomllib

STATUS = {"complete": 0, "incomplete": 1, "infeasible": 2, "censored": 3}
ENDING = {"first": 0, "finished": 1, "stopped": 2, "rank_lost": 3, "killed": 4, "failed": 5, "unknown": 6}


# Columns of which the rest of the file says nothing.
UNTOLD = {"seconds", "parameters_kept", "mask_hash", "dead_layers", "weight_seed", "order_seed"}


class Unsound(Exception):
    """The fault of a file."""


def check(condition, problem):
    if not condition:
        raise Unsound(problem)


def same(found, expected):
    return found == expected or (math.isnan(found) and math.isnan(expected))


def check_training(training, curve, every, cells, workload, name):
    """A trial or a confirmation, whose evaluations are every so many steps."""
    steps, run, status = int(training["steps"]), int(training["steps_run"]), training["status"]
    check(training["cell"] < len(cells), f"{name}: it belongs to no cell")
    for column in ("batch_size", "sparsity"):
        check(training[column] == cells[training["cell"]][column], f"{name}: its {column} is {training[column]}, which its cell has not")
    check((steps >= 0) == (status == STATUS["complete"]), f"{name}: status {status} with {steps} steps")
    check(all(curve["step"] == every * np.arange(1, len(curve) + 1)), f"{name}: not evaluated every {every} steps")
    last = int(curve["step"][-1]) if len(curve) else 0
    check(run == last or (status == STATUS["infeasible"] and last < run <= last + every), f"{name}: ran {run} steps, evaluated last after {last}")
    check(all(curve["examples"] <= workload["validation_examples"]), f"{name}: more examples than the validation set has")
    check(all(curve["errors"] <= curve["examples"]), f"{name}: more errors than examples")
    is_full = curve["examples"] == workload["validation_examples"]
    check(all(is_full | (curve["errors"] > workload["goal_threshold"])), f"{name}: an evaluation ended before it was decided")
    full = curve[is_full]
    reached = full["step"][full["errors"] <= workload["goal_threshold"]]
    if steps >= 0:
        check(steps % every == 0, f"{name}: goal at step {steps}, not a multiple of {every}")
        check(len(reached) > 0 and reached[0] == steps, f"{name}: goal at step {steps}, but the curve reaches it at {list(reached[:1])}")
    else:
        check(len(reached) == 0, f"{name}: reached the goal at step {list(reached[:1])}, but is not complete")
    return full


def check_trial(trial, curve, cells, workload, name):
    full = check_training(trial, curve, int(workload["evaluate_every"]), cells, workload, name)
    run, most = trial["steps_run"], workload["max_steps"] // workload["evaluate_every"] * workload["evaluate_every"]
    check(run == most if trial["status"] == STATUS["incomplete"] else run <= most, f"{name}: status {trial['status']} after {run} steps of {most}")
    loss = curve["loss"][-1] if len(curve) else math.nan
    check(same(trial["final_loss"], loss), f"{name}: its final loss is {trial['final_loss']}, its curve ends at {loss}")
    best = full["errors"].min() / workload["validation_examples"] if len(full) else math.nan
    check(same(trial["best_validation_error"], best), f"{name}: its best error is {trial['best_validation_error']}, its curve says {best}")


def check_cell(cell, trials_start, trials, workload, name):
    check(len(trials) == cell["trials"], f"{name}: {cell['trials']} trials claimed, {len(trials)} there")
    for status, number in STATUS.items():
        count = int((trials["status"] == number).sum())
        check(cell[status] == count, f"{name}: {cell[status]} {status} trials claimed, {count} there")
    check(sum(int(cell[status]) for status in STATUS) == cell["trials"], f"{name}: the counts do not add up to its trials")
    complete = trials[trials["status"] == STATUS["complete"]]
    # Fewest steps, then lowest number.
    best = min(((int(trial["steps"]), int(trial["trial"])) for trial in complete), default=(-1, -1))
    found = (int(cell["steps_to_result"]), int(cell["best_trial"]))
    check(found == best, f"{name}: steps-to-result and best trial are {found}, its trials say {best}")
    if best[0] >= 0:
        row = trials_start + int((trials["trial"] == best[1]).argmax())
        check(cell["best_row"] == row, f"{name}: its best trial is said to be in row {cell['best_row']} of /trials, and is in row {row}")
        check(0 <= cell["test_errors"] <= workload["test_examples"], f"{name}: {cell['test_errors']} test errors")
    test_error = cell["test_errors"] / workload["test_examples"] if cell["test_errors"] >= 0 else math.nan
    check(same(cell["test_error"], test_error), f"{name}: its test error is {cell['test_error']}, by its test errors {test_error}")


def check_environment(environment):
    """Checks the program and machine that measured a study. In a merged file each text has those of all parts."""
    for compiler in environment["compiler"].split("; "):
        check(compiler.startswith("rustc "), f"the compiler is {compiler!r}")
    for tree in environment["source_tree"].split("; "):
        check(tree in ("clean", "modified", "unknown"), f"the source tree is {tree!r}")
    check(environment["processor"], "the processor has no name")
    check("dps-train" in environment["command_line"], f"the command line is {environment['command_line']!r}")


def check_starts(starts):
    check(len(starts) > 0, "/starts has no rows")
    numbers = list(starts["number"])
    # Of a merged file each part has numbers of its own.
    check(numbers == list(range(len(numbers))) or numbers.count(0) > 1, f"/starts has the numbers {numbers}")
    for start in starts:
        check((start["before"] == ENDING["first"]) == (start["number"] == 0), f"start {start['number']} follows ending {start['before']}")
        # A program that recorded no starts measured the file, and another one confirmed it.
        is_unrecorded = start["number"] == 0 and len(starts) > 1
        is_known = start["began"] > 1.7e15 and start["ranks"] > 0 and start["hosts"] > 0
        check(is_known or is_unrecorded, f"start {start['number']}: no time, no ranks or no hosts")


def check_file(path):
    """Checks a file; returns the line that is printed of a sound one."""
    with h5py.File(path, "r") as file:
        check(file.attrs.get("schema") == b"dps-results", "its attribute schema is not dps-results")
        check(file.attrs["schema_version"] == 3, f"schema version {file.attrs['schema_version']}, expected 3")
        workload = dict(file["workload"].attrs)
        configuration = tomllib.loads(file["configuration"].attrs["toml"].decode())
        configured, search = configuration["workload"], configuration["search"]
        # Steps beyond the last evaluation are in no budget.
        every = configured["evaluate_every"]
        budget = configured["max_steps"] // every * every
        for key, value in [("goal_error", configured["goal_error"]), ("max_steps", budget), ("evaluate_every", every)]:
            check(value == workload[key], f"{key} is {workload[key]}, by the configuration {value}")
        enum = h5py.check_enum_dtype(file["trials"].dtype["status"])
        check(enum == STATUS, f"the statuses are {enum}, expected {STATUS}")
        cells, trials, curves = file["cells"][:], file["trials"][:], file["curves"][:]
        confirmations = file["confirmations"][:] if "confirmations" in file else []
        is_complete = bool(file.attrs["complete"])
        # Programs before /starts recorded less of where they ran.
        if "starts" in file:
            check_environment({name: text.decode() for name, text in file["environment"].attrs.items() if isinstance(text, bytes)})
            enum = h5py.check_enum_dtype(file["starts"].dtype["before"])
            check(enum == ENDING, f"the endings are {enum}, expected {ENDING}")
            check_starts(file["starts"][:])
        for table in (file[name] for name in ("cells", "trials", "curves", "confirmations", "starts") if name in file):
            for name in ("units", "long_name"):
                texts = list(table.attrs[name])
                check(len(texts) == len(table.dtype.names), f"{table.name} has {len(texts)} {name} for {len(table.dtype.names)} columns")
                check(all(isinstance(text, str) for text in texts), f"the {name} of {table.name} are {texts[0]!r} …, no text")
        check(all(isinstance(column.attrs["units"], str) for column in file["metaparameters"].values()), "a metaparameter has no unit")
        metaparameters = {name: column[:] for name, column in file["metaparameters"].items()}

    searched = search.keys() - {"sobol", "first_trial"} if len(trials) else set()
    check(metaparameters.keys() == searched, f"/metaparameters has {sorted(metaparameters)}, not what the configuration searches")
    for name, values in metaparameters.items():
        check(len(values) == len(trials), f"/metaparameters/{name} has {len(values)} rows, /trials {len(trials)}")
        setting = search[name] if isinstance(search[name], dict) else {"min": search[name], "max": search[name]}
        check(all((setting["min"] <= values) & (values <= setting["max"])), f"/metaparameters/{name} has values outside {search[name]}")
    end = 0
    for trial in trials:
        name = f"cell {trial['cell']}, trial {trial['trial']}"
        check(trial["curve_start"] == end, f"{name}: its curve starts at row {trial['curve_start']}, expected {end}")
        end += int(trial["curve_length"])
        check(end <= len(curves), f"{name}: its curve ends past the table")
        check_trial(trial, curves[end - int(trial["curve_length"]) : end], cells, workload, name)
    numbers, complete = {}, set(trials["trial"][trials["steps"] >= 0])
    for one in confirmations:
        name = f"cell {one['cell']}, confirmation {one['number']} of point {one['point']}"
        check(one["curve_start"] == end, f"{name}: its curve starts at row {one['curve_start']}, expected {end}")
        curve = curves[end : end + int(one["curve_length"])]
        end += int(one["curve_length"])
        check_training(one, curve, int(one["evaluate_every"]), cells, workload, name)
        before = numbers.setdefault((one["cell"], one["point"]), [])
        # Points that were dropped as slower, and trainings that are still to come, leave numbers out.
        check(not before or one["number"] > before[-1], f"{name}: stands behind number {before[-1:]} of that point")
        before.append(one["number"])
        check(max(one["weight_seed"], one["order_seed"]) == 2**31 + int(one["number"]), f"{name}: no seed of it is the fresh one of its number")
        # Of this cell or, with confirm.neighbours, of another.
        check(one["point"] in complete, f"{name}: no trial that reached the goal has its metaparameters")
    check(end == len(curves), f"{len(curves) - end} rows of /curves belong to no trial and no confirmation")
    for row, cell in enumerate(cells):
        name = f"cell {row} (batch size {cell['batch_size']}, sparsity {cell['sparsity']:g})"
        check(cell["batch_size"] > 0 and 0 <= cell["sparsity"] < 1, f"{name}: no such cell can be")
        check(math.isfinite(cell["seconds"]), f"{name}: took {cell['seconds']} seconds")
        check_cell(cell, int((trials["cell"] < row).sum()), trials[trials["cell"] == row], workload, name)

    reached = int((cells["steps_to_result"] >= 0).sum())
    check(reached > 0 or not (len(cells) or is_complete), f"no trial of {len(cells)} cells reached the goal")
    return f"{reached} of {len(cells)} cells reached the goal; {len(trials)} trials, {len(curves)} evaluations: all consistent"


def unnoticed(path):
    """The columns of a sound file that can be changed without a complaint."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(path, folder)
        with h5py.File(copy) as file:
            columns = [
                (name, column)
                for name in ("cells", "trials", "curves", "confirmations")
                if name in file
                for column in file[name].dtype.names
                if column not in UNTOLD
            ]
        for name, column in columns:
            with h5py.File(copy, "r+") as file:
                table = file[name][:]
                changed = table.copy()
                # The next trial may be a point as good.
                changed[column] = 0.123456 if table.dtype[column].kind == "f" else table[column] + (1000 if column == "point" else 1)
                file[name][...] = changed
            with contextlib.suppress(Unsound, KeyError, ValueError, IndexError):
                check_file(copy)
                yield f"{name}.{column}"
            with h5py.File(copy, "r+") as file:
                file[name][...] = table


def main():
    self_test = sys.argv[1:2] == ["--self-test"]
    paths = sys.argv[1 + self_test :]
    if not paths:
        sys.exit("usage: check_results.py [--self-test] FILE…")
    for path in paths:
        try:
            print(f"{path}: {check_file(path)}")
        except Unsound as problem:
            sys.exit(f"{path}: {problem}")
        except (KeyError, ValueError, OSError, MemoryError) as error:
            sys.exit(f"{path}: a table, column, attribute or setting is missing or unreadable: {error}")
        missed = list(unnoticed(path)) if self_test else []
        if missed:
            sys.exit(f"{path}: expected changes of all columns to be noticed, found those of {', '.join(missed)} not: this check misses them")


if __name__ == "__main__":
    main()
