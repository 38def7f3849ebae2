#!/usr/bin/env python3
"""Checks a report's folder with Python's library alone, independently of the program that wrote it: check_report.py FOLDER.

Prints one line and exits with 0 where the page needs nothing from outside the folder, every figure is sound and every table is square."""

import csv
import html.parser
import pathlib
import struct
import sys
import xml.etree.ElementTree

VOID = {"meta", "br", "link", "img", "hr", "input"}


def check(condition, problem):
    if not condition:
        sys.exit(f"{sys.argv[1]}: {problem}")


class Page(html.parser.HTMLParser):
    """Tags that are open, the figures met, and an end on anything the page would have to fetch or run."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.open, self.figures, self.captions = [], 0, 0

    def handle_starttag(self, tag, attributes):
        check(tag not in {"script", "link", "img", "iframe", "object"}, f"the page has a <{tag}>")
        for name, value in attributes:
            check(not name.startswith("on") and name != "src", f"the page has an attribute {name}")
            if name == "href" and not value.startswith("#"):
                check("/" not in value and (self.folder / value).is_file(), f"the page refers to {value}")
        self.figures += tag == "svg"
        self.captions += tag == "figcaption"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        check(self.open and self.open.pop() == tag, f"</{tag}> closes another tag")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_report.py FOLDER")
    folder = pathlib.Path(sys.argv[1])
    page = Page(folder)
    page.feed((folder / "index.html").read_text())
    page.close()
    check(not page.open, f"open to the end: {page.open}")
    figures = sorted(folder.glob("*.svg"))
    check(page.figures == page.captions == len(figures) > 0, f"{page.figures} figures in the page, {page.captions} captions, {len(figures)} files")
    for path in figures:
        root = xml.etree.ElementTree.parse(path).getroot()
        for area in root.iter("{http://www.w3.org/2000/svg}rect"):
            hidden = area.get("fill") is None
            check(not hidden or len(area) == 1, f"{path.name} has a point without words")
        texts = [text for text in ("".join(element.itertext()).strip() for element in root) if text]
        check(len(texts) > 3, f"{path.name} has no labels")
        head = path.with_suffix(".png").read_bytes()[:24]
        check(head[:8] == b"\x89PNG\r\n\x1a\n", f"{path.name} has no PNG beside it")
        width, height = struct.unpack(">II", head[16:])
        shape = float(root.get("width").removesuffix("in")) / float(root.get("height").removesuffix("in"))
        check(path.with_suffix(".pdf").read_bytes().startswith(b"%PDF-"), f"{path.name} has no PDF beside it")
        check(abs(width / height / shape - 1) < 0.01, f"{path.name} and its PNG differ in shape")
    rows = {}
    for name in ("cells", "fits", "trials"):
        with open(folder / f"{name}.csv", newline="") as file:
            heading, *rows[name] = csv.reader(file)
        check(all(len(row) == len(heading) for row in rows[name]), f"{name}.csv is not square")
        check(len((folder / f"{name}.md").read_text().splitlines()) == len(rows[name]) + 2, f"{name}.md has other rows than {name}.csv")
    print(f"{folder}: {len(figures)} figures, {len(rows['cells'])} cells, {len(rows['fits'])} fits and {len(rows['trials'])} trials are sound")


main()
