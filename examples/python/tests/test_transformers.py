# SPDX-License-Identifier: Apache-2.0
"""The adapter for transformers, with a model, a cache and a loop that take the calls of 5.23. numpy stands in for torch.

The model reads its whole text from the cache, through the mask and the positions: a row that sees too much, too little
or another order gives another token.
"""

from __future__ import annotations

import types
import unittest
from typing import Any

import fake_torch
import numpy as np
import reprise
from fake_torch import Tensor
from support import VOCABULARY, adapter, next_token, plain, prompt


class DynamicLayer:
    """Its keys are positions and tokens."""

    def __init__(self) -> None:
        self.keys, self.values = Tensor(np.zeros((1, 1, 0, 1), np.int64)), Tensor(np.zeros((1, 1, 0, 1), np.int64))


class DynamicSlidingWindowLayer(DynamicLayer):
    pass


class Cache:
    def __init__(self, *layers: Any) -> None:
        self.layers = list(layers or (DynamicLayer(), DynamicLayer()))

    def get_seq_length(self) -> int:
        return int(self.layers[0].keys.shape[2])

    def add(self, positions: Any, tokens: Any) -> None:
        for layer in self.layers:
            for name, new in (("keys", positions), ("values", tokens)):
                old = getattr(layer, name).data
                setattr(layer, name, Tensor(np.concatenate([old, np.reshape(new, (1, 1, -1, 1))], axis=2)))


class GenerationMixin:
    def _get_candidate_generator(self, **_: Any) -> Any:
        raise AssertionError("the adapter replaces it")

    def _assisted_decoding(
        self, ids: Any, processors: Any, criteria: Any, config: Any, streamer: Any = None, **more: Any
    ) -> Any:
        candidates = self._get_candidate_generator(generation_config=config, input_ids=ids)
        assert isinstance(candidates, CandidateGenerator)
        while True:
            self.passes += 1
            longer, logits = candidates.get_candidates(ids)
            assert logits is None and longer.dtype == ids.dtype and longer.shape[1] < config.max_length
            context, count = longer.data[0].tolist(), ids.shape[1]
            fresh = []
            for i in range(longer.shape[1] - count + 1):
                fresh.append(next_token(context[: count + i]))
                if count + i < len(context) and fresh[-1] != context[count + i]:
                    break
            for token in fresh:  # the engine cuts its output at eos
                ids = Tensor(np.concatenate([ids.data, [[token]]], axis=1))
                if criteria(ids, None).all():
                    return ids
            candidates.update_candidate_strategy(ids, None, len(fresh) - 1)


class Model(GenerationMixin):
    dtype, device = np.dtype(np.float32), "cpu"

    def __init__(self) -> None:
        self.config = types.SimpleNamespace(_attn_implementation="sdpa")
        self.passes, self.branched = 0, False

    def __call__(
        self,
        input_ids: Any,
        past_key_values: Any,
        use_cache: bool,
        attention_mask: Any = None,
        position_ids: Any = None,
        logits_to_keep: int = 0,
    ) -> Any:
        assert use_cache
        self.passes += 1
        cached, rows = past_key_values.get_seq_length(), input_ids.shape[1]
        positions = position_ids.data[0] if position_ids is not None else np.arange(cached, cached + rows)
        past_key_values.add(positions, input_ids.data[0])
        keys, values = (getattr(past_key_values.layers[-1], name).data[0, 0, :, 0] for name in ("keys", "values"))
        if attention_mask is None:
            visible = np.tril(np.ones((rows, cached + rows), bool), cached)
        else:
            assert attention_mask.shape == (1, 1, rows, cached + rows)
            visible = attention_mask.data[0, 0] == 0
            self.branched = self.branched or len(set(positions)) < rows
        logits = np.zeros((1, rows, VOCABULARY), np.float32)
        for row in range(rows):
            seen = np.flatnonzero(visible[row])
            order = seen[np.argsort(keys[seen])]
            assert keys[order].tolist() == list(range(positions[row] + 1)), "a row does not see its own path"
            logits[0, row, next_token(values[order])] = 50
        return types.SimpleNamespace(logits=Tensor(logits[:, -logits_to_keep:]))

    def generate(self, ids: list[int], count: int, custom_generate: Any, **options: Any) -> list[int]:
        config = {"max_length": len(ids) + count, "do_sample": False, "num_beams": 1, "return_dict_in_generate": False}
        more = {name: options.pop(name) for name in list(options) if name in config}
        more = types.SimpleNamespace(**{**config, **more})
        eos = options.pop("eos", None)
        self.passes = 0
        output = custom_generate(
            self,
            Tensor(np.array([ids], np.int64)),
            logits_processor=options.pop("logits_processor", []),
            stopping_criteria=lambda ids, _: Tensor(
                np.array([ids.shape[1] >= more.max_length or ids.data[0, -1] == eos])
            ),
            generation_config=more,
            **{"past_key_values": Cache(), "use_cache": True, "attention_mask": None, **options},
        )
        return output.data[0, len(ids) :].tolist()


class CandidateGenerator:
    pass


TRANSFORMERS = types.ModuleType("transformers")
TRANSFORMERS.GenerationMixin = GenerationMixin  # type: ignore[attr-defined]
GENERATOR = types.ModuleType("transformers.generation.candidate_generator")
GENERATOR.CandidateGenerator = CandidateGenerator  # type: ignore[attr-defined]
CHEAP = reprise.CostCurve.linear(0.01)


class Case(unittest.TestCase):
    def setUp(self) -> None:
        manager = adapter(
            "transformers",
            torch=fake_torch.module,
            transformers=TRANSFORMERS,
            transformers__generation__candidate_generator=GENERATOR,
        )
        self.module = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.model = Model()


class Chains(Case):
    def test_the_text_is_that_without_drafts_in_fewer_passes(self) -> None:
        chains = self.module.Chains(cost=CHEAP)
        for seed in (1, 2, 1):
            self.assertEqual(self.model.generate(prompt(seed), 150, chains), plain(prompt(seed), 150))
            self.assertLess(self.model.passes, 75)
        self.assertNotIn("_get_candidate_generator", vars(self.model))

    def test_the_model_is_restored_after_an_error(self) -> None:
        chains = self.module.Chains(cost=CHEAP)
        with self.assertRaises(ValueError):
            self.model.generate([], 5, chains)
        self.assertNotIn("_get_candidate_generator", vars(self.model))
        self.assertEqual(self.model.generate(prompt(1), 5, chains), plain(prompt(1), 5))

    def test_the_switch(self) -> None:
        chains = self.module.Chains(cost=CHEAP)
        chains.drafter.enabled = False
        self.assertEqual(self.model.generate(prompt(1), 30, chains), plain(prompt(1), 30))
        self.assertEqual(self.model.passes, 30)

    def test_a_recurrent_model_is_refused(self) -> None:
        self.model._is_stateful = True  # generate() refuses such a model for its own assisted mode alone
        with self.assertRaisesRegex(ValueError, "model: the recurrent state of Model cannot be rolled back"):
            self.model.generate(prompt(1), 5, self.module.Chains(cost=CHEAP))

    def test_a_filled_cache_is_refused(self) -> None:
        cache = Cache()
        cache.add(np.arange(3), np.array([1, 2, 3]))
        with self.assertRaisesRegex(ValueError, "past_key_values: Chains needs an empty cache"):
            self.model.generate(prompt(1), 5, self.module.Chains(cost=CHEAP), past_key_values=cache)

    def test_a_model_that_is_in_use_is_refused(self) -> None:
        self.model._get_candidate_generator = None
        with self.assertRaisesRegex(RuntimeError, "model: another call of generate"):
            self.model.generate(prompt(1), 5, self.module.Chains(cost=CHEAP))

    def test_another_release(self) -> None:
        loop = GenerationMixin._assisted_decoding
        del GenerationMixin._assisted_decoding
        try:
            with self.assertRaisesRegex(ImportError, "this release of transformers"):
                self.module.Chains()
        finally:
            GenerationMixin._assisted_decoding = loop


class Trees(Case):
    def test_the_text_is_that_without_drafts_in_fewer_passes(self) -> None:
        trees = self.module.Trees(cost=CHEAP)
        for ids in (prompt(1), prompt(2), [5], prompt(1)):
            self.assertEqual(self.model.generate(ids, 150, trees), plain(ids, 150))
            self.assertLess(self.model.passes, 90)
        self.assertTrue(self.model.branched)

    def test_the_cache_holds_the_text_and_can_be_used_again(self) -> None:
        trees = self.module.Trees(cost=CHEAP)
        for count in range(40, 60):
            cache = Cache()
            text = [*prompt(1), *self.model.generate(prompt(1), count, trees, past_key_values=cache)]
            self.assertEqual(cache.layers[0].values.data[0, 0, :, 0].tolist(), text[:-1])
        turn = [*text, 60, 61]
        self.assertEqual(self.model.generate(turn, 30, trees, past_key_values=cache), plain(turn, 30))

    def test_a_cache_with_a_part_of_the_prompt(self) -> None:
        cache = Cache()
        self.model(Tensor(np.array([prompt(1)[:20]])), cache, True)
        trees = self.module.Trees(cost=CHEAP)
        self.assertEqual(self.model.generate(prompt(1), 50, trees, past_key_values=cache), plain(prompt(1), 50))

    def test_the_output_ends_at_eos(self) -> None:
        """Then the cache has no rows of tokens after it, although the pass may have accepted some."""
        wanted, trees = plain(prompt(1), 150), self.module.Trees(cost=CHEAP)
        for at in range(30, 60):
            cache, end = Cache(), wanted.index(wanted[at])
            output = self.model.generate(prompt(1), 150, trees, eos=wanted[at], past_key_values=cache)
            self.assertEqual(output, wanted[: end + 1])
            self.assertEqual(cache.get_seq_length(), len(prompt(1)) + end)

    def test_logits_processors_see_their_own_path(self) -> None:
        class Processors(list):  # type: ignore[type-arg]
            def __call__(self, ids: Any, scores: Any) -> Any:
                assert int(scores.data[0].argmax()) == next_token(ids.data[0])
                allowed = scores.data.copy()
                allowed[0, (next_token(ids.data[0]) + len(ids.data[0]) % 2) % 40] = 99
                return Tensor(allowed)

        context = prompt(1)
        for _ in range(80):
            context.append((next_token(context) + len(context) % 2) % 40)
        output = self.model.generate(prompt(1), 80, self.module.Trees(cost=CHEAP), logits_processor=Processors([1]))
        self.assertEqual(output, context[60:])

    def test_sampling(self) -> None:
        """The toy model is nearly certain of each token, so a sample is its text."""
        output = self.model.generate(prompt(1), 80, self.module.Trees(cost=CHEAP), do_sample=True)
        self.assertEqual(output, plain(prompt(1), 80))

    def test_a_streamer_gets_each_token(self) -> None:
        class Streamer:
            def __init__(self) -> None:
                self.tokens: list[int] = []
                self.ended = False

            def put(self, value: Any) -> None:
                self.tokens += value.data.reshape(-1).tolist()

            def end(self) -> None:
                self.ended = True

        streamer = Streamer()
        self.model.generate(prompt(1), 40, self.module.Trees(cost=CHEAP), streamer=streamer)
        self.assertEqual((streamer.tokens, streamer.ended), (plain(prompt(1), 40), True))

    def test_the_switch(self) -> None:
        trees = self.module.Trees(cost=CHEAP)
        trees.enabled = False
        self.assertEqual(self.model.generate(prompt(1), 30, trees), plain(prompt(1), 30))
        self.assertEqual(self.model.passes, 31)

    def test_refusals(self) -> None:
        trees, mask = self.module.Trees(cost=CHEAP), np.ones((1, 60), np.int64)
        mask[0, 0] = 0
        for options, sentence in (
            ({"attention_mask": Tensor(mask)}, "attention_mask: "),
            ({"num_beams": 2}, "generation_config: "),
            ({"return_dict_in_generate": True}, "generation_config: "),
            ({"past_key_values": Cache(DynamicLayer(), DynamicSlidingWindowLayer())}, "past_key_values: "),
        ):
            with self.subTest(sentence=sentence), self.assertRaisesRegex(ValueError, sentence):
                self.model.generate(prompt(1), 5, trees, **options)
        self.model.config._attn_implementation = "flash_attention_2"
        with self.assertRaisesRegex(ValueError, "model: .*sdpa"):
            self.model.generate(prompt(1), 5, trees)
        two = Tensor(np.zeros((2, 5), np.int64))
        with self.assertRaisesRegex(ValueError, "input_ids: .*one sequence, but the batch has 2"):
            trees(self.model, two, [], None, None, past_key_values=Cache())


if __name__ == "__main__":
    unittest.main()
