#!/usr/bin/env python3
"""Prints how large the sources are: files, lines, and letters without blanks, of each folder; size.py [--write].

Lines that are blank or a comment alone are not counted as code. --write puts the table into docs/architecture.md.
"""

import pathlib
import re
import subprocess
import sys

from check_text import COMMENT, ROOT

PAGE = ROOT / "docs/architecture.md"
MARKS = ("<!-- size: written by make size WRITE=1 -->\n", "<!-- end of size -->")


def row(name, files):
    """The row of some files: how many, their lines, those of code, and the letters of these."""
    lines = letters = code = 0
    for file in files:
        for line in file.read_text().splitlines():
            lines += 1
            if line.strip() and not re.match(COMMENT[file.suffix], line):
                code += 1
                letters += len(re.sub(r"\s", "", line))
    return f"| {name} | {len(files):,} | {lines:,} | {code:,} | {letters:,} |"


def main():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    sources = [pathlib.Path(name) for name in listed if pathlib.Path(name).suffix in COMMENT.keys() - {"", ".toml"}]
    of = lambda *folder: [ROOT / name for name in sources if name.parts[: len(folder)] == folder]
    modules = sorted({name.parts[1].removesuffix(".rs") for name in sources if name.parts[0] == "src"})
    rows = [row(f"`src/{module}`", of("src", module) + of("src", f"{module}.rs")) for module in modules]
    rows += [row(f"**`{folder}/`**", of(folder)) for folder in ("src", "kernels", "tests", "examples", "packaging", "slurm")]
    table = "\n".join(["| folder | files | lines | of code | letters of these |", "|---|---|---|---|---|", *rows]) + "\n"
    print(table, end="")
    if "--write" in sys.argv[1:]:
        before, rest = PAGE.read_text().split(MARKS[0])
        PAGE.write_text(f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{rest.split(MARKS[1])[1]}")


if __name__ == "__main__":
    main()
