# SPDX-License-Identifier: Apache-2.0
"""For vLLM: speculative_config={"method": "custom_class", "model": "reprise.vllm.Proposer", ...}."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from ._drafter import Drafter


class Proposer:
    """Drafts for all rows of a batch. vLLM creates it; make a subclass to change the class members.

    vLLM passes no request ids, and a row can belong to another request in the next pass. So each drafter follows the
    text of a row: the row whose text before the pass is the drafter's text. A row without such a drafter is a new
    sequence, and nothing of the text before it is left.
    """

    #: Drafted tokens of a pass, all rows together. With more rows, each row has a smaller share.
    budget: ClassVar[int] = 64
    #: Options of Drafter.
    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, vllm_config: Any) -> None:
        self.most = int(vllm_config.speculative_config.num_speculative_tokens)
        self.max_length = int(vllm_config.model_config.max_model_len)
        self._known: dict[bytes, list[Drafter]] = {}  # by their text
        self._free: list[Drafter] = []
        if _samples_wrongly():
            warnings.warn(
                "vllm: on a processor, this release samples drafted rows at random temperatures, with every drafter: "
                "use temperature=0, or the remedy in docs/engines.md",
                stacklevel=2,
            )

    def load_model(self, *_: Any, **__: Any) -> None:
        """vLLM calls this; there is no model to load."""

    def propose(
        self, sampled_token_ids: Any, num_tokens_no_spec: Any, token_ids_cpu: Any, slot_mappings: Any = None
    ) -> list[list[int]]:
        """Returns a draft for each row. A row without sampled tokens has a part of its prompt still to run."""
        known, self._known = self._known, {}
        rows = [
            (i, token_ids_cpu[i, :length], length - len(sampled))
            for i, sampled in enumerate(sampled_token_ids)
            if sampled and (length := int(num_tokens_no_spec[i])) < self.max_length
        ]
        found = [matching.pop() if (matching := known.get(ids[:before].tobytes())) else None for _, ids, before in rows]
        for left in known.values():
            self._free.extend(left)
        # A pass that also ran prompts or other sequences is no measure of what the rows of one draft cost.
        usual = len(sampled_token_ids) == len(rows) == 1 and None not in found
        now = None if usual else 0
        drafts: list[list[int]] = [[] for _ in sampled_token_ids]
        left_over = self.budget
        for done, ((i, ids, _), drafter) in enumerate(zip(rows, found)):
            if drafter is None:
                drafter = self._free.pop() if self._free else Drafter(**self.options)
                drafter.forget()
            most = min(self.most, left_over // (len(rows) - done), self.max_length - len(ids) - 1)
            drafts[i] = drafter.draft(ids, most, now=now).tolist()
            left_over -= len(drafts[i])
            self._known.setdefault(ids.tobytes(), []).append(drafter)
        return drafts


def _samples_wrongly() -> bool:
    """Returns true if vLLM's code for processors leaves the temperatures of drafted rows unset (release 0.32.0)."""
    try:
        import torch
        from vllm.platforms import current_platform
        from vllm.utils.cpu_triton_utils import _expand_kernel_impl as expand

        temperatures = torch.zeros(1)
        expand(temperatures, torch.ones(1), torch.ones(1, dtype=torch.int32), 0, 1)
        return bool(current_platform.is_cpu()) and float(temperatures[0]) != 1
    except (ImportError, AttributeError, TypeError, RuntimeError):
        return False  # another release, which has other code
