#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits numbers of a constant in include/ to recordings: to their speedup.

Each number of the constant is raised and lowered in turn, in a copy of the
sources. A change stays if the mean speedup of the recordings rises by more than
--least. Recordings after --held-out are never fitted on: the report says what
the fit is worth there. Sources are not changed; the fitted numbers are printed.
A trial compiles reprise-replay and runs it: 1 to 3 minutes on 2 cores.

    bench/replay/fit_constants.py \\
        include/reprise/evidence/detail/match_weight.hpp \\
        history_base_weight bench/traces/*.jsonl --held-out OTHER.jsonl
"""

from __future__ import annotations

import argparse
import concurrent.futures
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import NoReturn

from compare_builds import mean, replay

SOURCE = pathlib.Path(__file__).resolve().parents[2]
NUMBER = re.compile(r"-?\d+")


def fail(message: str) -> NoReturn:
    print(f"fit_constants.py: {message}", file=sys.stderr)
    raise SystemExit(2)


def find_numbers(text: str, name: str) -> list[re.Match[str]]:
    """Returns the numbers of `name = 1` or `name = {1, 2}`, as matches in the text."""
    found = re.search(rf"\b{re.escape(name)} = ([^;]*);", text)
    if not found:
        raise ValueError(f"there is no constant {name} = ...; give its name as the file has it")
    numbers = list(NUMBER.finditer(text, found.start(1), found.end(1)))
    if not numbers:
        raise ValueError(f"{name} has no whole numbers: give a constant with numbers to fit")
    return numbers


def with_numbers(text: str, name: str, values: list[int]) -> str:
    """Returns the text with other numbers in this constant."""
    for match, value in reversed(list(zip(find_numbers(text, name), values, strict=True))):
        text = text[: match.start()] + str(value) + text[match.end() :]
    return text


def neighbours(value: int, step: float) -> list[int]:
    """Returns the two numbers that are tried beside a value."""
    distance = max(1, round(abs(value) * step))
    return [value + distance, value - distance]


class Build:
    """A copy of the sources, and the replay tool that is built of it."""

    def __init__(self, root: pathlib.Path, file: pathlib.Path, name: str) -> None:
        self.tree, self.build, self.name = root / "tree", root / "build", name
        left_out = shutil.ignore_patterns("build", ".git", "docs", "python")
        shutil.copytree(SOURCE, self.tree, ignore=left_out)
        self.file = self.tree / file.resolve().relative_to(SOURCE)
        self.text = self.file.read_text()
        self.run("cmake", "-S", str(self.tree), "-B", str(self.build), "-DCMAKE_BUILD_TYPE=Release",
                 "-DREPRISE_BUILD_TESTS=OFF", "-DREPRISE_BUILD_EXAMPLES=OFF", "-DREPRISE_BUILD_MICRO=OFF")

    def run(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            fail(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")

    def speedups(self, values: list[int], traces: list[str], memories: list[str]) -> dict[tuple[str, ...], float]:
        """Returns the speedup of each cell with these numbers."""
        changed = with_numbers(self.text, self.name, values)
        if self.file.read_text() != changed:
            self.file.write_text(changed)
        self.run("cmake", "--build", str(self.build), "--target", "reprise-replay", "-j", str(os.cpu_count() or 1))
        tool = str(next(path for path in self.build.rglob("reprise-replay") if path.is_file()))
        jobs = [(trace, shape, memory) for trace in traces for shape in ("chain", "tree") for memory in memories]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            parts = pool.map(lambda job: replay(tool, *job, []), jobs)
        return {key: value for part in parts for key, value in part.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path, help="header with the constant")
    parser.add_argument("name", help="name of the constant")
    parser.add_argument("traces", nargs="+", help="recordings that are fitted on (docs/formats.md)")
    parser.add_argument("--held-out", nargs="+", default=[], metavar="TRACE", help="recordings for the report alone")
    parser.add_argument("--memory", nargs="+", default=["session", "past"], choices=["session", "past"])
    parser.add_argument("--step", type=float, default=0.15, help="share of a number that is added (default: 0.15)")
    parser.add_argument("--least", type=float, default=1e-4, help="least gain that changes a number (default: 0.0001)")
    parser.add_argument("--rounds", type=int, default=1, help="rounds over all numbers (default: 1)")
    given = parser.parse_args()
    try:
        values = [int(match.group()) for match in find_numbers(given.file.read_text(), given.name)]
    except OSError as error:
        fail(f"{given.file}: {error.strerror}: give a header of include/")
    except ValueError as error:
        fail(f"{given.file}: {error}")
    first = list(values)
    with tempfile.TemporaryDirectory() as root:
        build = Build(pathlib.Path(root), given.file, given.name)
        base = build.speedups(values, given.traces, given.memory)

        def gain(tried: list[int]) -> float:
            now = build.speedups(tried, given.traces, given.memory)
            return math.log(mean([now[key] / base[key] for key in base]))

        best = 0.0
        for _ in range(given.rounds):
            for at, value in enumerate(list(values)):
                for tried in neighbours(value, given.step):
                    other = [*values[:at], tried, *values[at + 1 :]]
                    found = gain(other)
                    kept = found > best + given.least
                    print(f"number {at}: {values[at]} -> {tried}: {math.exp(found):.5f}{' kept' if kept else ''}",
                          file=sys.stderr, flush=True)
                    if kept:
                        values, best = other, found
                        break
        print(f"{given.name} = {{{', '.join(map(str, values))}}}")
        print(f"fitted: mean {math.exp(best):.5f} of {len(base)} cells")
        if given.held_out and values != first:
            before = build.speedups(first, given.held_out, given.memory)
            after = build.speedups(values, given.held_out, given.memory)
            ratios = sorted((after[key] / before[key], key) for key in before)
            print(f"held out: mean {mean([ratio for ratio, _ in ratios]):.5f} of {len(ratios)} cells, "
                  f"lowest {ratios[0][0]:.4f} ({', '.join(ratios[0][1])})")


if __name__ == "__main__":
    main()
