#!/usr/bin/env python3
"""Runs the code of a notebook as Jupyter would, without Jupyter: check_notebook.py NOTEBOOK FOLDER, in a folder with results and report.

Saves what the notebook draws as FOLDER/1.png, 2.png …, and fails where a cell fails or nothing is drawn."""

import json
import pathlib
import sys

import matplotlib.pyplot as plt

folder = pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
drawn = 0


def save():
    global drawn
    assert plt.gca().has_data(), "expected a figure with data, found an empty one"
    drawn += 1
    plt.savefig(folder / f"{drawn}.png")
    plt.close()


plt.show = save
namespace = {}
for number, cell in enumerate(json.loads(pathlib.Path(sys.argv[1]).read_text())["cells"], 1):
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), f"cell {number} of {sys.argv[1]}", "exec"), namespace)
assert drawn, f"{sys.argv[1]}: expected figures, found none"
print(f"{sys.argv[1]}: {number} cells, {drawn} figures")
