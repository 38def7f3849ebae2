#!/usr/bin/env python3
"""Checks that links of pages lead to files and headings that are there, that text fits into a window, that comments name their subjects, and that the
version is one.

Lines of pages and comments have at most 150 letters. Tables, code and what programs write into pages may be longer. A comment of the sources does not
begin with words that stand for a noun elsewhere: "Its name", "Those of a layer", "The same for bytes", "What a panel shows".
"""

import ast
import pathlib
import re
import subprocess
import sys

MOST = 150
COMMENT = {".rs": r"\s*//", ".cu": r"\s*//", ".cuh": r"\s*//", ".h": r"\s*//", ".cpp": r"\s*//"}
COMMENT.update({kind: r"\s*#" for kind in (".py", ".sh", ".bash", ".toml", "")})
# Folders whose comments name their subjects.
NAMED = ("src/", "tests/", "kernels/", "examples/")
# The first words of a comment that name nothing.
NOTHING = re.compile(
    r"(?:It|Its|That|Those|Them|They|Their|The same|Same|Such|As|What|So many|(?:How|Whether|When|Where) (?:it|its|they|their))\b(?!-)"
    r"|(?:This|These) (?:is|are|was|were|has|have|of|that)\b|(?:One|Ones|The others?) (?:is|are|of|that|which|in|for|with)\b"
)
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def anchors(page):
    """The headings of a page, as GitHub names them in links."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def problems(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists():
            yield f"{target}: no such file"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{target}: no such heading"


def text_of_page(lines):
    """The lines that people write, with their numbers."""
    code = made = False
    for number, line in lines:
        code ^= line.lstrip().startswith("```")
        made = re.match(r"<!-- .*(made|written) by", line) is not None or (made and not line.startswith("<!-- end of"))
        if not (code or made or line.lstrip().startswith("|")):
            yield number, line


def text_of_source(file, lines):
    """The lines of Python's comments and docstrings, with their numbers."""
    owners = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))]
    texts = [node.body[0] for node in owners if ast.get_docstring(node)]
    of_docstrings = {number for text in texts for number in range(text.lineno, text.end_lineno + 1)}
    return ((number, line) for number, line in lines if number in of_docstrings or re.match(COMMENT[file.suffix], line))


def long_lines(file):
    lines = enumerate(file.read_text().splitlines(), 1)
    if file.suffix == ".py":
        lines = text_of_source(file, lines)
    elif file.suffix == ".md":
        lines = text_of_page(lines)
    else:
        lines = ((number, line) for number, line in lines if re.match(COMMENT[file.suffix], line))
    for number, line in lines:
        if len(line) > MOST:
            yield f"line {number}: {len(line)} letters, expected at most {MOST}; break it"


def without_subject(lines, markers=r"//[/!]?"):
    """The comments that begin without a noun, with their numbers."""
    before = None
    for number, line in enumerate(lines, 1):
        marker, text = re.match(rf"\s*({markers}|) ?(.*)", line).groups()
        # A comment begins behind code, behind one of another kind, and behind an empty line.
        if marker and marker != before and NOTHING.match(text):
            yield number, text
        before = marker if text else None


def subjects(file):
    markers = {"/": r"//[/!]?", "#": r'#|"""'}[COMMENT[file.suffix][-1]]
    for number, text in without_subject(file.read_text().splitlines(), markers):
        yield f"line {number}: a comment begins {' '.join(text.split()[:3])!r}, expected its subject; name what it speaks of"


def versions():
    """A sentence where the places that have the version of dps differ."""
    places = {"Cargo.toml": r'^version = "(.*)"', "CITATION.cff": r"^version: (.*)", "examples/dps-results/dps_results/__init__.py": r'^__version__ = "(.*)"'}
    found = {name: re.search(line, (ROOT / name).read_text(), re.MULTILINE).group(1) for name, line in places.items()}
    if len(set(found.values())) > 1:
        yield f"expected one version, found {', '.join(f'{version} in {name}' for name, version in found.items())}"


def main():
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    pages = [name for name in files if name.endswith(".md")]
    found = [f"{page}: {problem}" for page in pages for problem in problems(ROOT / page)]
    texts = [name for name in files if name.endswith(".md") or pathlib.Path(name).suffix in COMMENT and (ROOT / name).is_file()]
    found += [f"{name}: {problem}" for name in texts for problem in long_lines(ROOT / name)]
    sources = [name for name in texts if name.startswith(NAMED) and pathlib.Path(name).suffix in COMMENT]
    found += [f"{name}: {problem}" for name in sources for problem in subjects(ROOT / name)]
    found += versions()
    links = sum((ROOT / page).read_text().count("](") for page in pages)
    if not links:
        found.append("expected links in the pages, found none: this check sees nothing")
    known = "/// Its name.|name: String,|/// Name of the file.|/// It is read.|///|/// The same bits.|// One of them|/// As text.||/// What runs.|fn f|/// Whatever runs.".split("|")
    script = '# What runs.|run|def f():|    """It runs."""|    """Runs."""'.split("|")
    planted = [*without_subject(known), *without_subject(script, r'#|"""')]
    if [number for number, _ in planted] != [1, 6, 7, 8, 10, 1, 4]:
        found.append("expected comments without subjects to be found: this check sees nothing")
    print("\n".join(found) or f"{links} links in {len(pages)} pages; no long lines in {len(texts)} files; subjects in the comments of {len(sources)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
