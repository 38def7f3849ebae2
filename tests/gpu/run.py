#!/usr/bin/env python3
"""First contact with a GPU: is every operation right, and how fast is training?

From the folder that build.sh made, on a machine with a GPU: `python3 run.py --plan first`, then `--plan second` and `--plan third`. Nothing but
Python is needed there; other tools are used where they are found. The first plan asks whether numbers are right, the second how fast they come, and
the third measures cells of the paper's study at large batch sizes; what it could not finish goes on by the same command. `--list` prints the parts of
all plans and their seconds, which add up to the plan's; a part may also use what those before it left over.

No part ends the others. A part passed, failed, was skipped because something is missing, or was not reached: only what is wrong fails, and want of
time never does. After every part the folder of `--out` has what is known so far: measured.json, the same as a table in measured.md, and what the
programs printed in logs.tgz. docs/gpu.md's table is made from the JSON: `python3 run.py --table measured.json`.

Ends with 0 where no part failed, 1 where one did or the GPU cannot be used, 77 where there is no GPU.
"""

import argparse
import atexit
import concurrent.futures
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
PASSED, FAILED, SKIPPED, NOT_REACHED = "passed", "failed", "skipped", "not reached"
NO_GPU = 77
# dps-train's exit codes for a data set that is missing and for a device that cannot be used (docs/how-it-works.md, "Exit codes").
DATA, DEVICE = 3, 6
STAND_IN = "CUDA-EMU"
# Tests that run at the same time: most of a test is the CPU's part of it, and the start.
AT_ONCE = max(1, min(6, len(os.sched_getaffinity(0)) // 2))
# Bytes at the end of a log that are read and kept.
LOG = 1_000_000

SIMPLE_CNN, RESNET_8 = "mnist-simple-cnn-momentum", "cifar-10-resnet-8-momentum-constant"
NAMES = {SIMPLE_CNN: "Simple-CNN", RESNET_8: "ResNet-8 on random images"}

# Network's configuration, batch size, trials, steps of the shorter run, sparsity, products. The longer run has three times as many steps; a step's
# time is their difference, so that starting and scoring do not count.
SPEEDS = [
    (SIMPLE_CNN, 2, 100, 1000, 0, "fused"),
    (SIMPLE_CNN, 64, 100, 100, 0, "fused"),
    (SIMPLE_CNN, 1024, 100, 8, 0, "fused"),
    (SIMPLE_CNN, 64, 100, 100, 0, "split"),
    (SIMPLE_CNN, 1024, 100, 8, 0, "split"),
    (SIMPLE_CNN, 64, 100, 100, 0.9, "fused"),
    (SIMPLE_CNN, 64, 100, 100, 0, "pairs"),
    (SIMPLE_CNN, 1024, 100, 8, 0, "pairs"),
    (RESNET_8, 128, 100, 10, 0, "fused"),
    (RESNET_8, 128, 100, 10, 0, "pairs"),
    (SIMPLE_CNN, 16384, 100, 1, 0, "pairs"),
    (SIMPLE_CNN, 2, 100, 1000, 0, "pairs"),
    (SIMPLE_CNN, 2, 1, 1000, 0, "fused"),
    (SIMPLE_CNN, 1024, 100, 8, 0, "tf32"),
    (SIMPLE_CNN, 1024, 100, 8, 0, "cublas"),
]

# The stand-in has time for so many images of a batch, trials, steps, and examples that connections are scored on.
REHEARSED = {"batch": 2, "trials": 1, "steps": 1, "scored": 10}
# An evaluation of one network looks at thousands of images at once; the stand-in has time for 60.
FEW_IMAGES = {"data.validation_fraction": 0.001}
# Tests that the stand-in has time for.
REHEARSED_TESTS = ["batches_are_the_cpus_bit_for_bit", "results_say_who_multiplied_and_how", "random_networks_agree-1"]

LANES = 100
# Examples that connections are scored on: the whole training set of MNIST.
SCORED = 54_000
# A cell whose steps-to-result the CPU measured: docs/experiments/data/mnist-simple-cnn-momentum.h5, which dps-report prints.
CELL = {"batch": 64, "steps": 432, "trial": 42}

# Cells of the paper's study that no file of docs/experiments/data has, as batch size, sparsity and seconds.
LARGE_CELLS = [(4096, 0.9, 200), (16384, 0, 200), (8192, 0.9, 100), (16384, 0.9, 50)]

# A short study whose losses and steps-to-result the CPU has computed where the kit was made, into expected.json; the options of it.
EXPECTED = {
    "workload.max_steps": 40, "workload.evaluate_every": 8, "workload.goal_error": 0.45, "search.learning_rate": 0.01, "search.momentum": 0.9,
    "execution.race": "false", "execution.checkpoint_seconds": 0, "execution.full_evaluation": "true", "data.validation_fraction": 0.005,
    "pruning.examples": 100, "confirm": "",
}
# How far a loss may be off, as a share of it or of 0.1, and the share of validation examples that may be counted otherwise: rounding grows with each
# step. tests/cuda_study.rs has the same bound of the loss.
LOSS_OFF, ERRORS_OFF = 1e-3, 0.01
# In pairs a step's rounding is larger (docs/gpu.md, "How it multiplies"), and steps to the result may be others: through the stand-in for CUDA the
# dense network's loss was off by 1.6e-4 after 8 steps and by 1.6e-3 after 16. Masks are those of products in 32 bits.
LOSS_OFF_IN_PAIRS = 1e-2
# The bound of tests/cuda.rs: how far numbers may be from those of other hardware, as a share of the largest of them.
OPERATIONS_OFF = 2e-5

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


# Words of dps's refusal of products on tensor cores by a GPU of compute capability 7.x.
TOO_OLD = "expected compute capability 8.0"


class Missing(Exception):
    """A thing that a part needs is not here."""


class Failure(Exception):
    """A part found something wrong."""


class NotReached(Exception):
    """The time did not suffice for a part, or for all of it."""


class Ended(typing.NamedTuple):
    """How a program ended: its exit code, none where it had to be killed or was not there; what it printed; why it failed, empty where it did not."""

    code: typing.Optional[int]
    text: str
    trouble: str


class Run:
    """The parts, the time that is left, and the folders."""

    def __init__(self, out, plan, parts, seconds, rehearsal):
        self.rehearsal = rehearsal
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        self.about = {"plan": plan, "seconds": seconds, "gpu": "", "program": "", "date": now, "rehearsal": rehearsal}
        self.parts = [{"name": part.name, "status": NOT_REACHED, "seconds": 0, "rows": [], "note": "the run ended before it"} for part in parts]
        self.planned, self.warm = parts, set()
        self.end = self.end_of_part = time.monotonic() + seconds
        self.out, self.folder = out, pathlib.Path(tempfile.mkdtemp(prefix="dps-gpu-"))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.logs = self.folder / "logs"
        self.logs.mkdir()
        out.mkdir(parents=True, exist_ok=True)
        self.kit = unpacked(self.folder)
        self.environment()

    def environment(self):
        """Lets every program find the kit's NVRTC and the kernels that it compiled where the kit was made."""
        libraries = [str(self.kit / "nvrtc"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        # The stand-in's NVRTC comes first in a rehearsal, and hands the kernels to the kit's.
        os.environ["LD_LIBRARY_PATH"] = ":".join(reversed(libraries) if self.rehearsal else libraries)
        if self.rehearsal:
            os.environ.setdefault("CUDA_EMU_NVRTC", str(self.kit / "nvrtc"))
            os.environ.setdefault("CUDA_EMU_CACHE", str(self.folder / "double"))
        # The program takes kernels from a folder of the user's own alone.
        cache = self.folder / "cache"
        self.kernels = cache / "dps"
        self.kernels.mkdir(mode=0o700, parents=True)
        for file in (self.kit / "kernels").glob("*"):
            shutil.copyfile(file, self.kernels / file.name)
            (self.kernels / file.name).chmod(0o600)
        self.carried = {file.name for file in self.kernels.iterdir()}
        os.environ.update(XDG_CACHE_HOME=str(cache), CUDA_CACHE_PATH=str(cache))
        # dps looks for NVIDIA's libraries in this folder too, and a Python that is only in PATH does not name its own.
        os.environ.setdefault("VIRTUAL_ENV", sys.prefix)
        # Without it tests are skipped where they find no GPU.
        os.environ["DPS_NEED_CUDA"] = "1"

    def left(self):
        """Seconds that the part under way may still take."""
        return max(0, self.end_of_part - time.monotonic())

    def part(self, number):
        """Takes rows of (what, value) from a part until it ends or fails, and writes what is known so far."""
        planned, part, begun = self.planned[number], self.parts[number], time.monotonic()
        # Time that earlier parts left over is for this part, and time that later ones are promised is not, unless --seconds is too short for all.
        left_over = self.end - sum(later.seconds for later in self.planned[number + 1 :])
        self.end_of_part = max(left_over, min(self.end, begun + planned.seconds))
        part["note"] = "interrupted"
        try:
            # One by one, so that those before a failure stay.
            for row in planned.rows(self):
                part["rows"].append(row)
            part["status"], part["note"] = PASSED, ""
        except Missing as why:
            part["status"], part["note"] = SKIPPED, f"because {why}"
        except NotReached as why:
            part["note"] = str(why)
        except Failure as why:
            part["status"], part["note"] = FAILED, str(why)
        except Exception as why:  # One part's trouble, whatever it is, must not end the others.
            part["status"], part["note"] = FAILED, f"{type(why).__name__}: {why}"
        finally:
            part["seconds"] = round(time.monotonic() - begun, 1)
            print(f"== {part['name']}: {said(part)}; {part['seconds']} s")
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


class Part(typing.NamedTuple):
    """A part of a plan: its name, its seconds at most, what it finds out, and the rows of (what, value) that it finds of a run."""

    name: str
    seconds: float
    about: str
    rows: typing.Callable


def unpacked(folder):
    """The folder with the programs: the one of this file, or what the archives beside it hold."""
    if (HERE / "dps-train").exists():
        return HERE
    archives = sorted(HERE.glob("*.tar.xz"))
    if not archives:
        sys.exit(f"expected *.tar.xz of tests/gpu/build.sh beside run.py in {HERE}, found none; run tests/gpu/build.sh FOLDER, and copy all of FOLDER")
    for archive in archives:
        with tarfile.open(archive) as packed:
            packed.extractall(folder / "kit", filter="data")
    return folder / "kit"


def said(part):
    return part["status"] + (f", {part['note']}" if part["status"] == SKIPPED else f": {part['note']}" if part["note"] else "")


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
        # Processes that the program started end too: ncu and compute-sanitizer start some.
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
    """Output of a program that must not fail."""
    done = ended(run, name, command, env=env)
    proper(run, done)
    return done.text


def proper(run, done):
    """Ends the part where a program failed, or had to be killed because the part's time was over."""
    if done.code is None and not run.left():
        raise NotReached(done.trouble)
    if TOO_OLD in done.trouble:
        raise Missing(done.trouble)
    if done.trouble:
        raise Failure(done.trouble)


def study(run, name, configuration, options):
    """The command of a study on the GPU. Its data are MNIST or, in place of CIFAR-10, random images."""
    if configuration == RESNET_8:
        file = run.folder / "random.npz"
        if not file.exists():
            random_images(file)
        options = ["--set", f'workload.dataset.path="{file}"', *options]
    elif not (run.kit / "data" / "mnist").is_dir():
        raise Missing("the kit was made without MNIST")
    command = [run.kit / "dps-train", run.kit / "configs" / f"{configuration}.toml", "--data", run.kit / "data"]
    if "--output" not in options:
        options = ["--output", run.folder / f"{name}.h5", *options]
    device = [] if "--device" in options else ["--device", "cuda", "--set", "execution.deadline_seconds=30"]
    return [*command, *device, *options]


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


def fixed(run, batch, trials, steps, sparsity, products):
    """Options for steps that nothing ends early."""
    examples = 1000
    if run.rehearsal:
        batch, trials, examples = min(batch, REHEARSED["batch"]), min(trials, REHEARSED["trials"]), REHEARSED["scored"]
    settings = {
        "workload.max_steps": steps, "workload.evaluate_every": steps, "workload.goal_error": 0.0002, "search.learning_rate": 0.001,
        "search.momentum": 0.9, "execution.race": "false", "execution.checkpoint_seconds": 0, "pruning.examples": examples,
        "execution.products": "fused" if products == "tf32" else products, "execution.tf32": "true" if products == "tf32" else "false",
    }
    settings.update(FEW_IMAGES if run.rehearsal else {})
    return ["--quiet", "--batch-size", str(batch), "--sparsity", str(sparsity), "--trials", str(trials), *changed(settings)]


def changed(settings):
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def warm(run, configuration, products):
    """Takes one step that is not timed, so that the kernels are compiled."""
    if (configuration, products) not in run.warm:
        train(run, f"warm-{configuration}-{products}", configuration, fixed(run, 2, 1, 1, 0, products))
        run.warm.add((configuration, products))


# From here on the parts: generators of rows, and what they share.


def machine(run):
    """Describes this machine. Afterwards `run.about` names no GPU where nothing can be measured."""
    run.about["program"] = ended(run, "version", [run.kit / "dps-train", "--version"], 10).text.strip()
    listed = ended(run, "nvidia-smi", ["nvidia-smi", "-L"], 15)
    doctor = ended(run, "doctor", [run.kit / "dps-train", "doctor", "--gpu", "--data", run.kit / "data"], 20)
    print(doctor.text, flush=True)
    stand_in = STAND_IN in doctor.text
    if stand_in and not run.rehearsal:
        raise Failure("this is the host test double, not a GPU; take it out of LD_LIBRARY_PATH")
    # Versions of NVIDIA's libraries or, where one cannot be used, why.
    yield from re.findall(r"^(NVIDIA driver|NVRTC|cuBLAS|NCCL|GPU)  +(.*)", doctor.text, re.M)
    names = re.findall(r"^GPU \d+: (.*) \(UUID", listed.text, re.M)
    if doctor.code == DEVICE and not names and not list(pathlib.Path("/dev").glob("nvidia[0-9]*")):
        raise Missing("there is no GPU here")
    run.about.update(gpu=STAND_IN if stand_in else names[0] if names else "a GPU without a name")
    yield "kernels compiled where the kit was made", len(run.carried)
    yield "nvidia-smi", listed.trouble or ", ".join(names)
    asked = "driver_version,clocks.max.sm,clocks.max.mem,clocks.sm,power.limit"
    yield asked, ended(run, "clocks", ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"], 10).text.strip()
    modes = re.findall(r"Addressing Mode +: (.*)", ended(run, "nvidia-smi-q", ["nvidia-smi", "-q"], 10).text)
    yield "addressing mode", modes[0] if modes else "not said"
    if doctor.code not in (0, DATA, None):
        raise Failure(f"dps cannot use this GPU: {doctor.trouble}")
    if doctor.code is None:
        raise NotReached(f"dps-train doctor was {doctor.trouble}")


def tested(run, name, program, test, before=(), env=None, limit=math.inf):
    """How a test ended, by itself in a process: after one illegal access CUDA refuses a process everything."""
    done = ended(run, name, [*before, run.kit / program, "--exact", test, "--include-ignored", "--nocapture", "--test-threads", "1"], limit, env)
    return done if done.trouble or "1 passed" in done.text else done._replace(trouble="the test did not run")


def cases(run, program):
    """The tests of a program, and of random networks one case each: what it is called, the test, the variables that it needs."""
    if not (run.kit / program).exists():
        raise Missing(f"{program} is not in the kit")
    listed = lambda *options: re.findall(r"^(\S+): test$", output(run, f"{program}-list", [run.kit / program, "--list", *options]), re.M)
    # Ignored ones are tools.
    tools, found = listed("--ignored"), []
    for test in listed():
        if test == "random_networks_agree":
            found += [(f"{test}-{seed}", test, {"DPS_FROM": str(seed), "DPS_NETWORKS": "1"}) for seed in range(8)]
        elif test not in tools:
            found.append((test, test, {}))
    return [case for case in found if not run.rehearsal or case[0] in REHEARSED_TESTS]


def operations(run, program, limit):
    """Every test of a program, each for at most so many seconds."""
    known = cases(run, program)
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as workers:
        ends = list(workers.map(lambda case: tested(run, f"{program}-{case[0]}", program, case[1], env=case[2], limit=limit), known))
    for (name, _, _), done in zip(known, ends):
        if done.code is None and not run.left():
            continue
        if done.trouble:
            failed += 1
            yield f"failed: {name}", done.trouble
        else:
            passed += 1
    reached = f"{passed} of {len(known)} tests passed"
    yield "tests", f"{passed} passed, {failed} failed, {len(known) - passed - failed} not reached"
    if failed or not known:
        raise Failure(reached)
    if passed < len(known):
        raise NotReached(f"{reached}, and none failed")


def numbers(text):
    """Name -> numbers of 32 bits, as the test `numbers_that_a_gpu_is_to_find` of tests/cuda.rs prints them."""
    found = re.findall(r"^(\w+, \w+): ((?:[0-9a-f]{8})+)$", text, re.M)
    return {name: struct.unpack(f">{len(digits) // 8}f", bytes.fromhex(digits)) for name, digits in found}


def bits(run):
    """A GPU's margins and gradients beside the stand-in's. Fused margins are sums in an order that the PTX says, of products that are rounded once
    with their sum, so their bits must be the same. Gradients have an exponential function in them, and tensor cores round in a way of their own."""
    file = run.kit / "predicted.txt"
    if not file.exists():
        raise Missing("the kit was made without these numbers")
    done = tested(run, "bits", "cuda", "numbers_that_a_gpu_is_to_find")
    proper(run, done)
    found, wrong = numbers(done.text), []
    for name, expected in numbers(file.read_text()).items():
        there = found.get(name, ())
        if not there and TOO_OLD in done.text:
            continue
        if len(there) != len(expected):
            wrong.append(f"{name}: expected {len(expected)} numbers, found {len(there)}")
            continue
        largest = max(map(abs, expected))
        off = [abs(one - other) / largest for one, other in zip(there, expected)]
        differ = sum(one != other for one, other in zip(there, expected))
        yield f"{name}: numbers that differ, of {len(expected)}", differ
        yield f"{name}: off by at most, of the largest", max(off)
        if not all(share <= OPERATIONS_OFF for share in off) or name == "margins, fused" and differ:
            wrong.append(f"{name}: {differ} of {len(expected)} numbers differ")
    if wrong or not found:
        raise Failure("; ".join(wrong) or "expected numbers, found none")


def first_start(run):
    """A study of one step, by kernels that the kit carries: the first that the GPU computes."""
    for products in ("fused", "split", "pairs"):
        yield f"a study of one step, {products}, s", train(run, f"first-{products}", SIMPLE_CNN, fixed(run, 2, 1, 1, 0, products))[0]
    yield "kernels that the kit did not carry", len({file.name for file in run.kernels.iterdir()} - run.carried)


def start(run):
    env = {"XDG_CACHE_HOME": str(run.folder / "empty")}
    for state, name in (("with kernels to compile", "start-cold"), ("with compiled kernels", "start-warm")):
        yield f"a study of one step, {state}, s", train(run, name, SIMPLE_CNN, fixed(run, 2, 1, 1, 0, "fused"), env)[0]


def expected_study(run, name, settings, device=()):
    """Events of a short study by cell: its evaluations (step, loss, errors), and its steps-to-result."""
    options = ["--batch-size", "16", "--sparsity", "0,0.9", "--trials", "1", "--progress", "json", *changed({**EXPECTED, **settings}), *device]
    _, text = train(run, name, SIMPLE_CNN, options)
    found = {}
    for event in map(json.loads, re.findall(r'^\{.*"event".*\}$', text, re.M)):
        cell = found.setdefault(str(event["sparsity"]), {"evaluations": []}) if "sparsity" in event else None
        if event["event"] == "evaluated":
            cell["evaluations"].append([event["step"], event["loss"], event["best_errors"]])
        elif event["event"] == "cell_finished":
            cell["steps_to_result"] = event["steps_to_result"]
        elif event["event"] == "study":
            found["validation_examples"] = event["validation_examples"]
    return found


def beside_the_cpu(run, products):
    """The losses of the short study beside those that the CPU has computed."""
    file = run.kit / "expected.json"
    if not file.exists():
        raise Missing("the kit was made without MNIST")
    expected, wrong, in_pairs = json.loads(file.read_text()), [], products == "pairs"
    bound = LOSS_OFF_IN_PAIRS if in_pairs else LOSS_OFF
    settings = {"execution.products": products, **({"workload.max_steps": EXPECTED["workload.evaluate_every"]} if run.rehearsal else {})}
    found = expected_study(run, f"expected-{products}", settings)
    examples = expected.pop("validation_examples")
    for sparsity, cell in expected.items():
        there, most_loss, most_errors = found.get(sparsity, {"evaluations": []}), 0.0, 0
        for (step, loss, errors), (at, other_loss, other_errors) in zip(cell["evaluations"], there["evaluations"]):
            most_loss = max(most_loss, abs(other_loss - loss) / max(abs(loss), 0.1)) if at == step else math.inf
            most_errors = max(most_errors, abs(other_errors - errors))
        yield f"sparsity {sparsity}: a loss is off by at most", most_loss
        yield f"sparsity {sparsity}: errors are off by at most, of {examples}", most_errors
        if not there["evaluations"] or not most_loss <= bound or most_errors > ERRORS_OFF * examples:
            wrong.append(f"sparsity {sparsity}: expected losses within {bound} and errors within {ERRORS_OFF * examples:.0f} of the CPU's")
        if not run.rehearsal:
            yield f"sparsity {sparsity}: steps-to-result, and the CPU's", f"{there.get('steps_to_result')}, {cell['steps_to_result']}"
            if there.get("steps_to_result") != cell["steps_to_result"] and not in_pairs:
                wrong.append(f"sparsity {sparsity}: other steps-to-result than the CPU's")
    if wrong:
        raise Failure("; ".join(wrong))


def speed(run, configuration, batch, trials, steps, sparsity, products):
    warm(run, configuration, products)
    if run.rehearsal:
        steps = REHEARSED["steps"]
    name = f"{configuration}-{batch}-{trials}-{sparsity}-{products}"
    short, _ = train(run, f"{name}-short", configuration, fixed(run, batch, trials, steps, sparsity, products))
    yield f"start and {steps} steps, s", short
    long, _ = train(run, f"{name}-long", configuration, fixed(run, batch, trials, 3 * steps, sparsity, products))
    yield f"start and {3 * steps} steps, s", long
    step = (long - short) / (2 * steps)
    if step <= 0 and not run.rehearsal:
        raise Failure("more steps took no longer")
    yield "step, ms", 1e3 * step
    yield "images/s", "not of a rehearsal" if run.rehearsal else batch * trials / step


def evaluation(run):
    """100 lanes' evaluations: what a step costs more where each is followed by one."""
    warm(run, SIMPLE_CNN, "fused")
    steps = 8 if run.rehearsal else 200
    options = fixed(run, 2, 100, steps, 0, "fused")
    rare, _ = train(run, "evaluation-rare", SIMPLE_CNN, options)
    yield f"1 evaluation, start and {steps} steps, s", rare
    often, _ = train(run, "evaluation-often", SIMPLE_CNN, options + ["--set", "workload.evaluate_every=2"])
    yield f"{steps // 2} evaluations, start and {steps} steps, s", often
    yield "an evaluation of 100 networks that miss the goal, ms", 1e3 * (often - rare) / (steps // 2 - 1)


def host(run):
    """How much of an evaluation the host has to itself: choosing the examples, and counting errors."""
    if not (run.kit / "cuda").exists():
        raise Missing("cuda is not in the kit")
    # The stand-in has no time for as many.
    lanes = "2" if run.rehearsal else str(LANES)
    done = tested(run, "host", "cuda", "an_evaluation_ends_where_the_goal_is_missed", env={"DPS_LANES": lanes})
    proper(run, done)
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
    more, examples = (1, REHEARSED["scored"]) if run.rehearsal else (10, SCORED)
    seconds = {}
    for sparsity in (0, 0.9):
        for trials in (1, 1 + more):
            options = fixed(run, 2, trials, 1, sparsity, "fused") + ["--set", f"pruning.examples={examples}"]
            options[options.index("--trials") + 1] = str(trials)
            seconds[sparsity, trials], _ = train(run, f"scores-{sparsity}-{trials}", SIMPLE_CNN, options)
            yield f"one step, {trials} trials, sparsity {sparsity}, s", seconds[sparsity, trials]
    cost = {sparsity: seconds[sparsity, 1 + more] - seconds[sparsity, 1] for sparsity in (0, 0.9)}
    yield f"connection sensitivity of a trial on {examples:,} examples, s", (cost[0.9] - cost[0]) / more


def result_of(text):
    """Steps-to-result of the one cell of a study that printed this text, and the trial; none where it says none."""
    found = re.search(r"^\[1/1\] .*: ([\d,]+) steps \(trial (\d+)", text, re.M)
    return found and (int(found[1].replace(",", "")), int(found[2]))


def cell(run):
    # The race ends the cell at its result, and none of its points is trained again.
    options = ["--batch-size", str(CELL["batch"]), "--sparsity", "0", *changed({"execution.race": "true", "confirm": ""})]
    if run.rehearsal:
        options += ["--trials", "2", *changed({"workload.max_steps": 2, "workload.evaluate_every": 1, **FEW_IMAGES})]
    seconds, text = train(run, "cell", SIMPLE_CNN, options)
    yield "a cell of 100 trials with the race, s", seconds
    if run.rehearsal:
        return
    yield "the CPU's steps-to-result", f"{CELL['steps']} (trial {CELL['trial']})"
    found = result_of(text)
    if not found:
        raise Failure("expected its steps-to-result, found none in what was printed")
    steps, trial = found
    yield "this GPU's", f"{steps} (trial {trial})"
    # Rounding makes a trial learn a little differently; evaluations are 16 steps apart.
    if not 2 / 3 <= steps / CELL["steps"] <= 3 / 2:
        raise Failure(f"expected about {CELL['steps']} steps, found {steps}")


def large_cell(run, batch, sparsity):
    """A cell of the paper's study with its confirmation, in a result file that dps-train merge takes beside those of docs/experiments/data. Its
    journal lies beside it, so that the same command goes on where time was up."""
    name = f"part-{batch}-{sparsity}"
    yield "result file", f"{name}.h5"
    # The published cells have direct convolutions, which is the CPU's affair; merge compares the key.
    settings = {"execution.race": 1.25, "execution.convolutions": "direct", "execution.checkpoint_seconds": 15}
    if run.rehearsal:
        batch = REHEARSED["batch"]
        settings.update({"workload.max_steps": 2, "workload.evaluate_every": 1, "pruning.examples": REHEARSED["scored"], "confirm": "", **FEW_IMAGES})
    options = ["--output", run.out / f"{name}.h5", "--batch-size", str(batch), "--sparsity", str(sparsity)]
    seconds, text = train(run, name, SIMPLE_CNN, [*options, "--trials", "2" if run.rehearsal else "30", *changed(settings)])
    yield "seconds of this call", seconds
    found = result_of(text)
    yield "steps-to-result", f"{found[0]} (trial {found[1]})" if found else "see the file"


def pytorch(run, name, program):
    done = ended(run, name, [sys.executable, "-c", TORCH + program])
    if done.code == NO_GPU:
        raise Missing("PyTorch, or its GPU, is not there")
    yield from map(json.loads, re.findall(r'^\[".*\]$', done.text, re.M))
    proper(run, done)


def counters(run, batch, trials):
    if not shutil.which("ncu"):
        raise Missing("ncu is not there")
    name = f"counters-{batch}"
    command = ["ncu", "--clock-control", "none", "--csv", "--launch-skip", "30", "--launch-count", "24", "--metrics", ",".join(COUNTERS)]
    output(run, name, command + study(run, name, SIMPLE_CNN, fixed(run, batch, trials, 6, 0, "fused")))
    yield "kept in", f"logs.tgz, {name}.log"


def sanitizer(run, tool):
    if not shutil.which("compute-sanitizer"):
        raise Missing("compute-sanitizer is not there")
    wrong = []
    for test in ("batches_are_the_cpus_bit_for_bit", "gradients_and_losses_agree", "gradients_in_pairs_agree"):
        done = tested(run, f"{tool}-{test}", "cuda", test, ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9"])
        summaries = re.findall(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (.*)", done.text, re.M)
        yield from ((test, summary) for summary in summaries)
        if done.code is None and not run.left() and not wrong:
            raise NotReached(f"{test}: {done.trouble}")
        if "Device not supported" in done.text:
            raise Missing("compute-sanitizer does not support this device")
        if done.trouble or not summaries or not all(summary.startswith("0 ") for summary in summaries):
            wrong.append(f"{test}: {done.trouble or ', '.join(summaries) or f'{tool} did not run'}")
    if wrong:
        raise Failure("; ".join(wrong))


# Parts that are worth most come first. The seconds of a plan's parts are its budget.
PLANS = {
    "first": [
        Part("machine", 20, "the GPU, its driver and libraries", machine),
        Part("first start", 30, "a step by the kernels that the kit carries", first_start),
        *(Part(f"beside the CPU, {products}", 20, "losses and steps-to-result of a short study, which the CPU computed where the kit was made",
               lambda run, products=products: beside_the_cpu(run, products)) for products in ("fused", "split", "pairs")),
        Part("bits", 20, "margins and gradients beside those that the stand-in for CUDA finds in the same PTX", bits),
        Part("every operation", 120, "each operation against the CPU's, by split products and pairs too", lambda run: operations(run, "cuda", 60)),
        Part("random networks", 70, "networks drawn at random and the built-in ones against the CPU's; many classes; images of floats",
             lambda run: operations(run, "cuda_networks", 60)),
        Part("every operation by cuBLAS", 40, "each operation by cuBLAS against the CPU's", lambda run: operations(run, "cuda_products", 40)),
        *(Part(tool, seconds, f"compute-sanitizer's {tool} on batches and gradients", lambda run, tool=tool: sanitizer(run, tool))
          for tool, seconds in (("memcheck", 60), ("racecheck", 75), ("initcheck", 35))),
    ],
    "second": [
        Part("machine", 14, "the GPU, its driver and libraries", machine),
        *(Part(f"{NAMES[configuration]}, batch size {batch}, {trials} trials, sparsity {sparsity}, {products}", 11, "a step's time and images a second",
               lambda run, of=(configuration, batch, trials, steps, sparsity, products): speed(run, *of))
          for configuration, batch, trials, steps, sparsity, products in SPEEDS[:10]),
        Part("one real cell", 30, "a whole cell with the race, its steps-to-result beside the CPU's", cell),
        Part("evaluation", 12, "an evaluation of 100 networks", evaluation),
        Part("the host's share of an evaluation", 8, "how much of it the host has to itself", host),
        Part("SNIP", 14, "the scores of a trial's connections", scores),
        Part("ceilings", 12, "copies, products in 32 bits and TF32 by PyTorch", lambda run: pytorch(run, "ceilings", CEILINGS)),
        Part("PyTorch", 14, "one network with CUDA graphs", lambda run: pytorch(run, "pytorch", PYTORCH)),
        Part("PyTorch with vmap", 14, "100 networks at once", lambda run: pytorch(run, "vmap", VMAP)),
        *(Part(f"{NAMES[configuration]}, batch size {batch}, {trials} trials, sparsity {sparsity}, {products}", 8, "a step's time and images a second",
               lambda run, of=(configuration, batch, trials, steps, sparsity, products): speed(run, *of))
          for configuration, batch, trials, steps, sparsity, products in SPEEDS[10:]),
        Part("start", 14, "a study of one step, with and without compiled kernels", start),
        *(Part(f"counters at batch size {batch}", 13, "hardware counters of a step (Nsight Compute)",
               lambda run, batch=batch, trials=trials: counters(run, batch, trials)) for batch, trials in ((1024, 20), (2, 100))),
    ],
    "third": [
        Part("machine", 20, "the GPU, its driver and libraries", machine),
        *(Part(f"MNIST, batch size {batch}, sparsity {sparsity}", seconds, "30 trials and their confirmation, a part for dps-train merge",
               lambda run, batch=batch, sparsity=sparsity: large_cell(run, batch, sparsity)) for batch, sparsity, seconds in LARGE_CELLS),
    ],
}


def listed():
    """The plans as Markdown."""
    lines = ["| plan | part | seconds | what it finds out |", "|---|---|---|---|"]
    for plan, parts in PLANS.items():
        lines += [f"| {plan} | {part.name} | {part.seconds} | {part.about} |" for part in parts]
        lines.append(f"| {plan} | all | {sum(part.seconds for part in parts)} | |")
    return "\n".join(lines) + "\n"


def expect(file):
    """Has the CPU compute what the GPU is compared with."""
    run = Run(file.parent / "expecting", "expect", [], 600, False)
    run.end_of_part = run.end
    file.write_text(json.dumps(expected_study(run, "expected", {}, ["--device", "cpu"])) + "\n")
    shutil.rmtree(run.out)


def table(measured):
    """The Markdown of a measured.json."""
    lines = []
    if measured["rehearsal"]:
        lines += ["**A rehearsal with less work, and no GPU's result.**", ""]
    lines += [f"{measured['gpu'] or 'No GPU'}, {measured['program']}, {measured['date']}, plan {measured['plan']}.", "", "| what | outcome | |", "|---|---|---|"]
    for part in measured["parts"]:
        found = [f"{what}: {shown(value)}" for what, value in part["rows"]]
        text = " ".join("; ".join(found).replace("|", "\\|").split())
        lines.append(f"| {part['name']} | {' '.join(said(part).replace('|', chr(92) + '|').split())} | {text} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", choices=PLANS, default="first", help="what to find out")
    parser.add_argument("--list", action="store_true", help="print the parts of the plans and the seconds of each, and end")
    parser.add_argument("--out", type=pathlib.Path, help="folder for what is measured [default: measured-PLAN]")
    parser.add_argument("--seconds", type=float, help="time for all parts, in place of the plan's; the last ones are not reached where it is short")
    parser.add_argument("--only", help="parts whose names contain this word alone, beside the first")
    parser.add_argument("--rehearsal", action="store_true", help="allow the stand-in for CUDA, with less work; what is measured then says so")
    parser.add_argument("--table", type=pathlib.Path, help="print the table of this measured.json, and end")
    parser.add_argument("--expect", type=pathlib.Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.table or given.list:
        print(listed() if given.list else table(json.loads(given.table.read_text())), end="")
        return 0
    if given.expect:
        expect(given.expect)
        return 0

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    parts = [part for part in PLANS[given.plan] if part.rows == machine or not given.only or given.only in part.name]
    out = given.out or pathlib.Path(f"measured-{given.plan}")
    run = Run(out, given.plan, parts, given.seconds or sum(part.seconds for part in PLANS[given.plan]), given.rehearsal)
    first = run.part(0)
    if not run.about["gpu"]:
        skipped = first["status"] == SKIPPED
        print(f"test-gpu: {'SKIPPED, nothing was tested,' if skipped else 'FAILED:'} {first['note']}")
        return NO_GPU if skipped else 1
    for number in range(1, len(parts)):
        run.part(number)
    named = lambda status: [part["name"] for part in run.parts if part["status"] == status]
    counts = ", ".join(f"{len(named(status))} {status}" for status in (PASSED, FAILED, SKIPPED, NOT_REACHED))
    verdict = f"FAILED: {', '.join(named(FAILED))}" if named(FAILED) else "NOT ALL WAS REACHED" if named(NOT_REACHED) else "PASSED"
    print(f"test-gpu: {verdict}; {counts}; {out / 'measured.md'} has the table")
    return 1 if named(FAILED) else 0


if __name__ == "__main__":
    sys.exit(main())
