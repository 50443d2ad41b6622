# SPDX-License-Identifier: Apache-2.0
"""Cost curves: the time of a pass by its shape, for callers that know it."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _library
from ._arrays import number, whole
from ._errors import ArgumentError, error
from ._handle import Owner

_POINT = "sequences, context, rows, nanoseconds"


class CostCurve(Owner):
    """The time of a pass, by its rows. Without a curve, a drafter and a session learn costs from the times of passes.

    Create it with linear(), points() or file(). A curve never changes, and any number of objects can be given it.
    """

    _kind = "curve"
    _shared = True
    _instead = "use this one; a curve never changes, and all objects and threads can share it"

    def __init__(self) -> None:
        raise TypeError("CostCurve: create it with CostCurve.linear(), CostCurve.points() or CostCurve.file()")

    @classmethod
    def linear(cls, per_row: float) -> CostCurve:
        """The curve 1 + `per_row` x drafted rows, in plain passes."""
        return cls._linear(per_row, "per_row")

    @classmethod
    def points(cls, points: Iterable[tuple[int, int, int, float]]) -> CostCurve:
        """The curve through measured passes: (sequences, context, rows, nanoseconds) each, in any order.

        `context`: tokens of each sequence before the pass. `rows`: rows of all sequences together. Each pair of
        `sequences` and `context` needs the time of a pass of one row per sequence.
        """
        if isinstance(points, (str, bytes, Mapping)) or not isinstance(points, Iterable):
            found = type(points).__name__
            raise TypeError(f"points: must be a list of ({_POINT}), but is of the type {found}")
        measured = []
        for i, point in enumerate(points):
            values: tuple[Any, ...] = tuple(point) if isinstance(point, Iterable) else ()
            if len(values) != 4:
                raise ArgumentError(f"points[{i}]: must be ({_POINT})")
            shape = [whole(value, f"points[{i}]") for value in values[:3]]
            measured.append(_library.CostPoint(*shape, number(values[3], f"points[{i}]")))
        array = (_library.CostPoint * len(measured))(*measured)
        return cls._made(f"{len(measured)} measured passes", "points", "create", array, len(measured))

    @classmethod
    def file(cls, path: str | os.PathLike[str]) -> CostCurve:
        """The curve in a JSON file, as docs/formats.md describes it and bench/profiles has examples."""
        if not isinstance(path, (str, os.PathLike)):  # open() takes an integer for an open file
            raise TypeError(f"path: must be the path of a JSON file, but is of the type {type(path).__name__}")
        try:
            with open(path, encoding="utf-8") as opened:
                content: Any = json.load(opened)
            points = {
                (point["sequences"], point["context"], point["rows"]): float(point["ns"]) for point in content["points"]
            }
            # base_ns is the time of a plain pass where no point says it.
            for sequences, context, _ in list(points):
                plain = (sequences, context, sequences)
                if plain not in points and isinstance(content, Mapping) and "base_ns" in content:
                    points[plain] = float(content["base_ns"])
        except (json.JSONDecodeError, UnicodeDecodeError) as refused:
            raise ArgumentError(f"path: {os.fspath(path)} is no JSON file: {refused}") from refused
        except (KeyError, TypeError, ValueError) as refused:
            raise ArgumentError(
                f"path: {os.fspath(path)} is no cost curve: each of its points needs sequences, context, rows and ns"
            ) from refused
        try:
            return cls.points([(*shape, ns) for shape, ns in points.items()])
        except (TypeError, ArgumentError) as refused:
            raise ArgumentError(f"path: {os.fspath(path)} is no cost curve: {refused}") from refused

    @classmethod
    def _linear(cls, per_row: float, name: str) -> CostCurve:
        """`name`: of the argument, for errors."""
        cost = number(per_row, name)
        if not 0 <= cost <= 65536:
            remedy = "pass the cost of a drafted row in plain passes, such as 0.02"
            raise ArgumentError(f"{name}: must be from 0 to 65536, but is {cost}: {remedy}")
        return cls._made(f"linear({cost:g})", name, "create_linear", cost)

    @classmethod
    def _made(cls, shown: str, name: str, function: str, *arguments: Any) -> CostCurve:
        curve = cls.__new__(cls)
        handle, described = curve._new(), _library.LibraryError()
        create = getattr(_library.library, f"reprise_curve_{function}")
        status = create(*arguments, ctypes.byref(handle.pointer), ctypes.byref(described))
        if status != _library.OK:
            if name == "points" and arguments[1]:  # the number in the error is an index
                name, described.value = f"points[{described.value}]", 0
            raise error(status, described, name)
        curve._own(handle, shown)
        return curve
