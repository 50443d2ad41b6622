#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decodes prompts of bench/prompts with transformers: without drafts, with its own lookup, with Chains and with Trees.

Prints the passes of each, the processor time, and whether the text is the same as without drafts. Passes are exact;
times depend on the machine. Greedy decoding in float32, one thread.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch  # noqa: E402
from reprise.transformers import Chains, Trees  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

PROMPTS = Path(__file__).resolve().parents[3] / "bench/prompts"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a folder with SmolLM2-135M-Instruct, or with another model that has its template")
    parser.add_argument("--prompts", type=int, default=3, help="prompts of each category (default: 3)")
    parser.add_argument("--tokens", type=int, default=96, help="tokens of each output (default: 96)")
    parser.add_argument("--categories", nargs="*", default=["code-edit", "summary", "chat"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    passes, forward = 0, model.forward

    @functools.wraps(forward)
    def counted(*positional: Any, **named: Any) -> Any:
        nonlocal passes
        passes += 1
        return forward(*positional, **named)

    model.forward = counted
    ways = {
        "plain": {},
        "lookup": {"prompt_lookup_num_tokens": 10},
        "chains": {"custom_generate": Chains()},
        "trees": {"custom_generate": Trees()},
    }
    print(f"{'prompt':14} {'tokens':>6}" + "".join(f" {name + ' passes':>15} {'s':>6} {'same':>5}" for name in ways))
    for category in arguments.categories:
        lines = (PROMPTS / f"{category}.jsonl").read_text(encoding="utf-8").splitlines()[: arguments.prompts]
        for session in map(json.loads, lines):
            text = (
                f"<|im_start|>system\n{session.get('system', '')}<|im_end|>\n<|im_start|>user\n"
                f"{session['turns'][0]}<|im_end|>\n<|im_start|>assistant\n"
            )
            ids, line, wanted = torch.tensor([tokenizer(text).input_ids]), "", None
            for options in ways.values():
                passes, begun = 0, time.process_time()
                output = model.generate(
                    ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=arguments.tokens, **options
                )[0, ids.shape[1] :].tolist()
                wanted = wanted or output
                same = "yes" if output == wanted else "no"
                line += f" {passes:15} {time.process_time() - begun:6.2f} {same:>5}"
            print(f"{session['id']:14} {len(wanted or []):6}{line}", flush=True)


if __name__ == "__main__":
    main()
