#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures reprise beside an assistant model in transformers: plain, assistant alone, reprise alone, and both.

The ways take turns on each prompt, greedily, with one sequence. Each prompt is the first turn of a bundled session that
bench/draft_model/distil.py has not trained on. The first prompt of a text only warms up. Times are processor time, so
other programs hardly change the ratios. Prints a row for each text. The exit status is 1 if a text differs from that of
plain decoding.
"""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse
import copy
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from reprise_decoding.transformers import enable

WAYS = ("plain", "assistant", "reprise", "both")
PROMPTS = Path(__file__).resolve().parents[3] / "bench/prompts"


def prompts(folder: Path, category: str, count: int) -> list[list[dict[str, str]]]:
    """Returns the chats of the first `count` sessions that were held out: every second one."""
    sessions = [json.loads(line) for line in (folder / f"{category}.jsonl").read_text().splitlines()[1::2]]
    system = {"role": "system", "content": "You are a helpful AI assistant."}
    return [[system, {"role": "user", "content": session["turns"][0]}] for session in sessions[:count]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="the folder of a chat model")
    parser.add_argument("assistant", help="the folder of a draft model")
    parser.add_argument("--categories", nargs="+", default=["code-edit", "chat", "summary"])
    parser.add_argument("--prompts", type=int, default=7, help="prompts of each text, with the first one (default: 7)")
    parser.add_argument("--tokens", type=int, default=96, help="tokens of an output (default: 96)")
    parser.add_argument("--leaves", type=int, default=1, help="branches of a draft (default: 1, chains)")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()
    load = transformers.AutoModelForCausalLM.from_pretrained
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.model)
    plain, assistant = (load(folder, dtype=torch.float32) for folder in (arguments.model, arguments.assistant))
    models: dict[str, Any] = dict.fromkeys(WAYS, plain)
    for way in ("reprise", "both"):  # with the same weights, but what each has learned is its own
        models[way] = copy.copy(plain)
        enable(models[way], max_leaves=arguments.leaves)
    differ = 0
    gains: dict[str, list[float]] = {}
    print("| text | tokens | assistant | reprise | both | over the assistant alone | over reprise alone |")
    print("|---|---|---|---|---|---|---|")
    for category in arguments.categories:
        seconds, tokens = dict.fromkeys(WAYS, 0.0), 0
        for number, chat in enumerate(prompts(PROMPTS, category, arguments.prompts)):
            inputs = tokenizer.apply_chat_template(
                chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
            )
            wanted = None
            for turn in range(len(WAYS)):
                way = WAYS[(number + turn) % len(WAYS)]
                options = {"assistant_model": assistant} if way in ("assistant", "both") else {}
                begin = time.process_time()
                made = models[way].generate(**inputs, max_new_tokens=arguments.tokens, do_sample=False, **options)
                if number > 0:
                    seconds[way] += time.process_time() - begin
                wanted = made if wanted is None else wanted
                differ += not torch.equal(made, wanted)
            if number > 0:
                tokens += wanted.shape[1] - inputs.input_ids.shape[1]
        speed = {way: seconds["plain"] / seconds[way] for way in WAYS}
        over = [speed["both"] / speed["assistant"], speed["both"] / speed["reprise"]]
        for name, gain in zip(("assistant", "reprise"), over):
            gains.setdefault(name, []).append(gain)
        row = [speed["assistant"], speed["reprise"], speed["both"], *over]
        print(f"| {category} | {tokens} |" + "".join(f" {each:.2f} |" for each in row), flush=True)
    for name, found in gains.items():
        mean = math.exp(sum(map(math.log, found)) / len(found))
        print(f"over {name} alone: {mean:.2f}, least {min(found):.2f}")
    print(f"{differ} outputs differ")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
