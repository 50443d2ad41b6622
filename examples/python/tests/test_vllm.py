# SPDX-License-Identifier: Apache-2.0
"""The adapter for vLLM, with a runner that calls it as GPUModelRunner of 0.32.0 does."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import reprise_decoding
import reprise_decoding.vllm
from support import VOCABULARY, after, next_token, plain, prompt

MAX_LENGTH = 320


def config(most: int = 16, rows: int = 8, **model: Any) -> Any:
    model = {"get_vocab_size": lambda: VOCABULARY, **model}
    return types.SimpleNamespace(
        scheduler_config=types.SimpleNamespace(max_num_seqs=rows),
        speculative_config=types.SimpleNamespace(num_speculative_tokens=most),
        model_config=types.SimpleNamespace(max_model_len=MAX_LENGTH, **model),
    )


class Engine:
    """The object of vLLM that creates a proposer, and has the requests by their names."""

    def __init__(self) -> None:
        self.requests: dict[str, Any] = {}
        self.input_batch = types.SimpleNamespace(token_ids_cpu=None, req_ids=[])

    def propose_draft_token_ids(self) -> None: ...

    def create(self, initialize: Any, settings: Any) -> None:
        initialize(settings)

    def show(self, table: Any, requests: list[Any]) -> None:
        """Sets the rows of the batch."""
        self.input_batch.token_ids_cpu = table
        self.input_batch.req_ids = [str(id(request)) for request in requests]
        self.requests.update(zip(self.input_batch.req_ids, requests))


class WithEngine(reprise_decoding.vllm.Proposer):
    """Has an engine of its own, unless one creates it. Calls of a test have the same request in each row."""

    engine: Any = None

    def __init__(self, settings: Any) -> None:
        if reprise_decoding.vllm._caller("propose_draft_token_ids") is not None:
            return super().__init__(settings)
        self.engine = Engine()
        self.rows = [types.SimpleNamespace() for _ in range(20)]
        self.engine.create(super().__init__, settings)

    def propose(self, sampled: Any, lengths: Any, table: Any, slot_mappings: Any = None) -> list[list[int]]:
        if self.engine is not None and self.engine.input_batch.token_ids_cpu is not table:
            self.engine.show(table, self.rows[: len(sampled)])
        return super().propose(sampled, lengths, table)


class Proposer(WithEngine):
    options = {"cost": reprise_decoding.CostCurve.linear(0.01)}


class Request:
    def __init__(self, ids: list[int], count: int) -> None:
        self.ids, self.prompt, self.count, self.computed = list(ids), len(ids), count, 0
        self.draft: list[int] = []

    @property
    def output(self) -> list[int]:
        return self.ids[self.prompt : self.prompt + self.count]

    @property
    def done(self) -> bool:
        return len(self.ids) >= self.prompt + self.count


class Runner:
    """Rows of requests. Rows that have become free are filled with the last rows, as InputBatch.condense() does."""

    def __init__(self, proposer: Any, chunk: int = 1000) -> None:
        self.proposer, self.chunk, self.rows, self.drafts = proposer, chunk, [], []
        self.tokens = np.full((8, MAX_LENGTH + 20), 63, np.int32)  # like the engine's, it holds old tokens
        self.lengths = np.zeros(8, np.int32)
        self.passes = 0
        proposer.load_model(None)

    def run(self, *requests: Request) -> None:
        self.rows += requests
        while self.rows:
            self.step()

    def preempt(self, request: Request) -> None:
        """The row is given up, and the request will begin again with all of its tokens."""
        self.remove(request)
        request.computed, request.draft = 0, []

    def remove(self, request: Request) -> None:
        row, last = self.rows.index(request), self.rows.pop()
        if last is not request:
            self.rows[row] = last

    def step(self) -> None:
        self.passes += 1
        sampled: list[list[int]] = []
        for request in self.rows:
            if request.computed + self.chunk < len(request.ids):  # a part of the prompt
                request.computed += self.chunk
                sampled.append([])
                continue
            tokens: list[int] = []
            for token in [*request.draft, None]:
                tokens.append(next_token([*request.ids, *tokens]))
                if tokens[-1] != token:
                    break
            request.ids += tokens
            request.computed = len(request.ids) - 1
            sampled.append(tokens)
        for row, request in enumerate(self.rows):
            self.tokens[row, : len(request.ids)] = request.ids
            self.lengths[row] = len(request.ids)
        if self.proposer.engine is not None:
            self.proposer.engine.show(self.tokens, self.rows)
        drafts = self.proposer.propose(sampled, self.lengths, self.tokens, slot_mappings=None)
        assert len(drafts) == len(self.rows)
        self.drafts.append(drafts)
        for row, (request, draft) in enumerate(zip(self.rows, drafts)):
            assert type(draft) is list and all(type(token) is int for token in draft)
            assert len(request.ids) + len(draft) < MAX_LENGTH or not draft
            assert sampled[row] or not draft, "a request in its prompt has no draft"
            request.draft = draft
            self.tokens[row, len(request.ids) : len(request.ids) + len(draft)] = draft
        for request in list(self.rows):
            if request.done:
                self.remove(request)
                if self.proposer.engine is not None:
                    del self.proposer.engine.requests[str(id(request))]


class Proposers(unittest.TestCase):
    def test_one_request_after_another(self) -> None:
        runner = Runner(Proposer(config()))
        for seed in (1, 2, 1):
            request = Request(prompt(seed), 150)
            runner.passes = 0
            runner.run(request)
            self.assertEqual(request.output, plain(prompt(seed), 150))
            self.assertLess(runner.passes, 75)

    def test_nothing_is_drafted_after_an_end(self) -> None:
        """The engine ignores the end here, and gets the same text."""
        end = plain(prompt(1), 40)[-1]

        def run(proposer: Any) -> list[list[int]]:
            runner = Runner(proposer)
            requests = [Request(prompt(seed), 120) for seed in (1, 2, 1)]
            runner.run(*requests)
            runner.run(Request(prompt(1), 120), Request(prompt(3), 120))  # in slots that are given away
            self.assertEqual([each.output for each in requests], [plain(prompt(seed), 120) for seed in (1, 2, 1)])
            return [draft for drafts in runner.drafts for draft in drafts]

        class Told(Proposer):
            eos: Any = (60, end)

        class NotTold(Proposer):
            eos: Any = ()

        files = types.SimpleNamespace(eos_token_id=end)
        self.assertGreater(after(run(Proposer(config(rows=3))), end), 20)
        self.assertGreater(after(run(NotTold(config(rows=3, hf_config=files))), end), 20)
        for proposer in (
            Told(config(rows=3)),
            Proposer(config(rows=3, hf_config=files)),
            Proposer(config(rows=3, hf_config=types.SimpleNamespace(), hf_text_config=files)),
            Proposer(config(rows=3, hf_config=types.SimpleNamespace(eos_token_id=[-1, 60, end]))),
            Proposer(
                config(
                    rows=3,
                    hf_config=types.SimpleNamespace(eos_token_id=60),
                    try_get_generation_config=lambda: {"eos_token_id": [60, end]},
                )
            ),
        ):
            drafts = run(proposer)
            self.assertEqual(after(drafts, end), 0)
            self.assertTrue(any(draft[-1:] == [end] for draft in drafts))

    def test_rows_that_change_owners(self) -> None:
        for chunk in (1000, 16):  # whole prompts, and parts of them with empty `sampled`
            runner = Runner(Proposer(config()), chunk)
            requests = [Request(prompt(seed, 50 + seed), 30 + 25 * (seed % 4)) for seed in range(1, 9)]
            runner.rows = requests[:3]
            for request in requests[3:]:  # they arrive while others run and end
                for _ in range(6):
                    if runner.rows:
                        runner.step()
                runner.rows.append(request)
            runner.run()
            for seed, request in enumerate(requests, 1):
                self.assertEqual(request.output, plain(prompt(seed, 50 + seed), request.count), seed)
            self.assertEqual(runner.proposer.drafter.slots, 8)

    def test_a_moved_row_keeps_its_slot(self) -> None:
        runner = Runner(Proposer(config()))
        short, long = Request(prompt(1), 10), Request(prompt(2), 150)
        runner.rows = [short, long]
        while not short.done:
            runner.step()
        self.assertEqual(runner.rows, [long])
        [slot] = slots_of(runner.proposer, long.ids)
        before = runner.proposer.drafter.statistics(slot).passes
        runner.step()
        self.assertEqual(runner.proposer.drafter.statistics(slot).passes, before + 1)

    def test_a_preempted_request(self) -> None:
        runner = Runner(Proposer(config()), chunk=32)
        first, second = Request(prompt(1), 120), Request(prompt(2), 120)
        runner.rows = [first, second]
        for _ in range(10):
            runner.step()
        runner.preempt(first)
        for _ in range(3):
            runner.step()
        runner.rows.append(first)
        runner.run()
        self.assertEqual(first.output, plain(prompt(1), 120))
        self.assertEqual(second.output, plain(prompt(2), 120))

    def test_a_draft_that_the_scheduler_cuts(self) -> None:
        runner = Runner(Proposer(config()))
        request = Request(prompt(1), 150)
        runner.rows = [request]
        while runner.rows:
            runner.step()
            request.draft = request.draft[: runner.passes % 3]
        self.assertEqual(request.output, plain(prompt(1), 150))

    def test_rows_are_shared_by_their_cost(self) -> None:
        ids = [1, 2, 3, 4, 5] * 8
        tokens = np.array([ids] * 8, np.int32)

        def drafted(row_cost: float, most: int = 16) -> list[int]:
            class Costly(WithEngine):
                options = {"cost": reprise_decoding.CostCurve.linear(row_cost)}

            return [len(draft) for draft in Costly(config(most)).propose([[5]] * 8, np.full(8, len(ids)), tokens)]

        self.assertEqual(drafted(0, most=4), [4] * 8)
        self.assertEqual(drafted(0, most=0), [0] * 8)
        self.assertGreater(sum(drafted(0.001)), sum(drafted(0.05)))
        self.assertEqual(sum(drafted(3)), 0)

    def test_the_longest_drafts(self) -> None:
        ids = list(range(100)) * 3

        class Free(WithEngine):
            options = {"cost": 0.0}

        def longest(most: int) -> int:
            proposer = Free(config(most))
            proposer.max_length = 1000
            tokens = np.array([ids], np.int32)
            calls = [proposer.propose([[ids[n - 1]]], np.array([n]), tokens)[0] for n in range(200, 220)]
            return max(map(len, calls))

        for most in (1, 33, 64):
            self.assertEqual(longest(most), most)
        for most in (65, 300):
            with self.assertRaisesRegex(ValueError, "^num_speculative_tokens: must be 64 or less"):
                Free(config(most))

    def test_more_rows_than_slots(self) -> None:
        ids = [1, 2, 3, 4, 5] * 8
        proposer = Proposer(config(4, rows=2))
        tokens = np.array([ids] * 3, np.int32)
        for _ in range(2):
            drafts = proposer.propose([[5]] * 3, np.full(3, len(ids)), tokens)
            self.assertEqual(sorted(map(len, drafts)), [0, 4, 4])

    def test_without_a_number_of_rows(self) -> None:
        without = config()
        del without.scheduler_config
        self.assertEqual(Proposer(without).drafter.slots, 64)

    def test_the_end_of_the_context(self) -> None:
        request = Request(prompt(1, 250), MAX_LENGTH - 250)
        Runner(Proposer(config())).run(request)
        self.assertEqual(request.output, plain(prompt(1, 250), MAX_LENGTH - 250))

    def test_a_pass_with_a_part_of_a_prompt_teaches_no_cost(self) -> None:
        now = iter(range(1, 10**12, 10**6))

        class Timed(WithEngine):
            options = {"clock": lambda: next(now)}

        runner = Runner(Timed(config()), chunk=20)
        runner.rows = [Request(prompt(1), 200)]

        def learned(steps: int) -> list[bool]:
            """Whether each of the next passes teaches a cost."""
            found = []
            for _ in range(steps):
                before = runner.proposer.drafter.save_costs("toy")
                runner.step()
                found.append(runner.proposer.drafter.save_costs("toy") != before)
            return found

        self.assertIn(True, learned(12))
        runner.rows.append(Request(prompt(2, 200), 20))
        self.assertNotIn(True, learned(8))

    def test_rows_of_one_template_keep_their_slots(self) -> None:
        """Texts of the same length that end alike: only a field at the beginning differs."""
        runner = Runner(Proposer(config()))
        runner.rows = [Request([row, *prompt(1)], 60) for row in range(1, 5)]
        for _ in range(6):
            runner.step()
        slots = [slots_of(runner.proposer, request.ids) for request in runner.rows]
        self.assertEqual([runner.proposer.drafter.statistics(slot).passes for [slot] in slots], [5] * 4)
        runner.rows.reverse()
        runner.step()
        self.assertEqual([slots_of(runner.proposer, request.ids) for request in reversed(runner.rows)], slots)

    def test_rows_that_take_turns_draft_as_much(self) -> None:
        def turn(groups: int) -> list[tuple[int, int]]:
            proposer = Proposer(config())
            requests = [Request([row, *prompt(row)], 150) for row in range(1, 9)]
            runners = [Runner(proposer) for _ in range(groups)]
            for row, request in enumerate(requests):
                runners[row % groups].rows.append(request)
            while any(runner.rows for runner in runners):
                for runner in runners:
                    if runner.rows:
                        runner.step()
            for row, request in enumerate(requests, 1):
                self.assertEqual(request.output, plain([row, *prompt(row)], 150))
            counts = [proposer.drafter.statistics(slot) for slot in range(8)]
            return [(each.passes, each.accepted) for each in counts if each.passes]

        passes = {groups: [sum(each) for each in zip(*turn(groups))] for groups in (1, 2, 3, 4, 8)}
        for groups, (count, accepted) in passes.items():
            self.assertLessEqual(count, 1.05 * passes[1][0], groups)
            self.assertGreaterEqual(accepted, 0.95 * passes[1][1], groups)

    def test_a_row_that_pauses_keeps_its_slot(self) -> None:
        runner = Runner(Proposer(config()))
        paused, other = Request(prompt(1), 150), Request(prompt(2), 150)
        runner.rows = [paused, other]
        for _ in range(5):
            runner.step()
        [slot] = slots_of(runner.proposer, paused.ids)
        runner.remove(paused)
        runner.run()
        for seed in range(3, 8):
            runner.run(Request(prompt(seed), 20))
        self.assertEqual(slots_of(runner.proposer, paused.ids), [slot])
        before = runner.proposer.drafter.statistics(slot).passes
        runner.rows.append(paused)
        runner.step()
        self.assertEqual(runner.proposer.drafter.statistics(slot).passes, before + 1)

    def test_passes_without_a_call_are_found_out(self) -> None:
        runner = Runner(Proposer(config()))
        request = Request(prompt(1), 150)
        runner.rows = [request]
        for _ in range(5):
            runner.step()
        [slot] = slots_of(runner.proposer, request.ids)
        request.ids += plain(request.ids, 30)
        request.draft = []
        runner.step()
        self.assertEqual(slots_of(runner.proposer, request.ids), [slot])

    def test_slots_of_requests_that_have_ended_or_pause_are_given_away(self) -> None:
        runner = Runner(Proposer(config(rows=3)))
        requests = [Request(prompt(seed), 150) for seed in range(1, 6)]

        def known(*rows: int) -> list[int]:
            runner.rows = [requests[row] for row in rows]
            runner.step()
            return [len(slots_of(runner.proposer, request.ids)) for request in requests]

        self.assertEqual(known(0, 1, 2), [1, 1, 1, 0, 0])
        self.assertEqual(known(3), [0, 1, 1, 1, 0], "all pause, and the longest known one gives its slot")
        del runner.proposer.engine.requests[str(id(requests[2]))]
        self.assertEqual(known(4), [0, 1, 0, 1, 1], "one has ended")
        self.assertEqual(known(0)[0], 1, "it begins again")

    def test_a_call_that_is_repeated_before_its_pass(self) -> None:
        def passes(calls: int) -> int:
            runner = Runner(Proposer(config()))
            propose = runner.proposer.propose

            def repeated(*arguments: Any, **named: Any) -> Any:
                return [propose(*arguments, **named) for _ in range(calls)][-1]

            runner.proposer.propose = repeated
            runner.run(Request(prompt(1), 150), Request(prompt(2), 150))
            return runner.passes

        self.assertLessEqual(passes(2), 1.05 * passes(1))
        self.assertLessEqual(passes(3), 1.05 * passes(1))

    def test_any_table_that_changes_in_place(self) -> None:
        for table in (np.full((8, 340), 63, np.int64), np.full((8, 340), 63, np.int32, order="F")):
            runner = Runner(Proposer(config()))
            runner.tokens = table
            for seed in (1, 2):
                runner.passes, request = 0, Request(prompt(seed), 150)
                runner.run(request)
                self.assertEqual(request.output, plain(prompt(seed), 150))
                self.assertLess(runner.passes, 75)

    def test_a_row_without_tokens_drafts_nothing_and_the_others_do(self) -> None:
        good, last = [1, 2, 3, 4, 5] * 8, 5
        for wrong in (-1, -100, 2**31 - 1, 2**40, -(2**40)):
            for at in (0, 20, 39):
                for dtype in (np.int32, np.int64):
                    if not np.iinfo(dtype).min <= wrong <= np.iinfo(dtype).max:
                        continue

                    class Known(Proposer):
                        options = {"cost": reprise_decoding.CostCurve.linear(0.0), "vocabulary": 64}

                    proposer = Known(config(4))
                    tokens = np.array([good, good, good], dtype)
                    tokens[1, at] = wrong
                    for _ in range(2):
                        drafts = proposer.propose([[last], [last], [last]], np.full(3, 40), tokens)
                        self.assertEqual([len(draft) for draft in drafts], [4, 0, 4], (wrong, at, dtype))
                    tokens[1] = good  # the placeholder was filled in
                    self.assertEqual(len(proposer.propose([[last]] * 3, np.full(3, 40), tokens)[1]), 4)


def slots_of(proposer: Any, ids: list[int]) -> list[int]:
    """The slots that know a text."""
    return [slot for slot in range(proposer.drafter.slots) if proposer.drafter.known(slot, ids) == len(ids)]


class Isolation(unittest.TestCase):
    SECRET = list(range(30, 58))

    def drafts(self, proposer: Any) -> list[list[int]]:
        """The drafts of a request whose text has the beginnings of the secret, row 0."""
        ids, found = [1, 2, 3, 4, 5, 9, 30, 31, 32], []
        tokens = np.zeros((1, 100), np.int32)
        for token in (30, 31, 32, 5, 30, 31, 32, 9, 30, 31):
            ids.append(token)
            tokens[0, : len(ids)] = ids
            found += proposer.propose([[token]], np.array([len(ids)]), tokens)
        return found

    def test_a_row_that_changes_its_owner_without_a_word(self) -> None:
        alone = self.drafts(Proposer(config()))
        self.assertTrue(any(alone))
        used = Proposer(config())
        ids = [1, 2, 3, 4, 5, *self.SECRET, 9, *self.SECRET, 9, *self.SECRET]
        for end in range(40, len(ids) + 1):
            used.propose([[ids[end - 1]]], np.array([end]), np.array([ids], np.int32))
        after = self.drafts(used)
        for one, other in zip(after, alone):
            shorter = min(len(one), len(other))
            self.assertEqual(one[:shorter], other[:shorter])
        self.assertFalse({token for draft in after for token in draft} & set(self.SECRET[3:]))


class ModelRunner(Runner):
    """Makes its proposer, and has requests with parameters, as GPUModelRunner."""

    def __init__(self, kind: Any, settings: Any) -> None:
        super().__init__(self.create(kind, settings))
        self.requests: dict[str, Any] = {}
        self.numbers = itertools.count()
        self.input_batch = types.SimpleNamespace(token_ids_cpu=self.tokens, req_ids=[])

    def create(self, kind: Any, settings: Any) -> Any:
        return kind(settings)  # vLLM has a function here

    def propose_draft_token_ids(self) -> None: ...

    def add(self, request: Request, cache_salt: str | None = None, **extra: Any) -> Request:
        """The scheduler hands a request to the process of the runner."""
        params = types.SimpleNamespace(extra_args=extra or None)
        new = NewRequestData.from_request(types.SimpleNamespace(sampling_params=params, cache_salt=cache_salt))
        request.name = str(next(self.numbers))
        self.requests[request.name] = new
        self.rows.append(request)
        return request

    def step(self) -> None:
        self.input_batch.req_ids = [request.name for request in self.rows]
        super().step()
        for name in {*self.input_batch.req_ids} - {request.name for request in self.rows}:
            del self.requests[name]


class NewRequestData:
    """A new request as vLLM's scheduler sends it, without the salt."""

    def __init__(self, sampling_params: Any) -> None:
        self.sampling_params = sampling_params

    @classmethod
    def from_request(cls, request: Any) -> NewRequestData:
        return cls(request.sampling_params)


class Settings(unittest.TestCase):
    def setUp(self) -> None:
        self.plugin(True)

    def plugin(self, loaded: bool) -> None:
        """Calls register() as vLLM does, with a class of vLLM that it can change or cannot."""
        create = classmethod(lambda cls, request: cls(request.sampling_params))
        module: Any = reprise_decoding.vllm
        for owner, name, value in ((module, "_carries_salts", False), (NewRequestData, "from_request", create)):
            patch = unittest.mock.patch.object(owner, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        output = types.SimpleNamespace(NewRequestData=NewRequestData if loaded else object)
        names = ["vllm", "vllm.v1", "vllm.v1.core", "vllm.v1.core.sched"]
        modules = {**{name: types.ModuleType(name) for name in names}, "vllm.v1.core.sched.output": output}
        with unittest.mock.patch.dict(sys.modules, modules):  # type: ignore[arg-type]
            reprise_decoding.vllm.register()
            reprise_decoding.vllm.register()  # vLLM may load plugins again
        self.assertEqual(reprise_decoding.vllm._carries_salts, loaded)

    def runner(self, rows: int = 8) -> ModelRunner:
        settings = config(rows=rows)
        settings.cache_config = types.SimpleNamespace(enable_prefix_caching=True)
        return ModelRunner(Proposer, settings)

    def test_a_switch_and_a_bound_for_one_request(self) -> None:
        for extra, longest in (
            ({}, 16), ({"reprise_enabled": False}, 0), ({"reprise_enabled": 0}, 0), ({"reprise_enabled": True}, 16),
            ({"reprise_enabled": 1, "reprise_max_draft": 3}, 3), ({"reprise_max_draft": 5.0}, 5),
            ({"reprise_max_draft": 100}, 16), ({"reprise_max_draft": 0}, 16), ({"other": 1}, 16),
            ({"reprise_max_draft": "3", "reprise_enabled": "no"}, 16), ({"reprise_max_draft": float("nan")}, 16),
            ({"reprise_max_draft": -1}, 16), ({"reprise_max_draft": [3]}, 16),
            ({"reprise_enabled": np.array([0, 0]), "reprise_max_draft": np.array([1, 1])}, 16),
        ):  # fmt: skip
            runner = self.runner()
            told, other = runner.add(Request(prompt(1), 150), **extra), runner.add(Request(prompt(2), 150))
            lengths: dict[Any, int] = {told: 0, other: 0}
            while runner.rows:
                runner.step()
                for request in runner.rows:
                    lengths[request] = max(lengths[request], len(request.draft))
            self.assertEqual(told.output, plain(prompt(1), 150))
            self.assertEqual(other.output, plain(prompt(2), 150))
            self.assertEqual(lengths[told], longest, extra)
            self.assertEqual(lengths[other], 16)

    def test_a_prediction_of_one_request(self) -> None:
        ids = prompt(1)[:19]
        expected, without = plain(ids, 34), 0
        for given, helps in (
            (None, False), (expected, True), (tuple(expected), True), (expected[1:], True), ([], False), (5, False),
            ("text", False), (["a"], False), ([1.5], False), ([[1], [2, 3]], False), ([2**40], False), ({}, False),
            ([2**63, -1], False),
        ):  # fmt: skip
            runner = self.runner()
            told, other = runner.add(Request(ids, 34), reprise_prediction=given), runner.add(Request(prompt(2)[:19], 34))
            runner.run()
            passes = sum(1 for drafts in runner.drafts if len(drafts) == 2)
            self.assertEqual((told.output, other.output), (expected, plain(other.ids[:19], 34)))
            without = without or passes
            self.assertEqual(passes, 3 if helps else without, given)
        self.assertGreater(without, 3)

    def test_a_prediction_is_for_its_request_alone(self) -> None:
        """A request with the text of one that has ended goes on in its slot."""
        ids, unlike, own = prompt(1)[:19], list(range(40, 56)), list(range(20, 36))
        for told in ({}, {"reprise_prediction": own}):
            runner = self.runner()
            runner.add(Request(ids, 1), reprise_prediction=unlike)
            runner.run()
            self.assertEqual(runner.drafts.pop(), [unlike])
            runner.add(Request(ids, 30), **told)
            runner.run()
            self.assertFalse({token for drafts in runner.drafts for token in drafts[0]} & set(unlike))
            self.assertEqual(runner.drafts[0] == [own], bool(told))

    def test_a_prediction_with_ids_that_the_model_does_not_have(self) -> None:
        for wrong in (VOCABULARY, 10**9, 2**31 - 1, -1):
            for dtype in (list, np.array):
                runner = self.runner()
                runner.add(Request(prompt(1), 5), reprise_prediction=dtype([40, 41, 42, wrong, wrong, 43]))
                runner.step()
                self.assertNotIn(40, runner.drafts[-1][0])

        class Bounded(Proposer):
            options = {**Proposer.options, "vocabulary": 60}

        unknown = config()
        del unknown.model_config.get_vocab_size
        for kind, settings, ids in ((Bounded, config(), [40, 61]), (Proposer, unknown, [40, 41])):
            runner = ModelRunner(kind, settings)
            runner.add(Request([1, 2, 3], 5), reprise_prediction=ids)
            runner.step()
            self.assertNotIn(40, runner.drafts[-1][0])

    SECRET = [40, 51, 42, 57, 44, 59, 46, 41, 48, 53, 50, 55]

    def drafts(self, runner: ModelRunner, salt: str | None, ids: list[int], **extra: Any) -> bool:
        """Returns whether a request is drafted the secret. Its text has no more than the beginning of the secret."""
        request, found = runner.add(Request(ids, 1), salt, **extra), set()
        runner.remove(request)
        runner.input_batch.req_ids = [request.name]
        runner.tokens[0, : len(ids)] = ids
        for end in range(len(ids) - 2, len(ids) + 1):
            found |= set(runner.proposer.propose([[ids[end - 1]]], np.array([end]), runner.tokens)[0])
        del runner.requests[request.name]
        return bool(found & set(self.SECRET[3:]))

    def given(self, salt: str | None, rows: int = 1) -> ModelRunner:
        """A runner after a request with the secret. The only slot is given away to the next request."""
        runner = self.runner(rows)
        self.drafts(runner, salt, [*range(20, 40), *self.SECRET, *self.SECRET])
        return runner

    ASK = [*range(1, 20), *SECRET[:3]]

    def test_text_stays_with_its_cache_salt(self) -> None:
        for first, second, sees in (
            (None, None, True), ("a", "a", True), ("a", "b", False), ("a", None, False), (None, "a", False),
        ):  # fmt: skip
            self.assertEqual(self.drafts(self.given(first), second, self.ASK), sees, (first, second))

    def test_a_salt_after_those_of_requests_that_have_ended(self) -> None:
        """A memory has few salts, and evicts none that a slot uses."""
        for ended in (True, False):
            runner = self.runner()
            for number, salt in enumerate("abcd"):
                runner.add(Request(prompt(number), 1 if ended else 50), salt)
            runner.step()
            runner.rows.clear()  # preempts those that have not ended
            self.drafts(runner, "e", [*range(20, 40), *self.SECRET, *self.SECRET])
            if ended:
                runner.requests.clear()
            self.assertEqual(self.drafts(runner, "e", self.ASK), ended)

    def test_a_name_that_is_used_again_is_another_request(self) -> None:
        for salt, sees in (("b", False), ("a", True)):
            runner = self.runner()
            runner.numbers = itertools.repeat(5)  # type: ignore[assignment]
            self.drafts(runner, "a", [*range(20, 40), *self.SECRET, *self.SECRET])
            self.assertEqual(self.drafts(runner, salt, self.ASK), sees)

    def test_salts_after_a_step_that_failed(self) -> None:
        for salt, sees in ((None, False), ("a", True)):
            runner = self.given("a")
            step = runner.proposer._buffers.step
            size, step.size = step.size, 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.drafts(runner, salt, prompt(1))
            step.size = size
            self.assertEqual(self.drafts(runner, salt, self.ASK), sees, salt)

    def test_a_row_that_waits_after_others_have_gone_on(self) -> None:
        runner = self.runner()
        first, second = runner.add(Request(prompt(1), 150)), runner.add(Request(prompt(2), 150))
        for _ in range(3):
            runner.step()
        rows = len(runner.drafts)
        runner.chunk, second.computed = 30, 0  # it runs a part of its text again
        runner.step()
        runner.chunk = 1000
        runner.run()
        self.assertEqual(runner.drafts[rows][1], [])
        self.assertTrue(any(len(drafts) > 1 and drafts[1] for drafts in runner.drafts[rows + 1 :]))
        self.assertEqual((first.output, second.output), (plain(prompt(1), 150), plain(prompt(2), 150)))

    def test_a_prompt_of_embeddings_has_no_ids(self) -> None:
        """vLLM leaves those of an earlier request in the table."""
        runner = self.runner()
        request = runner.add(Request([*range(20, 40), *self.SECRET, *self.SECRET[:4]], 5), "b")
        runner.requests[request.name].prompt_token_ids = None
        runner.step()
        self.assertEqual(runner.drafts, [[[]]])
        self.assertEqual(slots_of(runner.proposer, request.ids), [])

    def test_processes_have_the_same_numbers_for_the_same_salts(self) -> None:
        code = "from reprise_decoding._memory import salt_number as n; print(n('a', 7), n('a', 8), n('b', 7), n(5, 7))"
        shown = [subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout for _ in "12"]
        self.assertEqual(shown[0], shown[1])
        self.assertEqual(len(set(shown[0].split())), 4)
        self.assertEqual(shown[0].split()[-1], b"5")

    def test_requests_begin_again_after_a_step_that_failed(self) -> None:
        runner = self.runner()
        request = runner.add(Request(prompt(1), 150), "a")
        runner.step()
        step = runner.proposer._buffers.step
        size, step.size = step.size, 1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            runner.step()
            runner.step()
        self.assertEqual([str(each.message)[:28] for each in caught], ["reprise: a row had no draft "])
        self.assertEqual(runner.drafts[-2:], [[[]], [[]]])
        step.size = size
        runner.run()
        self.assertEqual(request.output, plain(prompt(1), 150))
        self.assertTrue(any(drafts[0] for drafts in runner.drafts[3:]))

    def test_a_client_cannot_choose_a_salt_in_extra_args(self) -> None:
        for salt, sees in ((None, False), ("b", False), ("a", True)):
            runner = self.given("a")
            self.assertEqual(self.drafts(runner, salt, self.ASK, reprise_cache_salt="b" if sees else "a"), sees)
        self.plugin(False)

        class Kept(Proposer):
            options = {**Proposer.options, "memory": reprise_decoding.Memory(), "salt": "a"}

        runner = ModelRunner(Kept, config(rows=1))
        self.drafts(runner, None, [*range(20, 40), *self.SECRET, *self.SECRET], reprise_cache_salt="b")
        self.assertTrue(self.drafts(runner, None, self.ASK))

    def test_a_text_that_begins_as_one_of_another_salt(self) -> None:
        """Its slot would draft from the memory of the other salt."""
        for salt, sees in (("a", True), ("b", False), (None, False)):
            for firsts in ((50, 51), (51, 50)):  # the row still has the slot, or finds it again
                runner = self.given("a", rows=2)
                for first in firsts:  # a slot is given away, so the memory has the secret
                    self.drafts(runner, "a", [first, *range(1, 20)])
                for more in ([], [7, 8]):
                    text = [51, *range(1, 20), *more, *self.SECRET[:3]]
                    self.assertEqual(self.drafts(runner, salt, text), sees, (salt, firsts, more))

    def test_without_salts_the_default_memory_keeps_no_text(self) -> None:
        self.assertTrue(self.drafts(self.given(None), None, self.ASK))
        self.plugin(False)
        self.assertFalse(self.drafts(self.given(None), None, self.ASK))

    def test_a_release_that_creates_proposers_in_another_way_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "^vllm: this release creates proposers in another way"):
            reprise_decoding.vllm.Proposer(config())

    def test_a_release_that_passes_another_table_gets_no_drafts(self) -> None:
        """Otherwise its requests with a salt would share the text of those without one."""
        for change in (
            lambda runner: setattr(runner.input_batch, "token_ids_cpu", runner.tokens.copy()),
            lambda runner: delattr(runner.input_batch, "token_ids_cpu"),
            lambda runner: delattr(runner, "requests"),
            lambda runner: delattr(runner, "input_batch"),
        ):
            runner = self.runner()
            runner.add(Request(prompt(1), 50), "a")
            runner.step()
            self.assertTrue(runner.drafts[-1][0])
            change(runner)
            for _ in range(3):
                Runner.step(runner)
                self.assertEqual(runner.drafts[-1], [[]])

    def test_ends_and_options_hold_for_requests_with_a_salt(self) -> None:
        end = plain(prompt(1), 40)[-1]

        class Told(Proposer):
            eos: Any = (end,)

        runner = ModelRunner(Told, config(rows=1))
        for salt in ("a", "b"):
            runner.add(Request(prompt(1), 150), salt)
            runner.run()
        self.assertEqual(after([draft for drafts in runner.drafts for draft in drafts], end), 0)
        self.assertLess(runner.passes, 180)

    def test_the_default_keys_are_secret(self) -> None:
        module, keys, given = reprise_decoding.vllm, [], reprise_decoding.Memory(text=False)
        for name in ("BatchDrafter", "Memory"):
            made = unittest.mock.patch.object(module, name, wraps=getattr(module, name))
            with made as called:
                for _ in range(2):
                    self.runner()
                keys.append([call.kwargs["key"] for call in called.call_args_list])
        for first, second in keys:
            self.assertNotEqual(first, second)

        class Keyed(Proposer):
            options = {**Proposer.options, "key": 7, "memory": given}

        with unittest.mock.patch.object(module, "Memory") as unused:
            proposer = Keyed(config())
        unused.assert_not_called()
        self.assertEqual(proposer._requests._kept, {"key": 7, "memory": given})

    def test_the_runner_is_freed(self) -> None:
        runner = self.runner()
        freed = weakref.ref(runner)
        del runner
        self.assertIsNone(freed())


class Snippet(unittest.TestCase):
    """The documented snippet as a script, with a stand-in that starts the engine's process as LLM of 0.32.0 does."""

    VLLM = """
import multiprocessing, types

def work():
    pass

class SamplingParams:
    def __init__(self, temperature, max_tokens): pass

class LLM:
    def __init__(self, model, speculative_config, disable_log_stats=True, gpu_memory_utilization=0.92):
        self.counted = not disable_log_stats
        process = multiprocessing.get_context("spawn").Process(target=work)
        process.start()
        process.join()
        if process.exitcode:
            raise RuntimeError("Engine core initialization failed")

    def generate(self, text, sampling):
        return [types.SimpleNamespace(outputs=[types.SimpleNamespace(text="text", token_ids=[1] * 10)])]

    def get_metrics(self):
        assert self.counted, "Stat logging disabled"
        vector = types.SimpleNamespace(name="vllm:spec_decode_num_accepted_tokens_per_pos", values=[7, 0])
        return [vector, types.SimpleNamespace(name="vllm:spec_decode_num_accepted_tokens", value=7)]
"""

    def run_script(self, text: str) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "vllm.py").write_text(self.VLLM, encoding="utf-8")
            Path(folder, "snippet.py").write_text(text, encoding="utf-8")
            command = [sys.executable, "snippet.py"]
            return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    def test_it_runs_as_it_stands(self) -> None:
        root = Path(__file__).resolve().parents[3]
        for page in ("examples/python/README.md", "docs/engines.md"):
            code = re.findall(r"^```python\n(.*?)^```$", (root / page).read_text(encoding="utf-8"), re.M | re.S)
            [snippet] = [text for text in code if "reprise_decoding.vllm" in text]
            done = self.run_script(snippet)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("7 of 10 tokens were drafted", done.stdout)
            self.assertNotEqual(self.run_script(snippet.replace('__name__ == "__main__"', "True")).returncode, 0)


class Sampling(unittest.TestCase):
    """On a processor, release 0.32.0 leaves the temperatures of drafted rows unset."""

    def warned(self, **expand: Any) -> list[str]:
        modules = {
            "torch": types.SimpleNamespace(zeros=lambda n: [0.0] * n, ones=lambda n, dtype=None: [1.0] * n, int32=None),
            "vllm": types.ModuleType("vllm"),
            "vllm.platforms": types.SimpleNamespace(current_platform=types.SimpleNamespace(is_cpu=lambda: True)),
            "vllm.utils": types.ModuleType("vllm.utils"),
            "vllm.utils.cpu_triton_utils": types.SimpleNamespace(**expand),
        }
        with unittest.mock.patch.dict(sys.modules, modules), warnings.catch_warnings(record=True) as caught:  # type: ignore[arg-type]
            warnings.simplefilter("always")
            Proposer(config())
        return [str(warning.message) for warning in caught]

    def test_a_release_with_the_fault_is_warned_about(self) -> None:
        [warning] = self.warned(_expand_kernel_impl=lambda *_: None)
        self.assertIn("use temperature=0", warning)

    def test_other_releases_are_not(self) -> None:
        def expand(output: Any, values: Any, *_: Any) -> None:
            output[:] = values

        self.assertEqual(self.warned(_expand_kernel_impl=expand), [])
        self.assertEqual(self.warned(), [])
        self.assertEqual(self.warned(_expand_kernel_impl=lambda: None), [])


if __name__ == "__main__":
    unittest.main()
