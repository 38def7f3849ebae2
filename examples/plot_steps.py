#!/usr/bin/env python3
"""Prints and plots a study's steps-to-result: plot_steps.py RESULT.h5 [FIGURE.png].

The figure shows steps-to-result against batch size, one line for each sparsity. Needs h5py, matplotlib and numpy. docs/results.md names what a
result file holds."""

import sys

import h5py
import matplotlib.pyplot as plt
import numpy as np

if len(sys.argv) not in (2, 3):
    sys.exit(__doc__)
figure = sys.argv[2] if len(sys.argv) == 3 else "steps-to-result.png"

with h5py.File(sys.argv[1]) as file:
    cells = file["cells"][:]
    goal = file["workload"].attrs["goal_error"]

for sparsity in np.unique(cells["sparsity"]):
    line = np.sort(cells[cells["sparsity"] == sparsity], order="batch_size")
    # -1 stands for a cell in which no trial reached the goal.
    for cell in line:
        steps = f"{cell['steps_to_result']} steps" if cell["steps_to_result"] >= 0 else "no trial reached the goal"
        print(f"sparsity {sparsity:g}, batch size {cell['batch_size']}: {steps}")
    line = line[line["steps_to_result"] >= 0]
    plt.loglog(line["batch_size"], line["steps_to_result"], "o-", base=2, label=f"sparsity {sparsity:g}")

plt.xlabel("Batch size")
plt.ylabel(f"Steps to a validation error of at most {goal:g}")
plt.legend()
plt.savefig(figure)
print(f"Figure: {figure}")
