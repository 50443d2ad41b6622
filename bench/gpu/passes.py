# SPDX-License-Identifier: Apache-2.0
"""Decodes requests in an engine, which gives two functions: one adds a request, one runs a step."""

from __future__ import annotations

import functools
import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from script import Request

Clock = Callable[[], float]
Output = tuple[str, list[int], bool]  # of a step: the name of a request, its new tokens, whether it has ended


def decode(
    step: Callable[[], list[Output]], add: Callable[[str, Request], None], requests: list[Request], slots: int,
    show: Callable[..., None] = lambda **_: None, clock: Callable[[], float] = time.perf_counter,
) -> list[dict[str, Any]]:  # fmt: skip
    """Decodes all requests, as many at once as there are slots. Returns the figures and the output of each.

    Passes count while every slot decodes: not while a prompt runs, and not at the end, when slots are empty. A request
    is charged the whole time of such a pass. In a step without outputs, a pass has begun and none has ended.
    """
    made: list[dict[str, Any]] = [{"tokens": 0, "passes": 0, "seconds": 0.0, "output": []} for _ in requests]
    begun, done = 0, 0
    waiting: set[int] = set()  # requests without a token
    decoding: set[int] = set()
    last = clock()
    while done < len(requests):
        while begun < len(requests) and len(waiting) + len(decoding) < slots:
            add(str(begun), requests[begun])
            waiting.add(begun)
            begun += 1
        counted = set() if waiting or len(decoding) < slots else set(decoding)
        outputs = step()
        if not outputs:
            continue
        now = clock()
        for number in counted:
            made[number]["seconds"] += now - last
            made[number]["passes"] += 1
        for name, tokens, finished in outputs:
            number = int(name)
            made[number]["output"] += tokens
            made[number]["tokens"] += len(tokens) if number in counted else 0
            if tokens and number in waiting:
                waiting.remove(number)
                decoding.add(number)
            if finished:
                waiting.discard(number)
                decoding.discard(number)
                done += 1
                show(done=done)
        last = now
    return made


def say(**message: Any) -> None:
    print("@@" + json.dumps(message), flush=True)


def measure(
    step: Callable[[], list[Output]], add: Callable[[str, Request], None], warm: list[Request], requests: list[Request],
    options: dict[str, Any], forget: Callable[[], None] = lambda: None,
) -> None:  # fmt: skip
    """Decodes the warm-up and the chosen requests at each number of slots, and says their figures.

    `forget`: makes the engine forget the texts of all requests, which the next number of slots decodes again.
    """
    for slots in options["slots"]:
        chosen = some(requests, options["limit"], slots)
        decode(step, add, (warm * slots)[: max(slots, len(warm))], slots)
        forget()
        show = functools.partial(say, of=len(chosen), slots=slots)
        rows = decode(step, add, [requests[number] for number in chosen], slots, show)
        for number, row in zip(chosen, rows):
            row["differs"] = row.pop("output") != requests[number].output
            row.update(number=number, category=requests[number].category)
        say(slots=slots, requests=rows)


def some(requests: list[Request], limit: int, slots: int) -> list[int]:
    """Returns the indices of the first requests of each category: `limit`, or more to have four for each slot."""
    most = max(limit, -(-4 * slots // len({request.category for request in requests})))
    seen: Counter[str] = Counter()
    chosen = []
    for number, request in enumerate(requests):
        seen[request.category] += 1
        if seen[request.category] <= most:
            chosen.append(number)
    return chosen
