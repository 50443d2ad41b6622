# SPDX-License-Identifier: Apache-2.0
"""For llama-cpp-python: Llama(model_path=..., draft_model=DraftModel(), logits_all=True)."""

from __future__ import annotations

from typing import Any

from llama_cpp.llama_speculative import LlamaDraftModel

from ._arrays import Tokens
from ._drafter import Drafter


class DraftModel(LlamaDraftModel):  # type: ignore[misc]
    """Drafts for one Llama object. `most`: upper bound on drafted tokens of a pass. `options`: those of Drafter.

    The engine calls it before each pass, with all committed tokens. `drafter` has the statistics and the switch.
    """

    def __init__(self, most: int = 16, **options: Any) -> None:
        self.most = most
        self.drafter = Drafter(**options)

    def __call__(self, input_ids: Any, /, **_: Any) -> Tokens:
        return self.drafter.draft(input_ids, self.most)
