# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gc
import itertools
import json
import tempfile
import unittest
from pathlib import Path

import numpy as np
import reprise_decoding
from support import next_token, plain, prompt

CHEAP = reprise_decoding.CostCurve.linear(0.01)
PROFILES = Path(__file__).resolve().parents[3] / "bench/profiles"


def picks_of(session: reprise_decoding.Session, step: reprise_decoding.Pass) -> list[int]:
    """The model's token after the anchor and after each drafted row."""
    paths = [session.context.tolist()]
    for row, parent in enumerate(step.parents.tolist()):
        paths.append([*paths[parent + 1], int(step.batch[step.pending + row])])
    return [next_token(path) for path in paths]


class Decoding(unittest.TestCase):
    def decode(self, session: reprise_decoding.Session, **capabilities: int) -> tuple[list[int], int, bool]:
        """Decodes with a cache that holds tokens, and checks it in every pass."""
        ids, passes, branched = prompt(5), 0, False
        cache = ids[:-1]
        session.begin(ids, **capabilities)
        while (step := session.plan(24, max_tokens=200)) is not None:
            passes += 1
            branched = branched or any(np.diff(step.parents) != 1)
            self.assertEqual(session.cached, len(cache))
            positions, visible = step.positions(len(cache)), step.visible(len(cache))
            for row in range(len(step.batch)):
                seen = np.flatnonzero(visible[row])
                of_row = np.concatenate([np.arange(len(cache)), positions])[seen]
                self.assertEqual(sorted(of_row), list(range(positions[row] + 1)))
            done = session.commit(picks_of(session, step))
            cache += step.batch[done.rows].tolist()
            self.assertEqual(done.keep, len(done.rows))
        self.assertEqual(cache, session.context.tolist()[:-1])
        return session.output.tolist(), passes, branched

    def test_chains(self) -> None:
        session = reprise_decoding.Session(cost=CHEAP)
        output, passes, branched = self.decode(session)
        self.assertEqual(output, plain(prompt(5), 200))
        self.assertLess(passes, 120)
        self.assertFalse(branched)
        self.assertEqual(session.finish, "max_tokens")
        self.assertTrue(session.finished)
        self.assertEqual(session.statistics.tokens, 200)
        self.assertEqual(session.statistics.timed_passes, passes)
        self.assertGreater(session.memory_bytes, 0)

    def test_sampled_picks_keep_the_distribution(self) -> None:
        # A text of two tokens, where the next one depends on the last one alone.
        ones = (0.3, 0.6)
        random = np.random.default_rng(3)
        ids = [0]
        for _ in range(60):
            ids.append(int(random.random() < ones[ids[-1]]))
        texts = list(itertools.product((0, 1), repeat=4))
        shares = []
        for text in texts:
            each = zip((ids[-1], *text), text)
            shares.append(float(np.prod([ones[before] if token else 1 - ones[before] for before, token in each])))
        for max_leaves in (1, 8):
            session = reprise_decoding.Session(cost=CHEAP)
            counts, accepted, runs = dict.fromkeys(texts, 0), 0, 1500
            for _ in range(runs):
                session.begin(ids, max_leaves=max_leaves)
                while (step := session.plan(max_tokens=4)) is not None:
                    rows = step.batch[step.pending - 1 :]
                    accepted += session.commit([int(random.random() < ones[token]) for token in rows]).accepted
                counts[tuple(session.output.tolist())] += 1
            self.assertGreater(accepted, runs)
            expected = np.array(shares) * runs
            statistic = float(((np.array([counts[text] for text in texts]) - expected) ** 2 / expected).sum())
            self.assertLess(statistic, 37.7)  # 15 degrees of freedom: one fair run in 1,000 is above

    def test_the_clock_times_a_pass(self) -> None:
        for ticks, timed in (((5, 100, 250), 1), ((5, 100, 100), 0)):  # the first reading checks the clock
            session = reprise_decoding.Session(clock=iter(ticks).__next__)
            session.begin([1, 2, 3])
            session.plan()
            session.commit([4])
            self.assertEqual(session.statistics.timed_passes, timed)

    def test_a_refused_call_keeps_the_time_of_the_open_pass(self) -> None:
        session = reprise_decoding.Session(clock=iter((5, 100, 250)).__next__)
        session.begin([1, 2, 3])
        session.plan()
        for refused in (lambda: session.begin([]), lambda: session.plan(eos=-1), lambda: session.append([2**31])):
            with self.assertRaises(ValueError):
                refused()
        with self.assertRaises(reprise_decoding.OrderError):
            session._alone(session.plan)  # during a call
        session.commit([4])
        self.assertEqual(session.statistics.timed_passes, 1)

    def test_trees(self) -> None:
        output, _, branched = self.decode(reprise_decoding.Session(cost=CHEAP), max_leaves=8)
        self.assertEqual(output, plain(prompt(5), 200))
        self.assertTrue(branched)

    def test_eos_ends_the_output(self) -> None:
        wanted = plain(prompt(5), 200)
        end = wanted.index(wanted[30])
        session = reprise_decoding.Session(cost=CHEAP)
        session.begin(prompt(5))
        done = None
        while (step := session.plan(eos={wanted[30]})) is not None:
            done = session.commit(picks_of(session, step))
        self.assertEqual(done.finish, "eos")
        self.assertEqual(session.output.tolist(), wanted[:end])
        self.assertEqual(session.context.tolist()[-1], wanted[30])

    def test_a_step_outlives_the_session(self) -> None:
        session = reprise_decoding.Session(cost=CHEAP)
        session.begin(prompt(5))
        step = session.plan()
        held = step.batch.tolist(), step.parents.tolist(), step.depths.tolist()
        done = session.commit(picks_of(session, step))
        tokens, rows, context = done.tokens.tolist(), done.rows.tolist(), session.context
        session.plan()
        session.close()
        gc.collect()
        self.assertEqual(held, (step.batch.tolist(), step.parents.tolist(), step.depths.tolist()))
        self.assertEqual((tokens, rows), (done.tokens.tolist(), done.rows.tolist()))
        self.assertEqual(context.tolist()[: len(prompt(5))], prompt(5))

    def test_edits(self) -> None:
        session = reprise_decoding.Session(cost=CHEAP)
        session.begin([1, 2, 3, 4, 5, 6], cached=2)
        self.assertEqual(session.plan(0).pending, 4)
        session.set_cached(5)
        self.assertEqual(session.plan(0).pending, 1)
        session.append([7, 8])
        self.assertEqual(session.context.tolist(), [1, 2, 3, 4, 5, 6, 7, 8])
        session.truncate(4)
        self.assertEqual(session.context.tolist(), [1, 2, 3, 4])
        self.assertEqual(session.rebase([1, 2, 9, 9]), 2)
        self.assertEqual(session.context.tolist(), [1, 2, 9, 9])

    def test_a_fork_is_another_session(self) -> None:
        memory = reprise_decoding.Memory()
        session = reprise_decoding.Session(cost=CHEAP, memory=memory)
        session.begin(prompt(5))
        fork = session.fork()
        session.append([1, 2])
        session.close()
        del memory, session
        gc.collect()
        self.assertEqual(fork.context.tolist(), prompt(5))
        self.assertIsNotNone(fork.plan())

    def test_a_prediction_is_for_the_next_sequence(self) -> None:
        session = reprise_decoding.Session(cost=CHEAP)
        session.predict(range(40, 60))
        drafted = []
        for _ in range(2):
            session.begin([1, 2, 3])
            step = session.plan(most=4)
            drafted.append(step.batch[step.pending :].tolist())
        self.assertEqual(drafted[0], [40, 41, 42, 43])
        self.assertFalse(set(drafted[1]) & set(range(40, 60)))

    def test_top_k_rows(self) -> None:
        session = reprise_decoding.Session(cost=CHEAP)
        session.begin(prompt(5), max_leaves=8)
        wanted = session.top_k_wanted
        self.assertGreaterEqual(wanted, 0)
        step = session.plan()
        session.report_top_k(0, [1, 2, 3, 4])
        session.report_prompt_row(0, [1, 2])
        with self.assertRaisesRegex(ValueError, "row: .*no such row"):
            session.report_top_k(step.drafted + 1, [1])

    def test_snapshots_restore(self) -> None:
        session = reprise_decoding.Session(cost=CHEAP)
        session.begin(prompt(5), rollback="snapshot")
        step = session.plan()
        self.assertGreater(step.drafted, 0)
        wrong = [(token + 1) % 60 for token in step.batch[step.pending :].tolist()] + [1]
        done = session.commit(wrong)
        self.assertTrue(done.restore)
        self.assertEqual(done.keep, 0)


class Refusals(unittest.TestCase):
    def setUp(self) -> None:
        self.session = reprise_decoding.Session(cost=CHEAP)

    def test_order(self) -> None:
        for call in (lambda: self.session.plan(), lambda: self.session.commit([1]), lambda: self.session.append([1])):
            with self.assertRaises(reprise_decoding.OrderError):
                call()
        self.session.begin([1, 2, 3])
        with self.assertRaisesRegex(reprise_decoding.OrderError, r"commit: .*Session.plan\(\)"):
            self.session.commit([1])

    def test_arguments(self) -> None:
        self.session.begin(prompt(5))
        step = self.session.plan()
        for call, kind, sentence in (
            (lambda: self.session.begin([]), ValueError, "ids: .*empty"),
            (lambda: self.session.begin([1, 2], cached=2), ValueError, "cached: "),
            (lambda: self.session.begin([1, 2], rollback="maybe"), ValueError, "rollback: .*'maybe'"),
            (lambda: self.session.begin([1, 2], max_rows=-1), ValueError, "max_rows: "),
            (lambda: self.session.begin([1, 2], widths=[1.5]), TypeError, "widths: "),
            (lambda: self.session.commit([]), ValueError, "picks"),
            (lambda: self.session.commit([1.0]), TypeError, "picks: token ids must be integers"),
            (lambda: self.session.commit([1] * (step.drafted + 2)), ValueError, "picks: "),
            (lambda: self.session.commit([1], ns=-1), ValueError, "ns: "),
            (lambda: self.session.truncate(-1), ValueError, "count: "),
        ):
            with self.subTest(sentence=sentence), self.assertRaisesRegex(kind, sentence):
                call()
        self.session.commit(picks_of(self.session, step))  # the refused calls have changed nothing

    def test_plan_refuses_before_the_open_pass_is_given_up(self) -> None:
        self.session.begin(prompt(5))
        for arguments, kind, name in (({"most": -1}, ValueError, "most"), ({"eos": [1.5]}, TypeError, "eos")):
            with self.assertRaisesRegex(kind, f"{name}: "):
                self.session.plan(**arguments)


class Curves(unittest.TestCase):
    @unittest.skipUnless(PROFILES.exists(), "the profiles are not there: this is not the repository")
    def test_the_profiles_of_the_repository(self) -> None:
        files = sorted(PROFILES.glob("*.json"))
        self.assertGreater(len(files), 3)
        for file in files:
            self.assertIsInstance(reprise_decoding.CostCurve.file(file), reprise_decoding.CostCurve)

    def test_a_curve_decides_how_much_is_drafted(self) -> None:
        ids = np.tile(np.arange(8, dtype=np.int32), 10)
        cheap = reprise_decoding.CostCurve.points([(1, 0, 1, 100.0), (1, 0, 33, 110.0)])
        expensive = reprise_decoding.CostCurve.points([(1, 0, 1, 100.0), (1, 0, 2, 1e6)])
        self.assertGreater(reprise_decoding.Drafter(cost=cheap).draft(ids).size, 8)
        self.assertEqual(reprise_decoding.Drafter(cost=expensive).draft(ids).size, 0)

    def test_base_ns_fills_in_plain_passes(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "curve.json")
            file.write_text(json.dumps({"base_ns": 5, "points": [{"sequences": 1, "context": 0, "rows": 9, "ns": 6}]}))
            reprise_decoding.CostCurve.file(file)
            for text, sentence in (
                ("", "no JSON"),
                ("[]", "no cost curve"),
                ('{"points": [{"rows": 1}]}', "no cost curve"),
                ('{"points": [{"sequences": 1, "context": 0, "rows": 9, "ns": 6}]}', r"no cost curve: points\[0\]: "),
            ):
                file.write_text(text)
                with self.subTest(text=text), self.assertRaisesRegex(reprise_decoding.ArgumentError, sentence):
                    reprise_decoding.CostCurve.file(file)
            with self.assertRaises(FileNotFoundError):
                reprise_decoding.CostCurve.file(Path(folder, "nothing.json"))

    def test_refusals(self) -> None:
        for call, kind, sentence in (
            (lambda: reprise_decoding.CostCurve(), TypeError, "CostCurve.linear"),
            (lambda: reprise_decoding.CostCurve.linear("a"), TypeError, "per_row: "),
            (lambda: reprise_decoding.CostCurve.linear(-1), ValueError, "per_row"),
            (lambda: reprise_decoding.CostCurve.linear(float("nan")), ValueError, "per_row"),
            (lambda: reprise_decoding.CostCurve.points([]), ValueError, "points: "),
            (lambda: reprise_decoding.CostCurve.points([(1, 0, 1)]), ValueError, r"points\[0\]: "),
            (lambda: reprise_decoding.CostCurve.points([(1, -1, 1, 5)]), ValueError, r"points\[0\]: "),
        ):
            with self.subTest(sentence=sentence), self.assertRaisesRegex(kind, sentence):
                call()


class Memories(unittest.TestCase):
    TEXT = list(range(100, 160))

    def drafted(self, memory: reprise_decoding.Memory, salt: int | str = 0) -> list[int]:
        drafter = reprise_decoding.Drafter(memory=memory, salt=salt, cost=CHEAP)
        draft = drafter.draft([1, *self.TEXT[10:16]], most=4).tolist()
        drafter.forget()
        return [token for token in draft if token in self.TEXT[16:]]

    def test_text_of_earlier_sequences(self) -> None:
        memory = reprise_decoding.Memory()
        self.assertEqual(self.drafted(memory), [])
        memory.add(self.TEXT, prompt=20, salt=7)
        self.assertEqual(self.drafted(memory), [])
        self.assertEqual(self.drafted(memory, 7), self.TEXT[16:20])
        memory.forget(8)
        self.assertNotEqual(self.drafted(memory, 7), [])
        memory.forget(7)
        self.assertEqual(self.drafted(memory, 7), [])

    def test_requests_that_have_ended(self) -> None:
        def draft(memory: reprise_decoding.Memory) -> None:
            drafter = reprise_decoding.Drafter(cost=CHEAP, memory=memory)
            drafter.draft(self.TEXT)
            self.assertEqual(self.drafted(memory), [], "it goes on")
            drafter.forget()

        def replace(memory: reprise_decoding.Memory) -> None:
            drafter = reprise_decoding.Drafter(cost=CHEAP, memory=memory)
            drafter.draft(self.TEXT)
            drafter.draft([1, 2])

        def close(memory: reprise_decoding.Memory) -> None:
            with reprise_decoding.BatchDrafter(2, cost=CHEAP, memory=memory) as batch:
                batch.draft({1: self.TEXT})

        def assign(memory: reprise_decoding.Memory) -> None:
            batch = reprise_decoding.BatchDrafter(2, cost=CHEAP, memory=memory)
            batch.draft({1: self.TEXT})
            batch.assign(1)

        def keep(memory: reprise_decoding.Memory) -> None:
            session = reprise_decoding.Session(cost=CHEAP, memory=memory)
            session.begin(self.TEXT)
            session.keep()

        for end in (draft, replace, close, assign, keep):
            with self.subTest(end.__name__):
                memory = reprise_decoding.Memory()
                end(memory)
                self.assertEqual(self.drafted(memory), self.TEXT[16:20])

    def test_parts_can_be_left_out(self) -> None:
        for options, wanted in (
            ({"text": False}, (False, False)),
            ({"prompts": False}, (False, True)),
            ({"outputs": False}, (True, False)),
            ({"next_token_bytes": 0}, (True, True)),
        ):
            with self.subTest(options):
                memory = reprise_decoding.Memory(**options)
                memory.add(self.TEXT, prompt=30)
                found = []
                for begin in (10, 40):
                    draft = reprise_decoding.Drafter(memory=memory, cost=CHEAP).draft(self.TEXT[begin : begin + 6])
                    found.append(self.TEXT[begin + 6] in draft.tolist())
                self.assertEqual(tuple(found), wanted)

    def test_salts_have_numbers_and_names(self) -> None:
        memory = reprise_decoding.Memory(salts=3)
        memory.add(self.TEXT, salt="mine")
        self.assertEqual(self.drafted(memory, "mine"), self.TEXT[16:20])
        self.assertEqual(self.drafted(memory, "yours"), [])
        batch = reprise_decoding.BatchDrafter(2, cost=CHEAP)
        batch.assign(0, memory, salt="mine")
        batch.assign(1, memory, salt="yours")
        drafts = batch.draft({0: self.TEXT[10:16], 1: self.TEXT[10:16]})
        self.assertEqual([self.TEXT[16] in drafts[slot].tolist() for slot in (0, 1)], [True, False])

    def test_learned_costs_go_on(self) -> None:
        memory = reprise_decoding.Memory(text=False)
        fresh = reprise_decoding.Drafter(memory=memory).save_costs("toy")
        now = [0]
        drafter = reprise_decoding.Drafter(memory=memory, clock=lambda: now[0])
        text = [1, 2, 3, 4] * 10
        for _ in range(60):
            draft = drafter.draft(text).tolist()
            now[0] += 1000 + 500 * len(draft)
            text += [*draft, text[len(text) - 4 + len(draft) % 4]]
        drafter.forget()
        learned = drafter.save_costs("toy")
        self.assertNotEqual(learned, fresh)
        self.assertEqual(reprise_decoding.Drafter(memory=memory).save_costs("toy"), learned)

    def test_placeholders_are_left_out(self) -> None:
        """As in the texts of drafters: they are not drafted, and no match continues across them."""
        before, after = self.TEXT[:30], self.TEXT[30:]
        for hole in ([-1], [-1] * 50, [-(2**31)], [300], [2**31 - 1, -100, 300]):
            for kind in (list, np.array, lambda ids: np.array(ids, np.int32)):
                memory = reprise_decoding.Memory(vocabulary=300, next_token_bytes=2**16)
                memory.add(kind(hole))
                memory.add(kind([*hole, *before, *hole, *after, *hole]), prompt=30)
                apart = reprise_decoding.Memory(vocabulary=300)
                for part in (before, after):
                    apart.add(part)
                for begin, wanted in ((10, self.TEXT[16:20]), (22, self.TEXT[28:30]), (40, self.TEXT[46:50])):
                    text = self.TEXT[begin : begin + 6]
                    drafts = [
                        reprise_decoding.Drafter(memory=each, cost=CHEAP).draft(text, most=4).tolist()
                        for each in (memory, apart)
                    ]
                    self.assertEqual(drafts, [wanted, wanted], hole)

    def test_snapshots(self) -> None:
        memory = reprise_decoding.Memory()
        memory.add(self.TEXT * 40)  # larger than the first buffer of save()
        saved = memory.save(tokenizer=5)
        loaded = reprise_decoding.Memory()
        for bad in (saved[:-1], b"", saved[:50] + bytes([saved[50] ^ 1]) + saved[51:]):
            with self.assertRaises(reprise_decoding.ArgumentError):
                loaded.load(bad, tokenizer=5)
        with self.assertRaises(reprise_decoding.ArgumentError):
            loaded.load(saved, tokenizer=6)
        with self.assertRaisesRegex(TypeError, "data: must be bytes"):
            loaded.load("text", tokenizer=5)
        self.assertEqual(self.drafted(loaded), [])
        loaded.load(saved, tokenizer=5)
        self.assertNotEqual(self.drafted(loaded), [])

    def test_it_lives_as_long_as_its_users(self) -> None:
        memory = reprise_decoding.Memory()
        memory.add(self.TEXT)
        drafter = reprise_decoding.Drafter(memory=memory, cost=CHEAP)
        memory.close()
        del memory
        gc.collect()
        self.assertNotEqual(drafter.draft([1, *self.TEXT[10:16]]).tolist(), [])

    def test_refusals(self) -> None:
        memory = reprise_decoding.Memory(vocabulary=1000)
        for call, kind, sentence in (
            (lambda: memory.add([1, 2**31]), ValueError, "ids: "),
            (lambda: memory.add([-(2**31) - 1]), ValueError, "ids: "),
            (lambda: memory.add([1, 2], prompt=3), ValueError, "prompt: "),
            (lambda: memory.add([1, 2], salt=-3), ValueError, "salt: "),
            (lambda: reprise_decoding.Memory(text=1), TypeError, "text: "),
            (lambda: reprise_decoding.Memory(max_bytes=-1), ValueError, "max_bytes: "),
        ):
            with self.subTest(sentence=sentence), self.assertRaisesRegex(kind, sentence):
                call()


class Heads(unittest.TestCase):
    """A head that is nearly always right, beside the lookup."""

    def decode(self, session: reprise_decoding.Session) -> tuple[int, int]:
        """Returns the passes and those in which the head ran."""
        passes = ran = 0
        session.begin(prompt(5))
        while True:
            wanted = session.propose_lookup(24, max_tokens=200)
            if wanted:
                ran += 1
                text = session.context.tolist()
                for i in range(wanted):
                    text.append(next_token(text) if i % 16 != 15 else 99)
                session.add_head(text[-wanted:], 1000)
            if (step := session.plan()) is None:
                return passes, ran
            passes += 1
            session.commit(picks_of(session, step))

    def test_a_head_saves_passes_and_changes_nothing(self) -> None:
        alone = Decoding().decode(reprise_decoding.Session(cost=CHEAP))[1]
        session = reprise_decoding.Session(cost=CHEAP, head_cost=0.05)
        passes, ran = self.decode(session)
        self.assertEqual(session.output.tolist(), plain(prompt(5), 200))
        self.assertGreater(ran, 0)
        self.assertLess(passes, alone * 0.8, (passes, alone))

    def test_a_head_that_is_too_dear_does_not_run(self) -> None:
        session = reprise_decoding.Session(cost=CHEAP, head_cost=reprise_decoding.HeadCost(draft=5, token=1))
        self.assertEqual(self.decode(session)[1], 0)

    def test_costs_are_told_together(self) -> None:
        with self.assertRaisesRegex(reprise_decoding.ArgumentError, "no curve"):
            reprise_decoding.Session(head_cost=0.1)
        with self.assertRaisesRegex(reprise_decoding.ArgumentError, "0 and 1024"):
            reprise_decoding.Session(cost=CHEAP, head_cost=-1.0)

    def test_a_head_comes_after_the_lookup(self) -> None:
        session = reprise_decoding.Session(cost=CHEAP, head_cost=0.05)
        session.begin(prompt(5))
        with self.assertRaisesRegex(reprise_decoding.OrderError, "propose_lookup"):
            session.add_head([1])
        wanted = session.propose_lookup(24)
        self.assertGreater(wanted, 0)
        with self.assertRaises(reprise_decoding.ArgumentError):
            session.add_head([1], -1)
        session.truncate(10)  # gives up the round
        with self.assertRaises(reprise_decoding.OrderError):
            session.add_head([1])


if __name__ == "__main__":
    unittest.main()