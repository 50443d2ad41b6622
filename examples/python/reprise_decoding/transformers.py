# SPDX-License-Identifier: Apache-2.0
"""For transformers: enable(model) makes model.generate() use drafts."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import Cache, DynamicCache, GenerationMixin
from transformers.generation.candidate_generator import CandidateGenerator

from ._arrays import Tokens, stops, whole
from ._drafter import Drafter
from ._errors import OrderError
from ._handle import Lock
from ._memory import Memory
from ._options import LONGEST, HeadCost, clock_for
from ._request import OTHER, Request, counts, current
from ._session import Pass, Session
from ._statistics import Statistics, summed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options

# Tokens of a prompt that run in one pass with the first draft. The mask of a longer one would need much memory.
_SHORT = 1024
_USED = ("_sample", "_assisted_decoding", "_get_candidate_generator", "_prepare_generation_config")
# Inputs that the engine's loop for assisted generation extends by the drafted tokens, and options.
_TEXT = {
    *("attention_mask", "position_ids", "token_type_ids", "encoder_outputs", "decoder_attention_mask"),
    *("past_key_values", "use_cache", "logits_to_keep", "tokenizer", "output_attentions", "output_hidden_states"),
}
# Processors of transformers that keep state from call to call, so that they may see committed tokens only.
_STATEFUL = {
    "UnbatchedClassifierFreeGuidanceLogitsProcessor",
    "SynthIDTextWatermarkLogitsProcessor",
    "DiaEOSDelayPatternLogitsProcessor",
}


def enable(
    model: Any, most: int = 16, *, max_leaves: int = 1, custom: bool = False, head_cost: HeadCost | float | None = None,
    **options: Unpack[Options],
) -> Drafts:  # fmt: skip
    """Makes generate() of this model use drafts until disable(model), or until the end of `with enable(model):`.

    The arguments of generate() stay as they are: streamers, stop strings, threads, pipelines and chat templates work.
    `prompt_lookup_num_tokens=0` turns drafts off for one request; reprise_decoding.request() also bounds them, gives a
    request a salt, and counts it. A request that drafts cannot serve is decoded without them, such as a batch or a beam
    search: see docs/engines.md. Drafts.statistics counts these by reason.
    With generate(assistant_model=...), each pass has the lookup, the assistant model, both or none, whatever pays. That
    needs what branches need; other requests with an assistant are decoded by the engine's own assisted generation.

    `most`: upper bound on drafted tokens of a pass. `max_leaves`: upper bound on the branches of a draft; 1: chains.
    Branches need full attention in all layers. `custom`: True: draft also for requests with a prefix_allowed_tokens_fn,
    or with logits processors or stopping criteria from outside transformers. They see drafted tokens, so they must be
    functions of their arguments, for any ids. `head_cost`: of an assistant model, if `cost` is told. `options`: those
    of Drafter, but the default of `clock` is processor time if all parameters are on the processor. So move the model to its device first.
    Raises ValueError if the model cannot use drafts, OrderError if it uses them already.
    """
    if not _is_known_release():
        raise ImportError("this release of transformers has another loop for assisted generation: see docs/engines.md")
    kind: Any = type(model)
    if not isinstance(model, GenerationMixin):
        raise TypeError(f"model: must be a model of transformers with generate(), but is of the type {kind.__name__}")
    if "_drafts" in vars(kind):
        raise OrderError("model: drafts are enabled already; call disable(model) first")
    if getattr(model, "_is_stateful", False):
        raise ValueError(f"model: the recurrent state of {kind.__name__} cannot be rolled back")
    if any(getattr(kind, name) is not getattr(GenerationMixin, name) for name in _USED):
        raise ValueError(f"model: {kind.__name__} has a decoding loop of its own, which takes no drafts")
    mesh = getattr(model, "_device_mesh", None)
    if mesh is not None and mesh.size() > 1:  # each would learn costs of its own
        raise ValueError(f"model: is split over {mesh.size()} processes, which would draft different lengths")
    if max_leaves > 1:
        _check_attention(model.config)
    options.setdefault("memory", Memory(text=False))  # the engine shares no text between requests, either
    options.setdefault("clock", clock_for(all(each.device.type == "cpu" for each in model.parameters())))
    drafts = Drafts(model, most, max_leaves, custom, head_cost, options)
    # generate() takes its loops from the class of the model, so the model gets a class of its own with the same name.
    members = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    model.__class__ = type(kind)(kind.__name__, (_Drafting, kind), {**members, "_drafts": drafts})
    return drafts


def _is_known_release() -> bool:
    return (
        all(hasattr(GenerationMixin, name) for name in _USED)
        and "generation_config" in inspect.signature(GenerationMixin._get_candidate_generator).parameters
        and hasattr(Cache, "activate_past_recording")
    )


def _check_attention(config: Any) -> None:
    """Raises ValueError if the rows of a branch cannot see their own path alone."""
    if getattr(config, "_attn_implementation", "sdpa") not in ("sdpa", "eager"):
        raise ValueError('model: branches need attention with a 4-D mask: load it with attn_implementation="sdpa"')
    if (
        any(type(layer).__name__ != "DynamicLayer" for layer in DynamicCache(config=config).layers)
        or "local" in getattr(config, "attention_layers", ())  # GPT-Neo
        or getattr(config, "alibi", False)  # Falcon
    ):
        raise ValueError("model: branches need full attention in all layers, with position_ids: use max_leaves=1")


def disable(model: Any) -> None:
    """Gives the model the class that it had before enable(). Generations that run go on with drafts to their end."""
    if "_drafts" not in vars(type(model)):
        raise OrderError("model: drafts are not enabled")
    model.__class__ = type(model).__bases__[1]


class Drafts:
    """The drafters of a model, made by enable(). Each generation uses one of its own, so any number of threads may run.

    A drafter serves one generation after another. What a generation learned about costs is known to drafters that are
    made later, for more threads.
    """

    def __init__(
        self, model: Any, most: int, max_leaves: int, custom: bool, head_cost: HeadCost | float | None, options: Options
    ) -> None:
        # The class of the model refers to this object.
        self._model, self._custom, self._options = weakref.ref(model), custom, options
        self._most, self._max_leaves = whole(most, "most", most=LONGEST), whole(max_leaves, "max_leaves", least=1)
        self._head_cost, self._lock = head_cost, Lock("Drafts", waits=True)
        self._counts: Counter[str] = Counter()
        self._free: list[Any] = []
        self._beside_assistants: list[Any] = []
        self._give_back(self._new(), self._free)  # wrong options raise here

    def __enter__(self) -> Drafts:
        return self

    def __exit__(self, *_: object) -> None:
        model = self._model()
        if vars(type(model)).get("_drafts") is self:
            disable(model)

    @property
    def statistics(self) -> Statistics:
        """The counts of all generations that have ended. `fields` has whole numbers only.

        `fields["plain_REASON"]`: the requests that were decoded without drafts for this reason, such as "beams".
        """
        return summed(self._lock.alone(dict, self._counts))

    def save_costs(self, engine: str) -> bytes:
        """As Drafter.save_costs(): the costs that the last generation has learned."""
        if self._options["memory"] is not None:
            return Drafter(**self._options).save_costs(engine)  # with its salt: another may take the place of one
        with self._drafter() as drafter:
            return bytes(drafter.save_costs(engine))

    def _new(self, salt: int | None = None, assisted: bool = False) -> Any:
        options: Options = self._options if salt is None else {**self._options, "salt": salt}
        if assisted:
            return Session(head_cost=self._head_cost, **options)
        return (Session if self._max_leaves > 1 else Drafter)(**options)

    def _give_back(self, drafter: Any, free: list[Any], salt: int | None = None) -> None:
        end = drafter.forget if isinstance(drafter, Drafter) else drafter.keep
        end()  # the memory has the request then, for any drafter
        if salt is None:
            free.append(drafter)
        else:
            drafter.close()

    @contextlib.contextmanager
    def _drafter(self, request: Request = OTHER, assisted: bool = False) -> Iterator[Any]:
        """A drafter that no other generation uses."""
        free = self._beside_assistants if assisted else self._free
        try:
            drafter = free.pop() if request.salt is None else self._lock.alone(self._new, request.salt, assisted)
        except IndexError:
            drafter = self._lock.alone(self._new, None, assisted)
        # The counts of a session begin with each generation, those of a drafter go on.
        before = counts(drafter) if isinstance(drafter, Drafter) else Counter[str]()
        try:
            yield drafter
        finally:
            after = counts(drafter)
            after.subtract(before)
            self._lock.alone(self._counts.update, after)
            request.add(after)
            self._give_back(drafter, free, request.salt)

    def _reason(
        self, model: Any, ids: Any, processors: Any, criteria: Any, config: Any, inputs: dict[str, Any],
        assisted: bool = False,
    ) -> str | None:  # fmt: skip
        """Returns why the loop for chains or that for branches cannot do a request, or would do it wrongly."""
        cache = inputs.get("past_key_values")
        chain = self._max_leaves == 1 and not assisted
        fits = _is_empty(cache) if chain else _takes_branches(cache, ids, config, inputs)
        reasons = {
            "several_sequences": ids.shape[0] != 1,
            "turned_off": (
                not current().enabled
                or getattr(config, "_without_drafts", False)
                or getattr(config, "is_assistant", False)
            ),
            "prefill_chunks": getattr(config, "prefill_chunk_size", None) is not None,
            "no_cache": not inputs.get("use_cache"),
            # The loop expects attentions of each row, which not every kind of attention returns.
            "attentions": bool(inputs.get("output_attentions")),
            "inputs": not inputs.keys() <= _TEXT,
            "stateful_processors": any(type(each).__name__ in _STATEFUL for each in processors),
            "custom_code": not self._custom and not all(_is_own(each) for each in [*processors, *criteria]),
            "cache": not fits,
            "device": chain and ids.device != model.device,  # the loop compares the ids with drafts
        }
        return next((reason for reason, found in reasons.items() if found), None)

    def _count_plain(self, reason: str) -> None:
        self._lock.alone(self._counts.update, [f"plain_{reason}"])

    def _generate(
        self, model: Any, ids: Any, processors: Any, criteria: Any, config: Any, streamer: Any, inputs: dict[str, Any],
        head: _Head | None = None,
    ) -> Any:  # fmt: skip
        request = current()
        most = request.most(self._most)
        with self._drafter(request, head is not None) as drafter:
            if isinstance(drafter, Session):
                return self._with_branches(
                    drafter, request, most, model, ids, processors, criteria, config, streamer, inputs, head
                )
            # The config is a copy for this request. If disable() comes now, the engine uses its own lookup.
            config._candidates = candidates = _Candidates(drafter, request, most, _longest(config, criteria), criteria)
            config.prompt_lookup_num_tokens = max(1, most)
            single = _Single(streamer) if streamer is not None else None
            try:
                return GenerationMixin._assisted_decoding(
                    model, ids, processors, criteria, config, streamer=single, **inputs
                )
            finally:
                candidates.end()

    def _with_branches(
        self, session: Session, request: Request, most: int, model: Any, ids: Any, processors: Any, criteria: Any, config: Any,
        streamer: Any, inputs: dict[str, Any], head: _Head | None,
    ) -> Any:  # fmt: skip
        request.predict(session)
        cache = inputs["past_key_values"]
        cached = cache.get_seq_length()
        long = ids.shape[1] - cached > _SHORT
        # First, for the counts if the prefill fails.
        session.begin(ids[0].cpu().numpy(), cached=None if long else cached, max_leaves=self._max_leaves)
        if long:
            prefix = ids[:, cached:-1].to(model.device)
            model(input_ids=prefix, past_key_values=cache, use_cache=True, logits_to_keep=1)
        longest, eos = _longest(config, criteria), _eos(criteria, session._below)
        while True:
            bound = max(0, min(most, longest - ids.shape[1] - 1))
            if head is not None:
                head.draft(session, ids, session.propose_lookup(bound, eos=eos))
            step = session.plan(bound, eos=eos)
            assert step is not None  # the stopping criteria, which have these ends too, end the output
            cached = ids.shape[1] - step.pending
            logits = _run(model, step, cached, cache).to(ids.device)
            _report(session, logits)
            done = session.commit(_picks(step, ids, logits, processors, config.do_sample))
            if done.keep < len(step.batch):
                _keep(cache, np.concatenate([np.arange(cached), cached + done.rows]))
            for token in done.tokens.tolist():
                fresh = torch.tensor([[token]], dtype=ids.dtype, device=ids.device)
                ids = torch.cat([ids, fresh], dim=1)
                if streamer is not None:
                    streamer.put(fresh[0].cpu())
                if bool(criteria(ids, None).all()):
                    _keep(cache, np.arange(ids.shape[1] - 1))  # tokens after this one are not part of the output
                    if streamer is not None:
                        streamer.end()
                    return ids


class _Drafting:
    """The first base of the class of a model with drafts. disable() may come while another thread is in generate()."""

    def _prepare_generation_config(self, *positional: Any, **named: Any) -> Any:
        config, inputs = GenerationMixin._prepare_generation_config(self, *positional, **named)
        if config.prompt_lookup_num_tokens == 0:  # the engine refuses it
            config.prompt_lookup_num_tokens = None
            config._without_drafts = True
        return config, inputs

    def _sample(
        self, input_ids: Any, logits_processor: Any, stopping_criteria: Any, generation_config: Any,
        synced_gpus: bool = False, streamer: Any = None, **inputs: Any,
    ) -> Any:  # fmt: skip
        drafts = getattr(type(self), "_drafts", None)
        asked = input_ids, logits_processor, stopping_criteria, generation_config
        if drafts is None:
            return GenerationMixin._sample(self, *asked, synced_gpus=synced_gpus, streamer=streamer, **inputs)
        reason = "several_processes" if synced_gpus else drafts._reason(self, *asked, inputs)
        if reason is not None:
            drafts._count_plain(reason)
            made = GenerationMixin._sample(self, *asked, synced_gpus=synced_gpus, streamer=streamer, **inputs)
            passes = int(getattr(made, "sequences", made).shape[1]) - int(input_ids.shape[1])
            current().add(Counter(tokens=passes, passes=passes))  # a pass for each token, of several sequences too
            return made
        return drafts._generate(self, *asked, streamer, inputs)

    def _assisted_decoding(
        self, input_ids: Any, logits_processor: Any, stopping_criteria: Any, generation_config: Any,
        synced_gpus: bool = False, streamer: Any = None, inputs_tensor: Any = None, assistant_model: Any = None,
        assistant_tokenizer: Any = None, tokenizer: Any = None, **inputs: Any,
    ) -> Any:  # fmt: skip
        drafts = getattr(type(self), "_drafts", None)
        asked = input_ids, logits_processor, stopping_criteria, generation_config
        if drafts is not None and assistant_model is not None:
            reason = "several_processes" if synced_gpus else drafts._reason(self, *asked, inputs, assisted=True)
            if reason is None and not (assistant_tokenizer is None and _can_help(assistant_model, self)):
                reason = "assistant"
            if reason is None:
                return drafts._generate(self, *asked, streamer, inputs, _Head(assistant_model))
            drafts._count_plain(reason)
        return GenerationMixin._assisted_decoding(
            self, *asked, synced_gpus=synced_gpus, streamer=streamer, inputs_tensor=inputs_tensor,
            assistant_model=assistant_model, assistant_tokenizer=assistant_tokenizer, tokenizer=tokenizer, **inputs,
        )  # fmt: skip

    def _beam_search(self, *positional: Any, **named: Any) -> Any:
        drafts = getattr(type(self), "_drafts", None)
        if drafts is not None:
            drafts._count_plain("beams")
        return GenerationMixin._beam_search(self, *positional, **named)

    def _get_candidate_generator(self, generation_config: Any, **more: Any) -> Any:
        candidates = getattr(generation_config, "_candidates", None)
        if candidates is not None:
            return candidates
        return GenerationMixin._get_candidate_generator(self, generation_config=generation_config, **more)


class _Head:
    """The assistant model of a generation. Its cache may lack the last tokens, and may have rejected ones."""

    def __init__(self, model: Any) -> None:
        self._model, self._cache, self._known = model, DynamicCache(config=model.config), np.zeros(0, np.int64)
        self._cache.activate_past_recording()  # else a sliding window cannot be rolled back
        self._options = {"logits_to_keep": 1} if model._supports_logits_to_keep() else {}

    def draft(self, session: Session, ids: Any, count: int) -> None:
        """Adds the assistant's `count` likeliest tokens after the ids to the draft of the session."""
        if count == 0:
            return
        begin, text = session._clock(), ids[0].cpu().numpy()
        known = self._known[: len(text) - 1]  # the last token has to run
        kept = len(known) if (same := known == text[: len(known)]).all() else int(same.argmin())
        if kept < len(self._known):
            self._cache.crop(kept - len(self._known))
        made: list[int] = []
        fresh = text[kept:]
        while len(made) < count:
            rows = torch.from_numpy(fresh.copy()).to(self._model.device)[None]
            passed = self._model(input_ids=rows, past_key_values=self._cache, use_cache=True, **self._options)
            last = passed.logits[0, -1:]
            fresh = last.argmax(dim=-1).cpu().numpy()
            made.append(int(fresh[0]))
        self._known = np.concatenate([text, made[:-1]])
        session.add_head(made, max(0, session._clock() - begin))


class _Single:
    """Hands a streamer each token alone, as plain decoding does. The engine's loop puts those of a pass together."""

    def __init__(self, streamer: Any) -> None:
        self._streamer, self.end = streamer, streamer.end

    def put(self, tokens: Any) -> None:
        for token in tokens.unbind(1):
            self._streamer.put(token)


class _Candidates(CandidateGenerator):  # type: ignore[misc]
    def __init__(self, drafter: Drafter, request: Request, most: int, max_length: int, criteria: Any) -> None:
        self._drafter, self._most, self._ids, self._known = drafter, most, None, 0
        self._request, self._max_length = request, max_length
        drafter.stop_at(_eos(criteria, drafter._below))  # also if there are none: it had those of another request
        self._own = type(criteria)(each for each in criteria if _is_own(each))
        self._custom = [each for each in criteria if not _is_own(each)]
        self._window = max((getattr(each, "maximum_token_len", 0) for each in criteria), default=0)

    def get_candidates(self, input_ids: Any, **_: Any) -> tuple[Any, None]:
        count = input_ids.shape[1]
        room = max(0, self._max_length - count - 1) if count >= self._window else 0
        new = input_ids[0, self._known :].cpu().numpy()  # the loop only appends
        if not self._known:
            self._request.predict(self._drafter)
        draft = self._drafter.draft(new, min(self._most, room), after=self._known)
        self._known = count
        longer = torch.cat([input_ids, torch.from_numpy(draft).to(input_ids)[None]], dim=1)
        kept = self._before_stop(longer, count)
        if kept < len(draft):
            self._drafter.verified(kept)  # the pass shows nothing about the others
        return longer[:, : count + kept], None

    def update_candidate_strategy(self, input_ids: Any, *_: Any, **__: Any) -> None:
        self._ids = input_ids

    def end(self) -> None:
        """Shows the drafter the tokens of the last pass."""
        if self._ids is not None:
            self._drafter.draft(self._ids[0].cpu().numpy(), 0)  # all, in case an exception came within draft()
        self._drafter.forget()

    def _before_stop(self, longer: Any, count: int) -> int:
        """Returns how many drafted tokens a pass may have, so that it does not go on after a stop.

        The loop checks the criteria after a pass alone, whose last token is the model's own. So a draft that would stop
        at its i-th token is cut before this token.
        """
        drafted = int(longer.shape[1]) - count
        if drafted == 0:
            return 0
        # The criteria of transformers depend on the last tokens alone: row i ends with drafted token i.
        stops = self._own(longer[0].unfold(0, count + 1, 1), None).cpu().numpy()
        for i in range(drafted):
            if stops[i] or any(_fires(each, longer[:, : count + i + 1]) for each in self._custom):
                return i
        return drafted


def _can_help(assistant: Any, model: Any) -> bool:
    """Returns whether the lookup and an assistant model can draft together for a model."""
    if not isinstance(assistant, GenerationMixin) or assistant.config.is_encoder_decoder:
        return False
    with contextlib.suppress(ValueError):
        _check_attention(model.config)
        sizes = {each.config.get_text_config().vocab_size for each in (assistant, model)}
        return len(sizes) == 1
    return False


def _longest(config: Any, criteria: Any) -> int:
    """Returns the number of tokens at which a generation ends."""
    limits = [int(each.max_length) for each in criteria if hasattr(each, "max_length")]
    return min([int(config.max_length), *limits])


def _eos(criteria: Any, below: int) -> Tokens:
    """Returns the tokens that end a generation."""
    ids = [each.eos_token_id.cpu().numpy() for each in criteria if type(each).__name__ == "EosTokenCriteria"]
    return stops(np.hstack(ids) if ids else None, below)


def _fires(criterion: Any, ids: Any) -> bool:
    fired = criterion(ids, None)
    return fired if isinstance(fired, bool) else bool(fired.all())


def _is_own(part: Any) -> bool:
    """Returns whether a logits processor or a stopping criterion is one of transformers, without code of the user."""
    kind = type(part)
    return kind.__module__.split(".")[0] == "transformers" and kind.__name__ != "PrefixConstrainedLogitsProcessor"


def _is_empty(cache: Any) -> bool:
    """Returns whether the cache is one that the loop can roll back, without tokens: the loop would run them again."""
    cache = getattr(cache, "self_attention_cache", cache)
    return (
        type(cache).__name__ == "DynamicCache"
        and not getattr(cache, "offloading", False)
        and int(cache.get_seq_length()) == 0
    )


def _takes_branches(cache: Any, ids: Any, config: Any, inputs: dict[str, Any]) -> bool:
    """Returns whether the loop for branches can serve a request: ids alone, one sequence without padding."""
    layers = getattr(cache, "layers", ())
    return (
        type(cache).__name__ == "DynamicCache"
        and not getattr(cache, "offloading", False)
        and all(type(layer).__name__ == "DynamicLayer" for layer in layers)
        and int(cache.get_seq_length()) < ids.shape[1] == getattr(config, "_mask_length", ids.shape[1])
        and inputs.get("attention_mask") is None
        and not config.return_dict_in_generate
        and not inputs.keys() & {"token_type_ids", "encoder_outputs"}
        and _count_from_zero(inputs.get("position_ids"), ids.shape[1])
    )


def _count_from_zero(positions: Any, length: int) -> bool:
    """Returns whether positions are those of the loop for branches. They are None if the model takes none."""
    if positions is None:
        return False
    wanted = np.arange(length - positions.shape[-1], length)
    return np.array_equal(positions.cpu().numpy(), wanted[None])


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


def _report(session: Session, logits: Any) -> None:
    """Shows the session the likeliest tokens of all rows, if it wants them."""
    wanted = session.top_k_wanted
    if wanted:
        for row, likeliest in enumerate(logits.topk(wanted, dim=-1).indices.cpu().numpy()):
            session.report_top_k(row, likeliest)


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
    first, chosen = int(rows[-1]) + 1 == len(rows), torch.from_numpy(rows)
    for layer in cache.layers:
        for name in ("keys", "values"):
            all_rows = getattr(layer, name)
            kept = all_rows[:, :, : len(rows)] if first else all_rows.index_select(2, chosen.to(all_rows.device))
            setattr(layer, name, kept)
