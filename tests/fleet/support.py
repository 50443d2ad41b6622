# SPDX-License-Identifier: Apache-2.0
"""A small fleet in a temporary folder. FLEET_INDEX and FLEET_SERVER name the programs."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "fleet"
sys.path.insert(0, str(FOLDER))

INDEX = os.environ["FLEET_INDEX"]
SERVER = os.environ["FLEET_SERVER"]
NUMBERS = ("--vocabulary", "128", "--fingerprint", "7")  # of server.cpp
SECRET = "Z~~Q"  # no other text has these letters
PLACES = {
    ("north", "a"): ("Lisbon", "Oslo", "Rome"),
    ("north", "b"): ("Oslo", "Kyiv"),
    ("south", "a"): ("Bern", "Bonn", "Paris", "Madrid"),
    ("south", "b"): ("Seoul",),
    ("west", "a"): (SECRET, "Vaduz"),
}


def sha256(path: Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def tokens_of(corpus: Path) -> list[int]:
    """Returns all words of a corpus, read by the format alone."""
    done = subprocess.run([INDEX, "info", "--format", "json", corpus], capture_output=True, check=True)
    info = json.loads(done.stdout)
    part = next(section for section in info["sections"] if section["name"] == "tokens")
    data = Path(corpus).read_bytes()[part["offset"] : part["offset"] + part["bytes"]]
    return list(struct.unpack(f"<{len(data) // 2}H", data))


def occurrences(corpus: Path, text: str) -> int:
    """Returns how often the corpus has the text, by the index. Zero unless the whole text occurs."""
    ids = " ".join(str(ord(letter)) for letter in text)
    done = subprocess.run(
        [INDEX, "query", corpus, "--tokens", ids, "--format", "json"], capture_output=True, check=True
    )
    answer = json.loads(done.stdout)
    return answer["occurrences"] if answer["matched"] == len(text) else 0


class FleetCase(unittest.TestCase):
    """The folders of a fleet, with snapshots of three tenants of whom two share their text."""

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name)
        self.snapshots, self.published, self.work = (self.root / name for name in ("snapshots", "published", "work"))
        for folder in (self.snapshots, self.published, self.work):
            folder.mkdir()
        self.allow("north", "south")

    def allow(self, *tenants: str) -> None:
        (self.root / "allow.txt").write_text("".join(f"{tenant}\n" for tenant in ("# shared", *tenants)))

    def serve(self, tenant: str, name: str, places: Sequence[str], *options: str) -> list[dict]:
        """Runs a server over these requests and returns its answers."""
        arguments = [SERVER, self.published, self.snapshots, tenant, name, *options]
        text = "".join(f"{place}\n" for place in places)
        done = subprocess.run(arguments, input=text, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def serve_all(self) -> None:
        for (tenant, name), places in PLACES.items():
            self.serve(tenant, name, places)

    def arguments(self, *options: str) -> list[str]:
        folders = ["--snapshots", self.snapshots, "--published", self.published, "--work", self.work]
        tool = [] if "--tool" in options else ["--tool", INDEX]
        common = [*folders, "--allow", self.root / "allow.txt", *tool, *NUMBERS, "--format", "json"]
        return [sys.executable, str(FOLDER / "fleet.py"), "build", *map(str, common), *options]

    def build(self, *options: str) -> dict:
        """Runs a job in one process and returns its report."""
        done = subprocess.run(self.arguments("--local", *options), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(self.work.iterdir()), [], "the job leaves nothing")
        return json.loads(done.stdout)

    def refusal(self, *options: str, status: int = 2) -> str:
        """Runs a job that must fail and must publish nothing. Returns its message."""
        before = sorted(path.name for path in self.published.iterdir() if path.name != "publish.lock")
        done = subprocess.run(self.arguments("--local", *options), capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(list(self.work.iterdir()), [], "the job leaves nothing")
        after = sorted(path.name for path in self.published.iterdir() if path.name != "publish.lock")
        self.assertEqual(after, before)
        self.assertNotIn("Traceback", done.stderr)
        return done.stderr

    def single_build(self, *inputs: str) -> Path:
        """Builds a corpus of these tenants or files on one machine, with one call of reprise-index."""
        output = self.root / "single.corpus"
        arguments = [INDEX, "build", *NUMBERS, "--output", output, *inputs]
        subprocess.run(arguments, cwd=self.snapshots, check=True, capture_output=True)
        return output

    def current(self) -> Path:
        manifest = json.loads((self.published / "manifest.json").read_text())
        return self.published / manifest["file"]

    def generations(self) -> list[str]:
        return sorted(path.name for path in self.published.glob("*.corpus"))
