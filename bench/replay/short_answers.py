#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a trace of short answers that repeat almost nothing, so that a new session can lose by its first guesses.

    python3 bench/replay/short_answers.py > short.jsonl
    reprise-replay --cost linear:0.02 --shape chain short.jsonl

Each dialogue has two turns. A question has fixed tokens at both ends, as in a chat template, and between them a name, six
random words and a name. An answer is one of the 12 names, random words, and a token for its end. So only the name may
have stood in the text before.
"""

from __future__ import annotations

import argparse
import json
import random
import re

BEFORE, AFTER, END = [1, 2, 3], [4, 2, 5], 9
WORDS = range(100, 1400)


def number_range(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)-(\d+)", text)
    if match is None or int(match[1]) > int(match[2]):
        raise argparse.ArgumentTypeError(f"expected LEAST-MOST, as in 18-32, not {text!r}")
    return int(match[1]), int(match[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialogues", type=int, default=300, metavar="N", help="number of dialogues (300)")
    parser.add_argument("--words", type=number_range, default=(18, 32), metavar="LEAST-MOST",
                        help="number of random words in an answer (18-32)")
    parser.add_argument("--seed", type=int, default=4, metavar="N", help="seed of the random words (4)")
    options = parser.parse_args()
    source = random.Random(options.seed)

    def words(count: int) -> list[int]:
        return [source.choice(WORDS) for _ in range(count)]

    names = [words(2) for _ in range(12)]
    for dialogue in range(options.dialogues):
        turns = []
        for _ in range(2):
            question = [*source.choice(names), *words(6), *source.choice(names)]
            answer = [*source.choice(names), *words(source.randint(*options.words)), END]
            turns.append({"prompt": [*BEFORE, *question, *AFTER], "output": answer})
        print(json.dumps({"id": f"short-{dialogue}", "category": "short", "turns": turns}))


if __name__ == "__main__":
    main()
