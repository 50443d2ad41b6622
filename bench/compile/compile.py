#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of reprise for a compiler: processor time and bytes of code of six files.

    python3 bench/compile/compile.py

Each time is the least of several rounds, in seconds of processor time, so that other work on the machine matters little.
The ratio is that to a file with four standard headers, compiled in the same rounds. The code is the section text of the
object. "Linked" is a program in C whose unused sections the linker has collected.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASE = "four standard headers"
COMPILED = "quickstart with `reprise::compiled`"
FILES = {
    BASE: "bench/compile/standard.cpp",
    "`reprise.hpp`, unused": "bench/compile/unused.cpp",
    "lookup, control, session": "bench/compile/lightest.cpp",
    "quickstart": "examples/quickstart.cpp",
    COMPILED: "examples/quickstart.cpp",
    "a batch of slots": "bench/compile/batch.cpp",
    "the C interface": "include/reprise_c/reprise.cpp",
}
OPTIONS_OF_C = ["-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections"]
PROGRAM_IN_C = ROOT / "examples/c/first.c"


def fail(what: str) -> None:
    print(f"compile.py: {what}", file=sys.stderr)
    sys.exit(2)


def run(command: list[str]) -> float:
    """Runs a command, and returns the processor time of it and of its children."""
    before = os.times()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    after = os.times()
    if done.returncode != 0:
        fail(f"{' '.join(command)} failed:\n{done.stdout}")
    return after.children_user + after.children_system - before.children_user - before.children_system


def code_of(file: Path) -> int:
    """The bytes of code and constants of an object or a library."""
    return int(subprocess.run(["size", str(file)], capture_output=True, text=True, check=True).stdout.split()[6])


def measure(compiler: str, level: str, rounds: int, folder: Path) -> list[dict[str, object]]:
    rows = {name: {"file": name, "compiler": compiler, "seconds": float("inf")} for name in FILES}
    for number in range(rounds):
        for name, path in FILES.items():
            print(f"\r{compiler}: round {number + 1} of {rounds}, {name:30}", end="", file=sys.stderr, flush=True)
            made = folder / "made.o"
            flags = OPTIONS_OF_C if path.endswith("reprise_c/reprise.cpp") else ["-DREPRISE_COMPILED=1"] if name == COMPILED else []
            seconds = run([compiler, "-std=c++20", level, f"-I{ROOT / 'include'}", *flags, "-c", str(ROOT / path), "-o", str(made)])
            rows[name]["seconds"] = min(seconds, rows[name]["seconds"])
            rows[name]["code"] = code_of(made)
            if flags is OPTIONS_OF_C and number == 0:
                linked = folder / "linked"
                run([compiler, "-x", "c", f"-I{ROOT / 'include'}", str(PROGRAM_IN_C), "-x", "none", str(made), "-Wl,--gc-sections", "-o", str(linked)])
                rows[name]["linked"] = code_of(linked)
    print(f"\r{'':70}\r", end="", file=sys.stderr)
    for row in rows.values():
        row["ratio"] = row["seconds"] / rows[BASE]["seconds"]
    return list(rows.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="Exit status: 0; 2 if a compiler is not found or fails.")
    parser.add_argument("--compiler", action="append", metavar="NAME", help="a compiler, repeatable (g++ and clang++)")
    parser.add_argument("--level", default="-O2", metavar="OPTION", help="level of optimisation (-O2)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="number of rounds (5)")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="form of the table (text)")
    options = parser.parse_args()
    if options.rounds < 1:
        fail(f"--rounds {options.rounds}: needs a number from 1 on")
    compilers = options.compiler or [name for name in ("g++", "clang++") if shutil.which(name)]
    for tool in [*compilers, "size"]:
        if shutil.which(tool) is None:
            fail(f"{tool} is not found: install it, or name another compiler with --compiler")
    if not compilers:
        fail("neither g++ nor clang++ is found: name a compiler with --compiler")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for compiler in compilers:
            rows += measure(compiler, options.level, options.rounds, Path(folder))
    if options.format == "json":
        print(json.dumps(rows, indent=1))
        return
    print("| file | compiler | processor time, s | ratio | code, KB | linked, KB |\n|---|---|---|---|---|---|")
    for row in rows:
        linked = f"{row['linked'] / 1000:.1f}" if "linked" in row else ""
        print(f"| {row['file']} | {row['compiler']} | {row['seconds']:.2f} | {row['ratio']:.1f} | {row['code'] / 1000:.1f} | {linked} |")


if __name__ == "__main__":
    main()
