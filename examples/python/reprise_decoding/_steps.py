# SPDX-License-Identifier: Apache-2.0
"""Steps of an engine that names its requests: which slot each request has, and one call of the library for all rows."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._arrays import BELOW, address, tokens
from ._batch import BatchDrafter
from ._errors import OrderError
from ._library import INTERNAL, Row, Step, library
from ._memory import salt_number
from ._options import options

GOES_ON, BEGINS, WAITS = range(3)  # kinds of rows

#: Of a request: the bound on drafted tokens, its salt, and its prediction or None.
Settings = tuple[int, "int | str", Any]


class Buffers:
    """The arrays of a step. They must stay until the step is done."""

    def __init__(self, slots: int) -> None:
        self.rows = (Row * (2 * slots))()
        self.each = list(self.rows)  # taking a struct out of an array takes longer
        self.step = Step(size=ctypes.sizeof(Step), rows=self.rows, now_ns=-1, done=1)
        self.kept: list[Any] = []  # objects that the rows point to
        self.last: Any = None  # the requests and lines of the last step, if all of its rows went on


class Requests:
    """Gives each request a slot of a BatchDrafter. A slot is free again when the engine has its request no more.

    `kept`: options of the batch that hold for all salts, `key` among them. `salt`: that of requests without one.
    `vocabulary`: ids of the model, 0 if they are unknown.
    """

    def __init__(self, drafter: BatchDrafter, kept: dict[str, Any], salt: int | str, vocabulary: int) -> None:
        self._drafter, self._kept, self.salt, self._vocabulary = drafter, kept, salt, vocabulary
        self._slots: dict[int, tuple[int, str, Any]] = {}  # by id(): slot, name and object, which keeps its id
        self._free = list(range(drafter.slots))
        self._salts: list[int | str | None] = [salt] * drafter.slots  # None: unknown after an error
        self._changes = 0  # of the slots
        self._warned = False

    def fill(
        self,
        buffers: Buffers,
        names: Sequence[str],
        known: Mapping[str, Any],
        lines: Sequence[int],
        sampled: Sequence[Any],
        settings: Callable[[Any], Settings],
        prompt: Callable[[int], int],
        alive: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Fills in the rows of a step.

        `known`: the engine's requests by name, an object for each; a row without one drafts nothing. `lines`: where the
        ids of each row are. `sampled`: 0 for a row that has run a part of its prompt. `prompt`: returns the ids of a
        row before its sampled ones. `alive`: returns whether the engine still has a request that `known` has.
        """
        slots, each, step, count = self._slots, buffers.each, buffers.step, len(names)
        requests = [known.get(name) for name in names]
        keys = [*map(id, requests)]
        same = (self._changes, keys, list(lines))
        step.count, step.ended = count, 0
        if all(sampled) and buffers.last == same:  # nearly all steps
            return
        buffers.kept.clear()
        begins = [has and request is not None and key not in slots for has, request, key in zip(sampled, requests, keys)]
        if any(begins):
            self._changes += 1
            ended = [
                key for key, (_, name, request) in slots.items() if known.get(name) is not request or not alive(name)
            ]
            if (short := sum(begins) - len(self._free) - len(ended)) > 0:  # paused requests begin again later
                ended += [key for key in slots if key not in keys and key not in ended][:short]
            for row, key in zip(each[count:], ended):
                row.slot, _, _ = slots.pop(key)
                self._free.append(row.slot)
                self._assign(buffers, row, self.salt)
            step.ended = len(ended)
        for i, (row, request, key) in enumerate(zip(each, requests, keys)):
            row.at, row.kind, row.options, row.prediction = lines[i], GOES_ON, None, None
            if not sampled[i] or request is None or not (key in slots or self._free):
                row.kind, row.slot = WAITS, 0
                continue
            row.most, salt, prediction = settings(request)
            if not begins[i]:
                row.slot = slots[key][0]
                continue
            row.kind, row.slot = BEGINS, self._free.pop()
            slots[key] = row.slot, names[i], request
            self._assign(buffers, row, salt)
            if prediction is not None:
                self._predict(buffers, row, prediction, prompt(i))
        buffers.last = same if all(row.kind == GOES_ON for row in each[:count]) else None

    def failed(self, status: int) -> None:
        """Lets all requests begin again, after a step that may have done only a part of its work."""
        if not self._warned:
            self._warned = True
            warnings.warn(f"reprise: a row had no draft (status {status})", stacklevel=2)
        self._changes += 1
        self._slots.clear()
        self._free = list(range(self._drafter.slots))
        self._salts = [None] * self._drafter.slots

    def _assign(self, buffers: Buffers, row: Row, salt: int | str) -> None:
        row.options = None
        if self._salts[row.slot] == salt:
            return
        number = salt_number(salt, self._kept["key"])
        struct, _ = options(salt=number, vocabulary=self._drafter._below % BELOW, **self._kept)
        buffers.kept.append(struct)
        row.options = ctypes.addressof(struct)
        self._salts[row.slot] = salt

    def _predict(self, buffers: Buffers, row: Row, prediction: Any, prompt: int) -> None:
        try:
            ids = tokens(prediction, "reprise_prediction", self._vocabulary)
        except (TypeError, ValueError, MemoryError):  # an exception would end the engine
            return
        buffers.kept.append(ids)
        row.prediction, row.predicted, row.prompt = address(ids), len(ids), prompt


def run(drafter: BatchDrafter, step: Step) -> int:
    """Runs a step now, and returns its status."""
    try:
        step.batch = drafter._open().pointer
        drafter._alone(library.reprise_batch_step, ctypes.byref(step))
    except OrderError as failed:  # another thread uses the drafter; an exception would end the engine
        step.status = failed.status or INTERNAL
    return int(step.status)
