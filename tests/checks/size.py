#!/usr/bin/env python3
"""Prints how large the sources are: files, lines, and letters without blanks, of each folder; size.py [--write].

Lines that are blank or a comment alone are not counted as code. Of the code in src/, lines of unit tests are counted once more. --write puts the
table into docs/architecture.md.
"""

import pathlib
import re
import subprocess
import sys

from check_text import COMMENT, ROOT

PAGE = ROOT / "docs/architecture.md"
MARKS = ("<!-- size: written by make size WRITE=1 -->\n", "<!-- end of size -->")


def code_of(text, suffix):
    return [line for line in text.splitlines() if line.strip() and not re.match(COMMENT[suffix], line)]


def unit_tests(file):
    """The text of a file's unit tests: a file of tests alone, or the module of tests in a file of Rust."""
    text = file.read_text()
    is_of_tests = file.name == "tests.rs" or "tests" in file.relative_to(ROOT).parts[:-1]
    return text if is_of_tests else "".join(re.findall(r"^#\[cfg\(test\)\]\nmod \w+ \{\n.*?^\}\n", text, re.M | re.S))


def row(name, files):
    """The row of some files: how many, their lines, those of code, those of code in unit tests, and the letters of the code."""
    lines = sum(len(file.read_text().splitlines()) for file in files)
    code = [line for file in files for line in code_of(file.read_text(), file.suffix)]
    in_src = [file for file in files if file.is_relative_to(ROOT / "src")]
    tested = f"{sum(len(code_of(unit_tests(file), file.suffix)) for file in in_src):,}" if in_src else ""
    letters = sum(len(re.sub(r"\s", "", line)) for line in code)
    return f"| {name} | {len(files):,} | {lines:,} | {len(code):,} | {tested} | {letters:,} |"


def main():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    sources = [pathlib.Path(name) for name in listed if pathlib.Path(name).suffix in COMMENT.keys() - {"", ".toml"}]
    of = lambda *folder: [ROOT / name for name in sources if name.parts[: len(folder)] == folder]
    modules = sorted({name.parts[1].removesuffix(".rs") for name in sources if name.parts[0] == "src"})
    rows = [row(f"`src/{module}`", of("src", module) + of("src", f"{module}.rs")) for module in modules]
    rows += [row(f"**`{folder}/`**", of(folder)) for folder in ("src", "kernels", "tests", "examples", "packaging", "slurm")]
    table = "\n".join(["| folder | files | lines | of code | in unit tests | letters of the code |", "|---|---|---|---|---|---|", *rows]) + "\n"
    print(table, end="")
    if "--write" in sys.argv[1:]:
        before, rest = PAGE.read_text().split(MARKS[0])
        PAGE.write_text(f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{rest.split(MARKS[1])[1]}")


if __name__ == "__main__":
    main()
