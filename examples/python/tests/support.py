# SPDX-License-Identifier: Apache-2.0
"""What the tests share: a toy model, plain decoding, and stand-ins for modules of the engines."""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

VOCABULARY = 64


def next_token(context: Sequence[int]) -> int:
    """The toy model. Its text repeats with small changes, so that drafts are accepted and refused."""
    count = len(context)
    if count % 19 == 0:
        return (int(context[-1]) * 7 + count) % 40
    return (int(context[-1]) * 5 + 1) % 23


def plain(prompt: Sequence[int], count: int) -> list[int]:
    """Returns the next `count` tokens without drafts."""
    context = [int(token) for token in prompt]
    for _ in range(count):
        context.append(next_token(context))
    return context[len(prompt) :]


def prompt(seed: int, count: int = 60) -> list[int]:
    """Returns a prompt with text of the toy model, so that there is something to copy."""
    return [seed, *plain([seed], count - 1)]


def after(drafts: Iterable[Sequence[int]], eos: int) -> int:
    """Returns how many drafted tokens come after `eos` in their draft."""
    return sum(len(draft) - 1 - list(draft).index(eos) for draft in drafts if eos in list(draft))


@contextlib.contextmanager
def adapter(name: str, **modules: Any) -> Iterator[types.ModuleType]:
    """Imports reprise_decoding.NAME anew, with stand-ins for modules of its engine. `__` in a name stands for a dot."""
    fakes = {full.replace("__", "."): fake for full, fake in modules.items()}
    for full in list(fakes):
        parts = full.split(".")
        for end in range(1, len(parts)):
            fakes.setdefault(".".join(parts[:end]), types.ModuleType(".".join(parts[:end])))
    mine = f"reprise_decoding.{name}"
    saved = {full: sys.modules.get(full) for full in [*fakes, mine]}
    sys.modules.update(fakes)
    sys.modules.pop(mine, None)
    try:
        yield importlib.import_module(mine)
    finally:
        for full, module in saved.items():
            if module is None:
                sys.modules.pop(full, None)
            else:
                sys.modules[full] = module
