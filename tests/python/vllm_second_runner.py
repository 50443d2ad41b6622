#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the second model runner of a real vLLM on a processor, with a small random Llama, plain and with reprise.

The runner needs Triton, whose builds for processors are on no registry. So Triton's interpreter runs its kernels: slowly,
but these are the kernels and the runner of the engine. The exit status is 1 if texts differ, or if a setting of a request
has no effect. The environment needs vLLM's build for processors, Triton, transformers, and reprise-decoding.

    vllm_second_runner.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tiny_llama

PROPOSER = {"method": "custom_class", "model": "reprise_decoding.vllm.Proposer", "num_speculative_tokens": 8}
LIST = [*range(3, 40), *range(3, 30)]
OTHER = [50, 51, 52, 53, 54, 55, 56, 57] * 9  # more than one part of a prompt has


def passes() -> list[list[dict[str, Any]]]:
    """The batches of requests, one after the other. The last ones know what the first ones have written."""
    one = {"ids": LIST, "count": 40}
    return [
        [one],
        [one, {"ids": OTHER, "count": 20}, {"ids": LIST[5:60], "count": 30}, {"ids": OTHER[3:], "count": 9}],
        [one],
        [{**one, "extra": {"reprise_enabled": False}}],
        [{**one, "extra": {"reprise_max_draft": 2}}],
        [{**one, "salt": "a"}],
        [{**one, "salt": "a"}],
        [{**one, "salt": "b"}],
        *([{"ids": [9, 8, 7], "count": 2, "salt": salt}] for salt in "cdef"),
        [{"ids": [20, 3, 30, 11, 5], "count": 30, "extra": {"reprise_prediction": "own output"}}],
        [{"ids": LIST, "count": 20, "temperature": 0.7}],
    ]


def work(folder: str, speculation: str) -> None:
    """A process with an engine: prints the tokens and the counts of all requests."""
    sys.path.append(str(Path(__file__).resolve().parents[2] / "bench/gpu"))
    from in_vllm import prepare

    prepare({"runner": 2})
    from vllm import LLM, SamplingParams

    drafts = json.loads(speculation)
    counted = {"speculative_config": drafts, "per_request_spec_decode_metrics": "summary"} if drafts else {}
    llm = LLM(
        folder, skip_tokenizer_init=True, dtype="float32", max_model_len=256, enforce_eager=True, max_num_seqs=3,
        max_num_batched_tokens=64, disable_log_stats=False, gpu_memory_utilization=0.3, **counted,
    )  # fmt: skip
    own: list[int] = []
    for batch in passes():
        prompts, settings = [], []
        for request in batch:
            extra = dict(request.get("extra", {}))
            if "reprise_prediction" in extra:  # the output of the same request without it
                alone = SamplingParams(temperature=0, max_tokens=request["count"], detokenize=False, ignore_eos=True)
                prompt = {"prompt_token_ids": request["ids"], "cache_salt": "own"}
                own = list(llm.generate([prompt], alone, use_tqdm=False)[0].outputs[0].token_ids)
                extra["reprise_prediction"] = own
            salt = {"cache_salt": request["salt"]} if "salt" in request else {}
            prompts.append({"prompt_token_ids": request["ids"], **salt})
            settings.append(SamplingParams(
                temperature=request.get("temperature", 0), seed=5, max_tokens=request["count"], detokenize=False,
                ignore_eos=True, extra_args=extra or None,
            ))  # fmt: skip
        for made in llm.generate(prompts, settings, use_tqdm=False):
            output = made.outputs[0]
            counts = getattr(output, "spec_decode_metrics", None)
            accepted = sum(i * n for i, n in enumerate(counts.histogram)) if counts else 0
            longest = max((i for i, n in enumerate(counts.histogram) if n), default=0) if counts else 0
            print("@@" + json.dumps({"tokens": list(output.token_ids), "accepted": accepted, "longest": longest}), flush=True)


def run(folder: str, speculation: Any) -> Iterator[dict[str, Any]]:
    command = [sys.executable, __file__, "--work", folder, json.dumps(speculation)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"the engine has failed: {done.stderr[-3000:]}")
    return (json.loads(line[2:]) for line in done.stdout.splitlines() if line.startswith("@@"))


def main() -> int:
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:4])
        return 0
    with tempfile.TemporaryDirectory() as folder:
        tiny_llama.write(folder, 256)
        plain, drafted = list(run(folder, None)), list(run(folder, PROPOSER))
    requests = [request for batch in passes() for request in batch]
    failed = 0

    def check(name: str, held: bool, shown: Any) -> None:
        nonlocal failed
        failed += not held
        print(f"{'held' if held else 'FAILED'}: {name}: {shown}", flush=True)

    for number, (request, one, other) in enumerate(zip(requests, plain, drafted)):
        if not request.get("temperature"):
            check(f"request {number} has the text of plain decoding", one["tokens"] == other["tokens"],
                  f"{len(one['tokens'])} tokens, {other['accepted']} of them drafted")
    first, again, off, short, a, a_again, b = (drafted[i] for i in (0, 5, 6, 7, 8, 9, 10))
    check("a later request knows the text", again["accepted"] > first["accepted"], (first["accepted"], again["accepted"]))
    check("reprise_enabled", off["accepted"] == 0, off["accepted"])
    check("reprise_max_draft", short["longest"] == 2, short["longest"])
    check("a salt knows its text", a_again["accepted"] > a["accepted"], (a["accepted"], a_again["accepted"]))
    check("a salt knows no other text", a["accepted"] == b["accepted"] == first["accepted"], (a["accepted"], b["accepted"]))
    check("a prediction", drafted[15]["accepted"] >= 24, drafted[15]["accepted"])
    print("FAILED" if failed else "passed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
