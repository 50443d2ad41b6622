#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the public headers of reprise as one file, with the same include path: single_include/reprise/reprise.hpp.

It holds all public headers of the core, except history/snapshot_file.hpp, which calls the operating system. Each header
of the library is put in place of its first #include. Includes of the standard library come first, sorted. The same
headers always give the same bytes. The option --program writes a program as one file, for example for Compiler Explorer.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r"^\s*#\s*include\s*([<\"])([^>\"]+)[>\"]")
OWN = re.compile(r"reprise(_\w+)?/")
OPEN = re.compile(r"^\s*#\s*if")
CLOSE = re.compile(r"^\s*#\s*endif")
COMMENT = re.compile(r"^\s*//")
SYSTEM = "reprise/history/snapshot_file.hpp"
DROPPED = ("// SPDX-License-Identifier:", "#pragma once")


class Failure(Exception):
    """A sentence for the user."""


class Amalgamation:
    """The text of the headers, each once, and the standard headers that they include."""

    def __init__(self, folder):
        self.folder = folder
        self.seen = set()
        self.standard = set()
        self.blocks = []

    def add(self, name, asked_by):
        if name in self.seen:
            return
        self.seen.add(name)
        path = self.folder / name
        if not path.is_file():
            raise Failure(f"{asked_by} includes {name}: there is no file {path}")
        lines = []
        conditions = 0
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            conditions += bool(OPEN.match(line)) - bool(CLOSE.match(line))
            found = INCLUDE.match(line)
            if found and OWN.match(found[2]):
                if conditions:
                    raise Failure(f"{path}:{number}: {name} includes {found[2]} inside #if; include it unconditionally")
                self.add(found[2], f"{path}:{number}")
            elif found and found[1] == '"':
                raise Failure(f'{path}:{number}: write the include as "reprise/..." or "reprise_PART/..."')
            elif found and not conditions:
                self.standard.add(found[2])
            elif not line.startswith(DROPPED):
                lines.append(line)
        body = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
        self.blocks.append(f"// ---- {name}\n\n{body}\n")

    def includes(self):
        return "".join(f"#include <{name}>\n" for name in sorted(self.standard))

    def program(self, path, version):
        """A program and the headers that it includes as one file, without the comments of the headers."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"{path}: cannot be read: {error}") from error
        own = []
        for number, line in enumerate(lines, 1):
            found = INCLUDE.match(line)
            if found and OWN.match(found[2]):
                self.add(found[2], f"{path}:{number}")
            elif found:
                self.standard.add(found[2])
            elif not line.startswith(DROPPED):
                own.append(line)
        headers = "".join(line + "\n" for block in self.blocks for line in block.splitlines() if line and not COMMENT.match(line))
        head = (
            "// SPDX-License-Identifier: Apache-2.0\n"
            f"// {path.name} and the headers of reprise {version} that it includes, made by cmake/packaging/single_header.py.\n"
            "// g++ -std=c++20 -O1; the program is at the end.\n"
        )
        return "\n".join([head, self.includes(), headers, f"// ---- {path.name}\n", "\n".join(own).strip("\n") + "\n"])

    def text(self, version, also):
        head = (
            "// SPDX-License-Identifier: Apache-2.0\n"
            f"// reprise {version}, a single header made of {', '.join(['the core', *also])} by cmake/packaging/single_header.py.\n"
            "// Do not include it together with headers of the source tree.\n"
            "#pragma once\n"
        )
        return "\n".join([head, self.includes(), *self.blocks])


def version_of(folder):
    path = folder / "reprise/core/token.hpp"
    found = re.search(r'version_string = "([^"]+)"', path.read_text(encoding="utf-8"))
    if not found:
        raise Failure(f"{path} has no line version_string = \"...\"")
    return found[1]


def core(folder):
    """The public headers of the core, reprise.hpp first."""
    names = sorted(str(path.relative_to(folder)) for path in (folder / "reprise").rglob("*.hpp"))
    public = [name for name in names if "/detail/" not in name and name not in (SYSTEM, "reprise/reprise.hpp")]
    return ["reprise/reprise.hpp", *public]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", type=pathlib.Path, default=ROOT / "include", help="folder with reprise/ and its parts (include)")
    parser.add_argument(
        "--output",
        type=pathlib.Path,
        default=ROOT / "build/single_include/reprise/reprise.hpp",
        help="file to write (build/single_include/reprise/reprise.hpp); - for the standard output",
    )
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="HEADER",
        help="a public header that the file leaves out, for example reprise_testing/check_verifier.hpp; repeatable",
    )
    parser.add_argument(
        "--program",
        type=pathlib.Path,
        metavar="FILE",
        help="write this program together with the headers that it includes, as one file that compiles alone",
    )
    parser.add_argument("--list", action="store_true", help="print the names of the headers in the file; write nothing")
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if --output is out of date")
    options = parser.parse_args()
    try:
        made = Amalgamation(options.include)
        if options.program:
            text = made.program(options.program, version_of(options.include))
        else:
            for name in [*core(options.include), *options.also]:
                made.add(name, "the command line")
            text = made.text(version_of(options.include), options.also)
        if options.list:
            print("\n".join(sorted(made.seen)))
        elif str(options.output) == "-" and not options.check:
            sys.stdout.write(text)
        elif options.check:
            if not options.output.is_file() or options.output.read_text(encoding="utf-8") != text:
                raise Failure(f"{options.output} is not what the headers give: run {sys.argv[0]} --output {options.output}")
        else:
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(text, encoding="utf-8")
            print(f"{options.output}: {len(made.seen)} headers, {text.count(chr(10))} lines, {len(text.encode())} bytes")
    except (Failure, OSError) as error:
        print(f"single_header.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
