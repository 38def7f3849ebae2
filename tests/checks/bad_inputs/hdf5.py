"""The part of HDF5 that it takes to change a result file and put its checksums right: a changed file alone the library refuses by itself."""

import re
import struct

WORD = 0xFFFFFFFF
# Blocks end in a checksum of what is before it, but for those of heaps, which have it near their beginning.
BLOCKS = re.compile(b"OHDR|OCHK|TREE|FRHP|FHDB|FSHD|BTHD|BTLF")
IN_HEAP = 18


def lookup3(data):
    """Bob Jenkins's hash, which HDF5 takes for its checksums."""

    def rotated(x, bits):
        return (x << bits | x >> 32 - bits) & WORD

    a = b = c = (0xDEADBEEF + len(data)) & WORD
    padded = data.ljust(-(-len(data) // 12) * 12, b"\0")
    words = struct.unpack(f"<{len(padded) // 4}I", padded)
    for at in range(0, len(words), 3):
        a, b, c = a + words[at] & WORD, b + words[at + 1] & WORD, c + words[at + 2] & WORD
        if at + 3 < len(words):
            for bits in [4, 6, 8, 16, 19, 4]:
                a, b, c = b, b + c & WORD, (a - c & WORD) ^ rotated(c, bits)
    for bits in [14, 11, 25, 16, 4, 14, 24]:
        a, b, c = b, (c ^ b) - rotated(b, bits) & WORD, a
    return b


def sealed(content):
    """(start, end, place of the checksum) of the blocks whose checksums are right."""
    starts = [found.start() for found in BLOCKS.finditer(content)]
    blocks = []
    for start, end in zip(starts, [*starts[1:], len(content)]):
        at = start + IN_HEAP if content[start:].startswith(b"FHDB") else end - 4
        if checksum(content, start, end, at) == content[at : at + 4]:
            blocks.append((start, end, at))
    return blocks


def checksum(content, start, end, at):
    """A block's checksum as it should be."""
    covered = content[start:at] if at == end - 4 else content[start:at] + bytes(4) + content[at + 4 : end]
    return struct.pack("<I", lookup3(bytes(covered)))


def resealed(content, blocks):
    """A changed file of the same length whose blocks have the right checksums."""
    content = bytearray(content)
    for start, end, at in blocks:
        content[at : at + 4] = checksum(content, start, end, at)
    return bytes(content)


def attribute(content, name):
    """Where the value of an attribute lies: (start, end)."""
    at = content.find(name + b"\0")
    while at >= 0:
        version, _, name_size, type_size, space_size, _ = struct.unpack_from("<BBHHHB", content, at - 9)
        if version == 3 and name_size == len(name) + 1:
            kind = at + name_size
            start = kind + type_size + space_size
            return start, start + struct.unpack_from("<I", content, kind + 4)[0]
        at = content.find(name + b"\0", at + 1)
    raise ValueError(f"no attribute {name}")
