#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the table of speedups in README.md has the numbers that its commands print.

usage: readme_table.py REPRISE_REPLAY
"""
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = "| text | cost |"
# The rows with a bundled trace. The others are measured with traces that are not bundled.
TEXTS = {"SmolLM2: code edits": "code-edit", "SmolLM2: JSON": "json", "SmolLM2: chat": "chat",
         "SmolLM2: prose": "prose"}
COSTS = {"2%": "linear:0.02", "30%": "linear:0.3"}


def commands_after(page, start):
    """The commands of the first block after a line that begins with `start`, as lists of arguments."""
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", "")
    block = re.search(rf"^{re.escape(start)}.*?^```sh\n(.*?)^```", text, re.M | re.S)[1]
    return [line.split()[1:] for line in block.splitlines() if line.startswith("reprise-replay ")]


def table():
    rows = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    first = next(i for i, line in enumerate(rows) if line.startswith(HEAD))
    cells = [[cell.strip(" *`") for cell in line.strip("|").split("|")] for line in rows[first:]]
    return cells[0], [row for row in cells[2:] if len(row) == len(cells[0]) and row[1] in COSTS]


def main(tool):
    head, rows = table()
    (two_functions, trees), (others,) = commands_after("README.md", HEAD), commands_after(
        "docs/performance.md", "## Settings of other systems")
    traces = [str(ROOT / f"bench/traces/{name}.jsonl") for name in TEXTS.values()]

    def results(arguments):
        return json.loads(subprocess.run([tool, *arguments, "--format", "json", *traces], check=True,
                                         capture_output=True).stdout)["results"]

    with concurrent.futures.ThreadPoolExecutor() as pool:
        replayed = list(pool.map(results, (two_functions, trees, others)))
    faults = []
    for text, cost, *shown in rows:
        if text not in TEXTS:
            continue
        ours, tree, other = ([result["speedup"] for result in some if result["cost"] == COSTS[cost]
                              and result["trace"].endswith(f"/{TEXTS[text]}.jsonl")] for some in replayed)
        measured = [f"{value:.2f}" for value in (ours[0], *tree, *ours[1:], max(other))]
        if measured != shown:
            faults.append(f"{text}, {cost}: README.md has {shown}, the commands print {measured}")
    if not set(TEXTS) <= {text for text, *_ in rows}:
        faults.append(f"README.md lacks a row of {sorted(TEXTS)}")
    settings = [two_functions[i + 1] for i, word in enumerate(two_functions) if word == "--strategy"][1:]
    for setting, name in zip(settings, head[4:]):
        shown = "/".join(re.search(rf"[:,](?:{keys})=(\d+)", setting)[1] for keys in ("n|max", "k|m"))
        if not name.endswith(f" {shown}"):
            faults.append(f"README.md: {setting} is shown as {name}")
    count = f"best of {len({result['strategy'] for result in replayed[2]})} settings"
    if count not in (ROOT / "README.md").read_text(encoding="utf-8"):
        faults.append(f"README.md does not say: {count}")
    print("\n".join(faults or ["the table has the numbers of its commands"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
