# SPDX-License-Identifier: Apache-2.0
"""bench/replay/short_answers.py: its trace, its errors, and that a new session loses little on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "bench/replay/short_answers.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=60)


class ShortAnswers(unittest.TestCase):
    def test_answers_have_the_length_that_was_asked_for(self) -> None:
        dialogues = [json.loads(line) for line in run("--dialogues", "50", "--words", "8-14").stdout.splitlines()]
        self.assertEqual(len(dialogues), 50)
        lengths = {len(turn["output"]) for dialogue in dialogues for turn in dialogue["turns"]}
        self.assertEqual((min(lengths), max(lengths)), (11, 17), "a name of two words, the words, and the end")

    def test_a_seed_gives_the_same_trace_each_time(self) -> None:
        self.assertEqual(run("--seed", "7").stdout, run("--seed", "7").stdout)
        self.assertNotEqual(run("--seed", "7").stdout, run("--seed", "8").stdout)

    def test_a_range_that_cannot_be_is_refused(self) -> None:
        for words in ("5", "14-8", "-1-3", "a-b"):
            done = run(f"--words={words}")
            self.assertEqual(done.returncode, 2)
            self.assertIn("expected LEAST-MOST, as in 18-32", done.stderr)

    def test_a_new_session_loses_little_by_its_first_guesses(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "short.jsonl"
            trace.write_text(run().stdout)
            for shape in ("chain", "tree"):
                report = subprocess.run(
                    [os.environ["REPRISE_REPLAY"], "--format", "json", "--strategy", "ngram", "--cost", "linear:0.02",
                     "--shape", shape, str(trace)], capture_output=True, text=True, timeout=120, check=True)
                for row in json.loads(report.stdout)["results"]:
                    self.assertGreater(row["speedup"], 0.997, (shape, row))


if __name__ == "__main__":
    unittest.main()
