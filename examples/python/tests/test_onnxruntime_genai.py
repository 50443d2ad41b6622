# SPDX-License-Identifier: Apache-2.0
"""The adapter for onnxruntime-genai, with a generator and an engine that take the calls of 0.18."""

from __future__ import annotations

import threading
import unittest
from typing import Any

import numpy as np
import reprise_decoding
import reprise_decoding.onnxruntime_genai as adapter
from support import VOCABULARY, next_token, plain, prompt

CHEAP = reprise_decoding.CostCurve.linear(0.01)


class Generator:
    def __init__(self, max_length: int) -> None:
        self.ids: list[int] = []
        self.max_length, self.appended, self.passes = max_length, 0, 0

    def append_tokens(self, tokens: Any) -> None:
        assert isinstance(tokens, np.ndarray) and tokens.dtype == np.int32 and tokens.ndim == 1 and tokens.size
        self.ids += tokens.tolist()
        self.appended = tokens.size
        self.passes += 1
        assert len(self.ids) <= self.max_length

    def token_count(self) -> int:
        return len(self.ids)

    def get_output(self, name: str) -> Any:
        assert name == "logits"
        rows = np.zeros((1, self.appended, VOCABULARY), np.float32)
        for row in range(self.appended):
            rows[0, row, next_token(self.ids[: len(self.ids) - self.appended + row + 1])] = 9
        return rows

    def rewind_to(self, length: int) -> None:
        assert 0 < length <= len(self.ids)
        del self.ids[length:]


class Loops(unittest.TestCase):
    def test_the_text_is_that_without_drafts_in_fewer_passes(self) -> None:
        session = reprise_decoding.Session(cost=CHEAP)
        for ids in (prompt(1), prompt(2), [5], np.array(prompt(3), np.int64)):
            generator = Generator(len(ids) + 150)
            output = list(adapter.generate(generator, ids, max_tokens=150, session=session))
            self.assertEqual(output, plain(ids, 150))
            self.assertLess(generator.passes, 90)
            self.assertEqual(generator.ids, [*ids, *output][:-1])

    def test_max_tokens_of_0(self) -> None:
        generator = Generator(300)
        self.assertEqual(list(adapter.generate(generator, prompt(1), max_tokens=0)), [])
        self.assertEqual((generator.passes, generator.ids), (0, []))

    def test_eos_is_the_last_token(self) -> None:
        wanted = plain(prompt(1), 150)
        end = wanted.index(wanted[40])
        output = list(adapter.generate(Generator(300), prompt(1), max_tokens=150, eos=[wanted[40]]))
        self.assertEqual(output, wanted[: end + 1])

    def test_a_caller_that_stops_leaves_the_tokens_that_it_has_seen(self) -> None:
        stopped_inside = 0
        for seen in range(1, 60):
            generator = Generator(300)
            steps = adapter.generate(generator, prompt(1), max_tokens=150, session=reprise_decoding.Session(cost=CHEAP))
            output = [next(steps) for _ in range(seen)]
            ran = len(generator.ids)
            steps.close()
            stopped_inside += ran > len(generator.ids)
            # The last token is not in the generator: no pass has run it.
            self.assertEqual(generator.ids, [*prompt(1), *output][:-1])
        self.assertGreater(stopped_inside, 5)

    def test_most_of_0(self) -> None:
        generator = Generator(300)
        output = list(adapter.generate(generator, prompt(1), max_tokens=20, most=0))
        self.assertEqual((output, generator.passes), (plain(prompt(1), 20), 21))

    def test_another_pick(self) -> None:
        seen: list[int] = []

        def pick(logits: Any) -> list[int]:
            seen.append(len(logits))
            return [int(row.argmax()) for row in logits]

        self.assertEqual(list(adapter.generate(Generator(300), prompt(1), max_tokens=30, pick=pick)), plain(prompt(1), 30))
        self.assertGreaterEqual(min(seen), 1)

    def test_a_session_belongs_to_one_generation_at_a_time(self) -> None:
        ids, other, session = prompt(1), prompt(2), reprise_decoding.Session(cost=CHEAP)
        steps = adapter.generate(Generator(300), ids, max_tokens=60, session=session)
        output, generator = [next(steps)], Generator(300)
        with self.assertRaisesRegex(reprise_decoding.OrderError, "session: another generation uses it; .*close"):
            next(adapter.generate(generator, other, max_tokens=60, session=session))
        self.assertEqual(generator.ids, [])
        self.assertEqual([*output, *steps], plain(ids, 60))
        steps = adapter.generate(Generator(300), other, max_tokens=60, session=session)
        next(steps)
        steps.close()  # or it is collected:
        next(adapter.generate(Generator(300), other, max_tokens=60, session=session))
        steps = adapter.generate(Generator(300), other, max_tokens=60, session=session)
        self.assertEqual(list(steps), plain(other, 60))

    def test_two_threads_with_one_session(self) -> None:
        """Each of them writes the text without drafts, or gets an OrderError."""
        session, made, ready = reprise_decoding.Session(cost=CHEAP), [], threading.Barrier(2)

        def work(seed: int) -> None:
            ids = prompt(seed)
            for _ in range(30):
                ready.wait()
                steps = adapter.generate(Generator(300), ids, max_tokens=60, session=session)
                try:
                    made.append(list(steps) == plain(ids, 60))
                except reprise_decoding.OrderError:
                    pass

        threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertGreaterEqual(len(made), 30)
        self.assertTrue(all(made))

    def test_the_settings_and_the_counts_of_one_request(self) -> None:
        memory, session = reprise_decoding.Memory(), reprise_decoding.Session(cost=CHEAP)
        for settings, longest in (({}, 16), ({"max_draft": 3}, 3), ({"enabled": False}, 0), ({"salt": "a"}, 16)):
            options: Any
            for options in ({"memory": memory}, {"session": session}):
                with reprise_decoding.request(**settings) as one:  # type: ignore[arg-type]
                    steps = adapter.generate(Generator(300), prompt(1), max_tokens=150, **options)
                    if "salt" in settings and "session" in options:
                        with self.assertRaisesRegex(reprise_decoding.ArgumentError, "^session: has a memory"):
                            next(steps)
                        continue
                    self.assertEqual(list(steps), plain(prompt(1), 150))
                counts = one.statistics
                self.assertEqual(counts.tokens, 150)
                self.assertLessEqual(counts.drafted, longest * counts.passes)
                self.assertEqual(counts.accepted > 50, longest > 0)
                self.assertEqual(counts.passes, 150 - counts.accepted)

    def test_a_generation_that_fails_before_its_first_pass_counts_nothing(self) -> None:
        session = reprise_decoding.Session(cost=CHEAP)
        list(adapter.generate(Generator(300), prompt(1), max_tokens=50, session=session))
        with reprise_decoding.request() as one, self.assertRaises(AssertionError):
            list(adapter.generate(Generator(1), prompt(1), max_tokens=50, session=session))
        self.assertEqual(one.statistics.tokens, 0)

    def test_a_draft_for_a_request_of_the_engine(self) -> None:
        class Engine:
            def max_draft_tokens_per_proposal(self) -> int:
                return self.most

        class Request:
            draft: Any = None

            def set_draft_tokens(self, tokens: Any) -> None:
                assert tokens.dtype == np.int32 and tokens.size
                self.draft = tokens.tolist()

        engine, ids = Engine(), [1, 2, 3, 4] * 8
        for engine.most, wanted in ((3, 3), (100, 16), (0, 0)):
            request = Request()
            count = adapter.set_draft(engine, request, ids, reprise_decoding.Drafter(cost=CHEAP))
            self.assertEqual(count, wanted)
            self.assertEqual(request.draft, ([1, 2, 3, 4] * 4)[:wanted] if wanted else None)

    def test_a_prediction_is_for_the_first_request_of_its_block(self) -> None:
        session = reprise_decoding.Session(cost=CHEAP)
        passes: list[int] = []
        with reprise_decoding.request(prediction=plain(prompt(1)[:19], 34)) as one:
            for ids in (prompt(1)[:19], prompt(2)[:19]):
                steps = list(adapter.generate(Generator(300), ids, max_tokens=34, session=session))
                self.assertEqual(steps, plain(ids, 34))
                passes.append(one.statistics.passes - sum(passes))
        self.assertEqual(passes[0], 2)
        self.assertGreater(passes[1], 2)


if __name__ == "__main__":
    unittest.main()
