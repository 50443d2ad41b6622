# SPDX-License-Identifier: Apache-2.0
"""The module was named reprise: an import of it from this folder names the new one, and no package has it."""

import fnmatch
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]
ROOT = FOLDER.parents[1]


class OldName(unittest.TestCase):
    def test_its_import_names_the_new_module(self):
        for arguments in (
            ["-c", "import reprise"],
            ["-c", "from reprise.transformers import enable"],
            ["-c", "import importlib; importlib.import_module('reprise.vllm')"],  # the name of the class, in vLLM
            ["-m", "reprise.llama_cpp", "--help"],
        ):
            with self.subTest(arguments):
                done = subprocess.run(
                    [sys.executable, "-B", *arguments],
                    env={**os.environ, "PYTHONPATH": str(FOLDER)}, cwd=ROOT, capture_output=True, text=True,
                )
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, r"ImportError: this module is now reprise_decoding: write `import ")

    def test_no_package_has_it(self):
        text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        self.assertIn('\nwheel.packages = ["examples/python/reprise_decoding"]\n', text)
        files = re.findall(r'^  "/(.*)",$', text, re.M)
        self.assertIn("examples/python/reprise_decoding/*.py", files)
        self.assertEqual([each for each in files if fnmatch.fnmatch("examples/python/reprise.py", each)], [])

    def test_the_page_for_upgrades_has_both_names(self):
        page = (ROOT / "docs/migrating.md").read_text(encoding="utf-8")
        self.assertIn("| `import reprise` | `import reprise_decoding` |", page)


if __name__ == "__main__":
    unittest.main()
