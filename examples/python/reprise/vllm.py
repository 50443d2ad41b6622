# SPDX-License-Identifier: Apache-2.0
"""For vLLM: speculative_config={"method": "custom_class", "model": "reprise.vllm.Proposer", ...}."""

from __future__ import annotations

import warnings
from ctypes import c_int32
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ._arrays import BELOW, Tokens, address, has_outside, stops, whole
from ._batch import BatchDrafter
from ._library import Slot
from ._options import LONGEST

if TYPE_CHECKING:
    from ._options import Options

_MANY = 2**31  # more rows than any pass has


class Proposer:
    """Drafts for all rows of a batch. vLLM creates it; make a subclass to change the class members.

    vLLM passes no request ids, and a row can belong to another request in the next pass. So each slot of the drafter
    follows a text: a row has the slot whose tokens its text begins with. Rows may take turns: a slot keeps its text
    while no row has it, until all slots are in use and it is the least recently used one. Then a row with a new text
    gets it, where nothing of the text before is left. A row with ids that are no tokens, such as -1, drafts nothing.

    Nothing is drafted after an EOS token of the model. vLLM does not pass on the parameters of a request: those with
    `ignore_eos` or `min_tokens` have shorter drafts there, and their `stop_token_ids` and `max_tokens` are not known.
    """

    #: Options of BatchDrafter. The default of `max_draft` is num_speculative_tokens.
    options: ClassVar[Options] = {}
    #: The tokens that end a generation; None: those of the model's configuration and generation_config.json.
    eos: ClassVar[Any] = None

    def __init__(self, vllm_config: Any) -> None:
        most = vllm_config.speculative_config.num_speculative_tokens
        self.most = whole(most, "num_speculative_tokens", most=LONGEST)
        self.max_length = int(vllm_config.model_config.max_model_len)
        scheduler = getattr(vllm_config, "scheduler_config", None)
        options: Options = {"max_draft": self.most, **self.options}
        self.drafter = BatchDrafter(int(getattr(scheduler, "max_num_seqs", 64)), **options)
        eos = _eos(vllm_config.model_config, self.drafter._below) if self.eos is None else self.eos
        for slot in range(self.drafter.slots):
            self.drafter.stop_at(slot, eos)
        self._free = list(range(self.drafter.slots))
        self._ends: dict[int, tuple[int, bytes]] = {}  # how the text of each slot ends, in order of their last use
        self._slots: dict[tuple[int, bytes], list[int]] = {}  # the slots by these ends
        self._planned: dict[int, int] = {}  # the rows of each slot in its last pass
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
        drafts: list[list[int]] = [[] for _ in sampled_token_ids]
        rows = [
            _Row(i, length, length - len(sampled))
            for i, sampled in enumerate(sampled_token_ids)
            if len(sampled) and (length := int(num_tokens_no_spec[i])) < self.max_length
        ]
        table = _table(token_ids_cpu)
        self._find(rows, table)
        good = [row for row in rows if self._are_tokens(table[row.number, row.known : row.length])]
        # A row without a slot has run a part of its prompt, of unknown length: such a pass teaches no cost. A row
        # without new tokens has not run: the call is repeated before the pass.
        begun = len(good) < len(drafts) or any(row.slot < 0 for row in good)
        ran = sum(self._planned[row.slot] for row in good if row.slot >= 0 and row.known < row.length)
        self.drafter.ran(_MANY if begun else ran)
        for row in good:
            if row.slot >= 0:
                self._remove(row.slot)
        for row in good:
            if row.slot < 0 and (self._free or self._ends):
                row.slot = self._free.pop() if self._free else self._remove(next(iter(self._ends)))
                self.drafter.forget(row.slot)
        good = [row for row in good if row.slot >= 0]
        for row in good:
            end = self._ends[row.slot] = _end(table[row.number], row.length)
            self._slots.setdefault(end, []).append(row.slot)
        array = _entries(good, table)
        for entry, row in zip(array, good):
            entry.most = min(self.most, self.max_length - row.length - 1)
            entry.ids, entry.count, entry.after = entry.ids + 4 * row.known, row.length - row.known, row.known

        def read() -> None:
            for entry, row in zip(array, good):
                count = entry.drafted
                self._planned[row.slot] = 1 + count
                if count:
                    drafts[row.number] = (c_int32 * count).from_address(entry.draft)[:]

        self.drafter._call("draft", array, len(array), self.drafter._clock(), read=read)
        return drafts

    def _find(self, rows: list[_Row], table: Any) -> None:
        """Gives each row the slot whose tokens its text begins with, if there is one."""
        guessed: list[_Row] = []
        taken: set[int] = set()
        for row in rows:
            ids = table[row.number]
            for length in (row.before, row.length):  # the second: the call is repeated
                slots = self._slots.get(_end(ids, length), ())
                row.slot = next((slot for slot in slots if slot not in taken), -1)
                if row.slot >= 0:
                    taken.add(row.slot)
                    guessed.append(row)
                    break
        array = _entries(guessed, table)
        self.drafter._call("known", array, len(array))
        for row, entry in zip(guessed, array):
            row.known = entry.after
            if not row.known:
                taken.remove(row.slot)
                row.slot = -1
        for row in rows:
            if row.slot < 0:  # a new text, a wrong guess, or passes without a call
                ids = table[row.number, : row.length]
                for slot, end in self._ends.items():
                    if slot not in taken and row.known < end[0] <= row.length and end == _end(ids, end[0]):
                        row.known, row.slot = max((row.known, row.slot), (self.drafter.known(slot, ids), slot))
                taken.add(row.slot)

    def _are_tokens(self, ids: Any) -> bool:
        if len(ids) > 100:
            return not has_outside(ids, self.drafter._below)
        few = ids.tolist()
        return not few or (min(few) >= 0 and max(few) < self.drafter._below)

    def _remove(self, slot: int) -> int:
        """Makes a slot one that no row can have, and returns it."""
        end = self._ends.pop(slot)
        self._slots[end].remove(slot)
        if not self._slots[end]:
            del self._slots[end]
        return slot


class _Row:
    """A row of the batch."""

    __slots__ = ("number", "length", "before", "slot", "known")

    def __init__(self, number: int, length: int, before: int) -> None:
        self.number, self.length, self.before = number, length, before  # tokens now, and before the pass
        self.slot = -1  # none
        self.known = 0  # tokens that the slot knows


def _eos(model: Any, below: int) -> Tokens:
    """Returns the tokens that end generations by the files of the model. vLLM asks its tokenizer, which has the same."""
    configs = [getattr(model, name, None) for name in ("hf_config", "hf_text_config")]
    found = [getattr(config, "eos_token_id", None) for config in configs]
    found.append(getattr(model, "try_get_generation_config", dict)().get("eos_token_id"))
    return stops(np.hstack([ids for ids in found if ids is not None] or [[]]), below)


def _table(ids: Any) -> npt.NDArray[np.int32]:
    """Returns the ids of all rows. Those that no token can have are -1."""
    array = np.asarray(ids)
    if array.dtype != np.int32:
        array = np.where((array < 0) | (array >= BELOW), -1, array).astype(np.int32)
    return array if array.strides[1] == 4 else np.ascontiguousarray(array)


def _entries(rows: list[_Row], table: npt.NDArray[np.int32]) -> Any:
    """Returns the structs of rows that have slots."""
    array, first, step = (Slot * len(rows))(), address(table), table.strides[0]
    for entry, row in zip(array, rows):
        entry.slot, entry.ids, entry.count = row.slot, first + row.number * step, row.length
    return array


def _end(ids: Any, length: int) -> tuple[int, bytes]:
    """Returns the length and the last tokens of a part of a text, which tell most texts apart."""
    return length, ids[max(0, length - 4) : length].tobytes()


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
