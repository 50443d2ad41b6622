# SPDX-License-Identifier: Apache-2.0
"""onnxruntime-genai, for compare.py: the loop around its Generator."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import onnxruntime_genai as og
from engine import Engine, Output, timed
from reprise_decoding import Session
from reprise_decoding.onnxruntime_genai import generate

ROOM = 512  # tokens after the prompt


class _Prefilled:
    """A generator that has run all but the last token of the prompt, cut to it. Counts the rows of passes."""

    def __init__(self, generator: Any, cached: int, rows: list[int]) -> None:
        self._generator, self._cached, self._rows = generator, cached, rows
        generator.rewind_to(cached)

    def append_tokens(self, ids: Any) -> None:
        if len(ids) == self._cached and self._generator.token_count() == self._cached and not self._rows:
            return  # the prompt
        self._rows.append(len(ids))
        self._generator.append_tokens(np.asarray(ids, np.int32))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)


class OnnxruntimeGenai(Engine):
    name = "onnxruntime-genai"
    version = f"{og.__version__} with onnxruntime {version('onnxruntime')}"
    lookup = "set_speculative_options(ngram_size=3)"  # without a size it is off; max_draft_tokens is left as it is

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        self.sampling = {"pick": self._pick}
        config = og.Config(folder)
        config.overlay('{"model": {"decoder": {"session_options": {"intra_op_num_threads": 1}}}}')
        self._model = og.Model(config)
        self._tokenizer = og.Tokenizer(self._model)
        self._session = Session(**options)
        self._generator: Any = None
        self._cached: list[int] = []

    def seed(self, number: int) -> None:
        self._random = np.random.default_rng(number)

    def _pick(self, logits: Any) -> list[int]:
        weights = np.exp((logits - logits.max(axis=-1, keepdims=True)).astype(np.float64) / 0.8)
        return [int(self._random.choice(len(row), p=row / row.sum())) for row in weights]

    def encode(self, text: str) -> list[int]:
        return [int(token) for token in self._tokenizer.encode(text)]

    def _new(self, ids: list[int], room: int, **speculation: Any) -> Any:
        options = og.GeneratorParams(self._model)
        options.set_search_options(do_sample=False, max_length=len(ids) + room)
        if speculation:
            options.set_speculative_options(**speculation)
        generator = og.Generator(self._model, options)
        if len(ids) > 1:
            generator.append_tokens(np.array(ids[:-1], np.int32))
        return generator

    def prepare(self, ids: list[int]) -> None:
        self._generator = self._new(ids, ROOM)
        self._cached = ids[:-1]

    def decode(self, way: str, ids: list[int], count: int, **sampling: Any) -> Output:
        if self._cached != ids[:-1]:
            self.prepare(ids)
        output = Output([])
        if way == "reprise" or sampling:  # the sampler is ours, also without drafts
            rows: list[int] = []
            generator = _Prefilled(self._generator, len(ids) - 1, rows)
            with timed(output):
                output.tokens = list(
                    generate(
                        generator, ids, max_tokens=count, eos=[self.eos], session=self._session,
                        most=16 if way == "reprise" else 0, **sampling,
                    )
                )
            output.drafted = [each - 1 for each in rows]
            return output
        if way == "lookup":
            generator = self._new(ids, count, ngram_size=3)
        else:
            generator = self._generator
            generator.rewind_to(len(ids) - 1)
        before = _counts(generator) if way == "lookup" else None
        with timed(output):
            generator.append_tokens(np.array(ids[-1:], np.int32))
            while not generator.is_done() and len(output.tokens) < count:
                generator.generate_next_token()
                output.tokens.append(int(generator.get_next_tokens()[0]))
                if before is None:
                    output.drafted.append(0)
                else:  # the step that picks from the prompt's last row is counted as plain
                    after = _counts(generator)
                    plain, rounds, proposed = (now - then for now, then in zip(after, before))
                    output.drafted += [0] * plain + ([proposed] if rounds else [])
                    before = after
                if output.tokens[-1] == self.eos:
                    break
        return output

    def logits(self, ids: list[int]) -> Any:
        if self._cached != ids[:-1] or self._generator.token_count() != len(ids) - 1:
            if self._cached[: len(ids) - 1] == ids[:-1]:
                self._generator.rewind_to(len(ids) - 1)
            else:
                self.prepare(ids)
        self._generator.append_tokens(np.array(ids[-1:], np.int32))
        self._cached = ids
        logits = np.asarray(self._generator.get_output("logits"))
        return logits.reshape(-1, logits.shape[-1])[-1]

    def passes(self, ids: list[int]) -> Callable[[int], float]:
        self.prepare(ids)
        more = np.array((ids * 2)[:32], np.int32)

        def run(rows: int) -> float:
            self._generator.rewind_to(len(ids) - 1)
            begun = time.process_time()
            self._generator.append_tokens(more[:rows])
            np.asarray(self._generator.get_output("logits"))
            return time.process_time() - begun

        return run


def _counts(generator: Any) -> tuple[int, int, int]:
    """Returns the passes of one row, the passes with a draft, and the drafted tokens."""
    counts = generator.get_speculative_stats()
    rounds = counts["target_verify_forward_passes"]
    plain = counts["standard_fallback_steps"] + counts["target_forward_passes"] - rounds
    return plain, rounds, counts["draft_tokens_proposed"]


def make(model: str, options: dict[str, Any]) -> Engine:
    return OnnxruntimeGenai(model, options)
