# SPDX-License-Identifier: Apache-2.0
"""Prints results of measure_setups.sh as the tables of setups.md.

    python3 setups_table.py FILE.json...

FILE.json is a curve of reprise-llama --profile; if FILE.flips.json is there, it is in the second table.
"""

import json
import sys
from pathlib import Path

DRAFTED = (1, 3, 4, 7, 8, 15, 31)


class BadFile(Exception):
    """A sentence that says which file is wrong."""


def read(path: Path, what: str, key: str) -> dict:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if key in value:
            return value
    except (OSError, ValueError) as error:
        raise BadFile(f"{path}: {error}; give {what}") from error
    raise BadFile(f"{path}: has no member {key}; give {what}")


def row(cells: list) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def costs(name: str, curve: dict) -> list[str]:
    """One line for each context: the plain pass, then the passes with k drafted tokens relative to it."""
    lines = []
    times = {(p["context"], p["rows"]): p["ns"] for p in curve["points"] if p["sequences"] == 1}
    for context in sorted({context for context, _ in times}):
        plain = times[context, 1]
        cells = [name, curve["threads"], f"{context:,}", f"{plain / 1e6:.1f}", f"{1e9 / plain:.0f}"]
        for drafted in DRAFTED:
            ns = times.get((context, drafted + 1))
            cells.append("" if ns is None else f"{ns / plain:.2f}")
        lines.append(row(cells))
    return lines


def independence(name: str, flips: dict) -> str:
    """One line: the worst of all passes of more than one row."""
    wider = [width for width in flips["widths"] if width["rows"] > 1]
    worst = max(wider, key=lambda width: width["flips"])
    difference = max(width["largest_difference"] for width in wider)
    lead = max(width["largest_margin"] for width in wider)
    return row(
        [name, flips["threads"], f"{flips['positions']:,}", worst["flips"], f"{lead:.4g}", f"{difference:.4g}"]
    )


def tables(paths: list[Path]) -> str:
    heads = ["set-up", "threads", "context", "plain pass, ms", "plain, tokens/s"] + [f"k = {k}" for k in DRAFTED]
    lines = [row(heads), "|" + "---|" * len(heads)]
    second = ["set-up", "threads", "positions", "flips, worst width", "largest lead at a flip", "largest difference"]
    more = [row(second), "|" + "---|" * len(second)]
    for path in paths:
        name = path.stem.partition("-cpu-")[0]
        lines += costs(name, read(path, "a curve of reprise-llama --profile", "points"))
        flips = path.with_suffix(".flips.json")
        if flips.exists():
            more.append(independence(name, read(flips, "a file of reprise-llama --flips --format json", "widths")))
    return "\n".join(lines + [""] + more) + "\n"


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print(tables([Path(argument) for argument in sys.argv[1:]]), end="")
    except BadFile as problem:
        print(f"setups_table.py: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
