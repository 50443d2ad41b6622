# SPDX-License-Identifier: Apache-2.0
"""For vLLM: speculative_config={"method": "custom_class", "model": "reprise.vllm.Proposer", ...}."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

from ._batch import BatchDrafter

if TYPE_CHECKING:
    from ._options import Options

_MANY = 2**31  # more rows than any pass has


class Proposer:
    """Drafts for all rows of a batch. vLLM creates it; make a subclass to change the class members.

    vLLM passes no request ids, and a row can belong to another request in the next pass. So each slot of the drafter
    follows the text of a row: the row whose text before the pass is the text of the slot. A row without such a slot is
    a new sequence in a free slot, where nothing of the text before it is left.
    """

    #: Options of BatchDrafter.
    options: ClassVar[Options] = {}

    def __init__(self, vllm_config: Any) -> None:
        self.most = int(vllm_config.speculative_config.num_speculative_tokens)
        self.max_length = int(vllm_config.model_config.max_model_len)
        scheduler = getattr(vllm_config, "scheduler_config", None)
        self.drafter = BatchDrafter(int(getattr(scheduler, "max_num_seqs", 64)), **self.options)
        self._known: dict[bytes, list[int]] = {}  # slots by their text
        self._free = list(range(self.drafter.slots))
        self._planned: dict[int, int] = {}  # the rows of each slot in the pass that has run
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
        # A row without a slot has run a part of its prompt, of unknown length: such a pass teaches no cost.
        prompts = len(found) < len(sampled_token_ids) or None in found
        planned = sum(self._planned.get(slot, 1) for slot in found if slot is not None)
        self.drafter.ran(_MANY if prompts else planned)
        texts: dict[int, Any] = {}
        most: dict[int, int] = {}
        owners: dict[int, int] = {}
        for (i, ids, _), slot in zip(rows, found):
            if slot is None:
                if not self._free:
                    continue
                slot = self._free.pop()
                self.drafter.forget(slot)
            texts[slot], most[slot], owners[slot] = ids, min(self.most, self.max_length - len(ids) - 1), i
            self._known.setdefault(ids.tobytes(), []).append(slot)
        drafts: list[list[int]] = [[] for _ in sampled_token_ids]
        for slot, draft in self.drafter.draft(texts, most).items():
            drafts[owners[slot]] = draft.tolist()
        self._planned = {slot: 1 + len(drafts[i]) for slot, i in owners.items()}
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
