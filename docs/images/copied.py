#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a part of a session with its copied tokens marked, as copied.svg, from a page of reprise-replay --report.

usage: copied.py PAGE.html [--session ID] [--turn N] [--first PASS] [--lines N] > copied.svg

The picture is readable at a width of 400 pixels, and follows the colour scheme of the reader.
"""
import argparse
import html
import itertools
import json
import pathlib
import re

WIDTH, MARGIN, SIZE, STEP = 400, 14, 13, 21  # of the picture and its lines, in pixels
ADVANCE = 0.6 * SIZE  # of a character
COLUMNS = int((WIDTH - 2 * MARGIN) / ADVANCE)
STYLE = """
    svg { --paper: #ffffff; --ink: #1b1e21; --muted: #565d64; --copied: #cfe5fb; --line: #0b63b0; }
    @media (prefers-color-scheme: dark) {
      svg { --paper: #14171a; --ink: #e8eaec; --muted: #a9b1b8; --copied: #123f66; --line: #6cb2f0; }
    }
    .paper { fill: var(--paper); }
    .copied { fill: var(--copied); }
    .line { fill: var(--line); }
    .text { fill: var(--ink); font: 13px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; }
    .words { fill: var(--ink); font: 14px system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
    .muted { fill: var(--muted); }
"""


def data_of(page: pathlib.Path) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    if not found:
        raise SystemExit(f"{page}: has no data; give a page of reprise-replay --report")
    return json.loads(found[1])


def passes_of(turn: dict) -> list[list[tuple[int, bool]]]:
    """The tokens of each pass, and whether they were copied. The first token is the prefill's."""
    passes, at = [[(turn["output"][0], False)]], 1
    for drawn in turn["passes"]:
        copied = drawn[5].count("a") if len(drawn) > 2 else 0
        tokens = turn["output"][at:at + drawn[0]]
        passes.append([(token, i < copied) for i, token in enumerate(tokens)])
        at += drawn[0]
    return passes


def lines_of(parts: list[tuple[str, bool]]) -> list[list[tuple[str, bool]]]:
    """The text in lines of at most COLUMNS characters, each a list of runs. Words are not divided if they fit."""
    lines: list[list[tuple[str, bool]]] = [[]]
    letters = [(letter, copied) for text, copied in parts for letter in text]
    at = 0
    while at < len(letters):
        end = at
        while end < len(letters) and letters[end][0] not in " \n":
            end += 1
        if COLUMNS - len(lines[-1]) < end - at <= COLUMNS:
            lines.append([])
        for letter in letters[at:end + 1]:
            full = len(lines[-1]) == COLUMNS
            if letter[0] == "\n" or full:
                lines.append([])
            if letter[0] != "\n" and not (full and letter[0] == " "):
                lines[-1].append(letter)
        at = end + 1
    return [[("".join(letter for letter, _ in run), copied) for copied, run in itertools.groupby(line, lambda one: one[1])]
            for line in lines]


def without_empty_lines(parts: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """The text without blanks at its beginning, without empty lines, and with no mark on blanks before a copy."""
    kept: list[tuple[str, bool]] = []
    for text, copied in parts:
        for letter in text:
            blank, last = letter.isspace(), kept[-1] if kept else ("\n", False)
            if letter == "\n" and last[0] == "\n":
                continue
            kept.append((letter, copied and not (blank and not last[1])))
    return kept


def drawn(lines: list[list[tuple[str, bool]]], words: str, title: str) -> str:
    top, height = 46, 46 + STEP * len(lines) + 36
    size = f'viewBox="0 0 {WIDTH} {height}" width="{2 * WIDTH}" height="{2 * height}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title">',
             f'  <title id="title">{html.escape(title)}</title>',
             f"  <style>{STYLE}  </style>",
             f'  <rect class="paper" width="{WIDTH}" height="{height}" rx="8"/>',
             f'  <rect class="copied" x="{MARGIN}" y="16" width="20" height="16"/>',
             f'  <rect class="line" x="{MARGIN}" y="31" width="20" height="2"/>',
             f'  <text class="words" x="{MARGIN + 28}" y="29">copied from earlier text and accepted</text>']
    for number, line in enumerate(lines):
        x, base = float(MARGIN), top + STEP * number + 14
        for text, copied in line:
            wide = len(text) * ADVANCE
            if copied:
                parts.append(f'  <rect class="copied" x="{x:.1f}" y="{base - 14}" width="{wide:.1f}" height="18"/>'
                             f'<rect class="line" x="{x:.1f}" y="{base + 3}" width="{wide:.1f}" height="1.5"/>')
            if text.strip():
                shown, at = text.strip(), x + (len(text) - len(text.lstrip())) * ADVANCE
                parts.append(f'  <text class="text" x="{at:.1f}" y="{base}" textLength="{len(shown) * ADVANCE:.1f}" '
                             f'lengthAdjust="spacingAndGlyphs">{html.escape(shown, quote=False)}</text>')
            x += wide
    parts += [f'  <text class="words muted" x="{MARGIN}" y="{height - 14}">{html.escape(words)}</text>', "</svg>"]
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=pathlib.Path, help="a page of reprise-replay --report")
    parser.add_argument("--session", help="id of a session that the page shows (default: the first)")
    parser.add_argument("--turn", type=int, default=1, help="its turn (default 1)")
    parser.add_argument("--first", type=int, default=0, help="the first pass that is drawn (default 0)")
    parser.add_argument("--lines", type=int, default=9, help="most lines of text (default 9)")
    options = parser.parse_args()
    data = data_of(options.page)
    shown = {data["sessions"][one["session"]][0]: one for one in data["shown"]}
    if options.session and options.session not in shown:
        raise SystemExit(f"--session {options.session}: the page shows {', '.join(shown)}")
    name = options.session or next(iter(shown))
    turns = shown[name]["turns"]
    if not 1 <= options.turn <= len(turns):
        raise SystemExit(f"--turn {options.turn}: the page shows {len(turns)} turns of {name}")
    passes = passes_of(turns[options.turn - 1])[options.first:]
    # As many whole passes as the lines hold.
    taken: list[tuple[int, bool]] = []
    count, lines = 0, []
    for one in passes:
        texts = [(data["words"].get(str(token), f"[{token}]"), copied) for token, copied in taken + one]
        texts = without_empty_lines(texts)
        more = lines_of(texts)
        if len(more) > options.lines:
            break
        taken, lines, count = taken + one, more, count + 1
    copied = sum(copied for _, copied in taken)
    words = f"{copied} of {len(taken)} tokens copied: {count} passes instead of {len(taken)}."
    print(drawn(lines, words, f"Output of a model with its copied tokens marked: {words}"))


if __name__ == "__main__":
    main()
