#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a benchmark of bench/micro/ at two commits in turns, and prints the times of the second over those of the first.

    python3 bench/micro/compare_commits.py main HEAD --target reprise-bench-control

Each round runs both builds, which take turns to be first. A round gives one ratio of processor times, so a machine that
slows down matters little. The estimate and its 95% interval are those of Hodges and Lehmann. p is that of Wilcoxon's
signed-rank test, exact, and corrected by Holm for the number of benchmarks. Builds stay in build/compare/.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LEAST_ROUNDS = 6  # with five, no difference could have a p below 0.05


class Failure(Exception):
    """A sentence for the user."""


# --- Statistics ---


@functools.cache
def share_of_rank_sums(double_ranks: tuple[int, ...]) -> tuple[float, ...]:
    """The probability that the positive ranks, doubled, sum to at most 0, 1, ..., if each sign is a coin."""
    ways = [1]
    for rank in double_ranks:
        longer = ways + [0] * rank
        for total, count in enumerate(ways):
            longer[total + rank] += count
        ways = longer
    return tuple(total / 2 ** len(double_ranks) for total in itertools.accumulate(ways))


def signed_rank_p(differences: list[float]) -> float:
    """Two-sided p of Wilcoxon's signed-rank test; equal sizes share a rank, and zeros count for neither side."""
    sizes = sorted(abs(value) for value in differences if value)
    if not sizes:
        return 1.0
    # Twice the rank of each size: the mean of its first and its last place.
    doubled = {size: sizes.index(size) + 1 + len(sizes) - sizes[::-1].index(size) for size in sizes}
    below = share_of_rank_sums(tuple(doubled[size] for size in sizes))
    side = [sum(doubled[abs(value)] for value in differences if value * sign > 0) for sign in (1, -1)]
    return min(1.0, 2 * below[min(side)])


def interval(differences: list[float]) -> tuple[float, float, float]:
    """The median of the means of all pairs, and the ends of an interval that holds the true one in at least 95%."""
    means = sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(differences, 2))
    below = share_of_rank_sums(tuple(range(2, 2 * len(differences) + 2, 2)))[::2]
    left_out = sum(share <= 0.025 for share in below)
    return statistics.median(means), means[left_out - 1], means[-left_out]


def corrected(ps: list[float]) -> list[float]:
    """Holm's correction, so that one of all tests is wrongly significant at most as often as a single one would be."""
    result = [1.0] * len(ps)
    most = 0.0
    for place, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        most = max(most, min(1.0, ps[index] * (len(ps) - place)))
        result[index] = most
    return result


def compare(times: dict[str, list[list[float]]]) -> list[dict[str, Any]]:
    """A row for each benchmark from its times in ns: those of the first build, and those of the second."""
    rows = []
    for name, (before, after) in times.items():
        differences = [math.log(second / first) for first, second in zip(before, after, strict=True)]
        ratio, low, high = (math.exp(value) for value in interval(differences))
        rows.append({"name": name, "before_ns": statistics.median(before), "after_ns": statistics.median(after),
                     "ratio": ratio, "low": low, "high": high, "p": signed_rank_p(differences)})
    for row, p in zip(rows, corrected([row["p"] for row in rows]), strict=True):
        row["p"] = p
        row["verdict"] = "no difference found" if p >= 0.05 else "slower" if row["ratio"] > 1 else "faster"
    return rows


# --- Builds and runs ---


def run(command: list[str], what: str, cwd: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise Failure(f"{what} (exit status {done.returncode}):\n{tail}")
    return done.stdout


def build(name: str, target: str, source: Path) -> Path:
    """Builds the target at a commit, in a folder of that commit, and returns the program."""
    commit = run(["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"],
                 f"{name} is no commit of {source}: give a branch, a tag or a hash", source).strip()
    folder = source / "build/compare" / commit[:16]
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        run(["git", "archive", "--output", str(folder / "tree.tar"), "--prefix", "tree/", commit], f"{name} cannot be read", source)
        run(["tar", "-xf", "tree.tar"], f"the files of {name} cannot be written to {folder}", folder)
        (folder / "tree.tar").unlink()
        (folder / "complete").touch()
    made = folder / "build"
    print(f"building {target} of {name} ({commit[:12]})", file=sys.stderr)
    run(["cmake", "-S", str(folder / "tree"), "-B", str(made), "-DCMAKE_BUILD_TYPE=Release", "-DREPRISE_BUILD_TESTS=OFF",
         "-DREPRISE_BUILD_EXAMPLES=OFF"], f"{name} cannot be configured", source)
    run(["cmake", "--build", str(made), "--target", target], f"{target} of {name} cannot be built", source)
    program = made / "bench/micro" / target
    if not program.exists():
        raise Failure(f"{name} has no {target} in bench/micro/: give --target a benchmark of bench/micro/CMakeLists.txt")
    return program


def times_of(program: Path, options: list[str]) -> dict[str, float]:
    printed = run([str(program), "--benchmark_format=json", *options], f"{program} fails", ROOT)
    units = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
    return {row["name"]: row["cpu_time"] * units[row["time_unit"]] for row in json.loads(printed)["benchmarks"]
            if row.get("run_type", "iteration") == "iteration" and not row.get("error_occurred")}


def measure(programs: list[Path], options: list[str], rounds: int) -> dict[str, list[list[float]]]:
    times: dict[str, list[list[float]]] = {}
    for number in range(rounds):
        for which in ((0, 1), (1, 0))[number % 2]:
            print(f"\rround {number + 1} of {rounds}", end="", file=sys.stderr, flush=True)
            for name, time in times_of(programs[which], options).items():
                times.setdefault(name, [[], []])[which].append(time)
    print(f"\r{'':30}\r", end="", file=sys.stderr)
    both = {name: pair for name, pair in times.items() if [len(half) for half in pair] == [rounds, rounds]}
    if not both:
        raise Failure("no benchmark ran in both builds: the filter may match none, or the names have changed")
    for name in times.keys() - both.keys():
        print(f"left out, because it did not run in every round of both builds: {name}", file=sys.stderr)
    return both


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="Exit status: 0; 1 if a build or a benchmark fails; 2 for wrong options.")
    parser.add_argument("before", help="the first commit: a branch, a tag or a hash")
    parser.add_argument("after", help="the second commit")
    parser.add_argument("--target", required=True, help="a benchmark of bench/micro/, such as reprise-bench-control")
    parser.add_argument("--filter", default=".", metavar="REGEX", help="the benchmarks to run (all of them)")
    parser.add_argument("--rounds", type=int, default=10, metavar="N", help=f"runs of each build, from {LEAST_ROUNDS} on (10)")
    parser.add_argument("--min-time", default="0.2", metavar="S", help="seconds of each benchmark in a run (0.2)")
    parser.add_argument("--source", type=Path, default=ROOT, metavar="FOLDER", help="the repository (this one)")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="form of the table (text)")
    options = parser.parse_args()
    if options.rounds < LEAST_ROUNDS:
        parser.error(f"--rounds {options.rounds}: needs a number from {LEAST_ROUNDS} on, because fewer cannot show a difference")
    try:
        programs = [build(name, options.target, options.source.resolve()) for name in (options.before, options.after)]
        times = measure(programs, [f"--benchmark_filter={options.filter}", f"--benchmark_min_time={options.min_time}"], options.rounds)
    except (Failure, OSError, ValueError) as failure:
        print(f"compare_commits.py: {failure}", file=sys.stderr)
        return 1
    rows = compare(times)
    if options.format == "json":
        print(json.dumps(rows, indent=1))
        return 0
    print("| benchmark | before, ns | after, ns | ratio | from | to | p | verdict |\n|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row['name']} | {row['before_ns']:.4g} | {row['after_ns']:.4g} | {row['ratio']:.3f} | {row['low']:.3f} "
              f"| {row['high']:.3f} | {row['p']:.3f} | {row['verdict']} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
