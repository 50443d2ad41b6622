# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the kernels of SGLang on a processor, which PyPI does not have: the same operators, in torch.

Only those that plain decoding and the method NGRAM call are here. Attention is that of intel_amx, the default backend.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import torch


def __getattr__(name: str) -> Any:
    """Returns a function for a kernel that is imported, and must not be called."""
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*_: Any, **__: Any) -> None:
        raise NotImplementedError(f"sgl_kernel.{name} is not in the stand-in")

    return missing


def assign_req_to_token_pool_cpu(rows: Any, table: Any, starts: Any, ends: Any, places: Any, length: int) -> None:
    begin = 0
    for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist()):
        table[row, start:end] = places[begin : begin + end - start].to(table.dtype)
        begin += end - start


def assign_extend_cache_locs_cpu(rows: Any, table: Any, starts: Any, ends: Any, places: Any, length: int) -> None:
    spans = zip(rows.tolist(), starts.tolist(), ends.tolist())
    found = torch.cat([table[row, start:end] for row, start, end in spans])
    places[: found.numel()] = found.to(places.dtype)


def fill_accept_out_cache_loc_cpu(accepted: Any, places: Any, out: Any) -> None:
    found = places[accepted[accepted >= 0].long()]
    out[: found.numel()] = found


def copy_all_layer_kv_cache_cpu(pointers: Any, strides: Any, targets: Any, sources: Any) -> None:
    """Copies rows in the buffers of all layers, which are given by address and by bytes of a row."""
    for pointer, stride in zip(pointers.tolist(), strides.tolist()):
        rows = [ctypes.string_at(pointer + source * stride, stride) for source in sources.tolist()]
        for target, row in zip(targets.tolist(), rows):
            ctypes.memmove(pointer + target * stride, row, stride)


def verify_tree_greedy_cpu(
    *, predicts: Any, accept_index: Any, accept_token_num: Any, candidates: Any, retrive_index: Any,
    retrive_next_token: Any, retrive_next_sibling: Any, target_predict: Any,
) -> None:  # fmt: skip
    """Follows the children that the model has picked, from the root of each tree."""
    picks = target_predict.flatten().tolist()
    for i, tokens in enumerate(candidates.tolist()):
        index, children = retrive_index[i].tolist(), retrive_next_token[i].tolist()
        siblings, node, path = retrive_next_sibling[i].tolist(), 0, [0]
        while len(path) < accept_index.shape[1]:
            child = children[node]
            while child >= 0 and tokens[child] != picks[index[node]]:
                child = siblings[child]
            if child < 0:
                break
            node = child
            path.append(node)
        for place, node in enumerate(path):
            accept_index[i, place] = index[node]
            predicts[index[node]] = picks[index[node]]
        accept_token_num[i] = len(path) - 1


def _attention(query: Any, keys: Any, values: Any, mask: Any, scale: float) -> Any:
    """`query`: row, head, size. `mask`: what each row sees."""
    groups = query.shape[1] // keys.shape[1]
    keys, values = (each.repeat_interleave(groups, 1).transpose(0, 1).float() for each in (keys, values))
    scores = torch.matmul(query.transpose(0, 1).float(), keys.transpose(1, 2)) * scale
    weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
    return torch.matmul(weights, values).transpose(0, 1).to(query.dtype)


def _extend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, keys: torch.Tensor, values: torch.Tensor,
    key_scale: float, value_scale: float, table: torch.Tensor, rows: torch.Tensor, lengths: torch.Tensor,
    new: torch.Tensor, starts: torch.Tensor, longest: int, scale: float, cap: float, cross: bool, window: int,
    encoder: torch.Tensor | None, sinks: torch.Tensor | None, tree: torch.Tensor | None, causal: bool,
) -> None:  # fmt: skip
    """The last `new` tokens of each sequence are the rows, and see those before them; of a tree, their path."""
    trees, done = tree, 0
    for row, length, count, start in zip(rows.tolist(), lengths.tolist(), new.tolist(), starts.tolist()):
        places = table[row, :length].long()
        mask = torch.ones(count, length, dtype=torch.bool).tril(length - count)
        if trees is not None:
            mask[:, length - count :] = trees[done : done + count * count].view(count, count).bool()
            done += count * count
        part = slice(start, start + count)
        out[part] = _attention(q[part], keys[places], values[places], mask, scale)


def _decode(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, key_scale: float, value_scale: float, out: torch.Tensor,
    k: torch.Tensor | None, v: torch.Tensor | None, place: torch.Tensor, logits: torch.Tensor, table: torch.Tensor,
    rows: torch.Tensor, lengths: torch.Tensor, scale: float, cap: float, cross: bool, window: int,
    encoder: torch.Tensor | None, sinks: torch.Tensor | None,
) -> None:  # fmt: skip
    """Writes the new key and value of each sequence, and computes its one row."""
    if k is not None and v is not None:
        keys[place], values[place] = k.view(-1, *keys.shape[1:]), v.view(-1, *values.shape[1:])
    for i, (row, length) in enumerate(zip(rows.tolist(), lengths.tolist())):
        places = table[row, :length].long()
        mask = torch.ones(1, length, dtype=torch.bool)
        out[i : i + 1] = _attention(q[i : i + 1], keys[places], values[places], mask, scale)


_library = torch.library.Library("sgl_kernel", "FRAGMENT")
for _name, _function, _changed in (
    ("extend_attention_cpu", _extend, {"out"}),
    ("decode_attention_cpu", _decode, {"out", "keys", "values"}),
):
    _library.define(_name + torch.library.infer_schema(_function, mutates_args=_changed))
    _library.impl(_name, _function, "CompositeExplicitAutograd")


def register() -> None:
    """Makes the backend torch_native that of intel_amx, which SGLang takes only from processors with AMX.

    SGLang calls it, as a plug-in. Its own torch_native cannot verify a draft. With STAND_IN_OVERLAP=1, a
    pass begins before the results of the one before are known, which SGLang does with drafts on GPUs only.
    """
    from sglang.srt.arg_groups import speculative_hook
    from sglang.srt.layers.attention.attention_registry import (
        register_attention_backend,
    )

    if os.environ.get("STAND_IN_OVERLAP") == "1":
        speculative_hook._disable_overlap_schedule_for_cpu = lambda server_args: None

    @register_attention_backend("torch_native")
    def create(runner: Any) -> Any:
        from sglang.srt.layers.attention.intel_amx_backend import IntelAMXAttnBackend

        return IntelAMXAttnBackend(runner)
