# SPDX-License-Identifier: Apache-2.0
"""The adapter for llama-cpp-python, with a loop that calls it as Llama.generate() of 0.3.36 does."""

from __future__ import annotations

import abc
import contextvars
import threading
import time
import types
import unittest
import unittest.mock
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import reprise_decoding
from support import VOCABULARY, adapter, after, next_token, plain, prompt


class LlamaDraftModel(abc.ABC):
    @abc.abstractmethod
    def __call__(self, input_ids: Any, /, **kwargs: Any) -> Any: ...


MODULE = types.ModuleType("llama_cpp.llama_speculative")
MODULE.LlamaDraftModel = LlamaDraftModel  # type: ignore[attr-defined]
ENGINE = types.ModuleType("llama_cpp")
ENGINE.llama_supports_gpu_offload = lambda: False  # type: ignore[attr-defined]
ENGINE.llama_vocab_is_eog = lambda vocab, token: token in vocab  # type: ignore[attr-defined]


class Batch:
    def set_batch(self, batch: Any, n_past: int, logits_all: bool) -> None:
        self.logits = [logits_all] * (len(batch) - 1) + [True]


class Llama:
    """The loop of the engine. Its model is the toy model. Only rows with logits can be sampled from."""

    def __init__(
        self,
        draft_model: Any = None,
        n_ctx: int = 512,
        logits_all: bool = False,
        n_batch: int = 512,
        n_gpu_layers: int = 0,
        ends: tuple[int, ...] = (),
    ) -> None:
        assert draft_model is None or isinstance(draft_model, LlamaDraftModel)
        self.draft_model, self.n_ctx, self.n_batch = draft_model, n_ctx, n_batch
        self._logits_all = logits_all or draft_model is not None
        self.model_params = types.SimpleNamespace(n_gpu_layers=n_gpu_layers)
        self.input_ids = np.full(n_ctx, 63, np.int32)  # like the engine's, it holds old tokens
        self.n_tokens, self.passes, self.rows = 0, 0, 0  # rows: those with logits
        self._batch = Batch()
        self._model = types.SimpleNamespace(vocab=ends)
        self.seen: list[list[int]] = []  # the ids that a logits processor gets

    def n_vocab(self) -> int:
        return VOCABULARY

    def eval(self, tokens: list[int]) -> None:
        for begin in range(0, len(tokens), self.n_batch):
            part = tokens[begin : begin + self.n_batch]
            self._batch.set_batch(batch=part, n_past=self.n_tokens, logits_all=self._logits_all)
            self.input_ids[self.n_tokens : self.n_tokens + len(part)] = part
            self.n_tokens += len(part)
            self.rows += sum(self._batch.logits)
            self.passes += 1

    def sample(self, idx: int) -> int:
        row = idx - self.n_tokens
        assert all(self._batch.logits[row:])
        assert -row <= len(self._batch.logits)
        self.seen.append(self.input_ids[: self.n_tokens].tolist())
        end = len(self.computed) + row + 1
        return next_token(self.computed[:end])

    def generate(self, tokens: list[int]) -> Iterator[int]:
        tokens, self.n_tokens = list(tokens), 0
        sample = len(tokens) - 1
        while True:
            self.eval(tokens)
            self.computed = self.input_ids[: self.n_tokens]
            while sample < self.n_tokens:
                token = self.sample(idx=sample)
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
        self.passes, self.rows, self.seen, output = 0, 0, [], []
        for token in self.generate(tokens):
            output.append(token)
            if len(output) == count:
                break
        return output


class DraftModels(unittest.TestCase):
    def setUp(self) -> None:
        manager = adapter("llama_cpp", llama_cpp=ENGINE, llama_cpp__llama_speculative=MODULE)
        self.module = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)

    def llama(self, **options: Any) -> Llama:
        return Llama(self.module.DraftModel(cost=reprise_decoding.CostCurve.linear(0.01), **options))

    def test_the_text_is_that_without_drafts_in_fewer_passes(self) -> None:
        llama = self.llama()
        for seed in (1, 2, 1):  # requests follow each other without a word
            self.assertEqual(llama.complete(prompt(seed), 150), plain(prompt(seed), 150))
            self.assertLess(llama.passes, 75)
        self.assertGreater(llama.draft_model.statistics.accepted, 200)

    def test_the_next_turn_continues_the_text(self) -> None:
        llama = self.llama()
        first = [*prompt(1), *llama.complete(prompt(1), 50), 60, 61]
        self.assertEqual(llama.complete(first, 50), plain(first, 50))

    def test_a_prompt_that_is_asked_again(self) -> None:
        llama = self.llama()
        for _ in range(3):
            self.assertEqual(llama.complete(prompt(4), 40), plain(prompt(4), 40))

    def test_the_end_of_the_context(self) -> None:
        llama = Llama(self.module.DraftModel(cost=reprise_decoding.CostCurve.linear(0.01)), n_ctx=100)
        self.assertEqual(llama.complete(prompt(4), 40), plain(prompt(4), 40))

    def test_a_request_sees_the_text_before_it_unless_the_memory_keeps_none(self) -> None:
        secret = list(range(30, 58))
        begin, asked = [1, 2, 3], [1, 2, 3, 9, 30, 31, 32]
        for options, sees in (({}, True), ({"memory": reprise_decoding.Memory(text=False)}, False), ({"memory": None}, False)):
            used = Llama(self.module.DraftModel(cost=reprise_decoding.CostCurve.linear(0.01), **options))
            used.complete([*begin, *secret, *secret, *secret], 30)
            model, seen = used.draft_model, []
            for ids in (asked, [*asked, 30, 31, 32], [*asked, 30, 31, 32, 30, 31]):
                seen += model(np.array(ids, np.int32)).tolist()
            self.assertEqual(bool(set(seen) & set(secret[3:])), sees)

    def test_most_and_the_switch(self) -> None:
        ids = np.array([1, 2, 3, 4, 5] * 6, np.int32)
        self.assertEqual(self.llama(most=3).draft_model(ids).size, 3)
        self.assertEqual(self.llama(most=0).draft_model(ids).size, 0)
        model = self.llama().draft_model
        model.drafter.enabled = False
        self.assertEqual(model(ids).size, 0)

    def enabled(self, **options: Any) -> Llama:
        llama = Llama(**options)
        self.module.enable(llama, cost=reprise_decoding.CostCurve.linear(0.01))
        return llama

    def test_enabled_drafts_need_only_the_logits_of_their_rows(self) -> None:
        llama, all_rows = self.enabled(), self.llama()
        for each in (llama, all_rows):
            for seed in (1, 2, 1):
                self.assertEqual(each.complete(prompt(seed), 150), plain(prompt(seed), 150))
                self.assertLess(each.passes, 75)
        self.assertEqual(llama.rows, all_rows.rows - len(prompt(1)) + 1)

    def test_a_logits_processor_sees_the_ids_before_its_row(self) -> None:
        llama, expected = self.enabled(), Llama()
        expected.complete(prompt(1), 150)
        llama.complete(prompt(1), 150)
        self.assertEqual(llama.seen, expected.seen)

    def test_nothing_is_drafted_after_an_end(self) -> None:
        eos = plain(prompt(1), 40)[-1]

        def drafts(llama: Llama) -> list[Any]:
            model, made = llama.draft_model, []
            llama.draft_model = lambda ids: made.append(model(ids)) or made[-1]
            for seed in (1, 2, 1):  # the caller goes on after the ends, and gets the same text
                self.assertEqual(llama.complete(prompt(seed), 150), plain(prompt(seed), 150))
            return [draft.tolist() for draft in made]

        self.assertGreater(after(drafts(self.enabled()), eos), 20)
        self.assertGreater(after(drafts(self.llama()), eos), 20)
        for llama in (self.enabled(ends=(eos, 60)), self.llama(eos=eos)):
            made = drafts(llama)
            self.assertEqual(after(made, eos), 0)
            self.assertTrue(any(draft[-1:] == [eos] for draft in made))
            self.assertLess(llama.passes, 90)

    def test_the_default_keys_are_secret(self) -> None:
        models = [self.module.DraftModel() for _ in range(2)]
        self.assertNotEqual(models[0]._options["key"], models[1]._options["key"])
        with unittest.mock.patch.object(self.module, "Memory", wraps=reprise_decoding.Memory) as made:
            self.module.DraftModel(key=7)
            self.module.DraftModel(memory=None)
        made.assert_called_once_with(key=7)

    def test_ends_outside_the_vocabulary_of_the_drafter(self) -> None:
        llama = Llama(ends=(5, 63))
        self.module.enable(llama, vocabulary=60)
        self.assertEqual(self.module._stops(llama, 60).tolist(), [5])

    def test_an_enabled_object_is_freed_at_once(self) -> None:
        llama = self.enabled()
        freed = weakref.ref(llama)
        del llama
        self.assertIsNone(freed())

    def test_a_small_batch_bounds_the_draft(self) -> None:
        for n_batch in (1, 5, 40):
            llama = self.enabled(n_batch=n_batch)
            self.assertEqual(llama.complete(prompt(1), 150), plain(prompt(1), 150))
            self.assertEqual(llama.draft_model.most, min(16, n_batch - 1))

    def test_a_release_with_another_batch_is_refused(self) -> None:
        for batch in (None, types.SimpleNamespace(), types.SimpleNamespace(set_batch=lambda tokens: None)):
            llama = Llama()
            llama._batch = batch  # type: ignore[assignment]
            with self.assertRaisesRegex(reprise_decoding.ArgumentError, "llama: this release"):
                self.module.enable(llama)
            self.assertIsNone(llama.draft_model)

    def test_a_recurrent_state_is_refused(self) -> None:
        for kind in ("_is_recurrent", "_is_hybrid"):
            llama = Llama()
            setattr(llama, kind, True)
            with self.assertRaisesRegex(reprise_decoding.ArgumentError, "llama: the recurrent state"):
                self.module.enable(llama)
            self.assertIsNone(llama.draft_model)

    def test_rows_of_an_image_have_no_ids(self) -> None:
        drafts = self.enabled().draft_model
        self.assertGreater(drafts(np.array([1, 2, 3, 4] * 9, np.int32)).size, 0)
        self.assertEqual(drafts(np.array([1, -7, 3, 4] * 9, np.int32)).size, 0)
        self.assertGreater(drafts(np.array([1, 2, 3, 4] * 9, np.int32)).size, 0)

    def test_the_default_clock(self) -> None:
        def clock(offload: bool = False, platform: str = "linux", n_gpu_layers: int = 0, **options: Any) -> Any:
            with unittest.mock.patch.object(ENGINE, "llama_supports_gpu_offload", lambda: offload):
                with unittest.mock.patch("sys.platform", platform):
                    return self.module.enable(Llama(n_gpu_layers=n_gpu_layers), **options).drafter._clock

        self.assertIs(clock(), time.process_time_ns)
        self.assertIs(clock(n_gpu_layers=99), time.process_time_ns)  # this build has no code for GPUs
        self.assertIs(clock(offload=True), time.process_time_ns)
        self.assertIs(clock(offload=True, n_gpu_layers=99), time.perf_counter_ns)
        self.assertIs(clock(platform="win32"), time.perf_counter_ns)
        self.assertIs(clock(clock=time.monotonic_ns), time.monotonic_ns)
        self.assertIs(self.module.DraftModel().drafter._clock, time.perf_counter_ns)

    def test_the_switch_for_one_request(self) -> None:
        llama = self.enabled()
        with self.module.without_drafts():
            self.assertEqual(llama.complete(prompt(1), 150), plain(prompt(1), 150))
            self.assertEqual(llama.passes, 150)
            other: list[int] = []
            second = self.enabled()
            thread = threading.Thread(target=lambda: other.extend(second.complete(prompt(1), 150)))
            thread.start()
            thread.join()
        self.assertEqual(other, plain(prompt(1), 150))
        self.assertLess(second.passes, 75)
        llama.complete(prompt(2), 150)
        self.assertLess(llama.passes, 75)

    def test_a_switch_that_ends_in_another_context(self) -> None:
        def stream() -> Iterator[None]:
            with self.module.without_drafts():
                yield

        steps = stream()
        contextvars.copy_context().run(next, steps)
        self.assertEqual(list(steps), [])

    def test_a_bound_and_the_counts_of_one_request(self) -> None:
        for max_draft, longest in ((0, 16), (3, 3), (64, 16)):
            llama = self.enabled()
            model, made = llama.draft_model, []
            llama.draft_model = lambda ids: made.append(model(ids)) or made[-1]
            llama.complete(prompt(2), 150)
            before = model.statistics
            with reprise_decoding.request(max_draft=max_draft) as one:
                self.assertEqual(llama.complete(prompt(1), 150), plain(prompt(1), 150))
                passes = llama.passes
            self.assertEqual(max(map(len, made[before.passes + 1 :])), longest)
            counts = one.statistics
            self.assertEqual(counts.passes, passes - 1)  # the first one ran the prompt
            self.assertEqual(counts.tokens, 149)
            self.assertEqual(counts.accepted, 149 - counts.passes)
            self.assertGreater(counts.drafted, counts.accepted)
            llama.complete(prompt(2), 150)
            self.assertEqual(one.statistics, counts)
            self.assertGreater(model.statistics.passes, before.passes + passes)

    def test_text_stays_with_the_salt_of_a_request(self) -> None:
        secret, ask = list(range(30, 58)), [1, 2, 3, 9, 30, 31, 32]
        for first, second, sees in (
            ("a", "a", True), ("a", "b", False), ("a", None, False),
            (None, "a", False), (None, None, True), (5, 5, True),
        ):  # fmt: skip
            llama = self.enabled()
            with reprise_decoding.request(salt=first):
                llama.complete([1, 2, 3, *secret, 9, *secret], 30)
            with reprise_decoding.request(salt=second):
                seen = set(llama.draft_model(np.array(ask, np.int32)).tolist())
            self.assertEqual(bool(seen & set(secret[3:])), sees, (first, second))

    def test_a_block_that_is_open_while_another_request_runs_does_not_get_its_text(self) -> None:
        secret, ask = list(range(30, 58)), [1, 2, 3, 9, 30, 31, 32]
        for other, count in (("b", 30), ("b", 1), (None, 30)):
            llama = self.enabled()
            with reprise_decoding.request(salt="a"):
                llama.complete(prompt(1), 30)
                with reprise_decoding.request(salt=other):
                    llama.complete([1, 2, 3, *secret, 9, *secret], count)
            with reprise_decoding.request(salt="a"):
                seen = set(llama.draft_model(np.array(ask, np.int32)).tolist())
            self.assertFalse(seen & set(secret[3:]), (other, count))

    def test_a_block_that_ends_while_the_next_request_begins(self) -> None:
        llama, ends, go = self.enabled(), threading.Event(), threading.Event()
        found: list[Any] = []

        def first() -> None:
            with reprise_decoding.request(salt="a") as one:
                llama.complete(prompt(1), 50)
                used = llama.draft_model._used
                draft, used.draft = used.draft, lambda *given, **named: slow(draft, *given, **named)
            found.append(one.statistics.tokens)

        def slow(draft: Any, *given: Any, **named: Any) -> Any:
            ends.set()
            go.wait(5)
            return draft(*given, **named)

        thread = threading.Thread(target=first)
        thread.start()
        ends.wait(5)
        timer = threading.Timer(0.05, go.set)
        timer.start()
        with reprise_decoding.request(salt="b") as two:
            self.assertEqual(llama.complete(prompt(2), 50), plain(prompt(2), 50))
        thread.join()
        timer.join()
        self.assertEqual((found, two.statistics.tokens), ([49], 49))

    def test_a_block_that_outlives_the_object_of_its_request(self) -> None:
        with reprise_decoding.request(salt="a") as one:
            llama = self.enabled()
            llama.complete(prompt(1), 50)
            del llama
        self.assertEqual(one.statistics.tokens, 49)

    def test_a_prediction_is_for_the_first_request_of_its_block(self) -> None:
        ids, other, unlike = prompt(1)[:19], prompt(2)[:19], range(40, 60)
        for salt in (None, "a"):
            llama = self.enabled()
            with reprise_decoding.request(prediction=plain(ids, 35), salt=salt):
                self.assertEqual(llama.complete(ids, 35), plain(ids, 35))
                self.assertEqual(llama.passes, 3)  # the prompt, then twice 16 drafted tokens
                self.assertEqual(llama.complete(other, 35), plain(other, 35))
                self.assertGreater(llama.passes, 3)
            model, made = llama.draft_model, []
            llama.draft_model = lambda ids: made.append(model(ids)) or made[-1]
            with reprise_decoding.request(prediction=unlike, salt=salt):
                self.assertEqual(llama.complete(other, 35), plain(other, 35))
                self.assertEqual(made[0].tolist(), list(unlike[:16]))
                made.clear()
                llama.complete(prompt(3), 35)
            with reprise_decoding.request(salt=salt):
                llama.complete(prompt(4), 35)
            self.assertFalse(set(np.concatenate(made).tolist()) & set(unlike))

    def test_ids_that_the_model_does_not_have_are_not_drafted(self) -> None:
        llama = self.enabled()
        with reprise_decoding.request(prediction=[40, 41, VOCABULARY, 42]):
            self.assertEqual(llama.draft_model(np.array([1, 2, 3], np.int32)).tolist(), [40, 41])

    def test_requests_with_a_salt_are_counted_and_end_where_the_model_ends(self) -> None:
        eos = plain(prompt(1), 40)[-1]
        llama = self.enabled(ends=(eos,))
        model, made = llama.draft_model, []
        llama.draft_model = lambda ids: made.append(model(ids)) or made[-1]
        with reprise_decoding.request(salt="a") as one:
            self.assertEqual(llama.complete(prompt(1), 150), plain(prompt(1), 150))
        self.assertEqual(after([draft.tolist() for draft in made], eos), 0)
        self.assertGreater(one.statistics.accepted, 50)
        self.assertEqual(model.statistics, one.statistics)
        model.drafter.enabled = False
        with reprise_decoding.request(salt="a") as one:
            llama.complete(prompt(1), 50)
        self.assertEqual(one.statistics.drafted, 0)
        self.assertGreater(one.statistics.passes, 40)

    def test_a_salt_without_a_memory(self) -> None:
        llama = Llama()
        self.module.enable(llama, cost=0.01, memory=None)
        with reprise_decoding.request(salt="a") as one:
            self.assertEqual(llama.complete(prompt(1), 150), plain(prompt(1), 150))
        self.assertGreater(one.statistics.accepted, 50)

    def test_blocks_in_each_other_and_several_objects(self) -> None:
        first, second = self.enabled(), self.enabled()
        with reprise_decoding.request() as outer:
            first.complete(prompt(1), 50)
            with reprise_decoding.request(enabled=False) as inner:
                first.complete(prompt(2), 50)
                second.complete(prompt(2), 50)
            second.complete(prompt(1), 50)
        self.assertEqual((inner.statistics.drafted, inner.statistics.passes), (0, 98))
        self.assertEqual(outer.statistics.tokens, 98)
        self.assertGreater(outer.statistics.accepted, 20)

    def test_an_exception_in_a_request(self) -> None:
        llama = self.enabled()
        with self.assertRaises(KeyError), reprise_decoding.request(salt="a") as one:
            llama.complete(prompt(1), 50)
            raise KeyError
        self.assertEqual(one.statistics.tokens, 49)
        self.assertEqual(llama.complete(prompt(1), 50), plain(prompt(1), 50))


if __name__ == "__main__":
    unittest.main()
