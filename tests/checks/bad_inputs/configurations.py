"""Configurations: bytes, values, amounts, and what stands in a file's place."""

import re
from pathlib import Path

from .damage import ESCAPES, ODD_FILES, damaged, put
from .kinds import kind
from .rules import Case
from .study import toml

REFUSED = frozenset({2})
# By chance a change is harmless.
MAY_BE_SOUND = frozenset({0, 2})

# The tables of the page, which a test compares with the program's definition of the keys.
PAGE = Path(__file__).resolve().parents[3] / "docs" / "configuration.md"
KEYS = re.findall(r"^\| `([a-z_0-9]+\.[a-z_0-9]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

# No key may have these.
NO_VALUES = ["[[]]", "{}", "1979-05-27", "nan", "-inf", '"nothing of the sort"', "-1", '["x", 1]', '"\\u001b[31mred"']

VALUES = [
    *NO_VALUES, "0", "1", "2", "0.5", "1.0", "-0.0", "inf", "1e-300", "1e300", "1e-320", "1e999", "0.99999999", "4294967295", "4294967296",
    "16777216", "16777217", "1000000000", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1" + 400 * "0",
    "0x7fffffffffffffff", "true", "false", '""', "[]", "[0]", "[1, 1]", "[0, -0.0]", "[nan]", "[1e-300]", "[0.5, 0.9999999999999999]", "[16777216]",
    "[[1]]", str(list(range(1, 1500))), '"' + 5000 * "x" + '"', '"a\\nb"', '"' + 100 * "\\u0007" + '"', "{ min = 1, max = 2 }",
    '{ min = 1e-300, max = 1e300, scale = "log" }', '{ min = 2, max = 1, scale = "linear" }', '{ min = nan, max = inf, scale = "log" }',
    '{ min = 0.1, max = 0.2, scale = "linear", more = 3 }', '{ min = 1, max = 4294967295, scale = "integer" }', '"cifar-10"', '"resnet-8"', '[{ layer = "relu" }]',
    '[{ layer = "flatten" }, { layer = "dense", outputs = 0 }]', '[{ layer = "dense", outputs = 10, more = 1 }]',
    '[{ layer = "flatten" }, { layer = "dense", outputs = 10, bias = 1, initialisation = "xavier" }]',
    '[{ layer = "flatten" }, { layer = "dense", outputs = 10, bias = false, initialisation = "he" }]',
    '"nesterov"', '"linear-decay"', '"adamw"', '"adam"', '"cosine"', '"step-decay"', '"grasp"', '"erk"', '"cublas"', '"nccl"', '"mnist"', '"log"', "07:32:00", "'''x'''", "1_000", "0b1", "+1", "1.",
    "unquoted", "[1,", '"open',
]  # fmt: skip


def plan(studies, text, place):
    """A case that plans the study of a text."""
    (place.run / "x.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return Case([studies.train, "x.toml", "--plan"], MAY_BE_SOUND)


def sound(place, studies):
    case = plan(studies, toml(), place)
    case.allowed = frozenset({0})
    return case


@kind(sound, share=15)
def config_bytes(place, studies, source, _):
    """A configuration with random damage."""
    text = toml().encode()
    for _ in range(source.choice([1, 1, 1, 2, 5])):
        at, what = source.randrange(len(text)), source.random()
        if what < 0.2:
            text = text[:at] + source.choice(ESCAPES).encode() + text[at:]
        elif what < 0.6:
            text = text[:at] + source.choice("0123456789abe.-_=,\"'[]{}# \n").encode() + text[at + 1 :]
        else:
            text = damaged(text, source) or b"#"
    case = plan(studies, text, place)
    if source.random() < 0.5:
        case.command[-1] = "--cells"
    return case


@kind(sound, [(key, value) for key in KEYS for value in ["[[]]", "1979-05-27"]], share=15)
def config_values(place, studies, source, item):
    """A configuration with values of wrong types, out of range, or at their edges."""
    chosen = [item] if item else [(source.choice(KEYS), source.choice(VALUES)) for _ in range(source.choice([1, 1, 2, 4]))]
    case = plan(studies, toml([(*key.split("."), value) for key, value in chosen]), place)
    # A device that is not there is found before a plan is made.
    case.allowed = REFUSED if item else MAY_BE_SOUND | {6}
    return case


def grid(batch_sizes=(17,), sparsities=(0,), trials=3):
    """A configuration with a grid of its own."""
    return toml([("grid", "batch_sizes", str([*batch_sizes])), ("grid", "sparsities", str([*sparsities])), ("grid", "trials", str(trials))])


MANY = {
    "no keys": ("", REFUSED),
    "100,000 unknown keys": (toml() + "\n".join(f"{i}=1" for i in range(100_000)), REFUSED),
    "20,000 unknown sections": (toml() + "\n".join(f"[section{i}]" for i in range(20_000)), REFUSED),
    "a key again and again": (toml() + "x = 1\n" * 100_000, REFUSED),
    "a key of 900 kB": (toml() + "k" * 900_000 + " = 1", REFUSED),
    "a text of 900 kB": (toml([("workload", "dataset", '"' + "x" * 900_000 + '"')]), REFUSED),
    "more than a megabyte": (toml() + "# " + "x" * (1 << 20), REFUSED),
    "nearly a megabyte of comments": (toml() + "#\n" * 500_000, frozenset({0})),
    "20,000 batch sizes": (grid(range(1, 20_001)), REFUSED),
    "100,000 sparsities": (grid(sparsities=[i / 100_000 for i in range(100_000)]), REFUSED),
    "3,000 x 3,000 cells": (grid(range(1, 3001), [i / 3000 for i in range(3000)]), REFUSED),
    "1,000 x 1,000 cells": (grid(range(1, 1001), [i / 1000 for i in range(1000)]), REFUSED),
    "10,000 cells": (grid(range(1, 101), [i / 100 for i in range(100)]), frozenset({0})),
    "10,000 cells of the most trials": (grid(range(1, 101), [i / 100 for i in range(100)], 100_000), frozenset({0})),
    "a billion trials": (grid(trials=1_000_000_000), REFUSED),
    "100,000 threads": (toml([("execution", "threads", "100000")]), REFUSED),
    "a list in a list, 100,000 deep": (grid(trials="[" * 100_000 + "]" * 100_000), REFUSED),
    "lists that never end": (grid(trials="[" * 300_000), REFUSED),
    "tables in tables, 20,000 deep": (grid(trials="{ a = " * 20_000 + "1" + "}" * 20_000), REFUSED),
    "a dotted key of 100,000 parts": (toml() + ".".join("a" for _ in range(100_000)) + " = 1", REFUSED),
    "a section of 100,000 parts": (toml() + "[" + ".".join("a" for _ in range(100_000)) + "]", REFUSED),
    "900 wrong values": (grid([-1] * 900), REFUSED),
    "100,000 syntax errors": (toml() + "= = =\n" * 100_000, REFUSED),
    "100,000 open quotes": (toml() + 'x = "\n' * 100_000, REFUSED),
    "a number of 500,000 digits": (grid(trials="9" * 500_000), REFUSED),
    "a fraction of 500,000 digits": (toml([("workload", "goal_error", "0." + "9" * 500_000)]), REFUSED),
    "zeros": (bytes(100_000), REFUSED),
    "noise": (bytes(i * i * 7 % 251 for i in range(100_000)), REFUSED),
    "UTF-16": (toml().encode("utf-16"), REFUSED),
    "Latin-1": (toml().encode() + "# Größe".encode("latin-1"), REFUSED),
    "a byte order mark": (b"\xef\xbb\xbf" + toml().encode(), MAY_BE_SOUND),
    "lines that end as on Windows": (toml().replace("\n", "\r\n"), frozenset({0})),
    "escapes in keys": (toml() + "".join(f'"{i}\\u001b[31m\\u009b" = 1\n' for i in range(20)), REFUSED),
    "escapes in sections": (toml() + '["\\u001b]0;x\\u0007"]\n', REFUSED),
    "raw escapes": (toml() + "\x1b[31mx = 1", REFUSED),
}


@kind(sound, list(MANY))
def config_amounts(place, studies, source, item):
    """A configuration with too much of something, or in another encoding."""
    text, allowed = MANY[item]
    case = plan(studies, text, place)
    case.allowed = allowed
    return case


NAMES = [
    "", "-", ".", "..", "/", "a" * 300, "a" * 5000, "a/" * 2500, "x\n\x1b[31m.toml", "x\udcff.toml", "nothing.toml", "x.toml/y", "/proc/self/mem",
    "/dev/stdin", "/proc/self/fd", "/dev/tty",
]  # fmt: skip


@kind(sound, [*ODD_FILES, *NAMES])
def config_places(place, studies, source, item):
    """Something that is no file in place of the configuration, or a name that no file has."""
    case = plan(studies, toml(), place)
    if item in ODD_FILES:
        put(place, "x.toml", item)
    else:
        case.command[1] = item
    case.allowed = REFUSED
    return case


# Legal, and hardly ever meant; each is measured.
EXTREMES = {
    "sparsities=[0.9999]": {0}, "sparsities=[0.99998]": {0}, "sparsities=[0.999999]": {2}, "batch_sizes=[1]": {0},
    "batch_sizes=[500]": {0}, "learning_rate=1e300": {0}, "learning_rate=1e-300": {0}, "momentum=0": {0}, "momentum=0.9999999999999999": {0},
    "goal_error=1e-300": {0}, "goal_error=0.9999999999999999": {0}, "max_steps=4294967295": {0}, "evaluate_every=16": {0}, "threads=64": {0},
    "threads=1024": {0}, "lanes=1": {0}, "lanes=4294967295": {0}, "data_parallel=4294967295": {0}, "checkpoint_seconds=4294967295": {0},
    "deadline_seconds=4294967295": {0}, "deadline_seconds=0": {0}, "split_seed=9223372036854775807": {0}, "validation_fraction=0.000001": {2},
    "validation_fraction=0.999999": {2}, "validation_fraction=0.997": {0}, "validation_fraction=0.0025": {0}, "smoothness.every=4294967295": {0},
    "smoothness.points=1": {0}, "smoothness.points=1000": {0}, "smoothness.examples=4294967295": {0}, "pruning.examples=4294967295": {0},
    "shuffle=true": {0}, "reinitialise=true": {0}, "first_trial=1000000": {0}, "first_trial=1000001": {2},
    "temperature=1e6": {0}, "temperature=0.001": {0}, "weight_decay=0": {0}, "weight_decay=1e300": {0}, "weight_decay=1e-300": {0},
    "warmup_steps=1": {0}, "warmup_steps=4294967295": {0}, "average_decay=0": {0}, "average_decay=0.9999999999999999": {0}, "beta1=0": {0},
    "beta1=0.9999999999999999": {0}, "beta2=0": {0}, "beta2=0.9999999999999999": {0}, "epsilon=1e-300": {0}, "epsilon=1e300": {0},
    "decay_every=1": {0}, "decay_every=4294967295": {0}, "decay_factor=1e-300": {0}, "decay_factor=1": {0},
}  # fmt: skip

# Settings that a study needs besides for a key.
WITH = {
    "search.beta1": ["workload.optimizer=adam", "search.momentum="],
    "search.beta2": ["workload.optimizer=adam", "search.momentum="],
    "search.epsilon": ["workload.optimizer=adamw", "search.momentum=", "search.weight_decay=0.1"],
    "search.decay_every": ["workload.schedule=step-decay", "search.decay_factor=0.5"],
    "search.decay_factor": ["workload.schedule=step-decay", "search.decay_every=3"],
}


def criteria(setting):
    """Criteria for a setting: the effect of sparsities differs from criterion to criterion; GraSP does most work."""
    return ["snip", "grasp", "random", "magnitude", "erk", "synflow"] if setting.startswith("sparsities") else ["grasp"]


@kind(sound, [(setting, criterion) for setting in EXTREMES for criterion in criteria(setting)])
def config_extremes(place, studies, source, item):
    """Values at the edges of what is allowed, in a study that is measured."""
    setting, criterion = item
    name, value = setting.split("=")
    key = next(key for key in KEYS if name in (key, key.split(".")[1]))
    changes = [f"{key}={value}", f"pruning.criterion={criterion}", *WITH.get(key, [])]
    if key.startswith("smoothness."):
        others = {"smoothness.every": 16, "smoothness.trials": 1, "smoothness.points": 2, "smoothness.examples": 2}
        changes += [f"{other}={small}" for other, small in others.items() if other != key]
    studies.copy("other", place)
    for suffix in ["h5", "journal", "svg"]:
        (place.run / f"x.{suffix}").unlink()
    if name != "sparsities":
        changes += ["grid.sparsities=[0.9]", "grid.trials=1"]
    settings = [word for change in changes for word in ["--set", change]]
    return Case([*studies.resume(), *settings], frozenset(EXTREMES[setting]))
