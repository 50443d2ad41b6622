# SPDX-License-Identifier: Apache-2.0
"""Arguments and results: checks of what the caller passes, and copies of what the library returns."""

from __future__ import annotations

import contextlib
import ctypes
import numbers
import operator
from collections.abc import Mapping
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from ._errors import ArgumentError

Tokens = npt.NDArray[np.int32]
INT32, UINT32, INTP = np.dtype(np.int32), np.dtype(np.uint32), np.dtype(np.intp)
INT64, UINT64 = np.dtype(np.int64), np.dtype(np.uint64)
_NONE = np.empty(0, np.int32)
BELOW = 2**31  #: the bound of token ids if the vocabulary is unknown


def tokens(ids: Any, name: str, below: int = BELOW) -> Tokens:
    """Returns `ids` as a contiguous array of 32-bit integers from 0 to `below` - 1, without a copy if it is one.

    `name`: for errors.
    """
    array = ids if type(ids) is np.ndarray else _array(ids, name)
    if array.ndim != 1:
        raise ArgumentError(
            f"{name}: pass one sequence of token ids, such as {name}[0], but not an array of the shape {array.shape}"
        )
    if array.dtype != INT32:
        if array.size == 0:
            return np.empty(0, np.int32)
        large = array.dtype.kind == "O" and all(type(x) is int for x in array)  # integers outside 64 bits
        if array.dtype.kind not in "iu" and not large:
            found = f"the array is of the type {array.dtype}"
            if isinstance(ids, (list, tuple)):
                wrong = (i for i, x in enumerate(ids) if isinstance(x, bool) or not isinstance(x, (int, np.integer)))
                at = next(wrong, None)
                if at is None:  # integers that have no common type, such as 2^63 and -1
                    return tokens(np.array([int(x) for x in ids], object), name, below)
                found = f"{name}[{at}] is of the type {type(ids[at]).__name__}"
            raise TypeError(f"{name}: token ids must be integers, but {found}")
        seen = array.view(UINT64) if array.dtype == INT64 else array  # as in has_outside()
        if seen.max() >= below or (seen is array and array.min() < 0):
            raise out_of_range(array, name, below)
        return array.astype(np.int32)
    if has_outside(array, below):
        raise out_of_range(array, name, below)
    return np.ascontiguousarray(array)


def text(ids: Any, name: str) -> Tokens:
    """Returns the text of a sequence, as tokens(). Ids outside the vocabulary are placeholders, for example of images."""
    array = ids if type(ids) is np.ndarray else _array(ids, name)
    if array.dtype == INT32 and array.ndim == 1:
        return np.ascontiguousarray(array)
    if array.dtype.kind not in "iu" or array.ndim != 1 or not array.size or array.min() >= 0:
        return tokens(ids, name)
    if array.min() < -BELOW or array.max() >= BELOW:
        raise out_of_range(array, name, BELOW)
    return np.ascontiguousarray(array.astype(np.int32))


def has_outside(array: Tokens, below: int) -> bool:
    """Returns true if an id is negative, or is `below` or more. Reads all ids: 2 microseconds for 32,000."""
    return bool(array.size) and int(array.view(UINT32).max()) >= below  # as unsigned, a negative id is 2^31 or more


def out_of_range(array: npt.NDArray[Any], name: str, below: int) -> ArgumentError:
    """Returns the error for the first id that is out of range."""
    at = int(np.argmax((array < 0) | (array >= below)))
    if array[at] < 0:
        return ArgumentError(
            f"{name}: token ids must be 0 or more, but {name}[{at}] is {array[at]}: leave out padding and placeholders"
        )
    remedy = ": check them, or set vocabulary to the number of the model's logits" if below < BELOW - 1 else ""
    return ArgumentError(f"{name}: token ids must be below {below}, but {name}[{at}] is {array[at]}{remedy}")


def _array(ids: Any, name: str) -> npt.NDArray[Any]:
    wanted = f"{name}: must be a list or an array of token ids, but is of the type {type(ids).__name__}"
    if isinstance(ids, Mapping):
        raise TypeError(f'{wanted}: pass its "input_ids"')
    if isinstance(ids, (str, bytes, bytearray)):
        raise TypeError(f"{wanted}: pass what the tokenizer returns for it")
    try:
        array = np.asarray(ids)
    except (TypeError, ValueError, OverflowError) as refused:
        if isinstance(refused, TypeError):
            raise TypeError(f"{name}: pass a list or an array of token ids: {refused}") from refused
        raise ArgumentError(f"{name}: pass one flat list of token ids, but not lists of several lengths") from refused
    if array.ndim == 0:
        raise TypeError(wanted)
    return array


def ends(eos: Any, below: int) -> Tokens:
    """Returns the ids that end generation: one integer, or several in any collection."""
    if eos is None:
        raise TypeError("eos: must be one token id or a list of them, but is None: leave it out if there is none")
    if type(eos) is tuple and not eos:
        return _NONE
    if isinstance(eos, (set, frozenset)):
        eos = list(eos)
    elif not isinstance(eos, bool):
        with contextlib.suppress(TypeError):
            eos = [operator.index(eos)]
    return tokens(eos, "eos", below)


def stops(ids: Any, below: int) -> Tokens:
    """Returns the tokens among the ids that an engine says end generation: None, one integer, or several.

    Engines also have -1 there, or ids that the model does not have. They are left out, because no model picks them.
    """
    given = np.asarray([] if ids is None else ids, np.int64).reshape(-1)
    found: Tokens = np.unique(given[(given >= 0) & (given < below)]).astype(np.int32)
    return found


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


def number(value: Any, name: str, wanted: str = "a number") -> float:
    """Returns `value` as a float. Raises TypeError if it is no number. `wanted`: for the error."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}: must be {wanted}, but is of the type {type(value).__name__}")
    return float(value)


def copied(pointer: int | None, count: int, dtype: np.dtype[Any] = INT32) -> npt.NDArray[Any]:
    """Returns a copy of an array of the library."""
    if not pointer or not count:
        return np.empty(0, dtype)
    found: Any = (ctypes.c_byte * (count * dtype.itemsize)).from_address(pointer)
    return np.frombuffer(found, dtype).copy()
