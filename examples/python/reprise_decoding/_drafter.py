# SPDX-License-Identifier: Apache-2.0
"""Drafts for engines that own the decoding loop."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _library
from ._arrays import Tokens, address, ends, text, whole
from ._costs import CostCurve
from ._errors import error
from ._handle import Owner
from ._memory import Memory
from ._options import bound_of, checked_clock, engine_name, options
from ._statistics import Statistics, parsed

_INT32 = np.dtype(np.int32)
_BYTE = ctypes.c_char
_LONGEST = 4096  # no draft has as many tokens


class Drafter(Owner):
    """Drafts for one sequence at a time of an engine that owns the decoding loop and hands over token ids.

    Call draft() before each pass, with all tokens that the engine has committed. The drafter compares them with the
    tokens of the last call, and so finds out what the pass has accepted. Other tokens begin a new sequence: of the text
    before it, nothing is left. A pass whose tokens no later call shows counts as lost, and losses shorten later drafts:
    call draft(ids, most=0) once more with the final ids of a request if you can.

    `cost`: the costs of passes, if they are known; a number is that of CostCurve.linear(). Without it, they are learned
    from the times between the calls.
    `memory`, `salt`: what is kept between requests, and the parties that share its text. `max_draft`: upper bound on
    drafted tokens in any pass, at most 64; 0: that of `most`, up to 64. `max_bytes`: upper bound on the memory of the
    index; 0: none. `key`: secret and random if the text is not trusted.
    `saved_costs`, `engine`: what save_costs() returned, and the name that it was given. `clock`: returns nanoseconds,
    and does not go back. If the model runs on the processor, and other programs do too, time.process_time_ns leaves out
    the waits for them. `vocabulary`: the number of logits in a row of the model's output; 0: unknown. Negative ids and
    those from this number on are placeholders, for example of images: they are never drafted, and no match contains
    one.

    One thread may use a drafter at a time. A second one gets an OrderError.
    """

    _kind = "follower"
    _instead = "create another one; a Memory hands on what was seen and learned"

    #: False turns drafting off, for example for one request. Text and times of passes are still followed.
    enabled: bool

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
    ) -> None:
        self._below = bound_of(vocabulary)
        self._clock = checked_clock(clock)
        self._create(*options(cost, memory, max_draft, max_bytes, key, saved_costs, engine, vocabulary, salt))
        self.enabled = True
        self._draft = _library.library.reprise_follower_draft_after
        self._pointer, self._count = ctypes.c_void_p(), ctypes.c_size_t()
        self._results = ctypes.byref(self._pointer), ctypes.byref(self._count)
        # A view of the library's buffer. It is read only after the library has returned the same address again.
        self._view: tuple[int | None, Tokens] = None, np.empty(0, np.int32)

    def draft(
        self, ids: Any, most: int = 16, conversation: int | None = None, now: int | None = None, after: int = 0
    ) -> Tokens:
        """Returns at most `most` tokens that may follow `ids`: a new array, possibly empty.

        `ids`: all tokens that the engine has committed: an array or a list of integers. A contiguous array of 32-bit
        integers is read without a copy. `most`: 0 for a pass without a draft; call draft() before that pass too.
        `conversation`: a number from 1 for the conversation, in every call or in none. With it, changed text of the
        same conversation is drafted from; without it, changed text is a new sequence. `now`: nanoseconds on a clock
        that does not go back; None: those of `clock`; 0: unknown, so that the pass teaches no cost. `after`: if the
        sequence goes on, the number of tokens of the last call: `ids` are those after them, possibly none. So only new
        tokens are read. A wrong number is refused. 0: `ids` are all.
        """
        # A call has to cost a few microseconds, so the usual arguments take the shortest way.
        if type(ids) is not np.ndarray or ids.dtype is not _INT32 or ids.ndim != 1:
            ids = text(ids, "ids")
        try:
            first: Any = ctypes.byref(_BYTE.from_buffer(ids))
        except (TypeError, ValueError, BufferError):  # read-only, empty, or with gaps
            ids = np.ascontiguousarray(ids)
            first = address(ids)
        if type(most) is not int or not 0 <= most < 2**31:
            most = min(whole(most, "most"), 2**31)
        if conversation is None:
            conversation = 0
        else:
            conversation = whole(conversation, "conversation", least=1, most=2**64 - 1)
        if now is None:
            now = self._clock()
        else:
            now = whole(now, "now")
        if type(after) is not int or after < 0:
            after = whole(after, "after")
        most = most if self.enabled else 0
        drafted: Tokens = self._alone(self._read, first, ids.size, after, most, now, conversation)
        return drafted

    def _read(self, *arguments: Any) -> Tokens:
        pointer = self._open().pointer
        status = self._draft(pointer, *arguments, *self._results)
        if status:
            raise error(status, self._error(pointer).contents, "draft")
        count = self._count.value
        if not count:
            return np.empty(0, np.int32)
        at, view = self._view
        if self._pointer.value != at:
            at = self._pointer.value or 0
            view = np.ctypeslib.as_array((ctypes.c_int32 * _LONGEST).from_address(at))
            self._view = at, view  # both at once, because a signal handler may raise an exception between two calls
        return view[:count].copy()

    def verified(self, drafted: int) -> None:
        """Reports that the engine has run only the first `drafted` tokens of the last draft.

        Call it before the next draft(). Without it, the tokens that did not run count as rejected.
        """
        self._call("verified", whole(drafted, "drafted"))

    def stop_at(self, eos: Any) -> None:
        """Sets the ids that end a generation, one or several: nothing is drafted after them.

        They hold from the next draft on, for all sequences. Ids that follow such an end anyway are a new turn.
        """
        array = ends(eos, self._below)
        self._call("stop_at", address(array), array.size)

    def forget(self) -> None:
        """Makes the next draft begin a new sequence. Call it when a request has ended: the memory has it then."""
        self._call("forget")

    def predict(self, ids: Any) -> None:
        """As forget(), with a text that the next sequence may repeat, such as the old version of a file to rewrite.

        The next sequence alone drafts from it: its first draft continues with the first of `ids`, so leave out output
        that is there already. It is copied, and no memory gets it. Several calls add several texts.
        """
        array = text(ids, "ids")
        self._call("predict", address(array), array.size)

    @property
    def statistics(self) -> Statistics:
        """The counts of all sequences together."""
        return parsed(self._bytes("statistics"))

    def save_costs(self, engine: str) -> bytes:
        """Returns the learned costs of passes, for `saved_costs` of a later drafter or session.

        `engine`: a name for the engine, the model and the machine, at most 100 bytes long.
        """
        return self._bytes("save_costs", engine_name(engine))
