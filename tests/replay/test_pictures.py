# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/images: drawn from measured figures, readable at 400 pixels, and with the figures of README."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/images"
SCRIPT = FOLDER / "draw.py"
NAME = "{http://www.w3.org/2000/svg}"
DRAWN = ("cost.svg", "rivals.svg")
COLUMNS = ("own", "best", "adaptive", "reprise", "memory")


def figures() -> dict:
    return json.loads((FOLDER / "speedups.json").read_text(encoding="utf-8"))


def texts(picture: str) -> list[ET.Element]:
    return list(ET.parse(FOLDER / picture).iter(f"{NAME}text"))


class Script(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_script(self, *arguments: str, status: int = 0) -> str:
        done = subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def test_draws_the_committed_pictures(self) -> None:
        self.run_script("--check")
        shutil.copy(FOLDER / "speedups.json", self.folder)
        self.run_script("--folder", str(self.folder))
        for name in DRAWN:
            self.assertEqual((self.folder / name).read_bytes(), (FOLDER / name).read_bytes())

    def test_finds_a_picture_of_other_figures(self) -> None:
        for name in DRAWN:
            shutil.copy(FOLDER / name, self.folder)
        other = figures()
        other["texts"][0]["compared"]["0.02"]["reprise"] += 0.5
        (self.folder / "speedups.json").write_text(json.dumps(other), encoding="utf-8")
        said = self.run_script("--check", "--folder", str(self.folder), status=1)
        self.assertIn("rivals.svg is not drawn from", said)

    def test_refuses_files_that_it_cannot_use(self) -> None:
        self.assertIn("speedups.json: cannot be read", self.run_script("--folder", str(self.folder), status=2))
        for broken in ("{", "{}", '{"texts": []}', "[]"):
            (self.folder / "speedups.json").write_text(broken, encoding="utf-8")
            self.assertIn("write it anew", self.run_script("--folder", str(self.folder), status=2))

    def test_refuses_wrong_arguments(self) -> None:
        to = ("--folder", str(self.folder))
        self.assertIn("write MODEL:TEXT=TRACE", self.run_script(*to, "--measure", "./no-tool", "t.jsonl", status=2))
        self.assertIn("at least one", self.run_script(*to, "--measure", "reprise-replay", status=2))
        self.assertIn("no-tool: cannot be run", self.run_script(*to, "--measure", "./no-tool", "M:a=t.jsonl", status=2))
        self.assertEqual(list(self.folder.iterdir()), [])

    @unittest.skipUnless("REPRISE_REPLAY" in os.environ, "REPRISE_REPLAY names no tool")
    def test_measures_with_the_tool(self) -> None:
        tool = os.environ["REPRISE_REPLAY"]
        for name in ("a", "b"):
            turn = {"prompt": [1, 2, 3, 4, 5, 6], "output": [1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5]}
            line = json.dumps({"id": name, "category": "copy", "turns": [turn, turn]})
            (self.folder / f"{name}.jsonl").write_text(line + "\n", encoding="utf-8")
        named = [f"M:text {name}={self.folder / name}.jsonl" for name in ("a", "b")]
        self.run_script("--folder", str(self.folder), "--measure", tool, *named)
        found = json.loads((self.folder / "speedups.json").read_text(encoding="utf-8"))
        done = subprocess.run([tool, "--cost", "linear:0.3", "--format", "json", str(self.folder / "b.jsonl")],
                              capture_output=True, check=True)
        self.assertEqual([text["text"] for text in found["texts"]], ["text a", "text b"])
        compared = found["texts"][1]["compared"]["0.3"]
        self.assertAlmostEqual(compared["reprise"], json.loads(done.stdout)["results"][0]["speedup"], 4)
        self.assertEqual(compared["reprise"], found["texts"][1]["reprise"]["0.3"])
        self.assertGreater(compared["reprise"], compared["plain"])
        self.assertEqual(found["settings"], figures()["settings"])
        for name in DRAWN:
            self.assertIn("</svg>", (self.folder / name).read_text(encoding="utf-8"))


class Pictures(unittest.TestCase):
    def test_are_readable_at_400_pixels_and_in_the_dark(self) -> None:
        for name in (*DRAWN, "round.svg"):
            root = ET.parse(FOLDER / name).getroot()
            width = float(root.attrib["viewBox"].split()[2])
            style = root.findtext(f"{NAME}style") or ""
            self.assertIn("@media (prefers-color-scheme: dark)", style, name)
            sizes = [int(size) for size in re.findall(r"(\d+)px", style)]
            self.assertGreaterEqual(400 / width * min(sizes), 10.5, f"{name}: letters too small")
            for bar in root.iter(f"{NAME}rect"):
                self.assertLess(float(bar.attrib["width"]), 0.9 * width, f"{name}: a background")

    def test_have_no_text_beyond_their_edges(self) -> None:
        for name in DRAWN:
            width = float(ET.parse(FOLDER / name).getroot().attrib["viewBox"].split()[2])
            for text in texts(name):
                kind = text.attrib.get("class", "")
                room = len(text.text or "") * (10.6 if kind == "title" else 9.6 if kind == "text" else 8.7)
                before = {"start": 0.0, "middle": 0.5, "end": 1.0}[text.attrib.get("text-anchor", "start")]
                begin = float(text.attrib["x"]) - before * room
                self.assertGreaterEqual(begin, -10, f"{name}: {text.text}")
                self.assertLessEqual(begin + room, width + 10, f"{name}: {text.text}")

    def test_have_the_figures_of_the_replay(self) -> None:
        shown = [text.text for text in texts("rivals.svg")]
        for text in figures()["texts"]:
            values = text["compared"]["0.02"]
            wanted = [f"{values[name]:.2f}" for name in ("plain", *COLUMNS)]
            start = shown.index(f"{text['model']}: {text['text']}")
            self.assertEqual(shown[start + 2:start + 13:2], wanted)

    def test_round_has_the_steps_of_the_readme(self) -> None:
        steps = re.findall(r"^\d\. \*\*(\w+):\*\*", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
        self.assertEqual(len(steps), 5)
        drawn = [(text.text or "").split(":")[0] for text in texts("round.svg") if text.attrib.get("class") == "step"]
        self.assertEqual(drawn, [f"{i}  {step}" for i, step in enumerate(steps, 1)])


class Readme(unittest.TestCase):
    def test_has_the_figures_of_the_replay(self) -> None:
        page = (ROOT / "README.md").read_text(encoding="utf-8")
        rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in page.splitlines()
                if line.startswith("| ")]
        model = figures()["texts"][0]["model"]
        texts_of_model = {text["text"]: text["compared"] for text in figures()["texts"] if text["model"] == model}
        start = next(i for i, row in enumerate(rows) if row[:2] == [f"{model} text", "cost"]) + 1
        wanted = [[name, label, *(f"{compared[cost][column]:.2f}" for column in COLUMNS)]
                  for cost, label in (("0.02", "2%"), ("0.3", "30%")) for name, compared in texts_of_model.items()]
        self.assertEqual(rows[start:start + len(wanted)], wanted)
        self.assertIn(f"`best of {figures()['settings']}`", page)
        ratios = [values["reprise"] / values["adaptive"] for compared in texts_of_model.values()
                  for values in compared.values()]
        self.assertIn(f"reprise without memory is {min(ratios):.2f} to {max(ratios):.2f} times as fast", page)


if __name__ == "__main__":
    unittest.main()
