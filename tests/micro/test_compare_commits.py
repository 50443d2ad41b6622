# SPDX-License-Identifier: Apache-2.0
"""bench/micro/compare_commits.py: its statistics, and a run with two commits of a small repository."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "bench/micro/compare_commits.py"
sys.path.insert(0, str(SCRIPT.parent))
import compare_commits as compared

# The "benchmark" takes 1,000 and 500 ns times the factor of its commit, with noise of 1%.
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(fake LANGUAGES NONE)
add_custom_target(reprise-bench-fake COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/fake.py bench/micro/reprise-bench-fake)
add_custom_target(reprise-bench-none)
"""
PROGRAM = """#!/usr/bin/env python3
import json, pathlib, random
runs = pathlib.Path(__file__).with_suffix(".runs")
runs.write_text((runs.read_text() if runs.exists() else "") + "+")
noise = random.Random(len(runs.read_text()) + 1000 * {seed})
print(json.dumps({{"benchmarks": [
    {{"name": "changed", "run_type": "iteration", "cpu_time": 1.0 * {factor} * noise.uniform(0.99, 1.01), "time_unit": "us"}},
    {{"name": "same", "run_type": "iteration", "cpu_time": 500 * noise.uniform(0.99, 1.01), "time_unit": "ns"}},
    {{"name": "only_{seed}", "run_type": "iteration", "cpu_time": 1, "time_unit": "ns"}},
]}}))
"""


class Statistics(unittest.TestCase):
    def test_p_of_small_samples_counted_by_hand(self) -> None:
        # All of six differences positive: 2 of the 64 ways to choose signs are as extreme.
        self.assertEqual(compared.signed_rank_p([1, 2, 3, 4, 5, 6]), 2 / 64)
        # The negative rank is 1: the sums 0 and 1 have one way each, on both sides.
        self.assertEqual(compared.signed_rank_p([-1, 2, 3, 4, 5, 6]), 4 / 64)
        self.assertEqual(compared.signed_rank_p([-1, 1, -2, 2]), 1)
        self.assertEqual(compared.signed_rank_p([0, 0]), 1)
        # Two equal sizes share the rank 1.5: of the eight ways, only (0) has a sum of 0 ranks, and (1.5) has two ways.
        self.assertEqual(compared.signed_rank_p([-1, 1, 3]), 6 / 8)

    def test_interval_of_six_is_the_whole_range(self) -> None:
        # With six rounds, leaving out one mean at each end covers 1 - 2/64 = 96.9%; leaving out two would cover 93.8%.
        self.assertEqual(compared.interval([3, 1, 2, 6, 5, 4]), (3.5, 1, 6))

    def test_correction_of_holm(self) -> None:
        for p, expected in zip(compared.corrected([0.04, 0.01, 0.03]), (0.06, 0.03, 0.06), strict=True):
            self.assertAlmostEqual(p, expected)
        self.assertEqual(compared.corrected([0.9, 0.8]), [1, 1])

    def test_what_noise_alone_finds(self) -> None:
        """Without a difference, 5% of the tests may find one; the interval holds the truth in 95%."""
        chance = random.Random(3)
        found = held = 0
        for _ in range(1000):
            sample = [chance.gauss(0, 0.02) for _ in range(10)]
            found += compared.signed_rank_p(sample) < 0.05
            _, low, high = compared.interval(sample)
            held += low <= 0 <= high
        self.assertLess(found, 70)
        self.assertGreater(found, 30)
        self.assertGreater(held, 930)

    def test_a_machine_that_slows_down_hides_no_difference(self) -> None:
        """Each round is 10% slower than the last one, and the second build 2% slower than the first."""
        chance = random.Random(4)
        before = [1.1**i * math.exp(chance.gauss(0, 0.003)) for i in range(10)]
        after = [1.1**i * 1.02 * math.exp(chance.gauss(0, 0.003)) for i in range(10)]
        (row,) = compared.compare({"one": [before, after]})
        self.assertEqual(row["verdict"], "slower")
        self.assertLess(row["low"], 1.02)
        self.assertGreater(row["high"], 1.02)
        self.assertAlmostEqual(row["ratio"], 1.02, delta=0.004)


@unittest.skipUnless(shutil.which("git") and shutil.which("cmake"), "found no git or no CMake")
class TwoCommits(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        self.environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "PYTHONDONTWRITEBYTECODE": "1"}
        for role in ("AUTHOR", "COMMITTER"):
            self.environment |= {f"GIT_{role}_NAME": "a", f"GIT_{role}_EMAIL": "a@b"}
        self.git("init", "-q")
        (self.folder / "CMakeLists.txt").write_text(CMAKE)
        for seed, factor in (1, 1.0), (2, 0.9):
            program = self.folder / "fake.py"
            program.write_text(PROGRAM.format(seed=seed, factor=factor))
            program.chmod(0o755)
            self.git("add", "-A")
            self.git("commit", "-q", "-m", str(seed))

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.folder, env=self.environment, check=True)

    def run_script(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, str(SCRIPT), "--source", str(self.folder), *arguments],
                              env=self.environment, capture_output=True, text=True, check=False, timeout=120)

    def test_finds_the_change_and_nothing_else(self) -> None:
        done = self.run_script("HEAD~1", "HEAD", "--target", "reprise-bench-fake", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {row["name"]: row for row in json.loads(done.stdout)}
        self.assertEqual({name: row["verdict"] for name, row in rows.items()},
                         {"changed": "faster", "same": "no difference found"})
        self.assertAlmostEqual(rows["changed"]["before_ns"], 1000, delta=10)
        self.assertAlmostEqual(rows["changed"]["ratio"], 0.9, delta=0.01)
        for name in "only_1", "only_2":
            self.assertIn(f"did not run in every round of both builds: {name}", done.stderr)
        # Ten runs of each build.
        self.assertEqual([len(path.read_text()) for path in self.folder.glob("build/compare/*/build/bench/micro/*.runs")], [10, 10])

        done = self.run_script("HEAD~1", "HEAD", "--target", "reprise-bench-fake", "--rounds", "6")
        self.assertRegex(done.stdout, r"\| changed \| \d+\.?\d* \| \d+\.?\d* \| 0\.\d+ \|")

    def test_refusals(self) -> None:
        for sentence, *arguments in (
            ("nowhere is no commit of", "nowhere", "HEAD", "--target", "reprise-bench-fake"),
            ("reprise-bench-other of HEAD cannot be built", "HEAD", "HEAD~1", "--target", "reprise-bench-other"),
            ("HEAD has no reprise-bench-none in bench/micro/", "HEAD", "HEAD~1", "--target", "reprise-bench-none"),
        ):
            done = self.run_script(*arguments)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(sentence, done.stderr)
        done = self.run_script("HEAD~1", "HEAD", "--target", "reprise-bench-fake", "--rounds", "5")
        self.assertEqual(done.returncode, 2)
        self.assertIn("needs a number from 6 on", done.stderr)


if __name__ == "__main__":
    unittest.main()
