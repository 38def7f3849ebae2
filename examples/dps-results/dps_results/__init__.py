"""Results of dps-train as pandas and xarray objects.

    import dps_results

    study = dps_results.open("results/quickstart.h5")
    study.steps_to_result()          # K* as a table: a row a batch size, a column a sparsity
    study.trials                     # a row a trial, with its metaparameters
    study.confirmations              # a row a training of a best point with a fresh seed
    study.error_curves()             # a row an evaluation: the validation error, or a bound below it
    study.to_xarray()                # cells and trials by batch size, sparsity and trial
    dps_results.together(["a.h5", "b.h5"], "cells")     # a table of several files, with a column that names the file
    dps_results.fits("report")       # c1, c2 and critical batch size with intervals, from a folder that dps-report wrote
    dps_results.release("release")   # the tables that `make release-data` wrote, from a folder or its address

A number that does not exist is missing (NaN or <NA>), where the file has -1. docs/results.md describes the file, and each table's
`attrs["columns"]` and `attrs["units"]` what its columns mean and their units.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass

import h5py
import numpy as np
import pandas as pd

try:
    import tomllib
except ImportError:  # Python before 3.11
    import tomli as tomllib

__version__ = "0.3.0"

# `open` is left out: from dps_results import * would hide Python's own.
__all__ = ["Study", "fits", "release", "together"]

# Columns in which -1 says that there is no number.
_OPTIONAL = {"steps_to_result", "best_trial", "best_row", "test_errors", "steps", "before_code"}
_STATUS = h5py.enum_dtype({"complete": 0, "incomplete": 1, "infeasible": 2, "censored": 3}, "u1")
_ENDING = h5py.enum_dtype({"first": 0, "finished": 1, "stopped": 2, "rank_lost": 3, "killed": 4, "failed": 5, "unknown": 6}, "u1")
_CELL = [("cell", "u4"), ("batch_size", "u4"), ("sparsity", "f8")]
# Columns of the tables that a file may lack.
_LACKING = {
    "confirmations": _CELL
    + [("point", "u4"), ("number", "u4"), ("weight_seed", "u8"), ("order_seed", "u8"), ("status", _STATUS), ("steps", "i8"), ("steps_run", "u4")]
    + [("evaluate_every", "u4"), ("parameters_kept", "u4"), ("mask_hash", "u8"), ("dead_layers", "u4"), ("seconds", "f8")]
    + [("curve_start", "u8"), ("curve_length", "u4")],
    "smoothness": [*_CELL, ("trial", "u4"), ("step", "u4")]
    + [(name, "f8") for name in ("lipschitz", "loss", "gradient_norm", "squared_norms", "variance", "noise_scale")],
    "starts": [("began", "u8"), ("number", "u4"), ("before", _ENDING), ("before_code", "i4"), ("ranks", "u4"), ("threads", "u4"), ("hosts", "u4")]
    + [("host_names", "S256"), ("program", "S256")],
}


@dataclass(frozen=True, repr=False, eq=False)
class Study:
    """A result file.

    `name` is that of the file. `configuration`, `workload` and `environment` are dictionaries. `cells`, `trials`, `curves` and `smoothness` are
    tables with the columns of the file; `trials` also has a column for each metaparameter, `curves` the batch size, sparsity and trial that an
    evaluation belongs to, and `smoothness` has no rows where nothing was measured. `confirmations` and `confirmation_curves` have none where no cell
    is confirmed. `starts` has a row a start of the study, and none in files that do not record them. `complete` says whether every cell of the grid
    is there.
    """

    name: str
    configuration: dict
    workload: dict
    environment: dict
    complete: bool
    cells: pd.DataFrame
    trials: pd.DataFrame
    curves: pd.DataFrame
    smoothness: pd.DataFrame
    confirmations: pd.DataFrame
    confirmation_curves: pd.DataFrame
    starts: pd.DataFrame

    def __repr__(self):
        reached = int(self.cells["steps_to_result"].notna().sum())
        state = "complete" if self.complete else "not complete"
        return f"<Study {self.name}: {len(self.cells)} cells, {reached} with a K*, {len(self.trials)} trials, {state}>"

    def error_curves(self):
        """`curves` with two columns more: `error`, the validation error, missing where an evaluation was decided before it had seen the whole
        validation set; and `error_at_least`, the errors that were found over the whole set's examples, a bound below the error."""
        curves, examples = self.curves, self.workload["validation_examples"]
        bound = curves["errors"] / examples
        curves = curves.assign(error=bound.where(curves["examples"] == examples), error_at_least=bound)
        told = {"error": "validation error, a fraction; missing where the evaluation stopped early", "error_at_least": "a bound below that error"}
        curves.attrs = {"columns": self.curves.attrs["columns"] | told, "units": self.curves.attrs["units"] | dict.fromkeys(told, "1")}
        return curves

    def steps_to_result(self):
        """K*, the fewest steps over a cell's trials, by batch size and sparsity; missing where no trial reached the goal."""
        return self.cells.pivot(index="batch_size", columns="sparsity", values="steps_to_result")

    def to_xarray(self):
        """The columns of `cells` by batch size and sparsity, and those of `trials`, called `trial_…`, also by trial, as an xarray Dataset. It
        has no hashes of masks, whose 64 bits a float cannot hold."""
        import xarray as xr

        def by(table, keys, prefix):
            table = table.set_index(keys)
            # xarray has no integers that may be missing.
            floats = {name: "float64" for name in table if isinstance(table[name].dtype, pd.Int64Dtype)}
            labels = {name: str for name in table if isinstance(table[name].dtype, pd.CategoricalDtype)}
            found = table.astype(floats | labels).to_xarray()
            for name in found.data_vars:
                found[name].attrs["long_name"] = self._of_column("columns", name)
                if unit := self._of_column("units", name):
                    found[name].attrs["units"] = unit
            for name in keys:
                if unit := self._of_column("units", name):
                    found[name].attrs["units"] = unit
            return found.rename({name: prefix + name for name in found.data_vars})

        cells = by(self.cells, ["batch_size", "sparsity"], "")
        trials = by(self.trials.drop(columns=["cell", "mask_hash"]), ["batch_size", "sparsity", "trial"], "trial_")
        return xr.merge([cells.rename({"trials": "trial_count"}), trials], join="outer").assign_attrs(self.workload)

    def _of_column(self, what, name):
        return self.cells.attrs[what].get(name) or self.trials.attrs[what].get(name, "")


def open(path):
    """Reads a result file of schema version 3. Raises ValueError with the file's name where it is none."""
    try:
        with h5py.File(path) as file:
            return _study(file, os.path.splitext(os.path.basename(path))[0])
    except FileNotFoundError:
        raise
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def _study(file, name):
    if _value(file.attrs.get("schema")) != "dps-results":
        raise ValueError("expected a result file of dps-train, found another HDF5 file")
    version = int(file.attrs["schema_version"])
    if version != 3:
        raise ValueError(f"schema version {version}, where this package reads 3; read it with the program that wrote it")
    cells, trials, curves, confirmations, smoothness, starts = (
        _table(file, table) for table in ("cells", "trials", "curves", "confirmations", "smoothness", "starts")
    )
    for parameter, column in file["metaparameters"].items():
        trials[parameter] = column[:]
        trials.attrs["columns"][parameter] = _value(column.attrs["description"])
        trials.attrs["units"][parameter] = _value(column.attrs.get("units", ""))
    # Evaluations of confirmations stand behind those of all trials.
    behind = int(trials["curve_length"].sum())
    of_confirmations = curves.iloc[behind:].reset_index(drop=True)
    return Study(
        name=name,
        configuration=tomllib.loads(_value(file["configuration"].attrs["toml"])),
        workload=_attributes(file["workload"]),
        environment=_attributes(file["environment"]),
        complete=bool(file.attrs["complete"]),
        cells=cells,
        trials=trials,
        curves=_named(curves.iloc[:behind], trials, ("batch_size", "sparsity", "trial")),
        smoothness=smoothness,
        confirmations=confirmations,
        confirmation_curves=_named(of_confirmations, confirmations, ("batch_size", "sparsity", "point", "number")),
        starts=starts,
    )


def together(paths, table):
    """The table of that name (`cells`, `trials`, `curves`, `confirmations` …) of a list of result files, one below the other, with a first column
    `study`: the files' names, or their paths where two files have one name."""
    paths = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    tables = [field.name for field in dataclasses.fields(Study) if field.type == "pd.DataFrame"]
    if table not in tables or not paths:
        raise ValueError(f"expected result files and one of the tables {', '.join(tables)}, found {len(paths)} files and {table!r}")
    studies = [open(path) for path in paths]
    names = [study.name for study in studies]
    names = names if len(set(names)) == len(set(paths)) else [os.path.splitext(path)[0] for path in paths]
    tables = [getattr(study, table) for study in studies]
    rows = pd.concat([one.assign(study=name) for one, name in zip(tables, names)], ignore_index=True)
    # pandas drops what differs between the tables, as where their metaparameters do.
    for told in ("columns", "units"):
        rows.attrs[told] = {"study": "name of the file" if told == "columns" else ""}
        for one in tables:
            rows.attrs[told].update(one.attrs[told])
    return rows[["study", *(name for name in rows if name != "study")]]


def fits(report):
    """The fits of a report's folder, as dps-report computed them: a row for each study, sparsity and kind of steps.

    The column `steps` says what was fitted: `K*`, or `confirmed` where cells are confirmed. `c1` (steps × examples), `c2` (steps) and
    `critical_batch_size` (examples) each have the limits of a 95 % interval in columns `_low` and `_high`. docs/results.md lists all columns."""
    found = []
    for steps, file in (("K*", "fits.csv"), ("confirmed", "confirmed-fits.csv")):
        if os.path.exists(path := os.path.join(report, file)):
            rows = read_csv(path)
            rows.insert(2, "steps", steps)
            found.append(rows)
    if not found:
        raise FileNotFoundError(f"{report}: expected fits.csv or confirmed-fits.csv, found neither; name the folder that dps-report --output wrote")
    return pd.concat(found, ignore_index=True)


def read_csv(file):
    """A table whose numbers are read as they were written. pandas does so of itself from version 3 on, and warns where it is asked to."""
    return pd.read_csv(file, **({"float_precision": "round_trip"} if int(pd.__version__.split(".")[0]) < 3 else {}))


def release(place):
    """The tables of a release of several studies, `cells`, `trials`, `confirmations` and `evaluations`, in `place`: a folder that
    `make release-data` wrote, or its address (http or https). Needs pyarrow."""
    from . import releases

    return releases.read(place)


def _named(curves, owners, names):
    """Evaluations with columns that say whose each is."""
    curves = curves.copy()
    owner = owners.index.repeat(owners["curve_length"])
    for place, name in enumerate(names):
        curves.insert(place, name, owners[name].to_numpy()[owner])
        for told in ("columns", "units"):
            curves.attrs[told] = {name: owners.attrs[told].get(name, ""), **curves.attrs[told]}
    return curves


def _table(file, name):
    """A table of a file, without rows where the file lacks it."""
    dataset = file.get(name)
    rows = np.zeros(0, _LACKING[name]) if dataset is None and name in _LACKING else file[name][:]
    table = pd.DataFrame({name: rows[name] for name in rows.dtype.names})
    for name in rows.dtype.names:
        codes = h5py.check_enum_dtype(rows.dtype[name])
        if codes is not None:
            names = {code: word for word, code in codes.items()}
            table[name] = pd.Categorical(table[name].map(names), categories=sorted(codes, key=codes.get))
        elif rows.dtype[name].kind == "S":
            table[name] = pd.Series([text.decode() for text in rows[name]], dtype=str)
        elif name in _OPTIONAL:
            table[name] = table[name].astype("Int64").mask(table[name] < 0)
    told = {} if dataset is None else dataset.attrs
    lines = _value(told.get("columns", "")).replace("-1 where", "missing where").splitlines()
    table.attrs["columns"] = dict(line.split(": ", 1) for line in lines)
    table.attrs["units"] = dict(zip(rows.dtype.names, told.get("units", [])))
    return table


def _attributes(group):
    return {name: _value(value) for name, value in group.attrs.items()}


def _value(value):
    """Text as str, and a number as Python's."""
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if hasattr(value, "item") and not isinstance(value, str) else value
