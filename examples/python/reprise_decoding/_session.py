# SPDX-License-Identifier: Apache-2.0
"""Drafts for decoding loops of your own, with trees."""

from __future__ import annotations

import ctypes
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _library
from ._arrays import INTP, UINT32, Tokens, address, copied, ends, text, tokens, whole
from ._costs import CostCurve
from ._errors import ArgumentError, OrderError
from ._handle import Owner
from ._memory import Memory
from ._options import HeadCost, bound_of, checked_clock, engine_name, options
from ._statistics import Statistics, parsed

_ROLLBACKS = {"trim": 0, "snapshot": 1, "per_row": 2}
_FINISHES = (None, "eos", "max_tokens", "context_full")


@dataclass(frozen=True)
class Pass:
    """The next batch to run: the pending tokens, then the drafted ones. All arrays are copies."""

    batch: Tokens
    pending: int  #: leading rows that are not in the cache; the last of them is the anchor
    drafted: int  #: rows after the pending ones
    parents: npt.NDArray[np.int32]  #: of each drafted row: the index of a drafted row, or -1 for the anchor
    depths: npt.NDArray[np.uint32]  #: of each drafted row: its position is that of the anchor plus its depth

    def positions(self, cached: int) -> npt.NDArray[np.int64]:
        """Returns the position of each row, if `cached` tokens are in the cache."""
        anchor = cached + self.pending - 1
        return np.concatenate([np.arange(cached, anchor + 1), anchor + self.depths.astype(np.int64)])

    def visible(self, cached: int) -> npt.NDArray[np.bool_]:
        """Returns what each row may attend to: one line for each row, one column for each cached token and each row."""
        mask = np.zeros((len(self.batch), cached + len(self.batch)), np.bool_)
        mask[:, :cached] = True
        for row in range(len(self.batch)):
            before = row - 1 if row < self.pending else self.pending + int(self.parents[row - self.pending])
            if before >= 0:
                mask[row] = mask[before]
            mask[row, cached + row] = True
        return mask


@dataclass(frozen=True)
class Commit:
    """The commit of a pass. All arrays are copies."""

    tokens: Tokens  #: the committed tokens
    rows: npt.NDArray[np.intp]  #: the rows of the batch that stay in the cache, ascending; for a chain, a prefix
    accepted: int  #: committed tokens that were drafted
    restore: bool  #: True: keep no rows, but restore the state from before the pass
    finish: str | None  #: why generation has ended: "eos", "max_tokens" or "context_full"

    @property
    def keep(self) -> int:
        """The number of rows that stay in the cache."""
        return len(self.rows)


class Session(Owner):
    """The state of one sequence, for a decoding loop of your own:

        session.begin(prompt)
        while (step := session.plan(most=16, max_tokens=200, eos=2)) is not None:
            ...run step.batch...
            done = session.commit(picks)
            ...keep done.rows in the cache...

    Options: as for Drafter, and `head_cost`, see HeadCost: without `cost`, the times of a head are learned, too. One
    thread may use a session at a time. A second one gets an OrderError.
    """

    _kind = "session"
    _instead = "fork() returns a second session that continues from this state"
    _generation: weakref.ref[Any] | None = None  # see Generation.begin()

    def __init__(
        self,
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
        given = cost, memory, max_draft, max_bytes, key, saved_costs, engine, vocabulary, salt, head_cost
        self._create(*options(*given))
        self._planned: int | None = None

    def predict(self, ids: Any) -> None:
        """Gives the next begin() a text that the output may repeat: see Drafter.predict()."""
        array = text(ids, "ids")
        self._call("predict", address(array), array.size)

    def begin(
        self,
        ids: Any,
        *,
        cached: int | None = None,
        max_rows: int = 0,
        max_context: int = 0,
        max_depth: int = 0,
        max_leaves: int = 1,
        max_rollback: int = 0,
        widths: Sequence[int] = (),
        rollback: str = "trim",
        pad_token: int | None = None,
    ) -> None:
        """Starts a sequence.

        `cached`: how many leading tokens are in the engine's cache; None: all except the last. The others are pending:
        the first pass runs them. The other arguments say what the engine can do; 0: no bound. `max_leaves`: 1 for
        chains, UNLIMITED for any tree. `widths`: the row counts that a pass with a draft may have; none: any.
        `rollback`: how the engine discards rejected rows: "trim", "snapshot" or "per_row". `pad_token`: fills spare
        rows up to an allowed width.
        """
        array = text(ids, "ids")
        if not isinstance(rollback, str) or rollback not in _ROLLBACKS:
            raise ArgumentError(f'rollback: must be "trim", "snapshot" or "per_row", but is {rollback!r}')
        if isinstance(widths, (str, bytes)) or not isinstance(widths, Iterable):
            raise TypeError(f"widths: must be a list of row counts, but is of the type {type(widths).__name__}")
        allowed = sorted({whole(width, "widths", least=1) for width in widths})
        if len(allowed) > 96:
            raise ArgumentError(f"widths: must be at most 96 row counts, but are {len(allowed)}: leave out some")
        able = _library.Capabilities(
            ctypes.sizeof(_library.Capabilities),
            whole(max_rows, "max_rows"),
            whole(max_context, "max_context"),
            whole(max_depth, "max_depth"),
            whole(max_leaves, "max_leaves", most=_library.UNLIMITED),
            whole(max_rollback, "max_rollback"),
            (ctypes.c_size_t * len(allowed))(*allowed) if allowed else None,
            len(allowed),
            _ROLLBACKS[rollback],
            int(pad_token is not None),
            whole(pad_token, "pad_token", -(2**31), 2**31 - 1) if pad_token is not None else 0,
        )
        self._call("begin", address(array), array.size, _cached(cached), ctypes.byref(able))
        self._planned = None

    def propose_lookup(
        self, most: int | None = None, *, max_tokens: int = 0, max_context: int = 0, eos: Any = ()
    ) -> int:
        """For an engine that also has a draft head or a draft model, before plan().

            wanted = session.propose_lookup(most=16, max_tokens=200, eos=2)
            if wanted:
                ...draft `wanted` tokens that follow session.context...
                session.add_head(drafted, ns)
            step = session.plan()

        Returns how many tokens the head should draft; 0: it should not run. The arguments are those of plan(), which
        then reads none. An open pass is given up.
        """
        limits, asked = self._limits(max_tokens, max_context, eos), ctypes.c_size_t()
        bound = _library.UNLIMITED if most is None else whole(most, "most")
        self._call("propose_lookup", ctypes.byref(limits), bound, ctypes.byref(asked))
        return asked.value

    def add_head(self, ids: Any, ns: int = 0) -> None:
        """Adds the draft of the head. More tokens than it should draft are left out.

        `ns`: how long it took, by the clock of the passes; 0: unknown. An empty draft counts with its time.
        """
        array = tokens(ids, "ids", self._below)
        self._call("add_head", address(array), array.size, whole(ns, "ns"))

    def plan(
        self, most: int | None = None, *, max_tokens: int = 0, max_context: int = 0, eos: Any = ()
    ) -> Pass | None:
        """Returns the next pass, with at most `most` drafted tokens; None if generation has ended.

        `max_tokens`: output tokens. `max_context`: tokens of the sequence. 0: no bound. `eos`: the token that ends
        generation, or several of them. An open pass is given up.
        """
        limits = self._limits(max_tokens, max_context, eos)
        bound = _library.UNLIMITED if most is None else whole(most, "most")
        out = _library.Pass(ctypes.sizeof(_library.Pass))

        def read() -> Pass:
            return Pass(
                copied(out.batch, out.rows),
                out.pending,
                out.drafted,
                copied(out.parents, out.drafted),
                copied(out.depths, out.drafted, UINT32),
            )

        try:
            planned: Pass = self._call("plan", ctypes.byref(limits), bound, ctypes.byref(out), read=read)
        except OrderError as ended:
            if ended.status != _library.FINISHED:
                raise
            self._planned = None
            return None
        self._planned = self._clock()
        return planned

    def commit(self, picks: Any, ns: int | None = None) -> Commit:
        """Commits the open pass. picks[0] is the model's token after the anchor, picks[i] that after drafted row i - 1.

        Of a chain, the picks may end after the first that the draft does not have; of a tree, all are needed. `ns`: how
        long the pass took; None: the time since plan() returned, by `clock`; 0: unknown.
        """
        array = tokens(picks, "picks", self._below)
        if ns is None:
            ns = max(0, self._clock() - self._planned) if self._planned is not None else 0
        out = _library.Commit(ctypes.sizeof(_library.Commit))

        def read() -> Commit:
            return Commit(
                copied(out.tokens, out.count),
                copied(out.rows, out.keep, INTP),
                out.accepted,
                bool(out.restore),
                _FINISHES[out.finish],
            )

        done: Commit = self._call("commit", address(array), array.size, whole(ns, "ns"), ctypes.byref(out), read=read)
        self._planned = None
        return done

    def append(self, ids: Any, *, cached: int | None = None) -> None:
        """Appends tokens that the model did not generate, such as the next turn. `cached`: as in begin()."""
        array = text(ids, "ids")
        self._call("append", address(array), array.size, _cached(cached))

    def truncate(self, count: int) -> None:
        """Removes all but the first `count` tokens."""
        self._call("truncate", whole(count, "count"))

    def rebase(self, ids: Any, *, cached: int | None = None) -> int:
        """Replaces the sequence, and still drafts from the replaced tokens. Returns how many leading tokens are shared.

        Only the rows of the shared tokens are worth keeping in the engine's cache.
        """
        array, shared = text(ids, "ids"), ctypes.c_size_t()
        self._call("rebase", address(array), array.size, _cached(cached), ctypes.byref(shared))
        return shared.value

    def set_cached(self, count: int) -> None:
        """Sets how many leading tokens are in the engine's cache, for example after preemption."""
        self._call("set_cached", whole(count, "count"))

    def fork(self) -> Session:
        """Returns a second session that continues from this state, without the open pass."""
        handle = self._new()
        self._call("fork", ctypes.byref(handle.pointer))
        second = Session.__new__(Session)
        second._own(handle, self._shown)
        second._below = self._below
        second._planned = None
        second._clock = self._clock
        return second

    def keep(self) -> None:
        """Hands the sequence to the memory. begin() does so, too: call it if the request has ended."""
        self._call("keep")

    def report_top_k(self, row: int, likeliest: Any) -> None:
        """Reports the likeliest tokens of a row of the open pass, the likeliest first.

        `row`: 0 for the anchor, i for the drafted row i - 1. Rows that will not be accepted may be reported too.
        """
        array = tokens(likeliest, "likeliest", self._below)
        self._call("report_top_k", whole(row, "row"), address(array), array.size)

    def report_prompt_row(self, position: int, likeliest: Any) -> None:
        """Reports the likeliest tokens of a committed token's row, such as those of the prompt."""
        array = tokens(likeliest, "likeliest", self._below)
        self._call("report_prompt_row", whole(position, "position"), address(array), array.size)

    @property
    def context(self) -> Tokens:
        """All committed tokens."""
        context: Tokens = self._state(lambda state: copied(state.context, state.context_count))
        return context

    @property
    def output(self) -> Tokens:
        """The output since the last begin(), append() or rebase(), without the token that ended it."""
        output: Tokens = self._state(lambda state: copied(state.output, state.output_count))
        return output

    @property
    def cached(self) -> int:
        """How many leading tokens are in the engine's cache."""
        return int(self._state(lambda state: state.cached))

    @property
    def top_k_wanted(self) -> int:
        """The number of likeliest tokens that report_top_k() should be given; 0: none are wanted."""
        return int(self._state(lambda state: state.top_k_wanted))

    @property
    def memory_bytes(self) -> int:
        """The memory of the session."""
        return int(self._state(lambda state: state.memory_bytes))

    @property
    def finish(self) -> str | None:
        """Why generation has ended: "eos", "max_tokens" or "context_full"; None: it has not."""
        return _FINISHES[int(self._state(lambda state: state.finish))]

    @property
    def finished(self) -> bool:
        """True if generation has ended."""
        return self.finish is not None

    @property
    def statistics(self) -> Statistics:
        """The counts since the last begin() or append()."""
        return parsed(self._bytes("statistics"))

    def save_costs(self, engine: str) -> bytes:
        """As Drafter.save_costs()."""
        return self._bytes("save_costs", engine_name(engine))

    def _limits(self, max_tokens: int, max_context: int, eos: Any) -> _library.Limits:
        final = ends(eos, self._below)
        limits = _library.Limits(
            ctypes.sizeof(_library.Limits),
            whole(max_tokens, "max_tokens"),
            whole(max_context, "max_context"),
            final.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)) if final.size else None,
            final.size,
        )
        limits.final = final  # has to outlive the struct
        return limits

    def _state(self, read: Any) -> Any:
        out = _library.State(ctypes.sizeof(_library.State))
        return self._call("state", ctypes.byref(out), read=lambda: read(out))


def _cached(cached: int | None) -> int:
    return _library.UNLIMITED if cached is None else whole(cached, "cached")
