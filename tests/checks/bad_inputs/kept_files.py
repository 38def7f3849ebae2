"""Files that a study keeps while it runs: journal, checkpoint, lock, temporary and result files, damaged or of other sorts.

A damaged study is refused, or ends with the results of the undamaged one."""

import struct
import zlib

from .damage import ESCAPES, HEAD, ODD_FILES, chained, damaged, journal_records, put
from .kinds import kind
from .rules import Case
from .study import toml

SUCCEEDS = frozenset({0})
REFUSED = frozenset({4, 7})
EITHER = SUCCEEDS | REFUSED


def resumed(place, studies, name, changes):
    """A case that goes on with a study, of whose files some have other contents."""
    studies.copy(name, place)
    for suffix, content in changes.items():
        (place.run / f"x.{suffix}").write_bytes(content)
    return Case(studies.resume(), EITHER, check=studies.same_as(name, place))


def sound(name):
    """Makes the case in which a study goes on undamaged."""

    def make(place, studies):
        case = resumed(place, studies, name, {})
        case.allowed = SUCCEEDS
        return case

    return make


@kind(sound("whole"), share=12)
def journal_bytes(place, studies, source, _):
    """A journal with random damage."""
    return resumed(place, studies, "whole", {"journal": damaged(studies.bytes("whole", "journal"), source)})


@kind(sound("whole"), share=4)
def journal_records_moved(place, studies, source, _):
    """A journal some of whose records are missing, doubled, in another order or another study's."""
    first, records = journal_records(studies.bytes("whole", "journal"))
    _, others = journal_records(studies.bytes("other", "journal"))
    for _ in range(source.choice([1, 1, 2])):
        at, to = source.randrange(len(records)), source.randrange(len(records) + 1)
        what = source.choice(["taken out", "doubled", "moved", "exchanged", "another's", "last ones gone"])
        if what == "taken out" or what == "moved":
            record = records.pop(at)
        if what == "moved":
            records.insert(to, record)
        elif what == "doubled":
            records.insert(to, records[at])
        elif what == "exchanged":
            records[at], records[to - 1] = records[to - 1], records[at]
        elif what == "another's":
            records.insert(to, source.choice(others))
        elif what == "last ones gone":
            del records[max(at, 1) :]
        records = records or [b""]
    return resumed(place, studies, "whole", {"journal": first + b"".join(records)})


@kind(sound("whole"), share=6)
def journal_crafted(place, studies, source, _):
    """A journal whose records are damaged, but for their checksums."""
    first, records = journal_records(studies.bytes("whole", "journal"))
    payloads = [record[HEAD:] for record in records]
    for _ in range(source.choice([1, 1, 3])):
        at = source.randrange(len(payloads))
        payloads[at] = source.choice(
            [damaged(payloads[at], source), payloads[at][:1] + source.randbytes(20), b"", source.choice(ESCAPES).encode() * 9, payloads[at - 1]]
        )
    case = resumed(place, studies, "whole", {"journal": first + chained(payloads)})
    # Somebody who can compute checksums can write other results, too.
    case.check = None
    if source.random() < 0.3:
        case.command = [studies.train, "status", "x.h5"]
    return case


JOURNALS = {
    "empty": lambda whole, other, h5: b"",
    "a line break": lambda whole, other, h5: b"\n",
    "its first line": lambda whole, other, h5: whole[: whole.index(b"\n") + 1],
    "a newer version's": lambda whole, other, h5: b"dps journal 999" + whole[whole.index(b"\n") :],
    "of a version without end": lambda whole, other, h5: b"dps journal " + b"9" * 1_000_000 + b"\n",
    "of a version in escapes": lambda whole, other, h5: b"dps journal 1\x1b[31m\n",
    "itself twice": lambda whole, other, h5: whole + whole,
    "itself and another": lambda whole, other, h5: whole + other,
    "another and itself": lambda whole, other, h5: other + whole,
    "another study's": lambda whole, other, h5: other,
    "a result file": lambda whole, other, h5: h5,
    "a configuration": lambda whole, other, h5: toml().encode(),
    "8 MB of zeros": lambda whole, other, h5: bytes(1 << 23),
    "followed by 8 MB of zeros": lambda whole, other, h5: whole + bytes(1 << 23),
    "6 MB of false heads": lambda whole, other, h5: whole + struct.pack("<II", 3_000_000, 3_000_000 ^ 0xFFFFFFFF) * 750_000,
    "6 MB of false heads of nothing": lambda whole, other, h5: whole + struct.pack("<IIII", 0, 0xFFFFFFFF, 0, 0) * 375_000,
    "6 MB of small false heads": lambda whole, other, h5: whole + b"".join(struct.pack("<II", n, n ^ 0xFFFFFFFF) for n in range(750_000)),
    "a record of 4 GB": lambda whole, other, h5: whole + struct.pack("<II", 0xFFFFFFF0, 0xF),
    "noise": lambda whole, other, h5: zlib.compress(whole[:100_000]),
}


@kind(sound("whole"), [(what, status) for what in JOURNALS for status in [False, True]])
def journal_contents(place, studies, source, item):
    """Something else in a journal's place; goes on with the study, or asks how far it is."""
    what, status = item
    contents = JOURNALS[what](studies.bytes("whole", "journal"), studies.bytes("other", "journal"), studies.bytes("whole", "h5"))
    case = resumed(place, studies, "whole", {"journal": contents})
    case.check = studies.same_as("whole", place, in_file=False)
    if status:
        case.command, case.check = [studies.train, "status", "x.h5"], None
    return case


CHECKSUM = 4  # bytes, behind a checkpoint's first line


@kind(sound("stopped"), ["empty", "its first line", "a journal", "of a newer version", "32 MB of zeros"], share=2)
def checkpoint_bytes(place, studies, source, item):
    """A damaged checkpoint: the cell's trials start again, and end with the same results."""
    content = studies.bytes("stopped", "checkpoint")
    first_line, rest = content[: content.index(b"\n") + 1], content[content.index(b"\n") + 1 :]
    others = {
        "empty": b"",
        "its first line": first_line,
        "a journal": studies.bytes("stopped", "journal"),
        "of a newer version": b"dps checkpoint 999\n" + rest,
        "32 MB of zeros": content + bytes(1 << 25),
    }
    return resumed(place, studies, "stopped", {"checkpoint": others[item] if item else damaged(content, source)})


@kind(sound("stopped"), share=2)
def checkpoint_crafted(place, studies, source, _):
    """A checkpoint that is damaged, but for its checksum."""
    content = studies.bytes("stopped", "checkpoint")
    start = content.index(b"\n") + 1
    payload = damaged(content[start + CHECKSUM :], source)
    crafted = content[:start] + struct.pack("<I", zlib.crc32(payload)) + payload
    case = resumed(place, studies, "stopped", {"checkpoint": crafted})
    # No check, as of journals: other results can be written.
    case.check = None
    return case


# Everything that a study reads or writes, but for what the command line names.
BESIDE = ["x.journal", "x.checkpoint", "x.lock", "x.lock.held", "x.svg", ".x.h5.tmp", ".x.checkpoint.tmp", ".x.svg.tmp"]
# Files that a new start moves aside.
MOVED = ["x.journal", "x.checkpoint", "x.h5"]


@kind(sound("stopped"), [(name, what) for name in [*BESIDE, *(f"{name} --fresh" for name in MOVED)] for what in ODD_FILES])
def places_beside(place, studies, source, item):
    """Something that is no file in place of a file that a study reads or writes; goes on with the study, or starts over."""
    name, what = item
    case = resumed(place, studies, "stopped", {})
    case.check = studies.same_as("stopped", place, in_file=False)
    if name.endswith("--fresh"):
        name = name.split()[0]
        case.command += ["--fresh"]
    put(place, name, what)
    return case


@kind(sound("whole"), [(name, what) for name in ["x.journal", "x.checkpoint", "x.lock", "x.lock.held", "x.h5"] for what in ODD_FILES])
def places_asked(place, studies, source, item):
    """Something that is no file in place of one of a study's; asks how far it is."""
    name, what = item
    studies.copy("whole", place)
    if name == "x.h5":
        (place.run / "x.journal").unlink()
    put(place, name, what)
    return Case([studies.train, "status", "x.h5"], EITHER)


LOCKS = {
    "of a process that is gone": b"host here\nprocess 999999\nsince 1\n",
    "of another host": b"host node07\nprocess 1\nsince 1700000000\n",
    "empty": b"",
    "with escapes": b"host \x1b[31mred\nprocess \x1b]0;x\x07\nsince \x1b\n",
    "with escapes in other letters": "host a\u202e\u009b31m\nprocess 1\u0085\nsince 1\n".encode(),
    "that is no text": b"host \xff\xfe\nprocess \xff\nsince \xff\n",
    "of long names": b"host " + b"h" * 5000 + b"\nprocess " + b"1" * 5000 + b"\nsince 1\n",
    "of 200 letters": b"host " + b"h" * 200 + b"\nprocess " + b"1" * 200 + b"\nsince 1\n",
    "of 8 MB": b"host here\n" * 800_000,
    "of the far future": b"host here\nprocess 1\nsince 253402300800\n",
    "of no time": b"host here\nprocess 1\nsince -1\n",
    "of the end of time": b"host here\nprocess 1\nsince 18446744073709551615\n",
}


@kind(sound("whole"), [(what, how) for what in LOCKS for how in ["free", "held", "asked", "held and asked", "without locks"]])
def locks(place, studies, source, item):
    """A lock of somebody who is gone, or is not; goes on with the study, or asks how far it is."""
    what, how = item
    # The second name stands for a lock where a file system has none.
    case = resumed(place, studies, "whole", {"lock.held" if how == "without locks" else "lock": LOCKS[what]})
    case.allowed, case.check = SUCCEEDS, studies.same_as("whole", place, in_file=False)
    if how.startswith("held"):
        case.locked = "x.lock"
        case.allowed = frozenset({7})
    if how.endswith("asked") or how == "without locks":
        case.command, case.check = [studies.train, "status", "x.h5"], None
        case.allowed = SUCCEEDS
    return case
