# SPDX-License-Identifier: Apache-2.0
"""Exceptions for the status codes of the library."""

from __future__ import annotations

from typing import Any

from . import _library


class Error(Exception):
    """An error of the library. The text says what is wrong and what to do."""

    #: The code of the error: a value of reprise_status in reprise.h.
    status: int = 0
    #: The refused number and the limit that it violates; 0: none.
    value: int = 0
    limit: int = 0


class ArgumentError(Error, ValueError):
    """An argument has a value that cannot work."""


class OrderError(Error, RuntimeError):
    """The call is not possible now: for example a commit without a plan, or an object that another thread is using."""


class NoMemoryError(Error, MemoryError):
    """There is no memory for the call. The object is as it was before."""


_CLASSES: dict[int, type[Error]] = {
    _library.OUT_OF_MEMORY: NoMemoryError,
    _library.NOT_BEGUN: OrderError,
    _library.NOT_PLANNED: OrderError,
    _library.FINISHED: OrderError,
    _library.INTERNAL: Error,
}

# The arguments that calls refuse, and those that codes refuse in all other calls.
_BY_CALL = {
    "truncate": "count",
    "set_cached": "count",
    "report_top_k": "row",
    "report_prompt_row": "position",
    "load": "data",
    "load_costs": "saved",
    "fork": "fork",  # it has no arguments
}
_BY_CODE = {1: "ids", 2: "ids", 3: "cached", 4: "cached", 11: "picks", 13: "saved_costs", 14: "ids"}

# Words of the library, and those of this package for them.
_WORDS = (
    ("the bytes that SnapshotWriter made", "the bytes that were saved"),
    ("write it with SnapshotWriter, which never does", "save it again on this machine"),
    ("max_bytes of the table", "next_token_bytes"),
    ("reprise_session_", "Session."),
    ("reprise_limits.", ""),
    ("HistoryOptions::", ""),
    ("MemoryOptions::", ""),
    ("Capabilities::", ""),
    ("pass all ids after 0", "pass that number, or all ids without `after`"),
    ("pass_ns", "ns"),
    ("now_ns", "now"),
    ("the handle", "the object"),
)


def error(status: int, described: Any, call: str) -> Error:
    """Returns the exception for a status. `described`: the reprise_error of the call; `call`: its name."""
    value, limit, text = 0, 0, f"error {status}"
    if described.status == status and described.message:
        value, limit = described.value, described.limit
        text = described.message.decode()
        for theirs, ours in _WORDS:
            text = text.replace(theirs, ours)
        if status != _library.BAD_SNAPSHOT and value:
            text += f" (found {value}, the limit is {limit})" if limit else f" (found {value})"
    kind = _CLASSES.get(status, ArgumentError)
    name = (_BY_CALL.get(call) or _BY_CODE.get(status, call)) if kind is ArgumentError else call
    if text.startswith("`after` "):
        name, text = "after", text[len("`after` ") :]
    raised = kind(f"{name}: {text}")
    raised.status, raised.value, raised.limit = status, value, limit
    return raised
