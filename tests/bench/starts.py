"""Seconds that a study of one step takes from start to end, on 1 to 8 ranks of this machine, and the memory of a rank.

Usage: starts.py PROGRAMS
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 5
RANKS = [1, 2, 4, 8]


def start(programs, ranks, folder):
    """Seconds of one study, and the MB of its largest process: mpirun, or a rank that it has waited for."""
    output = os.path.join(folder, f"{time.time()}.h5")
    command = ["mpirun", "--oversubscribe", "-n", str(ranks), f"{programs}/dps-train", "configs/quickstart.toml", "--quiet", "-o", output]
    command += ["--threads", "1", "--batch-size", "256", "--sparsity", "0"]
    for setting in ["workload.max_steps=1", "grid.trials=1", "workload.evaluate_every=1"]:
        command += ["--set", setting]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
    began = time.monotonic()
    process = subprocess.Popen(command, env={**os.environ, **root}, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return time.monotonic() - began, usage.ru_maxrss / 1024


def main():
    programs = sys.argv[1]
    print("| ranks | seconds | MB of a rank |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for ranks in RANKS:
            starts = [start(programs, ranks, folder) for _ in range(ROUNDS)]
            seconds = statistics.median(seconds for seconds, _ in starts)
            print(f"| {ranks} | {seconds:.2f} | {max(memory for _, memory in starts):.0f} |", flush=True)


main()
