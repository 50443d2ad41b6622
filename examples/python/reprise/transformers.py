# SPDX-License-Identifier: Apache-2.0
"""For transformers: model.generate(..., custom_generate=Chains()) or custom_generate=Trees()."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from transformers import GenerationMixin
from transformers.generation.candidate_generator import CandidateGenerator

from ._drafter import Drafter
from ._errors import OrderError
from ._session import Pass, Session


class _Candidates(CandidateGenerator):  # type: ignore[misc]
    def __init__(self, drafter: Drafter, most: int, max_length: int) -> None:
        self._drafter, self._most, self._max_length = drafter, most, max_length

    def get_candidates(self, input_ids: Any, **_: Any) -> tuple[Any, None]:
        room = max(0, self._max_length - input_ids.shape[1] - 1)
        draft = self._drafter.draft(input_ids[0].cpu().numpy(), min(self._most, room))
        return torch.cat([input_ids, torch.from_numpy(draft).to(input_ids)[None]], dim=1), None

    def update_candidate_strategy(self, *_: Any, **__: Any) -> None:
        """Does nothing: the next ids show the accepted tokens."""


class Chains:
    """Drafts without branches, through the engine's own loop for assisted generation.

    Make one object and pass it to each call, so that it keeps what it has learned about costs. `most`: upper bound on
    drafted tokens of a pass. `options`: those of Drafter. `drafter` has the statistics and the switch.
    """

    def __init__(self, most: int = 16, **options: Any) -> None:
        if not hasattr(GenerationMixin, "_assisted_decoding") or not hasattr(GenerationMixin, "_get_candidate_generator"):
            raise ImportError("this release of transformers has another loop for assisted generation: see docs/engines.md")
        self.most = most
        self.drafter = Drafter(**options)

    def __call__(
        self, model: Any, input_ids: Any, logits_processor: Any, stopping_criteria: Any, generation_config: Any, **more: Any
    ) -> Any:
        if getattr(model, "_is_stateful", False):  # generate() checks this for its own assisted mode alone
            raise ValueError(f"model: the recurrent state of {type(model).__name__} cannot be rolled back")
        cache = more.get("past_key_values")
        if cache is not None and int(cache.get_seq_length()) > 0:  # the engine's loop would run these tokens again
            raise ValueError("past_key_values: Chains needs an empty cache; Trees can go on from a filled one")
        if "_get_candidate_generator" in vars(model):
            raise OrderError("model: another call of generate() with drafts runs on it; wait for its end")
        candidates = _Candidates(self.drafter, self.most, generation_config.max_length)
        model._get_candidate_generator = lambda **_: candidates
        try:
            return GenerationMixin._assisted_decoding(
                model, input_ids, logits_processor, stopping_criteria, generation_config, **more
            )
        finally:
            del model._get_candidate_generator


class Trees:
    """Drafts with branches, in a loop of its own: one sequence, full attention, a model that takes position_ids.

    `max_leaves`: upper bound on the branches. The other arguments are those of Chains, and the options those of
    Session. `session` has the statistics, and `enabled` is the switch.
    """

    def __init__(self, most: int = 24, max_leaves: int = 8, **options: Any) -> None:
        self.most = most
        self.max_leaves = max_leaves
        self.enabled = True
        self.session = Session(**options)

    def __call__(
        self,
        model: Any,
        input_ids: Any,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        streamer: Any = None,
        **more: Any,
    ) -> Any:
        cache: Any = more.get("past_key_values")
        _check(model, input_ids, generation_config, more.get("attention_mask"), cache)
        ids, cached = input_ids, cache.get_seq_length()
        if ids.shape[1] - cached > 1:
            model(input_ids=ids[:, cached:-1], past_key_values=cache, use_cache=True, logits_to_keep=1)
        self.session.begin(ids[0].cpu().numpy(), max_leaves=self.max_leaves)
        while True:
            room = generation_config.max_length - ids.shape[1] - 1
            step = self.session.plan(max(0, min(self.most, room)) if self.enabled else 0)
            assert step is not None  # it has no limits; the stopping criteria end the output
            cached = ids.shape[1] - step.pending
            logits = _run(model, step, cached, cache)
            self._report(logits)
            done = self.session.commit(_picks(step, ids, logits, logits_processor, generation_config.do_sample))
            if done.keep < len(step.batch):
                _keep(cache, torch.cat([torch.arange(cached), cached + torch.from_numpy(done.rows)]))
            for token in done.tokens.tolist():
                fresh = torch.tensor([[token]], dtype=ids.dtype, device=ids.device)
                ids = torch.cat([ids, fresh], dim=1)
                if streamer is not None:
                    streamer.put(fresh[0].cpu())
                if bool(stopping_criteria(ids, None).all()):
                    _keep(cache, torch.arange(ids.shape[1] - 1))  # tokens after this one are not part of the output
                    if streamer is not None:
                        streamer.end()
                    return ids

    def _report(self, logits: Any) -> None:
        """Shows the session the likeliest tokens of all rows, if it wants them."""
        wanted = self.session.top_k_wanted
        if wanted:
            for row, likeliest in enumerate(logits.topk(wanted, dim=-1).indices.cpu().numpy()):
                self.session.report_top_k(row, likeliest)


def _check(model: Any, ids: Any, config: Any, mask: Any, cache: Any) -> None:
    if ids.shape[0] != 1:
        raise ValueError(f"input_ids: Trees decodes one sequence, but the batch has {ids.shape[0]}")
    if mask is not None and not bool(mask.all()):
        raise ValueError("attention_mask: Trees decodes a sequence without padding")
    if config.num_beams != 1 or config.return_dict_in_generate:
        raise ValueError("generation_config: Trees has no beams, and returns ids alone (return_dict_in_generate=False)")
    if str(getattr(model.config, "_attn_implementation", "")).startswith(("flash", "paged")):
        raise ValueError('model: Trees needs attention with a 4-D mask: load it with attn_implementation="sdpa"')
    layers = getattr(cache, "layers", None)
    if layers is None or any(type(layer).__name__ != "DynamicLayer" for layer in layers):
        raise ValueError("past_key_values: Trees needs a DynamicCache of a model with full attention in all layers")


def _run(model: Any, step: Pass, cached: int, cache: Any) -> Any:
    """Returns the logits from the anchor's row on."""
    visible = torch.from_numpy(step.visible(cached)).to(model.device)[None, None]
    mask = torch.zeros(visible.shape, dtype=model.dtype, device=model.device)
    return model(
        input_ids=torch.from_numpy(step.batch.astype(np.int64)).to(model.device)[None],
        attention_mask=mask.masked_fill(~visible, torch.finfo(model.dtype).min),
        position_ids=torch.from_numpy(step.positions(cached)).to(model.device)[None],
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=step.drafted + 1,
    ).logits[0, -1 - step.drafted :].float()


def _picks(step: Pass, ids: Any, logits: Any, processors: Any, sample: bool) -> Any:
    """Returns the model's token after each row. The logits processors see the tokens of the row's own path."""
    if len(processors) > 0:
        paths = [ids]
        for row, parent in enumerate(step.parents.tolist()):
            token = ids.new_tensor([[int(step.batch[step.pending + row])]])
            paths.append(torch.cat([paths[parent + 1], token], dim=1))
        logits = torch.cat([processors(path, logits[row : row + 1]) for row, path in enumerate(paths)])
    picks = torch.multinomial(logits.softmax(dim=-1), 1)[:, 0] if sample else logits.argmax(dim=-1)
    return picks.cpu().numpy()


def _keep(cache: Any, rows: Any) -> None:
    """Removes all other rows from the cache."""
    for layer in cache.layers:
        layer.keys = layer.keys.index_select(2, rows.to(layer.keys.device))
        layer.values = layer.values.index_select(2, rows.to(layer.values.device))
