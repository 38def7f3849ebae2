#!/usr/bin/env python3
"""Checks that every relative link of the pages leads to a file that is there, and to a heading of it, and that text fits into a window.

Lines of pages and comments have at most 150 letters. Tables, code and what programs write into pages may be longer.
"""

import pathlib
import re
import subprocess
import sys

MOST = 150
COMMENT = {".rs": r"\s*//", ".cu": r"\s*//", ".cuh": r"\s*//", ".h": r"\s*//", ".cpp": r"\s*//"}
COMMENT.update({kind: r"\s*#" for kind in (".py", ".sh", ".bash", ".toml", "")})
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


def long_lines(file):
    lines = enumerate(file.read_text().splitlines(), 1)
    if file.suffix == ".md":
        lines = text_of_page(lines)
    else:
        lines = ((number, line) for number, line in lines if re.match(COMMENT[file.suffix], line))
    for number, line in lines:
        if len(line) > MOST:
            yield f"line {number}: {len(line)} letters, expected at most {MOST}; break it"


def main():
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    pages = [name for name in files if name.endswith(".md")]
    found = [f"{page}: {problem}" for page in pages for problem in problems(ROOT / page)]
    texts = [name for name in files if name.endswith(".md") or pathlib.Path(name).suffix in COMMENT and (ROOT / name).is_file()]
    found += [f"{name}: {problem}" for name in texts for problem in long_lines(ROOT / name)]
    links = sum((ROOT / page).read_text().count("](") for page in pages)
    if not links:
        found.append("expected links in the pages, found none: this check sees nothing")
    print("\n".join(found) or f"{links} links in {len(pages)} pages; no long lines in {len(texts)} files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
