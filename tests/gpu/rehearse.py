#!/usr/bin/env python3
"""Rehearses the first contact with a GPU: rehearse.py KIT DOUBLE WORK. Prints a line a part, then "N passed, M failed".

KIT is the folder that build.sh made, DOUBLE that of the stand-in for CUDA (tests/cuda-double/build.sh). WORK, which is made anew, becomes the root of
a machine that has the kit, this Python with its libraries, the stand-in in place of NVIDIA's libraries, /proc and /dev, and nothing else: no
compiler, MPI, HDF5 or network. Both plans run there, with less work, by the PTX that the kit's own NVRTC makes. Each part must pass, or be skipped
because something is missing; both files of results must have all of them; and the kernels that the kit carries must be those that the program asks
for.
"""

import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import run as kit_of  # noqa: E402

ENOUGH = 1500
# Words of the stand-in on machine code, which it cannot execute: that the program took a kernel from those that the kit carries.
TAKEN = "expected what the double's NVRTC made, found something else"


def put(root, file, place=None):
    """Copies a file to a place below the root, its own unless another is named, and the libraries that it is linked with to theirs."""
    file = pathlib.Path(file)
    there = root / str(place or file).lstrip("/")
    there.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, there)
    linked = subprocess.run(["ldd", file], capture_output=True, text=True, check=False).stdout
    for library in re.findall(r"(?:=> |^\s*)(/\S+)", linked, re.M):
        there = root / library.lstrip("/")
        # The libraries of DOUBLE come by themselves.
        if not there.exists() and not re.search(r"/lib(cuda|nvrtc|cublas)\.so", library):
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, there)


def machine(kit, double, root):
    """Makes the root; the path of Python in it."""
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("dev", "proc", "tmp"):
        (root / folder).mkdir(parents=True)
    shutil.copytree(kit, root / "kit", ignore=shutil.ignore_patterns("measured*"))
    for library in ("cuda", "nvrtc", "cublas"):
        put(root, double / f"lib{library}.so", f"/double/lib{library}.so")
    python = pathlib.Path(sys.executable).resolve()
    put(root, python)
    # Files that every glibc has. NVRTC is linked with them.
    libc = next(root.rglob("libc.so.6")).parent
    for name in ("libpthread.so.0", "librt.so.1", "libdl.so.2", "libm.so.6"):
        put(root, pathlib.Path("/") / libc.relative_to(root) / name)
    standard = pathlib.Path(sysconfig.get_path("stdlib"))
    unused = shutil.ignore_patterns("test", "tests", "site-packages", "dist-packages", "__pycache__", "idlelib", "ensurepip", "config-*", "lib2to3")
    shutil.copytree(standard, root / str(standard).lstrip("/"), ignore=unused, dirs_exist_ok=True)
    for module in (standard / "lib-dynload").glob("*.so"):
        put(root, module)
    return python


def rehearsed(root, python, plan, seconds):
    """Runs a plan in the root for so many seconds; its exit code."""
    environment = {"HOME": "/tmp", "PATH": str(python.parent), "LD_LIBRARY_PATH": "/double", "CUDA_EMU_CODE": "ptx", "CUDA_EMU_HANG": "300"}
    command = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "bash", HERE.parent / "dist" / "in_root.bash", platform.machine(), root]
    command += [python, "/kit/run.py", "--plan", plan, "--rehearsal", "--seconds", str(seconds), "--out", f"/out/{plan}-{seconds}"]
    return subprocess.run(command, env={**environment, "PATH": f"{os.environ['PATH']}:{python.parent}"}, stdin=subprocess.DEVNULL).returncode


def wrong_of(out, code, plan, short):
    """Faults of the results of a plan, a sentence each."""
    measured, page = json.loads((out / "measured.json").read_text()), (out / "measured.md").read_text()
    expected, found = [part.name for part in kit_of.PLANS[plan]], [part["name"] for part in measured["parts"]]
    if code != 0:
        yield f"expected exit code 0, found {code}"
    if found != expected:
        yield f"expected the parts {expected}, found {found}"
    for part in measured["parts"]:
        fine = [kit_of.PASSED, kit_of.SKIPPED, *[kit_of.NOT_REACHED] * short]
        if part["status"] not in fine or part["status"] == kit_of.SKIPPED and not part["note"].startswith("because "):
            yield f"{part['name']}: expected one of {fine} with a reason, found {kit_of.said(part)}"
        if f"| {part['name']} | {part['status']}" not in page:
            yield f"{part['name']}: expected a row in measured.md, found none"
    if short and kit_of.NOT_REACHED not in [part["status"] for part in measured["parts"]]:
        yield "expected parts that are not reached, found none"
    rows = {what: value for part in measured["parts"] for what, value in part["rows"]}
    if plan == "first" and not short:
        if rows.get("kernels that the kit did not carry") != 0:
            yield f"expected the first start to ask for kernels that the kit carries, found {rows.get('kernels that the kit did not carry')} others"
        with tarfile.open(out / "logs.tgz") as logs:
            if TAKEN not in logs.extractfile("logs/first-fused.log").read().decode():
                yield "expected the program to take the carried kernels and the stand-in to refuse them, found that it did not"


def main():
    if len(sys.argv) != 4:
        sys.exit(f"usage: {sys.argv[0]} KIT DOUBLE WORK")
    kit, double, root = (pathlib.Path(path).resolve() for path in sys.argv[1:])
    python = machine(kit, double, root)
    passed = failed = 0
    # Seconds enough for a machine that others use too; and so few that nothing is reached, which must not be called failed.
    for plan, seconds in [(plan, seconds) for seconds in (ENOUGH, 1) for plan in kit_of.PLANS]:
        code = rehearsed(root, python, plan, seconds)
        wrong = list(wrong_of(root / "out" / f"{plan}-{seconds}", code, plan, seconds != ENOUGH))
        print(*(f"FAILED: plan {plan}: {why}" for why in wrong), sep="\n", end="\n" if wrong else "")
        failed, passed = failed + len(wrong), passed + (not wrong)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
