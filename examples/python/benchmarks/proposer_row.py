#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures reprise_decoding.vllm.Proposer: the time of a row, by the number of rows and the length of their texts.

The calls alternate with those of BatchDrafter.draft(), with all ids and with new ids alone (`after`). All three plan
the same drafts. Only the BatchDrafter with all ids has to compare texts. Prints medians in microseconds.
"""

from __future__ import annotations

import argparse
import itertools
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import reprise_decoding
import reprise_decoding.vllm

COST = 0.02


class Proposer(reprise_decoding.vllm.Proposer):
    options = {"cost": COST}


class Runner:
    """The object of vLLM that creates a proposer, and has the requests."""

    def __init__(self, rows: int, length: int, table: Any) -> None:
        names = [str(row) for row in range(rows)]
        self.requests = {name: types.SimpleNamespace() for name in names}
        self.input_batch = types.SimpleNamespace(token_ids_cpu=table, req_ids=names)
        self.proposer = Proposer(config(rows, length))

    def propose_draft_token_ids(self) -> None: ...


def config(rows: int, length: int) -> Any:
    return types.SimpleNamespace(
        scheduler_config=types.SimpleNamespace(max_num_seqs=rows),
        speculative_config=types.SimpleNamespace(num_speculative_tokens=16),
        model_config=types.SimpleNamespace(max_model_len=length),
    )


def measure(rows: int, length: int, calls: int) -> list[float]:
    """Returns the median time of a row of the proposer, of a batch with all ids, and of one with new ids."""
    words = np.random.default_rng(1).integers(0, 30000, size=(40, 25))
    longest = length + 17 * calls + 18
    order = np.random.default_rng(2).integers(0, len(words), size=(rows, longest // 25 + 1))
    table = words[order].reshape(rows, -1).astype(np.int32)
    runner = Runner(rows, longest + 1, table)
    proposer = runner.proposer
    batches = [reprise_decoding.BatchDrafter(rows, cost=COST, max_draft=16) for _ in range(2)]
    ends, before = np.full(rows, length), np.full(rows, length - 1)
    known: dict[int, int] = {}
    times: list[list[int]] = [[], [], []]
    orders = list(itertools.permutations(range(3)))
    for call in range(calls):
        sampled = [table[row, before[row] : ends[row]].tolist() for row in range(rows)]
        texts = {row: table[row, : ends[row]] for row in range(rows)}
        new = {row: table[row, known.get(row, 0) : ends[row]] for row in range(rows)}
        ways: list[Callable[[], Any]] = [
            lambda: proposer.propose(sampled, ends, table),  # noqa: B023
            lambda: batches[0].draft(texts),  # noqa: B023
            lambda: batches[1].draft(new, after=known),  # noqa: B023
        ]
        drafts: list[Any] = [None] * 3
        for way in orders[call % len(orders)]:  # a call leaves the texts in the cache for the next one
            begin = time.perf_counter_ns()
            drafts[way] = ways[way]()
            times[way].append(time.perf_counter_ns() - begin)
        known, before = {row: int(ends[row]) for row in range(rows)}, ends.copy()
        for row, draft in enumerate(drafts[0]):
            assert draft == drafts[1][row].tolist() == drafts[2][row].tolist()
            same = np.array(draft, np.int32) == table[row, ends[row] : ends[row] + len(draft)]
            ends[row] += 1 + (len(draft) if same.all() else int(np.argmin(same)))
    return [float(np.median(each[5:])) / 1000 / rows for each in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200, help="calls for each line, at least 6 (default: 200)")
    arguments = parser.parse_args()
    print(f"{'rows':>4} {'tokens':>6} {'Proposer':>9} {'BatchDrafter':>13} {'with after':>11}")
    for rows in (1, 8, 64, 256):
        for length in (2000, 8000, 60000) if rows < 256 else (8000,):
            proposer, full, after = measure(rows, length, arguments.calls)
            print(f"{rows:4} {length:6} {proposer:9.1f} {full:13.1f} {after:11.1f}", flush=True)


if __name__ == "__main__":
    main()
