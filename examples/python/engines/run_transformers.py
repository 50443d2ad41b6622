# SPDX-License-Identifier: Apache-2.0
"""transformers, for compare.py: enable(model) with chains, and with branches."""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Callable
from typing import Any

import torch
import transformers
from engine import Engine, Output, timed
from reprise_decoding.transformers import disable, enable
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

transformers.logging.set_verbosity_error()


class Transformers(Engine):
    name = "transformers"
    version = f"{transformers.__version__} with torch {torch.__version__}"
    lookup = "prompt_lookup_num_tokens=10"
    more = ("trees",)

    sampling = {"do_sample": True, "temperature": 0.8}  # noqa: RUF012

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        torch.set_num_threads(1)
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._ways: dict[str, dict[str, Any]] = {
            "plain": {},
            "lookup": {"prompt_lookup_num_tokens": 10},
        }
        self._options = options
        # The class of the model for each way, so that both keep what they have learned.
        self._classes = {way: type(self._model) for way in self._ways}
        for way, shape in (("reprise", {}), ("trees", {"max_leaves": 8, "most": 24})):
            enable(self._model, **shape, **options)
            self._classes[way] = type(self._model)
            disable(self._model)
        self._rows: list[int] = []
        self._cache: Any = None
        self._cached: list[int] = []
        self._forward = self._model.forward

        @functools.wraps(self._forward)
        def counted(*positional: Any, **named: Any) -> Any:
            ids = named["input_ids"] if "input_ids" in named else positional[0]
            self._rows.append(int(ids.shape[1]))
            return self._forward(*positional, **named)

        self._model.forward = counted

    def seed(self, number: int) -> None:
        torch.manual_seed(number)

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text).input_ids
        return ids

    def renew(self) -> None:
        self._model.__class__ = self._classes["plain"]
        enable(self._model, **self._options)
        self._classes["fresh"] = type(self._model)
        disable(self._model)

    @torch.no_grad()
    def _run(self, ids: list[int]) -> None:
        """Runs the ids into a new cache."""
        self._cache, self._cached = DynamicCache(config=self._model.config), ids
        self._forward(input_ids=torch.tensor([ids]), past_key_values=self._cache, use_cache=True, logits_to_keep=1)

    def decode(self, way: str, ids: list[int], count: int, **sampling: Any) -> Output:
        # Each way runs the prompt. With a prompt in the cache, the engine's loop for assisted generation writes other text.
        inputs = torch.tensor([ids])
        self._rows.clear()
        output = Output([])
        self._model.__class__ = self._classes[way]
        with timed(output):
            made = self._model.generate(
                inputs, attention_mask=torch.ones_like(inputs), max_new_tokens=count,
                **{"do_sample": False, **sampling}, **self._ways.get(way, {}),
            )
        output.tokens = made[0, len(ids) :].tolist()
        # Trees runs the prompt in a pass of its own, the others together with the first draft.
        rows = self._rows[1:] if way == "trees" else [self._rows[0] - len(ids) + 1, *self._rows[1:]]
        output.drafted = [each - 1 for each in rows]
        return output

    @torch.no_grad()
    def logits(self, ids: list[int]) -> Any:
        if self._cached != ids[:-1]:
            self._run(ids[:-1])
        made = self._forward(input_ids=torch.tensor([ids[-1:]]), past_key_values=self._cache, use_cache=True)
        self._cached = ids
        return made.logits[0, -1].float().numpy()

    def passes(self, ids: list[int]) -> Callable[[int], float]:
        self._run(ids)
        more = (ids * 2)[:32]

        @torch.no_grad()
        def run(rows: int) -> float:
            cache = copy.deepcopy(self._cache)
            begun = time.process_time()
            self._forward(input_ids=torch.tensor([more[:rows]]), past_key_values=cache, use_cache=True)
            return time.process_time() - begun

        return run


def make(model: str, options: dict[str, Any]) -> Engine:
    return Transformers(model, options)
