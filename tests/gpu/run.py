#!/usr/bin/env python3
"""First contact with a GPU: is every operation right, and how fast is training?

From the folder that build.sh made, on a machine with a GPU: `python3 run.py [--out FOLDER] [--minutes 8.5]`. No part ends the others: each one that
fails, or for which a tool or the time is missing, says so in its row. After every part FOLDER has what is known so far: measured.json, the same as a
table in measured.md, and what the programs printed in logs.tgz. docs/gpu.md's table is made from the JSON: `python3 run.py --table measured.json`.

Ends with 0 where no part failed, 1 where one did or the GPU cannot be used, 77 where there is no GPU.
"""

import argparse
import atexit
import contextlib
import datetime
import io
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import typing
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
NO_GPU = 77
# dps-train's exit codes for a data set that is missing and for a device that cannot be used (docs/how-it-works.md, "Exit codes").
DATA, DEVICE = 3, 6
STAND_IN = "CUDA-EMU"
# Bytes at the end of a log that are read and kept.
LOG = 1_000_000

SIMPLE_CNN, RESNET_8 = "mnist-simple-cnn-momentum", "cifar-10-resnet-8-momentum-constant"
NAMES = {SIMPLE_CNN: "Simple-CNN", RESNET_8: "ResNet-8 on random images"}

# Network's configuration, batch size, trials, steps of the shorter run, sparsity, products. The longer run has three times as many steps; a step's
# time is their difference, so that starting and scoring do not count.
SPEEDS = [
    (SIMPLE_CNN, 2, 1, 2000, 0, "fused"),
    (SIMPLE_CNN, 2, 100, 2000, 0, "fused"),
    (SIMPLE_CNN, 64, 100, 300, 0, "fused"),
    (SIMPLE_CNN, 1024, 100, 20, 0, "fused"),
    (SIMPLE_CNN, 2048, 100, 10, 0, "fused"),
    (SIMPLE_CNN, 16384, 100, 2, 0, "fused"),
    (SIMPLE_CNN, 2, 100, 2000, 0.9, "fused"),
    (SIMPLE_CNN, 64, 100, 300, 0.9, "fused"),
    (SIMPLE_CNN, 64, 100, 300, 0, "split"),
    (SIMPLE_CNN, 1024, 100, 20, 0, "split"),
    (SIMPLE_CNN, 16384, 100, 2, 0, "split"),
    (SIMPLE_CNN, 1024, 100, 20, 0, "tf32"),
    (SIMPLE_CNN, 1024, 100, 20, 0, "cublas"),
    (RESNET_8, 128, 100, 20, 0, "fused"),
    (RESNET_8, 128, 100, 20, 0, "split"),
]

LANES = 100
# Examples that connections are scored on: the whole training set of MNIST.
SCORED = 54_000
# A cell whose steps-to-result the CPU measured: docs/experiments/data/mnist-simple-cnn-momentum.h5, which dps-report prints.
CELL = {"batch": 64, "steps": 432, "trial": 42}

# Figures of one step's kernels that Nsight Compute reads: time, share of issue slots used, wavefronts of the load-store unit, hits in the first-level
# cache.
COUNTERS = [
    "gpu__time_duration.sum",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "l1tex__t_sector_hit_rate.pct",
]

# How both programs below begin. They print each row as soon as they have it.
TORCH = f"""
import json, sys, time
try:
    import torch
except ImportError:
    sys.exit({NO_GPU})
if not torch.cuda.is_available():
    sys.exit({NO_GPU})
def row(what, value): print(json.dumps([what, value]), flush=True)
"""

CEILINGS = """
def rate(work, act):
    act(); torch.cuda.synchronize(); begun = time.perf_counter(); rounds = 0
    while time.perf_counter() - begun < 1.0:
        for _ in range(10): act()
        torch.cuda.synchronize(); rounds += 10
    return work * rounds / (time.perf_counter() - begun)
n = 8192
a, b = torch.randn(n, n, device="cuda"), torch.randn(n, n, device="cuda")
long = torch.empty(1 << 28, device="cuda"); other = torch.empty_like(long)
row("copy, TB/s read and written", rate(8 * long.numel(), lambda: other.copy_(long)) / 1e12)
for name, allowed in (("FP32", False), ("TF32", True)):
    torch.backends.cuda.matmul.allow_tf32 = allowed
    row(f"{name} product of 8192 x 8192, TFLOP/s", rate(2 * n ** 3, lambda: torch.mm(a, b)) / 1e12)
"""

NETWORK = """
from torch import nn
import torch.nn.functional as F
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
def simple_cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(1024, 10)).cuda()
"""

PYTORCH = NETWORK + """
for batch in (64, 1024):
    net = simple_cnn()
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
    row(f"PyTorch, one network, CUDA graph, batch size {batch}, images/s", batch * steps / (time.perf_counter() - begun))
"""

VMAP = NETWORK + f"""
from torch.func import functional_call, grad, stack_module_state, vmap
lanes, net = {LANES}, simple_cnn()
weights, _ = stack_module_state([simple_cnn() for _ in range(lanes)])
weights = {{name: values.detach() for name, values in weights.items()}}
velocity = {{name: torch.zeros_like(values) for name, values in weights.items()}}
gradients = vmap(grad(lambda own, images, labels: F.cross_entropy(functional_call(net, own, (images,)), labels)))
for batch in (2, 64):
    images, labels = torch.randn(lanes, batch, 1, 28, 28, device="cuda"), torch.randint(10, (lanes, batch), device="cuda")
    def step():
        found = gradients(weights, images, labels)
        for name, own in weights.items():
            velocity[name].mul_(0.9).add_(found[name])
            own.add_(velocity[name], alpha=-1e-3)
    for _ in range(3): step()
    torch.cuda.synchronize(); begun = time.perf_counter(); steps = 0
    while time.perf_counter() - begun < 2.0:
        for _ in range(5): step()
        torch.cuda.synchronize(); steps += 5
    row(f"PyTorch, {{lanes}} networks by vmap, batch size {{batch}}, images/s", lanes * batch * steps / (time.perf_counter() - begun))
"""


class Missing(Exception):
    """What a part needs is not here."""


class Failure(Exception):
    """What a part found is wrong."""


class Ended(typing.NamedTuple):
    """How a program ended: its exit code, none where it had to be killed or was not there; what it printed; why it failed, empty where it did not."""

    code: typing.Optional[int]
    text: str
    trouble: str


class Run:
    """The parts so far, the time that is left, and the folders."""

    def __init__(self, out, minutes, rehearsal):
        self.rehearsal = rehearsal
        self.parts, self.warm = [], set()
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        self.about = {"gpu": "", "program": "", "date": now, "rehearsal": False}
        self.end = self.end_of_part = time.monotonic() + 60 * minutes
        self.out, self.folder = out, pathlib.Path(tempfile.mkdtemp(prefix="dps-gpu-"))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.logs = self.folder / "logs"
        self.logs.mkdir()
        out.mkdir(parents=True, exist_ok=True)

    def left(self):
        """Seconds that the part under way may still take."""
        return max(0, self.end_of_part - time.monotonic())

    def part(self, name, limit, rows):
        """Takes rows of (what, value) from the generator `rows` until it ends or fails, and writes what is known so far."""
        begun = time.monotonic()
        enough = self.end - begun >= min(limit, 20)
        self.end_of_part = min(begun + limit, self.end)
        part = {"name": name, "status": FAILED, "seconds": 0, "rows": [], "note": "interrupted"}
        self.parts.append(part)
        try:
            if not enough:
                raise Missing("no time was left")
            # One by one, so that those before a failure stay.
            for row in rows:
                part["rows"].append(row)
            part["status"], part["note"] = PASSED, ""
        except Missing as why:
            part["status"], part["note"] = SKIPPED, str(why)
        except Failure as why:
            part["note"] = str(why)
        except Exception as why:  # One part's trouble, whatever it is, must not end the others.
            part["note"] = f"{type(why).__name__}: {why}"
        finally:
            part["seconds"] = round(time.monotonic() - begun, 1)
            print(f"== {name}: {part['status']}, {part['seconds']} s{': ' if part['note'] else ''}{part['note']}")
            for what, value in part["rows"]:
                print(f"   {what}: {shown(value)}")
            sys.stdout.flush()
            self.write()
        return part

    def write(self):
        """Writes measured.json, measured.md and logs.tgz, each whole or not at all."""
        measured = {**self.about, "parts": self.parts}
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for log in sorted(self.logs.iterdir()):
                data = end_of(log)
                member = tarfile.TarInfo(f"logs/{log.name}")
                member.size, member.mtime = len(data), log.stat().st_mtime
                archive.addfile(member, io.BytesIO(data))
        text = json.dumps(measured, indent=1) + "\n"
        files = {"measured.json": text.encode(), "measured.md": table(measured).encode(), "logs.tgz": packed.getvalue()}
        for name, data in files.items():
            (self.out / "unfinished").write_bytes(data)
            os.replace(self.out / "unfinished", self.out / name)


def end_of(log):
    """A log's last bytes."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOG))
        return file.read(LOG)


def shown(value):
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def ended(run, name, command, limit=math.inf, env=None):
    """Runs a program for so many seconds at most, and no longer than its part. What it prints goes into the log of that name."""
    limit = min(limit, run.left())
    log = run.logs / f"{name}.log"
    with log.open("wb") as file:
        try:
            process = subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})},
                                       start_new_session=True)
        except OSError as why:
            return Ended(None, "", str(why))
    # A thread waits for it: the time is measured, and wait(timeout) would look for the end every 50 ms alone.
    waiting = threading.Thread(target=process.wait, daemon=True)
    waiting.start()
    try:
        waiting.join(limit)
        code = None if waiting.is_alive() else process.returncode
    finally:
        # What it started ends too: ncu and compute-sanitizer start programs.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        # A driver that hangs may keep a process for ever; it is then left alone.
        waiting.join(5)
    text = end_of(log).decode(errors="replace")
    return Ended(code, text, trouble(code, text, limit))


def trouble(code, text, limit):
    """Why a program failed, with a panic's message or the last line; empty where it did not."""
    if code == 0:
        return ""
    if code is None:
        return f"not done within {limit:.0f} s"
    panic = re.search(r"panicked at .*\n(.*)", text)
    line = panic[1] if panic else (text.strip() or "it printed nothing").splitlines()[-1]
    return f"{f'exit code {code}' if code > 0 else signal.strsignal(-code)}: {line}"


def output(run, name, command, env=None):
    """What a program prints that must not fail."""
    done = ended(run, name, command, env=env)
    if done.trouble:
        raise Failure(done.trouble)
    return done.text


def study(run, name, configuration, options):
    """The command of a study on the GPU. Its data are MNIST or, in place of CIFAR-10, random images."""
    if configuration == RESNET_8:
        file = run.folder / "random.npz"
        if not file.exists():
            random_images(file)
        options = ["--set", f'workload.dataset.path="{file}"', *options]
    elif not (HERE / "data" / "mnist").is_dir():
        raise Missing(f"mnist is not in {HERE / 'data'}")
    command = [HERE / "dps-train", HERE / "configs" / f"{configuration}.toml", "--data", HERE / "data", "--output", run.folder / f"{name}.h5"]
    return command + ["--device", "cuda", "--set", "execution.deadline_seconds=30", *options]


def random_images(file):
    """Makes a file of 4,000 training and 400 test images of CIFAR-10's shape, in NumPy's format."""
    draws = random.Random(1)
    with zipfile.ZipFile(file, "w") as archive:
        for name, count in (("train", 4000), ("test", 400)):
            archive.writestr(f"x_{name}.npy", array((count, 32, 32, 3), draws.randbytes(count * 32 * 32 * 3)))
            archive.writestr(f"y_{name}.npy", array((count,), bytes(number % 10 for number in range(count))))


def array(shape, values):
    """An array of bytes as an .npy file has it: a mark, the version, the header's length, the header, the values."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + values


def train(run, name, configuration, options, env=None):
    """Seconds of a study, and what it printed."""
    command = study(run, name, configuration, options)
    begun = time.monotonic()
    text = output(run, name, command, env)
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


def warm(run, configuration, products):
    """Takes one step that is not timed, so that the kernels are compiled."""
    if (configuration, products) not in run.warm:
        train(run, f"warm-{configuration}-{products}", configuration, fixed(2, 1, 1, 0, products))
        run.warm.add((configuration, products))


# From here on the parts: generators of rows, and what they share.


def machine(run):
    """What this machine is. Afterwards `run.about` names no GPU where nothing can be measured."""
    run.about["program"] = ended(run, "version", [HERE / "dps-train", "--version"], 10).text.strip()
    listed = ended(run, "nvidia-smi", ["nvidia-smi", "-L"], 15)
    doctor = ended(run, "doctor", [HERE / "dps-train", "doctor", "--gpu", "--data", HERE / "data"], 20)
    print(doctor.text, flush=True)
    stand_in = STAND_IN in doctor.text
    if stand_in and not run.rehearsal:
        raise Failure("this is the host test double, not a GPU; take it out of LD_LIBRARY_PATH")
    # Versions of NVIDIA's libraries or, where one cannot be used, why.
    yield from re.findall(r"^(NVIDIA driver|NVRTC|cuBLAS|NCCL|GPU)  +(.*)", doctor.text, re.M)
    names = re.findall(r"^GPU \d+: (.*) \(UUID", listed.text, re.M)
    if doctor.code == DEVICE and not names and not list(pathlib.Path("/dev").glob("nvidia[0-9]*")):
        raise Missing("there is no GPU here")
    run.about.update(gpu=STAND_IN if stand_in else names[0] if names else "a GPU without a name", rehearsal=stand_in)
    yield "nvidia-smi", listed.trouble or ", ".join(names)
    asked = "driver_version,clocks.max.sm,clocks.max.mem,clocks.sm,power.limit"
    yield asked, ended(run, "clocks", ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"], 10).text.strip()
    modes = re.findall(r"Addressing Mode +: (.*)", ended(run, "nvidia-smi-q", ["nvidia-smi", "-q"], 10).text)
    yield "addressing mode", modes[0] if modes else "not said"
    if doctor.code not in (0, DATA):
        raise Failure(f"dps cannot use this GPU: {doctor.trouble}")


def tested(run, name, program, test, before=(), env=None, limit=math.inf):
    """How a test ended, by itself in a process: after one illegal access CUDA refuses a process everything."""
    done = ended(run, name, [*before, HERE / program, "--exact", test, "--nocapture", "--test-threads", "1"], limit, env)
    return done if done.trouble or "1 passed" in done.text else done._replace(trouble="the test did not run")


def cases(run, program):
    """The tests of a program, and of random networks one case each: what it is called, the test, the variables that it needs."""
    if not (HERE / program).exists():
        raise Missing(f"{program} is not in {HERE}")
    found = []
    for test in re.findall(r"^(\S+): test$", output(run, f"{program}-list", [HERE / program, "--list"]), re.M):
        if test == "random_networks_agree":
            found += [(f"{test}-{seed}", test, {"DPS_FROM": str(seed), "DPS_NETWORKS": "1"}) for seed in range(8)]
        else:
            found.append((test, test, {}))
    return found


def operations(run, program, limit):
    """Every test of a program, each for at most so many seconds."""
    known = cases(run, program)
    passed = failed = 0
    for name, test, env in known:
        done = tested(run, f"{program}-{name}", program, test, env=env, limit=limit)
        if done.code is None and not run.left():
            break
        if done.trouble:
            failed += 1
            yield f"failed: {name}", done.trouble
        else:
            passed += 1
    yield "tests", f"{passed} passed, {failed} failed, {len(known) - passed - failed} not reached or cut short"
    if passed < len(known) or not known:
        raise Failure(f"{passed} of {len(known)} tests passed")


def start(run):
    env = {"XDG_CACHE_HOME": str(run.folder / "cache"), "CUDA_CACHE_PATH": str(run.folder / "cache")}
    for state in ("cold", "warm"):
        yield f"a study of one step, {state}, s", train(run, f"start-{state}", SIMPLE_CNN, fixed(2, 1, 1, 0, "fused"), env)[0]


def speed(run, configuration, batch, trials, steps, sparsity, products):
    warm(run, configuration, products)
    name = f"{configuration}-{batch}-{trials}-{sparsity}-{products}"
    short, _ = train(run, f"{name}-short", configuration, fixed(batch, trials, steps, sparsity, products))
    yield f"start and {steps} steps, s", short
    long, _ = train(run, f"{name}-long", configuration, fixed(batch, trials, 3 * steps, sparsity, products))
    yield f"start and {3 * steps} steps, s", long
    step = (long - short) / (2 * steps)
    if step <= 0:
        raise Failure("more steps took no longer")
    yield "step, ms", 1e3 * step
    yield "images/s", batch * trials / step


def evaluation(run):
    """100 lanes' evaluations: what a step costs more where each is followed by one."""
    warm(run, SIMPLE_CNN, "fused")
    options = fixed(2, 100, 200, 0, "fused")
    rare, _ = train(run, "evaluation-rare", SIMPLE_CNN, options)
    yield "1 evaluation, start and 200 steps, s", rare
    often, _ = train(run, "evaluation-often", SIMPLE_CNN, options + ["--set", "workload.evaluate_every=2"])
    yield "100 evaluations, start and 200 steps, s", often
    yield "an evaluation of 100 networks that miss the goal, ms", 1e3 * (often - rare) / 99


def host(run):
    """How much of an evaluation the host has to itself: choosing the examples, and counting errors."""
    if not (HERE / "cuda").exists():
        raise Missing(f"cuda is not in {HERE}")
    # The stand-in has no time for as many.
    lanes = "2" if run.about["rehearsal"] else str(LANES)
    done = tested(run, "host", "cuda", "an_evaluation_ends_where_the_goal_is_missed", env={"DPS_LANES": lanes})
    if done.trouble:
        raise Failure(done.trouble)
    times = re.search(r"an evaluation of (\d+) lanes: ([\d.]+) ms, ([\d.]+) of them", done.text)
    if not times:
        raise Failure("the test printed no times")
    whole, device = float(times[2]), float(times[3])
    yield f"an evaluation of {times[1]} networks far from the goal, ms", whole
    yield "of these by the device and for it, ms", device
    yield "the host's share", 1 - device / whole


def scores(run):
    """SNIP: what more trials cost at sparsity 0.9 than at 0, in a study of one step."""
    warm(run, SIMPLE_CNN, "fused")
    # The stand-in has no time for as many.
    more, examples = (1, 100) if run.about["rehearsal"] else (10, SCORED)
    seconds = {}
    for sparsity in (0, 0.9):
        for trials in (1, 1 + more):
            options = fixed(2, trials, 1, sparsity, "fused") + ["--set", f"pruning.examples={examples}"]
            seconds[sparsity, trials], _ = train(run, f"scores-{sparsity}-{trials}", SIMPLE_CNN, options)
            yield f"one step, {trials} trials, sparsity {sparsity}, s", seconds[sparsity, trials]
    cost = {sparsity: seconds[sparsity, 1 + more] - seconds[sparsity, 1] for sparsity in (0, 0.9)}
    yield f"connection sensitivity of a trial on {examples:,} examples, s", (cost[0.9] - cost[0]) / more


def cell(run):
    seconds, text = train(run, "cell", SIMPLE_CNN, ["--batch-size", str(CELL["batch"]), "--sparsity", "0"])
    yield "a cell of 100 trials with the race, s", seconds
    yield "the CPU's steps-to-result", f"{CELL['steps']} (trial {CELL['trial']})"
    found = re.search(r"^\[1/1\] .*: ([\d,]+) steps \(trial (\d+)", text, re.M)
    if not found:
        raise Failure("expected its steps-to-result, found none in what was printed")
    steps = int(found[1].replace(",", ""))
    yield "this GPU's", f"{steps} (trial {found[2]})"
    # Rounding makes a trial learn a little differently; evaluations are 16 steps apart.
    if not 2 / 3 <= steps / CELL["steps"] <= 3 / 2:
        raise Failure(f"expected about {CELL['steps']} steps, found {steps}")


def pytorch(run, name, program):
    done = ended(run, name, [sys.executable, "-c", TORCH + program])
    if done.code == NO_GPU:
        raise Missing("PyTorch, or its GPU, is not there")
    yield from map(json.loads, re.findall(r'^\[".*\]$', done.text, re.M))
    if done.trouble:
        raise Failure(done.trouble)


def counters(run, batch, trials):
    if not shutil.which("ncu"):
        raise Missing("ncu is not there")
    name = f"counters-{batch}"
    command = ["ncu", "--clock-control", "none", "--csv", "--launch-skip", "30", "--launch-count", "24", "--metrics", ",".join(COUNTERS)]
    output(run, name, command + study(run, name, SIMPLE_CNN, fixed(batch, trials, 6, 0, "fused")))
    yield "kept in", f"logs.tgz, {name}.log"


def sanitizer(run, tool):
    if not shutil.which("compute-sanitizer"):
        raise Missing("compute-sanitizer is not there")
    wrong = []
    for test in ("batches_are_the_cpus_bit_for_bit", "gradients_and_losses_agree"):
        done = tested(run, f"{tool}-{test}", "cuda", test, ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9"])
        summaries = re.findall(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (.*)", done.text, re.M)
        yield from ((test, summary) for summary in summaries)
        if done.trouble or not summaries or not all(summary.startswith("0 ") for summary in summaries):
            wrong.append(f"{test}: {done.trouble or ', '.join(summaries) or f'{tool} did not run'}")
    if wrong:
        raise Failure("; ".join(wrong))


def table(measured):
    """The Markdown of a measured.json."""
    lines = []
    if measured["rehearsal"]:
        lines += ["**A rehearsal through the stand-in for CUDA: no GPU's result.**", ""]
    lines += [f"{measured['gpu'] or 'No GPU'}, {measured['program']}, {measured['date']}.", "", "| what | outcome | |", "|---|---|---|"]
    for part in measured["parts"]:
        found = [f"{what}: {shown(value)}" for what, value in part["rows"]] + [part["note"]] * bool(part["note"])
        text = " ".join("; ".join(found).replace("|", "\\|").split())
        lines.append(f"| {part['name']} | {part['status']} | {text} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("measured"), help="folder for what is measured")
    parser.add_argument("--minutes", type=float, default=8.5, help="time for all parts")
    parser.add_argument("--only", help="parts whose names contain this word alone")
    parser.add_argument("--rehearsal", action="store_true", help="allow the stand-in for CUDA; what is measured then says so")
    parser.add_argument("--table", type=pathlib.Path, help="print the table of this measured.json, and end")
    given = parser.parse_args()
    if given.table:
        print(table(json.loads(given.table.read_text())), end="")
        return 0

    # dps looks for NVIDIA's libraries in this folder too, and a Python that is only in PATH does not name its own.
    os.environ.setdefault("VIRTUAL_ENV", sys.prefix)
    # Without it tests are skipped where they find no GPU.
    os.environ["DPS_NEED_CUDA"] = "1"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    run = Run(given.out, given.minutes, given.rehearsal)
    first = run.part("machine", 60, machine(run))
    if not run.about["gpu"]:
        skipped = first["status"] == SKIPPED
        print(f"test-gpu: {'SKIPPED, nothing was tested' if skipped else 'FAILED'}: {first['note']}")
        return NO_GPU if skipped else 1

    # What is worth most comes first, in case the time ends.
    parts = [("every operation", 150, operations(run, "cuda", 30)), ("every operation by cuBLAS", 60, operations(run, "cuda_products", 30)),
             ("random networks", 150, operations(run, "cuda_networks", 60)), ("start", 60, start(run))]
    parts += [(f"{NAMES[configuration]}, batch size {batch}, {trials} trials, sparsity {sparsity}, {products}", 40,
               speed(run, configuration, batch, trials, steps, sparsity, products))
              for configuration, batch, trials, steps, sparsity, products in SPEEDS]
    parts += [("evaluation", 60, evaluation(run)), ("the host's share of an evaluation", 60, host(run)), ("SNIP", 60, scores(run)),
              ("one real cell", 90, cell(run)), ("ceilings", 40, pytorch(run, "ceilings", CEILINGS)),
              ("PyTorch", 40, pytorch(run, "pytorch", PYTORCH)), ("PyTorch with vmap", 60, pytorch(run, "vmap", VMAP)),
              ("counters at 1,024", 90, counters(run, 1024, 20)), ("counters at 2", 60, counters(run, 2, 100))]
    parts += [(tool, 90, sanitizer(run, tool)) for tool in ("memcheck", "racecheck", "initcheck")]
    for part in parts:
        if not given.only or given.only in part[0]:
            run.part(*part)
    wrong = [part["name"] for part in run.parts if part["status"] == FAILED]
    print(f"test-gpu: {'FAILED: ' + ', '.join(wrong) if wrong else 'PASSED'}; {given.out / 'measured.md'} has the table")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
