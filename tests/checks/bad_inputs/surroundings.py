"""Surroundings of programs: their streams, environment and limits."""

from .kinds import kind
from .rules import Case, file_bytes

SUCCEEDS = frozenset({0})
UNPRINTED = frozenset({9})


def commands(studies):
    """Commands, one of each sort, by what they do; all succeed, and print something, where nothing is wrong."""
    return {
        "measure": [*studies.resume(), "--trials", "1", "--sparsity", "0", "--fresh"],
        "go on": studies.resume(),
        "plan": [studies.train, "x.toml", "--plan"],
        "cells": [studies.train, "x.toml", "--cells"],
        "merge": [studies.train, "merge", "x.h5", "-o", "y.h5"],
        "status": [studies.train, "status", "x.h5"],
        "data": [studies.train, "data", "fetch"],
        "help": [studies.train, "--help"],
        "version": [studies.report, "--version"],
        "configs": [studies.train, "configs"],
        "keys": [studies.train, "keys"],
        "report": [studies.report, "x.h5"],
    }


NAMES = ["measure", "go on", "plan", "cells", "merge", "status", "data", "help", "version", "configs", "keys", "report"]


def prepared(place, studies, name):
    """A case that runs one of the commands on a finished study."""
    studies.copy("whole", place)
    return Case(commands(studies)[name], SUCCEEDS, check=lambda run: result_there(run, place))


def result_there(run, place):
    """Checks that a run which succeeded, or could only not print, leaves a result file."""
    if run.code in (0, 9) and not file_bytes(place.run / "x.h5").startswith(b"\x89HDF"):
        yield "the result file is not there"


def sound(place, studies):
    return prepared(place, studies, "measure")


# How a shell sets streams up, and what of them cannot be written.
STREAMS = {
    "stdout full": ">/dev/full",
    "stderr full": "2>/dev/full",
    "both full": ">/dev/full 2>/dev/full",
    "stdout closed": ">&-",
    "stderr closed": "2>&-",
    "both closed": ">&- 2>&-",
    "all closed": "<&- >&- 2>&-",
    "stdin endless": "</dev/zero",
    "stdout unread": None,
    "stderr unread": None,
}


@kind(sound, [(name, how) for name in NAMES for how in STREAMS])
def streams(place, studies, source, item):
    """Standard streams that are full, closed or unread: the work is done all the same."""
    name, how = item
    case = prepared(place, studies, name)
    if STREAMS[how]:
        case.command = ["sh", "-c", f'exec "$@" {STREAMS[how]}', "sh", *case.command]
    elif how == "stdout unread":
        case.stdout = "unread"
    else:
        case.stderr = "unread"
    if "stdout full" in how or "both full" in how:
        case.allowed = UNPRINTED
    # Without a descriptor there is nothing that could be written, nor could it fail.
    case.may_be_silent = "stderr" in how or "both" in how or "all" in how
    return case


VARIABLES = [
    "PATH=", "PATH=/nowhere", "HOME=", "HOME=/dev/null", "HOME=/nowhere", f"HOME={'x' * 5000}", "TERM=", "TERM=dumb", "TERM=\x1b[31m",
    f"TERM={'x' * 5000}", "LANG=", "LANG=tlh_QO.KOI8-R", "LC_ALL=\udcff", "COLUMNS=0", "COLUMNS=-1", "COLUMNS=1", "COLUMNS=99999999999", "LINES=x",
    "NO_COLOR=1", "CLICOLOR_FORCE=1", "RUST_BACKTRACE=1", "RUST_BACKTRACE=full", "RUST_LOG=trace", "RUST_MIN_STACK=1", "RUST_MIN_STACK=x",
    "TMPDIR=/nowhere", "TMPDIR=", "TZ=nowhere", "PWD=/nowhere",
    "HDF5_USE_FILE_LOCKING=FALSE", "HDF5_USE_FILE_LOCKING=x", "HDF5_PLUGIN_PATH=/nowhere", "HDF5_DRIVER=x", "HDF5_DISABLE_VERSION_CHECK=0",
    "LD_LIBRARY_PATH=/nowhere", "CUDA_HOME=/dev/null", "CUDA_VISIBLE_DEVICES=x", "DPS_DATA=", "DPS_DATA=/nowhere", "DPS_DATA=/dev/zero",
    f"DPS_DATA={'x' * 5000}", "DPS_DATA=\x1b[31m", "DPS_DATA=\udcff", "OMP_NUM_THREADS=-1", "RAYON_NUM_THREADS=0", "-u HOME", "-u PATH", "-i",
]  # fmt: skip


@kind(sound, [(name, variable) for variable in VARIABLES for name in ["measure", "data"]])
def environment(place, studies, source, item):
    """Environment variables that are missing, odd or long."""
    name, variable = item
    case = prepared(place, studies, name)
    case.command = ["/usr/bin/env", *variable.split(" "), *case.command] if variable[0] == "-" else ["/usr/bin/env", variable, *case.command]
    # The library checks itself, the driver is not there, and nobody else chooses them.
    case.allowed = SUCCEEDS | ({4} if "HDF5" in variable else set())
    return case


MISTAKES = ["nothing.toml", "broken.toml", "status nothing.h5", "x.toml --data nowhere"]


@kind(sound, [f"RUST_BACKTRACE={value} {mistake}" for value in ["1", "full"] for mistake in MISTAKES])
def environment_refused(place, studies, source, item):
    """Refusals while backtraces are asked for: a sentence, and no trace."""
    case = prepared(place, studies, "plan")
    (place.run / "broken.toml").write_text("[workload\n")
    variable, *words = item.split(" ")
    case.command, case.check = ["/usr/bin/env", variable, studies.train, *words], None
    case.allowed = frozenset({2, 3, 4})
    return case


# How a shell sets a limit, and the exit codes that may come of it.
LIMITS = {
    # The more processors, the more memory threads take; 50 MB are too few for two.
    "ulimit -v 300000": {0, 6},
    "ulimit -v 150000": {0, 6},
    "ulimit -v 50000": {0, 6},
    "ulimit -f 0": {0, 4, 7},
    "ulimit -f 1": {0, 4, 7},
    "ulimit -f 8": {0, 4, 7},
    "ulimit -f 64": {0, 4, 7},
    "ulimit -f 256": {0, 4, 7},
    "ulimit -n 5": {0, 2, 3, 4, 7},
    "ulimit -n 6": {0, 2, 3, 4, 7},
    "ulimit -n 7": {0, 2, 3, 4, 7},
    "ulimit -n 8": {0, 2, 3, 4, 7},
    "ulimit -n 10": {0, 2, 3, 4, 7},
    "ulimit -s 256": {0},
    "ulimit -c 0": {0},
    "umask 777": {0, 2, 4, 7},
    "umask 0": {0},
    "trap '' HUP INT TERM PIPE": {0},
    "mkdir gone && cd gone && rmdir ../gone": {2, 4, 7},
    # The folder stops nobody who is root: everything may be written then.
    "chmod 500 .": {0, 4, 7},
}


@kind(sound, [(name, limit) for limit in LIMITS for name in ["measure", "go on", "plan", "status", "report"]])
def limits(place, studies, source, item):
    """Limits on memory, on the size of files and on their number; a folder that is gone."""
    name, limit = item
    case = prepared(place, studies, name)
    case.command = ["sh", "-c", f'{limit} && exec "$@"', "sh", *case.command]
    # Nor may standard output grow beyond a limit for files.
    case.allowed = frozenset(LIMITS[limit] | ({9} if limit.startswith("ulimit -f") else set()))
    # Nor standard error.
    case.may_be_silent = limit == "ulimit -f 0"
    if limit == "umask 777":
        # The result may not be read.
        case.check = None
    return case

