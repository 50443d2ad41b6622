# SPDX-License-Identifier: Apache-2.0
"""The options that drafters, batches and sessions share."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

from . import _library
from ._arrays import BELOW, number, whole
from ._costs import CostCurve
from ._errors import ArgumentError
from ._handle import shown
from ._memory import Memory, salt_number


LONGEST = 64  # drafted tokens of a sequence in any pass


class HeadCost(NamedTuple):
    """What a run of a draft head or draft model costs, in plain passes. The costs of passes must be told, too."""

    draft: float = 0.0  #: any run
    token: float = 0.0  #: each token of the longest draft
    row: float = 0.0  #: each token of every draft, in a batch
    late: float = 0.0  #: each token that was committed in a pass without it


class Options(TypedDict, total=False):
    """The options of Drafter, Session and BatchDrafter, for type checks of functions that hand them on."""

    cost: CostCurve | float | None
    memory: Memory | None
    salt: int | str
    max_draft: int
    max_bytes: int
    key: int
    saved_costs: bytes | None
    engine: str | None
    clock: Callable[[], int]
    vocabulary: int


def options(
    cost: CostCurve | float | None = None,
    memory: Memory | None = None,
    max_draft: int = 0,
    max_bytes: int = 0,
    key: int = 0,
    saved_costs: bytes | None = None,
    engine: str | None = None,
    vocabulary: int = 0,
    salt: int | str = 0,
    head_cost: HeadCost | float | None = None,
) -> tuple[Any, str]:
    """Returns the struct, and a text that shows it."""
    if cost is None or isinstance(cost, CostCurve):
        curve = cost
    else:
        curve = CostCurve._linear(number(cost, "cost", "a CostCurve or a number"), "cost")
    if memory is not None and not isinstance(memory, Memory):
        raise TypeError(f"memory: must be a Memory, but is of the type {type(memory).__name__}")
    handles = [owner._handle if owner is not None else None for owner in (curve, memory)]
    for name, owner, handle in zip(("cost", "memory"), (curve, memory), handles):
        if owner is not None and handle is None:
            raise ArgumentError(f"{name}: it has been closed; create a new one")
    if saved_costs is not None:
        checked_bytes(saved_costs, "saved_costs")
        if engine is None:
            raise ArgumentError("engine: is missing; pass the name that save_costs() was given")
    head = head_cost if isinstance(head_cost, HeadCost) else (head_cost or 0.0,)
    struct = _library.Options(
        ctypes.sizeof(_library.Options),
        *(handle.pointer if handle is not None else None for handle in handles),
        whole(max_draft, "max_draft", most=LONGEST),
        whole(max_bytes, "max_bytes"),
        whole(key, "key", most=2**64 - 1),
        saved_costs,
        len(saved_costs or b""),
        engine_name(engine) if engine is not None else None,
        vocabulary,
        salt_number(salt),
        *(number(cost, "head_cost", "a HeadCost or a number") for cost in head),
    )
    struct.handles = handles  # they have to outlive it
    given = {"cost": curve, "memory": memory, "max_draft": max_draft, "max_bytes": max_bytes, "engine": engine}
    given["vocabulary"] = vocabulary
    return struct, shown(given)


def bound_of(vocabulary: int) -> int:
    """Returns the bound of token ids."""
    return whole(vocabulary, "vocabulary", most=BELOW) or BELOW


def checked_bytes(value: bytes, name: str) -> bytes:
    """Returns `value`, which must be bytes. `name`: for errors."""
    if not isinstance(value, bytes):
        raise TypeError(f"{name}: must be bytes, but is of the type {type(value).__name__}")
    return value


def checked_clock(clock: Callable[[], int]) -> Callable[[], int]:
    """Returns a clock that can be called and returns an integer."""
    if not callable(clock):
        raise TypeError(f"clock: must be a function, but is of the type {type(clock).__name__}")
    now = clock()
    if not hasattr(now, "__index__"):
        found = type(now).__name__
        raise TypeError(f"clock: must return an integer of nanoseconds, as time.perf_counter_ns does, not a {found}")
    whole(now, "clock")
    return clock


def clock_for(on_processor: bool) -> Callable[[], int]:
    """Returns the clock for an engine: processor time leaves out other programs. In Windows it has steps of 16 ms."""
    return time.process_time_ns if on_processor and sys.platform != "win32" else time.perf_counter_ns


def engine_name(engine: str) -> bytes:
    """Returns the name of an engine as the library takes it."""
    if not isinstance(engine, str):
        raise TypeError(f"engine: must be a str, but is of the type {type(engine).__name__}")
    name = engine.encode(errors="surrogatepass")
    if len(name) > 100 or b"\0" in name:
        raise ArgumentError(f"engine: must have at most 100 bytes, none of them 0, but has {len(name)}")
    return name
