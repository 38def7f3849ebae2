"""Data files: damaged, of other extents, endless, missing, or other data than their names say."""

import functools
import gzip

from .damage import ODD_FILES, damaged, put
from .kinds import kind
from .rules import Case
from .study import IMAGE, images, labels, toml

MISSING = frozenset({3})
NAMES = [f"{part}-{file}" for part in ["train", "t10k"] for file in ["images-idx3-ubyte", "labels-idx1-ubyte"]]
TRAINING_IMAGES, TRAINING_LABELS, TEST_IMAGES, TEST_LABELS = NAMES


@functools.cache
def bomb():
    """4 GB of zeros in 4 MB: gzip members may follow each other."""
    return gzip.compress(bytes(1 << 24)) * 256


def with_data(place, studies, changes, dataset="mnist", source='"own"'):
    """A case that measures one cell of a trial on the studies' data, some of whose files are others; those that are None are missing.

    They are called MNIST, since the data set Fashion-MNIST is also looked for in the operating system's package."""
    folder = place.run / "data" / dataset
    folder.mkdir(parents=True)
    for name in NAMES:
        (folder / name).write_bytes((studies.folder / "data" / "fashion-mnist" / name).read_bytes())
    for name, content in changes.items():
        (folder / name).unlink(missing_ok=True)
        if content is not None:
            (folder / name).write_bytes(content)
    text = toml([("data", "source", source), ("workload", "dataset", f'"{dataset}"'), ("grid", "sparsities", "[0]"), ("grid", "trials", "1")])
    (place.run / "x.toml").write_text(text)
    words = ["x.toml", "--data", "data", "--threads", "1", "--device", "cpu", "-o", "x.h5", "-q"]
    return Case([studies.train, *words], MISSING)


def sound(place, studies):
    case = with_data(place, studies, {TEST_IMAGES: None, f"{TEST_IMAGES}.gz": gzip.compress(original(studies, TEST_IMAGES))})
    case.allowed = frozenset({0})
    return case


def original(studies, name):
    return (studies.folder / "data" / "fashion-mnist" / name).read_bytes()


@kind(sound, share=10)
def data_bytes(place, studies, source, _):
    """A data file with random damage, gzipped or not; other pixels are other data, and no damage."""
    name = source.choice(NAMES)
    content = original(studies, name)
    if source.random() < 0.5:
        case = with_data(place, studies, {name: damaged(content, source)})
    else:
        case = with_data(place, studies, {name: None, f"{name}.gz": damaged(gzip.compress(content), source)})
    case.allowed = frozenset({0, 3})
    return case


HUGE = 1 << 31
# By what is wrong with them: files that are others.
FILES = {
    "an empty file": {TRAINING_IMAGES: b""},
    "a short header": {TRAINING_IMAGES: images(400)[:9]},
    "a header alone": {TRAINING_IMAGES: images(400)},
    "labels for images": {TRAINING_IMAGES: labels(400, bytes(400))},
    "images for labels": {TRAINING_LABELS: images(400, pixels=bytes(400 * IMAGE))},
    "another magic number": {TRAINING_IMAGES: images(400, pixels=bytes(400 * IMAGE), magic=0x0803_0000)},
    "2^31 images": {TRAINING_IMAGES: images(HUGE, pixels=bytes(IMAGE))},
    "2^31 images of 2^31 rows and columns": {TRAINING_IMAGES: images(HUGE, HUGE, HUGE)},
    "2^32 - 1 images": {TRAINING_IMAGES: images(2 * HUGE - 1)},
    "images of 2^31 rows": {TRAINING_IMAGES: images(400, rows=HUGE)},
    "images without a row": {TRAINING_IMAGES: images(400, rows=0)},
    "images of 29 columns": {TRAINING_IMAGES: images(400, columns=29, pixels=bytes(400 * 28 * 29))},
    "no image": {TRAINING_IMAGES: images(0), TRAINING_LABELS: labels(0)},
    "one image": {TRAINING_IMAGES: images(1, pixels=bytes(range(256)) * 3 + bytes(16)), TRAINING_LABELS: labels(1, b"\1")},
    "no test image": {TEST_IMAGES: images(0), TEST_LABELS: labels(0)},
    "equal pixels": {TRAINING_IMAGES: images(400, pixels=bytes(400 * IMAGE))},
    "2^31 labels": {TRAINING_LABELS: labels(HUGE, bytes(400))},
    "too few labels": {TRAINING_LABELS: labels(399, bytes(399))},
    "too many labels": {TRAINING_LABELS: labels(401, bytes(401))},
    "more labels than the header says": {TRAINING_LABELS: labels(400, bytes(401))},
    "a label of 10": {TRAINING_LABELS: labels(400, bytes(399) + b"\x0a")},
    "labels of 255": {TEST_LABELS: labels(100, b"\xff" * 100)},
    "a bomb": {TRAINING_IMAGES: bomb()},
    "as many images as a header may say, in a bomb": {TRAINING_IMAGES: gzip.compress(images(1 << 18)) + bomb()},
    "labels in a bomb": {TRAINING_LABELS: gzip.compress(labels(1 << 18)) + bomb()},
    "a gzip header": {TRAINING_IMAGES: b"\x1f\x8b"},
    "a gzip file in another": {TRAINING_IMAGES: gzip.compress(gzip.compress(images(400, pixels=bytes(400 * IMAGE))))},
    "a gzip file cut short": {TRAINING_IMAGES: gzip.compress(images(400, pixels=bytes(400 * IMAGE)))[:-9]},
    "text": {TRAINING_LABELS: b"404 not found\x1b[31m\n"},
    "no training images": {TRAINING_IMAGES: None},
    "no test labels": {TEST_LABELS: None},
    "no file": dict.fromkeys(NAMES),
}

CIFAR = {f"{name}.bin": (b"\3" + bytes(range(256)) * 12) * 20 for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]}
CIFAR_FILES = {
    "a batch cut short": {"data_batch_3.bin": bytes(3072)},
    "a byte too many": {"data_batch_3.bin": bytes(3074)},
    "an empty batch": {"data_batch_1.bin": b""},
    "an empty test batch": {"test_batch.bin": b""},
    "a label of 10": {"data_batch_5.bin": b"\x0a" + bytes(3072)},
    "a bomb": {"data_batch_1.bin": bomb()},
    "a bomb for a test batch": {"test_batch.bin": bomb()},
    "no third batch": {"data_batch_3.bin": None},
    "equal pixels": dict.fromkeys(CIFAR, bytes(3073)),
}

FOLDERS = ["", "nothing", "x.toml", "/dev/null", "a" * 5000, "x\x1b[31m", "\udcff", "/proc/self/mem"]


@kind(sound, list(FILES))
def data_contents(place, studies, source, item):
    """Data files of other contents than a data set's."""
    case = with_data(place, studies, FILES[item])
    # The configuration's share for validation is what does not fit one image.
    if item == "one image":
        case.allowed = frozenset({2})
    return case


@kind(sound, [(name, what) for name in [TRAINING_IMAGES, TEST_LABELS] for what in ODD_FILES])
def data_places(place, studies, source, item):
    """Something that is no file in place of a data file."""
    name, what = item
    case = with_data(place, studies, {})
    put(place, f"data/mnist/{name}", what)
    return case


@kind(sound, ["own data as mnist", "own data as fashion-mnist", *FOLDERS, *ODD_FILES])
def data_folders(place, studies, source, item):
    """Other data than the configuration names, and folders that are none."""
    if item.startswith("own data"):
        return with_data(place, studies, {}, item.split()[-1], source=None)
    case = with_data(place, studies, {})
    if item in ODD_FILES:
        put(place, "odd", item)
    case.command[case.command.index("--data") + 1] = "odd" if item in ODD_FILES else item
    if not item:
        case.allowed = frozenset({2})
    return case


def sound_cifar(place, studies):
    case = with_cifar(place, studies, {})
    case.allowed = frozenset({0})
    return case


def with_cifar(place, studies, changes):
    case = with_data(place, studies, {}, "cifar-10")
    for name, content in {**CIFAR, **changes}.items():
        if content is not None:
            (place.run / "data" / "cifar-10" / name).write_bytes(content)
    return Case([*case.command, "--set", "workload.network=resnet-8", "--batch-size", "2", "--set", "workload.max_steps=4"], MISSING)


@kind(sound_cifar, list(CIFAR_FILES))
def data_cifar(place, studies, source, item):
    """Batches of CIFAR-10 of other contents."""
    return with_cifar(place, studies, CIFAR_FILES[item])
