# SPDX-License-Identifier: Apache-2.0
"""The adapter for transformers, with a model, a cache and loops that take the calls of 5.23. numpy stands in for torch.

The model reads its whole text from the cache, through the mask and the positions: a row that sees too much, too little
or another order gives another token.
"""

from __future__ import annotations

import gc
import threading
import time
import types
import unittest
import unittest.mock
import weakref
from typing import Any

import fake_torch
import numpy as np
import reprise_decoding
from fake_torch import CPU, GPU, Tensor
from support import VOCABULARY, adapter, after, next_token, plain, prompt


class DynamicLayer:
    """Its keys are positions and tokens."""

    def __init__(self) -> None:
        self.keys, self.values = Tensor(np.zeros((1, 1, 0, 1), np.int64)), Tensor(np.zeros((1, 1, 0, 1), np.int64))


class DynamicSlidingWindowLayer(DynamicLayer):
    pass


class AnyCache:
    recording = False

    def activate_past_recording(self) -> None:
        self.recording = True


class DynamicCache(AnyCache):
    offloading = False

    def __init__(self, *layers: Any, config: Any = None) -> None:
        kinds = {"full_attention": DynamicLayer, "sliding_attention": DynamicSlidingWindowLayer}
        names = getattr(config, "layer_types", ["full_attention"] * 2)
        self.layers = list(layers or (kinds[name]() for name in names))

    def get_seq_length(self) -> int:
        return int(self.layers[0].keys.shape[2])

    def crop(self, count: int) -> None:
        assert self.recording, "a sliding window needs its past"
        assert -self.get_seq_length() <= count < 0, "the engine refuses the other sizes"
        for layer in self.layers:
            layer.keys, layer.values = layer.keys[:, :, :count], layer.values[:, :, :count]

    def add(self, positions: Any, tokens: Any) -> None:
        for layer in self.layers:
            for name, new in (("keys", positions), ("values", tokens)):
                old = getattr(layer, name).data
                setattr(layer, name, Tensor(np.concatenate([old, np.reshape(new, (1, 1, -1, 1))], axis=2)))


Cache = DynamicCache


class MaxLengthCriteria:
    __module__ = "transformers.generation.stopping_criteria"

    def __init__(self, max_length: int) -> None:
        self.max_length = max_length

    def __call__(self, ids: Any, scores: Any) -> Any:
        return Tensor(np.full(len(ids.data), ids.shape[1] >= self.max_length))


class EosTokenCriteria:
    __module__ = "transformers.generation.stopping_criteria"

    def __init__(self, *eos: int) -> None:
        self.eos_token_id = Tensor(np.array(eos))

    def __call__(self, ids: Any, scores: Any) -> Any:
        return Tensor(np.isin(ids.data[:, -1], self.eos_token_id.data))


class StopStringCriteria:
    """Stops after these tokens. As the engine's, it looks at the last tokens of each row alone."""

    __module__ = "transformers.generation.stopping_criteria"

    def __init__(self, *tokens: int) -> None:
        self.tokens, self.maximum_token_len = list(tokens), len(tokens)

    def __call__(self, ids: Any, scores: Any) -> Any:
        return Tensor(np.array([row[-len(self.tokens) :].tolist() == self.tokens for row in ids.data]))


class Criteria(list):  # type: ignore[type-arg]
    def __call__(self, ids: Any, scores: Any) -> Any:
        assert scores is None
        done = np.zeros(len(ids.data), bool)
        for each in self:
            fired = each(ids, scores)
            done = done | (fired if isinstance(fired, bool) else fired.data)
        return Tensor(done)


class GenerationMixin:
    """Passes on arguments, and drops them, as generate() of 5.23 does."""

    passes, drafted, furthest, assisted, hook = 0, 0, 0, 0, staticmethod(lambda place: None)

    def _prepare_generation_config(self, config: Any, **options: Any) -> Any:
        known = {
            "max_length": None, "do_sample": False, "num_beams": 1, "return_dict_in_generate": False,
            "prompt_lookup_num_tokens": None, "prefill_chunk_size": None, "is_assistant": False,
        }  # fmt: skip
        given = {name: options.pop(name) for name in list(options) if name in known}
        return types.SimpleNamespace(**{**known, **given}), options

    def _get_candidate_generator(self, generation_config: Any, assistant_model: Any = None, **_: Any) -> Any:
        if generation_config.prompt_lookup_num_tokens == 0:
            raise ValueError("Invalid max_matching_ngram_size or num_output_tokens")
        assert assistant_model is not None or generation_config.prompt_lookup_num_tokens is not None
        self.assisted += 1
        return NoCandidates()

    def _sample(
        self, ids: Any, processors: Any, criteria: Any, config: Any, synced_gpus: bool = False, streamer: Any = None,
        **inputs: Any,
    ) -> Any:  # fmt: skip
        while True:
            self.passes += 1
            fresh = []
            for row in ids.data:
                scores = np.zeros((1, VOCABULARY), np.float32)
                scores[0, next_token(row)] = 50
                for each in processors:
                    scores = each(Tensor(row[None]), Tensor(scores)).data
                fresh.append([int(scores.argmax())])
            ids = Tensor(np.concatenate([ids.data, fresh], axis=1))
            if streamer is not None:
                streamer.put(Tensor(np.array(fresh)[:, 0]))
            if criteria(ids, None).all():
                break
        if streamer is not None:
            streamer.end()
        return ids

    def _beam_search(self, ids: Any, *arguments: Any, **inputs: Any) -> Any:
        return GenerationMixin._sample(self, ids, *arguments, **inputs)

    def _assisted_decoding(
        self, ids: Any, processors: Any, criteria: Any, config: Any, streamer: Any = None, assistant_model: Any = None,
        **inputs: Any,
    ) -> Any:  # fmt: skip
        if ids.shape[0] > 1:
            raise ValueError("assisted generate is only supported for batch_size = 1")
        assert ids.device == self.device, "this loop compares the ids with drafts on the model's device"
        self.hook("assisted")
        candidates = self._get_candidate_generator(
            generation_config=config, input_ids=ids, inputs_tensor=None, assistant_model=assistant_model,
            logits_processor=processors, target_tokenizer=None, assistant_tokenizer=None, model_kwargs=inputs,
        )  # fmt: skip
        assert isinstance(candidates, CandidateGenerator)
        while True:
            self.passes += 1
            longer, logits = candidates.get_candidates(ids)
            assert logits is None and longer.dtype == ids.dtype and longer.shape[1] < config.max_length
            context, count = longer.data[0].tolist(), ids.shape[1]
            self.drafted += longer.shape[1] - count
            self.furthest = max(self.furthest, longer.shape[1] - 1)
            fresh: list[int] = []
            for i in range(longer.shape[1] - count + 1):
                scores = np.zeros((1, VOCABULARY), np.float32)
                scores[0, next_token(context[: count + i])] = 50
                for each in processors:
                    scores = each(Tensor(np.array([context[: count + i]])), Tensor(scores)).data
                fresh.append(int(scores.argmax()))
            good = next((i for i, token in enumerate(context[count:]) if token != fresh[i]), len(fresh) - 1)
            ids = Tensor(np.concatenate([ids.data, [fresh[: good + 1]]], axis=1))
            if streamer is not None:
                streamer.put(Tensor(np.array([fresh[: good + 1]])))
            candidates.update_candidate_strategy(ids, None, good)
            if criteria(ids, None).all():  # after the pass alone, as in the engine
                break
        if streamer is not None:
            streamer.end()
        return ids

    def generate(
        self, ids: Any, count: int, streamer: Any = None, tokenizer: Any = None, assistant_model: Any = None,
        logits_processor: Any = (), stopping_criteria: Any = (), **options: Any,
    ) -> Any:  # fmt: skip
        rows = Tensor(np.array(ids if isinstance(ids[0], list) else [ids], np.int64))
        config, inputs = self._prepare_generation_config(None, max_length=rows.shape[1] + count, **options)
        assisted = assistant_model is not None or config.prompt_lookup_num_tokens is not None
        plain = "_beam_search" if config.num_beams > 1 else "_sample"
        loop = getattr(type(self), "_assisted_decoding" if assisted else plain)
        if streamer is not None:
            streamer.put(rows)
        self.hook("loop")
        self.passes = self.assisted = self.furthest = 0
        own = [] if any(isinstance(each, MaxLengthCriteria) for each in stopping_criteria) else [config.max_length]
        positions = Tensor(np.arange(rows.shape[1])[None])
        output = loop(
            self, rows, Processors(logits_processor),
            Criteria([*map(MaxLengthCriteria, own), *stopping_criteria]), config, streamer=streamer,
            **({"assistant_model": assistant_model} if assisted else {}),
            **({} if tokenizer is None else {"tokenizer": tokenizer}),  # the engine gives it to all loops
            **{"past_key_values": Cache(), "use_cache": True, "attention_mask": None, "position_ids": positions,
               **inputs},
        )  # fmt: skip
        made: list[Any] = output.data[:, rows.shape[1] :].tolist()
        return made if isinstance(ids[0], list) else made[0]


class Processors(list):  # type: ignore[type-arg]
    def __call__(self, ids: Any, scores: Any) -> Any:
        for each in self:
            scores = each(ids, scores)
        return scores


class Model(GenerationMixin):
    dtype, device = np.dtype(np.float32), CPU

    def __init__(self) -> None:
        config = types.SimpleNamespace(_attn_implementation="sdpa", is_encoder_decoder=False, vocab_size=VOCABULARY)
        config.get_text_config = lambda: config
        self.config = config
        self.branched = self.fail = False

    def parameters(self) -> Any:
        return iter([types.SimpleNamespace(device=self.device)])

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
        assert all(each is None or each.device == self.device for each in (input_ids, attention_mask, position_ids))
        if self.fail:
            raise MemoryError("the device has no memory left")
        self.passes += 1
        cached, rows = past_key_values.get_seq_length(), input_ids.shape[1]
        positions = position_ids.data[0] if position_ids is not None else np.arange(cached, cached + rows)
        self.furthest = max(self.furthest, positions.max())
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
        return types.SimpleNamespace(logits=Tensor(logits[:, -logits_to_keep:], self.device))


class CandidateGenerator:
    pass


class NoCandidates(CandidateGenerator):
    """The engine's own lookup, which finds nothing."""

    def get_candidates(self, ids: Any) -> Any:
        return ids, None

    def update_candidate_strategy(self, *_: Any) -> None:
        pass


class Streamer:
    """Takes the prompt, and then single tokens as plain decoding puts them."""

    def __init__(self, fail: Any = None) -> None:
        self.tokens: list[int] = []
        self.ended, self.fail = False, fail

    def put(self, value: Any) -> None:
        assert not self.ended and value.device == CPU
        assert not self.tokens or value.shape == (1,), f"plain decoding puts single tokens, not {value.shape}"
        self.tokens += value.data.reshape(-1).tolist()
        if self.fail is not None and len(self.tokens) > 80:
            raise self.fail

    def end(self) -> None:
        self.ended = True


class Shift:
    """A logits processor of transformers. It must see the tokens of the row's own path."""

    __module__ = "transformers.generation.logits_process"

    def __call__(self, ids: Any, scores: Any) -> Any:
        assert int(scores.data[0].argmax()) == next_token(ids.data[0])
        shifted = scores.data.copy()
        shifted[0, (next_token(ids.data[0]) + len(ids.data[0]) % 2) % 40] = 99
        return Tensor(shifted)


class PrefixConstrainedLogitsProcessor:
    """That of transformers: it calls a function of the user."""

    __module__ = "transformers.generation.logits_process"

    def __init__(self, allowed: Any) -> None:
        self.allowed = allowed

    def __call__(self, ids: Any, scores: Any) -> Any:
        masked = np.full_like(scores.data, -np.inf)
        allowed = self.allowed(0, ids[0])
        if len(allowed) == 0:
            raise ValueError("`prefix_allowed_tokens_fn` returned an empty list for batch ID 0.")
        masked[0, allowed] = scores.data[0, allowed]
        return Tensor(masked)


class Own:
    """A processor and a criterion from outside transformers, which has to see each committed token once."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.once = True

    def __call__(self, ids: Any, scores: Any) -> Any:
        self.once = self.once and ids.shape[1] not in self.seen
        self.seen.append(ids.shape[1])
        return Tensor(np.zeros(len(ids.data), bool)) if scores is None else scores


def first(pair: list[int], output: list[int]) -> int:
    """Returns where the output has this pair of tokens first, of which the first may be the end of the prompt."""
    text = [prompt(1)[-1], *output]
    return next(i for i in range(len(output)) if text[i : i + 2] == pair)


TRANSFORMERS = types.ModuleType("transformers")
TRANSFORMERS.GenerationMixin = GenerationMixin  # type: ignore[attr-defined]
TRANSFORMERS.Cache, TRANSFORMERS.DynamicCache = AnyCache, DynamicCache  # type: ignore[attr-defined]
GENERATOR = types.ModuleType("transformers.generation.candidate_generator")
GENERATOR.CandidateGenerator = CandidateGenerator  # type: ignore[attr-defined]
CHEAP = reprise_decoding.CostCurve.linear(0.01)


class Assistant(Model):
    """A draft model that is wrong at every `wrong`-th position. It counts its runs, and the rows of the longest one."""

    def __init__(self, wrong: int = 1000) -> None:
        super().__init__()
        self.wrong, self.longest, self.keeps = wrong, 0, wrong != 3

    def _supports_logits_to_keep(self) -> bool:
        return self.keeps

    def __call__(self, input_ids: Any, past_key_values: Any, use_cache: bool, **options: Any) -> Any:
        assert options == ({"logits_to_keep": 1} if self.keeps else {})
        if self.passes:
            self.longest = max(self.longest, input_ids.shape[1])
        made = super().__call__(input_ids, past_key_values, use_cache, **options)
        if past_key_values.get_seq_length() % self.wrong == 0:
            made.logits.data[0, -1] = np.roll(made.logits.data[0, -1], 1)
        return made


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

    def enable(self, **options: Any) -> Any:
        return self.module.enable(self.model, cost=CHEAP, **options)

    def both(self, **options: Any) -> Any:
        """Enables chains, then branches."""
        for leaves in (1, 8):
            yield self.enable(max_leaves=leaves, **options)
            self.module.disable(self.model)


class Enabled(Case):
    def test_the_text_is_that_without_drafts_in_fewer_passes(self) -> None:
        for drafts in self.both():
            passes = 0
            for ids in (prompt(1), prompt(2), [5], prompt(1)):
                self.assertEqual(self.model.generate(ids, 150), plain(ids, 150))
                self.assertLess(self.model.passes, 90)
                passes += self.model.passes
            counts = drafts.statistics
            self.assertEqual(counts.tokens, 600)
            self.assertLess(counts.passes, 360)
            self.assertGreater(counts.accepted, 200)
            self.assertEqual(counts.fields["passes"], counts.passes)
        self.assertTrue(self.model.branched)

    def test_a_streamer_gets_each_token_and_the_end(self) -> None:
        for _ in self.both():
            streamer = Streamer()
            self.model.generate(prompt(1), 40, streamer=streamer)
            self.assertEqual((streamer.tokens, streamer.ended), (prompt(1) + plain(prompt(1), 40), True))

    def test_an_exception_in_a_streamer(self) -> None:
        for drafts in self.both():
            for error in (ConnectionError, KeyboardInterrupt, ConnectionError):
                with self.assertRaises(error):
                    self.model.generate(prompt(1), 90, streamer=Streamer(fail=error))
                self.assertEqual(self.model.generate(prompt(2), 90), plain(prompt(2), 90))
            self.assertEqual(len(drafts._free), 1)

    def test_the_output_ends_at_a_stop_inside_a_draft(self) -> None:
        """The engine checks stops after a pass alone, so a draft must not go on after one."""
        wanted = plain(prompt(1), 150)
        for drafts in self.both():
            for at in range(30, 60):
                stop = wanted[at - 1 : at + 1]
                end = first(stop, wanted)
                streamer = Streamer()
                output = self.model.generate(
                    prompt(1), 150, stopping_criteria=[StopStringCriteria(*stop)], streamer=streamer, tokenizer=1
                )
                self.assertEqual(output, wanted[: end + 1])
                self.assertEqual(streamer.tokens, prompt(1) + output)
            self.assertGreater(drafts.statistics.accepted, 100)

    def test_a_stop_that_is_longer_than_the_prompt(self) -> None:
        text = plain([5], 150)
        for _ in self.both():
            for end in range(10, 60):
                output = self.model.generate([5], 150, stopping_criteria=[StopStringCriteria(5, *text[:end])])
                self.assertEqual(output, text[:end])

    def test_nothing_is_drafted_after_the_end(self) -> None:
        wanted = plain(prompt(1), 150)
        for drafts in self.both():
            session = drafts._free[0]
            made: list[list[int]] = []  # drafts, or the paths of branches
            step_of = session.plan if drafts._max_leaves > 1 else session.draft

            def recorded(*arguments: Any, **limits: Any) -> Any:
                step = step_of(*arguments, **limits)  # noqa: B023
                if isinstance(step, np.ndarray):
                    made.append(step.tolist())  # noqa: B023
                    return step
                paths: list[list[int]] = []
                for token, parent in zip(step.batch[step.pending :].tolist(), step.parents.tolist()):
                    paths.append([*(paths[parent] if parent >= 0 else []), token])
                made.extend(paths)  # noqa: B023
                return step

            setattr(session, "plan" if drafts._max_leaves > 1 else "draft", recorded)
            self.assertEqual(self.model.generate(prompt(1), 150), wanted)
            before, eos, accepted = list(made), wanted[39], drafts.statistics.accepted
            for ends in ((eos,), (60, eos), (-1, eos, VOCABULARY, 2**40)):
                made.clear()
                output = self.model.generate(prompt(1), 150, stopping_criteria=[EosTokenCriteria(*ends)])
                self.assertEqual(output, wanted[: wanted.index(eos) + 1])
                self.assertTrue(any(eos in path for path in before) and any(made))
                self.assertGreater(after(before, eos), 20)
                self.assertEqual(after(made, eos), 0, ends)
            # A request without ends, or with others, after one with these.
            made.clear()
            self.assertEqual(self.model.generate(prompt(1), 150), wanted)
            self.assertGreater(after(made, eos), 20)
            self.assertGreater(drafts.statistics.accepted, accepted)

    def test_the_rows_that_a_stop_cuts_off_are_not_rejected(self) -> None:
        wanted = plain(prompt(1), 150)
        drafts = self.enable()
        for at in range(30, 60):
            self.model.generate(prompt(1), 150, stopping_criteria=[StopStringCriteria(*wanted[at - 1 : at + 1])])
        self.assertEqual(drafts.statistics.drafted, self.model.drafted)

    def test_a_shorter_limit(self) -> None:
        for _ in self.both():
            for length in range(62, 110):
                output = self.model.generate(prompt(1), 150, stopping_criteria=[MaxLengthCriteria(length)])
                self.assertEqual(output, plain(prompt(1), length - 60))
                self.assertEqual(self.model.furthest, length - 2, "no row is of use to a token after the limit")

    def test_logits_processors_see_their_own_path(self) -> None:
        context = prompt(1)
        for _ in range(80):
            context.append((next_token(context) + len(context) % 2) % 40)
        for drafts in self.both():
            self.assertEqual(self.model.generate(prompt(1), 80, logits_processor=[Shift()]), context[60:])
            self.assertGreater(drafts.statistics.accepted, 10)

    def test_processors_and_criteria_from_elsewhere_may_keep_state(self) -> None:
        for name in ("logits_processor", "stopping_criteria"):
            for drafts in self.both():
                own = Own()
                self.assertEqual(self.model.generate(prompt(1), 80, **{name: [own]}), plain(prompt(1), 80))
                self.assertTrue(own.once)
                self.assertEqual((self.model.passes, drafts.statistics.drafted), (80, 0))
                with self.assertRaises(self.module.OrderError):
                    self.enable()

    def test_custom_processors_and_criteria(self) -> None:
        wanted = plain(prompt(1), 150)
        for drafts in self.both(custom=True):
            for at in range(30, 60):
                pair = wanted[at - 1 : at + 1]
                for stop in (
                    lambda ids, _: ids.data[0, -2:].tolist() == pair,  # noqa: B023
                    lambda ids, _: Tensor(np.array([ids.data[0, -2:].tolist() == pair])),  # noqa: B023
                ):
                    output = self.model.generate(prompt(1), 150, logits_processor=[Own()], stopping_criteria=[stop])
                    self.assertEqual(output, wanted[: first(pair, wanted) + 1])
            self.assertGreater(drafts.statistics.accepted, 100)

    def test_an_allowed_prefix(self) -> None:
        """A function of the user may know no tokens after a prefix that is never committed."""
        text = [*prompt(1), *plain(prompt(1), 80)]

        def strict(batch: int, ids: Any) -> list[int]:
            known = ids.data.tolist() == text[: ids.shape[0]]
            return [text[ids.shape[0]]] if known else []

        def lenient(batch: int, ids: Any) -> list[int]:
            return strict(batch, ids) or [0]

        for drafts in self.both():
            output = self.model.generate(prompt(1), 80, logits_processor=[PrefixConstrainedLogitsProcessor(strict)])
            self.assertEqual(output, text[60:])
            self.assertEqual((self.model.passes, drafts.statistics.drafted), (80, 0))
        for drafts in self.both(custom=True):
            output = self.model.generate(prompt(1), 80, logits_processor=[PrefixConstrainedLogitsProcessor(lenient)])
            self.assertEqual(output, text[60:])
            self.assertGreater(drafts.statistics.accepted, 10)

    def test_sampling(self) -> None:
        """The toy model is nearly certain of each token, so a sample is its text."""
        for _ in self.both():
            self.assertEqual(self.model.generate(prompt(1), 80, do_sample=True), plain(prompt(1), 80))

    def test_threads(self) -> None:
        for drafts in self.both():
            failed: list[Any] = []
            ready = threading.Barrier(4)

            def work(seed: int) -> None:
                for turn in range(6):
                    ids = prompt(seed * 10 + turn)  # noqa: B023
                    ready.wait()  # noqa: B023
                    made = GenerationMixin.generate(self.model, ids, 60)
                    if made != plain(ids, 60):
                        failed.append((seed, turn))  # noqa: B023

            for _ in range(3):  # threads of a round end, and their drafters are used by the next round
                threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            self.assertEqual(failed, [])
            self.assertLessEqual(len(drafts._free), 4)
            self.assertEqual(drafts.statistics.tokens, 3 * 4 * 6 * 60)

    def test_later_drafters_know_the_costs(self) -> None:
        drafts = self.module.enable(self.model)
        new = drafts.save_costs("mine")
        for seed in range(5):
            self.model.generate(prompt(seed), 90)
        saved = drafts.save_costs("mine")
        self.assertNotEqual(saved, new)
        with drafts._drafter() as one, drafts._drafter() as two:
            self.assertIsNot(one, two)
            self.assertEqual([one.save_costs("mine"), two.save_costs("mine")], [saved, saved])
        self.module.disable(self.model)
        again = self.module.enable(self.model, saved_costs=saved, engine="mine")
        self.assertEqual(again.save_costs("mine"), saved)

    def test_saving_costs_leaves_the_memory_as_it_is(self) -> None:
        memory = reprise_decoding.Memory(salts=1)
        drafts = self.module.enable(self.model, memory=memory, salt=5)
        self.model.generate(prompt(1), 30)
        drafts._free.clear()  # no drafter uses the salt
        kept = memory.save(salt=5)
        drafts.save_costs("mine")
        self.assertEqual(memory.save(salt=5), kept)

    def test_costs_are_saved_without_a_memory(self) -> None:
        drafts = self.module.enable(self.model, memory=None)
        new = drafts.save_costs("mine")
        self.model.generate(prompt(1), 90)
        self.assertNotEqual(drafts.save_costs("mine"), new)


class Requests(Case):
    def test_a_bound_and_the_counts_of_one_request(self) -> None:
        for drafts in self.both(most=16):
            for max_draft in (0, 3, 64):
                before = drafts.statistics.passes
                with reprise_decoding.request(max_draft=max_draft) as one:
                    self.assertEqual(self.model.generate(prompt(1), 150), plain(prompt(1), 150))
                    passes = self.model.passes
                counts = one.statistics
                self.assertEqual((counts.tokens, counts.passes), (150, passes))
                self.assertEqual(counts.accepted, 150 - passes)
                self.assertLessEqual(counts.drafted, (min(max_draft, 16) or 16) * passes)
                self.model.generate(prompt(1), 30)
                self.assertEqual(one.statistics, counts)
                self.assertGreater(drafts.statistics.passes, before + passes)
                self.assertGreater(counts.accepted, 50)

    def test_the_switch_for_one_request(self) -> None:
        for drafts in self.both():
            with reprise_decoding.request(enabled=False) as one:
                self.assertEqual(self.model.generate(prompt(1), 30), plain(prompt(1), 30))
                self.assertEqual(self.model.passes, 30)
                self.model.generate([prompt(1), prompt(1)], 10)
            counts = one.statistics
            self.assertEqual((counts.tokens, counts.passes, counts.drafted), (40, 40, 0))
            self.assertEqual(drafts.statistics.fields, {"plain_turned_off": 1, "plain_several_sequences": 1})
            self.model.generate(prompt(1), 60)
            self.assertLess(self.model.passes, 60)

    def test_text_stays_with_the_salt_of_a_request(self) -> None:
        for leaves in (1, 8):
            for first, second, sees in (
                ("a", "a", True), ("a", "b", False), ("a", None, False), (None, "a", False), (None, None, True),
            ):  # fmt: skip
                memory = reprise_decoding.Memory()
                with self.enable(memory=memory, max_leaves=leaves) as drafts:
                    with reprise_decoding.request(salt=first):
                        self.model.generate(prompt(1), 150)
                    with reprise_decoding.request(salt=second) as one:
                        # A text of the toy model after 19 tokens: it has nothing to copy in itself.
                        self.assertEqual(self.model.generate(prompt(1)[:19], 10), plain(prompt(1)[:19], 10))
                    self.assertEqual(one.statistics.accepted > 4, sees, (leaves, first, second))
                    self.assertEqual(len(drafts._free), 1)

    def test_a_prediction_is_for_the_first_request_of_its_block(self) -> None:
        ids, other = prompt(1)[:19], prompt(2)[:19]
        for drafts in self.both(most=16):
            for salt in (None, "a"):
                with reprise_decoding.request(prediction=plain(ids, 34), salt=salt) as one:
                    self.assertEqual(self.model.generate(ids, 34), plain(ids, 34))
                    self.assertEqual(self.model.passes, 2)
                    self.assertEqual(one.statistics.accepted, 32)
                    self.assertEqual(self.model.generate(other, 34), plain(other, 34))
                    self.assertGreater(self.model.passes, 2)
                with reprise_decoding.request(prediction=[9, 9, 9], salt=salt):
                    self.assertEqual(self.model.generate(ids, 34), plain(ids, 34))

    def test_an_exception_before_the_first_draft_leaves_no_prediction(self) -> None:
        ids = prompt(1)[:19]
        for drafts in self.both():
            with self.assertRaises(ConnectionError), reprise_decoding.request(prediction=plain(ids, 34)):
                with unittest.mock.patch.object(self.module, "_eos", side_effect=ConnectionError):
                    self.model.generate(ids, 34)
            self.model.generate(ids, 34)
            self.assertGreater(self.model.passes - (drafts._max_leaves > 1), 2)

    def test_an_exception_in_a_request_with_a_salt(self) -> None:
        for drafts in self.both(memory=reprise_decoding.Memory()):
            with self.assertRaises(ConnectionError), reprise_decoding.request(salt="a") as one:
                self.model.generate(prompt(1), 90, streamer=Streamer(fail=ConnectionError))
            self.assertEqual(drafts.statistics.tokens, one.statistics.tokens)
            with reprise_decoding.request(salt="a"):
                self.assertEqual(self.model.generate(prompt(1), 90), plain(prompt(1), 90))


class NotServed(Case):
    """Requests that are decoded without drafts, or by the engine's own way."""

    def check(self, ids: Any, **options: Any) -> None:
        self.assertEqual(self.model.generate(ids, 30, **options), plain(prompt(1), 30))
        self.assertEqual(self.model.passes, 30)

    def test_without_drafts(self) -> None:
        filled = Cache()
        filled.add(np.arange(3), np.array([1, 2, 3]))
        plain_positions = np.arange(len(prompt(1)))[None]
        static, offloading = type("StaticCache", (Cache,), {})(), Cache()
        offloading.offloading = True

        class SynthIDTextWatermarkLogitsProcessor(Own):
            __module__ = "transformers.generation.logits_process"

        for drafts in self.both():
            for options in (
                {"prompt_lookup_num_tokens": 0},
                {"is_assistant": True},
                {"prefill_chunk_size": 64},
                {"use_cache": False},
                {"inputs_embeds": 1},
                {"pixel_values": 1},
                {"output_attentions": True},
                {"past_key_values": None},
                {"past_key_values": static},
                {"past_key_values": offloading},
                {"logits_processor": [SynthIDTextWatermarkLogitsProcessor()]},
                *([{"past_key_values": filled}] if drafts._max_leaves == 1 else [
                    {"attention_mask": 1},
                    {"return_dict_in_generate": True},
                    {"position_ids": None},  # a model that takes none, such as BLOOM
                    {"position_ids": Tensor(plain_positions + 3)},
                    {"position_ids": Tensor(np.stack([plain_positions] * 3))},
                    {"past_key_values": Cache(DynamicLayer(), DynamicSlidingWindowLayer())},
                ]),
            ):  # fmt: skip
                with self.subTest(options=options):
                    self.check(prompt(1), **options)
            counts = drafts.statistics
            self.assertEqual(counts.passes, 0)
            reasons = {name: count for name, count in counts.fields.items() if name.startswith("plain_")}
            caches = 4 if drafts._max_leaves == 1 else 9
            self.assertEqual(reasons, {
                "plain_turned_off": 2, "plain_prefill_chunks": 1, "plain_no_cache": 1, "plain_inputs": 2,
                "plain_attentions": 1, "plain_stateful_processors": 1, "plain_cache": caches,
            })  # fmt: skip

    def test_ids_on_another_device(self) -> None:
        """Plain decoding takes them, the loop for assisted generation does not, and that for branches does."""
        self.model.device = GPU
        for drafts in self.both():
            self.assertEqual(self.model.generate(prompt(1), 150, streamer=Streamer()), plain(prompt(1), 150))
            self.assertEqual(drafts.statistics.accepted > 50, drafts._max_leaves > 1)

    def test_a_batch(self) -> None:
        for _ in self.both():
            batch = [prompt(1), prompt(2)]
            self.assertEqual(self.model.generate(batch, 30), [plain(ids, 30) for ids in batch])
            self.assertEqual(self.model.passes, 30)

    def test_a_beam_search_is_counted(self) -> None:
        for drafts in self.both():
            for count in (1, 2):
                self.check(prompt(1), num_beams=4)
                counts = drafts.statistics
                self.assertEqual((counts.passes, counts.fields), (0, {"plain_beams": count}))
            drafts = self.module.disable(self.model)
            self.check(prompt(1), num_beams=4)
            self.enable()

    def test_the_engines_own_ways(self) -> None:
        for drafts in self.both():
            self.check(prompt(1), prompt_lookup_num_tokens=5)
            self.check(prompt(1), assistant_model=object())  # no model of transformers
            self.assertEqual((self.model.assisted, drafts.statistics.passes), (1, 0))
            self.assertEqual(drafts.statistics.fields, {"plain_assistant": 1})


class Switching(Case):
    def test_disable_restores_the_model(self) -> None:
        before = dict(vars(self.model))
        self.enable()
        self.assertIsInstance(self.model, Model)
        self.assertEqual((type(self.model).__name__, type(self.model).__module__), ("Model", Model.__module__))
        self.module.disable(self.model)
        self.assertIs(type(self.model), Model)
        self.assertEqual({**vars(self.model), "passes": 0}, {**before, "passes": 0})
        with self.enable():
            pass
        self.assertIs(type(self.model), Model)
        self.assertEqual(self.model.generate(prompt(1), 30), plain(prompt(1), 30))
        self.assertEqual(self.model.passes, 30)

    def test_the_default_clock(self) -> None:
        for devices, clock in (
            ([CPU, CPU], time.process_time_ns),
            ([GPU, GPU], time.perf_counter_ns),
            ([CPU, GPU], time.perf_counter_ns),
        ):
            self.model.device = devices[0]
            parts = [types.SimpleNamespace(device=device) for device in devices]
            self.model.parameters = parts.__iter__  # type: ignore[method-assign]
            with self.module.enable(self.model) as drafts:
                self.assertIs(drafts._new()._clock, clock)
        with self.module.enable(self.model, clock=time.monotonic_ns) as drafts:
            self.assertIs(drafts._new()._clock, time.monotonic_ns)

    def test_the_wrong_order(self) -> None:
        with self.assertRaisesRegex(self.module.OrderError, "model: drafts are not enabled"):
            self.module.disable(self.model)
        with self.enable():
            with self.assertRaisesRegex(self.module.OrderError, "model: drafts are enabled already; call disable"):
                self.enable()
            self.module.disable(self.model)
            second = self.enable()
        self.assertIs(type(self.model)._drafts, second)  # type: ignore[attr-defined]  # the end of `with` leaves it

    def test_the_model_is_restored_after_an_error(self) -> None:
        with self.assertRaises(ConnectionError), self.enable():
            self.model.generate(prompt(1), 90, streamer=Streamer(fail=ConnectionError))
        self.assertIs(type(self.model), Model)

    def test_disable_while_a_generation_runs(self) -> None:
        for place in ("loop", "assisted"):
            drafts = self.enable()

            def disable(where: str) -> None:
                if where == place and type(self.model) is not Model:  # noqa: B023
                    self.module.disable(self.model)

            self.model.hook = disable  # type: ignore[method-assign]
            self.assertEqual(self.model.generate(prompt(1), 60), plain(prompt(1), 60))
            self.assertIs(type(self.model), Model)
            self.assertEqual(len(drafts._free), 1)

    def test_a_model_is_freed_at_once(self) -> None:
        gc.disable()
        self.addCleanup(gc.enable)
        for leaves in (1, 8):
            model = Model()
            drafts = self.module.enable(model, cost=CHEAP, max_leaves=leaves)
            with drafts:
                model.generate(prompt(1), 30)
                gone = weakref.ref(model)
                del model
                self.assertIsNone(gone())
            self.assertEqual(drafts.statistics.tokens, 30)

    def test_refusals(self) -> None:
        class Recurrent(Model):
            _is_stateful = True

        class Loop(Model):
            def _sample(self, *_: Any, **__: Any) -> Any: ...

        class Ranks(Model):
            _device_mesh = types.SimpleNamespace(size=lambda: 2)

        for model, kind, sentence in (
            (Ranks(), ValueError, "model: is split over 2 processes"),
            (Recurrent(), ValueError, "model: the recurrent state of Recurrent cannot be rolled back"),
            (Loop(), ValueError, "model: Loop has a decoding loop of its own"),
            ("model", TypeError, "model: must be a model of transformers with generate"),
        ):
            with self.subTest(sentence=sentence), self.assertRaisesRegex(kind, sentence):
                self.module.enable(model)
        self.model.config._attn_implementation = "flash_attention_2"
        with self.assertRaisesRegex(ValueError, "model: .*sdpa"):
            self.enable(max_leaves=2)
        for name, value in (
            ("layer_types", ["full_attention", "sliding_attention"]), ("alibi", True),
            ("attention_layers", ["global", "local"]),
        ):  # fmt: skip
            model = Model()
            setattr(model.config, name, value)
            with self.subTest(name=name), self.assertRaisesRegex(ValueError, "model: branches need full attention"):
                self.module.enable(model, max_leaves=2)
            self.module.enable(model)
        for name, value, kind in (("colour", 1, TypeError), ("most", "x", TypeError), ("max_leaves", 0, ValueError)):
            with self.subTest(name=name), self.assertRaisesRegex(kind, name):
                self.enable(**{name: value})
        self.assertIs(type(self.model), Model)

    def test_another_release(self) -> None:
        def other(self: Any, config: Any) -> None: ...

        for owner, name, change in (
            (GenerationMixin, "_assisted_decoding", None),
            (GenerationMixin, "_get_candidate_generator", other),
            (AnyCache, "activate_past_recording", None),
        ):
            known = vars(owner)[name]
            if change is None:
                delattr(owner, name)
            else:
                setattr(owner, name, change)
            try:
                with self.subTest(name=name), self.assertRaisesRegex(ImportError, "this release of transformers"):
                    self.enable()
            finally:
                setattr(owner, name, known)


class Branches(Case):
    def setUp(self) -> None:
        super().setUp()
        self.enable(max_leaves=8)

    def test_the_cache_holds_the_text_and_can_be_used_again(self) -> None:
        for count in range(40, 60):
            cache = Cache()
            text = [*prompt(1), *self.model.generate(prompt(1), count, past_key_values=cache)]
            self.assertEqual(cache.layers[0].values.data[0, 0, :, 0].tolist(), text[:-1])
        turn = [*text, 60, 61]
        self.assertEqual(self.model.generate(turn, 30, past_key_values=cache), plain(turn, 30))

    def test_a_prefill_that_fails(self) -> None:
        drafts = type(self.model)._drafts  # type: ignore[attr-defined]
        for turn in range(1, 4):
            self.assertEqual(self.model.generate(prompt(1), 90), plain(prompt(1), 90))
            self.model.fail = True
            with self.assertRaises(MemoryError):
                self.model.generate(prompt(2), 90)
            self.model.fail = False
            self.assertEqual(drafts.statistics.tokens, 90 * turn)
            self.assertEqual(len(drafts._free), 1)

    def test_a_long_prompt_runs_in_a_pass_of_its_own(self) -> None:
        for most, passes in ((len(prompt(1)), 0), (len(prompt(1)) - 1, 1)):
            with unittest.mock.patch.object(self.module, "_SHORT", most), reprise_decoding.request() as one:
                self.assertEqual(self.model.generate(prompt(1), 60), plain(prompt(1), 60))
            self.assertEqual(self.model.passes - one.statistics.passes, passes)

    def test_a_cache_with_a_part_of_the_prompt(self) -> None:
        cache = Cache()
        self.model(Tensor(np.array([prompt(1)[:20]])), cache, True)
        self.assertEqual(self.model.generate(prompt(1), 50, past_key_values=cache), plain(prompt(1), 50))

    def test_the_cache_has_no_rows_of_tokens_after_a_stop(self) -> None:
        wanted = plain(prompt(1), 150)
        for at in range(30, 60):
            cache, end = Cache(), wanted.index(wanted[at])
            stop = StopStringCriteria(wanted[at])
            output = self.model.generate(prompt(1), 150, stopping_criteria=[stop], past_key_values=cache)
            self.assertEqual(output, wanted[: end + 1])
            self.assertEqual(cache.get_seq_length(), len(prompt(1)) + end)


class Assistants(Case):
    """The lookup and an assistant model."""

    def text(self, assistant: Any, seed: int = 1, **options: Any) -> None:
        made = self.model.generate(prompt(seed), 150, assistant_model=assistant, **options)
        self.assertEqual(made, plain(prompt(seed), 150))

    def test_fewer_passes_than_with_the_lookup_alone(self) -> None:
        for drafts in self.both(head_cost=0.05):
            self.assertEqual(self.model.generate(prompt(1), 150), plain(prompt(1), 150))
            alone, assistant = self.model.passes, Assistant()
            self.text(assistant)
            self.assertGreater(assistant.passes, 100)
            self.assertLess(self.model.passes, 0.8 * alone)
            self.assertEqual(self.model.assisted, 0)
            self.assertEqual((drafts.statistics.tokens, len(drafts._free), len(drafts._beside_assistants)), (300, 1, 1))

    def test_an_expensive_assistant_runs_less(self) -> None:
        for leaves in (1, 8):
            passes = []
            for cost in (0.05, 0.6):
                with self.enable(max_leaves=leaves, head_cost=cost):
                    assistant = Assistant(wrong=3)
                    self.text(assistant)
                    passes.append(assistant.passes)
            self.assertLess(2 * passes[1], passes[0])

    def test_late_tokens_run_in_one_pass(self) -> None:
        for _ in self.both(head_cost=0.05):
            assistant = Assistant(wrong=3)
            self.text(assistant)
            self.assertGreater(assistant.longest, 10)

    def test_a_wrong_assistant_changes_no_text(self) -> None:
        for _ in self.both(head_cost=0.05):
            assistant, streamer = Assistant(wrong=1), Streamer()
            self.text(assistant, streamer=streamer)
            self.assertEqual(streamer.tokens, prompt(1) + plain(prompt(1), 150))
            self.assertLess(assistant.passes, 75)

    def test_costs_are_learned_from_the_times_of_the_assistant(self) -> None:
        for leaves in (1, 8):
            with self.module.enable(self.model, max_leaves=leaves) as drafts:
                self.text(Assistant(wrong=5))
                self.assertGreater(drafts.statistics.timed_passes, 10)

    def test_an_end_and_a_limit(self) -> None:
        wanted = plain(prompt(1), 150)
        for _ in self.both(head_cost=0.0):
            for count in range(1, 8):
                made = self.model.generate(prompt(1), count, assistant_model=Assistant())
                self.assertEqual(made, wanted[:count])
            stops = [EosTokenCriteria(wanted[60])]
            made = self.model.generate(prompt(1), 150, assistant_model=Assistant(), stopping_criteria=stops)
            self.assertEqual(made, wanted[: wanted.index(wanted[60]) + 1])

    def test_an_exception_in_the_assistant(self) -> None:
        for _ in self.both(head_cost=0.05):
            assistant = Assistant()
            assistant.fail = True
            with self.assertRaises(MemoryError):
                self.text(assistant)
            assistant.fail = False
            self.text(assistant)

    def test_the_engines_own_loop_has_the_other_requests(self) -> None:
        """Each of these is counted by its reason, and decoded with the assistant as without drafts."""
        other_size, pair = Assistant(), Assistant()
        other_size.config.vocab_size = VOCABULARY + 1
        pair.config.is_encoder_decoder = True
        window = types.SimpleNamespace(**vars(self.model.config), layer_types=["sliding_attention"] * 2)
        for assistant, options, config, reason in (
            (other_size, {}, None, "assistant"),
            (pair, {}, None, "assistant"),
            (Assistant(), {"assistant_tokenizer": object()}, None, "assistant"),
            (Assistant(), {}, window, "assistant"),
            (Assistant(), {"position_ids": None}, None, "cache"),
            (Assistant(), {"prompt_lookup_num_tokens": 0}, None, "turned_off"),
        ):
            known = self.model.config
            self.model.config = config or known
            drafts = self.enable()
            with self.subTest(reason=reason, options=options):
                made = self.model.generate(prompt(1), 30, assistant_model=assistant, **options)
                self.assertEqual((made, self.model.assisted), (plain(prompt(1), 30), 1))
                self.assertEqual(drafts.statistics.fields, {f"plain_{reason}": 1})
                self.module.disable(self.model)
            self.model.config = known


if __name__ == "__main__":
    unittest.main()
