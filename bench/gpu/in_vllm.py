# SPDX-License-Identifier: Apache-2.0
"""Decodes requests in vLLM, in one way. measure.py starts this file as a process of its own for each way."""

from __future__ import annotations

import functools
import json
import os
import sys
import tempfile
import time
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from script import Request, config, read

NGRAM = {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 2, "prompt_lookup_max": 5}
REPRISE = {"method": "custom_class", "model": "reprise_decoding.vllm.Proposer", "num_speculative_tokens": 32}
#: speculative_config of each way.
WAYS: dict[str, dict[str, Any] | None] = {
    "plain": None,
    "ngram-5": NGRAM,
    "ngram-10": {**NGRAM, "num_speculative_tokens": 10, "prompt_lookup_max": 4},
    "ngram_gpu-5": {**NGRAM, "method": "ngram_gpu"},
    "reprise": REPRISE,
}
DEFAULT = ["plain", "ngram-5", "ngram-10", "reprise"]
#: The strategy of reprise-replay that drafts as a way does.
REPLAYED = {"ngram-5": "vllm:min=2,max=5,k=5", "ngram_gpu-5": "vllm:min=2,max=5,k=5",
            "ngram-10": "vllm:min=2,max=4,k=10", "reprise": "ngram"}  # fmt: skip
ROOT = Path(__file__).resolve().parent.parent.parent

Clock = Callable[[], float]
Row = dict[str, Any]  # the figures of a request


def decode(
    engine: Any, add: Callable[[str, Request], None], requests: list[Request], slots: int,
    show: Callable[..., None] = lambda **_: None, clock: Callable[[], float] = time.perf_counter,
) -> list[dict[str, Any]]:  # fmt: skip
    """Decodes all requests, as many at once as there are slots. Returns the figures and the output of each.

    Passes count while every slot decodes: not while a prompt runs, and not at the end, when slots are empty. A request
    is charged the whole time of such a pass. Without an output of the engine, a pass has begun and none has ended.
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
        outputs = engine.step()
        if not outputs:
            continue
        now = clock()
        for number in counted:
            made[number]["seconds"] += now - last
            made[number]["passes"] += 1
        for output in outputs:
            number, tokens = int(output.request_id), list(output.outputs[0].token_ids)
            made[number]["output"] += tokens
            made[number]["tokens"] += len(tokens) if number in counted else 0
            if tokens and number in waiting:
                waiting.remove(number)
                decoding.add(number)
            if output.finished:
                waiting.discard(number)
                decoding.discard(number)
                done += 1
                show(done=done)
        last = now
    return made


def say(**message: Any) -> None:
    print("@@" + json.dumps(message), flush=True)


def prepare(options: dict[str, Any]) -> bool:
    """Sets the environment of vLLM. Returns whether there is a GPU."""
    import torch

    usual = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_LOGGING_LEVEL": "WARNING", "VLLM_USE_FLASHINFER_SAMPLER": "0",
             "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}  # fmt: skip
    cuda = torch.cuda.is_available()
    if not cuda:
        usual.update(VLLM_CPU_KVCACHE_SPACE="1", VLLM_CPU_OMP_THREADS_BIND="nobind")
    for name, value in usual.items():
        os.environ.setdefault(name, value)
    if options["runner"]:
        os.environ["VLLM_USE_V2_MODEL_RUNNER"] = str(options["runner"] - 1)
    if options["runner"] == 2 and not cuda:
        # Triton has no backend for processors, so its interpreter runs the kernels of the second runner.
        os.environ["TRITON_INTERPRET"] = "1"
        import triton.backends  # type: ignore[import-untyped]

        driver = type("Driver", (), {"is_active": staticmethod(lambda: True)})
        triton.backends.backends["cpu"] = types.SimpleNamespace(driver=driver, compiler=None)
    return cuda


def main(options: dict[str, Any]) -> None:
    cuda = prepare(options)
    sys.path.append(str(ROOT / "examples/python"))  # an installed package comes first
    import scripted
    import torch
    import vllm
    from vllm.sampling_params import RequestOutputKind

    if not cuda:
        repair_sampling()
    scripted.register()
    if (options["speculation"] or {}).get("method") == "custom_class":
        import reprise_decoding.vllm

        reprise_decoding.vllm.register()  # as vLLM does, if the package is installed
    file = Path(options["requests"])
    warm, requests = read(file)
    longest = max(len(each.prompt) + len(each.output) for each in warm + requests)
    settings: dict[str, Any] = {"speculative_config": options["speculation"]} if options["speculation"] else {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config(options["shape"], file)))
        llm = vllm.LLM(
            folder, load_format="dummy", skip_tokenizer_init=True, max_model_len=longest + 64,
            max_num_seqs=max(options["slots"]), enable_prefix_caching=False, enforce_eager=not cuda, **settings,
        )  # fmt: skip
    engine = llm.llm_engine
    second = getattr(engine.vllm_config, "use_v2_model_runner", False)
    scheduler = engine.vllm_config.scheduler_config
    say(setup={"vllm": vllm.__version__, "torch": torch.__version__, "runner": 2 if second else 1,
               "async": bool(getattr(scheduler, "async_scheduling", False)),
               "device": torch.cuda.get_device_name() if cuda else "cpu"})  # fmt: skip

    def add(name: str, request: Request) -> None:
        sampling = vllm.SamplingParams(
            temperature=options["temperature"], seed=int(name) if options["temperature"] else None, detokenize=False,
            max_tokens=len(request.output), ignore_eos=True, output_kind=RequestOutputKind.DELTA,
        )  # fmt: skip
        engine.add_request(name, {"prompt_token_ids": request.prompt}, sampling)

    for slots in options["slots"]:
        chosen = some(requests, options["limit"], slots)
        decode(engine, add, (warm * slots)[: max(slots, len(warm))], slots)
        show = functools.partial(say, of=len(chosen), slots=slots)
        rows = decode(engine, add, [requests[number] for number in chosen], slots, show)
        for number, row in zip(chosen, rows):
            row["differs"] = row.pop("output") != requests[number].output
            row.update(number=number, category=requests[number].category)
        say(slots=slots, requests=rows)
    sys.stdout.flush()
    os._exit(0)  # the engine would take seconds to end


def repair_sampling() -> None:
    """Repairs the temperatures of drafted rows on a processor (docs/engines.md, faults of engines)."""
    try:
        from vllm.utils import cpu_triton_utils
    except ImportError:  # a release without this code
        return

    def expand(output: Any, values: Any, ends: Any, replace_from: Any, replace_to: Any, *_: Any, **__: Any) -> None:
        counts = ends.diff(prepend=ends.new_zeros(1))
        output.copy_(values.masked_fill(values == replace_from, replace_to).repeat_interleave(counts))

    cpu_triton_utils._expand_kernel_impl = expand


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


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
