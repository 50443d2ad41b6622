#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that tables of docs/performance.md have the numbers that their commands print.

usage: performance_tables.py REPRISE_REPLAY
"""
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = "docs/performance.md"
TEXTS = {"code edits": "code-edit", "summaries": "summary", "JSON, tool calls": "json", "retrieval": "retrieval",
         "chat": "chat", "translation": "translation", "reasoning": "reasoning", "prose": "prose"}
#: The rows of the first table, by the strategies of its command.
DRAFTERS = {"Hugging Face": "hf", "prompt lookup": "pld", "vLLM ngram": "vllm", "llama.cpp": "ngram-simple",
            "ds4": "ds4"}


def section(title):
    """The text of PAGE from a heading to the next one."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)[1]


def command(title):
    """The arguments of the first reprise-replay in a section."""
    block = re.search(r"^```sh\n(reprise-replay .*?)^```", section(title), re.M | re.S)[1]
    return block.replace("\\\n", " ").split()[1:]


def table(text, cost):
    """The first table after the words "At s = COST", in any case: the heads of its columns, and its rows by name."""
    rows = re.search(rf"at s = {re.escape(cost)}\b.*?\n((?:\|[^\n]*\n)+)", text, re.I | re.S)[1].splitlines()
    cells = [[cell.strip(" *`") for cell in row.strip("|").split("|")] for row in rows]
    return cells[0][1:], {row[0]: row[1:] for row in cells[2:]}


def main(tool):
    other, kinds = "Speedup against other drafters", command("Speedup by kind of text")
    settings = command("Settings of other systems")
    traces = [str(ROOT / f"bench/traces/{name}.jsonl") for name in TEXTS.values()]

    def speedups(arguments):
        done = subprocess.run([tool, *arguments, "--format", "json", *traces], check=True, capture_output=True)
        found = {}
        for one in json.loads(done.stdout)["results"]:
            trace = pathlib.Path(one["trace"]).stem
            found.setdefault((one["cost"], one["strategy"]), {})[trace] = one["speedup"]
        return found

    chains = ["--shape", "chain", "--strategy", "ngram", "--cost", "linear:0.02", "--cost", "linear:0.3"]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        trees, two, fixed = pool.map(speedups, (kinds, chains, settings))
    faults = []

    def compare(title, heads, name, shown, measured):
        wanted = [f"{measured[TEXTS[head]]:.2f}" for head in heads]
        if heads != list(TEXTS) or shown != wanted:
            faults.append(f"{PAGE}, {title}, {name}: the page has {shown}, the command prints {wanted}")

    heads, rows = table(section(other), "0.02")
    for name, strategy in DRAFTERS.items():
        row = next((key for key in rows if key.startswith(name)), None)
        if row is None:
            faults.append(f"{PAGE}, {other}: there is no row {name}")
        else:
            compare(other, heads, row, rows[row], trees["linear:0.02", strategy])
    compare(other, heads, "reprise, default", rows.get("reprise, default"), trees["linear:0.02", "ngram"])
    compare(other, heads, "reprise, two functions", rows.get("reprise, two functions"), two["linear:0.02", "ngram"])

    title = "Settings of other systems"
    for cost in ("0.02", "0.3"):
        heads, rows = table(section(title), cost)
        adaptive = fixed.pop((f"linear:{cost}", "adaptive"))
        compare(title, heads, f"adaptive at {cost}", rows.get("adaptive lookup"), adaptive)
        others = [found for (curve, _), found in fixed.items() if curve == f"linear:{cost}"]
        best = {text: max(found[text] for found in others) for text in TEXTS.values()}
        compare(title, heads, f"best at {cost}", rows.get(f"best of {len(others)} settings"), best)
        compare(title, heads, f"reprise at {cost}", rows.get("reprise, two functions"), two[f"linear:{cost}", "ngram"])
    print("\n".join(faults or ["the tables have the numbers of their commands"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
