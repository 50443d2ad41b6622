# SPDX-License-Identifier: Apache-2.0
"""The bundled prompts, as SmolLM2-135M-Instruct reads them."""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "bench/prompts"
#: Chat is first, so that a drafter has learned nothing from other prompts when it gets them.
ALL = ("chat", "prose", "reasoning", "translation", "retrieval", "json", "code-edit", "summary")
COPYING = ("code-edit", "summary")


def prompts(categories: tuple[str, ...] | list[str], count: int) -> list[tuple[str, str, str]]:
    """Returns the category, the name and the text of the first `count` prompts of each category: their first turns."""
    chosen = []
    for category in categories:
        lines = (FOLDER / f"{category}.jsonl").read_text(encoding="utf-8").splitlines()[:count]
        for session in map(json.loads, lines):
            chosen.append((category, session["id"], text(session["turns"][0], session.get("system"))))
    return chosen


def text(message: str, system: str | None = None) -> str:
    """Returns a message in the template of SmolLM2."""
    system = system or "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    return f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{message}<|im_end|>\n<|im_start|>assistant\n"
