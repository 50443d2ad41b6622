# SPDX-License-Identifier: Apache-2.0
"""Drafts for engines that own the decoding loop and run several sequences in each pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from . import _library
from ._arrays import Tokens, address, copied, tokens, whole
from ._costs import CostCurve
from ._handle import Owner
from ._history import History
from ._options import checked_clock, engine_name, options
from ._statistics import Statistics, parsed


class BatchDrafter(Owner):
    """Drafts for the slots of an engine that owns the decoding loop and hands over token ids.

    Call draft() before each pass, with all committed tokens of each slot that decodes in it. Every slot compares them
    with the tokens of its last call, as a Drafter does. So a request that ends, is cancelled, is replaced or goes on in
    another slot needs no call. All slots share the rows of a pass: a slot drafts only tokens that are worth their cost
    in a pass of this size.

    `slots`: 1 to 65,536. The other options are those of Drafter. Saved costs are those of passes of one sequence.

    One thread may use a batch at a time. A second one gets an OrderError.
    """

    _kind = "batch"

    def __init__(
        self,
        slots: int,
        *,
        cost: CostCurve | None = None,
        history: History | None = None,
        max_draft: int = 0,
        max_bytes: int = 0,
        key: int = 0,
        saved_costs: bytes | None = None,
        engine: str | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._clock = checked_clock(clock)
        self._size = whole(slots, "slots", least=1, most=65536)
        self._create(*options(cost, history, max_draft, max_bytes, key, saved_costs, engine), self._size)

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
    ) -> dict[int, Tokens]:
        """Returns a draft for each slot of the next pass: new arrays, possibly empty.

        `ids`: all tokens that the engine has committed, by slot. `most`: upper bound on the drafted tokens, for all
        slots or by slot; 0 for a slot that must not draft. `conversations`: numbers from 1 by slot, as
        Drafter.draft() has one. `now`: as in Drafter.draft().
        """
        arrays, array = [], (_library.Slot * len(ids))()  # the arrays have to outlive the call
        for entry, (slot, text) in zip(array, ids.items()):
            arrays.append(tokens(text, f"ids[{slot}]"))
            entry.slot = self._known(slot)
            entry.ids, entry.count = address(arrays[-1]), arrays[-1].size
            entry.most = min(whole(most[slot] if isinstance(most, Mapping) else most, "most"), 2**31)
            if conversations is not None:
                entry.conversation = whole(conversations[slot], "conversations", least=1, most=2**64 - 1)
        at = self._clock() if now is None else whole(now, "now")

        def read() -> dict[int, Tokens]:
            return {entry.slot: copied(entry.draft, entry.drafted) for entry in array}

        drafts: dict[int, Tokens] = self._call("draft", array, len(array), at, read=read)
        return drafts

    def ran(self, rows: int) -> None:
        """Adds rows that the engine has run since draft(), of all kinds.

        Call it if a pass can have other rows than one for each slot and one for each drafted token, such as those of a
        prompt. The time of such a pass teaches no cost.
        """
        self._call("ran", whole(rows, "rows"))

    def forget(self, slot: int) -> None:
        """Makes the next ids of a slot begin a new sequence."""
        self._call("forget", self._known(slot))

    def statistics(self, slot: int) -> Statistics:
        """The counts of all sequences of a slot together."""
        return parsed(self._bytes("statistics", self._known(slot)))

    def save_costs(self, engine: str) -> bytes:
        """Returns the learned costs of passes of one sequence. See Drafter.save_costs()."""
        return self._bytes("save_costs", engine_name(engine))

    def _known(self, slot: int) -> int:
        return whole(slot, "slot", most=self._size - 1)
