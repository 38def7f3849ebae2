#!/usr/bin/env python3
"""Prints how much processor time one dps-train takes beside another for the same study: speed.py OLD NEW [--rounds N] -- CONFIG [OPTION…].

The programs take turns, so that whatever else the machine does hits both alike. The last line has the median of the rounds' ratios, NEW to OLD, and
their range."""

import argparse
import os
import statistics
import tempfile


def seconds(program, words):
    """Processor time of a study, of the program and the processes that it starts."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, *words, "--quiet", "--output", f"{folder}/study.h5"]
        process = os.posix_spawn(program, command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
        _, status, used = os.wait4(process, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("study", nargs="+", metavar="WORD", help="configuration and options of the study")
    arguments = parser.parse_args()
    ratios = []
    for number in range(arguments.rounds):
        programs = [arguments.old, arguments.new]
        taken = {program: seconds(program, arguments.study) for program in (programs if number % 2 else programs[::-1])}
        ratios.append(taken[arguments.new] / taken[arguments.old])
        print(f"{taken[arguments.old]:.2f} s, {taken[arguments.new]:.2f} s: {ratios[-1]:.3f}", flush=True)
    print(f"median {statistics.median(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}")


if __name__ == "__main__":
    main()
