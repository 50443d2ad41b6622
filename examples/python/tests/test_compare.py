# SPDX-License-Identifier: Apache-2.0
"""The comparison of engines, with a stand-in for an engine."""

from __future__ import annotations

import contextlib
import io
import json
import math
import sys
import tempfile
import types
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "engines"))

import compare  # noqa: E402
import day  # noqa: E402
from engine import Engine, Output, ended  # noqa: E402
from prompts import prompts  # noqa: E402


class StandIn(Engine):
    """Writes 1 2 3 4. Its lookup writes 1 2 5 4 in two passes, and its logits of 3 and 5 are `gap` apart."""

    name, version, lookup, sampling = "stand-in", "1", "lookup", {"temperature": 0.8}
    skewed = False  # with drafts, samples have another distribution

    def __init__(self, gap: float, held: bool = True) -> None:
        self._gap, self._held = gap, held
        self.renewed, self.ways = 0, []

    def encode(self, text: str) -> list[int]:
        return [len(text), 7]

    def decode(self, way: str, ids: list[int], count: int, **sampling: Any) -> Output:
        if sampling:
            return self._sampled(way)
        if way == "lookup":
            return Output([1, 2, 5, 4], [1, 1])
        return Output([1, 2, 3, 4], [0, 0, 0, 0] if way == "plain" else [3])

    def seed(self, number: int) -> None:
        self._random = np.random.default_rng(number)

    def _sampled(self, way: str) -> Output:
        shares = [0.5, 0.3, 0.2] if way == "plain" or not self.skewed else [0.3, 0.5, 0.2]
        return Output([int(self._random.choice(3, p=shares))] * 4, [0, 0])

    def logits(self, ids: list[int]) -> Any:
        return np.array([0, 0, 0, 4, 0, 4 - self._gap] if ids[2:] == [1, 2] else [0] * 6)

    def renew(self) -> None:
        self.renewed += 1

    def passes(self, ids: list[int]) -> Callable[[int], float]:
        return lambda rows: 0.5 + 0.5 * rows

    def checks(self) -> Any:
        yield "a check", "shown", self._held


def start(program: Any, engine: Engine, *arguments: str) -> tuple[int, str]:
    sys.modules["stand_in"] = types.SimpleNamespace(make=lambda _, options: engine)  # type: ignore[assignment]
    program.ENGINES["stand-in"] = "stand_in"
    shown, before = io.StringIO(), sys.argv
    sys.argv = [program.__file__, "stand-in", "model", *arguments]
    try:
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            return program.main(), shown.getvalue()
    finally:
        sys.argv = before
        del program.ENGINES["stand-in"], sys.modules["stand_in"]


def run(engine: Engine, *more: str) -> tuple[int, str]:
    return start(compare, engine, "--categories", "chat", "--prompts", "2", "--rounds", "1", *more)


class Compare(unittest.TestCase):
    def test_other_text_without_a_near_tie_fails(self) -> None:
        status, shown = run(StandIn(gap=0.5))
        self.assertEqual(status, 1)
        self.assertIn("lookup: 2 passes, 2 drafted, other text at 2, gap 5.0e-01", shown)

    def test_a_near_tie_is_shown_and_passes(self) -> None:
        status, shown = run(StandIn(gap=0.0005))
        self.assertEqual(status, 0)
        self.assertIn("other text at 2, gap 5.0e-04", shown)

    def test_a_check_that_does_not_hold_fails(self) -> None:
        self.assertEqual(run(StandIn(gap=0.0005, held=False))[0], 1)

    def test_samples_of_another_distribution_fail(self) -> None:
        engine = StandIn(gap=0.0005)
        status, shown = run(engine, "--samples", "200")
        self.assertEqual(status, 0, shown)
        self.assertIn("200 outputs of 6 tokens, 3 texts, 400 accepted; p = 0.", shown)
        engine.skewed = True
        status, shown = run(engine, "--samples", "200")
        self.assertEqual(status, 1)
        self.assertIn("p = 0.000", shown)

    def test_the_chance_of_a_difference(self) -> None:
        self.assertEqual(compare.permuted([(1,)] * 20, [(1,)] * 20, 100), 1.0)
        self.assertEqual(compare.permuted([(1,)] * 20, [(2,)] * 20, 1000), 0.0)
        # 12 and 8 of 20 against 8 and 12: a random split is as uneven in a third of all cases.
        chance = compare.permuted([(1,)] * 12 + [(2,)] * 8, [(1,)] * 8 + [(2,)] * 12)
        self.assertAlmostEqual(chance, 0.343, delta=0.03)

    def test_passes_are_priced_by_their_rows(self) -> None:
        # Plain: 4 passes of 1. Lookup: 2 passes of 1.5. reprise: 1 pass of 2.5. The first prompt does not count.
        self.assertRegex(run(StandIn(gap=0.0005))[1], r"\nchat +1 +1\.333 +1\.600\n")
        self.assertEqual(compare.price([0, 2, 4], {1: 1.0, 5: 3.0}), 1.0 + 2.0 + 3.0)

    def test_whole_requests_are_compared_with_plain_decoding_as_users_run_it(self) -> None:
        engine = StandIn(gap=0.0005)
        engine.as_used = ("lookup", "slow")
        times = {"plain": 4.0, "lookup": 2.0, "reprise": 1.0, "slow": 8.0}

        def request(way: str, ids: list[int], count: int) -> Output:
            return Output([1, 2, 3, 4], seconds=times[way], first=times[way] ** 2)

        engine.request = request  # type: ignore[method-assign]
        engine.lookup = ""
        status, shown = run(engine, "--as-used")
        self.assertEqual(status, 0, shown)
        row = r" +4\.000 +2\.000 +0\.500\n"
        self.assertRegex(shown, rf"whole requests, plain .*\n.*reprise +lookup +slow\nchat +2{row}all{row}")
        self.assertRegex(shown, r"first token, plain .*\n.*\nchat +2 +16.000 +4.000 +0.250\n")
        del engine.request, engine.as_used
        engine.lookup, engine._gap = "lookup", 0.5
        self.assertEqual(run(engine, "--as-used")[0], 1)  # its lookup has another text

    def test_an_output_that_ends_early_is_no_near_tie(self) -> None:
        parted = compare.difference(StandIn(gap=0), [1], [1, 2], [1])
        self.assertIsNotNone(parted)
        self.assertEqual((parted or {})["gap"], math.inf)

    def test_prompts(self) -> None:
        [(category, name, text)] = prompts(["json"], 1)
        self.assertEqual((category, name), ("json", "json/01"))
        self.assertRegex(text, r"(?s)^<\|im_start\|>system\nYou turn .*<\|im_start\|>user\nWrite .*assistant\n$")
        shortest = [len(text) for _, _, text in prompts(["summary"], 3, shortest=True)]
        self.assertLess(max(shortest), min(len(text) for _, _, text in prompts(["summary"], 3)))

    def test_ended(self) -> None:
        self.assertEqual(ended([1, 2, 3], 2, 9), [1, 2])
        self.assertEqual(ended([1, 2, 3], 9, 2), [1, 2])


class Days(unittest.TestCase):
    def test_the_second_half_is_decoded_by_a_new_object_too(self) -> None:
        class Kept(StandIn):
            """The kept object takes one pass of 2 seconds for 4 tokens, and a new one two of 3 seconds."""

            def decode(self, way: str, ids: list[int], count: int, **sampling: Any) -> Output:
                self.ways.append(way)
                return Output([1, 2, 3, 4], [3], 2.0) if way == "reprise" else Output([1, 2, 3, 4], [1, 1], 3.0)

        engine = Kept(0)
        with tempfile.TemporaryDirectory() as folder:
            status, shown = start(day, engine, "--requests", "90", "--kinds", "chat", "json", "--json", f"{folder}/day",
                                  "--trace", f"{folder}/trace")
            written = json.loads(Path(folder, "day").read_text(encoding="utf-8"))
            trace = [json.loads(line) for line in Path(folder, "trace").read_text(encoding="utf-8").splitlines()]
        self.assertEqual(status, 0, shown)
        self.assertEqual(engine.renewed, 45)
        self.assertEqual(set(engine.ways[:45]), {"reprise"})
        self.assertEqual(engine.ways[45:49], ["reprise", "fresh", "fresh", "reprise"])
        self.assertEqual(len(engine.ways), 45 + 90)
        summary = written["summary"]
        self.assertEqual(summary["all"], {"requests": 45, "time": 1.5, "tokens_per_pass": 2.0})
        self.assertEqual(summary["chat"]["requests"] + summary["json"]["requests"], 45)
        seen = [each["seen"] for each in written["results"]]
        self.assertEqual(summary["prompt seen before"]["requests"], sum(seen))
        self.assertIn("45", shown)
        self.assertEqual([each["id"] for each in trace], [str(number) for number in range(90)])
        self.assertEqual({each["category"] for each in trace[:45]}, {"before"})
        self.assertEqual([each["category"] for each in trace[45:]], [each["kind"] for each in written["results"]])
        self.assertTrue(all(each["turns"][0]["output"] == [1, 3, 4] for each in trace), "without the end token 2")

    def test_outputs_that_differ(self) -> None:
        class Other(StandIn):
            def decode(self, way: str, ids: list[int], count: int, **sampling: Any) -> Output:
                output = super().decode("plain" if way == "fresh" else "lookup", ids, count)
                return Output(output.tokens, output.drafted, 1.0)

        self.assertEqual(start(day, Other(0.5), "--requests", "4")[0], 0)
        status, shown = start(day, Other(1.5), "--requests", "4")
        self.assertEqual((status, "2 outputs differ, 2 without a near tie" in shown), (1, True))
        self.assertEqual(start(day, Other(1.5), "--requests", "4", "--tie", "2")[0], 0)

    def test_an_engine_without_new_objects(self) -> None:
        before, sys.argv = sys.argv, ["day.py", "mlx-lm", "model"]
        try:
            with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()) as shown:
                day.main()
        finally:
            sys.argv = before
        self.assertEqual(ended.exception.code, 2)
        self.assertIn("llama-server", shown.getvalue())

    def test_wrong_sizes(self) -> None:
        for wrong in (("--requests", "1"), ("--tokens", "0"), ("--kinds", "poems")):
            with self.assertRaises(SystemExit) as ended:
                start(day, StandIn(0), *wrong)
            self.assertEqual(ended.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
