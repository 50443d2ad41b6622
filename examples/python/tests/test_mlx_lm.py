# SPDX-License-Identifier: Apache-2.0
"""The adapter for mlx-lm, with a model and a cache that take the calls of 0.32.2. numpy stands in for mlx."""

from __future__ import annotations

import itertools
import types
import unittest
from typing import Any

import numpy as np
import reprise_decoding
from support import VOCABULARY, adapter, after, next_token, plain, prompt


class KVCache:
    def __init__(self, trimmable: bool = True) -> None:
        self.state: list[int] = []
        self.trimmable = trimmable

    def is_trimmable(self) -> bool:
        return self.trimmable


class ArraysCache(KVCache):
    pass


class RotatingKVCache(KVCache):
    """A cache that cannot be trimmed any more after its window has been full."""

    def __init__(self, max_size: int) -> None:
        super().__init__()
        self.max_size = max_size

    @property
    def offset(self) -> int:
        return len(self.state)

    def is_trimmable(self) -> bool:
        return self.offset < self.max_size


def model(ids: Any, cache: Any) -> Any:
    assert ids.ndim == 2 and ids.shape[0] == 1
    logits = np.zeros((1, ids.shape[1], VOCABULARY), np.float32)
    for row, token in enumerate(ids[0].tolist()):
        for layer in cache:
            layer.state.append(token)
        logits[0, row, next_token(cache[0].state)] = 9
    return logits


def logsumexp(array: Any, axis: int, keepdims: bool) -> Any:
    return np.log(np.exp(array).sum(axis=axis, keepdims=keepdims))


def trim_prompt_cache(cache: Any, count: int) -> int:
    assert 0 <= count <= len(cache[0].state)
    if not all(layer.is_trimmable() for layer in cache):
        return 0
    for layer in cache:
        del layer.state[len(layer.state) - count :]
    return count


CORE = types.ModuleType("mlx.core")
CORE.array, CORE.argmax, CORE.logsumexp, CORE.eval = np.array, np.argmax, logsumexp, lambda *_: None  # type: ignore[attr-defined]
CACHE = types.ModuleType("mlx_lm.models.cache")
CACHE.can_trim_prompt_cache = lambda cache: all(layer.is_trimmable() for layer in cache)  # type: ignore[attr-defined]
CACHE.make_prompt_cache = lambda _: [KVCache(), KVCache()]  # type: ignore[attr-defined]
CACHE.trim_prompt_cache = trim_prompt_cache  # type: ignore[attr-defined]


class Steps(unittest.TestCase):
    def setUp(self) -> None:
        manager = adapter("mlx_lm", mlx__core=CORE, mlx_lm__models__cache=CACHE)
        self.module = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.session = reprise_decoding.Session(cost=reprise_decoding.CostCurve.linear(0.01))

    def test_the_text_is_that_without_drafts(self) -> None:
        for ids in (prompt(1), prompt(2), [5], prompt(3, 1200)):
            steps = list(self.module.generate_step(np.array(ids), model, max_tokens=150, session=self.session))
            self.assertEqual([token for token, _ in steps], plain(ids, 150))
            for token, logprobs in steps:
                self.assertEqual(logprobs.shape, (VOCABULARY,))
                self.assertEqual(int(np.argmax(logprobs)), token)
            self.assertLess(self.session.statistics.passes, 90)

    def test_nothing_is_drafted_after_the_end(self) -> None:
        output = plain(prompt(1), 150)
        eos = output[39]

        def drafts(**options: Any) -> list[list[int]]:
            made, session = [], reprise_decoding.Session(cost=0.01)
            plan = session.plan

            def recorded(*arguments: Any, **limits: Any) -> Any:
                step = plan(*arguments, **limits)
                if step is not None:
                    made.append(step.batch[step.pending :].tolist())
                return step

            session.plan = recorded  # type: ignore[method-assign]
            steps = self.module.generate_step(prompt(1), model, session=session, max_tokens=150, **options)
            tokens = [token for token, _ in steps]
            self.assertEqual(tokens, output[: output.index(eos) + 1] if options else output)
            return made

        self.assertGreater(after(drafts(), eos), 20)
        for ends in (eos, [60, eos], {eos}, np.array([eos])):
            made = drafts(eos=ends)
            self.assertEqual(after(made, eos), 0)
            self.assertLess(len(made), output.index(eos) + 1)
        with self.assertRaisesRegex(TypeError, "^eos: "):
            next(self.module.generate_step(prompt(1), model, eos=None))

    def test_a_caller_that_stops_early_can_use_the_cache_again(self) -> None:
        for count in range(1, 30):
            cache = [KVCache()]
            steps = self.module.generate_step(prompt(1), model, prompt_cache=cache, session=self.session)
            output = [token for token, _ in itertools.islice(steps, count)]
            steps.close()
            self.assertEqual(output, plain(prompt(1), count))
            self.assertEqual(cache[0].state, [*prompt(1), *output][:-1])

    def test_a_sliding_window(self) -> None:
        for window in range(len(prompt(1)) + 1, len(prompt(1)) + 60):
            cache = [KVCache(), RotatingKVCache(window)]
            steps = self.module.generate_step(prompt(1), model, prompt_cache=cache, max_tokens=80, session=self.session)
            self.assertEqual([token for token, _ in steps], plain(prompt(1), 80), window)
            self.assertEqual(len(cache[0].state), len(cache[1].state))
        nested = types.SimpleNamespace(caches=[KVCache(), RotatingKVCache(50)], is_trimmable=lambda: True)
        self.assertEqual(self.module._drafts_that_fit([nested]), 48)

    def test_a_cache_that_keeps_rejected_rows(self) -> None:
        class Stubborn(KVCache):
            asked = 0

            def is_trimmable(self) -> bool:
                self.asked += 1
                return self.asked % 2 == 1  # before the pass, but not after it

        with self.assertRaisesRegex(RuntimeError, "prompt_cache: mlx-lm did not remove"):
            list(self.module.generate_step(prompt(1), model, prompt_cache=[Stubborn()], session=self.session))

    def test_a_cache_that_cannot_be_trimmed_is_decoded_plainly(self) -> None:
        full = RotatingKVCache(20)
        full.state = list(range(20))
        for cache in ([KVCache(), ArraysCache(trimmable=False)], [KVCache(), full]):
            steps = self.module.generate_step(prompt(1), model, prompt_cache=cache, max_tokens=80, session=self.session)
            self.assertEqual([token for token, _ in steps], plain(prompt(1), 80))
            counts = self.session.statistics
            self.assertEqual((counts.passes, counts.drafted, counts.fields["cuts"]["budget"]), (80, 0, 80))

    def test_most_of_0_and_a_sampler(self) -> None:
        steps = self.module.generate_step(prompt(1), model, max_tokens=9, most=0, sampler=lambda x: x.argmax(axis=-1))
        self.assertEqual([token for token, _ in steps], plain(prompt(1), 9))

    def test_max_tokens_of_0_and_without_a_bound(self) -> None:
        self.assertEqual(list(self.module.generate_step(prompt(1), model, max_tokens=0, session=self.session)), [])
        steps = self.module.generate_step(prompt(1), model, max_tokens=-1, session=self.session)
        self.assertEqual([token for token, _ in itertools.islice(steps, 300)], plain(prompt(1), 300))
        steps.close()

    def test_a_session_belongs_to_one_generation_at_a_time(self) -> None:
        ids, other = prompt(1), prompt(2)
        steps = self.module.generate_step(ids, model, max_tokens=60, session=self.session)
        output = [next(steps)[0]]
        cache = [KVCache()]
        second = self.module.generate_step(other, model, session=self.session, prompt_cache=cache)
        with self.assertRaisesRegex(reprise_decoding.OrderError, "session: another generation uses it; .*close"):
            next(second)
        self.assertEqual(cache[0].state, [])
        output += [token for token, _ in steps]
        self.assertEqual(output, plain(ids, 60))
        steps = self.module.generate_step(other, model, max_tokens=60, session=self.session)
        next(steps)
        steps.close()  # or it is collected:
        next(self.module.generate_step(other, model, max_tokens=60, session=self.session))
        steps = self.module.generate_step(other, model, max_tokens=60, session=self.session)
        self.assertEqual([token for token, _ in steps], plain(other, 60))

    def test_the_settings_and_the_counts_of_one_request(self) -> None:
        memory = reprise_decoding.Memory()
        for settings, longest in (({}, 16), ({"max_draft": 3}, 3), ({"enabled": False}, 0), ({"salt": "a"}, 16)):
            for options in ({"memory": memory}, {"session": self.session}):
                with reprise_decoding.request(**settings) as one:
                    steps = self.module.generate_step(prompt(1), model, max_tokens=150, **options)
                    if "salt" in settings and "session" in options:
                        with self.assertRaisesRegex(reprise_decoding.ArgumentError, "^session: has a memory"):
                            next(steps)
                        continue
                    self.assertEqual([token for token, _ in steps], plain(prompt(1), 150))
                counts = one.statistics
                self.assertEqual(counts.tokens, 150)
                self.assertLessEqual(counts.drafted, longest * counts.passes)
                self.assertEqual(counts.accepted > 50, longest > 0)
                self.assertEqual(counts.passes, 150 - counts.accepted)

    def test_text_stays_with_the_salt_of_a_request(self) -> None:
        secret, ask = list(range(30, 58)), [1, 2, 3, 9, 30, 31, 32]
        for first, second, sees in (("a", "a", True), ("a", "b", False), ("a", None, False), (None, None, True)):
            memory, drafted = reprise_decoding.Memory(), []

            def see(ids: Any, cache: Any, drafted: Any = drafted) -> Any:
                drafted += ids[0].tolist()
                return model(ids, cache)

            with reprise_decoding.request(salt=first):
                list(self.module.generate_step([1, 2, 3, *secret, 9, *secret], model, max_tokens=2, memory=memory))
            with reprise_decoding.request(salt=second):
                next(self.module.generate_step(ask, see, memory=memory))
            self.assertEqual(bool(set(drafted) & set(secret[3:])), sees, (first, second))

    def test_a_prediction_is_for_the_first_request_of_its_block(self) -> None:
        passes: list[int] = []
        with reprise_decoding.request(prediction=plain(prompt(1)[:19], 34)) as one:
            for ids in (prompt(1)[:19], prompt(2)[:19]):
                steps = [token for token, _ in self.module.generate_step(ids, model, max_tokens=34, session=self.session)]
                self.assertEqual(steps, plain(ids, 34))
                passes.append(one.statistics.passes - sum(passes))
        self.assertEqual(passes[0], 2)
        self.assertGreater(passes[1], 2)

    def test_a_request_without_a_prompt_leaves_nothing_to_the_next(self) -> None:
        list(self.module.generate_step(prompt(1), model, max_tokens=20, session=self.session))
        with reprise_decoding.request(prediction=range(40, 60)) as one:
            with self.assertRaisesRegex(reprise_decoding.ArgumentError, "^ids: the context is empty"):
                list(self.module.generate_step([], model, session=self.session))
        self.assertEqual(one.statistics.passes, 0)
        drafted: list[int] = []

        def see(ids: Any, cache: Any) -> Any:
            drafted.extend(ids[0].tolist())
            return model(ids, cache)

        list(self.module.generate_step(prompt(1), see, max_tokens=20, session=self.session))
        self.assertFalse(set(drafted) & set(range(40, 60)))


if __name__ == "__main__":
    unittest.main()
