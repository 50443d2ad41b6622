#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures drafts in a tight loop of CUDA graphs, with recorded text as the picks. It needs a GPU.

The decoder is that of bench/profiles/measure_gpu.py, with random weights and one graph for each
number of rows and context. A pass copies ids in, replays a graph and copies picks out; the host
waits once. The committed tokens are those of the recording, whatever the picks are. So the
seconds are real, and the text is that of the recorded model.

The ways take turns, request by request, in a rotated order. With eight slots, each slot takes the
next request when its own is done, and a pass is as wide as its longest draft.

    loop.py --requests requests.json     in the shape of Llama-3-8B
    loop.py --device cpu --shape tiny    tries everything without graphs; its times mean nothing
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from make_requests import BUNDLED, choose, write
from script import InputError, Request, read

ROOT = Path(__file__).resolve().parent.parent.parent
START = time.monotonic()
ROWS = [1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17, 24, 32, 33]
CONTEXTS = [256, 512, 1024, 1536, 2048, 3072, 3584]
ROWS_OF_8 = [1, 2, 3, 4, 5, 6, 8, 9, 12, 16]
CONTEXTS_OF_8 = [512, 1024, 2048, 3584]

Figures = tuple[float, int, int]  # seconds inside the engine, passes, drafted rows


def say(*words: object) -> None:
    print(f"[{time.monotonic() - START:6.1f}]", *words, flush=True)


# ---- The engine ------------------------------------------------------------------------------------------------------


class Device:
    """A decoder and the memory of its cache. `gpu` is the module measure_gpu."""

    def __init__(self, gpu: Any, torch: Any, name: str, shape: str) -> None:
        self.gpu, self.torch = gpu, torch
        self.device, self.shape = gpu.device_for(name), gpu.SHAPES[shape]
        self.cuda = self.device.type == "cuda"
        dtype = torch.bfloat16 if self.cuda else torch.float32
        kernels = gpu.kernels_for(SimpleNamespace(attention="auto", kernels="auto"), self.shape, self.device, dtype)
        positions = max(CONTEXTS) + max(ROWS)
        self.decoder = gpu.Decoder(self.shape, self.shape.layers, positions, kernels, self.device, dtype, 1)
        numbers = self.shape.layers * self.shape.cache_per_token() * 8 * positions
        self.memory = torch.empty(numbers, device=self.device, dtype=dtype).normal_()
        self.pool = torch.cuda.graph_pool_handle() if self.cuda else None
        say(gpu.hardware(self.device), torch.__version__, kernels)


class Engine:
    """Passes of a number of sequences: one graph for each number of rows of a sequence, and context."""

    def __init__(self, on: Device, sequences: int, rows: list[int], contexts: list[int]) -> None:
        self.on, self.sequences, self.rows, self.contexts = on, sequences, rows, contexts
        self.widths = [next(row for row in rows if row >= width) for width in range(1, max(rows) + 1)]
        zeros = functools.partial(on.torch.zeros, dtype=on.torch.int64)
        pinned = {"pin_memory": True} if on.cuda else {}
        self.ids = {row: zeros((sequences, row), device=on.device) for row in rows}
        self.sent = {row: zeros((sequences, row), **pinned) for row in rows}
        self.received = {row: zeros((sequences, row), **pinned) for row in rows}
        self.view = {row: self.sent[row].numpy() for row in rows}
        self.passes: dict[tuple[int, int], Any] = {}
        for context in contexts:
            cache = on.gpu.Cache(on.memory, on.shape, on.shape.layers, sequences, context + max(rows))
            for row in rows:
                one = functools.partial(on.gpu.picks, on.decoder, self.ids[row], cache, context - 1)
                self.passes[row, context] = on.gpu.GraphPass(one, on.pool) if on.cuda else one

    def key(self, width: int, context: int) -> tuple[int, int]:
        """Returns the pass that runs `width` rows of each sequence at a context, or at the longest one."""
        return self.widths[width - 1], next((each for each in self.contexts if each >= context), self.contexts[-1])

    def run(self, lines: Sequence[Sequence[int]], context: int) -> float:
        """Runs the ids of each sequence. Returns the seconds, with both copies and the synchronisation."""
        begin = time.perf_counter()
        width, context = self.key(max(map(len, lines)), context)
        for into, line in zip(self.view[width], lines):
            into[: len(line)] = line
        chosen = self.passes[width, context]
        if self.on.cuda:
            self.ids[width].copy_(self.sent[width], non_blocking=True)
            chosen.graph.replay()
            self.received[width].copy_(chosen.picks, non_blocking=True)
            self.on.torch.cuda.synchronize()
        else:
            self.ids[width].copy_(self.sent[width] % self.on.shape.vocabulary)
            self.received[width].copy_(chosen())
        return time.perf_counter() - begin

    def curve(self, samples: int) -> list[tuple[int, int, int, float]]:
        """Measures run() at each shape, in shuffled rounds. Returns the medians as points of a cost curve."""
        import numpy as np

        order, keys = np.random.default_rng(1), list(self.passes)
        times: dict[tuple[int, int], list[float]] = {key: [] for key in keys}
        for _ in range(samples):
            for at in order.permutation(len(keys)):
                row, context = keys[at]
                times[row, context].append(self.run([[1] * row] * self.sequences, context))
        medians = {key: statistics.median(each) for key, each in times.items()}
        for context in self.contexts:
            say(f"{self.sequences} sequences, context {context}: ms by rows of each",
                *(f"{row}:{medians[row, context] * 1e3:.3f}" for row in self.rows))  # fmt: skip
        return [(self.sequences, context, width * self.sequences, medians[self.key(width, context)] * 1e9)
                for context in self.contexts for width in range(1, max(self.rows) + 1)]  # fmt: skip


# ---- Drafters --------------------------------------------------------------------------------------------------------


def longest_match(ids: Any, size: int, most: int, latest: bool) -> tuple[int, int]:
    """Returns the length of the longest suffix of ids[:size] that occurred before, and the index after the occurrence.

    `most`: tokens of a suffix. Of several occurrences: the latest or the earliest one.
    """
    import numpy as np

    found, best, after = np.flatnonzero(ids[: size - 1] == ids[size - 1]), 0, 0
    while found.size:
        best, after = best + 1, int(found[-1 if latest else 0]) + 1
        if best == most:
            break
        found = found[found >= best]
        found = found[ids[found - best] == ids[size - 1 - best]]
    return best, after


class Lookup:
    """The rule of vLLM's ngram method: the longest match of 2 to 5 tokens, its earliest occurrence, 5 tokens."""

    def draft(self, ids: Any, size: int) -> Any:
        length, after = longest_match(ids, size, 5, latest=False)
        return ids[after : min(size, after + 5)] if length >= 2 else ids[:0]

    def learn(self, drafted: int, accepted: int) -> None:
        """It learns nothing."""


class Adaptive:
    """The longest match of at most 16 tokens, its latest occurrence, and as many tokens as pay.

    The acceptance rate p is learned for each of six ranges of match lengths. The k-th token is drafted while p^k is
    more than `cost`, which is told: the cost of a row, in plain passes.
    """

    RANGES = (1, 2, 3, 5, 8, 16)  # the longest match of each

    def __init__(self, cost: float) -> None:
        self.cost, self.rates, self.at = cost, [0.3, 0.4, 0.5, 0.6, 0.7, 0.8], 0

    def draft(self, ids: Any, size: int) -> Any:
        length, after = longest_match(ids, size, self.RANGES[-1], latest=True)
        if not length:
            return ids[:0]
        self.at = next(at for at, most in enumerate(self.RANGES) if length <= most)
        worth = min(31, math.ceil(math.log(self.cost) / math.log(self.rates[self.at])) - 1)
        return ids[after : min(size, after + worth)]

    def learn(self, drafted: int, accepted: int) -> None:
        """Learns from the accepted tokens and the first rejected one."""
        rate = self.rates[self.at]
        for tested in range(min(accepted + 1, drafted)):
            rate += 0.03 * ((tested < accepted) - rate)
        self.rates[self.at] = min(0.985, max(0.02, rate))


# ---- One sequence ----------------------------------------------------------------------------------------------------


def plain(engine: Any, prompt: list[int], output: list[int]) -> Figures:
    inside, last = 0.0, prompt[-1]
    for at, token in enumerate(output):
        inside += engine.run([[last]], len(prompt) + at)
        last = token
    return inside, len(output), 0


def by_lookup(drafter: Lookup | Adaptive, engine: Any, prompt: list[int], output: list[int]) -> Figures:
    import numpy as np

    inside, passes, rows, size = 0.0, 0, 0, len(prompt)
    ids = np.array([*prompt, *output], np.int32)  # a drafter reads the committed ones only
    while size < len(ids):
        draft = drafter.draft(ids, size)[: len(ids) - size - 1]
        inside += engine.run([np.concatenate((ids[size - 1 : size], draft))], size)
        same = draft == ids[size : size + draft.size]
        accepted = draft.size if same.all() else int(same.argmin())
        drafter.learn(draft.size, accepted)
        size, passes, rows = size + accepted + 1, passes + 1, rows + draft.size
    return inside, passes, rows


def by_session(make: Callable[[], Any], engine: Any, prompt: list[int], output: list[int]) -> Figures:
    inside, passes, rows, at = 0.0, 0, 0, 0
    session = make()
    session.begin(prompt)
    while (step := session.plan(32, max_tokens=len(output))) is not None:
        inside += engine.run([step.batch], len(prompt) + at)
        done = session.commit(output[at : at + 1 + step.drafted])
        if done.tokens.tolist() != output[at : at + len(done.tokens)]:
            raise RuntimeError("the session has committed other tokens than the recorded ones")
        at, passes, rows = at + len(done.tokens), passes + 1, rows + step.drafted
    return inside, passes, rows


def table(results: list[dict[str, Any]], names: Iterable[str]) -> None:
    categories = list(dict.fromkeys(result["category"] for result in results))
    say(f"{len(results)} requests; tokens/s over plain: {', '.join(categories)}, geometric mean | worst request |"
        " tokens a pass of each | ms a pass inside the engine | share of the time outside | drafted a pass")  # fmt: skip
    for name in names:
        ratios, passes = [], []
        for category in categories:
            mine = [result for result in results if result["category"] == category]
            seconds = {way: sum(result[way]["seconds"] for result in mine) for way in ("plain", name)}
            ratios.append(seconds["plain"] / seconds[name])
            passes.append(sum(result["tokens"] for result in mine) / sum(result[name]["passes"] for result in mine))
        count = sum(result[name]["passes"] for result in results)
        wall, inside = (sum(result[name][key] for result in results) for key in ("seconds", "inside"))
        worst = min(result["plain"]["seconds"] / result[name]["seconds"] for result in results)
        drafted = sum(result[name]["rows"] for result in results) / count
        print(f"{name:9}", *(f"{ratio:.3f}" for ratio in ratios), f"{statistics.geometric_mean(ratios):.3f} |",
              f"{worst:.3f} |", *(f"{each:.2f}" for each in passes),
              f"| {inside / count * 1e3:.3f} | {1 - inside / wall:.4f} | {drafted:.2f}", flush=True)  # fmt: skip


# ---- Eight slots -----------------------------------------------------------------------------------------------------


def eight(engine: Any, drafter: Any, requests: list[Request], goal: int) -> dict[str, float]:
    """Decodes with eight slots until `goal` tokens. `drafter`: a BatchDrafter, or None for plain decoding."""
    import numpy as np

    begun, tokens, inside, passes = 0, 0, 0.0, 0
    slots: list[tuple[Any, int]] = [(np.zeros(0, np.int32), 0)] * 8  # ids, committed
    begin = time.perf_counter()
    while tokens < goal:
        for slot, (ids, size) in enumerate(slots):
            if size == len(ids):
                request = requests[begun % len(requests)]
                slots[slot], begun = (np.array(request.prompt + request.output, np.int32), len(request.prompt)), begun + 1
        drafts: dict[int, Any] = dict.fromkeys(range(8), ())
        if drafter:
            room = {slot: min(15, len(ids) - size - 1) for slot, (ids, size) in enumerate(slots)}
            drafts = drafter.draft({slot: ids[:size] for slot, (ids, size) in enumerate(slots)}, room)
        lines = [(ids[size - 1], *drafts[slot]) for slot, (ids, size) in enumerate(slots)]
        inside += engine.run(lines, max(size for _, size in slots))
        passes += 1
        for slot, (ids, size) in enumerate(slots):
            accepted = 0
            while accepted < len(drafts[slot]) and drafts[slot][accepted] == ids[size + accepted]:
                accepted += 1
            slots[slot], tokens = (ids, size + accepted + 1), tokens + accepted + 1
    seconds = time.perf_counter() - begin
    return {"tokens": tokens, "seconds": seconds, "inside": inside, "passes": passes, "rate": tokens / seconds}


# ---- The measurement -------------------------------------------------------------------------------------------------


def measure(options: argparse.Namespace, torch: Any, gpu: Any) -> None:
    import reprise_decoding as reprise

    warm, requests = requests_of(options.requests)
    end = START + options.seconds
    on = Device(gpu, torch, options.device, options.shape)
    engine = Engine(on, 1, ROWS, CONTEXTS)
    say("captured; reprise", reprise.__version__)
    told = reprise.CostCurve.points(engine.curve(8 if on.cuda else 1))
    kept, adaptive = reprise.Session(), Adaptive(options.cost)
    ways: dict[str, Callable[..., Figures]] = {
        "plain": plain,
        "told": functools.partial(by_session, lambda: reprise.Session(cost=told)),
        "learned": functools.partial(by_session, lambda: kept),
        "fresh": functools.partial(by_session, reprise.Session),  # learns anew in each request
        "lookup": functools.partial(by_lookup, Lookup()),
        "adaptive": functools.partial(by_lookup, adaptive),
    }
    for request in warm:
        for way in ways.values():
            way(engine, request.prompt, request.output[:200])
    groups: dict[str, list[Request]] = {}
    for request in requests:
        groups.setdefault(request.category, []).append(request)
    results: list[dict[str, Any]] = []
    names = list(ways)
    gc.disable()
    with options.out.open("w", encoding="utf-8") as out:
        for number in range(min(map(len, groups.values()))):
            for category, mine in groups.items():
                request = mine[number]
                line: dict[str, Any] = {"category": category, "prompt": len(request.prompt), "tokens": len(request.output)}
                turn = len(results) % len(names)
                for name in (names[turn:] + names[:turn])[:: 1 - number % 2 * 2]:
                    begin = time.perf_counter()
                    inside, passes, rows = ways[name](engine, request.prompt, request.output)
                    seconds = time.perf_counter() - begin
                    line[name] = {"seconds": seconds, "inside": inside, "passes": passes, "rows": rows}
                gc.collect()
                results.append(line)
                out.write(json.dumps(line) + "\n")
            out.flush()
            if time.monotonic() > end - options.seconds / 4:
                break
        table(results, names)
        say("acceptance rates of the adaptive lookup:", *(f"{rate:.2f}" for rate in adaptive.rates))
        engine = Engine(on, 8, ROWS_OF_8, CONTEXTS_OF_8)
        told = reprise.CostCurve.points(engine.curve(6 if on.cuda else 1))
        learned = reprise.BatchDrafter(8)
        eight(engine, learned, requests[:16], options.goal)
        for category, mine in groups.items():
            if time.monotonic() > end:
                break
            drafters = {"plain": None, "learned": learned, "told": reprise.BatchDrafter(8, cost=told)}
            made = {name: eight(engine, drafter, mine, options.goal) for name, drafter in drafters.items()}
            out.write(json.dumps({"slots": 8, "category": category, **made}) + "\n")
            out.flush()
            say("8 slots", category, *(
                f"| {name}: {one['rate'] / made['plain']['rate']:.3f} of plain, {one['rate']:.0f} tokens/s, "
                f"{one['inside'] / one['passes'] * 1e3:.2f} ms a pass, outside {1 - one['inside'] / one['seconds']:.3f}, "
                f"{one['tokens'] / one['passes'] / 8:.2f} tokens a slot a pass" for name, one in made.items()
            ))  # fmt: skip


def requests_of(file: Path | None) -> tuple[list[Request], list[Request]]:
    if file is not None:
        return read(file)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "requests.json"
        write(made, *choose(sorted(BUNDLED.glob("*.jsonl"))))
        return read(made)


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    head, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--shape", choices=("8b", "70b", "tiny"), default="8b", help="as in measure_gpu.py (default: 8b)")
    add("--device", default="cuda", help="cuda, cuda:N or cpu (default: cuda)")
    add("--requests", type=Path, metavar="FILE", help="of make_requests.py (default: the bundled traces)")
    add("--seconds", type=float, default=270, metavar="N",
        help="for everything; a quarter is kept for eight slots (default: 270)")  # fmt: skip
    add("--cost", type=float, default=0.005, metavar="X",
        help="of a row for the adaptive lookup, in plain passes (default: 0.005)")  # fmt: skip
    add("--goal", type=int, default=3000, metavar="N", help="tokens of a category with eight slots (default: 3000)")
    add("--out", type=Path, default=Path("loop.jsonl"), metavar="FILE", help="default: loop.jsonl")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    sys.path.append(str(ROOT / "bench/profiles"))
    sys.path.append(str(ROOT / "examples/python"))  # an installed package comes first
    try:
        import measure_gpu  # type: ignore[import-not-found]
        import torch
    except ImportError as missing:
        print(f"loop.py: {missing}; pip install torch", file=sys.stderr)
        return 2
    try:
        with torch.inference_mode():
            measure(options, torch, measure_gpu)
        return 0
    except (InputError, OSError, measure_gpu.BadInput) as error:
        print(f"loop.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
