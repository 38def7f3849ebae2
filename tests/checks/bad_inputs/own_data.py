"""Images of one's own: damaged files of each format, arrays of other extents or values than they may have, and paths that hold none."""

import io
import pathlib
import struct
import zipfile

from .damage import ODD_FILES, damaged, put
from .kinds import kind
from .rules import Case
from .study import toml

FIXTURES = pathlib.Path(__file__).parents[2] / "fixtures" / "data"
# By file: the classes of its data.
FILES = {"digits.npz": 10, "patches.hdf5": 2}
# Another label makes another number of classes, which the network's last layer does not fit.
REFUSED = frozenset({2, 3})


def npy(kind, extents, values=b""):
    """A .npy file."""
    header = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': ({' '.join(f'{extent},' for extent in extents)}), }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + values


def npz(arrays, compression=zipfile.ZIP_DEFLATED):
    """An .npz file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in arrays.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


PIXELS = bytes(range(256)) * 15
ARRAYS = {"x_train": npy("|u1", [60, 8, 8], PIXELS), "y_train": npy("|u1", [60], bytes(i % 10 for i in range(60)))}
HUGE = 1 << 62


def with_images(**arrays):
    return npz({name: content for name, content in {**ARRAYS, **arrays}.items() if content is not None})


# By what is wrong with them.
CONTENTS = {
    "an empty file": b"",
    "text": b"404 not found\x1b[31m\n",
    "an empty archive": npz({}),
    "an archive's beginning": npz(ARRAYS)[:100],
    "no labels": with_images(y_train=None),
    "test images without labels": with_images(x_test=ARRAYS["x_train"]),
    "2^62 images": with_images(x_train=npy("|u1", [HUGE, 8, 8], PIXELS)),
    "2^62 rows, columns and channels": with_images(x_train=npy("|u1", [60, HUGE, HUGE, HUGE], PIXELS)),
    "extents beyond 64 bits": with_images(x_train=npy("|u1", [10**30, 8, 8], PIXELS)),
    "a thousand extents": with_images(x_train=npy("|u1", [1] * 1000, PIXELS)),
    "2^24 images of 2^20 values": with_images(x_train=npy("|u1", [1 << 24, 1 << 10, 1 << 10], PIXELS)),
    "2^24 labels": with_images(y_train=npy("<i8", [1 << 24], bytes(1000))),
    "a bomb of images": with_images(x_train=npy("|u1", [60, 1 << 10, 1 << 10], bytes(60 << 20)), y_train=npy("<i8", [1 << 24])),
    "numbers beyond 32 bits": with_images(x_train=npy("<f8", [60, 8, 8], struct.pack("<d", 1e300) * 3840)),
    "complex numbers": with_images(x_train=npy("<c8", [60, 8, 8], PIXELS * 8)),
    "objects": with_images(x_train=npy("|O", [60, 8, 8], PIXELS)),
    "records": with_images(x_train=ARRAYS["x_train"].replace(b"'|u1'", b"[('a', '|u1')]")),
    "channels first": with_images(x_train=npy("|u1", [60, 4, 16, 16], PIXELS * 16)),
    "texts as labels": with_images(y_train=npy("<U1", [60], "0123456789".encode("utf-32-le") * 6)),
    "fractions as labels": with_images(y_train=npy("<f4", [60], struct.pack("<2f", 0, 0.5) * 30)),
    "a column for each class": with_images(y_train=npy("|u1", [60, 10], bytes([1, *bytes(10)] * 54 + [1] * 6))),
    "no numbers": with_images(x_train=npy("<f4", [60, 8, 8], b"\0\0\xc0\x7f" * 3840)),
    "infinite numbers": with_images(x_train=npy("<f4", [60, 8, 8], b"\0\0\x80\x7f" * 3840)),
    "huge numbers": with_images(x_train=npy("<f4", [60, 8, 8], b"\xff\xff\x7f\x7f\xff\xff\x7f\xff" * 1920)),
    "equal pixels": with_images(x_train=npy("|u1", [60, 8, 8], bytes(3840))),
    "no image": with_images(x_train=npy("|u1", [0, 8, 8]), y_train=npy("|u1", [0])),
    "negative labels": with_images(y_train=npy("|i1", [60], b"\xff" * 60)),
    "labels of 2^63": with_images(y_train=npy("<u8", [60], (b"\0" * 7 + b"\x80") * 60)),
    "one class": with_images(y_train=npy("|u1", [60], bytes(60))),
    "labels of 200": with_images(y_train=npy("|u1", [60], bytes(59) + b"\xc8")),
    "too few labels": with_images(y_train=npy("|u1", [59], bytes(range(59)))),
    "a header cut short": with_images(x_train=ARRAYS["x_train"][:30]),
    "a header of 60 kB": with_images(x_train=b"\x93NUMPY\x01\x00\xff\xff" + bytes(65535)),
    "a header without a shape": with_images(x_train=ARRAYS["x_train"].replace(b"shape", b"shale")),
    "Fortran's order, cut short": with_images(x_train=ARRAYS["x_train"].replace(b"False", b"True ")[:-1]),
    "an HDF5 file's beginning": (FIXTURES / "patches.hdf5").read_bytes()[:2000],
    "an HDF5 file of nothing": b"\x89HDF\r\n\x1a\n" + bytes(5000),
}


def with_file(place, studies, name, content):
    """A case that measures one cell of a trial on such a file."""
    folder = place.run / "data"
    folder.mkdir(parents=True)
    if content is not None:
        (folder / name).write_bytes(content)
    network = f'[{{ layer = "flatten" }}, {{ layer = "dense", outputs = {FILES[name]} }}]'
    dataset = f'{{ path = "{name}", name = "own" }}'
    changes = [("workload", "dataset", dataset), ("workload", "network", network), ("grid", "sparsities", "[0]"), ("grid", "trials", "1")]
    (place.run / "x.toml").write_text(toml(changes))
    words = ["x.toml", "--data", "data", "--threads", "1", "--device", "cpu", "-o", "x.h5", "-q"]
    return Case([studies.train, *words], REFUSED)


def sound(place, studies):
    case = with_file(place, studies, "digits.npz", npz(ARRAYS))
    case.allowed = frozenset({0})
    return case


@kind(sound, list(CONTENTS))
def own_contents(place, studies, source, item):
    """Images of one's own of other extents and values than they may have."""
    case = with_file(place, studies, "digits.npz", CONTENTS[item])
    if item in ["huge numbers"]:
        case.allowed = frozenset({0, 2, 3})
    return case


@kind(sound, ODD_FILES)
def own_places(place, studies, source, item):
    """Something that is no file in place of images of one's own."""
    case = with_file(place, studies, "digits.npz", None)
    put(place, "data/digits.npz", item)
    return case


@kind(sound, share=3)
def own_bytes(place, studies, source, _):
    """A file of images of one's own with random damage; other pixels are other data, and no damage."""
    name = source.choice(list(FILES))
    case = with_file(place, studies, name, damaged((FIXTURES / name).read_bytes(), source))
    case.allowed = frozenset({0, 2, 3})
    return case
