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
import pandas as pd

try:
    import tomllib
except ImportError:  # Python before 3.11
    import tomli as tomllib

__all__ = ["Study", "fits", "open", "release", "together"]

# Columns in which -1 says that there is no number.
_OPTIONAL = {"steps_to_result", "best_trial", "best_row", "test_errors", "steps"}


@dataclass(frozen=True, repr=False)
class Study:
    """A result file.

    `name` is that of the file. `configuration`, `workload` and `environment` are dictionaries. `cells`, `trials`, `curves` and `smoothness` are tables with the columns of the
    file; `trials` also has a column for each metaparameter, `curves` the batch size, sparsity and trial that an evaluation belongs to, and
    `smoothness` has no rows where nothing was measured. `confirmations` and `confirmation_curves` have none where no cell is confirmed. `starts` has a row a start of the study, and none in files that do not record them. `complete` says whether every
    cell of the grid is there.
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
        return curves.assign(error=bound.where(curves["examples"] == examples), error_at_least=bound)

    def steps_to_result(self):
        """K*, the fewest steps over a cell's trials, by batch size and sparsity; missing where no trial reached the goal."""
        return self.cells.pivot(index="batch_size", columns="sparsity", values="steps_to_result")

    def to_xarray(self):
        """The columns of `cells` by batch size and sparsity, and those of `trials`, called `trial_…`, also by trial, as an xarray Dataset."""
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
        trials = by(self.trials.drop(columns="cell"), ["batch_size", "sparsity", "trial"], "trial_")
        return xr.merge([cells.rename({"trials": "trial_count"}), trials], join="outer").assign_attrs(self.workload)

    def _of_column(self, what, name):
        return self.cells.attrs[what].get(name) or self.trials.attrs[what].get(name, "")


def open(path):
    """Reads a result file of schema version 3."""
    with h5py.File(path) as file:
        if _value(file.attrs.get("schema")) != "dps-results":
            raise ValueError(f"{path}: expected a result file of dps-train, found another HDF5 file")
        version = int(file.attrs["schema_version"])
        if version != 3:
            raise ValueError(f"{path}: schema version {version}, where this package reads 3; read it with the program that wrote it")
        cells, trials, curves = (_table(file[name]) for name in ("cells", "trials", "curves"))
        for name, column in file["metaparameters"].items():
            trials[name] = column[:]
            trials.attrs["columns"][name] = _value(column.attrs["description"])
            trials.attrs["units"][name] = _value(column.attrs.get("units", ""))
        confirmations = _table(file["confirmations"]) if "confirmations" in file else pd.DataFrame()
        # Evaluations of confirmations stand behind those of all trials.
        behind = int(trials["curve_length"].sum())
        of_confirmations = curves.iloc[behind:].reset_index(drop=True)
        curves = _named(curves.iloc[:behind], trials, ("batch_size", "sparsity", "trial"))
        if len(confirmations):
            of_confirmations = _named(of_confirmations, confirmations, ("batch_size", "sparsity", "point", "number"))
        smoothness = _table(file["smoothness"]) if "smoothness" in file else pd.DataFrame()
        return Study(
            name=os.path.splitext(os.path.basename(path))[0],
            configuration=tomllib.loads(_value(file["configuration"].attrs["toml"])),
            workload=_attributes(file["workload"]),
            environment=_attributes(file["environment"]),
            complete=bool(file.attrs["complete"]),
            cells=cells,
            trials=trials,
            curves=curves,
            smoothness=smoothness,
            confirmations=confirmations,
            confirmation_curves=of_confirmations,
            starts=_table(file["starts"]) if "starts" in file else pd.DataFrame(),
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
    return pd.concat([getattr(study, table).assign(study=name) for study, name in zip(studies, names)], ignore_index=True).pipe(
        lambda rows: rows[["study", *(name for name in rows if name != "study")]]
    )


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


def _table(dataset):
    rows = dataset[:]
    table = pd.DataFrame({name: rows[name] for name in rows.dtype.names})
    for name in rows.dtype.names:
        codes = h5py.check_enum_dtype(rows.dtype[name])
        if codes is not None:
            names = {code: word for word, code in codes.items()}
            table[name] = pd.Categorical(table[name].map(names), categories=sorted(codes, key=codes.get))
        elif rows.dtype[name].kind == "S":
            table[name] = [text.decode() for text in rows[name]]
        elif name in _OPTIONAL:
            table[name] = table[name].astype("Int64").mask(table[name] < 0)
    lines = _value(dataset.attrs["columns"]).splitlines()
    table.attrs["columns"] = dict(line.split(": ", 1) for line in lines)
    table.attrs["units"] = dict(zip(rows.dtype.names, dataset.attrs.get("units", [])))
    return table


def _attributes(group):
    return {name: _value(value) for name, value in group.attrs.items()}


def _value(value):
    """Text as str, and a number as Python's."""
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if hasattr(value, "item") and not isinstance(value, str) else value
