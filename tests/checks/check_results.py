#!/usr/bin/env python3
"""Checks a result file with h5py alone, independently of the program that wrote it: check_results.py FILE.

Prints one line and exits with 0 where the file is sound and has at least one complete cell, else says what is wrong and exits with 1."""

import math
import sys
import tomllib

import h5py

STATUS = {"complete": 0, "incomplete": 1, "infeasible": 2, "censored": 3}
ENDING = {"first": 0, "finished": 1, "stopped": 2, "rank_lost": 3, "killed": 4, "failed": 5, "unknown": 6}


def check(condition, problem):
    if not condition:
        sys.exit(f"{sys.argv[1]}: {problem}")


def check_trial(trial, curve, workload, name):
    steps, every = int(trial["steps"]), int(workload["evaluate_every"])
    check((steps >= 0) == (trial["status"] == STATUS["complete"]), f"{name}: status {trial['status']} with {steps} steps")
    check(all(a < b for a, b in zip(curve["step"], curve["step"][1:])), f"{name}: evaluations out of order")
    check(all(curve["examples"] <= workload["validation_examples"]), f"{name}: more examples than the validation set has")
    check(all(curve["errors"] <= curve["examples"]), f"{name}: more errors than examples")
    check(trial["steps_run"] <= workload["max_steps"], f"{name}: ran {trial['steps_run']} steps, past the budget")
    full = curve[curve["examples"] == workload["validation_examples"]]
    reached = full["step"][full["errors"] <= workload["goal_threshold"]]
    if steps >= 0:
        check(steps % every == 0, f"{name}: goal at step {steps}, not a multiple of {every}")
        check(len(reached) > 0 and reached[0] == steps, f"{name}: goal at step {steps}, but the curve reaches it at {list(reached[:1])}")
    else:
        check(len(reached) == 0, f"{name}: reached the goal at step {list(reached[:1])}, but is not complete")


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


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_results.py FILE")
    with h5py.File(sys.argv[1], "r") as file:
        check(file.attrs.get("schema") == b"dps-results", "its attribute schema is not dps-results")
        check(file.attrs["schema_version"] == 3, f"schema version {file.attrs['schema_version']}, expected 3")
        workload = dict(file["workload"].attrs)
        configuration = tomllib.loads(file["configuration"].attrs["toml"].decode())
        configured, search = configuration["workload"], configuration["search"]
        for key in ("goal_error", "max_steps", "evaluate_every"):
            check(configured[key] == workload[key], f"{key} is {workload[key]}, the configuration says {configured[key]}")
        enum = h5py.check_enum_dtype(file["trials"].dtype["status"])
        check(enum == STATUS, f"the statuses are {enum}, expected {STATUS}")
        cells, trials, curves = file["cells"][:], file["trials"][:], file["curves"][:]
        confirmations = file["confirmations"][:] if "confirmations" in file else []
        environment = {name: text.decode() for name, text in file["environment"].attrs.items() if isinstance(text, bytes)}
        check(environment["compiler"].startswith("rustc "), f"the compiler is {environment['compiler']!r}")
        check(environment["source_tree"] in ("clean", "modified", "unknown"), f"the source tree is {environment['source_tree']!r}")
        check(environment["processor"], "the processor has no name")
        check("dps-train" in environment["command_line"], f"the command line is {environment['command_line']!r}")
        for table in (file[name] for name in ("cells", "trials", "curves", "starts")):
            for name in ("units", "long_name"):
                texts = list(table.attrs[name])
                check(len(texts) == len(table.dtype.names), f"{table.name} has {len(texts)} {name} for {len(table.dtype.names)} columns")
                check(all(isinstance(text, str) for text in texts), f"the {name} of {table.name} are {texts[0]!r} …, no text")
        check(all(isinstance(column.attrs["units"], str) for column in file["metaparameters"].values()), "a metaparameter has no unit")
        starts = file["starts"][:]
        enum = h5py.check_enum_dtype(starts.dtype["before"])
        check(enum == ENDING, f"the endings are {enum}, expected {ENDING}")
        metaparameters = {name: column[:] for name, column in file["metaparameters"].items()}

    check(len(starts) > 0, "/starts has no rows")
    check(list(starts["number"]) == list(range(len(starts))), f"/starts has the numbers {list(starts['number'])}")
    for start in starts:
        check((start["before"] == ENDING["first"]) == (start["number"] == 0), f"start {start['number']} follows ending {start['before']}")
        check(start["began"] > 1.7e15 and start["ranks"] > 0, f"start {start['number']}: no time or no ranks")
        # A program that recorded no starts measured the file, and another one confirmed it.
        is_unrecorded = start["number"] == 0 and len(starts) > 1
        check(start["hosts"] > 0 or is_unrecorded, f"start {start['number']}: no hosts")
    check(metaparameters.keys() == search.keys() - {"sobol"}, f"/metaparameters has {sorted(metaparameters)}, not what the configuration searches")
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
        check_trial(trial, curves[end - int(trial["curve_length"]) : end], workload, name)
    for one in confirmations:
        name = f"cell {one['cell']}, confirmation {one['number']} of point {one['point']}"
        check(one["curve_start"] == end, f"{name}: its curve starts at row {one['curve_start']}, expected {end}")
        curve = curves[end : end + int(one["curve_length"])]
        end += int(one["curve_length"])
        check(all(curve["step"] % one["evaluate_every"] == 0), f"{name}: evaluated at other steps than multiples of {one['evaluate_every']}")
        check(one["steps"] in (-1, *curve["step"]), f"{name}: reached the goal at step {one['steps']}, where it was not evaluated")
        check(max(one["weight_seed"], one["order_seed"]) >= 2**31, f"{name}: no seed of it is fresh")
        owner = trials[(trials["cell"] == one["cell"]) & (trials["trial"] == one["point"])]
        check(len(owner) == 1 and owner["steps"][0] >= 0, f"{name}: no trial that reached the goal has its metaparameters")
    check(end == len(curves), f"{len(curves) - end} rows of /curves belong to no trial and no confirmation")
    check(all(trials["cell"] < len(cells)), "a trial belongs to no cell")
    for row, cell in enumerate(cells):
        name = f"cell {row} (batch size {cell['batch_size']}, sparsity {cell['sparsity']:g})"
        check(cell["batch_size"] > 0 and 0 <= cell["sparsity"] < 1, f"{name}: no such cell can be")
        check(math.isfinite(cell["seconds"]), f"{name}: took {cell['seconds']} seconds")
        check_cell(cell, int((trials["cell"] < row).sum()), trials[trials["cell"] == row], workload, name)

    reached = int((cells["steps_to_result"] >= 0).sum())
    check(reached > 0, f"no trial of {len(cells)} cells reached the goal")
    print(f"{sys.argv[1]}: {reached} of {len(cells)} cells reached the goal; {len(trials)} trials, {len(curves)} evaluations: all consistent")


if __name__ == "__main__":
    try:
        main()
    except (KeyError, ValueError, OSError, MemoryError) as error:
        sys.exit(f"{sys.argv[1]}: a table, column, attribute or setting is missing or unreadable: {error}")
