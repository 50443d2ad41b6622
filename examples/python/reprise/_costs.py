# SPDX-License-Identifier: Apache-2.0
"""Cost curves: the time of a pass by its shape, for callers that know it."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _library
from ._arrays import whole
from ._errors import ArgumentError, error
from ._handle import Owner


class CostCurve(Owner):
    """The time of a pass, by its rows. Without a curve, a drafter and a session learn costs from the times of passes.

    Create it with linear(), points() or file(). A curve never changes, and any number of objects can be given it.
    """

    _kind = "curve"

    def __init__(self) -> None:
        raise TypeError("CostCurve: create it with CostCurve.linear(), CostCurve.points() or CostCurve.file()")

    @classmethod
    def linear(cls, per_row: float) -> CostCurve:
        """The curve 1 + `per_row` x drafted rows, in plain passes."""
        if isinstance(per_row, bool) or not isinstance(per_row, (int, float)):
            raise TypeError(f"per_row: must be a number, but is of the type {type(per_row).__name__}")
        return cls._made("linear", "create_linear", float(per_row))

    @classmethod
    def points(cls, points: Iterable[tuple[int, int, int, float]]) -> CostCurve:
        """The curve through measured passes: (sequences, context, rows, nanoseconds) each, in any order.

        `context`: tokens of each sequence before the pass. `rows`: rows of all sequences together. Each pair of
        `sequences` and `context` needs the time of a pass of one row per sequence.
        """
        measured = []
        for i, point in enumerate(points):
            if len(point) != 4:
                raise ArgumentError(f"points[{i}]: must be (sequences, context, rows, nanoseconds)")
            shape = [whole(value, f"points[{i}]") for value in point[:3]]
            measured.append(_library.CostPoint(*shape, float(point[3])))
        array = (_library.CostPoint * len(measured))(*measured)
        return cls._made("points", "create", array, len(measured))

    @classmethod
    def file(cls, path: str | os.PathLike[str]) -> CostCurve:
        """The curve in a JSON file, as docs/formats.md describes it and bench/profiles has examples."""
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
        return cls.points((*shape, ns) for shape, ns in points.items())

    @classmethod
    def _made(cls, name: str, function: str, *arguments: Any) -> CostCurve:
        pointer, described = ctypes.c_void_p(), _library.LibraryError()
        create = getattr(_library.library, f"reprise_curve_{function}")
        status = create(*arguments, ctypes.byref(pointer), ctypes.byref(described))
        if status != _library.OK:
            raise error(status, described, f"CostCurve.{name}")
        curve = cls.__new__(cls)
        curve._own(pointer.value or 0)
        return curve
