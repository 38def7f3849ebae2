#!/usr/bin/env python3
"""Checks that every relative link of the pages leads to a file that is there, and to a heading of it."""

import pathlib
import re
import subprocess
import sys

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


def main():
    pages = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    found = [f"{page}: {problem}" for page in pages for problem in problems(ROOT / page)]
    links = sum((ROOT / page).read_text().count("](") for page in pages)
    if not links:
        found.append("expected links in the pages, found none: this check sees nothing")
    print("\n".join(found) or f"{links} links in {len(pages)} pages")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
