#!/usr/bin/env python3
"""Runs Rust's tests as `cargo test` does, but several programs at once: run.py [ARGUMENT OF cargo test]…

Each file of tests/ is a program. `cargo test` runs them one after the other, and many wait more than they compute. Here as many run side by side as
there are cores, each with one test at a time. What a program prints comes when it has ended. The last lines name what failed.
"""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

# What takes longest begins first; a name that no program has does no harm.
FIRST = ["ranks", "resume", "interrupts", "kernels_compile", "cuda_backend", "cuda", "cuda_products", "reference", "networks"]


def programs(arguments):
    """Builds the tests; gives (name, path) of each program."""
    command = ["cargo", "test", "--no-run", "--message-format=json-render-diagnostics", *arguments]
    built = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        sys.exit(built.returncode)
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    found = {
        (message["target"]["name"] + ("" if "test" in message["target"]["kind"] else f" ({message['target']['kind'][0]})"), message["executable"])
        for message in messages
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]
    }
    rank = {name: place for place, name in enumerate(FIRST)}
    return sorted(found, key=lambda program: (rank.get(program[0], len(FIRST)), program[0]))


def run(path):
    """Runs a program; gives its exit code, what it printed, and its seconds."""
    begun = time.monotonic()
    done = subprocess.run(
        [path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "RUST_TEST_THREADS": "1"}
    )
    return done.returncode, done.stdout.decode(errors="replace"), time.monotonic() - begun


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    found = programs(sys.argv[1:])
    if not found:
        sys.exit("no tests were found")
    failed = []
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        tasks = {pool.submit(run, path): name for name, path in found}
        for task in as_completed(tasks):
            code, text, seconds = task.result()
            print(f"--- {tasks[task]}: {seconds:.1f} s{text}", flush=True)
            if code != 0:
                failed.append(tasks[task])
    for name in sorted(failed):
        print(f"FAILED: {name}; again: cargo test --test {name}" if " " not in name else f"FAILED: {name}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
