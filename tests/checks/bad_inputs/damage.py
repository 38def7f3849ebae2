"""Bytes and files that are not what they should be."""

import os
import stat
import struct
import zlib

# Files of other sorts than programs expect, by what stands in their place.
ODD_FILES = [
    "a pipe", "a socket", "an endless device", "a null device", "a folder", "a full folder",
    "a link to another's file", "a link to an endless device", "a link to nowhere", "a link to itself",
]  # fmt: skip

# Letters that a terminal would obey, that end lines or texts, or that are none.
ESCAPES = ["\x1b[31m", "\x1b]0;title\x07", "\x9b2J", "\r", "\x00", "\x7f", "\u202e", "\ufeff", "\\u001b[2J"]


def put(place, name, what):
    """Puts an odd file into a case's folder, in place of what has its name."""
    path, outside = place.run / name, place.outside
    if path.is_file() or path.is_symlink():
        path.unlink()
    if what == "a pipe":
        os.mkfifo(path)
    elif what == "a socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
    elif what == "an endless device":
        device(path, os.makedev(1, 5), "/dev/zero")
    elif what == "a null device":
        device(path, os.makedev(1, 3), "/dev/null")
    elif what == "a folder":
        path.mkdir()
    elif what == "a full folder":
        path.mkdir()
        (path / "file").write_text("something\n")
    elif what == "a link to another's file":
        path.symlink_to(os.path.relpath(outside / "sentinel", path.parent))
    elif what == "a link to an endless device":
        device(outside / "zero", os.makedev(1, 5), "/dev/zero")
        path.symlink_to(os.path.relpath(outside / "zero", path.parent))
    elif what == "a link to nowhere":
        path.symlink_to(os.path.relpath(outside / "new", path.parent))
    elif what == "a link to itself":
        path.symlink_to(path.name)
    else:
        raise ValueError(what)


def device(path, number, other):
    """A device of our own, which a program that errs may harm; without the right to make one, a link to the machine's."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, number)
        open(path, "rb").close()
    except OSError:
        path.unlink(missing_ok=True)
        path.symlink_to(other)


def damaged(content, source):
    """Some bytes with random damage of one sort."""
    content = bytearray(content)
    at = somewhere(len(content), source)
    length = source.choice([1, 2, 4, 16, 100, 1000])
    what = source.choice(["flip", "flip", "flip", "cut short", "taken out", "doubled", "zeros", "noise", "inserted", "longer"])
    if what == "flip" and content:
        for _ in range(source.choice([1, 1, 1, 2, 8])):
            content[somewhere(len(content), source)] ^= 1 << source.randrange(8)
    elif what == "cut short":
        del content[at:]
    elif what == "taken out":
        del content[at : at + length]
    elif what == "doubled":
        content[at:at] = content[at : at + length]
    elif what == "zeros":
        content[at : at + length] = bytes(len(content[at : at + length]))
    elif what == "noise":
        content[at : at + length] = source.randbytes(len(content[at : at + length]))
    elif what == "inserted":
        content[at:at] = source.randbytes(length)
    elif what == "longer":
        content += source.choice([bytes(length), source.randbytes(length), content[:length]])
    return bytes(content)


def somewhere(length, source):
    """A byte: anywhere, or near the beginning or the end, where formats keep what matters."""
    if length == 0:
        return 0
    near = min(length, 400)
    return source.choice([source.randrange(length), source.randrange(near), length - 1 - source.randrange(near)])


HEAD = 16  # bytes of a journal's record before its own


def journal_records(content):
    """A journal's first line, and its records, heads included."""
    at = content.index(b"\n") + 1
    first, records = content[:at], []
    while at < len(content):
        length = HEAD + struct.unpack_from("<I", content, at)[0]
        records.append(content[at : at + length])
        at += length
    return first, records


def chained(payloads):
    """Records with these contents, whose lengths and checksums are right."""
    previous, records = 0, []
    for payload in payloads:
        length = len(payload)
        checksum = zlib.crc32(struct.pack("<II", length, previous) + payload)
        records.append(struct.pack("<IIII", length, length ^ 0xFFFFFFFF, previous, checksum) + payload)
        previous = checksum
    return b"".join(records)
