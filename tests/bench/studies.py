"""Runs of dps-train on real data, for what a benchmark wants to know of them."""

import json
import os
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

STUDY = """[workload]
dataset = "{dataset}"
network = "{network}"
optimizer = "momentum"
goal_error = {goal}
max_steps = {steps}
evaluate_every = {every}
[grid]
batch_sizes = [{batch}]
sparsities = [{sparsity}]
trials = {trials}
[search]
learning_rate = {rate}
momentum = {momentum}
[pruning]
examples = {scored}
"""
# One fixed trial to a goal that none reaches: an evaluation is decided, and over, at its first wrong examples.
FIXED = dict(network="simple-cnn", goal=0.0001, sparsity=0, trials=1, rate=0.001, momentum=0.9, scored=100, ranks=1, threads=1, settings=())
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Studies:
    """The program, and where its data are."""

    def __init__(self, folder, data):
        self.train, self.data = folder / "dps-train", data

    def command(self, folder, case):
        case = {**FIXED, **case}
        case.setdefault("every", case["steps"])
        case["dataset"] = "cifar-10" if case["network"] == "resnet-8" else "fashion-mnist"
        (folder / "x.toml").write_text(STUDY.format(**case))
        command = [self.train, folder / "x.toml", "--data", self.data, "--output", folder / "x.h5", "--device", "cpu", "--threads", case["threads"]]
        command += [word for setting in case["settings"] for word in ("--set", setting)]
        if case["ranks"] > 1:
            command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", case["ranks"], *command]
        return list(map(str, command))

    def start(self, **case):
        """A study under way; `wait` for it."""
        return Run(self, case)

    def run(self, **case):
        return self.start(**case).wait()

    def planned_bytes(self, **case):
        """Memory of a rank in bytes, by `--plan`; where the case saves checkpoints, with one."""
        with tempfile.TemporaryDirectory() as folder:
            command = self.command(Path(folder), case) + ["--plan"]
            text = subprocess.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT).stdout
        saves = any("checkpoint_seconds" in setting for setting in case.get("settings", ()))
        number, unit = re.search(r"([\d.,]+) (\w+) on rank 0" if saves else r"in ([\d.,]+) (\w+) of memory", text).groups()
        return float(number.replace(",", "")) * {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}[unit]


class Run:
    """A study of one cell, as it ends: `cell` is the program's event, `work` the numbers computed, `wall` seconds from start to end,
    `peak` bytes of memory of the rank that took most."""

    def __init__(self, studies, case):
        self.folder = tempfile.TemporaryDirectory()
        command = studies.command(Path(self.folder.name), case) + ["--progress", "json"]
        self.began = time.perf_counter()
        # Files, not pipes, so that a study never waits for its reader.
        self.output, self.errors = (open(Path(self.folder.name) / name, "w+") for name in ("output", "errors"))
        self.process = subprocess.Popen(command, stdout=self.output, stderr=self.errors, env=ENVIRONMENT)

    def wait(self):
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.wall = time.perf_counter() - self.began
        # Of the process and of those that it has waited for: mpirun's ranks.
        self.peak = usage.ru_maxrss * 1024
        text, errors = ((file.seek(0), file.read())[1] for file in (self.output, self.errors))
        if self.process.returncode != 0:
            raise RuntimeError(f"{' '.join(self.process.args)} ended with {self.process.returncode}: {errors.strip()[-400:]}")
        self.cell = next(json.loads(line) for line in errors.splitlines() if '"cell_finished"' in line)
        computed = re.search(r"^ *computed +([\d,]+) +([\d,]+)$", text, re.MULTILINE).groups()
        self.work = dict(zip(("example-gradients", "validation examples"), (int(number.replace(",", "")) for number in computed)))
        self.folder.cleanup()
        return self


class Stepper:
    """How long a step of a case takes, by runs of about as many seconds as are asked for. Of each, the seconds of a run of one step are taken
    away: what all runs have in common."""

    def __init__(self, studies, **case):
        self.studies, self.case = studies, case
        # The shorter of two: on a busy machine one may stall.
        runs = [studies.run(**case, steps=1) for _ in range(2)]
        self.once, self.peak, self.times = min(run.cell["seconds"] for run in runs), runs[0].peak, []
        # A guess, put right by the first turn.
        self.step, self.steps = case["batch"] * case.get("trials", 1) / 8000, None

    def start(self, seconds):
        # The part that all runs have in common must be small, or its own noise is counted as steps.
        wanted = max(2, round(max(seconds, 3 * self.once) / self.step))
        # A turn that was too short to tell anything must not make the next one endless.
        self.steps = min(wanted, 4 * self.steps) if self.steps else wanted
        return self.studies.start(**self.case, steps=1 + self.steps)

    def finish(self, run):
        """Takes a run's time down; returns the seconds of one step."""
        run.wait()
        self.peak = max(self.peak, run.peak)
        taken = run.cell["seconds"]
        self.step = (taken - min(self.once, taken / 2)) / self.steps
        self.times.append(self.step)
        return self.step

    def turn(self, seconds):
        return self.finish(self.start(seconds))

    def median(self):
        return statistics.median(self.times)


def quartiles(values):
    """First quartile, median, third quartile."""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else list(values) * 3
