#!/usr/bin/env python3
"""Lists the licences of the crates that the programs contain: licences.py [--write] [--texts FILE [-- OPTION…]].

Without options it fails where docs/licences.md is not what Cargo.lock makes of it. --write writes that page. --texts writes the licence files of all
crates into one file, to go with programs that are passed on; their sources must be there, as after a build. Each OPTION goes to `cargo metadata`, for
programs of other features or for another machine."""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/licences.md"
# Of the page's programs, which have the default features.
OPTIONS = ["--filter-platform", "x86_64-unknown-linux-gnu"]
# Licences that ask for no more than their notice beside the program.
KNOWN = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT", "MIT-0", "Unicode-3.0", "Unlicense", "Zlib",
    "LLVM-exception", "MPL-2.0",
}  # fmt: skip
NOTICE = re.compile("(licen[cs]e|copying|notice|copyright|unlicense)", re.IGNORECASE)
HEAD = """# Licences

dps is under the [MIT licence](../LICENSE). Its programs contain these crates, in the versions of `Cargo.lock`, for Linux on x86-64 with the default
features; `make licences` writes this page, and `make check` compares it. Whoever passes programs on passes their notices on too:
`tests/checks/licences.py --texts FILE` collects them. The crate dejavu has the DejaVu fonts, under the licence of Bitstream Vera. HDF5 (BSD-3-Clause)
and zlib (Zlib) are in programs that are built with `--features static-hdf5`; MPI and NVIDIA's libraries come from the machine.

| crate | version | licence |
|---|---|---|
"""


def contained(options):
    """The packages that get into the programs: dependencies of dps, but for those of tests, of build scripts and of macros."""
    made = subprocess.run(["cargo", "metadata", "--format-version", "1", "--locked", *options], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    metadata = json.loads(made.stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting, found = [metadata["resolve"]["root"]], {}
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            package = packages[dependency["pkg"]]
            is_macro = any("proc-macro" in target["kind"] for target in package["targets"])
            if package["id"] not in found and not is_macro and any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                found[package["id"]] = package
                waiting.append(package["id"])
    return sorted(found.values(), key=lambda package: (package["name"], package["version"]))


def licence(package):
    """The licence of a package as SPDX writes it; a crate that names a file has that named."""
    return (package["license"] or f"see {package['license_file']}").replace("/", " OR ")


def page(packages):
    return HEAD + "".join(f"| {package['name']} | {package['version']} | {licence(package)} |\n" for package in packages)


def unknown(packages):
    """A sentence for each package none of whose licences is known here."""
    for package in packages:
        choices = re.split(r"\bOR\b", licence(package))
        if not any(set(re.findall(r"[A-Za-z0-9.+-]+", choice)) - {"AND", "WITH"} <= KNOWN for choice in choices):
            yield f"{package['name']} {package['version']}: {licence(package)} is none of {', '.join(sorted(KNOWN))}"


def texts(packages):
    for package in packages:
        folder = pathlib.Path(package["manifest_path"]).parent
        # Fonts and the like have their own beside them.
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and NOTICE.match(path.name) and path.suffix != ".rs"]
        yield f"{'=' * 80}\n{package['name']} {package['version']}: {licence(package)}\n"
        yield from (f"{'-' * 80}\n{path.relative_to(folder)}\n\n{path.read_text(errors='replace').strip()}\n\n" for path in files)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write docs/licences.md")
    parser.add_argument("--texts", type=pathlib.Path, metavar="FILE", help="collect the crates' licence files")
    parser.add_argument("options", nargs="*", metavar="OPTION", help="goes to cargo metadata, for --texts")
    arguments = parser.parse_args()
    packages = contained(OPTIONS)
    problems = list(unknown(packages))
    if arguments.write:
        PAGE.write_text(page(packages))
    elif not PAGE.is_file() or PAGE.read_text() != page(packages):
        problems.append("docs/licences.md is not what Cargo.lock makes of it: make licences")
    if arguments.texts:
        arguments.texts.write_text("".join(texts(contained(arguments.options or OPTIONS))))
    if problems:
        sys.exit("\n".join(problems))
    print(f"{len(packages)} crates, all of known licences")


if __name__ == "__main__":
    main()
