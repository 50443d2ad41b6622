# SPDX-License-Identifier: Apache-2.0
"""The adapter for llama-cpp-python, with a loop that calls it as Llama.generate() of 0.3.36 does."""

from __future__ import annotations

import abc
import types
import unittest
from collections.abc import Iterator
from typing import Any

import numpy as np
import reprise
from support import adapter, next_token, plain, prompt


class LlamaDraftModel(abc.ABC):
    @abc.abstractmethod
    def __call__(self, input_ids: Any, /, **kwargs: Any) -> Any: ...


MODULE = types.ModuleType("llama_cpp.llama_speculative")
MODULE.LlamaDraftModel = LlamaDraftModel  # type: ignore[attr-defined]


class Llama:
    """The loop of the engine. Its model is the toy model."""

    def __init__(self, draft_model: Any, n_ctx: int = 512) -> None:
        assert draft_model is None or isinstance(draft_model, LlamaDraftModel)
        self.draft_model, self.n_ctx = draft_model, n_ctx
        self.input_ids = np.full(n_ctx, 63, np.int32)  # like the engine's, it holds old tokens
        self.n_tokens, self.passes = 0, 0

    def generate(self, tokens: list[int]) -> Iterator[int]:
        tokens, self.n_tokens = list(tokens), 0
        sample = len(tokens) - 1
        while True:
            self.input_ids[self.n_tokens : self.n_tokens + len(tokens)] = tokens
            self.n_tokens += len(tokens)
            self.passes += 1
            while sample < self.n_tokens:
                token = next_token(self.input_ids[: sample + 1])
                sample += 1
                yield token
                tokens = [token]
                if sample < self.n_tokens and token != self.input_ids[sample]:
                    self.n_tokens = sample
                    break
            if self.draft_model is not None:
                self.input_ids[self.n_tokens : self.n_tokens + 1] = tokens
                drafted = self.draft_model(self.input_ids[: self.n_tokens + 1])
                tokens.extend(drafted.astype(int)[: self.n_ctx - self.n_tokens - 1])

    def complete(self, tokens: list[int], count: int) -> list[int]:
        """Stops in the middle of a pass, as a user does."""
        self.passes, output = 0, []
        for token in self.generate(tokens):
            output.append(token)
            if len(output) == count:
                break
        return output


class DraftModels(unittest.TestCase):
    def setUp(self) -> None:
        manager = adapter("llama_cpp", llama_cpp__llama_speculative=MODULE)
        self.module = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)

    def llama(self, **options: Any) -> Llama:
        return Llama(self.module.DraftModel(cost=reprise.CostCurve.linear(0.01), **options))

    def test_the_text_is_that_without_drafts_in_fewer_passes(self) -> None:
        llama = self.llama()
        for seed in (1, 2, 1):  # requests follow each other without a word
            self.assertEqual(llama.complete(prompt(seed), 150), plain(prompt(seed), 150))
            self.assertLess(llama.passes, 75)
        self.assertGreater(llama.draft_model.drafter.statistics.accepted, 200)

    def test_the_next_turn_continues_the_text(self) -> None:
        llama = self.llama()
        first = [*prompt(1), *llama.complete(prompt(1), 50), 60, 61]
        self.assertEqual(llama.complete(first, 50), plain(first, 50))

    def test_a_prompt_that_is_asked_again(self) -> None:
        llama = self.llama()
        for _ in range(3):
            self.assertEqual(llama.complete(prompt(4), 40), plain(prompt(4), 40))

    def test_the_end_of_the_context(self) -> None:
        llama = Llama(self.module.DraftModel(cost=reprise.CostCurve.linear(0.01)), n_ctx=100)
        self.assertEqual(llama.complete(prompt(4), 40), plain(prompt(4), 40))

    def test_no_request_sees_the_text_before_it(self) -> None:
        secret = list(range(30, 58))
        begin, asked = [1, 2, 3], [1, 2, 3, 9, 30, 31, 32]
        used = self.llama()
        used.complete([*begin, *secret, *secret, *secret], 30)
        model, seen = used.draft_model, []
        for ids in (asked, [*asked, 30, 31, 32], [*asked, 30, 31, 32, 30, 31]):
            seen += model(np.array(ids, np.int32)).tolist()
        self.assertFalse(set(seen) & set(secret[3:]))

    def test_most_and_the_switch(self) -> None:
        ids = np.array([1, 2, 3, 4, 5] * 6, np.int32)
        self.assertEqual(self.llama(most=3).draft_model(ids).size, 3)
        self.assertEqual(self.llama(most=0).draft_model(ids).size, 0)
        model = self.llama().draft_model
        model.drafter.enabled = False
        self.assertEqual(model(ids).size, 0)


if __name__ == "__main__":
    unittest.main()
