# SPDX-License-Identifier: Apache-2.0
"""bench/replay/compare_builds.py: its table, its options for both builds, and its errors."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "bench/replay/compare_builds.py"
TRACE = ROOT / "bench/traces/prose.jsonl"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    tool = os.environ["REPRISE_REPLAY"]
    return subprocess.run([sys.executable, str(SCRIPT), tool, tool, *arguments], capture_output=True, text=True,
                          timeout=120)


class CompareBuilds(unittest.TestCase):
    def test_a_build_is_as_fast_as_itself_in_every_cell(self) -> None:
        lines = run(str(TRACE), "--", "--limit", "2").stdout.splitlines()
        self.assertEqual(lines[2], "| session | chain | 1.0000 | 1.0000 | 1.0000 | 1.0000 | 1.0000 |")
        self.assertIn("16 cells, mean 1.00000; the lowest:", lines)
        self.assertIn(str(TRACE), lines[-1])

    def test_a_replay_that_fails_is_named(self) -> None:
        done = run("nothing.jsonl")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing.jsonl: cannot be opened", done.stderr)

    def test_options_after_the_dashes_go_to_both_builds(self) -> None:
        self.assertIn("there is no option --no-such", run(str(TRACE), "--", "--no-such").stderr)


if __name__ == "__main__":
    unittest.main()
