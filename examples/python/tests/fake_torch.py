# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the few functions of torch that the adapter for transformers uses, with numpy."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

module = types.ModuleType("torch")


class Tensor:
    def __init__(self, data: Any) -> None:
        self.data = np.asarray(data)

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: self.data.dtype)
    device = "cpu"

    def __getitem__(self, key: Any) -> Tensor:
        return Tensor(self.data[key])

    def __invert__(self) -> Tensor:
        return Tensor(~self.data)

    def __bool__(self) -> bool:
        return bool(self.data)

    def __radd__(self, other: Any) -> Tensor:
        return Tensor(other + self.data)

    def to(self, like: Any) -> Tensor:
        return Tensor(self.data.astype(like.data.dtype)) if isinstance(like, Tensor) else self

    def cpu(self) -> Tensor:
        return self

    def float(self) -> Tensor:
        return Tensor(self.data.astype(np.float32))

    def numpy(self) -> Any:
        return self.data

    def unfold(self, dim: int, size: int, step: int) -> Tensor:
        assert (dim, step) == (0, 1)
        return Tensor(np.lib.stride_tricks.sliding_window_view(self.data, size))

    def all(self) -> Tensor:
        return Tensor(self.data.all())

    def new_tensor(self, data: Any) -> Tensor:
        return Tensor(np.array(data, self.data.dtype))

    def masked_fill(self, where: Tensor, value: float) -> Tensor:
        return Tensor(np.where(where.data, value, self.data))

    def argmax(self, dim: int) -> Tensor:
        return Tensor(self.data.argmax(axis=dim))

    def softmax(self, dim: int) -> Tensor:
        weights = np.exp(self.data - self.data.max(axis=dim, keepdims=True))
        return Tensor(weights / weights.sum(axis=dim, keepdims=True))

    def topk(self, count: int, dim: int) -> Any:
        return types.SimpleNamespace(indices=Tensor(np.argsort(-self.data, axis=dim)[..., :count]))

    def index_select(self, dim: int, index: Tensor) -> Tensor:
        return Tensor(np.take(self.data, index.data, axis=dim))


def from_numpy(array: Any) -> Tensor:
    assert array.flags.writeable, "torch warns of arrays that cannot be written to"
    return Tensor(array)


def multinomial(weights: Tensor, count: int) -> Tensor:
    assert count == 1
    return Tensor(np.array([[np.random.choice(len(row), p=row / row.sum())] for row in weights.data]))


module.Tensor = Tensor  # type: ignore[attr-defined]
module.from_numpy = from_numpy  # type: ignore[attr-defined]
module.multinomial = multinomial  # type: ignore[attr-defined]
module.tensor = lambda data, dtype=None, device=None: Tensor(np.array(data, dtype))  # type: ignore[attr-defined]
module.cat = lambda parts, dim=0: Tensor(np.concatenate([part.data for part in parts], axis=dim))  # type: ignore[attr-defined]
module.zeros = lambda shape, dtype=None, device=None: Tensor(np.zeros(shape, dtype))  # type: ignore[attr-defined]
module.arange = lambda count: Tensor(np.arange(count))  # type: ignore[attr-defined]
module.finfo = np.finfo  # type: ignore[attr-defined]
