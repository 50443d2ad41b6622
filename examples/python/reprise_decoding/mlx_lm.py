# SPDX-License-Identifier: Apache-2.0
"""For mlx-lm: a generator in place of mlx_lm.generate.generate_step()."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import can_trim_prompt_cache, make_prompt_cache, trim_prompt_cache

from ._arrays import ends, tokens, whole
from ._generation import Generation, session_for
from ._memory import Memory
from ._options import LONGEST
from ._request import counts, current
from ._session import Session


def generate_step(
    prompt: Any,
    model: Any,
    *,
    max_tokens: int = 256,
    eos: Any = (),
    most: int = 16,
    session: Session | None = None,
    memory: Memory | None = None,
    sampler: Callable[[Any], Any] = lambda logprobs: mx.argmax(logprobs, axis=-1),
    prompt_cache: Any = None,
    prefill_step_size: int = 512,
) -> Iterator[tuple[int, Any]]:
    """Yields tokens and their log probabilities, as mlx-lm's function of this name.

    `eos`: the token that ends the generation, or several, such as `tokenizer.eos_token_ids`. The first one is yielded
    last, and nothing is drafted after it. Without `eos` the caller ends the generation, as with mlx-lm's function.
    `max_tokens`: -1: no bound. `most`: upper bound on drafted tokens of a pass. `session`: keeps the learned costs
    from call to call; None: a new one. It serves one generation at a time: a second one gets an OrderError until the
    first has ended, is closed or is collected. `memory`: in place of a session: costs, and text of the salt of
    reprise_decoding.request(). `prompt_cache`: must be empty or hold the tokens before `prompt`.
    Nothing is drafted while it cannot be trimmed: with a recurrent state, or from where a sliding window is full. The
    statistics of the session count such passes as `cuts` by `budget`.
    """
    cache = prompt_cache if prompt_cache is not None else make_prompt_cache(model)
    ids, request = tokens(prompt, "prompt"), current()
    most = request.most(whole(most, "most", most=LONGEST))
    if max_tokens == 0:
        return
    session = session_for(ids, request, session, memory)
    limits: dict[str, Any] = {"max_tokens": max(max_tokens, 0), "eos": ends(eos, session._below)}
    generation = Generation()
    try:
        generation.begin(session)
        request.predict(session)
        session.begin(ids)
        for first in range(0, len(ids) - 1, prefill_step_size):
            model(mx.array(ids[first : min(first + prefill_step_size, len(ids) - 1)])[None], cache=cache)
            mx.eval([layer.state for layer in cache])
        while (step := session.plan(min(most, _drafts_that_fit(cache)), **limits)) is not None:
            logits = model(mx.array(step.batch)[None], cache=cache)[0, -1 - step.drafted :]
            logprobs = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
            done = session.commit(np.array(sampler(logprobs)).astype(np.int32))
            _trim(cache, len(step.batch) - done.keep)
            unseen = len(done.tokens)
            try:
                for row, token in enumerate(done.tokens.tolist()):
                    unseen -= 1
                    yield token, logprobs[row]
            finally:  # the caller may stop in the middle of a pass, and use the cache again
                _trim(cache, unseen)
    finally:
        if generation.begun:
            session.keep()
            request.add(counts(session))
        generation.over = True


def _drafts_that_fit(cache: Any) -> int:
    """Returns how many drafted rows, beside the anchor, every window has room for, so that they can be trimmed."""
    if not can_trim_prompt_cache(cache):
        return 0
    layers = [part for layer in cache for part in getattr(layer, "caches", (layer,))]
    windows = [layer for layer in layers if getattr(layer, "max_size", None) is not None]
    return max(0, min((layer.max_size - layer.offset - 2 for layer in windows), default=2**31 - 1))


def _trim(cache: Any, count: int) -> None:
    if count > 0 and trim_prompt_cache(cache, count) != count:
        raise RuntimeError("prompt_cache: mlx-lm did not remove the rejected rows; please report the kind of the cache")
