# SPDX-License-Identifier: Apache-2.0
"""The options that drafters, batches and sessions share."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from . import _library
from ._arrays import whole
from ._costs import CostCurve
from ._handle import Owner
from ._history import History


def options(
    cost: CostCurve | None,
    history: History | None,
    max_draft: int,
    max_bytes: int,
    key: int,
    saved_costs: bytes | None,
    engine: str | None,
) -> tuple[Any, list[Owner]]:
    """Returns the struct, and the objects that it refers to."""
    for name, value, kind in (("cost", cost, CostCurve), ("history", history, History)):
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"{name}: must be a {kind.__name__}, but is of the type {type(value).__name__}")
        if value is not None and value._closed:
            raise ValueError(f"{name}: it has been closed")
    if saved_costs is not None:
        checked_bytes(saved_costs, "saved_costs")
    struct = _library.Options(
        ctypes.sizeof(_library.Options),
        cost._handle.pointer if cost is not None else None,
        history._handle.pointer if history is not None else None,
        whole(max_draft, "max_draft"),
        whole(max_bytes, "max_bytes"),
        whole(key, "key", most=2**64 - 1),
        saved_costs,
        len(saved_costs or b""),
        engine_name(engine) if engine is not None else None,
    )
    return struct, [owner for owner in (cost, history) if owner is not None]


def checked_bytes(value: bytes, name: str) -> bytes:
    """Returns `value`, which must be bytes. `name`: for errors."""
    if not isinstance(value, bytes):
        raise TypeError(f"{name}: must be bytes, but is of the type {type(value).__name__}")
    return value


def checked_clock(clock: Callable[[], int]) -> Callable[[], int]:
    """Returns a clock that can be called and returns an integer."""
    if not callable(clock):
        raise TypeError(f"clock: must be a function, but is of the type {type(clock).__name__}")
    whole(clock(), "clock", most=2**63 - 1)
    return clock


def engine_name(engine: str) -> bytes:
    """Returns the name of an engine as the library takes it."""
    if not isinstance(engine, str):
        raise TypeError(f"engine: must be a str, but is of the type {type(engine).__name__}")
    return engine.encode()
