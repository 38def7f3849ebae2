#!/usr/bin/env python3
"""Checks the Python package of examples/ on a result file and a report of it: check_package.py FILE REPORT.

What the package reads must be what h5py reads, and what dps-report wrote into cells.csv, trials.csv and curves.csv."""

import shutil
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import xarray as xr
import dps_results


def same(name, found, expected):
    found, expected = (pd.to_numeric(pd.Series(list(values)), errors="coerce").to_numpy(float) for values in (found, expected))
    if found.shape != expected.shape or not np.array_equal(found, expected, equal_nan=True):
        sys.exit(f"{name}: the package reads {found[:5]}…, expected {expected[:5]}…")


def main():
    path, report = sys.argv[1], Path(sys.argv[2])
    study = dps_results.open(path)
    with h5py.File(path) as file:
        for name in ("cells", "trials", "curves"):
            raw, table = file[name][:], getattr(study, name)
            if name == "curves":
                # The evaluations of confirmations stand behind those of the trials.
                table = pd.concat([table, study.confirmation_curves], ignore_index=True)
            for column in raw.dtype.names:
                if column == "status":
                    codes = h5py.check_enum_dtype(raw.dtype[column])
                    same(column, table[column].map(codes), raw[column])
                else:
                    values = raw[column].astype(float)
                    same(f"{name}.{column}", table[column].fillna(-1) if values.min(initial=0) < 0 else table[column], raw[column])
        same("metaparameters", study.trials["learning_rate"], file["metaparameters/learning_rate"][:])
        assert study.workload["dataset"] == study.configuration["workload"]["dataset"]
        for name, columns in dps_results._LACKING.items():
            assert name not in file or [column for column, _ in columns] == list(file[name].dtype.names), name
        same("starts", study.starts["ranks"], file["starts"]["ranks"])
        assert list(study.starts["before"])[0] == "first" and isinstance(study.starts["host_names"][0], str)
        assert study.environment["compiler"].startswith("rustc ") and "dps-train" in study.environment["command_line"]
        assert isinstance(study.environment["host"], str) and isinstance(study.environment["ranks"], int)

    cells, trials, curves = (dps_results.read_csv(report / f"{name}.csv") for name in ("cells", "trials", "curves"))
    steps = study.steps_to_result()
    # The report has cells by sparsity.
    same("K*", (steps.loc[row.batch_size, row.sparsity] for row in cells.itertuples()), cells["steps_to_result"])
    keys = ["batch_size", "sparsity", "trial"]
    mine, theirs = (table.sort_values(keys).reset_index(drop=True) for table in (study.trials, trials))
    for column in ("steps", "steps_run", "learning_rate", "parameters_kept", "seconds"):
        same(column, mine[column], theirs[column])
    assert list(mine["status"]) == list(theirs["status"])
    best = study.curves.merge(curves[keys].drop_duplicates(), on=keys).sort_values([*keys, "step"])
    for column in ("step", "errors", "examples"):
        same(f"best {column}", best[column], curves.sort_values([*keys, "step"])[column])

    # Every column says what it means, and files of one name are told apart.
    for table in (study.cells, study.trials, study.curves, study.confirmations, study.confirmation_curves):
        untold = [name for name in table if not table.attrs["columns"].get(name)]
        assert not untold, f"columns without a meaning: {untold}"
    with tempfile.TemporaryDirectory() as folder:
        copies = [Path(folder) / place / "study.h5" for place in ("a", "b")]
        for copy in copies:
            copy.parent.mkdir()
            shutil.copy(path, copy)
        assert dps_results.together(copies, "cells")["study"].nunique() == 2
        assert dps_results.together(copies[0], "cells")["study"].unique() == ["study"]
    for paths, table in (([], "cells"), ([path], "cell")):
        try:
            dps_results.together(paths, table)
        except ValueError as error:
            assert "confirmation_curves" in str(error)
        else:
            sys.exit(f"expected {paths} and {table} to be refused")

    # The error of an evaluation that saw the whole set is known, of others a bound alone.
    whole = study.curves["examples"] == study.workload["validation_examples"]
    errors = study.error_curves()
    assert whole.any() and list(errors["error"].notna()) == list(whole), "an error is missing, or is there where it is not known"
    same("errors", errors["error_at_least"] * study.workload["validation_examples"], study.curves["errors"])
    assert f"{len(cells)} cells" in repr(study) and len(repr(study)) < 120, repr(study)
    both = dps_results.together([path, path], "cells")
    assert list(both["study"].unique()) == [study.name] and len(both) == 2 * len(cells), both
    fitted, written = dps_results.fits(report), dps_results.read_csv(report / "fits.csv")
    same("fitted c1", fitted.loc[fitted["steps"] == "K*", "c1"], written["c1"])
    same("limits of critical batch sizes", fitted.loc[fitted["steps"] == "K*", "critical_batch_size_high"], written["critical_batch_size_high"])

    grid = study.to_xarray()
    for row in study.cells.itertuples():
        cell = grid.sel(batch_size=row.batch_size, sparsity=row.sparsity)
        same("xarray K*", [float(cell["steps_to_result"])], [row.steps_to_result])
        own = study.trials[(study.trials["batch_size"] == row.batch_size) & (study.trials["sparsity"] == row.sparsity)]
        same("xarray rates", cell["trial_learning_rate"].sel(trial=own["trial"].to_numpy()).to_numpy(), own["learning_rate"])
    assert grid["steps_to_result"].attrs["long_name"].startswith("K*")
    # The file's own arrays, as xarray finds them by their dimensions' names.
    with xr.open_dataset(path, group="grid", engine="h5netcdf") as stored:
        assert dict(stored.sizes) == dict(grid.sizes), stored.sizes
        left_out = {"best_row", "trial_curve_start", "trial_curve_length"}
        assert set(stored.data_vars) == set(grid.data_vars) - left_out, sorted(set(stored.data_vars) ^ set(grid.data_vars))
        for name, array in stored.data_vars.items():
            expected = grid[name]
            if name == "trial_status":
                words = array.attrs["flag_meanings"].split()
                codes = dict(zip(words, array.attrs["flag_values"]))
                expected = xr.DataArray([[[codes.get(word, np.nan) for word in row] for row in plane] for plane in expected.values], array.coords)
            xr.testing.assert_equal(array, expected.transpose(*array.dims))
            assert array.attrs["long_name"] and "-1" not in array.attrs["long_name"], name
            assert array.attrs.get("units") == grid[name].attrs.get("units"), name
    with h5py.File(path) as file:
        assert [list(dimension.keys()) for dimension in file["grid/trial_steps"].dims] == [["batch_size"], ["sparsity"], ["trial"]]
        assert h5py.h5ds.is_attached(file["grid/trial_steps"].id, file["grid/trial"].id, 2)
    units = {name: grid[name].attrs["units"] for name in ("steps_to_result", "batch_size", "seconds", "trial_learning_rate", "trial_final_loss")}
    assert list(units.values()) == ["steps", "examples", "s", "1", "nat"], units
    print(f"{path}: {len(study.cells)} cells, {len(study.trials)} trials, {len(study.curves)} evaluations read by dps_results")


if __name__ == "__main__":
    main()
