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
    """The call is not possible now: for example a commit without a plan, or a handle that another thread is using."""


class NoMemoryError(Error, MemoryError):
    """There is no memory for the call. The object is as it was before."""


_CLASSES: dict[int, type[Error]] = {
    _library.OUT_OF_MEMORY: NoMemoryError,
    _library.NOT_BEGUN: OrderError,
    _library.NOT_PLANNED: OrderError,
    _library.FINISHED: OrderError,
    _library.INTERNAL: Error,
}

# The arguments that these codes refuse.
_ARGUMENTS = {1: "ids", 2: "ids", 3: "cached", 11: "picks", 14: "ids"}


def error(status: int, described: Any, call: str) -> Error:
    """Returns the exception for a status. `described`: the reprise_error of the call; `call`: its name."""
    value, limit, text = 0, 0, f"error {status}"
    if described.status == status and described.message:
        value, limit = described.value, described.limit
        text = described.message.decode().replace("reprise_session_", "Session.")
        if limit:
            text += f" (found {value}, the limit is {limit})"
        elif value:
            text += f" (found {value})"
    raised = _CLASSES.get(status, ArgumentError)(f"{_ARGUMENTS.get(status, call)}: {text}")
    raised.status, raised.value, raised.limit = status, value, limit
    return raised
