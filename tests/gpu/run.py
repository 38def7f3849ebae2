#!/usr/bin/env python3
"""First contact with a GPU: is every operation right, and how fast is training?

From the folder that build.sh made, on a machine with a GPU: `python3 run.py [--out FOLDER] [--minutes 10]`. No part ends the others: each one that
fails, or for which a tool or the time is missing, says so in its row. It writes FOLDER/measured.json and FOLDER/measured.md, and what the tools
printed beside them. docs/gpu.md's table is made from the JSON: `python3 run.py --table measured.json`.

Ends with 0 where no part failed, 1 where one did or the GPU cannot be used, 77 where there is no GPU.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
NO_GPU = 77
# dps-train's exit code for a device that cannot be used (docs/how-it-works.md, "Exit codes").
DEVICE = 6
STAND_IN = "CUDA-EMU"

# Network's configuration, batch size, trials, steps of the shorter run, sparsity, products. The longer run has three times as many steps; a step's
# time is their difference, so that starting, compiling and scoring do not count.
SPEEDS = [
    ("mnist-simple-cnn-momentum", 2, 1, 2000, 0, "fused"),
    ("mnist-simple-cnn-momentum", 2, 100, 2000, 0, "fused"),
    ("mnist-simple-cnn-momentum", 64, 100, 300, 0, "fused"),
    ("mnist-simple-cnn-momentum", 1024, 100, 20, 0, "fused"),
    ("mnist-simple-cnn-momentum", 2048, 100, 10, 0, "fused"),
    ("mnist-simple-cnn-momentum", 16384, 100, 2, 0, "fused"),
    ("mnist-simple-cnn-momentum", 2, 100, 2000, 0.9, "fused"),
    ("mnist-simple-cnn-momentum", 64, 100, 300, 0.9, "fused"),
    ("mnist-simple-cnn-momentum", 64, 100, 300, 0, "split"),
    ("mnist-simple-cnn-momentum", 1024, 100, 20, 0, "split"),
    ("mnist-simple-cnn-momentum", 16384, 100, 2, 0, "split"),
    ("mnist-simple-cnn-momentum", 1024, 100, 20, 0, "tf32"),
    ("mnist-simple-cnn-momentum", 1024, 100, 20, 0, "cublas"),
    ("cifar-10-resnet-8-momentum-constant", 128, 100, 20, 0, "fused"),
    ("cifar-10-resnet-8-momentum-constant", 128, 100, 20, 0, "split"),
]

# Figures of one step's kernels that Nsight Compute reads: time, share of issue slots used, wavefronts of the load-store unit, hits in the first-level
# cache.
COUNTERS = [
    "gpu__time_duration.sum",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "l1tex__t_sector_hit_rate.pct",
]

CEILINGS = """
import json, time, torch
def rate(work, act):
    act(); torch.cuda.synchronize(); begun = time.perf_counter(); rounds = 0
    while time.perf_counter() - begun < 1.0:
        for _ in range(10): act()
        torch.cuda.synchronize(); rounds += 10
    return work * rounds / (time.perf_counter() - begun)
n = 8192
a, b = torch.randn(n, n, device="cuda"), torch.randn(n, n, device="cuda")
long = torch.empty(1 << 28, device="cuda"); other = torch.empty_like(long)
found = {"copy, TB/s read and written": rate(8 * long.numel(), lambda: other.copy_(long)) / 1e12}
for name, allowed in (("FP32", False), ("TF32", True)):
    torch.backends.cuda.matmul.allow_tf32 = allowed
    found[f"{name} product of 8192 x 8192, TFLOP/s"] = rate(2 * n ** 3, lambda: torch.mm(a, b)) / 1e12
print(json.dumps(found))
"""

PYTORCH = """
import json, time, torch
from torch import nn
import torch.nn.functional as F
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
found = {}
for batch in (64, 1024):
    net = nn.Sequential(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                        nn.LazyLinear(10)).cuda()
    images, labels = torch.randn(batch, 1, 28, 28, device="cuda"), torch.randint(10, (batch,), device="cuda")
    net(images)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, foreach=True)
    def step():
        optimizer.zero_grad(set_to_none=False)
        F.cross_entropy(net(images), labels).backward()
        optimizer.step()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(5): step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): step()
    torch.cuda.synchronize(); begun = time.perf_counter(); steps = 0
    while time.perf_counter() - begun < 2.0:
        for _ in range(50): graph.replay()
        torch.cuda.synchronize(); steps += 50
    found[f"PyTorch, one network, CUDA graph, batch size {batch}, images/s"] = batch * steps / (time.perf_counter() - begun)
print(json.dumps(found))
"""


class Missing(Exception):
    """What a part needs is not here."""


class Run:
    """The parts so far, and the time that is left."""

    def __init__(self, out, minutes):
        self.out, self.parts = out, []
        self.end = time.monotonic() + 60 * minutes
        out.mkdir(parents=True, exist_ok=True)

    def part(self, name, limit, act):
        """Runs `act(seconds it may take)`, which returns rows of (what, value), and keeps its outcome."""
        begun = time.monotonic()
        left = min(limit, self.end - begun)
        rows, note = [], ""
        if left < min(limit, 20):
            status, note = SKIPPED, "no time was left"
        else:
            try:
                rows = act(left)
                status = PASSED
            except Missing as why:
                status, note = SKIPPED, str(why)
            except subprocess.TimeoutExpired:
                status, note = FAILED, f"not done within {left:.0f} s"
            except Exception as why:  # One part's trouble, whatever it is, must not end the others.
                status, note = FAILED, f"{type(why).__name__}: {why}"
        part = {"name": name, "status": status, "seconds": round(time.monotonic() - begun, 1), "rows": rows, "note": note}
        self.parts.append(part)
        print(f"== {name}: {status}, {part['seconds']} s{': ' + note if note else ''}", flush=True)
        for what, value in rows:
            print(f"   {what}: {shown(value)}", flush=True)
        return part


def shown(value):
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def output(command, limit, log, env=None):
    """What a command prints, which is also kept in the file `log`; an error with its last line where it fails."""
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit, env={**os.environ, **(env or {})})
    log.write_text(ended.stdout)
    if ended.returncode:
        lines = ended.stdout.strip().splitlines() or ["it printed nothing"]
        raise RuntimeError(f"exit code {ended.returncode}: {lines[-1]}")
    return ended.stdout


def train(run, name, configuration, options, limit, env=None):
    """Seconds of a study of that configuration, and what it printed. Without data it is no failure."""
    config = HERE / "configs" / f"{configuration}.toml"
    data = "mnist" if configuration.startswith("mnist") else "cifar-10"
    if not (HERE / "data" / data).is_dir():
        raise Missing(f"{data} is not in {HERE / 'data'}")
    with tempfile.TemporaryDirectory() as folder:
        command = [HERE / "dps-train", config, "--data", HERE / "data", "--output", f"{folder}/study.h5", "--device", "cuda", *options]
        begun = time.monotonic()
        text = output(command, limit, run.out / f"{name}.log", env)
        return time.monotonic() - begun, text


def fixed(batch, trials, steps, sparsity, products):
    """Options for steps that nothing ends early."""
    settings = {
        "workload.max_steps": steps, "workload.evaluate_every": steps, "workload.goal_error": 0.0002, "search.learning_rate": 0.001,
        "search.momentum": 0.9, "execution.race": "false", "execution.checkpoint_seconds": 0, "pruning.examples": 1000,
        "execution.products": "fused" if products == "tf32" else products, "execution.tf32": "true" if products == "tf32" else "false",
    }
    options = ["--quiet", "--batch-size", str(batch), "--sparsity", str(sparsity), "--trials", str(trials)]
    return options + [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def start(run):
    def act(limit):
        with tempfile.TemporaryDirectory() as cache:
            env = {"XDG_CACHE_HOME": cache, "CUDA_CACHE_PATH": cache}
            rows = []
            for state in ("cold", "warm"):
                seconds, _ = train(run, f"start-{state}", "mnist-simple-cnn-momentum", fixed(2, 1, 1, 0, "fused"), limit, env)
                rows.append((f"a study of one step, {state}, s", seconds))
            return rows

    return act


def operations(run, program):
    def act(limit):
        if not (HERE / program).exists():
            raise Missing(f"{program} is not in {HERE}")
        command = [HERE / program, "--test-threads", "1"]
        log = run.out / f"{program}.log"
        try:
            output(command, limit, log, {"DPS_NEED_CUDA": "1"})
        finally:
            text = log.read_text() if log.exists() else ""
            outcomes = re.findall(r"^test (\S+) \.\.\. (ok|FAILED)$", text, re.M)
            failed = [name for name, outcome in outcomes if outcome == "FAILED"]
            if failed:
                raise RuntimeError(f"{len(failed)} of {len(outcomes)} operations differ from the CPU's: {', '.join(failed)}")
        return [("operations that agree with the CPU's", len(outcomes))]

    return act


def speed(run, configuration, batch, trials, steps, sparsity, products):
    def act(limit):
        begun, seconds = time.monotonic(), []
        for number, count in enumerate((steps, 3 * steps)):
            left = limit - (time.monotonic() - begun)
            name = f"{configuration}-{batch}-{trials}-{sparsity}-{products}-{number}"
            seconds.append(train(run, name, configuration, fixed(batch, trials, count, sparsity, products), left)[0])
        step = (seconds[1] - seconds[0]) / (2 * steps)
        if step <= 0:
            raise RuntimeError(f"{3 * steps} steps took {seconds[1]:.2f} s, {steps} took {seconds[0]:.2f} s")
        return [("step, ms", 1e3 * step), ("images/s", batch * trials / step)]

    return act


def evaluation(run):
    """100 lanes' evaluations: what a step costs more where each is followed by one."""

    def act(limit):
        options = fixed(2, 100, 200, 0, "fused")
        rare, _ = train(run, "evaluation-rare", "mnist-simple-cnn-momentum", options, limit)
        often, _ = train(run, "evaluation-often", "mnist-simple-cnn-momentum", options + ["--set", "workload.evaluate_every=2"], limit)
        return [("an evaluation of 100 networks that miss the goal, ms", 1e3 * (often - rare) / 99)]

    return act


def cell(run):
    def act(limit):
        options = ["--batch-size", "64", "--sparsity", "0"]
        seconds, text = train(run, "cell", "mnist-simple-cnn-momentum", options, limit)
        table = [line.strip() for line in text.splitlines() if re.match(r"\s*64\s", line)]
        # The CPU's is in docs/experiments/data/mnist-simple-cnn-momentum-b64-s0.h5: 432 steps, by trial 42.
        return [("a cell of 100 trials with the race, s", seconds), ("its row of the table", table[-1] if table else "none was printed")]

    return act


def python(run, name, program):
    def act(limit):
        if subprocess.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"], capture_output=True).returncode:
            raise Missing("PyTorch, or its GPU, is not there")
        text = output([sys.executable, "-c", program], limit, run.out / f"{name}.log")
        return list(json.loads(text.strip().splitlines()[-1]).items())

    return act


def sanitizer(run, tool):
    def act(limit):
        if not shutil.which("compute-sanitizer"):
            raise Missing("compute-sanitizer is not there")
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", HERE / "cuda", "--test-threads", "1", "--exact"]
        text = output(command + ["batches_are_the_cpus_bit_for_bit", "gradients_and_losses_agree"], limit, run.out / f"{tool}.log")
        return [(line.strip("= \n"), "") for line in text.splitlines() if "ERROR SUMMARY" in line or "RACECHECK SUMMARY" in line]

    return act


def counters(run, batch, trials):
    def act(limit):
        if not shutil.which("ncu"):
            raise Missing("ncu is not there")
        config = HERE / "configs" / "mnist-simple-cnn-momentum.toml"
        with tempfile.TemporaryDirectory() as folder:
            command = ["ncu", "--clock-control", "none", "--csv", "--launch-skip", "30", "--launch-count", "24", "--metrics", ",".join(COUNTERS)]
            command += [HERE / "dps-train", config, "--data", HERE / "data", "--output", f"{folder}/study.h5", "--device", "cuda"]
            output(command + fixed(batch, trials, 6, 0, "fused"), limit, run.out / f"counters-{batch}.csv")
        return [("kept in", f"counters-{batch}.csv")]

    return act


def machine(run, rehearsal):
    """The GPU's name; ends the program where there is none."""
    doctor = subprocess.run([HERE / "dps-train", "doctor", "--gpu", "--data", HERE / "data"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    (run.out / "doctor.log").write_text(doctor.stdout)
    print(doctor.stdout)
    if STAND_IN in doctor.stdout and not rehearsal:
        print("test-gpu: FAILED: this is the host test double, not a GPU; take it out of LD_LIBRARY_PATH")
        raise SystemExit(1)
    if doctor.returncode == DEVICE:
        smi = subprocess.run("nvidia-smi -L", shell=True, capture_output=True, text=True).stdout
        if "GPU" in smi:
            print("test-gpu: FAILED: nvidia-smi shows a GPU that dps cannot use")
            raise SystemExit(1)
        print("test-gpu: SKIPPED, nothing was tested: there is no GPU here")
        raise SystemExit(NO_GPU)
    asked = "name,driver_version,clocks.max.sm,clocks.max.mem,clocks.sm,power.limit"
    smi = subprocess.run(["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"], capture_output=True, text=True) if shutil.which("nvidia-smi") else None
    mode = subprocess.run("nvidia-smi -q | grep -i 'addressing mode'", shell=True, capture_output=True, text=True).stdout
    rows = [(asked, smi.stdout.strip() if smi else "nvidia-smi is not there"), ("addressing mode", mode.split(":")[-1].strip() or "not said")]
    return STAND_IN if STAND_IN in doctor.stdout else rows[0][1].split(",")[0], rows


def table(measured):
    """The Markdown of a measured.json."""
    lines = []
    if measured["rehearsal"]:
        lines += ["**A rehearsal through the stand-in for CUDA: no GPU's result.**", ""]
    lines += [f"{measured['gpu']}, {measured['program']}, {measured['date']}.", "", "| what | outcome | |", "|---|---|---|"]
    for part in measured["parts"]:
        rows = "; ".join(f"{what}: {shown(value)}" if value != "" else what for what, value in part["rows"])
        lines.append(f"| {part['name']} | {part['status']} | {rows or part['note']} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("measured"), help="folder for what is measured")
    parser.add_argument("--minutes", type=float, default=9.5, help="time for all parts")
    parser.add_argument("--only", help="parts whose names contain this word alone")
    parser.add_argument("--rehearsal", action="store_true", help="allow the stand-in for CUDA; what is measured then says so")
    parser.add_argument("--table", type=pathlib.Path, help="print the table of this measured.json, and end")
    given = parser.parse_args()
    if given.table:
        print(table(json.loads(given.table.read_text())), end="")
        return 0

    run = Run(given.out, given.minutes)
    gpu, rows = machine(run, given.rehearsal)
    run.parts.append({"name": "machine", "status": PASSED, "seconds": 0, "rows": rows, "note": ""})
    # What is worth most comes first, in case the time ends.
    parts = [("every operation", 150, operations(run, "cuda")), ("every operation by cuBLAS", 60, operations(run, "cuda_products")),
             ("random networks", 60, operations(run, "cuda_networks")), ("start", 60, start(run))]
    parts += [(f"{configuration}, batch size {batch}, {trials} trials, sparsity {sparsity}, {products}", 60,
               speed(run, configuration, batch, trials, steps, sparsity, products))
              for configuration, batch, trials, steps, sparsity, products in SPEEDS]
    parts += [("evaluation", 60, evaluation(run)), ("one real cell", 90, cell(run)), ("ceilings", 40, python(run, "ceilings", CEILINGS)),
              ("PyTorch", 40, python(run, "pytorch", PYTORCH)), ("counters at 1,024", 90, counters(run, 1024, 20)), ("counters at 2", 60, counters(run, 2, 100))]
    parts += [(tool, 90, sanitizer(run, tool)) for tool in ("memcheck", "racecheck", "initcheck")]
    outcomes = [run.part(name, limit, act) for name, limit, act in parts if not given.only or given.only in name]

    version = subprocess.run([HERE / "dps-train", "--version"], capture_output=True, text=True).stdout.strip()
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    measured = {"gpu": gpu, "program": version, "date": now, "rehearsal": given.rehearsal and gpu == STAND_IN, "parts": run.parts}
    (run.out / "measured.json").write_text(json.dumps(measured, indent=1) + "\n")
    (run.out / "measured.md").write_text(table(measured))
    wrong = [part["name"] for part in outcomes if part["status"] == FAILED]
    print(f"test-gpu: {'FAILED: ' + ', '.join(wrong) if wrong else 'PASSED'}; {run.out / 'measured.md'} has the table")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
