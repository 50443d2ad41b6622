# SPDX-License-Identifier: Apache-2.0
"""The prompts from which the target writes the training text, and the counts of accepted tokens. Needs no torch."""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
SYSTEM = "You are a helpful AI assistant."
PASSAGES = (
    "Summarize this text in two sentences:",
    "Explain this text in simple words:",
    "What are the main points of this text?",
    "Write this text again as a list:",
    "Write this text again in a friendlier tone:",
)
NAMES = ("value", "entry", "count", "result", "source", "target", "buffer", "label", "field", "record")
WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]{2,}")
KEYWORDS = {"def", "return", "self", "for", "not", "and", "else", "elif", "while", "with", "import", "from", "class",
            "None", "True", "False", "raise", "try", "except", "the", "yield", "pass", "lambda", "finally"}  # fmt: skip


class InputError(Exception):
    """An error of the input: what was wrong, where, and what to do."""


def bundled(folder: Path, held_out: bool) -> list[tuple[str, str]]:
    """Returns category and first turn of every second bundled session: the held-out ones, or those to train on."""
    found = []
    for file in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(file.read_text().splitlines()):
            try:
                session = json.loads(line)
                category, turn = session["category"], session["turns"][0]
            except (ValueError, LookupError, TypeError) as failed:
                raise InputError(f"{file}, line {number + 1}: no session with category and turns: {failed}") from failed
            if (number % 2 == 1) == held_out:
                found.append((category, turn))
    if not found:
        raise InputError(f"{folder}: no prompts; give the folder bench/prompts with --prompts")
    return found


def recorded(folder: Path, context: int = 160) -> list[tuple[list[int], int]]:
    """Returns the recorded turns of the sessions to train on: the ids, and how many of them are of the prompt.

    `context`: upper bound on these.
    """
    found = []
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text().splitlines()[::2]:
            before: list[int] = []
            for turn in json.loads(line)["turns"]:
                before += turn["prompt"]
                found.append((before[-context:] + turn["output"], min(context, len(before))))
                before += turn["output"]
    return found


def paragraphs(texts: Sequence[str], least: int = 200, most: int = 600) -> list[str]:
    """Returns the paragraphs of at least `least` and at most `most` characters, one line each, without repetitions."""
    parts = (" ".join(part.split()) for text in texts for part in re.split(r"\n\s*\n", text))
    return list(dict.fromkeys(part for part in parts if least <= len(part) <= most and part.count("|") < 3))


def texts_at_hand() -> list[str]:
    """Returns the paragraphs of the documents of this repository and of Python's language reference."""
    from pydoc_data.topics import topics

    pages = [file.read_text() for file in sorted((ROOT / "docs").rglob("*.md"))]
    return paragraphs(pages + [topics[name] for name in sorted(topics)])


def code_at_hand(least: int = 5, most: int = 16) -> list[str]:
    """Returns the functions of Python's library that have at least `least` and at most `most` lines."""
    import argparse
    import csv
    import fractions
    import shutil
    import statistics
    import string
    import textwrap
    import zipfile

    functions = []
    for module in (argparse, csv, fractions, inspect, json, shutil, statistics, string, textwrap, zipfile):
        owners = [module, *(each for _, each in inspect.getmembers(module, inspect.isclass))]
        functions += [each for owner in owners for _, each in inspect.getmembers(owner, inspect.isfunction)]
    sources = []
    for function in dict.fromkeys(functions):
        try:
            source = inspect.cleandoc("\n" + inspect.getsource(function))
        except (OSError, TypeError):
            continue
        if least <= source.count("\n") + 1 <= most:
            sources.append(source)
    return list(dict.fromkeys(sources))


def edit(code: str, random: Random) -> str | None:
    """Returns a prompt to rename the commonest name of the code; None if there is no name that repeats."""
    counts = Counter(word for word in WORD.findall(code) if word not in KEYWORDS)
    name, often = max(counts.items(), key=lambda item: item[1], default=("", 0))
    if often < 2:
        return None
    new = random.choice([each for each in NAMES if each not in counts])
    return f"Rename {name} to {new} in this code. Print the whole code again.\n\n```python\n{code}\n```"


def prompts(known: Sequence[str], texts: Sequence[str], code: Sequence[str], random: Random) -> Iterator[str]:
    """Returns prompts without end: half about passages of texts, half edits of code; `known` come first, in between."""
    rest = list(known)
    random.shuffle(rest)
    while True:
        yield f"{random.choice(PASSAGES)}\n\n{random.choice(texts)}"
        if (asked := edit(random.choice(code), random)) is not None:
            yield asked
        if rest:
            yield rest.pop()


def chat(message: str) -> str:
    """Returns the prompt of a first turn, as the chat template of SmolLM2-Instruct writes it."""
    return question_begin() + f"{message}<|im_end|>\n<|im_start|>assistant\n"


def question_begin() -> str:
    """Returns the text after which an instruction-tuned model writes a question of its own."""
    return f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n"


def agreed(drafted: Sequence[int], written: Sequence[int]) -> int:
    """Returns how many drafted tokens a verifying pass accepts."""
    count = 0
    for ours, theirs in zip(drafted, written):
        if ours != theirs:
            break
        count += 1
    return count


def by_position(lengths: Sequence[tuple[int, int]], depth: int) -> list[float]:
    """Returns the share of accepted tokens at each position, among the drafts that were right until there.

    `lengths`: of each draft, its tokens and the accepted ones.
    """
    shares = []
    for at in range(depth):
        reached = [kept for drafted, kept in lengths if drafted > at and kept >= at]
        shares.append(sum(kept > at for kept in reached) / len(reached) if reached else 0.0)
    return shares


def split(rows: Sequence[Any], every: int) -> tuple[list[Any], list[Any]]:
    """Returns the rows to train on, and each `every`-th one, to validate."""
    return ([row for at, row in enumerate(rows) if at % every], [row for at, row in enumerate(rows) if at % every == 0])
