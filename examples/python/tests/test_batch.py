# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import unittest
import weakref

import numpy as np
import reprise_decoding
from support import next_token, plain, prompt

CHEAP = reprise_decoding.CostCurve.linear(0.01)
REPEATED = [1, 2, 3, 4, 5, 6, 7, 8] * 4 + [1, 2, 3]


class Batches(unittest.TestCase):
    def test_each_slot_has_its_own_draft(self) -> None:
        batch = reprise_decoding.BatchDrafter(3, cost=CHEAP)
        other = [token + 100 for token in REPEATED]
        drafts = batch.draft({2: np.array(REPEATED, np.int32), 0: other}, most={2: 5, 0: 2})
        self.assertEqual({slot: draft.tolist() for slot, draft in drafts.items()}, {2: [4, 5, 6, 7, 8], 0: [104, 105]})
        self.assertEqual(drafts[2].dtype, np.int32)
        kept = drafts[2].tolist()
        batch.draft({2: [*REPEATED, 4, 9]})
        self.assertEqual(drafts[2].tolist(), kept, "a draft is a copy")
        self.assertEqual(batch.draft({}), {})
        self.assertEqual(batch.draft({1: REPEATED}, most=0)[1].size, 0)

    def test_requests_that_begin_end_and_move(self) -> None:
        batch = reprise_decoding.BatchDrafter(4, cost=CHEAP)
        waiting = [prompt(seed, 40 + seed) for seed in range(1, 9)]
        running: dict[int, tuple[list[int], list[int]]] = {}  # prompt and text, by slot
        passes = 0
        while waiting or running:
            for slot in range(4):
                if waiting and slot not in running and passes % 3 == 0:
                    start = waiting.pop()
                    running[slot] = (start, list(start))
            if passes % 20 == 19 and 0 in running and 3 in running:
                running[0], running[3] = running[3], running[0]
            drafts = batch.draft({slot: text for slot, (_, text) in running.items()})
            passes += 1
            for slot, draft in drafts.items():
                start, text = running[slot]
                for token in [*draft.tolist(), None]:
                    text.append(next_token(text))
                    if text[-1] != token:
                        break
                if len(text) >= len(start) + 100:
                    self.assertEqual(text, [*start, *plain(start, len(text) - len(start))])
                    del running[slot]
        self.assertLess(passes, 150)  # 200 or more without drafts
        counts = [batch.statistics(slot) for slot in range(batch.slots)]
        self.assertGreater(sum(count.accepted for count in counts), 200)
        self.assertEqual(counts[0].timed_passes, 0)

    def test_slots_that_take_turns_draft_as_much_as_all_in_each_call(self) -> None:
        passes = {}
        for groups, repeats in ((1, 1), (2, 1), (4, 1), (1, 2)):
            batch = reprise_decoding.BatchDrafter(8, cost=0.02)
            period = [list(range(100 * slot, 100 * slot + 50)) for slot in range(8)]
            texts = [2 * tokens for tokens in period]
            passes[groups, repeats] = 0
            for call in range(160 * groups):
                part = {slot: text for slot, text in enumerate(texts) if slot % groups == call % groups}
                for _ in range(repeats):
                    drafts = batch.draft(part)
                for slot, draft in drafts.items():
                    if len(texts[slot]) < 2000:
                        passes[groups, repeats] += 1
                        wanted = [period[slot][(len(texts[slot]) + i) % 50] for i in range(len(draft) + 1)]
                        self.assertEqual(draft.tolist(), wanted[:-1])
                        texts[slot] += wanted
        self.assertLess(max(passes.values()), 1.05 * passes[1, 1], passes)

    def test_ends_placeholders_and_short_passes_of_a_slot(self) -> None:
        batch = reprise_decoding.BatchDrafter(2, cost=CHEAP, vocabulary=70)
        batch.stop_at(0, 5)
        drafts = batch.draft({0: REPEATED, 1: REPEATED}, most=5)
        self.assertEqual([drafts[slot].tolist() for slot in (0, 1)], [[4, 5], [4, 5, 6, 7, 8]])
        batch.verified(1, 1)
        batch.draft({1: [*REPEATED, 4, 5]})
        self.assertEqual((batch.statistics(1).drafted, batch.statistics(1).accepted), (1, 1))
        images = [*([1, 2] + [-1] * 5 + [80]) * 4, 1, 2]
        self.assertTrue({1, 2} >= set(batch.draft({0: images})[0].tolist()))

    def test_slots_that_take_turns_learn_costs_as_all_in_each_call(self) -> None:
        def tokens_a_pass(groups: int, asks: int) -> float:
            batch, now = reprise_decoding.BatchDrafter(4), 1
            texts = {slot: [(at % 50) * 7 + slot for at in range(200)] for slot in range(4)}
            passes, call = 0, 0
            while min(len(text) for text in texts.values()) < 1200:
                call += 1
                part = {slot: text for slot, text in texts.items() if slot % groups == call % groups}
                for _ in range(asks):
                    drafts = batch.draft(part, now=now)
                    now += 3000
                for slot, draft in drafts.items():
                    count = len(texts[slot]) + draft.size + 1  # every drafted token is right
                    texts[slot] = [(at % 50) * 7 + slot for at in range(count)]
                    passes += 1
                now += 10**7 + 10**5 * sum(draft.size for draft in drafts.values())
            return (sum(len(text) for text in texts.values()) - 800) / passes

        every = tokens_a_pass(1, 1)
        self.assertGreater(every, 12)
        for groups, asks in ((2, 1), (4, 1), (1, 3), (2, 2)):
            self.assertGreater(tokens_a_pass(groups, asks), 0.9 * every, (groups, asks))

    def test_text_of_another_request_is_gone(self) -> None:
        secret = [*REPEATED, *range(500, 520), 1, 2, 3, *range(500, 520)]
        for conversations, seen in ((None, False), ({0: 7}, True)):
            batch = reprise_decoding.BatchDrafter(1, cost=CHEAP)
            batch.draft({0: secret}, conversations=conversations)
            draft = batch.draft({0: [60, 500, 501, 502]}, conversations=conversations)[0].tolist()
            self.assertEqual(503 in draft, seen)
            batch.forget(0)
            self.assertNotIn(503, batch.draft({0: [60, 500, 501, 502]}, conversations=conversations)[0].tolist())

    def test_costs_are_learned_from_planned_passes_and_kept(self) -> None:
        for others in (0, 5):
            batch = reprise_decoding.BatchDrafter(2)
            fresh, text = batch.save_costs("toy"), list(REPEATED)
            for time in range(1, 20):
                draft = batch.draft({1: text}, now=time * 10**6)[1].tolist()
                batch.ran(1 + len(draft))
                batch.ran(others)  # rows of a prompt, say
                text = (REPEATED * 9)[: len(text) + len(draft) + 1]
            saved = batch.save_costs("toy")
            self.assertEqual(saved != fresh, others == 0)
        reprise_decoding.Drafter(saved_costs=saved, engine="toy")
        self.assertEqual(reprise_decoding.BatchDrafter(2, saved_costs=saved, engine="toy").save_costs("toy"), saved)

    def test_costs_of_several_sequences_are_kept(self) -> None:
        batch, texts = reprise_decoding.BatchDrafter(4), {slot: [slot, *REPEATED] for slot in range(4)}
        fresh = batch.save_costs("toy, 4", 4)
        for time in range(1, 30):
            drafts = batch.draft(texts, now=time * 10**6)
            for slot, text in texts.items():
                texts[slot] = [slot, *(REPEATED * 9)[: len(text) + len(drafts[slot])]]
        saved = batch.save_costs("toy, 4", 4)
        self.assertNotEqual(saved, fresh)
        self.assertEqual(batch.save_costs("toy, 4", 2), fresh)
        later = reprise_decoding.BatchDrafter(4)
        with self.assertRaisesRegex(reprise_decoding.ArgumentError, "^saved: .*another engine"):
            later.load_costs(saved, "toy, 1", 4)
        self.assertEqual(later.save_costs("toy, 4", 4), fresh)
        later.load_costs(saved, "toy, 4", 4)
        self.assertEqual(later.save_costs("toy, 4", 5), saved)
        self.assertEqual(later.save_costs("toy, 4"), fresh)

    def test_a_slot_drafts_with_the_memory_that_it_is_assigned(self) -> None:
        batch = reprise_decoding.BatchDrafter(2, cost=CHEAP)
        memories = [reprise_decoding.Memory(), reprise_decoding.Memory()]
        for tenant, memory in enumerate(memories):
            memory.add([1, 2, 3, 4, *range(10 + tenant, 90, 10)])
            batch.assign(tenant, memory)
        for drafts in (batch.draft({0: [1, 2, 3, 4], 1: [1, 2, 3, 4]}), batch.draft({0: [2, 3, 4], 1: [2, 3, 4]})):
            self.assertEqual([drafts[slot][:2].tolist() for slot in (0, 1)], [[10, 20], [11, 21]])
        for memory in memories:
            memory.close()
        self.assertEqual(batch.draft({1: [1, 2, 3, 4]})[1][:1].tolist(), [11], "the slot uses it")
        batch.assign(1)
        self.assertNotIn(11, batch.draft({1: [1, 2, 3, 4]})[1].tolist())
        with self.assertRaisesRegex(ValueError, "^memory: it has been closed"):
            batch.assign(0, memories[0])

    def test_placeholders_are_not_drafted_in_an_assigned_slot(self) -> None:
        text = [1, 2, 3, 99] * 8 + [1, 2, 3]
        for vocabulary in (0, 64, 2**31):
            batch = reprise_decoding.BatchDrafter(1, cost=CHEAP, vocabulary=vocabulary)
            batch.assign(0)
            self.assertEqual(99 in batch.draft({0: text})[0], vocabulary != 64)

    def test_a_prediction_is_for_the_next_request_of_its_slot(self) -> None:
        batch = reprise_decoding.BatchDrafter(2, cost=CHEAP)
        batch.predict(1, range(40, 60))
        drafts = batch.draft({0: [1, 2, 3], 1: [1, 2, 3]}, most=4)
        self.assertEqual(drafts[1].tolist(), [40, 41, 42, 43])
        self.assertFalse(set(drafts[0].tolist()) & set(range(40, 60)))
        batch.forget(1)
        self.assertFalse(set(batch.draft({1: [1, 2, 3]})[1].tolist()) & set(range(40, 60)))

    def test_new_tokens_alone(self) -> None:
        batch, all_of = reprise_decoding.BatchDrafter(2, cost=CHEAP), reprise_decoding.BatchDrafter(2, cost=CHEAP)
        self.assertEqual(batch.known(0, REPEATED), 0)
        batch.draft({0: REPEATED})
        all_of.draft({0: REPEATED})
        text = list(REPEATED)
        for fresh in ([4, 5], [], np.array([6], np.int32), [99, 1, 2]):
            known = batch.known(0, [*text, *fresh])
            self.assertEqual(known, len(text))
            text += list(fresh)
            self.assertEqual(
                batch.draft({0: fresh}, after={0: known})[0].tolist(), all_of.draft({0: text})[0].tolist()
            )
        self.assertEqual(batch.known(0, [*text[:-1], 7, 7]), 0)
        self.assertEqual(batch.known(1, text), 0)
        for wrong, kind, sentence in (
            ({0: len(text) - 1}, ValueError, "is not the number of known tokens"),
            ({0: len(text) + 1}, ValueError, "is not the number of known tokens"),
            ({0: 0}, ValueError, r"^after\[0\]: "),
            ({0: 1.5}, TypeError, r"^after\[0\]: "),
        ):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(kind, sentence):
                batch.draft({0: [1]}, after=wrong)  # type: ignore[arg-type]
        with self.assertRaisesRegex(ValueError, r"^ids\[1\]: .*empty"):
            batch.draft({0: [], 1: []}, after={0: len(text)})
        self.assertEqual(batch.known(0, text), len(text), "refused calls change nothing")
        with self.assertRaisesRegex(ValueError, "^slot: "):
            batch.known(2, text)

    def test_likeliest_tokens_of_a_slot(self) -> None:
        for reported in (False, True):
            batch = reprise_decoding.BatchDrafter(1, cost=CHEAP)
            with self.assertRaisesRegex(reprise_decoding.OrderError, "the slot has no pass"):
                batch.report_top_k(0, 0, [60])
            batch.draft({0: [50, 51, 52]}, most=0)
            if reported:
                batch.report_top_k(0, 0, np.array([60, 61, 62, 63], np.int32))
                batch.report_top_k(0, 77, [1, 2])  # no such row
            self.assertEqual(61 in batch.draft({0: [50, 51, 52, 60]})[0].tolist(), reported)

    def test_refusals(self) -> None:
        batch = reprise_decoding.BatchDrafter(2)
        for slots, kind in ((0, ValueError), (65537, ValueError), (1.5, TypeError)):
            with self.subTest(slots=slots), self.assertRaisesRegex(kind, "^slots: "):
                reprise_decoding.BatchDrafter(slots)  # type: ignore[arg-type]
        for arguments, kind, sentence in (
            ({"ids": {2: [1]}}, ValueError, "^slot: must be 1 or less"),
            ({"ids": {-1: [1]}}, ValueError, "^slot: "),
            ({"ids": {0: []}}, ValueError, r"^ids\[0\]: .*empty"),
            ({"ids": {0: [1.5]}}, TypeError, r"^ids\[0\]: "),
            ({"ids": {0: [1]}, "most": -1}, ValueError, "^most: "),
            ({"ids": {0: [1]}, "now": -1}, ValueError, "^now: "),
            ({"ids": {0: [1]}, "conversations": {0: 0}}, ValueError, r"^conversations\[0\]: "),
        ):
            with self.subTest(**arguments), self.assertRaisesRegex(kind, sentence):
                batch.draft(**arguments)
        for call in (
            lambda: batch.forget(2),
            lambda: batch.statistics(2),
            lambda: batch.assign(2),
            lambda: batch.report_top_k(2, 0, [1]),
        ):
            with self.assertRaisesRegex(reprise_decoding.ArgumentError, "^slot: "):
                call()
        with self.assertRaisesRegex(TypeError, "^saved: "):
            batch.load_costs("costs", "toy")  # type: ignore[arg-type]
        with self.assertRaisesRegex(ValueError, "^sequences: "):
            batch.save_costs("toy", 0)
        with self.assertRaisesRegex(TypeError, "^memory: "):
            batch.assign(0, CHEAP)  # type: ignore[arg-type]
        batch.close()
        with self.assertRaisesRegex(reprise_decoding.OrderError, "BatchDrafter: it has been closed"):
            batch.ran(1)


class Heads(unittest.TestCase):
    def test_a_head_saves_passes_and_changes_nothing(self) -> None:
        counts = []
        for share in (0, 16):  # a head that never runs, and one that is nearly always right
            batch = reprise_decoding.BatchDrafter(2, cost=0.01, head_cost=0.05)
            texts = {slot: prompt(5 + slot) for slot in range(2)}
            begun = {slot: len(text) for slot, text in texts.items()}
            passes = 0
            while any(len(texts[slot]) - begun[slot] < 120 for slot in texts):
                wanted = batch.propose_lookup(texts)
                self.assertEqual(wanted.keys(), texts.keys())
                for slot, count in wanted.items():
                    text = list(texts[slot])
                    for i in range(count if share else 0):
                        text.append(next_token(text) if i % share != share - 1 else 99)
                    if share and count:
                        batch.add_head(slot, text[len(texts[slot]) :])
                drafts = batch.draft_proposed(1000 if any(wanted.values()) and share else 0)
                for slot, draft in drafts.items():
                    for token in [*draft.tolist(), None]:
                        texts[slot].append(next_token(texts[slot]))
                        if texts[slot][-1] != token:
                            break
                passes += 1
            for slot, text in texts.items():
                self.assertEqual(text, [*prompt(5 + slot), *plain(prompt(5 + slot), len(text) - begun[slot])])
            counts.append(passes)
        self.assertLess(counts[1], counts[0] * 0.9, counts)

    def test_the_parts_come_in_order(self) -> None:
        batch = reprise_decoding.BatchDrafter(2, cost=0.01, head_cost=0.05)
        with self.assertRaisesRegex(reprise_decoding.OrderError, "propose_lookup"):
            batch.draft_proposed()
        batch.propose_lookup({0: prompt(5)})
        batch.draft({0: prompt(5)})
        with self.assertRaisesRegex(reprise_decoding.OrderError, "propose_lookup"):
            batch.draft_proposed()
        batch.add_head(0, [1])  # it was not asked for
        with self.assertRaises(reprise_decoding.ArgumentError):
            batch.add_head(2, [1])


if __name__ == "__main__":
    unittest.main()