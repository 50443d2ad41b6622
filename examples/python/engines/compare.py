#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decodes bundled prompts in one engine: plain, with the engine's own lookup, and with reprise at its defaults.

Compares the tokens with those of plain decoding, counts passes and drafted rows, and prices both by the engine's
measured cost of a pass. The exit status is 1 if tokens differ and the two logits are not within --tie of each other.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse  # noqa: E402
import atexit  # noqa: E402
import importlib  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from engine import Engine  # noqa: E402
from prompts import ALL, ANIMALS, prompts  # noqa: E402

ENGINES = {
    "llama-cpp-python": "run_llama_cpp",
    "transformers": "run_transformers",
    "mlx-lm": "run_mlx_lm",
    "onnxruntime-genai": "run_onnxruntime_genai",
    "vllm": "run_vllm",
}

#: Options of a drafter by --clock.
CLOCKS: dict[str, dict[str, Any]] = {
    "default": {}, "processor": {"clock": time.process_time_ns}, "wall": {"clock": time.perf_counter_ns},
}

#: Tokens of an output whose distribution is compared.
SAMPLED = 6


def disturb(count: int) -> None:
    """Starts programs that compute and sleep in turns of random length, until this program ends."""
    for number in range(count):
        code = (
            f"import random, time\nturns = random.Random({number})\nwhile True:\n"
            "    end = time.monotonic() + turns.expovariate(1 / 1.5)\n"
            "    while time.monotonic() < end: pass\n"
            "    time.sleep(turns.expovariate(1 / 1.5))"
        )
        atexit.register(subprocess.Popen([sys.executable, "-c", code]).kill)


def price(drafted: list[int], costs: dict[int, float]) -> float:
    """Returns the time of passes, by the measured times of passes with so many rows."""
    rows = sorted(costs)
    return float(np.interp(np.array(drafted) + 1, rows, [costs[each] for each in rows]).sum())


def difference(engine: Engine, ids: list[int], plain: list[int], other: list[int]) -> dict[str, Any] | None:
    """Returns where two outputs part, and how far apart the logits of the two tokens are; None if they are the same."""
    if plain == other:
        return None
    at = next((i for i, (a, b) in enumerate(zip(plain, other)) if a != b), min(len(plain), len(other)))
    found: dict[str, Any] = {"at": at, "plain": plain[at : at + 1], "other": other[at : at + 1], "gap": math.inf}
    if at < min(len(plain), len(other)):
        logits = engine.logits_at(ids, plain, at)
        found["gap"] = abs(float(logits[plain[at]] - logits[other[at]]))
        found["likeliest"] = [[int(token), float(logits[token])] for token in np.argsort(-logits)[:3]]
    return found


def ratios(results: list[dict[str, Any]], ways: list[str], costs: dict[int, float]) -> dict[str, dict[str, float]]:
    """Prints and returns the geometric means of plain / other prices, by category and way."""
    summary: dict[str, dict[str, float]] = {}
    for result in results:
        for way, values in result["ways"].items():
            values["price"] = price(values["drafted"], costs) / len(values["tokens"])
            # Outputs that differ can have other lengths, so prices are those of a token.
            values["ratio"] = result["ways"]["plain"]["price"] / values["price"]
    print("price, plain / other   " + "".join(f"{way:>10}" for way in ways))
    for category in dict.fromkeys(result["category"] for result in results):
        # The first prompt of all teaches the costs of passes.
        of = [result for result in results if result["category"] == category and result["number"] > 0]
        summary[category] = {way: mean([result["ways"][way]["ratio"] for result in of]) for way in ways}
        print(f"{category:15} {len(of):6} " + "".join(f"{summary[category][way]:10.3f}" for way in ways), flush=True)
    return summary


def mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("model", help="the file or folder that setup.sh has made for the engine")
    parser.add_argument("--categories", nargs="+", default=list(ALL), choices=ALL)
    parser.add_argument("--prompts", type=int, default=3, help="prompts of each category (default: 3)")
    parser.add_argument("--shortest", action="store_true", help="the shortest prompts, in place of the first ones")
    parser.add_argument("--tokens", type=int, default=96, help="tokens of each output (default: 96)")
    parser.add_argument("--tie", type=float, default=1e-3, help="largest gap of the logits of a near tie (default: 0.001)")
    parser.add_argument("--rounds", type=int, default=7, help="measured passes of each row count (default: 7)")
    parser.add_argument("--clock", choices=CLOCKS, default="default",
                        help="what reprise learns costs from (default: the default of its adapter)")
    parser.add_argument("--busy", type=int, default=0, metavar="N",
                        help="other programs that run at the same time, each in turns of 1.5 seconds (default: 0)")
    parser.add_argument("--pairs", type=int, default=0, help="alternating runs of the chat prompts, for processor times")
    parser.add_argument("--as-used", action="store_true",
                        help="compare processor times of whole requests with plain decoding as users run it, and end")
    parser.add_argument("--no-checks", action="store_true", help="leave out sampling and grammars")
    parser.add_argument("--samples", type=int, default=0, metavar="N",
                        help="compare the distributions of N sampled outputs, T = 0.8, with and without drafts")
    parser.add_argument("--json", help="write everything to this file")
    arguments = parser.parse_args()
    options = CLOCKS[arguments.clock]
    engine: Engine = importlib.import_module(ENGINES[arguments.engine]).make(arguments.model, options)
    disturb(arguments.busy)
    ways = ["plain"] + (["lookup"] if engine.lookup else []) + ["reprise", *engine.more]
    chosen = prompts(arguments.categories, arguments.prompts, arguments.shortest)
    print(f"{engine.name} {engine.version}, {arguments.model.rsplit('/', 1)[-1]}, clock: {arguments.clock}; "
          f"lookup: {engine.lookup or 'none'}", flush=True)
    if arguments.as_used:
        return as_used(engine, arguments, chosen, [*ways, *engine.as_used])
    failed, results = False, []
    for number, (category, name, text) in enumerate(chosen):
        ids = engine.encode(text)
        engine.prepare(ids)
        outputs = {way: engine.decode(way, ids, arguments.tokens) for way in ways}
        plain = outputs["plain"].tokens
        line = f"{name:15} {len(plain):3} tokens"
        result: dict[str, Any] = {"name": name, "category": category, "number": number, "prompt": len(ids), "ways": {}}
        for way, output in outputs.items():
            parted = difference(engine, ids, plain, output.tokens)
            result["ways"][way] = {**vars(output), "difference": parted}
            line += f" | {way}: {len(output.drafted)} passes, {sum(output.drafted)} drafted"
            if parted is not None:
                line += f", other text at {parted['at']}, gap {parted['gap']:.1e}"
                failed = failed or parted["gap"] > arguments.tie
        results.append(result)
        print(line, flush=True)
    costs = engine.costs(engine.encode(chosen[0][2]), arguments.rounds)
    print("cost of a pass by rows:", ", ".join(f"{rows}: {cost / costs[1]:.2f}" for rows, cost in costs.items()),
          f"({costs[1] * 1e3:.1f} ms)", flush=True)
    summary = ratios(results, ways[1:], costs)
    checks = []
    if not arguments.no_checks:
        for name, shown, held in engine.checks():
            print(f"{name}: {shown}")
            checks.append({"name": name, "shown": shown, "held": held})
            failed = failed or not held
    if arguments.samples:
        for way in ways[1:]:
            if way != "lookup":
                checks.append(distribution(engine, way, arguments.samples))
                failed = failed or not checks[-1]["held"]
    pairs = alternate(engine, arguments, ways) if arguments.pairs else []
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as out:
            json.dump({
                "engine": engine.name, "version": engine.version, "lookup": engine.lookup, "clock": arguments.clock,
                "costs": costs, "results": results, "summary": summary, "checks": checks, "pairs": pairs,
            }, out, indent=1)
    print("FAILED" if failed else "passed")
    return int(failed)


def as_used(engine: Engine, arguments: Any, chosen: list[tuple[str, str, str]], ways: list[str]) -> int:
    """Prints ratios of processor times of whole requests: the prompt and the first prompt of all are included."""
    failed, results = False, []
    for number, (category, name, text) in enumerate(chosen):
        ids = engine.encode(text)
        outputs = {way: engine.request(way, ids, arguments.tokens) for way in (ways if number % 2 else ways[::-1])}
        line = f"{name:15}"
        for way in ways:
            output = outputs[way]
            parted = difference(engine, ids, outputs["plain"].tokens, output.tokens)
            line += f" | {way}: {output.seconds:.2f} s"
            if parted is not None:
                line += f", other text at {parted['at']}, gap {parted['gap']:.1e}"
                failed = failed or parted["gap"] > arguments.tie
        results.append({"name": name, "category": category, "ways": {way: vars(outputs[way]) for way in ways}})
        print(line, flush=True)
    wide = max(map(len, ways)) + 2
    summary: dict[str, dict[str, list[float]]] = {}
    for field, shown in (("seconds", "processor time of whole requests"), ("first", "processor time up to the first token")):
        # Outputs that differ can have other lengths, so times of whole requests are those of a token.
        def of(result: dict[str, Any], way: str, field: str = field) -> float:
            output = result["ways"][way]
            return float(output[field]) / (len(output["tokens"]) if field == "seconds" else 1)

        if not of(results[0], "plain"):
            continue
        print(f"{shown}, plain / other\n{'':22}" + "".join(f"{way:>{wide}}" for way in ways[1:]))
        for category in dict.fromkeys(result["category"] for result in results):
            found = [result for result in results if result["category"] == category]
            means = [mean([of(each, "plain") / of(each, way) for each in found]) for way in ways[1:]]
            summary.setdefault(field, {})[category] = means
            print(f"{category:15} {len(found):6}" + "".join(f"{each:{wide}.3f}" for each in means))
        means = [mean([row[i] for row in summary[field].values()]) for i in range(len(ways) - 1)]
        print(f"{'all':22}" + "".join(f"{each:{wide}.3f}" for each in means), flush=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as out:
            json.dump({"engine": engine.name, "version": engine.version, "ways": ways, "results": results,
                       "summary": summary}, out, indent=1)
    print("FAILED" if failed else "passed")
    return int(failed)


def distribution(engine: Engine, way: str, count: int) -> dict[str, Any]:
    """Samples short outputs with and without drafts, and tests that their distributions are the same."""
    ids = engine.encode(ANIMALS)
    engine.prepare(ids)
    outputs: dict[str, list[tuple[int, ...]]] = {"plain": [], way: []}
    accepted = 0
    for number in range(count):
        for each, made in outputs.items():
            engine.seed(number * 2 + (each == way))  # the two samples are independent
            output = engine.decode(each, ids, SAMPLED, **engine.sampling)
            made.append(tuple((output.tokens + [-1] * SAMPLED)[:SAMPLED]))
            accepted += len(output.tokens) - len(output.drafted) if each == way else 0
    kinds = len(set(outputs["plain"]))
    chance = permuted(outputs["plain"], outputs[way])
    shown = f"{count} outputs of {SAMPLED} tokens, {kinds} texts, {accepted} accepted; p = {chance:.3f} that the distributions are the same"
    print(f"sampled, T = 0.8, {way}: {shown}", flush=True)
    return {"name": f"distribution, {way}", "shown": shown, "held": chance > 1e-3 and accepted > 0}


def permuted(one: list[tuple[int, ...]], other: list[tuple[int, ...]], rounds: int = 10_000) -> float:
    """Returns how often a random split of all outputs has at least the chi-squared statistic of this one."""
    _, kinds, counts = np.unique(np.array(one + other), axis=0, return_inverse=True, return_counts=True)
    kinds = kinds.ravel()
    rare = counts[kinds] < 10  # outputs that hardly ever occur count as one kind
    kinds = np.where(rare, len(counts), kinds)
    expected = np.bincount(kinds, minlength=len(counts) + 1) / 2
    expected[expected == 0] = 1
    random = np.random.default_rng(1)

    def statistic(chosen: Any) -> float:
        return float((((np.bincount(chosen, minlength=len(expected)) - expected) ** 2) / expected).sum())

    found = statistic(kinds[: len(one)]) - 1e-9
    return sum(statistic(random.permutation(kinds)[: len(one)]) >= found for _ in range(rounds)) / rounds


def alternate(engine: Engine, arguments: Any, ways: list[str]) -> list[float]:
    """Prints the ratio of processor times, plain / reprise, of alternating runs of the chat prompts."""
    ratios = []
    chosen = prompts(["chat"], arguments.prompts, arguments.shortest)[1:]
    for pair in range(arguments.pairs):
        _, _, text = chosen[pair % len(chosen)]
        ids = engine.encode(text)
        engine.prepare(ids)
        order = ["plain", "reprise"] if pair % 2 else ["reprise", "plain"]
        seconds = {way: engine.decode(way, ids, arguments.tokens).seconds for way in order}
        ratios.append(seconds["plain"] / seconds["reprise"])
    print("chat, processor time, plain / reprise:", " ".join(f"{ratio:.3f}" for ratio in ratios),
          f"geometric mean {mean(ratios):.3f}", flush=True)
    return ratios


if __name__ == "__main__":
    sys.exit(main())
