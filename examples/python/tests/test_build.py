# SPDX-License-Identifier: Apache-2.0
"""`pip install .` in examples/python builds the package in the root of the repository."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]


class Build(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        stand_in = self.folder / "scikit_build_core"
        stand_in.mkdir()
        (stand_in / "__init__.py").touch()
        (stand_in / "build.py").write_text("import os\ndef build_wheel(): return os.getcwd()\n")

    def build(self, backend):
        code = f"import sys; sys.path[:0] = {[str(self.folder), str(backend)]!r}; import build_from_root as b; print(b.build_wheel())"
        return subprocess.run([sys.executable, "-B", "-c", code], cwd=backend, capture_output=True, text=True)

    def test_the_functions_of_the_builder_run_in_the_root(self):
        done = self.build(FOLDER)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, str(FOLDER.parents[1])), done.stderr)

    def test_a_folder_outside_the_repository_is_refused_in_one_sentence(self):
        shutil.copy(FOLDER / "build_from_root.py", self.folder)
        done = self.build(self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^reprise: .*: run `pip install \.` in the root of the repository\n$")

    def test_both_files_need_the_same_builder(self):
        def needs(folder):
            return next(line for line in (folder / "pyproject.toml").read_text().splitlines() if line.startswith("requires ="))

        self.assertEqual(needs(FOLDER), needs(FOLDER.parents[1]))


if __name__ == "__main__":
    unittest.main()
