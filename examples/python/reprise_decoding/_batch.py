# SPDX-License-Identifier: Apache-2.0
"""Drafts for engines that own the decoding loop and run several sequences in each pass."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from typing import Any

from . import _library
from ._arrays import BELOW, Tokens, address, copied, ends, text, tokens, whole
from ._costs import CostCurve
from ._errors import ArgumentError, OrderError
from ._handle import Owner
from ._memory import Memory
from ._options import HeadCost, bound_of, checked_bytes, checked_clock, engine_name, options
from ._statistics import Statistics, parsed


class BatchDrafter(Owner):
    """Drafts for the slots of an engine that owns the decoding loop and hands over token ids.

    Call draft() before each pass, with all committed tokens of each slot that decodes in it. Every slot compares them
    with the tokens of its last call, as a Drafter does. So a request that ends, is cancelled, is replaced or goes on in
    another slot needs no call. All slots share the rows of a pass: a slot drafts only tokens that are worth their cost
    in a pass of this size.

    `slots`: 1 to 65,536. The other options are those of Drafter, each for a slot, and `head_cost`: see HeadCost.
    `saved_costs` are those of passes of one sequence: pass those of more sequences to load_costs().

    One thread may use a batch at a time. A second one gets an OrderError.
    """

    _kind = "batch"
    _instead = "create another one; a Memory hands on what was seen and learned"

    def __init__(
        self,
        slots: int,
        *,
        cost: CostCurve | float | None = None,
        memory: Memory | None = None,
        salt: int | str = 0,
        max_draft: int = 0,
        max_bytes: int = 0,
        key: int = 0,
        saved_costs: bytes | None = None,
        engine: str | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
        vocabulary: int = 0,
        head_cost: HeadCost | float | None = None,
    ) -> None:
        self._below = bound_of(vocabulary)
        self._clock = checked_clock(clock)
        self._size = whole(slots, "slots", least=1, most=65536)
        self._proposed: Any = None
        given = cost, memory, max_draft, max_bytes, key, saved_costs, engine, vocabulary, salt, head_cost
        struct, shown = options(*given)
        self._create(struct, f"{self._size} slots, {shown}", self._size)

    @property
    def slots(self) -> int:
        """The number of slots."""
        return self._size

    def draft(
        self,
        ids: Mapping[int, Any],
        most: int | Mapping[int, int] = 16,
        conversations: Mapping[int, int] | None = None,
        now: int | None = None,
        after: Mapping[int, int] | None = None,
    ) -> dict[int, Tokens]:
        """Returns a draft for each slot of the next pass: new arrays, possibly empty.

        `ids`: all tokens that the engine has committed, by slot. `most`: upper bound on the drafted tokens, for all
        slots or by slot; 0 for a slot that must not draft. `conversations`: numbers from 1 by slot, as
        Drafter.draft() has one. `now`: as in Drafter.draft(). `after`: for slots whose request goes on, the number of
        tokens that the slot knows: its `ids` are those after them, possibly none. So only new tokens are read. A wrong
        number is refused; a slot of another request must be left out.
        """
        drafts: dict[int, Tokens] = self._ask("draft", self._slots(ids, most, conversations, after), now, self._drafts)
        return drafts

    def propose_lookup(
        self,
        ids: Mapping[int, Any],
        most: int | Mapping[int, int] = 16,
        conversations: Mapping[int, int] | None = None,
        now: int | None = None,
        after: Mapping[int, int] | None = None,
    ) -> dict[int, int]:
        """draft() in two parts, for an engine that also has a draft head or a draft model.

            wanted = batch.propose_lookup(ids)
            for slot, count in wanted.items():
                if count: batch.add_head(slot, ...`count` tokens that follow ids[slot]...)
            drafts = batch.draft_proposed(ns)

        Returns how many tokens the head should draft for each slot; 0: none. Arguments: those of draft().
        """
        array = self._slots(ids, most, conversations, after)
        wanted: dict[int, int] = self._ask("propose_lookup", array, now, self._wanted)
        return wanted

    def add_head(self, slot: int, ids: Any) -> None:
        """Adds the draft of the head for a slot. More tokens than it should draft are left out."""
        array = tokens(ids, "ids", self._below)
        self._call("add_head", self._known(slot), address(array), array.size)

    def draft_proposed(self, ns: int = 0) -> dict[int, Tokens]:
        """Returns the drafts for the slots of propose_lookup(). `ns`: how long the head took for all; 0: unknown."""
        drafts: dict[int, Tokens] = self._alone(self._planned, whole(ns, "ns"))
        return drafts

    def _planned(self, ns: int) -> dict[int, Tokens]:
        array = self._proposed
        if array is None:
            raise OrderError("there is no draft of the lookup: call propose_lookup() first")
        function = _library.library.reprise_batch_draft_proposed
        drafts: dict[int, Tokens] = self._run(
            function, "draft_proposed", (array, len(array), ns), lambda: self._drafts(array)
        )
        return drafts

    def known(self, slot: int, ids: Any) -> int:
        """Returns the number of tokens that a slot knows if `ids` begin with them, or else 0.

        So an engine that has no numbers of requests finds the slot of a text, and can pass this number as `after`.
        """
        array = text(ids, "ids")
        one = _library.Slot(self._known(slot), address(array), array.size)
        self._call("known", ctypes.byref(one), 1)
        return int(one.after)

    def ran(self, rows: int) -> None:
        """Adds rows that the engine has run since draft(), of all kinds.

        Call it if a pass can have other rows than one for each slot and one for each drafted token, such as those of a
        prompt. The time of such a pass teaches no cost.
        """
        self._call("ran", whole(rows, "rows"))

    def verified(self, slot: int, drafted: int) -> None:
        """Reports that the engine has run only the first `drafted` tokens of the last draft of a slot."""
        self._call("verified", self._known(slot), whole(drafted, "drafted"))

    def stop_at(self, slot: int, eos: Any) -> None:
        """Sets the ids that end the generations of a slot, as Drafter.stop_at(). Call it again for other ids."""
        array = ends(eos, self._below)
        self._call("stop_at", self._known(slot), address(array), array.size)

    def forget(self, slot: int) -> None:
        """Makes the next ids of a slot begin a new sequence. Call it when a request has ended.

        The memory has the sequence then. It gets it also if the slot has other ids, is assigned, or is in none of 64
        calls.
        """
        self._call("forget", self._known(slot))

    def predict(self, slot: int, ids: Any) -> None:
        """As forget(), with a text that the next request may repeat: see Drafter.predict(). Call it after assign()."""
        array = text(ids, "ids")
        self._call("predict", self._known(slot), address(array), array.size)

    def assign(
        self, slot: int, memory: Memory | None = None, *, salt: int | str = 0, max_bytes: int = 0, key: int = 0
    ) -> None:
        """Makes the next ids of a slot begin a new sequence with these options, such as the salt of its tenant.

        Options of the batch that are not given again do not hold for the slot any more, except costs, `max_draft` and
        `vocabulary`. A request that goes on in another slot needs a call there, too.
        """
        struct, _ = options(memory=memory, salt=salt, max_bytes=max_bytes, key=key, vocabulary=self._below % BELOW)
        self._call("assign", self._known(slot), ctypes.byref(struct))

    def report_top_k(self, slot: int, row: int, likeliest: Any) -> None:
        """Reports the likeliest tokens of a row of a slot's part of the pass, the likeliest first.

        Call it between draft() and the next draft(). `row`: 0 for the last token before the draft, i for drafted token
        i - 1. Rows that will not be accepted may be reported too, and a row that the pass does not have is ignored.
        """
        array = tokens(likeliest, "likeliest", self._below)
        self._call("report_top_k", self._known(slot), whole(row, "row"), address(array), array.size)

    def statistics(self, slot: int) -> Statistics:
        """The counts of all sequences of a slot together."""
        return parsed(self._bytes("statistics", self._known(slot)))

    def save_costs(self, engine: str, sequences: int = 1) -> bytes:
        """Returns the learned costs of passes of about this many sequences, for load_costs().

        There is one curve for each power of two. `engine`: as in Drafter.save_costs(). The result does not contain
        `sequences`, so use a name for each number. With 1, the result is also for `saved_costs` of a drafter.
        """
        return self._bytes("save_costs", whole(sequences, "sequences", least=1), engine_name(engine))

    def load_costs(self, saved: bytes, engine: str, sequences: int = 1) -> None:
        """Starts the costs of passes of about this many sequences again, from the result of save_costs().

        Has no effect in a batch that was created with `cost`.
        """
        held = checked_bytes(saved, "saved")
        self._call("load_costs", whole(sequences, "sequences", least=1), engine_name(engine), held, len(held))

    def _ask(self, name: str, array: Any, now: int | None, read: Callable[[Any], Any]) -> Any:
        at = self._clock() if now is None else whole(now, "now")
        return self._call(name, array, len(array), at, read=lambda: read(array))

    def _wanted(self, array: Any) -> dict[int, int]:
        self._proposed = array
        return {entry.slot: entry.drafted for entry in array}

    def _drafts(self, array: Any) -> dict[int, Tokens]:
        self._proposed = None
        return {entry.slot: copied(entry.draft, entry.drafted) for entry in array}

    def _slots(
        self,
        ids: Mapping[int, Any],
        most: int | Mapping[int, int],
        conversations: Mapping[int, int] | None,
        after: Mapping[int, int] | None,
    ) -> Any:
        if not isinstance(ids, Mapping):
            raise TypeError(f"ids: must be a dict of token ids by slot, but is of the type {type(ids).__name__}")
        arrays: list[Any] = []
        array: Any = (_library.Slot * len(ids))()
        for entry, (slot, given) in zip(array, ids.items()):
            entry.slot = self._known(slot)
            arrays.append(text(given, f"ids[{slot}]"))
            if after is not None and slot in after:
                entry.after = whole(after[slot], f"after[{slot}]", least=1)
            elif not arrays[-1].size:
                raise ArgumentError(f"ids[{slot}]: is empty: pass at least one token, or leave out the slot")
            entry.ids, entry.count = address(arrays[-1]), arrays[-1].size
            entry.most = min(whole(_of_slot(most, slot, "most") if isinstance(most, Mapping) else most, "most"), 2**31)
            if conversations is not None:
                number = _of_slot(conversations, slot, "conversations")
                entry.conversation = whole(number, f"conversations[{slot}]", least=1, most=2**64 - 1)
        array.arrays = arrays  # they have to outlive the call
        return array

    def _known(self, slot: int) -> int:
        return whole(slot, "slot", most=self._size - 1)


def _of_slot(numbers: Mapping[int, int], slot: int, name: str) -> int:
    if not isinstance(numbers, Mapping):
        raise TypeError(f"{name}: must be a dict of numbers by slot, but is of the type {type(numbers).__name__}")
    if slot not in numbers:
        raise ArgumentError(f"{name}: has no number for slot {slot}, which is in `ids`")
    return numbers[slot]
