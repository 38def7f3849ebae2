"""A data set of several studies: a table of cells, and tables of trials, confirmations and evaluations, with a page that explains every column.

    python -m dps_results.releases --report FOLDER --output FOLDER RESULT.h5 …

`--report` names a folder that `dps-report RESULT.h5 … --output FOLDER` wrote of the same files. `make release-data` does both.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import shutil
import tempfile
import urllib.request
from dataclasses import dataclass

import pandas as pd

from . import open as open_study
from . import read_csv

# The files of a release, in the order of the page, each with the thing that a row describes.
FILES = {
    "cells.csv": "a cell: one batch size at one sparsity of a study",
    "trials.parquet": "a trial: one training in a cell, with metaparameters and a seed of its own",
    "confirmations.parquet": "a confirmation: the metaparameters of one of the best trials, of the cell or of a cell next to it, trained again with a fresh seed",
    "evaluations.parquet": "an evaluation of a trial or a confirmation on the validation set",
}
# Columns that the report computes or puts together, with unit and meaning; a result file says what the others mean.
_OF_REPORT = {
    "study": ("", "name of the study: data set, network, optimizer and what else tells it from the others"),
    "dataset": ("", "name of the data set"),
    "network": ("", "name of the network"),
    "optimizer": ("", "name of the optimizer"),
    "schedule": ("", "name of the learning-rate schedule"),
    "goal_error": ("1", "validation error, a fraction, at or below which a trial has reached the goal"),
    "validation_examples": ("examples", "examples of the validation set, of which errors are counted"),
    "test_examples": ("examples", "examples of the test set"),
    "max_steps": ("steps", "step budget of a trial"),
    "study_evaluates_every": ("steps", "steps between two evaluations of a trial"),
    "race": ("1", "times its steps-to-result to which a cell goes on; 0: each trial runs to its own end"),
    "parameters": ("", "parameters of the network before connections are removed"),
    "criterion": ("", "criterion by which connections are removed"),
    "shuffle": ("", "whether the places of the kept weights are shuffled within each layer, as a control"),
    "reinitialise": ("", "whether the weights are drawn anew after pruning, as a control"),
    "data_sha256": ("", "SHA-256 of the decoded examples"),
    "program_version": ("", "versions of dps that measured the study"),
    "device": ("", "device that measured the cell; several of a file that was merged from parts"),
    "confirmed_points": ("", "points of the cell, each the metaparameters of a trial, that its confirmed steps are of: trained again with fresh seeds, and not dropped as slower"),
    "confirmed_seeds": ("", "fresh seeds of each of these points"),
    "confirmed_steps": ("steps", "geometric mean of the steps with fresh seeds, of the points that each half of the seeds chooses, measured by the other half"),
    "confirmed_median": ("steps", "median of those steps"),
    "confirmed_nine_in_ten": ("steps", "steps by which nine of ten such trainings have reached the goal; inf: more than one of ten does not reach it"),
    "confirmed_failures": ("1", "fraction of such trainings that do not reach the goal within their limit"),
    "luck": ("1", "steps_to_result over confirmed_steps"),
    "test_error": ("1", "test examples that the best trial gets wrong at its goal step, as a fraction of the test set; empty where not measured"),
}
# Columns of cells.csv that are whole numbers, missing in some rows.
_WHOLE = ["confirmed_points", "confirmed_seeds", "steps_to_result", "best_trial", "trials", "complete", "incomplete", "infeasible", "censored"]
# Of an evaluation: the training that it belongs to.
_OF_EVALUATION = {
    "trial": ("", "the trial that it belongs to; empty for an evaluation of a confirmation"),
    "point": ("", "the trial whose metaparameters its confirmation has; empty for an evaluation of a trial"),
    "number": ("", "number of its confirmation among those of the point, from 0; empty for an evaluation of a trial"),
}
_LIMITS = {"_low": "lower limit of its 95 % interval", "_high": "upper limit of its 95 % interval; inf: there is none"}
# Where the report's tables have other names than the release.
_STUDY = {"evaluate_every": "study_evaluates_every"}
_CONFIRMED = {
    "points": "confirmed_points",
    "seeds": "confirmed_seeds",
    "median_steps": "confirmed_median",
    "steps_of_nine_in_ten": "confirmed_nine_in_ten",
    "failures": "confirmed_failures",
}


@dataclass(frozen=True, repr=False, eq=False)
class Release:
    """The tables of a release, each with what its columns mean in `attrs["columns"]` and their units in `attrs["units"]`, but for `cells`."""

    cells: pd.DataFrame
    trials: pd.DataFrame
    confirmations: pd.DataFrame
    evaluations: pd.DataFrame

    def __repr__(self):
        counts = (f"{len(getattr(self, name.split('.')[0])):,} {name.split('.')[0]}" for name in FILES)
        return f"<Release of {self.cells['study'].nunique()} studies: {', '.join(counts)}>"


def read(place):
    """The release in `place`, a folder or the address of one (http or https).

    Raises ValueError where a file is not the one that SHA256SUMS names: it is damaged, or of another release."""
    remote = str(place).startswith(("http://", "https://"))

    def bytes_of(name):
        if remote:
            with urllib.request.urlopen(f"{str(place).rstrip('/')}/{name}") as answer:
                return answer.read()
        with open(os.path.join(place, name), "rb") as file:
            return file.read()

    # Lines of another form name none of the files.
    sums = {line[66:]: line[:64] for line in bytes_of("SHA256SUMS").decode(errors="replace").splitlines()}
    tables = {}
    for name in FILES:
        content = bytes_of(name)
        found, expected = hashlib.sha256(content).hexdigest(), sums.get(name)
        if found != expected:
            raise ValueError(f"{place}: expected {name} with SHA-256 {expected}, found {found}; get the release again")
        read = pd.read_parquet if name.endswith(".parquet") else read_csv
        tables[name.split(".")[0]] = read(io.BytesIO(content))
    tables["cells"] = _with_whole(tables["cells"])
    return Release(**tables)


def _with_whole(cells):
    return cells.astype({name: "Int64" for name in _WHOLE if name in cells})


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def _studies(report, files):
    """The report's table of studies, and which of them each file is of, by the SHA-256 of the files."""
    sums = [_sha256(path) for path in files]
    again = [path for place, path in enumerate(files) if sums[place] in sums[:place]]
    if again:
        raise ValueError(f"{again[0]}: expected each file once, found it, or a copy of it, twice; leave one out")
    table = read_csv(os.path.join(report, "studies.csv"))
    if "files_sha256" not in table:
        raise ValueError(f"{report}: expected SHA-256 of its files in studies.csv, found none; write the report with this version of dps-report")
    of_sum = {digest.strip(): row.study for row in table.itertuples() for digest in str(row.files_sha256).split(";")}
    owners = {path: of_sum.pop(digest, None) for path, digest in zip(files, sums)}
    others = [file for file, study in owners.items() if study is None]
    if others or of_sum:
        found = f"none of {', '.join(others)}" if others else f"one of {len(of_sum)} more"
        raise ValueError(f"{report}: expected a report of the same files, found {found}; run dps-report with the files of the release")
    return table, owners


def _cells(report, studies):
    """The report's cells, with what it says of their studies and, where any cell is confirmed, of their confirmations."""
    # The regime is a sentence of the report about a fit, not a measurement.
    cells = read_csv(os.path.join(report, "cells.csv")).drop(columns="regime")
    if os.path.exists(path := os.path.join(report, "confirmed.csv")):
        renamed = {old + end: new + end for old, new in _CONFIRMED.items() for end in ("", *_LIMITS)}
        confirmed, keys = read_csv(path).rename(columns=renamed), ["study", "batch_size", "sparsity"]
        confirmed = confirmed[keys + [name for name in renamed.values() if name in confirmed]]
        cells = cells.merge(confirmed, on=keys, how="left", validate="one_to_one")
    # A study that goes on has rows of cells to come.
    cells = cells[cells["trials"] != 0]
    cells = _with_whole(cells)
    of_study = studies.rename(columns=_STUDY)
    of_study = of_study[[name for name in _OF_REPORT if name in of_study and (name == "study" or name not in cells)]]
    return of_study.merge(cells, on="study", how="right", validate="one_to_many")


def _of_empty(meaning):
    """A column's meaning in a result file, whose missing numbers are empty in a release."""
    return meaning.rstrip(".").replace("missing where", "empty where").replace("NaN where", "empty where")


def write(files, report, folder):
    """Writes a release of the result files `files`, of which dps-report wrote the folder `report`, into the new folder `folder`."""
    studies, owners = _studies(report, files)
    tables: dict = {"cells": [_cells(report, studies)], "trials": [], "confirmations": [], "evaluations": []}
    described: dict = {table: {} for table in tables}

    def describe(table, rows):
        units = rows.attrs.get("units", {})
        for column, meaning in rows.attrs.get("columns", {}).items():
            described[table].setdefault(column, (units.get(column, ""), _of_empty(meaning)))

    for path in files:
        study, name = open_study(path), owners[path]
        # A cell has its best trial's metaparameters beside its own columns, an evaluation its cell's batch size and sparsity.
        for table, rows in (("cells", study.cells), ("cells", study.trials), ("evaluations", study.cells)):
            describe(table, rows)
        parts = [("trials", study.trials), ("confirmations", study.confirmations)]
        parts += [("evaluations", study.curves), ("evaluations", study.confirmation_curves)]
        for table, rows in parts:
            describe(table, rows)
            tables[table].append(rows.assign(study=name))
    for known in described.values():
        known.update(_OF_REPORT)
    described["evaluations"].update(_OF_EVALUATION)

    def told(table, column):
        """Unit and meaning of a column; a limit of an interval has the unit of its number."""
        for end, words in _LIMITS.items():
            if column.endswith(end):
                number = column[: -len(end)]
                return described[table][number][0], f"{number}: {words}"
        return described[table].get(column, ("", described["trials"].get(column, ("", ""))[1]))

    columns = {}
    os.makedirs(folder)
    for file in FILES:
        table = file.split(".")[0]
        # Tables without rows have the columns alone.
        filled = [part for part in tables[table] if len(part)] or tables[table][:1]
        rows = pd.concat(filled, ignore_index=True)
        if table == "trials" and rows.duplicated(["study", "batch_size", "sparsity", "trial"]).any():
            raise ValueError(f"expected each cell in one file, found one in several of {', '.join(files)}; dps-train merge puts them together")
        # Rows of other tables have no place in a release: studies, batch sizes, sparsities and trials say what belongs together.
        rows = rows.drop(columns=[name for name in ("cell", "best_row", "curve_start", "curve_length") if name in rows])
        first = [name for name in ("study", "batch_size", "sparsity", "trial", "point", "number") if name in rows]
        rows = rows if table == "cells" else rows[first + [name for name in rows if name not in first]]
        if table == "evaluations":
            rows = rows.astype({name: "Int64" for name in ("trial", "point", "number") if name in rows})
        if table != "cells":
            rows["study"] = rows["study"].astype("category")
        columns[file] = [(name, _kind(rows[name]), *told(table, name)) for name in rows]
        if file.endswith(".csv"):
            rows.to_csv(os.path.join(folder, file), index=False)
            continue
        rows.attrs = {"columns": {name: meaning for name, _, _, meaning in columns[file]}, "units": {name: unit for name, _, unit, _ in columns[file]}}
        rows.to_parquet(os.path.join(folder, file), index=False, compression="zstd")
    with open(os.path.join(folder, "README.md"), "w") as page:
        page.write(_page(columns, folder))


def _kind(column):
    """A column's type, by a name that is not of one library."""
    types = pd.api.types
    return "integer" if types.is_integer_dtype(column) else "number" if types.is_numeric_dtype(column) else "text"


def _page(columns, folder):
    lines = [
        "# Steps to a goal error, by batch size and sparsity",
        "",
        "Measured by dps. The files are written by `make release-data`; the studies, and what they cannot tell, are described in",
        "docs/experiments of its source. LICENSE is that of dps, CITATION.cff says how to cite.",
        "",
        "```python",
        'cells = pandas.read_csv("cells.csv")                          # likewise polars.read_csv',
        'trials = pandas.read_parquet("trials.parquet")                # likewise polars.read_parquet',
        "duckdb.sql(\"SELECT study, count(*) FROM 'trials.parquet' GROUP BY study\")",
        'dps_results.release(".")                                      # all of them, compared with SHA256SUMS; a folder or its address',
        "```",
        "",
        "An empty value is a number that does not exist, such as the steps of a trial that did not reach the goal. `inf` is a number beyond all steps.",
        "",
        "`dps_results` is the Python package in examples/dps-results of the source; `pip install 'examples/dps-results[release]'` there.",
    ]
    for file, rows in columns.items():
        size = os.path.getsize(os.path.join(folder, file))
        lines += ["", f"## {file}", "", f"A row is {FILES[file]}. {size:,} bytes.", "", "| column | type | unit | meaning |", "|---|---|---|---|"]
        lines += [f"| `{name}` | {kind} | {unit} | {meaning} |" for name, kind, unit, meaning in rows]
    return "\n".join(lines) + "\n"


def _release(options):
    """Writes the data set into a new folder, which takes its name once it is whole."""
    parent = os.path.dirname(os.path.abspath(options.output))
    os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as beside:
        folder = os.path.join(beside, "release")
        write(options.files, options.report, folder)
        for file in options.beside:
            shutil.copy(file, folder)
        with open(os.path.join(folder, "SHA256SUMS"), "w") as sums:
            for name in sorted(set(os.listdir(folder)) - {"SHA256SUMS"}):
                sums.write(f"{_sha256(os.path.join(folder, name))}  {name}\n")
        os.rename(folder, options.output)


def main():
    parser = argparse.ArgumentParser(description="Write a data set of several studies.")
    parser.add_argument("files", nargs="+", metavar="RESULT.h5")
    parser.add_argument("--report", required=True, help="the folder that dps-report wrote of these files")
    parser.add_argument("--output", required=True, help="a folder that is not there yet")
    parser.add_argument("--beside", nargs="*", default=[], metavar="FILE", help="files that are copied into it, such as LICENSE")
    options = parser.parse_args()
    if os.path.lexists(options.output):
        parser.error(f"expected a new folder, found {options.output}; name another, or remove it")
    try:
        _release(options)
    except KeyError as missing:
        parser.exit(1, f"error: {options.report}: expected tables with a column {missing}, found none; write the report with this version of dps-report\n")
    except (OSError, ValueError) as refusal:
        parser.exit(1, f"error: {refusal}\n")
    print(f"{options.output}: {read(options.output)!r}")


if __name__ == "__main__":
    main()
