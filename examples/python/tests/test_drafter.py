# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gc
import threading
import time
import unittest

import numpy as np
import reprise_decoding
from support import next_token, plain, prompt

CHEAP = reprise_decoding.CostCurve.linear(0.01)
REPEATED = np.array([1, 2, 3, 4, 5, 6, 7, 8] * 4 + [1, 2, 3], np.int32)


class Drafts(unittest.TestCase):
    def test_a_draft_continues_the_text(self) -> None:
        drafter = reprise_decoding.Drafter(cost=CHEAP)
        draft = drafter.draft(REPEATED, most=5)
        self.assertEqual(draft.tolist(), [4, 5, 6, 7, 8])
        self.assertEqual(draft.dtype, np.int32)

    def test_every_bound_has_its_effect_up_to_64(self) -> None:
        text = np.tile(np.arange(1000, dtype=np.int32) * 7 % 30_011, 2)
        for bound in (0, 20, 33, 64):
            for most in (1, 32, 33, 64, 300):
                with self.subTest(max_draft=bound, most=most):
                    wanted = min(most, bound or 64)
                    self.assertEqual(reprise_decoding.Drafter(cost=0, max_draft=bound).draft(text, most).size, wanted)
                    batch = reprise_decoding.BatchDrafter(2, cost=0, max_draft=bound)
                    self.assertEqual(batch.draft({1: text}, most)[1].size, wanted)
                    session = reprise_decoding.Session(cost=0, max_draft=bound)
                    session.begin(text)
                    step = session.plan(most)
                    assert step is not None
                    self.assertEqual(step.drafted, wanted)
        session = reprise_decoding.Session(cost=0)
        session.begin(text)
        step = session.plan()
        assert step is not None
        self.assertEqual(step.drafted, 32)

    def test_a_draft_is_a_copy(self) -> None:
        drafter = reprise_decoding.Drafter(cost=CHEAP)
        ids = REPEATED.copy()
        first = drafter.draft(ids, most=3)
        kept = first.tolist()
        drafter.draft(np.append(ids, [4, 5]).astype(np.int32), most=3)
        self.assertEqual(first.tolist(), kept)
        first[0] = 77  # its owner may change it
        del drafter
        gc.collect()
        self.assertEqual(first.tolist(), [77, *kept[1:]])

    def test_any_integers(self) -> None:
        wanted = reprise_decoding.Drafter(cost=CHEAP).draft(REPEATED).tolist()
        self.assertTrue(wanted)
        read_only = REPEATED.copy()
        read_only.flags.writeable = False
        gaps = np.stack([REPEATED, REPEATED], axis=1)[:, 0]
        self.assertFalse(gaps.flags.c_contiguous)
        for ids in (
            REPEATED.tolist(),
            tuple(REPEATED.tolist()),
            REPEATED.astype(np.int64),
            REPEATED.astype(np.uint16),
            REPEATED.astype(">i4"),
            np.asfortranarray(REPEATED),
            read_only,
            gaps,
            memoryview(REPEATED),
        ):
            self.assertEqual(reprise_decoding.Drafter(cost=CHEAP).draft(ids).tolist(), wanted, repr(type(ids)))

    def test_new_tokens_alone(self) -> None:
        drafter, all_of = (reprise_decoding.Drafter(cost=CHEAP) for _ in range(2))
        text: list[int] = []
        for fresh in (REPEATED, [4, 5], [], (6,), np.array([], np.int32), np.array([99, 1, 2]), REPEATED[:9]):
            known = len(text)
            text += list(fresh)
            draft = drafter.draft(fresh, 7, 3, after=np.int64(known)).tolist()  # 0 at first: all are new
            self.assertEqual(draft, all_of.draft(text, 7, 3).tolist())
            self.assertTrue(draft)
        self.assertEqual(drafter.statistics, all_of.statistics)
        drafter.enabled = False
        self.assertEqual(drafter.draft([7], 7, 3, after=len(text)).size, 0)
        drafter.enabled = True
        text.append(7)
        for known, conversation in ((len(text) - 1, 3), (len(text), 4), (len(text), None)):
            with self.assertRaisesRegex(ValueError, "^after: "):
                drafter.draft([8], 7, conversation, after=known)
        all_of.draft(text, 7, 3)
        self.assertEqual(drafter.draft([8], 7, 3, after=len(text)).tolist(), all_of.draft([*text, 8], 7, 3).tolist())
        drafter.forget()
        with self.assertRaisesRegex(ValueError, "^after: "):
            drafter.draft([9], 7, 3, after=len(text) + 1)

    def test_requests_of_one_pass_lose_at_most_ten_plain_passes_in_a_thousand(self) -> None:
        drafter = reprise_decoding.Drafter(cost=reprise_decoding.CostCurve.linear(0.3))
        # No call shows the result of a pass, so each one counts as lost.
        rows = sum(len(drafter.draft(REPEATED + 100 * (request % 5), most=32)) for request in range(1000))
        self.assertGreater(rows, 0)
        self.assertLessEqual(0.3 * rows, 10)

    def test_decoding_with_drafts_gives_the_same_text_in_fewer_passes(self) -> None:
        drafter = reprise_decoding.Drafter(cost=CHEAP)
        context, wanted, passes = prompt(3), plain(prompt(3), 200), 0
        while len(context) < 260:
            draft = drafter.draft(np.array(context, np.int32)).tolist()
            passes += 1
            for token in [*draft, None]:
                context.append(next_token(context))
                if context[-1] != token:
                    break
        self.assertEqual(context[60:260], wanted)
        self.assertLess(passes, 120)
        counts = drafter.statistics
        self.assertEqual(counts.passes, passes - 1)  # the last pass has not been reported
        self.assertGreater(counts.accepted, 50)
        self.assertEqual(counts.fields["by_source"]["context"]["accepted"], counts.accepted)
        self.assertGreater(counts.tokens_per_pass, 1.5)
        self.assertAlmostEqual(counts.acceptance_rate, counts.accepted / counts.drafted)

    def test_times_are_taken_by_default(self) -> None:
        for now, timed in ((None, True), (0, False)):
            drafter = reprise_decoding.Drafter(cost=CHEAP)
            ids = np.arange(100, dtype=np.int32)
            for end in range(90, 95):
                time.sleep(0.001)
                drafter.draft(ids[:end], most=0, now=now)
            # Two, but fewer if the machine is busy: an interval far above the others may have been a prompt's.
            self.assertEqual(drafter.statistics.timed_passes > 0, timed, now)

    def test_a_clock_of_the_callers(self) -> None:
        read: list[int] = []

        def clock() -> int:
            read.append(1_000_000 * (1 + len(read)))
            return read[-1]

        drafter = reprise_decoding.Drafter(cost=CHEAP, clock=clock)
        ids = np.arange(100, dtype=np.int32)
        for end in range(90, 95):
            drafter.draft(ids[:end], most=0)
        self.assertEqual(len(read), 6)  # once to check it
        self.assertEqual(drafter.statistics.timed_passes, 2)

    def test_a_bad_clock_is_refused(self) -> None:
        with self.assertRaisesRegex(TypeError, "^clock: must be a function, but is of the type int"):
            reprise_decoding.Drafter(clock=5)  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "^clock: must return an integer of nanoseconds.* not a float"):
            reprise_decoding.Session(clock=time.perf_counter)  # type: ignore[arg-type]
        with self.assertRaisesRegex(ValueError, "^clock: must be 0 or more, but is -1"):
            reprise_decoding.Session(clock=lambda: -1)

    def test_most(self) -> None:
        drafter = reprise_decoding.Drafter(cost=CHEAP)
        self.assertEqual(drafter.draft(REPEATED, most=0).size, 0)
        self.assertEqual(drafter.draft(REPEATED, most=2).size, 2)
        self.assertLessEqual(drafter.draft(REPEATED, most=2**40).size, 64)

    def test_the_switch(self) -> None:
        drafter = reprise_decoding.Drafter(cost=CHEAP)
        drafter.enabled = False
        self.assertEqual(drafter.draft(REPEATED).size, 0)
        drafter.enabled = True
        self.assertGreater(drafter.draft(np.append(REPEATED, np.int32(4))).size, 0)

    def test_nothing_is_drafted_after_an_end(self) -> None:
        drafter = reprise_decoding.Drafter(cost=CHEAP)
        for eos, draft in ((5, [4, 5]), ([6, 5], [4, 5]), ([], [4, 5, 6, 7, 8]), (np.array([7]), [4, 5, 6, 7])):
            drafter.stop_at(eos)
            self.assertEqual(drafter.draft(REPEATED, most=5).tolist(), draft)

    def test_placeholders_are_not_drafted(self) -> None:
        for placeholder in (-1, -100, 70, 2**31 - 1):
            drafter = reprise_decoding.Drafter(cost=CHEAP, vocabulary=70)
            images = [*([1, 2] + [placeholder] * 5) * 4, 1, 2]
            for ids in (images, np.array(images), np.array(images, np.int32)):
                self.assertTrue({1, 2} >= set(drafter.draft(ids).tolist()), repr(ids))

    def test_only_the_drafted_tokens_that_have_run_count(self) -> None:
        drafter = reprise_decoding.Drafter(cost=CHEAP)
        self.assertEqual(drafter.draft(REPEATED, most=5).tolist(), [4, 5, 6, 7, 8])
        drafter.verified(1)
        drafter.draft([*REPEATED, 4, 5])
        self.assertEqual((drafter.statistics.drafted, drafter.statistics.accepted), (1, 1))

    def test_forget(self) -> None:
        for forget in (False, True):
            drafter = reprise_decoding.Drafter(cost=CHEAP)
            drafter.draft(REPEATED, conversation=1)
            if forget:
                drafter.forget()
            draft = drafter.draft([60, 61, 1, 2, 3], conversation=1).tolist()
            self.assertEqual(4 in draft, not forget)

    def test_a_prediction_is_for_the_next_sequence(self) -> None:
        memory = reprise_decoding.Memory()
        drafter = reprise_decoding.Drafter(cost=CHEAP, memory=memory)
        drafter.predict([40, 41])
        drafter.predict(range(42, 60))
        drafts = [drafter.draft([1, 2, 3], most=4).tolist(), drafter.draft([1, 2, 3, 40, 41, 42], most=4).tolist()]
        self.assertEqual(drafts, [[40, 41, 42, 43], [43, 44, 45, 46]])
        drafter.forget()
        self.assertNotIn(50, drafter.draft([7, 8, 9, 48, 49]))
        drafter.predict([])
        self.assertNotIn(50, reprise_decoding.Drafter(cost=CHEAP, memory=memory).draft([7, 8, 9, 48, 49]))

    def test_learned_costs_can_be_kept(self) -> None:
        drafter = reprise_decoding.Drafter()
        saved = drafter.save_costs("engine, model and machine")
        self.assertIsInstance(saved, bytes)
        reprise_decoding.Drafter(saved_costs=saved, engine="engine, model and machine")
        with self.assertRaises(reprise_decoding.ArgumentError):
            reprise_decoding.Drafter(saved_costs=saved, engine="another engine")
        with self.assertRaises(reprise_decoding.ArgumentError):
            reprise_decoding.Drafter(saved_costs=saved[:-1], engine="engine, model and machine")


class Isolation(unittest.TestCase):
    """A drafter that gets another text without being told so."""

    SECRET = [500 + i for i in range(20)]
    SHARED = [11, 12, 13, 14, 15]
    FIRST = [*SHARED, 21, 22, 23, *SECRET, 21, 22, 23, *SECRET, 31]
    SECOND = [*SHARED, 41, 42, 21, 22, 23]  # the secret has followed these three tokens

    def drafts(self, drafter: reprise_decoding.Drafter, conversation: int | None = None) -> list[list[int]]:
        ids, found = list(self.SECOND), []
        for token in [21, 22, 23, 21, 22, 23, 12, 13, 14]:
            found.append(drafter.draft(ids, conversation=conversation).tolist())
            ids.append(token)
        return found

    def test_the_text_before_never_drafts_for_another(self) -> None:
        used = reprise_decoding.Drafter(cost=CHEAP)
        for end in range(10, len(self.FIRST)):
            used.draft(self.FIRST[:end])
        after, alone = self.drafts(used), self.drafts(reprise_decoding.Drafter(cost=CHEAP))
        self.assertTrue(any(alone))
        for one, other in zip(after, alone):
            # How many tokens are drafted may depend on earlier text, but the tokens may not.
            shorter = min(len(one), len(other))
            self.assertEqual(one[:shorter], other[:shorter])
        self.assertFalse({token for draft in after for token in draft} & set(self.SECRET))

    def test_only_a_named_conversation_keeps_its_text(self) -> None:
        used = reprise_decoding.Drafter(cost=CHEAP)
        for end in range(10, len(self.FIRST)):
            used.draft(self.FIRST[:end], conversation=7)
        self.assertTrue({token for draft in self.drafts(used, 7) for token in draft} & set(self.SECRET))
        other = reprise_decoding.Drafter(cost=CHEAP)
        for end in range(10, len(self.FIRST)):
            other.draft(self.FIRST[:end], conversation=7)
        self.assertFalse({token for draft in self.drafts(other, 8) for token in draft} & set(self.SECRET))


class Refusals(unittest.TestCase):
    def setUp(self) -> None:
        self.drafter = reprise_decoding.Drafter(cost=CHEAP)

    def test_ids(self) -> None:
        for bad, kind, sentence in (
            ([], ValueError, "ids: .*empty"),
            (np.empty(0, np.int32), ValueError, "ids: .*empty"),
            ([1.5], TypeError, "ids: token ids must be integers.*float"),
            (["a"], TypeError, "ids: token ids must be integers"),
            ([True], TypeError, "ids: token ids must be integers.*bool"),
            (None, TypeError, "ids: .*NoneType"),
            (5, TypeError, "ids: .*int"),
            ([[1, 2]], ValueError, r"ids: .*shape \(1, 2\)"),
            (np.zeros((2, 3), np.int32), ValueError, r"ids: .*shape \(2, 3\)"),
            ([[1], [2, 3]], ValueError, "ids: "),
            ([1, 2**31], ValueError, r"ids: .*below 2147483648, but ids\[1\] is 2147483648"),
            ([-(2**31) - 1], ValueError, r"ids\[0\]"),
            ([2**70], ValueError, r"ids\[0\]"),
            (np.array([1, 2**32 - 1], np.uint32), ValueError, r"ids\[1\] is 4294967295"),
        ):
            with self.subTest(ids=bad), self.assertRaisesRegex(kind, sentence):
                self.drafter.draft(bad)

    def test_numbers(self) -> None:
        for arguments, kind, sentence in (
            ({"most": -1}, ValueError, "most: must be 0 or more, but is -1"),
            ({"most": 1.0}, TypeError, "most: must be an integer.*float"),
            ({"most": None}, TypeError, "most: "),
            ({"conversation": 0}, ValueError, "conversation: must be 1 or more"),
            ({"conversation": 2**64}, ValueError, "conversation: "),
            ({"conversation": "a"}, TypeError, "conversation: .*str"),
            ({"now": -5}, ValueError, "now: must be 0 or more"),
            ({"now": 0.5}, TypeError, "now: "),
        ):
            with self.subTest(**arguments), self.assertRaisesRegex(kind, sentence):
                self.drafter.draft(REPEATED, **arguments)

    def test_options(self) -> None:
        for arguments, kind, sentence in (
            ({"cost": "0.1"}, TypeError, "cost: must be a CostCurve or a number, but is of the type str"),
            ({"memory": []}, TypeError, "memory: must be a Memory"),
            ({"max_draft": -1}, ValueError, "max_draft: "),
            ({"max_draft": 65}, ValueError, "max_draft: must be 64 or less, but is 65"),
            ({"max_draft": 300}, ValueError, "max_draft: must be 64 or less"),
            ({"key": -1}, ValueError, "key: "),
            ({"saved_costs": "text"}, TypeError, "saved_costs: must be bytes"),
            ({"saved_costs": b"no snapshot", "engine": "a"}, reprise_decoding.ArgumentError, "saved_costs: "),
            ({"engine": 5}, TypeError, "engine: must be a str"),
        ):
            with self.subTest(**arguments), self.assertRaisesRegex(kind, sentence):
                reprise_decoding.Drafter(**arguments)

    def test_an_error_changes_nothing(self) -> None:
        wanted = self.drafter.draft(REPEATED).tolist()
        for bad in ([], [1.5], [[1]]):
            with self.assertRaises((TypeError, ValueError)):
                self.drafter.draft(bad)
        self.assertEqual(self.drafter.draft(REPEATED).tolist(), wanted)

    def test_a_closed_drafter(self) -> None:
        self.drafter.close()
        self.drafter.close()
        for call in (lambda: self.drafter.draft(REPEATED), lambda: self.drafter.statistics, self.drafter.forget):
            with self.assertRaisesRegex(reprise_decoding.OrderError, "Drafter: it has been closed"):
                call()

    def test_two_threads_at_once(self) -> None:
        entered, done, errors = threading.Event(), threading.Event(), []

        def occupy() -> None:
            self.drafter._alone(lambda: (entered.set(), done.wait(10)))

        other = threading.Thread(target=occupy)
        other.start()
        entered.wait(10)
        try:
            self.drafter.draft(REPEATED)
        except reprise_decoding.OrderError as refused:
            errors.append(str(refused))
        done.set()
        other.join()
        self.assertEqual(errors, ["Drafter: another thread is using it; use one object for each thread"])
        self.assertGreater(self.drafter.draft(REPEATED).size, 0)


class Costs(unittest.TestCase):
    def test_a_call_does_not_grow_with_the_context(self) -> None:
        """A wide margin, because machines are busy: a conversion of all tokens would cost 30 times as much."""
        best = {}
        for length in (1000, 32000):
            ids = np.tile(np.arange(50, dtype=np.int32), length // 50 + 20)
            drafter, times = reprise_decoding.Drafter(cost=CHEAP), []
            for end in range(length, length + 300):
                before = time.perf_counter_ns()
                drafter.draft(ids[:end])
                times.append(time.perf_counter_ns() - before)
            best[length] = min(times[1:])
        self.assertLess(best[32000], 8 * best[1000])


if __name__ == "__main__":
    unittest.main()
