# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the few functions of torch that the adapter for transformers uses, with numpy."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

module = types.ModuleType("torch")


CPU, GPU = (types.SimpleNamespace(type=kind) for kind in ("cpu", "cuda"))


class Tensor:
    """Tensors of different devices do not mix."""

    def __init__(self, data: Any, device: Any = CPU) -> None:
        self.data, self.device = np.asarray(data), device

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: self.data.dtype)

    def _with(self, data: Any, *others: Tensor) -> Tensor:
        assert all(other.device == self.device for other in others), "Expected all tensors to be on the same device"
        return Tensor(data, self.device)

    def __getitem__(self, key: Any) -> Tensor:
        return self._with(self.data[key])

    def __invert__(self) -> Tensor:
        return self._with(~self.data)

    def __bool__(self) -> bool:
        return bool(self.data)

    def __radd__(self, other: Any) -> Tensor:
        return self._with(other + self.data)

    def to(self, like: Any) -> Tensor:
        if isinstance(like, Tensor):
            return Tensor(self.data.astype(like.data.dtype), like.device)
        return Tensor(self.data, like)

    def cpu(self) -> Tensor:
        return self.to(CPU)

    def float(self) -> Tensor:
        return self._with(self.data.astype(np.float32))

    def numpy(self) -> Any:
        assert self.device == CPU
        return self.data

    def unbind(self, dim: int) -> list[Tensor]:
        return [self._with(part) for part in np.moveaxis(self.data, dim, 0)]

    def unfold(self, dim: int, size: int, step: int) -> Tensor:
        assert (dim, step) == (0, 1)
        return self._with(np.lib.stride_tricks.sliding_window_view(self.data, size))

    def all(self) -> Tensor:
        return self._with(self.data.all())

    def new_tensor(self, data: Any) -> Tensor:
        return self._with(np.array(data, self.data.dtype))

    def masked_fill(self, where: Tensor, value: float) -> Tensor:
        return self._with(np.where(where.data, value, self.data), where)

    def argmax(self, dim: int) -> Tensor:
        return self._with(self.data.argmax(axis=dim))

    def softmax(self, dim: int) -> Tensor:
        weights = np.exp(self.data - self.data.max(axis=dim, keepdims=True))
        return self._with(weights / weights.sum(axis=dim, keepdims=True))

    def topk(self, count: int, dim: int) -> Any:
        return types.SimpleNamespace(indices=self._with(np.argsort(-self.data, axis=dim)[..., :count]))

    def index_select(self, dim: int, index: Tensor) -> Tensor:
        return self._with(np.take(self.data, index.data, axis=dim), index)


def from_numpy(array: Any) -> Tensor:
    assert array.flags.writeable, "torch warns of arrays that cannot be written to"
    return Tensor(array)


def cat(parts: list[Tensor], dim: int = 0) -> Tensor:
    return parts[0]._with(np.concatenate([part.data for part in parts], axis=dim), *parts)


def multinomial(weights: Tensor, count: int) -> Tensor:
    assert count == 1
    return Tensor(np.array([[np.random.choice(len(row), p=row / row.sum())] for row in weights.data]))


module.Tensor = Tensor  # type: ignore[attr-defined]
module.from_numpy = from_numpy  # type: ignore[attr-defined]
module.multinomial = multinomial  # type: ignore[attr-defined]
module.tensor = lambda data, dtype=None, device=CPU: Tensor(np.array(data, dtype), device)  # type: ignore[attr-defined]
module.cat = cat  # type: ignore[attr-defined]
module.zeros = lambda shape, dtype, device: Tensor(np.zeros(shape, dtype), device)  # type: ignore[attr-defined]
module.arange = lambda count: Tensor(np.arange(count))  # type: ignore[attr-defined]
module.finfo = np.finfo  # type: ignore[attr-defined]
