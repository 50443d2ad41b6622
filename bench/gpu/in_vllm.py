# SPDX-License-Identifier: Apache-2.0
"""Decodes requests in vLLM, in one way. measure.py starts this file as a process of its own for each way."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

from passes import Output, measure, say
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

    def step() -> list[Output]:
        return [(each.request_id, list(each.outputs[0].token_ids), each.finished) for each in engine.step()]

    measure(step, add, warm, requests, options)
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


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
