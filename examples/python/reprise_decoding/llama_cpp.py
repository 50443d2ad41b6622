# SPDX-License-Identifier: Apache-2.0
"""For llama-cpp-python: llama = Llama(model_path=...); enable(llama).

`python -m reprise_decoding.llama_cpp` is `python -m llama_cpp.server` with drafts, and takes the same arguments.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import secrets
import sys
import weakref
from collections import Counter
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import llama_cpp
import numpy as np
from llama_cpp.llama_speculative import LlamaDraftModel

from ._arrays import Tokens, stops, whole
from ._drafter import Drafter
from ._errors import ArgumentError
from ._handle import Lock
from ._memory import Memory
from ._options import LONGEST, clock_for
from ._request import OTHER, Request, counts, current, request
from ._statistics import Statistics, summed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options

class DraftModel(LlamaDraftModel):  # type: ignore[misc]
    """Drafts for one Llama object. `most`: upper bound on drafted tokens of a pass. `options`: those of Drafter.

    The default of `memory` is a Memory: later requests draft from earlier ones. Memory(text=False) keeps only what was
    learned, and None nothing. The default of `key` is random.
    `eos`: the tokens that end a generation: nothing is drafted after them. enable() takes those of the model.
    The engine calls it before each pass, with all committed tokens.
    Llama(draft_model=DraftModel(), logits_all=True) works too, but costs more than enable(): the engine then computes
    and copies the logits of the whole prompt.
    """

    def __init__(self, most: int = 16, eos: Any = (), **options: Unpack[Options]) -> None:
        self.most = whole(most, "most", most=LONGEST)
        key = options.setdefault("key", secrets.randbits(64))
        if "memory" not in options:
            options["memory"] = Memory(key=key)  # the engine hands text on to the next request, too
        self.drafter, self._options = Drafter(**options), options
        self._stop_at(eos)
        self._request, self._used = OTHER, self.drafter  # a request with a salt uses a drafter of its own
        self._before, self._closed = Counter[str](), Counter[str]()
        self._lock = Lock("DraftModel", waits=True)  # a block may end in another thread than the next request begins in
        self._count, self._sampled = 0, list[int]()  # tokens in the last call of the request, and those after them

    def __call__(self, input_ids: Any, /, **_: Any) -> Tokens:
        if np.less(input_ids, 0).any():  # rows of an image have no ids, and the engine leaves these unset
            return np.empty(0, np.int32)
        if current() is not self._request:
            self._lock.alone(self._change, current(), input_ids[-1:])
        self._sampled.clear()
        draft = self._used.draft(input_ids, self._request.most(self.most) if self.drafter.enabled else 0)
        self._count = len(input_ids)
        return draft

    @property
    def statistics(self) -> Statistics:
        """The counts of all requests together."""
        fields = self.drafter.statistics.fields
        for name, value in self._closed.items():
            fields[name] += value
        return summed(fields)

    def save_costs(self, engine: str) -> bytes:
        """As Drafter.save_costs()."""
        return self.drafter.save_costs(engine)

    def _stop_at(self, eos: Any) -> None:
        self._eos = eos
        self.drafter.stop_at(eos)

    def _picked(self, before: int, token: int) -> None:
        """Notes a token that the engine has sampled after so many ids. It may be one of another request."""
        if before == self._count + len(self._sampled) and current() is self._request:
            self._sampled.append(token)

    def _change(self, request: Request, sampled: Any) -> None:
        """Begins the requests of a block of request(). `sampled`: the output of the first one."""
        self._end(self._request)
        used = self.drafter
        if request is not OTHER:
            if request.salt is not None and self._options["memory"] is not None:
                options: Options = {**self._options, "salt": request.salt}
                used = Drafter(**options)
                used.stop_at(self._eos)
            used.forget()
            request.predict(used, sampled)
            request.at_end(functools.partial(self._lock.alone, self._end, request))
        self._used, self._before, self._request = used, counts(used), request

    def _end(self, request: Request) -> None:
        """Ends them, and shows the drafter the tokens of the last pass."""
        if request is OTHER or request is not self._request:
            return
        used, sampled = self._used, list(self._sampled)
        if sampled:
            with contextlib.suppress(ArgumentError):  # an exception came within draft(), which knows other tokens
                used.draft(sampled, 0, now=0, after=self._count)  # it is not known when the pass has ended
        used.forget()
        after = counts(used)
        after.subtract(self._before)
        request.add(after)
        if used is not self.drafter:
            self._closed.update(after)
            used.close()
        self._request, self._used = OTHER, self.drafter


def enable(llama: Any, most: int = 16, **options: Unpack[Options]) -> DraftModel:
    """Makes a Llama object draft, and returns its DraftModel. `most` and `options`: those of DraftModel.

    The Llama object needs no `logits_all`: the engine computes the logits of a draft's rows, and of the prompt's last
    row. The default of `clock` is processor time if the model is on the processor, and the time of day otherwise.
    Nothing is drafted after a token at which the engine ends a completion. If a caller of `llama.generate()` goes on
    after one, drafts are only shorter.
    To turn drafts off again, set `llama.draft_model = None`; for one request, see reprise_decoding.request().
    """
    if getattr(llama, "_is_recurrent", False) or getattr(llama, "_is_hybrid", False):
        raise ArgumentError("llama: the recurrent state of this model cannot be rolled back, so it takes no drafts")
    engine_batch = getattr(llama, "_batch", None)
    set_batch = getattr(type(engine_batch), "set_batch", None)
    if (
        set_batch is None
        or list(inspect.signature(set_batch).parameters) != ["self", "batch", "n_past", "logits_all"]
        or "idx" not in inspect.signature(type(llama).sample).parameters
    ):
        raise ArgumentError(
            "llama: this release of llama-cpp-python keeps its batch in another way; "
            "use Llama(draft_model=DraftModel(), logits_all=True)"
        )
    most = min(most, llama.n_batch - 1)  # the engine samples from the rows of one batch only
    on_gpu = llama.model_params.n_gpu_layers != 0 and llama_cpp.llama_supports_gpu_offload()
    options.setdefault("clock", clock_for(not on_gpu))
    options.setdefault("vocabulary", llama.n_vocab())  # a prediction may have other ids, which the engine refuses
    drafts = DraftModel(most, **options)
    drafts._stop_at(_stops(llama, drafts.drafter._below))

    def with_logits(batch: Any, n_past: int, logits_all: bool) -> None:
        set_batch(engine_batch, batch, n_past, logits_all or len(batch) <= 1 + most)

    sample = type(llama).sample
    engine: Any = weakref.proxy(llama)  # a cycle would keep the model in memory

    def sample_row(*arguments: Any, idx: int | None = None, **named: Any) -> Any:
        """Hides the rest of the draft from logits processors, to which the engine shows all of it."""
        count = engine.n_tokens
        if idx is None or idx >= count:
            return sample(engine, *arguments, idx=idx, **named)
        engine.n_tokens = idx + 1
        try:
            # The engine finds the logits by idx - n_tokens.
            token = sample(engine, *arguments, idx=idx + engine.n_tokens - count, **named)
            drafts._picked(idx + 1, token)
            return token
        finally:
            engine.n_tokens = count

    engine_batch.set_batch = with_logits  # type: ignore[union-attr]
    llama.sample = sample_row
    llama.draft_model = drafts
    return drafts


def _stops(llama: Any, below: int) -> Tokens:
    """Returns the tokens at which the engine ends a completion: all of the vocabulary that it calls an end."""
    vocab, is_end = llama._model.vocab, llama_cpp.llama_vocab_is_eog
    return stops([token for token in range(llama.n_vocab()) if is_end(vocab, token)], below)


def without_drafts() -> AbstractContextManager[Request]:
    """Turns drafts off in the `with` block, as reprise_decoding.request(enabled=False)."""
    return request(enabled=False)


def _serve() -> None:
    from llama_cpp.server.__main__ import main
    from llama_cpp.server.model import LlamaProxy

    load, used = LlamaProxy.load_llama_from_model_settings, []

    def load_with_drafts(settings: Any) -> Any:
        llama = load(settings)
        try:
            used.append(enable(llama))
        except ArgumentError as refused:
            print(f"no drafts for {settings.model}: {refused}", file=sys.stderr)
        return llama

    LlamaProxy.load_llama_from_model_settings = staticmethod(load_with_drafts)
    main()
    for drafts in used:
        print(drafts.statistics, file=sys.stderr)


if __name__ == "__main__":
    _serve()
