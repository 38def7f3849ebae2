"""Result files, given to what reads them: the report, the merge, the status, the replay."""

import math
import struct

from . import hdf5
from .command_lines import LONG
from .damage import ESCAPES, ODD_FILES, damaged, put
from .kinds import kind
from .rules import Case, file_bytes
from .study import DATA

SUCCEEDS = frozenset({0})
REFUSED = frozenset({2, 4})
# 3: a damaged configuration may name data that are not there.
EITHER = frozenset({0, 3, 4})

# Attributes that a reader acts on or prints.
NUMBERS = [
    b"evaluate_every", b"goal_error", b"goal_threshold", b"max_steps", b"validation_examples", b"test_examples", b"parameters", b"schema_version",
    b"complete", b"ranks", b"threads",
]  # fmt: skip
TEXTS = [
    b"dataset", b"network", b"optimizer", b"schedule", b"program_version", b"mpi_library", b"host", b"device", b"data_digest", b"started",
    b"finished",
]  # fmt: skip
VALUES = [bytes(8), b"\xff" * 8, *(struct.pack("<d", number) for number in [math.nan, -1.0, 1e300]), struct.pack("<II", 1, 0), b"\x7f" * 8]
WORDS = [*(text.encode() * 4 for text in ESCAPES), b"../../../outside/x", b"/dev/null", b"\xff\xfe", b"", b"<script>", b"%s%n", b"a\nb\nc"]
TOML = [*(text.encode() for text in ESCAPES), b"[[[[[[[[", b'"', b"\xff\xff", b"= 1e999\n", b"\n\n\n\n", b"#", b"[" * 700]


def readers(studies):
    """Commands that read the result `x.h5`."""
    return [
        [studies.train, "status", "x.h5"],
        [studies.train, "merge", "x.h5", "-o", "y.h5"],
        [studies.report, "x.h5", "--shallue", "export", "--claims", "claims.md"],
        [studies.train, "replay", "x.h5", "--batch-size", "17", "--sparsity", "0.9", "--trial", "0", "--data", DATA],
    ]


def alone(place, studies):
    """A sound result in a case's folder, without a journal, that is reported."""
    studies.copy("whole", place)
    (place.run / "x.journal").unlink()
    return Case(readers(studies)[2], SUCCEEDS)


@kind(alone, share=10)
def result_bytes(place, studies, source, _):
    """A result file with random damage."""
    case = alone(place, studies)
    (place.run / "x.h5").write_bytes(damaged(studies.bytes("whole", "h5"), source))
    case.command, case.allowed = source.choice(readers(studies)), EITHER
    return case


@kind(alone, [(name, value) for name in NUMBERS for value in VALUES[:4]] + [(name, word) for name in TEXTS for word in WORDS[:2]], share=4)
def result_values(place, studies, source, item):
    """A result file with other numbers and texts in its attributes, and checksums that are right."""
    case = alone(place, studies)
    original = studies.bytes("whole", "h5")
    content = bytearray(original)
    for name, value in [item] if item else [random_value(source) for _ in range(source.choice([1, 1, 2, 4]))]:
        start, end = hdf5.attribute(original, name)
        if name == b"toml":
            start += source.randrange(end - start)
            end = min(end, start + len(value))
        content[start:end] = value[: end - start].ljust(end - start, b"\0")
    (place.run / "x.h5").write_bytes(hdf5.resealed(content, studies.sealed))
    case.command, case.allowed = source.choice(readers(studies)), EITHER
    return case


def random_value(source):
    """(attribute, value)."""
    names, values = source.choice([(NUMBERS, VALUES), (TEXTS, WORDS), ([b"toml"], TOML)])
    return source.choice(names), source.choice(values)


CONTENTS = {
    "empty": lambda h5: b"",
    "HDF5's first bytes": lambda h5: h5[:8],
    "HDF5's first bytes and zeros": lambda h5: h5[:8] + bytes(1 << 20),
    "its first half": lambda h5: h5[: len(h5) // 2],
    "a result behind text": lambda h5: b"x" * 512 + h5,
    "a result behind 4 MB of zeros": lambda h5: bytes(1 << 22) + h5,
    "text": lambda h5: b"\x1b[31mnot found\n",
}


@kind(alone, [(what, reader) for what in [*CONTENTS, *ODD_FILES, "", LONG, "nothing", "\udcff", "x\x1b[31m"] for reader in range(4)])
def result_places(place, studies, source, item):
    """Something that is no result file where one is read."""
    what, reader = item
    case = alone(place, studies)
    case.command, case.allowed = readers(studies)[reader], REFUSED
    if what in CONTENTS:
        (place.run / "x.h5").write_bytes(CONTENTS[what](studies.bytes("whole", "h5")))
        # HDF5 looks for its first bytes at 512, 1,024, 2,048 … and so on.
        case.allowed |= {0} if "behind" in what else set()
    elif what in ODD_FILES:
        put(place, "x.h5", what)
    else:
        case.command = [what if word == "x.h5" else word for word in case.command]
        # The journal is looked for first.
        case.allowed |= {7}
    return case


MERGES = {
    "a result twice": ["x.h5", "x.h5", "-o", "y.h5"],
    "another study's": ["x.h5", "other.h5", "-o", "y.h5"],
    "over a part": ["x.h5", "-o", "x.h5"],
    "over a file": ["x.h5", "-o", "file"],
    "into a folder": ["x.h5", "--force", "-o", "folder"],
    "into nothing": ["x.h5", "-o", ""],
    "into a long name": ["x.h5", "-o", LONG],
    "below a file": ["x.h5", "-o", "file/y.h5"],
    "of a folder": ["folder", "-o", "y.h5"],
    "of a result and nothing": ["x.h5", "nothing.h5", "-o", "y.h5"],
    "over a study's result": ["x.h5", "--force", "-o", "running.h5"],
    "over a sound result, of a damaged one": ["broken.h5", "--force", "-o", "x.h5"],
}


def merged(place, studies):
    case = alone(place, studies)
    case.command = readers(studies)[1]
    return case


@kind(merged, list(MERGES))
def result_merge(place, studies, source, item):
    """Parts that do not fit each other, and places that cannot be written."""
    case = alone(place, studies)
    (place.run / "file").write_text("something\n")
    (place.run / "folder").mkdir()
    (place.run / "other.h5").write_bytes(studies.bytes("other", "h5"))
    (place.run / "running.journal").write_bytes(studies.bytes("other", "journal"))
    (place.run / "broken.h5").write_bytes(studies.bytes("whole", "h5")[:5000])
    case.command, case.allowed = [studies.train, "merge", *MERGES[item]], REFUSED | ({0} if item == "a result twice" else set())
    case.check = lambda run: kept(place, studies)
    return case


def kept(place, studies):
    """Checks that a merge which was refused left what was there."""
    if file_bytes(place.run / "x.h5") != studies.bytes("whole", "h5") or file_bytes(place.run / "file") != b"something\n":
        yield "a refused merge has changed a file"


NO_FOLDERS = [*ODD_FILES, "", LONG, "file", "file/x", "x.h5", "/proc/x", "used"]


@kind(alone, [("-o", what) for what in NO_FOLDERS] + [("--shallue", what) for what in NO_FOLDERS if what not in ODD_FILES or "link" in what]
    + [("--claims", what) for what in ("", LONG, "file/x", "/proc/x", "used", "x.h5", "./x.h5")])
def result_reports(place, studies, source, item):
    """Folders for the report or the export that are none, or are used."""
    option, what = item
    case = alone(place, studies)
    (place.run / "file").write_text("something\n")
    (place.run / "used").mkdir()
    (place.run / "used" / "index.html").mkdir()
    (place.run / "used" / "fashion_mnist").write_text("something\n")
    if what in ODD_FILES:
        put(place, "odd", what)
        # The folder that the link leads to is then made, as of any command that writes into a folder.
        if what == "a link to nowhere":
            (place.run / "odd").unlink()
            (place.run / "odd").symlink_to("new")
    case.command = [studies.report, "x.h5", option, "odd" if what in ODD_FILES else what]
    case.allowed = frozenset({0, 2, 4}) if "folder" in what else REFUSED
    return case
