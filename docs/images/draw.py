#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws cost.svg and rivals.svg of this folder from measured figures.

The speedups are in speedups.json, which --measure writes with reprise-replay. The engines at the axis of cost.svg are
from the curves in bench/profiles, and from the table "Cost of a pass" in docs/performance/engines.md.
A text is named MODEL:TEXT=TRACE. cost.svg has the texts of the first model, rivals.svg has all.

    docs/images/draw.py
    docs/images/draw.py --measure reprise-replay "Llama-8B:code edits=instructcoder.jsonl" \\
        Llama-8B:summaries=cnn.jsonl Llama-8B:chat=sharegpt.jsonl Llama-8B:math=gsm8k.jsonl \\
        "GPT-4o:tool calls=tool-calling.jsonl"

The second command made the speedups.json of this folder, from the traces of docs/performance/peers.md.

Exit status: 0 done, 1 --check found another picture, 2 an argument or a file cannot be used.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn
from xml.sax.saxutils import escape

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
PAGE = "docs/performance/engines.md"

#: The costs of the lines, and those at which drafters are compared; 1: a drafted token costs as much as a pass.
LINE = (0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.5)
COMPARED = (0.02, 0.3)
OWN = "vllm:min=2,max=5,k=5"
ADAPTIVE = "adaptive"
#: The fixed settings, of which the best is chosen for each text in hindsight (docs/performance.md).
FIXED = ("ngram-simple:n=12,m=32", *(f"{name},{length}={k}" for k in (3, 5, 10, 30) for name, length in
         (("hf:n=1..8", "k"), ("ngram-simple:n=1..8", "m"), ("vllm:min=2,max=2..8", "k"))))

#: The bars of a text, from the top.
BARS = (("plain", "plain decoding"), ("own", "vLLM’s own n-grams"), ("best", "best of {settings} settings"),
        ("adaptive", "adaptive lookup"), ("reprise", "reprise"), ("memory", "reprise + memory"))

WIDTH = 600
STYLE = """
    text { font: 16px -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
    .title { font-size: 19px; font-weight: bold; }
    .text { font-weight: bold; }
    .muted { fill: #59636e; }
    .grid { stroke: #d1d9e0; }
    .mark { stroke: #818b98; stroke-dasharray: 4 4; }
    .line { fill: none; stroke-width: 3.5; stroke-linejoin: round; }
    .s0 { stroke: #c2410c; } .s1 { stroke: #0969da; } .s2 { stroke: #1a7f37; } .s3 { stroke: #8250df; }
    .plain { fill: #c8d1da; } .own { fill: #a9b7c6; } .best { fill: #8798aa; } .adaptive { fill: #64778b; }
    .reprise { fill: #f08c4a; } .memory { fill: #d1500f; }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc; }
      .muted { fill: #b1bac4; }
      .grid { stroke: #3d444d; }
      .mark { stroke: #9198a1; }
      .s0 { stroke: #ff9a57; } .s1 { stroke: #58a6ff; } .s2 { stroke: #4ccb66; } .s3 { stroke: #bc8cff; }
      .plain { fill: #3d4650; } .own { fill: #535f6c; } .best { fill: #6d7c8b; } .adaptive { fill: #8f9fae; }
    }
"""


def fail(what: str, status: int = 2) -> NoReturn:
    print(f"draw.py: {what}", file=sys.stderr)
    sys.exit(status)


def read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{path}: cannot be read: {error}")


# --- measuring


def replay(tool: str, traces: list[str], *options: str) -> dict[str, Any]:
    """The results of the tool, as its JSON has them."""
    try:
        done = subprocess.run([tool, "--shape", "chain", "--format", "json", *options, *traces], capture_output=True,
                              text=True)
    except OSError as error:
        fail(f"{tool}: cannot be run: {error.strerror}")
    if done.returncode != 0:
        fail(f"{tool}: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure(tool: str, named: list[str]) -> dict[str, Any]:
    """The content of speedups.json: aggregates of the traces, named MODEL:TEXT=TRACE."""
    texts: dict[str, dict[str, Any]] = {}
    for one in named:
        parts = re.fullmatch(r"([^:=]+):([^:=]+)=(.+)", one)
        if not parts:
            fail(f"{one}: write MODEL:TEXT=TRACE, such as Llama-8B:chat=sharegpt.jsonl")
        texts[parts[3]] = {"model": parts[1], "text": parts[2]}
    traces = list(texts)

    def costs(values: tuple[float, ...]) -> list[str]:
        return [word for value in values for word in ("--cost", f"linear:{value:g}")]

    def strategies(names: tuple[str, ...]) -> list[str]:
        return [word for name in names for word in ("--strategy", name)]

    line = replay(tool, traces, *strategies(("ngram",)), *costs(LINE))
    rivals = replay(tool, traces, *strategies(("ngram", OWN, ADAPTIVE)), *costs(COMPARED))
    fixed = replay(tool, traces, *strategies(FIXED), *costs(COMPARED))
    memory = replay(tool, traces, "--memory", "past", *strategies(("ngram",)), *costs(COMPARED))

    def speedups(found: dict[str, Any], trace: str, cost: float) -> dict[str, float]:
        return {result["strategy"]: result["speedup"] for result in found["results"]
                if result["trace"] == trace and result["cost"] == f"linear:{cost:g}"}

    for trace, text in texts.items():
        some = next(result for result in line["results"] if result["trace"] == trace)
        text["sessions"], text["tokens"] = some["sessions"], some["tokens"]
        text["reprise"] = {f"{cost:g}": round(speedups(line, trace, cost)["ngram"], 4) for cost in LINE}
        text["compared"] = {}
        for cost in COMPARED:
            drafters, settings = speedups(rivals, trace, cost), speedups(fixed, trace, cost)
            best = max(settings, key=lambda setting: settings[setting])
            values = {"plain": 1.0, "own": drafters[OWN], "best": settings[best], "adaptive": drafters[ADAPTIVE],
                      "reprise": drafters["ngram"], "memory": speedups(memory, trace, cost)["ngram"]}
            text["compared"][f"{cost:g}"] = {name: round(value, 4) for name, value in values.items()}
            text["compared"][f"{cost:g}"]["setting"] = best
    return {"settings": len({result["strategy"] for result in fixed["results"]}), "texts": list(texts.values())}


def engines() -> list[tuple[str, str, float]]:
    """Engines, where they ran, and the cost of their first drafted token as a share of a plain pass."""

    def curve(name: str, context: int) -> float:
        times = {point["rows"]: point["ns"] for point in json.loads(read(ROOT / "bench/profiles" / name))["points"]
                 if point["sequences"] == 1 and point["context"] == context}
        return float(times[2] / times[1] - 1)

    table = read(ROOT / PAGE).partition("\n## Cost of a pass\n")[2].partition("\n## ")[0]

    def row(name: str) -> float:
        found = re.search(rf"^\| {re.escape(name)} \| [\d.]+ \| ([\d.]+) \|", table, re.M)
        if not found:
            fail(f"{PAGE}: the table \"Cost of a pass\" has no row {name}")
        return float(found[1]) - 1

    return [("H100", "one request", curve("llama-3-8b-bf16-h100.json", 512)),
            ("vLLM", "on a CPU", row("vLLM")),
            ("onnxruntime", "on a CPU", row("onnxruntime-genai")),
            ("Q4_0", "", curve("smollm2-135m-q4_0-bf16-head-cpu-1-thread.json", 128)),
            ("Q4_1", "llama.cpp, CPU", row("llama-cpp-python, Q4_1"))]


# --- drawing


def number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


class Picture:
    def __init__(self, height: int, description: str) -> None:
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
                      f'viewBox="0 0 {WIDTH} {height}" role="img">', f"  <title>{escape(description)}</title>",
                      f"  <style>{STYLE}  </style>"]

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        kind = f' class="{kind}"' if kind else ""
        side = f' text-anchor="{anchor}"' if anchor != "start" else ""
        self.parts.append(f'  <text x="{number(x)}" y="{number(y)}"{kind}{side}>{escape(words)}</text>')

    def path(self, steps: str, kind: str) -> None:
        self.parts.append(f'  <path d="{steps}" class="{kind}"/>')

    def bar(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        self.parts.append(f'  <rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" '
                          f'rx="2" class="{kind}"/>')

    def whole(self) -> str:
        return "\n".join([*self.parts, "</svg>\n"])


def apart(places: list[float], least: float) -> list[float]:
    """The places moved so that neighbours are at least so far apart, with as little movement as a few rounds allow."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    for _ in range(100):
        for low, high in itertools.pairwise(order):
            lack = least - (moved[high] - moved[low])
            if lack > 0:
                moved[low] -= lack / 2
                moved[high] += lack / 2
    return moved


def draw_cost(figures: dict[str, Any]) -> str:
    """Speedup over the cost of a drafted token, a line for each text of the first model."""
    model = figures["texts"][0]["model"]
    texts = [text for text in figures["texts"] if text["model"] == model]
    top, bottom, left, right = 62, 300, 104, 552
    highest = max(max(text["reprise"].values()) for text in texts)
    low, high = math.log(LINE[0]), math.log(LINE[-1])

    def x(cost: float) -> float:
        return left + (right - left) * (math.log(cost) - low) / (high - low)

    def y(speedup: float) -> float:
        return bottom - (bottom - top) * (speedup - 1) / (highest - 1)

    picture = Picture(412, f"Speedup of {model} text over the cost of a drafted token")
    picture.text(8, 24, "Faster where text repeats and checking is cheap", "title")
    picture.text(8, 46, f"Simulated, {model}; marks: the first drafted token of an engine", "muted")
    for step in range(1, math.floor(highest) + 1):
        picture.path(f"M{left} {number(y(step))}H{right}", "grid")
        picture.text(right + 8, y(step) + 6, f"{step}×", "muted")
    for cost in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
        picture.text(x(cost), bottom + 22, f"{100 * cost:g}%", "muted", "middle")
    picture.text((left + right) / 2, bottom + 45, "cost of a drafted token, as a share of a pass", "", "middle")
    for name, place, cost in engines():
        picture.path(f"M{number(x(cost))} {top}V{bottom}", "mark")
        side = {"Q4_0": ("end", 16), "Q4_1": ("start", -8)}.get(name, ("middle", 0))  # these two are neighbours
        picture.text(x(cost) + side[1], bottom + 76, name, "text", side[0])
        picture.text(x(cost) - (24 if name == "Q4_1" else 0), bottom + 97, place, "muted", "middle")
    for i, text in enumerate(texts):
        points = [f"{number(x(float(cost)))} {number(y(speedup))}" for cost, speedup in text["reprise"].items()]
        picture.path("M" + "L".join(points), f"line s{i % 4}")
    starts = apart([y(text["reprise"][f"{LINE[0]:g}"]) for text in texts], 18)
    for text, place in zip(texts, starts):
        picture.text(left - 8, place + 5, text["text"], "", "end")
    return picture.whole()


def draw_rivals(figures: dict[str, Any]) -> str:
    """A group of bars for each text: speedups of drafters at the first cost."""
    cost = f"{COMPARED[0]:g}"
    left, room, bar, group = 190, 352, 19, 34
    texts = figures["texts"]
    most = max(max(text["compared"][cost][name] for name, _ in BARS) for text in texts)
    picture = Picture(56 + len(texts) * (group + bar * len(BARS)) + 4,
                      f"Speedup of drafters, if a drafted token costs {float(cost):.0%} of a pass")
    picture.text(8, 24, f"Speedup where a drafted token costs {float(cost):.0%} of a pass", "title")
    y = 36
    for text in texts:
        picture.text(8, y + 24, f"{text['model']}: {text['text']}", "text")
        y += group
        for name, label in BARS:
            speedup = text["compared"][cost][name]
            kind = "text" if name in ("reprise", "memory") else ""
            picture.text(left - 8, y + bar - 4, label.format(settings=figures["settings"]), kind, "end")
            picture.bar(left, y + 1, room * speedup / most, bar - 2, name)
            picture.text(left + room * speedup / most + 6, y + bar - 4, f"{speedup:.2f}", kind)
            y += bar
    return picture.whole()


PICTURES = {"cost.svg": draw_cost, "rivals.svg": draw_rivals}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", nargs="+", metavar=("REPRISE_REPLAY", "MODEL:TEXT=TRACE"),
                        help="replay these traces first, and write speedups.json")
    parser.add_argument("--check", action="store_true", help="write nothing; compare the pictures with new ones")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of speedups.json and of the pictures")
    options = parser.parse_args(arguments)
    data = options.folder / "speedups.json"
    try:
        if options.measure:
            if len(options.measure) < 2 or options.check:
                parser.error("--measure takes the tool and at least one MODEL:TEXT=TRACE, and no --check")
            figures = measure(options.measure[0], options.measure[1:])
            data.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        try:
            figures = json.loads(read(data))
            drawn = {name: draw(figures) for name, draw in PICTURES.items()}
        except (ValueError, KeyError, IndexError, TypeError) as error:
            fail(f"{data}: not as --measure writes it ({type(error).__name__}: {error}); write it anew")
        for name, picture in drawn.items():
            if not options.check:
                (options.folder / name).write_text(picture, encoding="utf-8")
            elif read(options.folder / name) != picture:
                fail(f"{name} is not drawn from speedups.json: run docs/images/draw.py", 1)
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
