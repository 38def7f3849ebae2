"""Command lines: words, overrides of the configuration, and places for the results."""

import os

from .configurations import KEYS, MAY_BE_SOUND, NO_VALUES, REFUSED, VALUES
from .damage import ESCAPES, ODD_FILES, put
from .kinds import kind
from .rules import LISTED, Case, file_bytes

LONG = 5000 * "x"

# Command lines that mean nothing; CONFIG is a sound configuration, and RESULT a sound result.
WRONG = [
    "", "--plan", "CONFIG CONFIG", "CONFIG other.toml", "CONFIG --sett x=1", "CONFIG --set", "CONFIG --set x", "CONFIG --set =", "CONFIG --set =1",
    "CONFIG --set workload", "CONFIG --set workload=1", "CONFIG --set grid.trials.x=1", "CONFIG --set .=1", "CONFIG --set grid..trials=1",
    f"CONFIG --set {LONG}=1", f"CONFIG --set grid.trials={LONG}", f"CONFIG --set {LONG}", f"CONFIG --{LONG}", f"CONFIG {LONG}", f"CONFIG -{LONG}",
    f"CONFIG --batch-size {LONG}", f"CONFIG --device {LONG}", f"CONFIG --progress {LONG}", "CONFIG --batch-size", "CONFIG --batch-size 0 --plan",
    "CONFIG --batch-size , --plan", "CONFIG --batch-size 1,1 --plan", "CONFIG --batch-size 1e9 --plan", "CONFIG --sparsity 1 --plan",
    "CONFIG --sparsity nan --plan", "CONFIG --sparsity 0.99999999999 --plan", "CONFIG --trials 0 --plan", "CONFIG --trials 1.5 --plan",
    "CONFIG --trials 99999999999999999999999 --plan", "CONFIG --threads -1 --plan", "CONFIG --threads 1000000 --plan", "CONFIG --device gpu --plan",
    "CONFIG --device \x1b[31m --plan", "CONFIG --progress loud", "CONFIG --quiet --progress bar", "CONFIG --fresh --plan", "CONFIG --cells --plan",
    "CONFIG -o CONFIG", "CONFIG -o", "CONFIG --trials 1 --trials 2", "CONFIG data fetch", "data", "data fetch cifar",
    "data fetch mnist fashion-mnist",
    "data fetch --data", "data give", "merge", "merge RESULT", "merge -o x.h5", "merge RESULT -o", "status", "status --json",
    "status RESULT --json --progress", "replay", "replay RESULT", "replay RESULT --batch-size 2", "replay RESULT --batch-size -1 --sparsity 0",
    "ended", "ended x.h5", "ended RESULT --code 256", "ended RESULT --code -1", "supervise", "supervise --", "supervise -- true", "supervise -- dps-train", "supervise CONFIG", "supervise --tries 0 -- dps-train CONFIG",
    "supervise --hosts a:b -- mpirun dps-train CONFIG", "supervise --hosts -oProxyCommand=x -- mpirun dps-train CONFIG", "supervise --reach ssh -- dps-train CONFIG", "supervise --tries x -- dps-train CONFIG", "supervise -- dps-train status RESULT", "supervise -- dps-train CONFIG --fresh",
    "supervise -- /nowhere/dps-train CONFIG", "supervise --results x.h5 -- ./x.toml", f"supervise -- {LONG} dps-train CONFIG",
    "supervise -- dps-train supervise -- dps-train CONFIG", "supervise -- \x1b[31m/dps-train CONFIG", "replay RESULT --batch-size 2 --sparsity x", "replay RESULT --batch-size 2 --sparsity 0 --trial -1", "doctor --cpu", "doctor doctor", "help nothing", "--\x1b[31m", "\x1b[31m --\x9b",
    "CONFIG --set \x1b]0;x\x07=1", "CONFIG --set x.\x1b=1", "--",
    "configs nothing", "configs \x1b[31m", f"configs {LONG}", "configs ../x.toml", "configs sgd.toml nesterov.toml",
    "keys nothing", "keys \x1b[31m", f"keys {LONG}", "keys \udcff", "keys grid data", "keys --markdown grid", "init", "init new.toml",
    "init new.toml --dataset mnist", "init new.toml --dataset cifar --optimizer sgd", "init CONFIG --dataset mnist --optimizer sgd",
    "init new.toml --dataset mnist --optimizer sgd --network resnet-9", "init new.toml --dataset mnist --optimizer \x1b[31m",
    "CONFIG -- --plan", "- -", "CONFIG --set grid.trials=1\x1b[31m --plan", "CONFIG --set grid.trials=\x9b --plan", "CONFIG --set \udcff=1",
    "CONFIG --batch-size \udcff", "CONFIG --device \udcff", "\udcff \udcff", "--\udcff",
]  # fmt: skip

OPTIONS = ["--batch-size", "--sparsity", "--trials", "--device", "--threads", "--data", "-o", "--output", "--progress", "--set"]
FLAGS = ["--plan", "--cells", "--fresh", "-q", "-v", "-h", "-V", "--", "-", "data", "merge", "status", "doctor"]
WORDS = [
    "", " ", "0", "-1", "1", "2,4", ",", "1,,2", "1e3", "nan", "-inf", "0.9", "1" * 400, "cpu", "cuda", "x", LONG, "=", "a=b", "../../../../x",
    "grid.trials=2", "search.momentum=", "--", "\udcff\udcfe", "%s%n", "$(x)", "\n", *ESCAPES[:4],
]  # fmt: skip


def sound(place, studies):
    studies.copy("whole", place)
    return Case([studies.train, "x.toml", "--plan"], frozenset({0}))


@kind(sound, WRONG, share=10)
def command_line(place, studies, source, item):
    """Words that the programs do not know, or that make no sense together."""
    studies.copy("whole", place)
    if item is not None:
        words = [word.replace("CONFIG", "x.toml").replace("RESULT", "x.h5") for word in item.split(" ") if word]
        return Case([studies.train, *words], REFUSED)
    # Whatever the words, nothing is trained.
    words = [source.choice(FLAGS)] if source.random() < 0.3 else ["x.toml", source.choice(["--plan", "--cells"])]
    for _ in range(source.randrange(1, 4)):
        words += [source.choice(OPTIONS), source.choice(WORDS)] if source.random() < 0.8 else [source.choice(FLAGS)]
    if source.random() < 0.2:
        source.shuffle(words)
    if not {"--plan", "--cells"} & set(words):
        words = ["x.toml", "--plan", *words]
    return Case([studies.train, *(word for word in words if "\x00" not in word)], LISTED)


@kind(sound, [(key, value) for key in KEYS for value in NO_VALUES[:3]], share=10)
def command_line_set(place, studies, source, item):
    """Every key of the configuration, set to what it cannot be."""
    studies.copy("whole", place)
    chosen = [item] if item else [(source.choice(KEYS), source.choice(VALUES)) for _ in range(source.choice([1, 2, 3]))]
    settings = [word for key, value in chosen for word in ["--set", f"{key}={value}"]]
    return Case([studies.train, "x.toml", "--plan", *settings], REFUSED if item else MAY_BE_SOUND | {6})


def with_output(place, studies, output, *more):
    """A case that measures one cell of a trial, with its result at an output."""
    studies.copy("whole", place)
    for name in ["x.h5", "x.journal", "x.svg"]:
        (place.run / name).unlink()
    (place.run / "file").write_text("something\n")
    command = studies.resume("--trials", "1", "--sparsity", "0", *more)
    command[command.index("-o") + 1] = output
    return Case(command, frozenset({0, 2, 4, 7}))


def ordinary_output(place, studies):
    case = with_output(place, studies, "y.h5")
    case.allowed = frozenset({0})
    return case


# Words that people type and name by mistake, and words that the answer must have; RESULT, CONFIG and JOURNAL are files of a study.
MEANT = {
    "CONFIG --resume": "goes on with it",
    "CONFIG --continue": "goes on with it",
    "stauts RESULT": "did you mean dps-train status?",
    "merg RESULT -o y.h5": "did you mean dps-train merge?",
    "doctr": "did you mean dps-train doctor?",
    "JOURNAL": "found a file of another kind",
    "/dev/stdin --plan": "found a pipe",
    ".": "found a folder",
    "CONFIG -o CONFIG/x.h5": "is needed as a folder and is a file",
    "CONFIG -o RESULT/new/x.h5": "is needed as a folder and is a file",
    "CONFIG -o \udcff.h5": "no text in UTF-8",
    "merge RESULT -o \udcff.h5": "no text in UTF-8",
}


@kind(sound, list(MEANT))
def command_line_meant(place, studies, source, item):
    """Mistakes that have an answer of their own."""
    studies.copy("whole", place)
    words = [word.replace("CONFIG", "x.toml").replace("RESULT", "x.h5").replace("JOURNAL", "x.journal") for word in item.split(" ")]
    command = [studies.train, *words]
    if words[:2] == ["x.toml", "-o"]:
        command = studies.resume()
        command[command.index("-o") + 1] = words[2]
    if "/dev/stdin" in words:
        command = ["sh", "-c", 'cat x.toml | "$@"', "sh", *command]
    answer = MEANT[item].encode()
    return Case(command, frozenset({2, 4, 7}), check=lambda run: [] if answer in run.stderr else [f"no word of {answer.decode()!r}"])


# Names of results; those in the second list cannot be any.
GOOD_NAMES = [
    "x.svg", "x.journal", "x.lock", "x.checkpoint", "x", "x.", ".h5", ".x.h5.tmp", "-", "new/folder/x.h5", "x.old-1", "goal-0.12", "x.h5.h5",
    "x\n\x1b[31m.h5", " ", "x y.h5", "../run/y.h5", "y" * 200,
]  # fmt: skip
BAD_NAMES = [
    "", ".", "..", "/", "folder/", "new/", "file/x.h5", "x.toml", "./x.toml", "../run/x.toml", "a" * 300, LONG, "a/" * 2500 + "x.h5", "/proc/x.h5",
    "/sys/x.h5", "a\udcff.h5",
]  # fmt: skip


@kind(ordinary_output, [(name, how) for name in [*GOOD_NAMES, *BAD_NAMES, *ODD_FILES] for how in ["anew", "--fresh"]])
def command_line_output(place, studies, source, item):
    """Places for the results that are other files of the study, or no files at all."""
    name, how = item
    more = ["--fresh"] if how == "--fresh" else []
    if name in ODD_FILES:
        case = with_output(place, studies, "odd", *more)
        put(place, "odd", name)
        is_link = (place.run / "odd").is_symlink()
        before = (place.run / "odd").lstat()
        # A result replaces a link, and what it leads to is not this folder's.
        case.check = None if is_link else lambda run: unchanged(place.run / "odd", before)
    else:
        case = with_output(place, studies, name, *more)
        (place.run / "folder").mkdir()
        case.check = lambda run: configuration_kept(run, place, studies)
        if name in BAD_NAMES:
            case.allowed = frozenset({2, 4, 7})
    return case


# Names of configurations: those that cannot be any, and odd ones.
NO_NAMES = ["", ".", "/", "folder/", "file/new.toml", "a" * 300, LONG, "/proc/new.toml"]
ODD_NAMES = ["x\n\x1b[31m.toml", "a\udcff.toml", "-", "new.h5", "new/new.toml"]


def initialised(place, studies):
    return Case([studies.train, "init", "new.toml", "--dataset", "mnist", "--optimizer", "sgd"], frozenset({0}))


@kind(initialised, [*ODD_FILES, *NO_NAMES, *ODD_NAMES])
def command_line_init(place, studies, source, item):
    """Places for a new configuration that are taken, or no files."""
    (place.run / "file").write_text("something\n")
    (place.run / "folder").mkdir()
    case = initialised(place, studies)
    if item in ODD_FILES:
        put(place, "new.toml", item)
        before = (place.run / "new.toml").lstat()
        case.check, case.allowed = lambda run: unchanged(place.run / "new.toml", before), frozenset({2, 4})
    else:
        case.command[2] = item
        case.allowed = frozenset({0, 2, 4}) if item in ODD_NAMES else frozenset({2, 4})
    return case


def unchanged(path, before):
    """Checks that an odd file, unless a folder, is still what it was."""
    after = path.lstat() if os.path.lexists(path) else None
    if after is None or (after.st_mode, after.st_ino) != (before.st_mode, before.st_ino):
        yield f"{path.name} is another file than before"


def configuration_kept(run, place, studies):
    """Checks that a study which was measured has its result file, and its configuration still."""
    if file_bytes(place.run / "x.toml") != studies.bytes("whole", "toml"):
        yield "the configuration has changed"
    results = [path for path in place.run.rglob("*") if file_bytes(path).startswith(b"\x89HDF")]
    if run.code == 0 and len(results) != 1:
        yield f"{len(results)} result files"
