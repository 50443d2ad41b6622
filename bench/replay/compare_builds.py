#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays recordings with two builds of reprise-replay, and prints the speedups of the second over those of the first.

A change of the drafter or of control is judged by all cells: recordings x chains and trees x costs x memory. A mean can
hide a cell, so the lowest cells are printed, too. Options after -- go to both builds.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import math
import subprocess
import sys

COSTS = ("0", "0.02", "0.1", "0.3")


def replay(tool: str, trace: str, shape: str, memory: str, options: list[str]) -> dict[tuple[str, ...], float]:
    command = [tool, trace, "--format", "json", "--strategy", "ngram", "--shape", shape, "--memory", memory, *options]
    for cost in COSTS:
        command += ["--cost", f"linear:{cost}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr.strip()}")
    rows = json.loads(done.stdout)["results"]
    return {(memory, shape, row["cost"], trace): row["speedup"] for row in rows if row["category"] == "all"}


def mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main() -> None:
    arguments, options = sys.argv[1:], []
    if "--" in arguments:
        arguments, options = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="reprise-replay of the first build")
    parser.add_argument("after", help="reprise-replay of the second build")
    parser.add_argument("traces", nargs="+", help="recordings (docs/formats.md)")
    given = parser.parse_args(arguments)
    jobs = [(tool, trace, shape, memory, options) for tool in (given.before, given.after) for trace in given.traces
            for shape in ("chain", "tree") for memory in ("session", "past")]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        cells = list(pool.map(lambda job: replay(*job), jobs))
    before, after = ({key: value for part in half for key, value in part.items()}
                     for half in (cells[: len(cells) // 2], cells[len(cells) // 2 :]))
    ratios = {key: after[key] / before[key] for key in before}
    print("| memory | shape | " + " | ".join(f"s = {cost}" for cost in COSTS) + " | mean |")
    print("|---|---|" + "---|" * (len(COSTS) + 1))
    for memory in ("session", "past"):
        for shape in ("chain", "tree"):
            part = {key: ratio for key, ratio in ratios.items() if key[:2] == (memory, shape)}
            row = [mean([ratio for key, ratio in part.items() if key[2] == f"linear:{cost}"]) for cost in COSTS]
            print(f"| {memory} | {shape} | " + " | ".join(f"{value:.4f}" for value in [*row, mean([*part.values()])]) + " |")
    print(f"\n{len(ratios)} cells, mean {mean([*ratios.values()]):.5f}; the lowest:")
    for key, ratio in sorted(ratios.items(), key=lambda item: item[1])[:5]:
        print(f"  {ratio:.4f}  " + ", ".join(key))


if __name__ == "__main__":
    main()
