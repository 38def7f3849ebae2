#!/usr/bin/env python3
"""Compares the records of two builds of dps-train, bit for bit: small studies of several networks on MNIST, by each.

A change of structure or speed may change no result. Each network is trained by both values of `execution.convolutions`. Everything in the result
files is compared but times and places. With --files two result files are compared instead, whichever machines measured them.
"""

import argparse
import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = ["simple-cnn", "resnet-8", "lenet-5-caffe", "lenet-300-100"]
CONVOLUTIONS = ["direct", "winograd"]
SETTINGS = ["workload.goal_error=0.05", "workload.max_steps=24", "workload.evaluate_every=8", "pruning.examples=200", "execution.race=false"]
GRID = ["--batch-size", "2,72", "--sparsity", "0,0.9", "--trials", "3"]
# A table's column of times, and what says where and when a study ran.
TIMES = "seconds"
PLACES = ("environment", "starts")


def study(program, network, convolutions, threads, folder):
    """The result file of a small study."""
    output = folder / f"{network}-{convolutions}-{threads}.h5"
    named = [f"workload.network={network}", f"execution.convolutions={convolutions}"]
    settings = [word for setting in [*named, *SETTINGS] for word in ("--set", setting)]
    command = [program, ROOT / "configs/mnist-simple-cnn-momentum.toml", *settings, *GRID, "--threads", str(threads), "-o", output]
    subprocess.run([*command, "--data", ROOT / "data", "--progress", "none"], check=True, stdout=subprocess.DEVNULL)
    return output


def contents(path):
    """All tables and attributes by name, as bytes."""
    found = {}

    def visit(name, item):
        if name.startswith(PLACES):
            return
        for key, value in item.attrs.items():
            if key not in ("REFERENCE_LIST", "DIMENSION_LIST"):
                found[f"{name}@{key}"] = repr(value)
        if isinstance(item, h5py.Dataset) and item.dtype.kind != "O":
            table = item[()]
            names = table.dtype.names if hasattr(table, "dtype") else None
            for column in names or [""]:
                if not (column or name).endswith(TIMES):
                    values = table[column] if column else table
                    found[f"{name}/{column}"] = values.tobytes() if hasattr(values, "tobytes") else repr(values)

    with h5py.File(path) as file:
        visit("", file)
        file.visititems(visit)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path, help="folder of the dps-train to compare with")
    parser.add_argument("new", type=Path, help="folder of the other dps-train")
    parser.add_argument("--files", action="store_true", help="old and new are result files")
    arguments = parser.parse_args()
    different = compared = 0

    def compare(what, old, new):
        nonlocal compared, different
        names = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
        compared, different = compared + len(old), different + len(names)
        print(f"{what}: {len(old)} columns and attributes, {len(names)} of them different {' '.join(names[:5])}")

    if arguments.files:
        compare(f"{arguments.old} and {arguments.new}", contents(arguments.old), contents(arguments.new))
    else:
        with tempfile.TemporaryDirectory() as work:
            for network, convolutions, threads in itertools.product(NETWORKS, CONVOLUTIONS, (1, 2)):
                folders = [Path(work) / name for name in ("old", "new")]
                files = []
                for folder, programs in zip(folders, (arguments.old, arguments.new), strict=True):
                    folder.mkdir(exist_ok=True)
                    files.append(contents(study(programs.resolve() / "dps-train", network, convolutions, threads, folder)))
                compare(f"{network}, {convolutions}, {threads} threads", *files)
    if not compared or different:
        print("expected the same records of both programs; see above what differs")
        return 1
    print(f"all {compared} are the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
