#!/usr/bin/env python3
"""Runs dps with bad inputs and sees how it ends: bad_inputs.py FOLDER [--runs N] [--seed S] [--only KIND [--case N]].

FOLDER holds dps-train and dps-report. A run fails where it panics, hangs, is killed, takes memory without measure, ends with an exit code that its
input does not explain, refuses without a word or with too many, lets an input's escapes through to the terminal, or touches files that are not its
own; and a damaged study must be refused or end with the undamaged one's results. tests/checks/bad_inputs/ has the rules and the kinds of input.

Half of the time goes into waiting for the disk: TMPDIR=/dev/shm saves it.

--self-test, which needs no FOLDER, checks that every offence is noticed: on programs made to commit it."""

import argparse
import concurrent.futures
import dataclasses
import math
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
# The first of these add their kinds of input to the list.
from bad_inputs import command_lines, configurations, data_files, kept_files, own_data, result_files, surroundings  # noqa: E402, F401
from bad_inputs import rules, self_test, summary  # noqa: E402
from bad_inputs.kinds import KINDS  # noqa: E402
from bad_inputs.study import Studies  # noqa: E402

# One more than CI has processors, since a run also waits for the disk.
WORKERS = 3


@dataclasses.dataclass
class Setting:
    """Objects that all cases share."""

    work: pathlib.Path
    studies: Studies
    seed: int


def prepared(kind, number, setting):
    """Makes the input of a case, the same each time: 0 is undamaged, then come those that were thought of, then random ones."""
    place = rules.Place(setting.work / f"{kind.name}-{number}")
    if number == 0:
        return place, kind.sound(place, setting.studies)
    item = kind.items[number - 1] if number <= len(kind.items) else None
    return place, kind.make(place, setting.studies, random.Random(f"{setting.seed} {kind.name} {number}"), item)


def outcome(kind, number, setting):
    """Runs a case. Of one that fails, the folder is left as it was before the run."""
    begun = time.monotonic()
    try:
        place, case = prepared(kind, number, setting)
        run, offences = rules.offences(case, place)
        forget(place)
    except Exception as error:
        raise RuntimeError(f"this script failed at {kind.name} {number}") from error
    command = ""
    if offences:
        place, case = prepared(kind, number, setting)
        command = rules.shell(case, place)
    return summary.Outcome(kind.name, number, run, offences, command, time.monotonic() - begun)


def forget(place):
    """Removes a case's folders, even those that a case made unwritable."""
    try:
        shutil.rmtree(place.folder)
    except PermissionError:
        subprocess.run(["chmod", "-R", "u+rwx", place.folder], check=True)
        shutil.rmtree(place.folder)


def chosen(arguments):
    """(kind, number) of the cases to run: all that were thought of, and as many random ones as make up the number of runs asked for."""
    if arguments.case is not None:
        return [(KINDS[arguments.only], arguments.case)]
    kinds = KINDS.values()
    thought_of = sum(len(kind.items) for kind in kinds)
    a_share = max(0, arguments.runs - thought_of) / sum(kind.share for kind in kinds)
    numbers = {kind.name: 1 + len(kind.items) + math.ceil(kind.share * a_share) for kind in kinds}
    return [(kind, number) for kind in kinds if arguments.only in (None, kind.name) for number in range(numbers[kind.name])]


def run_all(cases, setting):
    """The outcomes of all cases, in their order."""
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        running = [pool.submit(outcome, kind, number, setting) for kind, number in cases]
        try:
            return [one.result() for one in running]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def read_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="\n".join(["kinds:", *map(str, KINDS.values())]), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=pathlib.Path, metavar="FOLDER", help="holds dps-train and dps-report")
    parser.add_argument("--runs", type=int, default=1700, metavar="N", help="bad inputs; those that were thought of are run in any case")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the random ones")
    parser.add_argument("--only", choices=KINDS, metavar="KIND", help="one of those below")
    parser.add_argument("--case", type=int, metavar="N", help="one input of that kind; 0 is the undamaged one")
    parser.add_argument("--self-test", action="store_true", help="check that offences are noticed")
    arguments = parser.parse_args()
    if arguments.case is not None and not arguments.only:
        parser.error("--case needs --only")
    if not arguments.self_test and arguments.folder is None:
        parser.error("FOLDER is missing")
    return arguments


def main():
    arguments = read_arguments()
    if arguments.self_test:
        return self_test.run()
    for program in ("dps-train", "dps-report"):
        if not (arguments.folder / program).is_file():
            sys.exit(f"expected {arguments.folder / program}, found none: name the folder of both programs")
    begun, failed = time.monotonic(), False
    print(f"seed {arguments.seed}", flush=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix="dps-bad-"))
    try:
        setting = Setting(work, Studies(arguments.folder.resolve(), work / "studies"), arguments.seed)
        before = setting.studies.contents()
        outcomes = run_all(chosen(arguments), setting)
        text, failed = summary.summary(outcomes, setting.studies.contents() == before, f"{sys.argv[0]} {arguments.folder} --seed {arguments.seed}")
    finally:
        # Cases that failed are there to be looked at.
        if not failed:
            shutil.rmtree(work, ignore_errors=True)
    print(f"{time.monotonic() - begun:.0f} s\n{text}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
