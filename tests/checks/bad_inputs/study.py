"""A study small enough to be measured again and again: made-up data, a configuration, its files when finished and when interrupted.

The twin of tests/support/study.rs."""

import array
import fcntl
import os
import random
import re
import shutil
import subprocess
import termios
import time

from . import hdf5
from .rules import ENVIRONMENT

CONFIGURATION = {
    "workload": {
        "dataset": '"fashion-mnist"',
        "network": '"simple-cnn"',
        "optimizer": '"momentum"',
        "goal_error": "0.3",
        "max_steps": "16",
        "evaluate_every": "4",
    },
    "grid": {"batch_sizes": "[17]", "sparsities": "[0, 0.9]", "trials": "3"},
    "pruning": {"examples": "100"},
    "data": {"source": '"own"'},
    "search": {
        "learning_rate": '{ min = 1e-3, max = 10.0, scale = "log" }',
        "momentum": '{ min = 0.5, max = 0.95, scale = "reverse-log" }',
    },
}
IMAGE = 28 * 28
# Linux's number of the call that sets a pipe's length in bytes, which Python 3.9 has no name for, and the least length.
F_SETPIPE_SZ, PIPE = 1031, 4_096
# Bytes of an event at most, and of those of the start and the first steps.
EVENT, ROOM = 300, 1_800
# The data set, as cases see it from their folders, and so do the studies they start from.
DATA = "../../studies/data"


def toml(changes=()):
    """The configuration's text; `changes` are (section, key, TOML value), and a value of None takes the key out."""
    sections = {name: dict(keys) for name, keys in CONFIGURATION.items()}
    for section, key, value in changes:
        sections.setdefault(section, {})[key] = value
    lines = []
    for name, keys in sections.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in keys.items() if value is not None), ""]
    return "\n".join(lines)


def images(count, rows=28, columns=28, pixels=b"", magic=0x803):
    """An IDX image file."""
    return b"".join(word.to_bytes(4, "big") for word in [magic, count, rows, columns]) + pixels


def labels(count, values=b"", magic=0x801):
    """An IDX label file."""
    return b"".join(word.to_bytes(4, "big") for word in [magic, count]) + values


def write_data(folder, seed=5):
    """400 training and 100 test images in which each class has its own bright rows, under noise."""
    source = random.Random(seed)
    place = folder / "fashion-mnist"
    place.mkdir(parents=True)
    for name, count in [("train", 400), ("t10k", 100)]:
        values = bytes(source.randrange(10) for _ in range(count))
        pixels = bytearray()
        for value in values:
            noise = source.randbytes(IMAGE)
            pixels += bytes(noise[i] // 2 + (100 if i // 56 == value + 2 else 0) for i in range(IMAGE))
        (place / f"{name}-images-idx3-ubyte").write_bytes(images(count, pixels=bytes(pixels)))
        (place / f"{name}-labels-idx1-ubyte").write_bytes(labels(count, values))


def tables(text):
    """The tables that dps-train and dps-report print, without the seconds of cells, the names of files, and the answer that dps-report ends with."""
    kept, has_seconds = [], False
    for line in text.decode(errors="replace").splitlines():
        if re.match(r"By (K\*|confirmed steps), the critical batch size|The critical batch size is not known", line):
            break
        if line.endswith(" seconds"):
            has_seconds = True
        elif not line.strip():
            has_seconds = False
        elif has_seconds:
            line = line.rsplit(None, 1)[0]
        if not re.match("(Results|Figure|Report|Next): ", line):
            kept.append(line.rstrip())
    return "\n".join(kept).strip()


class Studies:
    """The two programs, data, and the files of studies, which cases copy and damage."""

    def __init__(self, programs, folder):
        self.train, self.report = (str(programs / name) for name in ["dps-train", "dps-report"])
        self.folder, self.made = folder, folder / "made"
        self.made.mkdir(parents=True)
        write_data(folder / "data")
        for name, changes in {
            "whole": [],
            "other": [("workload", "goal_error", "0.4"), ("grid", "trials", "2")],
            # Few examples may be wrong, so that it takes a while.
            "stopped": [
                ("workload", "goal_error", "0.05"),
                ("workload", "max_steps", "60"),
                ("workload", "evaluate_every", "1"),
                ("grid", "sparsities", "[0.9]"),
                ("grid", "trials", "2"),
            ],
        }.items():
            (self.made / f"{name}.toml").write_text(toml(changes))
        self.tables = {name: self.measure(name) for name in ["whole", "other", "stopped"]}
        self.interrupt("stopped")
        self.sealed = hdf5.sealed(self.bytes("whole", "h5"))

    def call(self, program, *words):
        """Runs a program that must succeed; its standard output."""
        run = subprocess.run([program, *map(str, words)], cwd=self.made, env=ENVIRONMENT, capture_output=True)
        if run.returncode != 0:
            raise RuntimeError(f"{program} {words}: exit code {run.returncode}, where nothing is wrong with its input: {run.stderr.decode()}")
        return run.stdout

    def measure(self, name):
        """Measures a study; its tables, which both programs must print."""
        printed = tables(self.call(self.train, *self.words(name), "-o", f"{name}.h5"))
        reported = tables(self.call(self.report, f"{name}.h5", "-o", "report"))
        if "Steps-to-result" not in printed or printed != reported:
            raise RuntimeError(f"dps-train and dps-report print different tables of {name}:\n{printed}\n{reported}")
        return printed

    def words(self, name):
        """Arguments that measure a study."""
        return [f"{name}.toml", "--data", DATA, "--threads", "1", "--device", "cpu"]

    def interrupt(self, name):
        """Measures a study again and stops it on the way, so that it leaves a checkpoint.

        Its events go into a pipe that is nearly full and is not read. So it waits after the first few until the signal is sent, however late."""
        for path in self.files(name):
            path.unlink()
        reader, writer = os.pipe()
        fcntl.fcntl(writer, F_SETPIPE_SZ, PIPE)
        os.write(writer, b" " * (PIPE - ROOM))
        command = [self.train, *self.words(name), "-o", f"{name}.h5", "--progress", "json"]
        process = subprocess.Popen(command, cwd=self.made, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=writer)
        os.close(writer)
        waiting = array.array("i", [0])
        while waiting[0] < PIPE - EVENT and process.poll() is None:
            time.sleep(0.001)
            fcntl.ioctl(reader, termios.FIONREAD, waiting)
        process.terminate()
        with open(reader, "rb") as events:
            said = events.read().decode().strip()
        if process.wait() != 75 or not (self.made / f"{name}.checkpoint").exists():
            raise RuntimeError(f"SIGTERM left no checkpoint, exit code {process.returncode}: {said}")

    def files(self, name):
        """The files that a study wrote."""
        return [path for path in sorted(self.made.glob(f"{name}.*")) if path.suffix != ".toml"]

    def copy(self, name, place):
        """Copies a study, with its configuration, into a case's folder as `x`."""
        for path in [self.made / f"{name}.toml", *self.files(name)]:
            shutil.copyfile(path, place.run / f"x{path.suffix}")

    def bytes(self, name, suffix):
        """A file of a study."""
        return (self.made / f"{name}.{suffix}").read_bytes()

    def resume(self, *more):
        """The command that measures, or continues, the study in a case's folder."""
        return [self.train, *self.words("x"), "-o", "x.h5", *more]

    def same_as(self, name, place, in_file=True):
        """A check that a run which succeeded has the results of the undamaged study, printed and, where asked, in its file."""

        def check(run):
            if run.code != 0:
                return
            if tables(run.stdout) != self.tables[name]:
                yield "it prints other results than the undamaged study has"
            if not in_file:
                return
            report = subprocess.run([self.report, "x.h5", "-o", "report"], cwd=place.run, env=ENVIRONMENT, capture_output=True)
            if report.returncode != 0:
                yield f"dps-report cannot read its result file: {report.stderr.decode(errors='replace')}"
            elif tables(report.stdout) != self.tables[name]:
                yield "its result file has other results than the undamaged study's"

        return check

    def contents(self):
        """All files of the studies, which no run may change."""
        found = {}
        for path in self.folder.rglob("*"):
            found[os.fspath(path)] = path.read_bytes() if path.is_file() else None
        return found
