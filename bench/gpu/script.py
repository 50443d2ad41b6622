# SPDX-License-Identifier: Apache-2.0
"""The script of a model: recorded requests, and the table with which a model picks their tokens. It needs no engine.

A recording is found by the prompt of its request, which every engine knows. The tokens of a row are no key: a pass
shows the model one token of a request and its drafted tokens, and two recordings can have those at one position.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The logit of a recorded token. The others are near 0, so the softmax gives it a probability of exactly 1.
WINS = 1e4

SHAPES: dict[str, dict[str, Any]] = {
    "8b": {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
           "head_dim": 128, "intermediate_size": 14336, "vocab_size": 128256, "torch_dtype": "bfloat16"},
    "tiny": {"num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2,
             "head_dim": 32, "intermediate_size": 256, "vocab_size": 64, "torch_dtype": "float32"},
}  # fmt: skip


class InputError(Exception):
    """An error of the input: what was wrong, where, and what to do."""


@dataclass(frozen=True)
class Request:
    category: str
    prompt: list[int]
    output: list[int]


def read(file: Path) -> tuple[list[Request], list[Request]]:
    """Returns the requests of the warm-up and those to measure, as make_requests.py writes them."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        warm, requests = ([_request(each) for each in content[part]] for part in ("warm", "requests"))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file}: {error!r}; write the file with make_requests.py") from error
    if not warm or not requests:
        raise InputError(f"{file} has no requests, or none for the warm-up: write the file with make_requests.py")
    return warm, requests


def _request(each: dict[str, Any]) -> Request:
    prompt, output = each["prompt"], each["output"]
    if not prompt or not output or not all(type(token) is int and token >= 0 for token in [*prompt, *output]):
        raise ValueError("a request needs token ids in prompt and output")
    return Request(str(each["category"]), prompt, output)


class Script:
    """The recordings of a model. Two outputs of one prompt are an InputError."""

    def __init__(self, requests: Iterable[Request]) -> None:
        self._lines: dict[tuple[int, ...], int] = {}
        self._requests: list[Request] = []
        for request in requests:
            line = self._lines.setdefault(tuple(request.prompt), len(self._requests))
            if line == len(self._requests):
                self._requests.append(request)
            elif self._requests[line].output != request.output:
                raise InputError("two requests have the same prompt and different outputs: leave one of them out")

    def find(self, prompt: Sequence[int]) -> int:
        """Returns the line of a prompt in the table, or -1 for an unknown prompt."""
        return self._lines.get(tuple(prompt), -1)

    def table(self) -> list[list[int]]:
        """Returns a line for each recording: the token after each position. The last line is for unknown prompts."""
        texts = [request.prompt[1:] + request.output for request in self._requests]
        width = max(map(len, texts), default=0) + 1
        return [text + [0] * (width - len(text)) for text in [*texts, []]]


def win(logits: Any, table: Any, lines: Any, positions: Any) -> None:
    """Makes the recorded tokens win, in place. `lines` and `positions`: of the rows of `logits`, integer tensors.

    A row after a wrong draft has the recorded token of its position, too. The engine rejects the draft before it, so
    nothing of that row is committed.
    """
    tokens = table[lines, positions.clamp(max=table.shape[1] - 1)]
    logits.scatter_(1, tokens[:, None], WINS)


def config(shape: str, file: Path) -> dict[str, Any]:
    """Returns the config.json of a Llama whose script is `file`. It has no EOS: requests end by their length."""
    largest = max(max(*each.prompt, *each.output) for part in read(file) for each in part)
    made = {**SHAPES[shape], "architectures": ["ScriptedLlama"], "model_type": "llama", "script": str(file.resolve())}
    made["vocab_size"] = max(made["vocab_size"], (largest // 64 + 1) * 64)
    return {**made, "max_position_embeddings": 32768, "rope_theta": 500000.0, "rms_norm_eps": 1e-5,
            "hidden_act": "silu", "tie_word_embeddings": False, "bos_token_id": None, "eos_token_id": None}  # fmt: skip
