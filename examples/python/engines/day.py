#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A day of requests in one engine: what an object that is kept knows in the second half, which a new one does not.

Bundled prompts of several kinds come again in a random order. One object of reprise decodes all requests. From half of
the day on, each request is also decoded by an object made for it alone, before or after in turns, so that both share
the noise of the machine. Prints the ratios of processor times of a token and of tokens per pass, without the prompt.
The exit status is 1 if two outputs differ, and the two logits are not within --tie of each other.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
from typing import Any

import compare  # before numpy, because it sets the threads of the engines
from engine import Engine
from prompts import ALL, prompts

WAYS = ("kept", "fresh")
ENGINES = {
    "llama-cpp-python": "run_llama_cpp",
    "llama-server": "run_llama_server",
    "transformers": "run_transformers",
    "vllm": "run_vllm",
}


def ratios(results: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Prints and returns the ratios of the requests that both objects have decoded, by kind and by prompt."""
    groups = {"all": results}
    for result in results:
        groups.setdefault(result["kind"], []).append(result)
        groups.setdefault("prompt seen before" if result["seen"] else "new prompt", []).append(result)
    print(f"{'':20} requests  time of a token, fresh / kept   tokens per pass: kept   fresh   kept / fresh")
    summary = {}
    for name, group in groups.items():
        tokens, passes, seconds = (
            {way: sum(of(each[way]) for each in group) for way in WAYS}
            for of in (lambda it: len(it["tokens"]), lambda it: len(it["drafted"]), lambda it: it["seconds"])
        )
        per_pass = {way: tokens[way] / passes[way] for way in WAYS}
        time = seconds["fresh"] / tokens["fresh"] * tokens["kept"] / seconds["kept"]
        summary[name] = {"requests": len(group), "time": time, "tokens_per_pass": per_pass["kept"] / per_pass["fresh"]}
        print(f"{name:20} {len(group):8} {time:30.3f} {per_pass['kept']:23.2f} {per_pass['fresh']:7.2f} "
              f"{summary[name]['tokens_per_pass']:14.3f}", flush=True)
    return summary


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=ENGINES, metavar="ENGINE", help=f"one of {', '.join(ENGINES)}")
    parser.add_argument("model", help="the file or folder that setup.sh has made for the engine")
    parser.add_argument("--server", default="llama-server", help="the program llama-server, built by "
                        "examples/llama_server/build.py (default: llama-server in PATH)")
    parser.add_argument("--kinds", nargs="+", default=["chat", "code-edit", "summary"], choices=ALL, metavar="KIND",
                        help=f"kinds of prompts, of {', '.join(ALL)} (default: chat code-edit summary)")
    parser.add_argument("--requests", type=int, default=100, help="requests of the day (default: 100)")
    parser.add_argument("--tokens", type=int, default=48, help="tokens of each output (default: 48)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the order of the prompts (default: 1)")
    parser.add_argument("--tie", type=float, default=1.0,
                        help="largest gap of the logits of a near tie (default: 1, for quantized weights)")
    parser.add_argument("--json", help="write everything to this file")
    parser.add_argument("--trace", help="write the recorded day to this file, for reprise-replay; "
                        "its first half has the category `before`")
    arguments = parser.parse_args()
    if arguments.requests < 2 or arguments.tokens < 1:
        parser.error("--requests must be 2 or more, and --tokens 1 or more")
    options = {"server": arguments.server} if arguments.engine == "llama-server" else {}
    engine: Engine = importlib.import_module(ENGINES[arguments.engine]).make(arguments.model, options)
    known, order = prompts(arguments.kinds, sys.maxsize), random.Random(arguments.seed)
    order.shuffle(known)
    day = [known[number % len(known)] for number in range(arguments.requests)]
    order.shuffle(day)
    print(f"{engine.name} {engine.version}, {arguments.model.rsplit('/', 1)[-1]}: {len(day)} requests of "
          f"{len(known)} prompts, {arguments.tokens} tokens each, seed {arguments.seed}", flush=True)
    failed, results, seen, trace = 0, [], set(), []
    for number, (kind, name, text) in enumerate(day):
        ids = engine.encode(text)
        second = number >= len(day) // 2
        if second:
            engine.renew()
        engine.prepare(ids)
        if not second:
            kept = engine.decode("reprise", ids, arguments.tokens)
        else:
            outputs = {way: engine.decode("reprise" if way == "kept" else way, ids, arguments.tokens)
                       for way in (WAYS if number % 2 else WAYS[::-1])}
            kept = outputs["kept"]
            parted = compare.difference(engine, ids, outputs["fresh"].tokens, outputs["kept"].tokens)
            failed += parted is not None and parted["gap"] > arguments.tie
            results.append({"name": name, "kind": kind, "number": number, "seen": name in seen, "difference": parted,
                            **{way: vars(output) for way, output in outputs.items()}})
        seen.add(name)
        turn = {"prompt": ids, "output": [token for token in kept.tokens if token != engine.eos]}
        trace.append({"id": f"{number}", "category": kind if second else "before", "turns": [turn]})
        if (number + 1) % 20 == 0:
            print(f"{number + 1} requests", flush=True)
    summary = ratios(results)
    print(f"{sum(each['difference'] is not None for each in results)} outputs differ, {failed} without a near tie")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as out:
            json.dump({"engine": engine.name, "version": engine.version, "tokens": arguments.tokens,
                       "seed": arguments.seed, "results": results, "summary": summary}, out, indent=1)
    if arguments.trace:
        with open(arguments.trace, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(session, separators=(",", ":")) + "\n" for session in trace)
    print("FAILED" if failed else "passed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
