#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Drafter.draft(): the time of a call, by the length of the context.

The text repeats, and each call has the tokens that an engine would have committed: the accepted part of the draft and
one token more. Prints the median and the 99th percentile of all calls, for arrays that are read without a copy and for
arrays of 64-bit integers.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import reprise_decoding


def measure(length: int, calls: int, dtype: type) -> tuple[float, float, float]:
    """Returns the median and the 99th percentile of a call in microseconds, and the drafted tokens of a call."""
    words = np.random.default_rng(1).integers(0, 30000, size=(40, 25))
    order = np.random.default_rng(2).integers(0, len(words), size=(length + 17 * calls) // 25 + 2)
    text = words[order].reshape(-1).astype(dtype)
    drafter = reprise_decoding.Drafter(cost=reprise_decoding.CostCurve.linear(0.02))
    times, drafted, end = [], 0, length
    for _ in range(calls):
        ids = text[:end]
        before = time.perf_counter_ns()
        draft = drafter.draft(ids)
        times.append(time.perf_counter_ns() - before)
        drafted += len(draft)
        same = draft == text[end : end + len(draft)]
        end += 1 + (len(draft) if same.all() else int(np.argmin(same)))
    return *np.percentile(times[1:], (50, 99)) / 1000, drafted / calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1000, help="calls for each length (default: 1000)")
    arguments = parser.parse_args()
    print(f"{'ids':>6} {'tokens':>7} {'median us':>10} {'99% us':>8} {'drafted':>8}")
    for dtype in (np.int32, np.int64):
        for length in (1000, 8000, 32000):
            median, high, drafted = measure(length, arguments.calls, dtype)
            print(f"{np.dtype(dtype).name:>6} {length:7} {median:10.1f} {high:8.1f} {drafted:8.1f}")


if __name__ == "__main__":
    main()
