#!/usr/bin/env python3
"""Checks a release of one result file: check_release.py FOLDER RESULT.h5.

Its tables must have what dps_results reads of the file, whoever reads them: pandas, polars, DuckDB, or dps_results from the folder or an address.
A file that was changed must be refused."""

import functools
import http.server
import re
import shutil
import sys
import tempfile
import threading
from pathlib import Path

import duckdb
import pandas as pd
import polars
import dps_results
import dps_results.releases


class Silent(http.server.SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, *_):
        pass


def main():
    folder, study = Path(sys.argv[1]), dps_results.open(sys.argv[2])
    counts = {
        "cells.csv": len(study.cells),
        "trials.parquet": len(study.trials),
        "confirmations.parquet": len(study.confirmations),
        "evaluations.parquet": len(study.curves) + len(study.confirmation_curves),
    }
    assert len(study.confirmations) and len(study.confirmation_curves), "a study without confirmations checks half of a release"
    found = dps_results.release(folder)
    page = (folder / "README.md").read_text()
    for name, count in counts.items():
        path, table = str(folder / name), getattr(found, name.split(".")[0])
        read = {"csv": (pd.read_csv, polars.read_csv), "parquet": (pd.read_parquet, polars.read_parquet)}[name.split(".")[1]]
        lengths = [len(reader(path)) for reader in read] + [duckdb.sql(f"SELECT count(*) FROM '{path}'").fetchall()[0][0], len(table)]
        assert lengths == [count] * 4, (name, lengths, count)
        of_file = page.split(f"## {name}\n")[1].split("\n## ")[0]
        undescribed = [column for column in table if not re.search(rf"^\| `{column}` \| \S+ \| \S* ?\| \S", of_file, re.MULTILINE)]
        assert not undescribed, f"{name}: README.md does not describe {undescribed}"

    best = found.cells.set_index(["batch_size", "sparsity"])["steps_to_result"]
    for row in study.cells.itertuples():
        assert best[row.batch_size, row.sparsity] == row.steps_to_result, row
    keys = ["batch_size", "sparsity", "trial"]
    mine, theirs = (table.sort_values(keys).reset_index(drop=True) for table in (found.trials, study.trials))
    for column in ("steps", "steps_run", "learning_rate", "momentum", "final_loss", "mask_hash"):
        pd.testing.assert_series_equal(mine[column], theirs[column], check_dtype=False)
    assert list(mine["status"].astype(str)) == list(theirs["status"].astype(str))
    assert mine.attrs["columns"]["steps"] and found.evaluations.attrs["units"]["loss"] == "nat"
    of_trials = found.evaluations[found.evaluations["trial"].notna()]
    assert list(of_trials["errors"]) == list(study.curves["errors"])
    # The means are the report's own.
    assert found.cells["confirmed_steps"].notna().any() and (found.cells["confirmed_steps_low"] < found.cells["confirmed_steps_high"]).any()

    handler = functools.partial(Silent, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        pd.testing.assert_frame_equal(dps_results.release(f"http://127.0.0.1:{server.server_port}/").trials, found.trials)
        server.shutdown()

    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        with open(Path(copy) / "trials.parquet", "ab") as file:
            file.write(b"x")
        try:
            dps_results.release(copy)
            sys.exit("a changed file was read")
        except ValueError as error:
            assert "expected trials.parquet with SHA-256" in str(error), error
        try:
            dps_results.releases.write([sys.argv[2]] * 2, copy, Path(copy) / "new")
            sys.exit("a release has one file twice")
        except ValueError as error:
            assert "expected each file once" in str(error), error
    print(f"{folder}: {found!r} read by pandas, polars, DuckDB and dps_results")


if __name__ == "__main__":
    main()
