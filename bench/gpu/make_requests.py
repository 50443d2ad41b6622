#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chooses requests from recorded traces, for measure.py and loop.py.

Each turn of a session is a request: its prompt is the whole text before the output. The turns
with an output and a prompt within the bounds are drawn at random, for each category. The warm-up
has requests of its own.

The traces are files of docs/formats.md; bench/replay/to_trace.py converts other recordings.
--trace writes the chosen requests as such a file, so that reprise-replay counts passes of the
same requests.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from script import InputError, Request, Script

BUNDLED = Path(__file__).resolve().parent.parent / "traces"


def turns(files: Sequence[Path]) -> list[Request]:
    """Returns each turn of each session as a request. Of turns with the same prompt, the first."""
    found: dict[tuple[int, ...], Request] = {}
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise InputError(f"{file} cannot be read: {error.strerror}") from error
        for number, line in enumerate(lines, 1):
            try:
                session = json.loads(line)
                context: list[int] = []
                for turn in session["turns"]:
                    context = context + turn["prompt"]
                    found.setdefault(tuple(context), Request(session.get("category", file.stem), context, turn["output"]))
                    context = context + turn["output"]
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(f"{file}:{number}: {error!r}; bench/replay/to_trace.py writes such files") from error
    return list(found.values())


def choose(
    files: Sequence[Path], each: int = 16, warm: int = 4, shortest: int = 64, longest: int = 700, context: int = 7000,
    seed: int = 618,
) -> tuple[list[Request], list[Request]]:  # fmt: skip
    """Returns the requests of the warm-up and, in a random order, at most `each` of each category."""
    order = random.Random(seed)
    groups: dict[str, list[Request]] = {}
    for request in turns(files):
        if shortest <= len(request.output) <= longest and 0 < len(request.prompt) <= context:
            groups.setdefault(request.category, []).append(request)
    for group in groups.values():
        order.shuffle(group)
    first: list[Request] = []
    while len(first) < warm and (largest := max(groups.values(), key=len, default=[]))[1:]:
        first.append(largest.pop())
    chosen = [request for group in groups.values() for request in group[:each]]
    if not first or not chosen:
        raise InputError(f"only {len(chosen)} turns have {shortest} to {longest} output tokens: give other bounds or traces")
    order.shuffle(chosen)
    Script(first + chosen)
    return first, chosen


def write(file: Path, warm: list[Request], requests: list[Request]) -> None:
    content = {"warm": [asdict(each) for each in warm], "requests": [asdict(each) for each in requests]}
    file.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")


def write_trace(file: Path, requests: list[Request]) -> None:
    with file.open("w", encoding="utf-8") as out:
        for number, each in enumerate(requests):
            turn = {"prompt": each.prompt, "output": each.output}
            line = {"id": f"{each.category}/{number}", "category": each.category, "turns": [turn]}
            out.write(json.dumps(line, separators=(",", ":")) + "\n")


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    head, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("traces", nargs="*", type=Path, metavar="TRACE", help="default: the bundled traces")
    add("--out", type=Path, default=Path("requests.json"), metavar="FILE", help="default: requests.json")
    add("--trace", type=Path, metavar="FILE", help="also write the requests as a trace")
    add("--each", type=int, default=16, metavar="N", help="requests of each category (default: 16)")
    add("--warm", type=int, default=4, metavar="N", help="requests of the warm-up (default: 4)")
    add("--shortest", type=int, default=64, metavar="N", help="output tokens at least (default: 64)")
    add("--longest", type=int, default=700, metavar="N", help="output tokens at most (default: 700)")
    add("--context", type=int, default=7000, metavar="N", help="prompt tokens at most (default: 7000)")
    add("--seed", type=int, default=618, metavar="N", help="of the draw (default: 618)")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    files = options.traces or sorted(BUNDLED.glob("*.jsonl"))
    try:
        warm, requests = choose(files, options.each, options.warm, options.shortest, options.longest, options.context,
                                options.seed)  # fmt: skip
        write(options.out, warm, requests)
        if options.trace:
            write_trace(options.trace, requests)
    except (InputError, OSError) as error:
        print(f"make_requests.py: {error}", file=sys.stderr)
        return 2
    categories = [each.category for each in requests]
    counts = ", ".join(f"{categories.count(name)} {name}" for name in dict.fromkeys(sorted(categories)))
    tokens = sum(len(each.output) for each in requests)
    print(f"{options.out}: {counts}; {tokens} output tokens; {len(warm)} requests for the warm-up")
    return 0


if __name__ == "__main__":
    sys.exit(main())
