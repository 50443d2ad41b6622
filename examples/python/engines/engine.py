# SPDX-License-Identifier: Apache-2.0
"""The contract between compare.py and an engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

#: The rows of the passes whose time is measured.
SWEEP = (1, 2, 3, 4, 5, 6, 8, 9, 11, 12, 14, 17)

#: The JSON schema of the tool calls that checks() writes under a grammar.
TOOL_CALL = {
    "type": "object",
    "properties": {
        "name": {"enum": ["get_weather", "find_train"]},
        "arguments": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 20}, "day": {"type": "string", "maxLength": 20}},
            "required": ["city", "day"],
        },
    },
    "required": ["name", "arguments"],
}


@dataclass
class Output:
    """The output of one way of decoding for one prompt."""

    tokens: list[int]
    drafted: list[int] = field(default_factory=list)  #: drafted rows of each pass, the pass of the prompt's end included
    seconds: float = 0.0  #: processor time, the prompt included where the engine runs it again
    first: float = 0.0  #: processor time up to the first token, the prompt included; 0: not measured


class Engine:
    """One model in one engine. The ways of decoding are "plain", "lookup" and "reprise", and those of `more`."""

    name = ""
    version = ""
    lookup = ""  #: the engine's own lookup with its settings; "": it has none
    more: tuple[str, ...] = ()
    eos = 2

    #: Arguments of decode() for sampling at T = 0.8, after seed().
    sampling: dict[str, Any] = {}  # noqa: RUF012

    def seed(self, number: int) -> None:
        """Seeds the random numbers of sampling."""
        raise NotImplementedError

    def encode(self, text: str) -> list[int]:
        raise NotImplementedError

    def prepare(self, ids: list[int]) -> None:
        """Runs the prompt, if the engine can keep it for all ways of decoding."""

    def decode(self, way: str, ids: list[int], count: int, **sampling: Any) -> Output:
        """Decodes up to `count` tokens or the end token, which is part of the output. Without `sampling`: greedily."""
        raise NotImplementedError

    def renew(self) -> None:
        """Makes an object of reprise that has seen nothing, for the way "fresh" of decode()."""
        raise NotImplementedError

    #: More ways of request() than those of decode().
    as_used: tuple[str, ...] = ()

    def request(self, way: str, ids: list[int], count: int) -> Output:
        """Decodes as users do it: with the settings of each way, and the prompt is part of the time."""
        begun = time.process_time()
        self.prepare(ids)
        prompt = time.process_time() - begun
        output = self.decode(way, ids, count)
        output.seconds += prompt
        return output

    def logits(self, ids: list[int]) -> Any:
        """Returns the logits after `ids`, where each token after the prompt is run alone, as in plain decoding."""
        raise NotImplementedError

    def logits_at(self, ids: list[int], plain: list[int], at: int) -> Any:
        """Returns the logits of plain decoding from which it has picked `plain[at]`."""
        logits = self.logits(ids)
        for end in range(1, at + 1):
            logits = self.logits(ids + plain[:end])
        return np.asarray(logits, np.float32)

    def passes(self, ids: list[int]) -> Callable[[int], float]:
        """Returns a function that runs a pass with so many rows after `ids`, and returns its processor time."""
        raise NotImplementedError

    def checks(self) -> Iterator[tuple[str, str, bool]]:
        """Yields the name of a check, what it showed, and whether it held: sampling and grammars."""
        yield from ()

    def costs(self, ids: list[int], rounds: int) -> dict[int, float]:
        """Returns the median processor time of a pass, by its rows. The row counts take turns."""
        run = self.passes(ids)
        times: dict[int, list[float]] = {rows: [] for rows in SWEEP}
        for rows in SWEEP:
            run(rows)
        for turn in range(rounds):
            for rows in SWEEP if turn % 2 else reversed(SWEEP):
                times[rows].append(run(rows))
        return {rows: median(seconds) for rows, seconds in times.items()}


@contextmanager
def timed(output: Output) -> Iterator[None]:
    begun = time.process_time()
    yield
    output.seconds = time.process_time() - begun


def ended(tokens: list[int], eos: int, count: int) -> list[int]:
    """Returns the tokens up to the first end token, at most `count`."""
    tokens = tokens[:count]
    return tokens[: tokens.index(eos) + 1] if eos in tokens else tokens
