# SPDX-License-Identifier: Apache-2.0
"""Settings and counts of one request, in engines that have no arguments for them."""

from __future__ import annotations

import contextlib
import contextvars
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ._arrays import Tokens, text, whole
from ._handle import Lock
from ._memory import flag, salt_number
from ._options import LONGEST
from ._statistics import Statistics, summed


class Request:
    """The settings of the requests in a `with` block of request(), and their counts."""

    def __init__(
        self, enabled: bool = True, max_draft: int = 0, salt: int | str | None = None, prediction: Any = None
    ) -> None:
        self.enabled, self.max_draft = flag(enabled, "enabled"), whole(max_draft, "max_draft", most=LONGEST)
        self.salt = None if salt is None else salt_number(salt)
        self._prediction = None if prediction is None else text(prediction, "prediction").copy()
        self._lock = Lock("Request", waits=True)
        self._counts: Counter[str] = Counter()
        self._ends: list[Callable[[], object]] = []

    @property
    def statistics(self) -> Statistics:
        """The counts of the requests that have ended, at the latest when the block has ended."""
        return summed(self._lock.alone(dict, self._counts))

    def most(self, most: int) -> int:
        """Returns the upper bound on drafted tokens, if that of the adapter is `most`."""
        return min(most, self.max_draft or most) if self.enabled else 0

    def predict(self, drafter: Any, sampled: Any = ()) -> None:
        """Gives the prediction to the first drafter or session. Call it just before the sequence begins.

        `sampled`: tokens of the output that the sequence begins with.
        """
        prediction, self._prediction = self._prediction, None
        if prediction is not None:
            drafter.predict(rest(prediction, sampled))

    def at_end(self, run: Callable[[], object]) -> None:
        """Calls a function of an adapter at the end of the block."""
        self._ends.append(run)

    def add(self, counts: Counter[str]) -> None:
        """Adds the counts of a request that has ended."""
        if self is not OTHER:
            self._lock.alone(self._counts.update, counts)


def rest(prediction: Tokens, sampled: Any) -> Tokens:
    """Returns the part of a prediction after the sampled tokens, if it begins with them, or else all."""
    count = len(sampled)
    return prediction[count:] if np.array_equal(prediction[:count], sampled) else prediction


OTHER = Request()  # all requests outside a block
# Of each block a reference to a function that its frame owns: an exception of a signal handler leaves no block open.
_current: contextvars.ContextVar[Callable[[], Callable[[], Request] | None]]
_current = contextvars.ContextVar("request", default=lambda: None)


def current() -> Request:
    """Returns the request of the innermost block of this thread or task."""
    block = _current.get()()
    return block() if block is not None else OTHER


@contextlib.contextmanager
def request(
    *, enabled: bool = True, max_draft: int = 0, salt: int | str | None = None, prediction: Any = None
) -> Iterator[Request]:
    """Sets what holds for the requests of this thread or task in the `with` block, and counts them:

        with reprise_decoding.request(max_draft=4, salt="customer") as one:
            llama("...")
        print(one.statistics)

    For llama-cpp-python, transformers, mlx-lm and onnxruntime-genai. Read a stream inside the block, because the engine
    runs its passes while you read. A thread that the block starts is outside: let it have a block of its own.

    `enabled`: False turns drafts off. `max_draft`: upper bound on drafted tokens of a pass, at most 64; 0: that of the
    adapter. The smaller bound holds. `salt`: a number or a name for the party that may see the text: drafts come from
    text of this salt in the memory of the adapter, and the requests are left to it; None: the salt of its options.
    `prediction`: the token ids of a text that the output may repeat, such as the old version of a file to rewrite. The
    first request of the block drafts from it, and no memory gets it. None: there is none.
    """
    one, before, change = Request(enabled, max_draft, salt, prediction), _current.get(), None

    def block() -> Request:
        return one

    try:
        change = _current.set(weakref.ref(block))
        yield one
    finally:
        if change is None:  # an exception of a signal handler came before or after set()
            _current.set(before)
        else:
            with contextlib.suppress(ValueError):  # a generator may end in another context than it began
                _current.reset(change)
        while one._ends:
            one._ends.pop()()


def bound(extra: Mapping[str, Any], most: int) -> int:
    """Returns the upper bound on drafted tokens of a request of a server, from entries that its client has sent.

    An entry with another kind of value has no effect, because an exception would end the engine.
    """
    told, enabled = extra.get("reprise_max_draft"), extra.get("reprise_enabled")
    if isinstance(told, (int, float)) and told >= 1:
        most = int(min(most, told))
    return 0 if isinstance(enabled, (int, float)) and not enabled else most


def counts(drafter: Any) -> Counter[str]:
    """Returns the whole numbers among the counts of a drafter or a session."""
    return Counter({name: value for name, value in drafter.statistics.fields.items() if isinstance(value, int)})
