# SPDX-License-Identifier: Apache-2.0
"""Bad inputs: each is refused with a sentence that names the argument and what to do, and changes nothing."""

from __future__ import annotations

import collections
import copy
import importlib.util
import inspect
import os
import pickle
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import reprise_decoding

TEXT = [1, 2, 3, 4, 5, 6, 7, 8] * 4 + [1, 2, 3]
CURVE = reprise_decoding.CostCurve.linear(0.01)
COSTS = reprise_decoding.Drafter(cost=CURVE).save_costs("toy")
SNAPSHOT = reprise_decoding.Memory(max_bytes=2**16).save(tokenizer=5)


class Objects:
    """One object of each kind, in the middle of its work. All of them have a vocabulary of 100."""

    def __init__(self) -> None:
        clock = {"cost": CURVE, "vocabulary": 100, "clock": lambda: 1}
        self.drafter = reprise_decoding.Drafter(**clock)
        self.batch = reprise_decoding.BatchDrafter(2, **clock)
        self.memory = reprise_decoding.Memory(max_bytes=2**16, vocabulary=100)
        self.session = reprise_decoding.Session(memory=self.memory, **clock)
        self.drafter.draft(TEXT)
        self.batch.draft({0: TEXT})
        self.memory.add([50, 51, 52, *range(60, 80)])
        self.session.begin(TEXT)
        self.step = self.session.plan()

    def next(self) -> Any:
        """What they do next."""
        text = [*TEXT, 4, 5]
        done = self.session.commit(self.step.batch[self.step.pending :].tolist() + [9])
        self.session.append([50, 51, 52])
        return (
            self.drafter.draft(text).tolist(),
            self.drafter.statistics.fields,
            [draft.tolist() for draft in self.batch.draft({0: text, 1: TEXT}).values()],
            self.batch.statistics(0).fields,
            (done.tokens.tolist(), done.rows.tolist(), self.session.context.tolist()),
            self.session.plan().batch.tolist(),
            self.session.statistics.fields,
            self.memory.save(),
        )


Call = Callable[[Objects], Any]
# The call, the exception, how the sentence begins, and a part of it that says what to do.
BAD: list[tuple[Call, type[Exception], str, str]] = [
    # token ids
    (lambda o: o.drafter.draft(None), TypeError, "ids: ", "must be a list or an array of token ids"),
    (lambda o: o.drafter.draft("text"), TypeError, "ids: ", "pass what the tokenizer returns"),
    (lambda o: o.drafter.draft(b"text"), TypeError, "ids: ", "pass what the tokenizer returns"),
    (lambda o: o.drafter.draft(bytearray(4)), TypeError, "ids: ", "pass what the tokenizer returns"),
    (lambda o: o.drafter.draft({"input_ids": TEXT}), TypeError, "ids: ", 'pass its "input_ids"'),
    (lambda o: o.drafter.draft(collections.UserDict(input_ids=TEXT)), TypeError, "ids: ", 'pass its "input_ids"'),
    (lambda o: o.drafter.draft({1, 2}), TypeError, "ids: ", "must be a list or an array"),
    (lambda o: o.drafter.draft(iter(TEXT)), TypeError, "ids: ", "must be a list or an array"),
    (lambda o: o.drafter.draft(5), TypeError, "ids: ", "must be a list or an array"),
    (lambda o: o.drafter.draft([1, 2.5]), TypeError, "ids: ", "must be integers, but ids[1] is of the type float"),
    (lambda o: o.drafter.draft(np.array([1.0, 2.0])), TypeError, "ids: ", "must be integers, but the array is of"),
    (lambda o: o.drafter.draft(np.array(TEXT) > 2), TypeError, "ids: ", "must be integers, but the array is of"),
    (lambda o: o.drafter.draft([1, None]), TypeError, "ids: ", "must be integers, but ids[1] is of the type NoneType"),
    (lambda o: o.drafter.draft([1, "a"]), TypeError, "ids: ", "must be integers, but ids[1] is of the type str"),
    (lambda o: o.drafter.draft([]), ValueError, "ids: ", "pass at least one token"),
    (lambda o: o.drafter.draft([TEXT]), ValueError, "ids: ", "pass one sequence of token ids, such as ids[0]"),
    (lambda o: o.drafter.draft([[1], [2, 3]]), ValueError, "ids: ", "pass one flat list"),
    (lambda o: o.drafter.draft([1, 2**70]), ValueError, "ids: ", "must be below 2147483648"),
    (lambda o: o.drafter.draft([-(2**40)]), ValueError, "ids: ", "must be 0 or more"),
    (lambda o: o.drafter.draft([2**63, -1]), ValueError, "ids: ", "must be below 2147483648"),
    (lambda o: o.drafter.predict([1, -1, 2**64 - 1]), ValueError, "ids: ", "must be 0 or more"),
    (lambda o: o.session.begin({"input_ids": TEXT}), TypeError, "ids: ", 'pass its "input_ids"'),
    (lambda o: o.session.begin([]), ValueError, "ids: ", "begin with at least one token"),
    (lambda o: o.session.rebase("text"), TypeError, "ids: ", "pass what the tokenizer returns"),
    (lambda o: o.session.commit(None), TypeError, "picks: ", "must be a list or an array"),
    (lambda o: o.session.commit([-1]), ValueError, "picks: ", "leave out padding"),
    (lambda o: o.session.commit([]), ValueError, "picks: ", "return at least the token after the anchor's row"),
    (lambda o: o.session.commit([1] * 99), ValueError, "picks: ", "pass one for the anchor"),
    (lambda o: o.session.report_top_k(0, 5), TypeError, "likeliest: ", "must be a list or an array"),
    (lambda o: o.memory.add([1, 2**31]), ValueError, "ids: ", "must be below 2147483648"),
    (lambda o: o.memory.add([1, 2.5]), TypeError, "ids: ", "must be integers, but ids[1] is of the type float"),
    (lambda o: o.drafter.predict("text"), TypeError, "ids: ", "pass what the tokenizer returns"),
    (lambda o: o.batch.predict(0, [1, 2.5]), TypeError, "ids: ", "must be integers, but ids[1] is of the type float"),
    (lambda o: o.batch.predict(2, TEXT), ValueError, "slot: ", "must be 1 or less"),
    (lambda o: o.session.predict([TEXT]), ValueError, "ids: ", "pass one sequence of token ids, such as ids[0]"),
    # the end of generation
    (lambda o: o.session.plan(eos=None), TypeError, "eos: ", "leave it out if there is none"),
    (lambda o: o.session.plan(eos="</s>"), TypeError, "eos: ", "pass what the tokenizer returns"),
    (lambda o: o.session.plan(eos=2.0), TypeError, "eos: ", "must be a list or an array of token ids"),
    (lambda o: o.session.plan(eos=True), TypeError, "eos: ", "must be a list or an array of token ids"),
    (lambda o: o.session.plan(eos=-1), ValueError, "eos: ", "must be 0 or more"),
    (lambda o: o.session.plan(eos={"a", 1}), TypeError, "eos: ", "must be integers"),
    # numbers
    (lambda o: o.drafter.draft(TEXT, most=-1), ValueError, "most: ", "must be 0 or more"),
    (lambda o: o.drafter.draft(TEXT, most="16"), TypeError, "most: ", "must be an integer"),
    (lambda o: o.drafter.draft(TEXT, conversation=0), ValueError, "conversation: ", "must be 1 or more"),
    (lambda o: o.drafter.draft(TEXT, now=0.5), TypeError, "now: ", "must be an integer"),
    (lambda o: o.drafter.draft([4], after=34), ValueError, "after: is not the number", "pass that number, or"),
    (lambda o: o.drafter.draft([4], after=2**62), ValueError, "after: is not the number", "or all ids without"),
    (lambda o: o.drafter.draft([4], after=-1), ValueError, "after: ", "must be 0 or more"),
    (lambda o: o.drafter.draft([4], after=None), TypeError, "after: ", "must be an integer"),
    (lambda o: o.drafter.draft([], after=0), ValueError, "ids: ", "pass at least one token"),
    (lambda o: o.batch.draft({0: [4]}, after={0: 34}), ValueError, "after: is not the number", "pass that"),
    (lambda o: o.session.plan(-1), ValueError, "most: ", "must be 0 or more"),
    (lambda o: o.session.plan(max_tokens=None), TypeError, "max_tokens: ", "must be an integer"),
    (lambda o: o.session.commit([1], ns=0.5), TypeError, "ns: ", "must be an integer"),
    (lambda o: o.session.truncate(0), ValueError, "count: ", "keep between 1 token and the whole context"),
    (lambda o: o.session.set_cached(99), ValueError, "count: ", "at most all tokens but the last"),
    (lambda o: o.session.report_top_k(99, [1]), ValueError, "row: ", "the limit is "),
    (lambda o: o.session.begin(TEXT, cached=35), ValueError, "cached: ", "at most all tokens but the last"),
    (lambda o: o.session.begin(TEXT, max_context=5), ValueError, "ids: ", "max_context: shorten the prompt"),
    (lambda o: o.session.begin(TEXT, rollback=[]), ValueError, "rollback: ", 'must be "trim", "snapshot" or "per_row"'),
    (lambda o: o.session.begin(TEXT, widths=5), TypeError, "widths: ", "must be a list of row counts"),
    (lambda o: o.session.begin(TEXT, widths=range(1, 99)), ValueError, "widths: ", "leave out some"),
    # slots of a batch
    (lambda o: reprise_decoding.BatchDrafter(0), ValueError, "slots: ", "must be 1 or more"),
    (lambda o: o.batch.draft([TEXT]), TypeError, "ids: ", "must be a dict of token ids by slot"),
    (lambda o: o.batch.draft({2: TEXT}), ValueError, "slot: ", "must be 1 or less"),
    (lambda o: o.batch.draft({"a": TEXT}), TypeError, "slot: ", "must be an integer"),
    (lambda o: o.batch.draft({0: []}), ValueError, "ids[0]: ", "leave out the slot"),
    (lambda o: o.batch.draft({0: TEXT, 1: [3, 2**31]}), ValueError, "ids[1]: ", "ids[1][1] is 2147483648"),
    (lambda o: o.batch.draft({0: TEXT}, most={1: 4}), ValueError, "most: ", "has no number for slot 0"),
    (lambda o: o.batch.draft({0: TEXT}, conversations=5), TypeError, "conversations: ", "must be a dict of numbers"),
    (lambda o: o.batch.assign(0, memory=5), TypeError, "memory: ", "must be a Memory"),
    (lambda o: o.batch.load_costs(COSTS, "other"), ValueError, "saved: ", "give the name that they were saved with"),
    # options
    (
        lambda o: reprise_decoding.Drafter(costs=0.02),
        TypeError, "Drafter.__init__", "unexpected keyword argument 'costs'",
    ),
    (lambda o: reprise_decoding.Drafter(cost="0.02"), TypeError, "cost: ", "must be a CostCurve or a number"),
    (lambda o: reprise_decoding.Drafter(cost=True), TypeError, "cost: ", "must be a CostCurve or a number"),
    (
        lambda o: reprise_decoding.Session(cost=-1),
        ValueError, "cost: ", "pass the cost of a drafted row in plain passes",
    ),
    (lambda o: reprise_decoding.Drafter(cost=float("nan")), ValueError, "cost: ", "must be from 0 to 65536"),
    (lambda o: reprise_decoding.Drafter(vocabulary=-1), ValueError, "vocabulary: ", "must be 0 or more"),
    (lambda o: reprise_decoding.Drafter(vocabulary=2**33), ValueError, "vocabulary: ", "must be 2147483648 or less"),
    (
        lambda o: reprise_decoding.Drafter(saved_costs="costs", engine="toy"),
        TypeError, "saved_costs: ", "must be bytes",
    ),
    (
        lambda o: reprise_decoding.Drafter(saved_costs=COSTS),
        ValueError, "engine: ", "pass the name that save_costs() was given",
    ),
    (
        lambda o: reprise_decoding.Drafter(saved_costs=b"x" * 99, engine="toy"),
        ValueError, "saved_costs: ", "that were saved",
    ),
    (lambda o: o.drafter.save_costs("x" * 101), ValueError, "engine: ", "must have at most 100 bytes"),
    (lambda o: o.drafter.save_costs("a\0b"), ValueError, "engine: ", "none of them 0"),
    (lambda o: reprise_decoding.Drafter(clock=5), TypeError, "clock: ", "must be a function"),
    (lambda o: reprise_decoding.Drafter(clock=time.perf_counter), TypeError, "clock: ", "as time.perf_counter_ns does"),
    # memories
    (lambda o: reprise_decoding.Memory(max_bytes=1), ValueError, "Memory: max_bytes ", "increase it"),
    (lambda o: reprise_decoding.Memory(next_token_bytes=1), ValueError, "Memory: next_token_bytes ", "increase it"),
    (lambda o: o.memory.add(TEXT, prompt=99), ValueError, "prompt: ", "must be 35 or less"),
    (lambda o: o.memory.add(TEXT, salt=1.5), TypeError, "salt: ", "must be an integer"),
    (lambda o: o.memory.forget(-1), ValueError, "salt: ", "must be"),
    (lambda o: reprise_decoding.Memory(prompts="no"), TypeError, "prompts: ", "must be True or False"),
    (lambda o: o.memory.load("text"), TypeError, "data: ", "must be bytes"),
    (lambda o: o.memory.load(b"x" * 99), ValueError, "data: ", "give the bytes that were saved"),
    (lambda o: o.memory.load(SNAPSHOT[:-1], 5), ValueError, "data: ", "take another copy of it"),
    (lambda o: o.memory.load(SNAPSHOT, 6), ValueError, "data: ", "load the one that was saved with this number"),
    # curves
    (lambda o: reprise_decoding.CostCurve(), TypeError, "CostCurve: ", "create it with CostCurve.linear()"),
    (lambda o: reprise_decoding.CostCurve.linear("a"), TypeError, "per_row: ", "must be a number"),
    (
        lambda o: reprise_decoding.CostCurve.points(None),
        TypeError, "points: ", "must be a list of (sequences, context, rows",
    ),
    (lambda o: reprise_decoding.CostCurve.points([]), ValueError, "points: ", "needs at least one point"),
    (lambda o: reprise_decoding.CostCurve.points([5]), ValueError, "points[0]: ", "must be (sequences, context, rows"),
    (lambda o: reprise_decoding.CostCurve.points([(1, 0, 1, "x")]), TypeError, "points[0]: ", "must be a number"),
    (lambda o: reprise_decoding.CostCurve.points([(1, 0, 1, 5.0)] * 2), ValueError, "points[1]: ", "an earlier point"),
    (lambda o: reprise_decoding.CostCurve.file(0), TypeError, "path: ", "must be the path of a JSON file"),
    # copies
    (lambda o: copy.copy(o.drafter), TypeError, "Drafter: ", "create another one"),
    (lambda o: copy.deepcopy([o.drafter]), TypeError, "Drafter: ", "create another one"),
    (lambda o: pickle.dumps(o.drafter), TypeError, "Drafter: ", "create another one"),
    (lambda o: copy.copy(o.batch), TypeError, "BatchDrafter: ", "create another one"),
    (lambda o: copy.copy(o.session), TypeError, "Session: ", "fork() returns a second session"),
    (lambda o: pickle.dumps(o.memory, 0), TypeError, "Memory: ", "what save() returns"),
    (lambda o: copy.copy(CURVE), TypeError, "CostCurve: ", "all objects and threads can share it"),
]
# Words of the C and C++ library that a user of this package does not know.
FOREIGN = ("SnapshotWriter", "::", "reprise_", "struct", "null", "handle", "now_ns", "pass_ns", "prompt_count")


class Refusals(unittest.TestCase):
    def test_each_names_the_argument_and_what_to_do(self) -> None:
        self.assertGreater(len(BAD), 50)
        wanted = Objects().next()
        for call, kind, start, remedy in BAD:
            line = inspect.getsourcelines(call)[0][0].strip()
            with self.subTest(line):
                objects = Objects()
                with self.assertRaises(kind) as raised:
                    call(objects)
                sentence = str(raised.exception)
                self.assertTrue(sentence.startswith(start), sentence)
                self.assertIn(remedy, sentence)
                for word in FOREIGN:
                    self.assertNotIn(word, sentence)
                self.assertEqual(objects.next(), wanted, "the refused call has changed something")

    def test_no_word_of_the_library_is_left_in_its_sentences(self) -> None:
        """The sentences that the library has for bytes that it refuses."""
        memory = reprise_decoding.Memory(max_bytes=2**16)
        for at in range(len(SNAPSHOT)):
            for data in (SNAPSHOT[:at], SNAPSHOT[:at] + bytes([SNAPSHOT[at] ^ 255]) + SNAPSHOT[at + 1 :]):
                with self.assertRaises(reprise_decoding.ArgumentError) as raised:
                    memory.load(data, 5)
                for word in FOREIGN:
                    self.assertNotIn(word, str(raised.exception))


class Accepted(unittest.TestCase):
    def test_one_id_ends_generation(self) -> None:
        for eos in (9, np.int64(9), np.array(9), [9], (9, 50), {9}, frozenset({9}), np.array([9])):
            objects = Objects()
            step = objects.session.plan(eos=eos)
            self.assertEqual(objects.session.commit([9] * (1 + step.drafted)).finish, "eos", repr(eos))

    def test_a_number_is_a_linear_curve(self) -> None:
        wanted = reprise_decoding.Drafter(cost=reprise_decoding.CostCurve.linear(0.25)).draft(TEXT).tolist()
        self.assertNotEqual(wanted, reprise_decoding.Drafter(cost=4).draft(TEXT).tolist())
        for cost in (0.25, np.float32(0.25), np.float64(0.25)):
            self.assertEqual(reprise_decoding.Drafter(cost=cost).draft(TEXT).tolist(), wanted)
            self.assertEqual(reprise_decoding.BatchDrafter(1, cost=cost).draft({0: TEXT})[0].tolist(), wanted)
        for cost, drafted in ((0, True), (4, False), (np.int64(4), False)):
            session = reprise_decoding.Session(cost=cost)
            session.begin(TEXT)
            self.assertEqual(session.plan().drafted > 0, drafted)

    def test_the_largest_id_of_the_vocabulary(self) -> None:
        for vocabulary, largest in ((100, 99), (0, 2**31 - 1), (2**31, 2**31 - 1)):
            text = [7, 8, largest] * 6 + [7]
            for ids in (text, np.array(text, np.int32), np.array(text, np.uint32)):
                self.assertIn(largest, reprise_decoding.Drafter(cost=CURVE, vocabulary=vocabulary).draft(ids).tolist())

    def test_a_fork_has_the_vocabulary(self) -> None:
        with self.assertRaisesRegex(ValueError, "^eos: .*below 100"):
            Objects().session.fork().plan(eos=100)


class Types(unittest.TestCase):
    def test_the_options_are_those_of_the_constructors(self) -> None:
        for kind in (reprise_decoding.Drafter, reprise_decoding.Session, reprise_decoding.BatchDrafter):
            parameters = inspect.signature(kind).parameters
            given = {name: it.annotation for name, it in parameters.items() if it.kind is it.KEYWORD_ONLY}
            named = {name: kind.__forward_arg__ for name, kind in reprise_decoding.Options.__annotations__.items()}
            if kind is not reprise_decoding.Drafter:  # a follower has no head
                self.assertEqual(given.pop("head_cost"), "HeadCost | float | None")
            self.assertEqual(given, named)

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_mypy_refuses_unknown_options(self) -> None:
        text = """
import reprise_decoding
from typing_extensions import Unpack

def made(most: int = 16, **options: Unpack[reprise_decoding.Options]) -> reprise_decoding.Drafter:
    return reprise_decoding.Drafter(**options)

made(8, cost=0.02, vocabulary=100)
reprise_decoding.Session(cost=reprise_decoding.CostCurve.linear(1), memory=None)
made(8, costs=0.02)  # refused
made(8, cost="0.02")  # refused
reprise_decoding.Drafter(costs=0.02)  # refused
reprise_decoding.Session(vocab=5)  # refused
reprise_decoding.BatchDrafter(4, max_drafts=3)  # refused
"""
        wanted = [number for number, line in enumerate(text.splitlines(), 1) if "# refused" in line]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "use.py")
            file.write_text(text, encoding="utf-8")
            checked = subprocess.run(
                [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={folder}/cache", str(file)],
                env={**os.environ, "MYPYPATH": str(Path(reprise_decoding.__file__).parents[1])},
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
        found = [int(line.split(":")[1]) for line in checked.stdout.splitlines() if " error: " in line]
        self.assertEqual(found, wanted, checked.stdout + checked.stderr)


if __name__ == "__main__":
    unittest.main()
