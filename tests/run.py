#!/usr/bin/env python3
"""Runs Rust's tests as `cargo test` does, but several at once: run.py [ARGUMENT OF cargo test]…

Each program of tests/ has a module for each thing that it tests, and so have the tests of src/. `cargo test` runs the programs one after the other,
and many tests wait more than they compute. Here each module runs in a process of its own, one test at a time, and one more of them run side by side
than there are cores, as some wait. A program without modules is run in parts. What a process prints comes when it has ended. The last lines name
what failed. Without arguments all tests are run that `cargo test` runs, but for those in
documentation.
"""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

# Modules that take longest begin first.
FIRST = ["study::ranks", "gpu::cuda_backend", "gpu::kernels_compile", "stops::resume", "study::confirmation", "kernels::reference"]
FIRST += ["stops::supervise", "dps::backend", "cuda", "pages", "simulation", "report::page", "stops::interrupts"]
# The tests of src/ are compiled with less optimisation, in half the time. Without any they took ten times as long as with some.
OF_SRC = ["--lib", "--config", "profile.test.package.dps.opt-level=1"]
# Processes to which the tests of a program without modules are dealt out.
PARTS = 3


def builds(arguments):
    """The arguments of each `cargo test` that builds tests."""
    if arguments:
        return [arguments]
    described = subprocess.run(["cargo", "metadata", "--no-deps", "--format-version=1"], stdout=subprocess.PIPE, text=True, check=True).stdout
    targets = json.loads(described)["packages"][0]["targets"]
    programs = [target["name"] for target in targets if target["kind"] == ["test"] and target["test"]]
    return [OF_SRC, [word for name in programs for word in ("--test", name)]]


def programs(arguments):
    """Builds tests; gives (name, path) of each program."""
    command = ["cargo", "test", "--no-run", "--message-format=json-render-diagnostics", *arguments]
    built = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        sys.exit(built.returncode)
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    return {
        (message["target"]["name"], message["executable"])
        for message in messages
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]
    }


def parts(name, path):
    """Gives (name, command) of each module of a program. The tests of a program without modules are dealt out to PARTS parts."""
    listed = subprocess.run([path, "--list", "--format=terse"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    tests = [line.removesuffix(": test") for line in listed if line.endswith(": test")]
    if not tests:
        sys.exit(f"expected tests in {name}, found none: remove the program, or see why its tests are not compiled")
    if not all("::" in test for test in tests):
        return [(name, [path, "--exact", *tests[first::PARTS]]) for first in range(min(PARTS, len(tests)))]
    modules = sorted({test.partition("::")[0] for test in tests})
    return [(f"{name}::{module}", [path, "--exact", *(test for test in tests if test.startswith(f"{module}::"))]) for module in modules]


def run(command):
    """Runs a command; gives its exit code, what it printed, and its seconds: by the clock, and of processors."""
    begun = time.monotonic()
    environment = {**os.environ, "RUST_TEST_THREADS": "1"}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment) as process:
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, printed.decode(errors="replace"), time.monotonic() - begun, usage.ru_utime + usage.ru_stime


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    found = [part for build in builds(sys.argv[1:]) for program in programs(build) for part in parts(*program)]
    if not found:
        sys.exit("no tests were found")
    found.sort(key=lambda part: (FIRST.index(part[0]) if part[0] in FIRST else len(FIRST), part[0]))
    failed = []
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 1) as pool:
        tasks = {pool.submit(run, command): name for name, command in found}
        for task in as_completed(tasks):
            code, text, seconds, busy = task.result()
            print(f"--- {tasks[task]}: {seconds:.1f} s, {busy:.1f} s of processors\n{text.lstrip()}", flush=True)
            if code != 0:
                failed.append(tasks[task])
    for name in sorted(failed):
        program, _, module = name.partition("::")
        print(f"FAILED: {name}; again: cargo test {'--lib' if program == 'dps' else f'--test {program}'} {module}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
