"""One program run with a bad input, and the rules that it must keep."""

import dataclasses
import fcntl
import os
import re
import shlex
import signal
import stat
import subprocess
import time
from typing import Callable, Optional

# The exit codes that README lists, but for 1, "an unexpected failure", which no input may cause.
LISTED = frozenset({0, 2, 3, 4, 5, 6, 7, 8, 9, 75})

SENTENCE = 500  # letters
MESSAGES = 20_000  # bytes on standard error: ten problems are named, of more there is a count
NOT_FOR_TERMINALS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# Variables of whoever runs this script that would change what the programs do.
UNWANTED = re.compile("DPS_|RUST_|OMPI_|PMI|PRTE_|SLURM_|HDF5_")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not UNWANTED.match(name)}


@dataclasses.dataclass
class Limits:
    """How much a run may take."""

    seconds: float = 20
    processor_seconds: float = 20
    megabytes: int = 700


@dataclasses.dataclass
class Case:
    """A program run with a bad input, and what may come of it."""

    command: list
    allowed: frozenset = LISTED
    # "kept", or "unread": a pipe whose reader has gone.
    stdout: str = "kept"
    stderr: str = "kept"
    # Where standard error is itself the fault.
    may_be_silent: bool = False
    # A file, by its name in the run's folder, that another program has locked meanwhile.
    locked: Optional[str] = None
    # More that must hold afterwards: given the run, it returns offences.
    check: Optional[Callable] = None


@dataclasses.dataclass
class Run:
    """End, output and cost of a program that was run."""

    # Negative: the signal that ended it, as of subprocess.
    code: int
    stdout: bytes
    stderr: bytes
    wall_seconds: float
    processor_seconds: float
    megabytes: float
    # Why it was ended, where it was.
    ended: str = ""
    left_processes: bool = False


class Place:
    """Folders of one case: `run`, in which the program runs, and `outside`, which it must leave as it is."""

    def __init__(self, folder):
        self.folder, self.run, self.outside = folder, folder / "run", folder / "outside"
        self.run.mkdir(parents=True)
        self.outside.mkdir()
        (self.outside / "sentinel").write_text("somebody else's file\n")

    def outside_now(self):
        """Everything outside of the run's folder, by name: kind of file, device number, content."""
        found = {}
        for path in [self.folder, *self.outside.rglob("*")]:
            status = path.lstat()
            names = sorted(os.listdir(path)) if stat.S_ISDIR(status.st_mode) else []
            text = file_bytes(path) if stat.S_ISREG(status.st_mode) else b""
            found[str(path)] = (stat.S_IFMT(status.st_mode), status.st_rdev, names, text)
        return found


def offences(case, place, limits=Limits()):
    """Runs a case in its place; the run, and a sentence about every rule that it broke."""
    for name in ["stdout", "stderr"]:
        (place.folder / name).touch()
    before = place.outside_now()
    run = execute(case, place, limits)
    found = list(broken(run, case, limits))
    if place.outside_now() != before:
        found.append("files outside of the run's folder have changed")
    if case.check and not found:
        found += case.check(run)
    return run, found


def broken(run, case, limits):
    """A sentence for every rule that the run itself broke."""
    if run.ended:
        yield run.ended
    elif run.code < 0:
        yield f"killed by signal {-run.code} ({signal.Signals(-run.code).name})"
    elif run.code not in case.allowed:
        yield f"exit code {run.code}, expected {' or '.join(map(str, sorted(case.allowed)))}"
    if run.processor_seconds > limits.processor_seconds:
        yield f"{run.processor_seconds:.0f} s of processor time, more than {limits.processor_seconds}"
    if run.megabytes > limits.megabytes:
        yield f"{run.megabytes:.0f} MB of memory, more than {limits.megabytes}"
    if run.left_processes:
        yield "it left a process behind"
    for word in [b"panicked", b"RUST_BACKTRACE", b"unexpected failure"]:
        if word in run.stderr:
            yield f"standard error has \"{word.decode()}\""
    if run.code != 0 and not run.ended and not run.stderr.strip() and not case.may_be_silent:
        yield "refused without a word on standard error"
    if len(run.stderr) > MESSAGES:
        yield f"{len(run.stderr)} bytes on standard error, more than {MESSAGES}"
    longest = max((len(sentence) for sentence in sentences(run.stderr)), default=0)
    if longest > SENTENCE:
        yield f"a sentence of {longest} letters, more than {SENTENCE}"
    for name, text in [("standard error", run.stderr), ("standard output", run.stdout)]:
        try:
            if control := NOT_FOR_TERMINALS.search(text.decode()):
                yield f"{name} has the control character {control[0]!r}"
        except UnicodeDecodeError:
            yield f"{name} is not UTF-8"


def file_bytes(path):
    """A file's bytes; none where there is no file, something else, or none that may be read."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""


def sentences(text):
    """The sentences of a message; a line ends one, too."""
    return re.split(r"\n|(?<=[.!?]) (?=[A-Z])", text.decode(errors="replace"))


def execute(case, place, limits):
    """Runs a case's command to its end, or to the first limit."""
    files = [open(place.folder / name, "r+b") for name in ["stdout", "stderr"]]
    streams = [unread() if stream == "unread" else file.fileno() for stream, file in zip([case.stdout, case.stderr], files)]
    lock = case.locked and open(place.run / case.locked, "r+b")
    if lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    begun = time.monotonic()
    # A session of its own: what it starts can be ended with it.
    process = subprocess.Popen(
        case.command, cwd=place.run, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=streams[0], stderr=streams[1], start_new_session=True
    )
    status, usage, ended = wait(process.pid, begun, limits)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall_seconds = time.monotonic() - begun
    try:
        os.killpg(process.pid, signal.SIGKILL)
        left_processes = True
    except ProcessLookupError:
        left_processes = False
    stdout, stderr = [os.pread(file.fileno(), 1 << 22, 0) for file in files]
    for number, stream in zip(streams, [case.stdout, case.stderr]):
        if stream == "unread":
            os.close(number)
    for file in [*files, *([lock] if lock else [])]:
        file.close()
    processor_seconds = usage.ru_utime + usage.ru_stime
    return Run(process.returncode, stdout, stderr, wall_seconds, processor_seconds, usage.ru_maxrss / 1000, ended, left_processes)


def wait(pid, begun, limits):
    """Waits for a process: its status, what it used, and why it was ended, if it was."""
    pause, ended = 0.002, ""
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return status, usage, ended
        if time.monotonic() - begun > limits.seconds:
            ended = f"no end within {limits.seconds} s"
        elif resident_megabytes(pid) > limits.megabytes:
            ended = f"more than {limits.megabytes} MB of memory"
        if ended:
            os.killpg(pid, signal.SIGKILL)
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def resident_megabytes(pid):
    """Memory of a running process, so that one without measure is ended before it is everybody's."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6
    except (OSError, IndexError):
        return 0


def unread():
    """The writing end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def shell(case, place):
    """A shell command that runs a case in its folder, if the folder is as it was before."""
    line = f"cd {quoted(str(place.run))} && {' '.join(map(quoted, case.command))}"
    if case.stderr == "unread":
        line += " 2>&1 >/dev/null"
    return line + (" | sleep 0" if "unread" in (case.stdout, case.stderr) else "")


def quoted(word):
    """A word in a shell's quotes, by its bytes where a terminal should not see them."""
    if word.isprintable() and word.isascii():
        return shlex.quote(word)
    return "$'" + "".join(chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\x{byte:02x}" for byte in os.fsencode(word)) + "'"
