# SPDX-License-Identifier: Apache-2.0
"""For onnxruntime-genai: a loop around its Generator, and drafts for the requests of its Engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ._arrays import tokens, whole
from ._drafter import Drafter
from ._generation import Generation, session_for
from ._memory import Memory
from ._options import LONGEST
from ._request import counts, current
from ._session import Session


def generate(
    generator: Any,
    ids: Any,
    *,
    max_tokens: int,
    eos: Any = (),
    most: int = 16,
    session: Session | None = None,
    memory: Memory | None = None,
    pick: Callable[[Any], Any] = lambda logits: logits.argmax(axis=-1),
) -> Iterator[int]:
    """Yields the tokens that follow `ids`, up to the first of `eos` (one token or several), which is the last.

    `generator`: a new Generator, whose max_length has room for `ids` and `max_tokens`. `most`: upper bound on drafted
    tokens of a pass. `session`: keeps the learned costs from call to call; None: a new one. It serves one generation at
    a time: a second one gets an OrderError until the first has ended, is closed or is collected. `memory`: in place of
    a session: costs, and text of the salt of reprise_decoding.request(). `pick`: the token of each row of logits, such
    as a sampler; each row has to be sampled on its own.
    """
    ids, request = tokens(ids, "ids"), current()
    most = request.most(whole(most, "most", most=LONGEST))
    if whole(max_tokens, "max_tokens") == 0:
        return
    session = session_for(ids, request, session, memory)
    generation = Generation()
    try:
        generation.begin(session)
        request.predict(session)
        session.begin(ids)
        if len(ids) > 1:
            generator.append_tokens(ids[:-1])
        while (step := session.plan(most, max_tokens=max_tokens, eos=eos)) is not None:
            cached = generator.token_count()
            generator.append_tokens(step.batch)
            logits = np.asarray(generator.get_output("logits"))
            picks = pick(logits.reshape(-1, logits.shape[-1])[-1 - step.drafted :])
            done = session.commit(np.asarray(picks, np.int32))
            generator.rewind_to(cached + done.keep)
            unseen = len(done.tokens)
            try:
                for token in done.tokens.tolist():
                    unseen -= 1
                    yield token
            finally:  # the caller may stop in the middle of a pass, and use the generator again
                if unseen > 0:
                    generator.rewind_to(generator.token_count() - unseen)
    finally:
        if generation.begun:
            session.keep()
            request.add(counts(session))
        generation.over = True


def set_draft(engine: Any, request: Any, ids: Any, drafter: Drafter, most: int = 16) -> int:
    """Gives a request of the Engine a draft for its next pass, and returns the number of drafted tokens.

    `ids`: all tokens of the request. Use one drafter for each request, and tell it with Drafter.stop_at() what ends a
    generation. Not run by this project: the Engine needs a GPU.
    """
    draft = drafter.draft(ids, min(most, engine.max_draft_tokens_per_proposal()))
    if draft.size:
        request.set_draft_tokens(draft)
    return int(draft.size)
