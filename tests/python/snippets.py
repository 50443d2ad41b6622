#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the documented Python snippets of an engine as they stand, each as a script of its own.

    snippets.py ENGINE MODEL      ENGINE: a key of MODULES; MODEL: the file or folder of the model

A snippet belongs to an engine if it names the engine's module of reprise. It runs in an empty folder where the model
has its documented name. No variable of the environment helps it, except those that find reprise and its library.
The exit status is 1 if a snippet fails, or if the counts that it prints last show no gain. A snippet with saved_costs
runs twice, because only the second run loads them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("examples/python/README.md", "docs/engines.md")
MODULES = {
    "llama-cpp-python": "llama_cpp",
    "transformers": "transformers",
    "vllm": "vllm",
    "onnxruntime-genai": "onnxruntime_genai",
    "mlx-lm": "mlx_lm",
}
#: Variables that a user has, or that find this copy of the package.
KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT", "PYTHONPATH", "REPRISE_LIBRARY")


def snippets(engine: str) -> list[tuple[str, str]]:
    """Returns the page and line of each snippet, and its text. A snippet of two pages comes once."""
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for match in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S):
            if f"reprise_decoding.{MODULES[engine]}" in match[1] and match[1] not in (known for _, known in found):
                found.append((f"{page}:{text.count(chr(10), 0, match.start()) + 1}", match[1]))
    return found


def gain(output: str) -> str | None:
    """Returns the last counts in the output if they show a gain: fewer passes than tokens, saved passes or drafts."""
    counts = list(re.finditer(r"tokens=(\d+), passes=(\d+)|(\d+) (?:of \d+ tokens|passes saved)", output))
    if not counts:
        return None
    tokens, passes, gained = counts[-1].groups()
    return counts[-1][0] if (int(gained) > 0 if gained else int(passes) < int(tokens)) else None


def run(snippet: str, model: Path) -> tuple[int, str]:
    """Runs a snippet as a script, and returns its exit status and its output."""
    with tempfile.TemporaryDirectory() as folder:
        name = "model.gguf" if model.suffix == ".gguf" else "model"
        (Path(folder) / name).symlink_to(model.resolve())
        (Path(folder) / "snippet.py").write_text(snippet, encoding="utf-8")
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        for _ in range(1 + ("saved_costs" in snippet)):
            done = subprocess.run(
                [sys.executable, "snippet.py"], cwd=folder, env=environment, timeout=1200,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
            )
            if done.returncode:
                break
        return done.returncode, done.stdout if done.returncode == 0 else done.stdout + done.stderr


def main() -> int:
    engine, model = sys.argv[1], Path(sys.argv[2])
    failed = 0
    chosen = snippets(engine)
    for where, snippet in chosen:
        status, output = run(snippet, model)
        shown = gain(output)
        held = status == 0 and shown is not None
        failed += not held
        fault = f"exit status {status}" if status else "no gain in its output"
        print(f"{where}: {shown if held else 'FAILED, ' + fault}")
        print("".join(f"    {line}\n" for line in output.splitlines()[-(8 if held else 40) :]), flush=True)
    print(f"{len(chosen)} snippets, {failed} failed")
    return int(failed > 0 or not chosen)


if __name__ == "__main__":
    sys.exit(main())
