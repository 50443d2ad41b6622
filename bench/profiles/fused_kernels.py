# SPDX-License-Identifier: Apache-2.0
"""The kernels of measure_gpu.py that PyTorch has in no fused form, in Triton.

Engines have such kernels: attention that reads each key once for all query heads of its group and for all rows of a
pass, and one kernel instead of several for the operations between the matrix products. TRITON_INTERPRET=1 runs them on
a CPU.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _add_norm(x, added, weight, summed, normed, size, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * size
    at = tl.arange(0, BLOCK)
    inside = at < size
    total = tl.load(x + row + at, inside, 0).to(tl.float32) + tl.load(added + row + at, inside, 0).to(tl.float32)
    total = total.to(summed.dtype.element_ty)
    tl.store(summed + row + at, total, inside)
    total = total.to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(total * total) / size + epsilon)
    scaled = total * scale * tl.load(weight + at, inside, 0).to(tl.float32)
    tl.store(normed + row + at, scaled.to(normed.dtype.element_ty), inside)


def add_norm(x: torch.Tensor, added: torch.Tensor, weight: torch.Tensor, epsilon: float):
    """Returns x + added, and its RMSNorm. Both inputs are contiguous."""
    summed, normed = torch.empty_like(x), torch.empty_like(x)
    size = x.shape[-1]
    grid = (x.numel() // size,)
    _add_norm[grid](x, added, weight, summed, normed, size, epsilon, triton.next_power_of_2(size), num_warps=8)
    return summed, normed


@triton.jit
def _gated(gate_and_up, made, size, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    gate = tl.load(gate_and_up + row * 2 * size + at, inside, 0).to(tl.float32)
    up = tl.load(gate_and_up + row * 2 * size + size + at, inside, 0).to(tl.float32)
    tl.store(made + row * size + at, (gate * tl.sigmoid(gate) * up).to(made.dtype.element_ty), inside)


def gated(gate_and_up: torch.Tensor) -> torch.Tensor:
    """Returns SiLU(first half) x second half of each row."""
    size = gate_and_up.shape[-1] // 2
    made = gate_and_up.new_empty(*gate_and_up.shape[:-1], size)
    _gated[(made.numel() // size, triton.cdiv(size, 1024))](gate_and_up, made, size, 1024)
    return made


@triton.jit
def _rotate_and_store(
    qkv, cos, sin, q, keys, values, rows, start, cache_sequence, cache_position, cache_head,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    at = tl.arange(0, DIM)
    position = start + token % rows
    line = qkv + (token * (HEADS + 2 * KV_HEADS) + head) * DIM
    number = tl.load(line + at)
    turned = number.to(tl.float32) * tl.load(cos + position * DIM + at).to(tl.float32)
    turned += tl.load(line + (at + DIM // 2) % DIM).to(tl.float32) * tl.load(sin + position * DIM + at).to(tl.float32)
    turned = turned.to(q.dtype.element_ty)
    cached = token // rows * cache_sequence + position * cache_position
    if head < HEADS:
        tl.store(q + (token * HEADS + head) * DIM + at, turned)
    elif head < HEADS + KV_HEADS:
        tl.store(keys + cached + (head - HEADS) * cache_head + at, turned)
    else:
        tl.store(values + cached + (head - HEADS - KV_HEADS) * cache_head + at, number)


def rotate_and_store(qkv, cos, sin, keys, values, start: int, heads: int) -> torch.Tensor:
    """Rotates queries and keys, writes keys and values to the cache from position `start` on, and returns the queries.

    `qkv` is [sequence, row, heads of q, k and v, number]; `keys` and `values` are [sequence, position, head, number]."""
    sequences, rows, all_heads, dim = qkv.shape
    q = qkv.new_empty(sequences, rows, heads, dim)
    _rotate_and_store[(sequences * rows, all_heads)](
        qkv, cos, sin, q, keys, values, rows, start, *keys.stride()[:3], heads, keys.shape[2], dim, num_warps=1
    )
    return q


@triton.jit(do_not_specialize=["rows", "length", "per_split", "splits"])
def _attend(
    q, keys, values, made, parts, maxima, sums, scale, rows, length, per_split, splits,
    cache_sequence, cache_position, cache_head,
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, DIM: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
    WHOLE: tl.constexpr,
):  # fmt: skip
    sequence = (tl.program_id(1) // KV_HEADS).to(tl.int64)
    kv_head = tl.program_id(1) % KV_HEADS
    split = tl.program_id(2)
    # The query heads of a group and the rows of a pass are the lines of one tile. Tiles of the same group run at the
    # same time, so that they find its keys in the L2 cache.
    line = tl.program_id(0) * M + tl.arange(0, M)
    row = line // GROUP
    d = tl.arange(0, DIM)
    result = (sequence * rows + row) * (KV_HEADS * GROUP) + kv_head * GROUP + line % GROUP
    tile = tl.load(q + result[:, None] * DIM + d[None, :], (row < rows)[:, None], 0)

    first = split * per_split
    last = tl.minimum(first + per_split, length)
    base = sequence * cache_sequence + kv_head * cache_head
    maximum = tl.full((M,), float("-inf"), tl.float32)
    sum = tl.zeros((M,), tl.float32)
    total = tl.zeros((M, DIM), tl.float32)
    for at in range(first, last, N):
        position = at + tl.arange(0, N)
        inside = position < last
        cached = base + position[None, :].to(tl.int64) * cache_position + d[:, None]
        k = tl.load(keys + cached, inside[None, :], 0)
        score = tl.dot(tile, k, input_precision="ieee") * scale
        seen = inside[None, :] & (position[None, :] <= length - rows + row[:, None])
        score = tl.where(seen, score, float("-inf"))
        higher = tl.maximum(maximum, tl.max(score, 1))
        level = tl.where(higher == float("-inf"), 0.0, higher)  # nothing seen so far
        weight = tl.exp2(score - level[:, None])
        fading = tl.exp2(maximum - level)
        sum = sum * fading + tl.sum(weight, 1)
        v = tl.load(values + base + position[:, None].to(tl.int64) * cache_position + d[None, :], inside[:, None], 0)
        total = total * fading[:, None] + tl.dot(weight.to(v.dtype), v, input_precision="ieee")
        maximum = higher
    if WHOLE:
        done = (total / sum[:, None]).to(made.dtype.element_ty)
        tl.store(made + result[:, None] * DIM + d[None, :], done, (row < rows)[:, None])
    else:
        part = result * splits + split
        tl.store(parts + part[:, None] * DIM + d[None, :], total, (row < rows)[:, None])
        tl.store(maxima + part, maximum, row < rows)
        tl.store(sums + part, sum, row < rows)


@triton.jit(do_not_specialize=["splits"])
def _join(made, parts, maxima, sums, splits, DIM: tl.constexpr, SPLITS: tl.constexpr):
    result = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, DIM)
    split = tl.arange(0, SPLITS)
    part = result * splits + split
    inside = split < splits
    maximum = tl.load(maxima + part, inside, float("-inf"))
    weight = tl.exp2(maximum - tl.max(maximum))
    sum = tl.sum(weight * tl.load(sums + part, inside, 0))
    number = tl.load(parts + part[:, None] * DIM + d[None, :], inside[:, None], 0)
    total = tl.sum(weight[:, None] * number, 0)
    tl.store(made + result * DIM + d, (total / sum).to(made.dtype.element_ty))


def attend(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, processors: int) -> torch.Tensor:
    """Returns the attention of the last rows of a text; row i of r sees all positions except the last r - 1 - i.

    `q` is [sequence, row, head, number] and contiguous; `keys` and `values` are [sequence, position, head, number]. The
    positions are split among thread blocks until there are two for each of the `processors`."""
    sequences, rows, heads, dim = q.shape
    length, kv_heads = keys.shape[1:3]
    group = heads // kv_heads
    tile = min(max(16, triton.next_power_of_2(rows * group)), 64)
    tiles = triton.cdiv(rows * group, tile)
    step = 64
    splits = min(triton.cdiv(length, step), max(1, 2 * processors // (sequences * kv_heads * tiles)))
    per_split = triton.cdiv(triton.cdiv(length, splits), step) * step
    splits = triton.cdiv(length, per_split)
    made = torch.empty_like(q)
    parts = maxima = sums = made  # unused if there is one split
    if splits > 1:
        parts = q.new_empty(sequences * rows * heads, splits, dim, dtype=torch.float32)
        maxima, sums = q.new_empty(2, sequences * rows * heads, splits, dtype=torch.float32)
    _attend[(tiles, sequences * kv_heads, splits)](
        q, keys, values, made, parts, maxima, sums, dim**-0.5 * 1.4426950408889634, rows, length, per_split, splits,
        *keys.stride()[:3], kv_heads, group, dim, tile, step, splits == 1, num_warps=4, num_stages=3,
    )  # fmt: skip
    if splits > 1:
        _join[(sequences * rows * heads,)](made, parts, maxima, sums, splits, dim, triton.next_power_of_2(splits))
    return made
