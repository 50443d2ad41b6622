# SPDX-License-Identifier: Apache-2.0
"""Arguments and results: checks of what the caller passes, and copies of what the library returns."""

from __future__ import annotations

import ctypes
import operator
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from ._errors import ArgumentError

Tokens = npt.NDArray[np.int32]
_INT32 = np.dtype(np.int32)
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1


def tokens(ids: Any, name: str) -> Tokens:
    """Returns `ids` as a contiguous array of 32-bit integers, without a copy if it is one. `name`: for errors."""
    if type(ids) is np.ndarray:
        array = ids
    else:
        try:
            array = np.asarray(ids)
        except (TypeError, ValueError, OverflowError) as refused:
            raise ArgumentError(f"{name}: pass a list or an array of token ids: {refused}") from refused
    if array.ndim != 1:
        raise ArgumentError(f"{name}: pass token ids as one dimension, not as an array of the shape {array.shape}")
    if array.dtype == _INT32:
        return np.ascontiguousarray(array)
    if array.size == 0:
        return np.empty(0, np.int32)
    if array.dtype.kind == "O" and all(type(x) is int for x in array):
        pass  # integers outside 64 bits
    elif array.dtype.kind not in "iu":
        raise TypeError(f"{name}: token ids must be integers, but these are of the type {array.dtype}")
    outside = (array < _LOWEST) | (array > _HIGHEST)
    if outside.any():
        at = int(np.argmax(outside))
        raise ArgumentError(f"{name}: token ids have 32 bits, but {name}[{at}] is {array[at]}")
    return array.astype(np.int32)


def address(array: Tokens) -> int:
    """Returns the address of the first element."""
    return int(array.__array_interface__["data"][0])


def whole(value: SupportsIndex, name: str, least: int = 0, most: int = 2**63 - 1) -> int:
    """Returns `value` as an int. Raises TypeError if it is no integer, and ArgumentError if it is out of bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: must be an integer, but is of the type {type(value).__name__}") from None
    if not least <= number <= most:
        raise ArgumentError(f"{name}: must be {least} or more, but is {number}" if number < least
                            else f"{name}: must be {most} or less, but is {number}")
    return number


def copied(pointer: int | None, count: int, dtype: Any = np.int32) -> npt.NDArray[Any]:
    """Returns a copy of an array of the library."""
    if not pointer or not count:
        return np.empty(0, dtype)
    return np.frombuffer(ctypes.string_at(pointer, count * np.dtype(dtype).itemsize), dtype).copy()
