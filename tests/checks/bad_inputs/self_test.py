"""Checks the checks: programs made to commit each offence, and one that commits none."""

import pathlib
import shlex
import shutil
import sys
import tempfile
import time

from .command_lines import configuration_kept, unchanged
from .result_files import kept
from .rules import Case, Limits, Place, Run, offences
from .study import Studies, tables
from .summary import Outcome, summary
from .surroundings import result_there

# A shell script, and words of what it must be charged with; None for one that keeps the rules. It is expected to end with 2.
SCRIPTS = [
    ("echo 'expected x, found y' >&2; exit 2", None),
    ("echo \"thread 'main' panicked at src/x.rs\" >&2; exit 2", "panicked"),
    ("echo 'note: run with RUST_BACKTRACE=1' >&2; exit 2", "RUST_BACKTRACE"),
    ("echo 'unexpected failure, please report it' >&2; exit 2", "unexpected failure"),
    ("echo word >&2; exit 1", "exit code 1"),
    ("echo word >&2; exit 3", "exit code 3"),
    ("echo word >&2; exit 0", "exit code 0"),
    ("echo word >&2; exit 134", "exit code 134"),
    ("echo word >&2; kill -ABRT $$", "signal 6"),
    ("echo word >&2; kill -SEGV $$", "signal 11"),
    ("exit 2", "without a word"),
    ("echo >&2; exit 2", "without a word"),
    ("head -c 501 /dev/zero | tr '\\0' x >&2; exit 2", "a sentence of 501"),
    ("head -c 500 /dev/zero | tr '\\0' x >&2; exit 2", None),
    ("yes 'Another problem.' | head -c 20001 >&2; exit 2", "20001 bytes"),
    ("printf 'red \\033[31m' >&2; exit 2", "control character"),
    ("printf 'a\\rb' >&2; exit 2", "control character"),
    ("printf 'other letters \\302\\233' >&2; exit 2", "control character"),
    ("echo word >&2; printf '\\007'; exit 2", "standard output has the control character"),
    ("printf '\\377' >&2; exit 2", "not UTF-8"),
    ("echo changed > ../outside/sentinel; echo word >&2; exit 2", "outside"),
    ("rm ../outside/sentinel; echo word >&2; exit 2", "outside"),
    ("rm ../outside/sentinel; mkdir ../outside/sentinel; echo word >&2; exit 2", "outside"),
    ("echo > ../outside/new; echo word >&2; exit 2", "outside"),
    ("echo > ../new; echo word >&2; exit 2", "outside"),
    ("sleep 20 & echo word >&2; exit 2", "left a process"),
]

PYTHON = f"exec {shlex.quote(sys.executable)} -c"
# Commands with limits of their own, and the offence of each.
GREEDY = [
    ("sleep 20", Limits(seconds=1), "no end within 1 s"),
    ("trap '' TERM; while :; do :; done", Limits(seconds=1), "no end within 1 s"),
    (f"{PYTHON} 'x = b\"x\" * 300_000_000; import time; time.sleep(20)'", Limits(megabytes=200), "more than 200 MB of memory"),
    # The process is killed where it is seen in time, and charged afterwards where it is not.
    (f"{PYTHON} 'x = b\"x\" * 300_000_000; exit(\"word\")'", Limits(megabytes=200), "MB of memory"),
    (f"{PYTHON} 'import time\nwhile time.process_time() < 0.5: pass'", Limits(processor_seconds=0.4), "processor time"),
]


def charges(command, folder, limits=Limits(), **changes):
    """Offences of a shell's command."""
    place = Place(folder)
    found = offences(Case(["sh", "-c", command], **{"allowed": frozenset({2}), **changes}), place, limits)[1]
    shutil.rmtree(folder)
    return "; ".join(found)


def scripts(work):
    """Offences of runs."""
    for number, (script, expected) in enumerate(SCRIPTS):
        found = charges(script, work / f"script-{number}")
        yield script, expected in found if expected else found == ""
    for number, (script, limits, expected) in enumerate(GREEDY):
        yield script, expected in charges(script, work / f"greedy-{number}", limits)
    yield "silence that is meant", charges("exit 2", work / "silent", may_be_silent=True) == ""
    unread = {"stdout": "unread", "allowed": frozenset({9}), "may_be_silent": True}
    yield "a pipe without a reader", charges("trap '' PIPE; echo x || exit 9", work / "unread", **unread) == ""
    yield "a check that fails", charges("exit 0", work / "check", allowed=frozenset({0}), check=lambda run: ["no"]) == "no"


def locks(work):
    """Tests that a file which is to be locked is."""
    place = Place(work / "lock")
    (place.run / "x.lock").touch()
    program = "import fcntl; fcntl.flock(open('x.lock'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    for locked, code in [("x.lock", 1), (None, 0)]:
        run, _ = offences(Case([sys.executable, "-c", program], locked=locked), place)
        yield f"a lock on {locked}", run.code == code


TABLE = "Steps-to-result\n  17  8\n\n  batch size  seconds\n          17      {}\n\nBy K*, the critical batch size is 5\nReport: {}\n"


def results(work):
    """Tests the checks with other results, or with none."""
    place = Place(work / "results")
    studies = object.__new__(Studies)
    studies.tables = {"x": tables(TABLE.format(1, "a").encode())}
    studies.report = str(work / "report")
    same, other = TABLE.format(2, "b"), TABLE.format(1, "a").replace("8", "12")
    cases = [
        (same, same, ""),
        (other, same, "prints other"),
        ("", same, "prints other"),
        (same, other, "file has other"),
        (same, None, "cannot read"),
    ]
    for printed, reported, expected in cases:
        pathlib.Path(studies.report).write_text(f"#!/bin/sh\nprintf %s {shlex.quote(reported)}\n" if reported else "#!/bin/sh\nexit 4\n")
        pathlib.Path(studies.report).chmod(0o755)
        found = "; ".join(studies.same_as("x", place)(Run(0, printed.encode(), b"", 0, 0, 0)))
        yield f"results {expected or 'that are equal'}", expected in found if expected else found == ""
    yield "a study that was refused", not list(studies.same_as("x", place)(Run(7, b"", b"", 0, 0, 0)))


def files(work):
    """Tests the checks with files that are gone, replaced or changed."""
    place = Place(work / "files")
    studies = object.__new__(Studies)
    studies.made = place.run
    ended = Run(0, b"", b"", 0, 0, 0)
    (place.run / "x.h5").write_bytes(b"\x89HDF")
    for name in ["whole.h5", "whole.toml", "x.toml", "file"]:
        (place.run / name).write_text("something\n")
    yield "a result that is there", not list(result_there(ended, place))
    yield "a configuration that is kept", not list(configuration_kept(ended, place, studies))
    yield "a part that has changed", list(kept(place, studies))
    (place.run / "x.toml").write_text("something else\n")
    yield "a configuration that has changed", list(configuration_kept(ended, place, studies))
    (place.run / "x.h5").write_text("no HDF5\n")
    yield "a result that is none", list(result_there(ended, place))
    before = (place.run / "file").lstat()
    yield "a file that is the same", not list(unchanged(place.run / "file", before))
    (place.run / "file").rename(place.run / "moved")
    yield "a file that is gone", list(unchanged(place.run / "file", before))
    (place.run / "file").mkdir()
    yield "a file that was replaced", list(unchanged(place.run / "file", before))
    (place.run / "x.h5").unlink()
    yield "a result that is gone", list(result_there(ended, place))


def summaries(_):
    """Tests the sums of all runs."""
    good, bad = (Outcome("some", 1, Run(2, b"", b"word", 0, 0, 0), offences, "", 0) for offences in [[], ["no"]])
    for outcomes, unharmed, failures in [([good], True, 0), ([good, bad], True, 1), ([good], False, 1)]:
        text, failed = summary(outcomes, unharmed, "")
        expected = f"{len(outcomes)} bad inputs, {failures} failures"
        yield f"a summary of {failures} failures", failed == (failures > 0) and text.splitlines()[-1] == expected


def run():
    """Prints what was not noticed; the exit code."""
    begun, checked, unnoticed = time.monotonic(), 0, []
    with tempfile.TemporaryDirectory(prefix="dps-bad-") as work:
        for part in [scripts, locks, results, files, summaries]:
            for what, noticed in part(pathlib.Path(work)):
                checked += 1
                unnoticed += [] if noticed else [what]
    for what in unnoticed:
        print(f"NOT AS IT SHOULD BE: {what}")
    print(f"{checked} checks of the checks, {len(unnoticed)} failures, {time.monotonic() - begun:.0f} s")
    return 1 if unnoticed else 0
