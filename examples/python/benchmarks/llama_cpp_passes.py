#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decodes prompts of bench/prompts with llama-cpp-python: without drafts, with its own lookup, and with reprise.

Prints the passes of each, the processor time of decoding without the prompt, and whether the text is the same as
without drafts. Passes are exact; times depend on the machine. One Llama object and one drafter serve all prompts, so
costs are learned over the prompts. Greedy decoding, one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from llama_cpp import Llama  # noqa: E402
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding  # noqa: E402
from reprise.llama_cpp import DraftModel  # noqa: E402

PROMPTS = Path(__file__).resolve().parents[3] / "bench/prompts"


def prompts(category: str, count: int) -> list[tuple[str, str]]:
    """Returns names and texts of the first turns."""
    lines = (PROMPTS / f"{category}.jsonl").read_text(encoding="utf-8").splitlines()[:count]
    return [
        (session["id"], f"<|im_start|>system\n{session.get('system', '')}<|im_end|>\n<|im_start|>user\n"
         f"{session['turns'][0]}<|im_end|>\n<|im_start|>assistant\n")
        for session in map(json.loads, lines)
    ]


def decode(llama: Any, ids: list[int], count: int) -> tuple[list[int], int, float]:
    """Returns the output, the passes after that of the prompt, and their processor time in seconds."""
    passes, run = 0, llama._ctx.decode

    def counted(batch: Any) -> Any:
        nonlocal passes
        passes += 1
        return run(batch)

    llama.reset()
    llama._ctx.decode = counted
    output: list[int] = []
    first, begun = 0, 0.0
    for token in llama.generate(ids, temp=0.0, top_k=1, repeat_penalty=1.0):
        if not output:
            first, begun = passes, time.process_time()
        output.append(token)
        if token == llama.token_eos() or len(output) == count:
            break
    llama._ctx.decode = run
    return output, passes - first, time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a GGUF file of SmolLM2-135M-Instruct, or of another model with its template")
    parser.add_argument("--prompts", type=int, default=3, help="prompts of each category (default: 3)")
    parser.add_argument("--tokens", type=int, default=96, help="tokens of each output (default: 96)")
    parser.add_argument("--categories", nargs="*", default=["code-edit", "summary", "chat"])
    arguments = parser.parse_args()
    options = {"n_ctx": 2048, "n_batch": 2048, "n_threads": 1, "n_threads_batch": 1, "verbose": False, "logits_all": True}
    drafters = {"plain": None, "lookup": LlamaPromptLookupDecoding(num_pred_tokens=10), "reprise": DraftModel()}
    llamas = {name: Llama(arguments.model, draft_model=model, **options) for name, model in drafters.items()}
    print(f"{'prompt':14} {'tokens':>6}" + "".join(f" {name + ' passes':>15} {'s':>6} {'same':>5}" for name in llamas))
    for category in arguments.categories:
        for name, text in prompts(category, arguments.prompts):
            line, wanted = "", None
            for llama in llamas.values():
                ids = llama.tokenize(text.encode(), add_bos=False, special=True)
                output, passes, seconds = decode(llama, ids, arguments.tokens)
                wanted = wanted or output
                line += f" {passes:15} {seconds:6.2f} {'yes' if output == wanted else 'no':>5}"
            print(f"{name:14} {len(wanted or []):6}{line}", flush=True)
    print("reprise:", drafters["reprise"].drafter.statistics)  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
