#!/usr/bin/env python3
"""Checks that examples/log_events.py told TensorBoard each cell's steps-to-result: check_events.py FOLDER RESULT.h5."""

import pathlib
import sys

import h5py
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

folder, result = sys.argv[1:]
with h5py.File(result) as file:
    cells = {(int(cell["batch_size"]), float(cell["sparsity"])): int(cell["steps_to_result"]) for cell in file["cells"]}
assert any(steps > 0 for steps in cells.values()), f"{result}: expected a cell that reached its goal, found none"
for (batch_size, sparsity), steps in cells.items():
    (run,) = pathlib.Path(folder).glob(f"*-b{batch_size}-s{sparsity:g}")
    events = EventAccumulator(str(run))
    events.Reload()
    last = {tag: events.Tensors(tag)[-1] for tag in events.Tags()["tensors"]}
    assert last["best_error"].tensor_proto.float_val[0] > 0, f"{batch_size}, {sparsity}: expected an error, found {last['best_error']}"
    told = int(last["steps_to_result"].tensor_proto.float_val[0]) if "steps_to_result" in last else -1
    assert told == steps, f"{batch_size}, {sparsity}: expected steps-to-result {steps} as in {result}, found {told}"
print(f"{folder}: the steps-to-result of {len(cells)} cells are told")
