#!/usr/bin/env python3
"""Checks a report's folder with Python's library alone, independently of the program that wrote it: check_report.py FOLDER.

Prints one line and exits with 0 where the page needs nothing from outside the folder, every figure is sound and every table is square."""

import csv
import html.parser
import math
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


def table(folder, name):
    """The rows of a CSV file by column; none where there is no such file."""
    path = folder / f"{name}.csv"
    if not path.is_file():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def measured(folder):
    """K* by study and sparsity, then batch size."""
    points = {}
    for cell in table(folder, "cells"):
        steps = cell["steps_to_result"]
        check(steps != "·" or cell["trials"] == "0", f"a cell that is still to come has {cell['trials']} trials")
        if steps not in ("", "·"):
            points.setdefault((cell["study"], cell["sparsity"]), {})[int(cell["batch_size"])] = int(steps)
    return points


def check_critical(folder, points):
    """The critical batch sizes of measured ends and of 20 % overhead follow from the cells and from c1 and c2 of the fits; returns whose they are."""
    laws = {(fit["study"], fit["sparsity"]): (float(fit["c1"]), float(fit["c2"])) for fit in table(folder, "fits") if fit["c1"]}
    checked = []
    for row in table(folder, "critical"):
        key = row["study"], row["sparsity"]
        if row["definition"] == "measured ends":
            expected = min(size * steps for size, steps in points[key].items()) / min(points[key].values())
        elif row["definition"] == "20 % overhead":
            check(key in laws, f"{key}: a critical batch size of 20 % overhead, but no fit")
            (c1, c2), sizes = laws[key], list(points[key])
            expected = 0.2 * c1 / c2 + 1.2 * min(sizes) if c2 else float("inf")
            expected = expected if expected <= max(sizes) else float("inf")
        else:
            continue
        found = float(row["critical_batch_size"])
        check(found == expected or abs(found / expected - 1) < 1e-9, f"{key}, {row['definition']}: {found}, which should be {expected}")
        checked.append(key)
    return checked


def check_fits(folder, points):
    """No law c1/B + c2 of a fine grid is clearly nearer to the measured steps than the fit is, which is by the likelihood of the intervals between
    evaluations; its deviation and the measured shift follow from the cells; returns whose fits were checked."""
    checked = []
    intervals = {study["study"]: int(study["evaluate_every"]) for study in table(folder, "studies")}
    for fit in table(folder, "fits"):
        if not fit["c1"]:
            continue
        cells, every = points[fit["study"], fit["sparsity"]], intervals[fit["study"]]
        # The logarithm of the steps in the middle of each interval, and the sum of the variances in the intervals.
        middles = {size: math.log((steps + (steps - 1) // every * every) / 2) for size, steps in cells.items()}
        befores = [(steps, (steps - 1) // every * every) for steps in cells.values()]
        rounding = sum(min(math.log(steps / before) ** 2 / 12, 1) if before else 1 for steps, before in befores)

        def squares(c1, c2):
            return sum((middle - math.log(c1 / size + c2)) ** 2 for size, middle in middles.items())

        def best_scale(part):
            """The least squares of all laws with c1 : c2 = part : 1 - part."""
            logs = [middle - math.log(part / size + 1 - part) for size, middle in middles.items()]
            mean = sum(logs) / len(logs)
            return sum((log - mean) ** 2 for log in logs)

        name = f"{fit['study']}, sparsity {fit['sparsity']}"
        found = squares(float(fit["c1"]), float(fit["c2"]))
        least = min(best_scale(1 / (1 + math.exp(-place / 100))) for place in range(-1500, 1501))
        check(found <= 1.02 * least + 0.1 * rounding, f"the fit of {name} leaves squares of {found}, and another law {least}")
        deviation = math.sqrt(found / (len(cells) - 2))
        check(abs(float(fit["deviation"]) - deviation) < 1e-9, f"the deviation of {name} is {fit['deviation']}, and should be {deviation}")
        dense = points.get((fit["study"], "0"), {})
        ratios = [math.log(steps / dense[size]) for size, steps in cells.items() if size in dense]
        if fit["shift"]:
            shift = math.exp(sum(ratios) / len(ratios))
            check(abs(float(fit["shift"]) / shift - 1) < 1e-9, f"the shift of {name} is {fit['shift']}, and should be {shift}")
        checked.append((fit["study"], fit["sparsity"]))
    return checked


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_report.py FOLDER")
    folder = pathlib.Path(sys.argv[1])
    page = Page(folder)
    page.feed((folder / "index.html").read_text())
    page.close()
    check(not page.open, f"open to the end: {page.open}")
    figures = sorted(folder.glob("*.svg"))
    wide = [path for path in figures if not path.stem.endswith("-column")]
    check(page.figures == 2 * page.captions and page.captions == len(wide) > 0, f"{page.figures} drawings in the page, two a figure; {page.captions} captions, {len(wide)} files")
    for path in figures:
        root = xml.etree.ElementTree.parse(path).getroot()
        for area in root.iter("{http://www.w3.org/2000/svg}rect"):
            hidden = area.get("fill") is None
            check(not hidden or len(area) == 1, f"{path.name} has a point without words")
        for line in root.iter("{http://www.w3.org/2000/svg}polyline"):
            check(line.get("stroke-opacity") != "0" or len(line) == 1, f"{path.name} has a line without words")
        texts = [text for text in ("".join(element.itertext()).strip() for element in root) if text]
        check(len(texts) > 3, f"{path.name} has no labels")
        head = path.with_suffix(".png").read_bytes()[:24]
        check(head[:8] == b"\x89PNG\r\n\x1a\n", f"{path.name} has no PNG beside it")
        width, height = struct.unpack(">II", head[16:])
        shape = float(root.get("width").removesuffix("in")) / float(root.get("height").removesuffix("in"))
        check(path.with_suffix(".pdf").read_bytes().startswith(b"%PDF-"), f"{path.name} has no PDF beside it")
        check(abs(width / height / shape - 1) < 0.01, f"{path.name} and its PNG differ in shape")
    rows = {}
    for path in wide:
        check(path.with_suffix(".csv").is_file(), f"{path.name} has no table of its values beside it")
    for name in ("cells", "fits", "trials"):
        with open(folder / f"{name}.csv", newline="") as file:
            heading, *rows[name] = csv.reader(file)
        check(all(len(row) == len(heading) for row in rows[name]), f"{name}.csv is not square")
        check(len((folder / f"{name}.md").read_text().splitlines()) == len(rows[name]) + 2, f"{name}.md has other rows than {name}.csv")
    points = measured(folder)
    critical, fits = check_critical(folder, points), check_fits(folder, points)
    for key, sizes in points.items():
        enough = len(sizes) < 3 or (key in fits and critical.count(key) >= 2)
        check(enough, f"{key}: expected a fit and two critical batch sizes of its {len(sizes)} batch sizes, found fewer")
    print(f"{folder}: {len(figures)} figures, {len(critical)} critical batch sizes, {len(rows['cells'])} cells, {len(rows['fits'])} fits ({len(fits)} found again) and {len(rows['trials'])} trials are sound")


main()
