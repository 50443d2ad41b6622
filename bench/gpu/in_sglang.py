# SPDX-License-Identifier: Apache-2.0
"""Decodes requests in SGLang, in one way. measure.py starts this file as a process of its own for each way."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from passes import Output, measure, say
from script import Request, config, read

#: Arguments of the engine for each way.
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ngram": {"speculative_algorithm": "NGRAM"},
    "ngram-chains": {"speculative_algorithm": "NGRAM", "speculative_ngram_max_bfs_breadth": 1},
    "reprise": {"speculative_algorithm": "REPRISE"},
    "reprise-chains": {"speculative_algorithm": "REPRISE", "speculative_ngram_max_bfs_breadth": 1},
}
DEFAULT = ["plain", "ngram", "reprise", "reprise-chains"]
#: The strategy of reprise-replay that drafts as a way does.
REPLAYED = {"reprise": "ngram", "reprise-chains": "ngram"}
HERE = Path(__file__).resolve().parent


class Steps:
    """The steps of SGLang's scheduler, which runs in another process and sends a message after each."""

    def __init__(self, engine: Any, temperature: float) -> None:
        self._engine, self._temperature = engine, temperature
        self._messages: asyncio.Queue[list[Output]] = asyncio.Queue()
        self._added = 0
        self._tasks: set[asyncio.Task[None]] = set()
        handle = engine.tokenizer_manager._handle_batch_output

        async def handled(message: Any) -> None:
            rows = zip(message.rids, message.output_ids, message.finished_reasons)
            self._messages.put_nowait([(name.partition(":")[2], list(new), bool(end)) for name, new, end in rows])
            await handle(message)

        engine.tokenizer_manager._handle_batch_output = handled

    def add(self, name: str, request: Request) -> None:
        self._added += 1
        task = self._engine.loop.create_task(self._run(f"{self._added}:{name}", request))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def _run(self, name: str, request: Request) -> None:
        sampling = {"temperature": self._temperature, "max_new_tokens": len(request.output), "ignore_eos": True}
        if self._temperature:
            sampling["sampling_seed"] = int(name.partition(":")[2])
        async for _ in await self._engine.async_generate(
            input_ids=request.prompt, sampling_params=sampling, rid=name, stream=True
        ):
            pass

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if error := task.exception():
            raise SystemExit(f"a request failed: {error!r}")

    def forget(self) -> None:
        """Flushes the caches, which SGLang does as soon as it knows that no request runs. NGRAM's corpus is one."""
        for _ in range(100):
            if self._engine.flush_cache().success:
                return
            time.sleep(0.1)
        raise SystemExit("SGLang has not flushed its caches within 10 s: it says that a request runs")

    def step(self) -> list[Output]:
        found: list[Output] = self._engine.loop.run_until_complete(self._messages.get())
        return found


def prepare(folder: str) -> bool:
    """Sets the environment of SGLang's processes. Returns whether there is a GPU."""
    import torch

    cuda = torch.cuda.is_available()
    paths = [str(HERE)]
    os.environ.update(SGLANG_EXTERNAL_MODEL_PACKAGE="sglang_model", HF_HUB_OFFLINE="1")
    if not cuda:  # PyPI has no kernels for processors
        sys.path.append(str(HERE.parent.parent / "tests/python"))
        import sglang_on_cpu  # type: ignore[import-not-found]

        paths += sglang_on_cpu.prepare(Path(folder))
    sys.path[:0] = paths
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])
    return cuda


def main(options: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cuda = prepare(folder)
        import sglang
        import torch

        file = Path(options["requests"])
        warm, requests = read(file)
        longest = max(len(each.prompt) + len(each.output) for each in warm + requests)
        most = max(options["slots"])
        (Path(folder) / "config.json").write_text(json.dumps(config(options["shape"], file)))
        settings: dict[str, Any] = dict(options["speculation"])
        if not cuda:
            settings.update(device="cpu", attention_backend="torch_native", disable_cuda_graph=True,
                            mem_fraction_static=0.3, max_total_tokens=most * (longest + 256))  # fmt: skip
        engine = sglang.Engine(
            model_path=folder, load_format="dummy", skip_tokenizer_init=True, context_length=longest + 64,
            max_running_requests=most, disable_radix_cache=True, chunked_prefill_size=-1, random_seed=1,
            log_level="warning", **settings,
        )  # fmt: skip
        arguments = engine.server_args
        say(setup={"sglang": sglang.__version__, "torch": torch.__version__,
                   "async": not arguments.disable_overlap_schedule,
                   "device": torch.cuda.get_device_name() if cuda else "cpu"})  # fmt: skip
        steps = Steps(engine, options["temperature"])
        measure(steps.step, steps.add, warm, requests, options, steps.forget)
        engine.shutdown()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
