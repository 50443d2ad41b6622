# SPDX-License-Identifier: Apache-2.0
"""The bundled prompts, as SmolLM2-135M-Instruct reads them."""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "bench/prompts"
#: Chat is first, so that a drafter has learned nothing from other prompts when it gets them.
ALL = ("chat", "prose", "reasoning", "translation", "retrieval", "json", "code-edit", "summary")
#: A text whose next words are easy to draft up to one that is uncertain.
ANIMALS = "".join(f"The cat saw a {'dog' if bit == '1' else 'bird'}. " for bit in "01101001100101") + "The cat"


def prompts(categories: tuple[str, ...] | list[str], count: int, shortest: bool = False) -> list[tuple[str, str, str]]:
    """Returns category, name and text of `count` prompts of each category: the first turns of the first sessions.

    `shortest`: of the shortest sessions instead, for engines that need a minute for a prompt.
    """
    chosen = []
    for category in categories:
        lines = (FOLDER / f"{category}.jsonl").read_text(encoding="utf-8").splitlines()
        sessions = [json.loads(line) for line in lines]
        if shortest:
            sessions.sort(key=lambda session: len(session["turns"][0]))
        for session in sessions[:count]:
            chosen.append((category, session["id"], text(session["turns"][0], session.get("system"))))
    return chosen


def text(message: str, system: str | None = None) -> str:
    """Returns a message in the template of SmolLM2."""
    system = system or "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    return f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{message}<|im_end|>\n<|im_start|>assistant\n"
