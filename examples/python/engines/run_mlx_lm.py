# SPDX-License-Identifier: Apache-2.0
"""mlx-lm, for compare.py. It has no lookup of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import mlx.core as mx
import numpy as np
from engine import Engine, Output, timed
from mlx_lm import load
from mlx_lm.generate import generate_step as plain_step
from mlx_lm.models.cache import make_prompt_cache, trim_prompt_cache
from mlx_lm.sample_utils import make_sampler
from reprise_decoding import Session
from reprise_decoding.mlx_lm import generate_step


class MlxLm(Engine):
    name = "mlx-lm"
    version = f"{version('mlx-lm')} with mlx {version('mlx')}"

    sampling = {"sampler": make_sampler(temp=0.8)}  # noqa: RUF012

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        self._model, self._tokenizer = load(folder)
        self._model.set_dtype(mx.float32)
        self._session = Session(**options)
        self._rows: list[int] = []
        self._cache: Any = None
        self._cached: list[int] = []

    def seed(self, number: int) -> None:
        mx.random.seed(number)

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def prepare(self, ids: list[int]) -> None:
        self._cache = make_prompt_cache(self._model)
        self._model(mx.array(ids[:-1])[None], cache=self._cache)
        mx.eval([layer.state for layer in self._cache])
        self._cached = ids[:-1]

    def _counted(self, inputs: Any, *, cache: Any, **named: Any) -> Any:
        if cache[0].offset == 0 and inputs.shape[1] == len(self._cached):
            # The prompt has been run. A copy of its cache saves minutes, because rows are expensive on a processor.
            for layer, known in zip(cache, self._cache):
                layer.state = [mx.array(each) if isinstance(each, mx.array) else each for each in known.state]
            return None
        self._rows.append(int(inputs.shape[1]))
        return self._model(inputs, cache=cache, **named)

    def decode(self, way: str, ids: list[int], count: int, **sampling: Any) -> Output:
        if self._cached != ids[:-1]:
            self.prepare(ids)
        # Both loops run the last token of the prompt in their first pass, and the tokens before it in one chunk.
        options = {"max_tokens": count, "prefill_step_size": 2048, "prompt_cache": make_prompt_cache(self._model)}
        self._rows.clear()
        output = Output([])
        with timed(output):
            if way == "plain":
                steps = plain_step(mx.array(ids), self._counted, **options, **sampling)
            else:
                steps = generate_step(ids, self._counted, session=self._session, **options, **sampling)
            for token, _ in steps:
                output.tokens.append(int(token))
                if int(token) == self.eos:
                    break
        # The plain loop starts a pass ahead of the token that it yields.
        rows = self._rows[: len(output.tokens)] if way == "plain" else self._rows
        output.drafted = [each - 1 for each in rows]
        return output

    def logits(self, ids: list[int]) -> Any:
        if self._cached != ids[:-1]:
            self.prepare(ids)
        made = self._model(mx.array(ids[-1:])[None], cache=self._cache)
        self._cached = ids
        return np.array(made[0, -1].astype(mx.float32))

    def passes(self, ids: list[int]) -> Callable[[int], float]:
        self.prepare(ids)
        more = (ids * 2)[:32]

        def run(rows: int) -> float:
            begun = time.process_time()
            mx.eval(self._model(mx.array(more[:rows])[None], cache=self._cache))
            taken = time.process_time() - begun
            trim_prompt_cache(self._cache, rows)
            return taken

        return run


def make(model: str, options: dict[str, Any]) -> Engine:
    return MlxLm(model, options)
