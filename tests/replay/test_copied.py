# SPDX-License-Identifier: Apache-2.0
"""docs/images/copied.svg is what docs/images/copied.py draws from the replay of today, and the words of its text are known."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs/images/copied.py"


def drawn(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), str(page), *options], capture_output=True, text=True, check=False)


@unittest.skipUnless(os.environ.get("REPRISE_REPLAY"), "REPRISE_REPLAY names no reprise-replay")
class Picture(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.page = Path(cls.folder.name) / "page.html"
        subprocess.run([os.environ["REPRISE_REPLAY"], "--cost", "linear:0.02", "--strategy", "ngram", "--report", str(cls.page),
                        str(ROOT / "bench/traces/code-edit.jsonl")], check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def test_is_of_today(self) -> None:
        ran = drawn(self.page, "--session", "code-edit/24")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(ran.stdout, (ROOT / "docs/images/copied.svg").read_text(encoding="utf-8"),
                         "draw it again with the command in docs/performance.md")

    def test_refuses_what_the_page_does_not_show(self) -> None:
        for options, error in ((("--session", "none"), "the page shows code-edit/"), (("--turn", "9"), "the page shows")):
            ran = drawn(self.page, *options)
            self.assertEqual(ran.returncode, 1)
            self.assertIn(error, ran.stderr)
        self.assertIn("has no data", drawn(ROOT / "README.md").stderr)


class Vocabulary(unittest.TestCase):
    def test_has_every_token_of_the_bundled_traces(self) -> None:
        known = set(json.loads((ROOT / "bench/traces/vocabulary.json").read_text(encoding="utf-8")).values())
        used = {token for trace in (ROOT / "bench/traces").glob("*.jsonl")
                for line in trace.read_text(encoding="utf-8").splitlines()
                for turn in json.loads(line)["turns"] for token in turn["prompt"] + turn["output"]}
        self.assertEqual(known, used)


if __name__ == "__main__":
    unittest.main()
