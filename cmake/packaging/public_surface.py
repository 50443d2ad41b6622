#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the public names of reprise, one in a line, sorted: the header and the name.

The C++ names are those that docs/reference.md lists; tests/house/reference.test.cpp holds the page against the headers.
The functions, constants and structs of the C interface are those of tests/c/abi.txt, which the test c.abi compares
with the library. Both files are texts, so the names of an earlier release come from its tag without a build.
"""
import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Failure(Exception):
    """A sentence for the user."""


def read(path):
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path}: cannot be read: {error}") from error


def names_of_page(text):
    """The names in the first cells of the tables, below rows such as `| **`reprise/core/token.hpp`** |`."""
    found = set()
    header = None
    for line in text.splitlines():
        if line.startswith("#"):
            header = None
        elif line.startswith("| **`"):
            header = line.split("`")[1]
        elif header and line.startswith("| `"):
            found.update((header, name.removesuffix("()")) for name in re.findall(r"`([^`]+)`", line.split("|")[1]))
    return found


def names_of_abi(text):
    """The lines `function NAME`, `constant NAME ...`, `struct NAME ...`."""
    return {("reprise_c/reprise.h", words[1]) for words in map(str.split, text.splitlines())
            if len(words) > 1 and words[0] in ("function", "constant", "struct")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="Exit status: 0; 1 if a file cannot be read or has no names; 2 for wrong options.")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs/reference.md", help="page of the C++ names (docs/reference.md)")
    parser.add_argument("--abi", type=pathlib.Path, default=ROOT / "tests/c/abi.txt", help="list of the C names (tests/c/abi.txt)")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="form of the list (text)")
    options = parser.parse_args()
    try:
        names = names_of_page(read(options.page))
        if not names:
            raise Failure(f"{options.page}: has no table of names below a row with a header")
        names = sorted(names | names_of_abi(read(options.abi)))
    except Failure as failure:
        print(f"public_surface.py: {failure}", file=sys.stderr)
        return 1
    if options.format == "json":
        print(json.dumps([{"header": header, "name": name} for header, name in names], indent=1))
    else:
        for line in sorted(f"{header} {name}" for header, name in names):
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
