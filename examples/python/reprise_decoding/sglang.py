# SPDX-License-Identifier: Apache-2.0
"""For SGLang: add --speculative-algorithm REPRISE to its start command. The installed package is a plug-in for it."""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import logging
import secrets
import types
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._arrays import BELOW, Tokens, stops, tokens
from ._costs import CostCurve
from ._errors import OrderError
from ._library import FINISHED, Commit, Limits, Pass
from ._memory import Memory, salt_number
from ._options import LONGEST
from ._request import bound, rest
from ._session import Session

if TYPE_CHECKING:
    from ._options import Options

#: Options of Session, for a plug-in of yours that sets them before the engine starts. The default of `cost` is 0:
#: SGLang runs the same number of rows with any draft. That of `memory` is a Memory, which keeps text if requests share
#: a prefix cache. That of `key` is random.
options: Options = {}

_UNKNOWN = "REPRISE: this release of SGLang has another interface for drafts: see docs/engines.md"
# Names in the method of SGLang's worker that prepare() replaces, and the arguments of the class.
_USED = (
    *("batch_get", "enable_overlap", "grammar_needs_sync", "spec_info", "accept_tokens", "accept_lens"),
    *("reqs", "rid", "origin_input_ids_unpadded", "output_ids", "draft_token_num"),
)
_INTS = [ctypes.c_int32 * count for count in range(LONGEST + 2)]
_ARGUMENTS = ["self", "server_args", "gpu_id", "nccl_port", "target_worker"]


class Drafts:
    """Draft trees for the requests of a pass, in place of SGLang's corpus. Each request has a session of its own.

    `width`: rows of a request in each pass: the last token and the draft. `leaves`: upper bound on branches; 1: chains.
    `vocabulary`: as for Session. Nothing here depends on times.
    """

    def __init__(self, width: int, leaves: int, vocabulary: int, keeps_text: bool, given: Options) -> None:
        self.width, self.leaves, self.below = width, leaves, vocabulary or BELOW
        self._keeps_text, self._given = keeps_text, given
        self._options: Options = {"cost": CostCurve.linear(0), "vocabulary": vocabulary, **given}
        self._running: dict[str, _Running] = {}
        self.reset()

    def reset(self) -> None:
        """Forgets all text: SGLang flushes its prefix cache."""
        for running in self._running.values():
            running.session.close()
        self._running.clear()
        if "memory" not in self._given:
            self._options["memory"] = Memory(text=self._keeps_text, key=self._given.get("key", 0))

    def batch_get(
        self, requests: Sequence[tuple[Any, Sequence[int]]]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Returns the rows of all requests, and for each row which rows of its request it sees, both flat.

        `requests`: those of the next pass, with the committed tokens that their `output_ids` do not have yet. Spare
        rows continue the last row with the token 0.
        """
        names = {request.rid for request, _ in requests}
        self.erase_match_state([name for name in self._running if name not in names])  # first, for new requests
        rows = np.zeros((len(requests), self.width), np.int64)
        seen = np.empty((len(requests), self.width, self.width), np.bool_)
        seen[:] = np.tri(self.width, dtype=np.bool_)
        for row, mask, (request, more) in zip(rows, seen, requests):
            running = self._running.get(request.rid)
            if running is None or not running.follow(request, more):
                running = self._begin(request, more)
            drafted, parents = running.plan()
            row[: len(drafted)] = drafted
            if parents != list(range(len(parents))):
                for place, parent in enumerate([*parents, *range(len(parents), self.width - 1)], 1):
                    mask[place, :place] = mask[parent, :place]
        return rows.reshape(-1), seen.reshape(-1)

    def _begin(self, request: Any, more: Sequence[int]) -> _Running:
        self.erase_match_state([request.rid])
        extra = request.sampling_params.custom_params
        extra = extra if isinstance(extra, dict) else {}
        most = bound(extra, self.width - 1)
        given, salts = self._options, [getattr(request, name, None) for name in ("extra_key", "cache_salt")]
        if any(salts):  # requests share a prefix cache if they share both
            name = "\0".join(salt or "" for salt in salts)
            given = {**given, "salt": salt_number(name, self._options.get("key", 0))}
        session, prompt = Session(**given), _ids(request.origin_input_ids_unpadded)
        output = np.concatenate([_ids(request.output_ids), _ids(more)])
        if "reprise_prediction" in extra:
            with contextlib.suppress(TypeError, ValueError):  # others would end the engine
                session.predict(rest(tokens(extra["reprise_prediction"], "prediction", self.below), output))
        ids = np.concatenate([prompt, output])
        session.begin(ids, max_leaves=self.leaves)
        running = _Running(session, request, most, stops(_ends(request), self.below), len(output), int(ids[-1]))
        self._running[request.rid] = running
        return running

    def erase_match_state(self, names: Iterable[str]) -> None:
        """Ends requests. The memory has their texts then."""
        for running in [self._running.pop(name) for name in names if name in self._running]:
            running.end()

    def load_external_corpus_named(self, name: str, chunks: Iterable[Sequence[int]]) -> int:
        """Adds the texts of --speculative-ngram-external-corpus-path to the memory. Returns their length."""
        memory = self._options.get("memory")
        if memory is None or not (self._keeps_text or "memory" in self._given):
            raise ValueError(f"REPRISE: {name} needs a memory with text: leave the radix cache on")
        texts = [np.asarray(chunk, np.int32) for chunk in chunks]
        for text in texts:
            memory.add(text)
        return sum(len(text) for text in texts)

    def commit_external_corpus_load(self, name: str, count: int) -> None:
        """SGLang counts the texts of several files here; there is one."""


class _Running:
    """A request that is decoded. Its calls of the library take the shortest way."""

    def __init__(self, session: Session, request: Any, most: int, eos: Tokens, known: int, last: int) -> None:
        self.session, self._most = session, most
        self._output = request.output_ids  # SGLang extends it, and makes another one if the request begins again
        self._known = known  # tokens of the output
        self._rows, self._parents = [last], list[int]()  # of the last pass, as plan() returns them
        self._open = False
        ends = (ctypes.c_int32 * len(eos))(*eos.tolist())
        self._limits = ctypes.byref(Limits(ctypes.sizeof(Limits), 0, 0, ends, len(ends)))
        self._pass, self._made = Pass(ctypes.sizeof(Pass)), Commit(ctypes.sizeof(Commit))

    def plan(self) -> tuple[list[int], list[int]]:
        """Returns the last token and the draft, and the row before each drafted one."""
        try:
            self.session._call("plan", self._limits, self._most, ctypes.byref(self._pass), read=self._read)
            self._open = True
        except OrderError as ended:  # SGLang may not know yet
            if ended.status != FINISHED:
                raise
            self._rows, self._parents, self._open = self._rows[:1], [], False
        return self._rows, self._parents

    def _read(self) -> None:
        plan = self._pass
        self._rows = _INTS[1 + plan.drafted].from_address(plan.batch + 4 * (plan.pending - 1))[:]
        parents = _INTS[plan.drafted].from_address(plan.parents)[:] if plan.drafted else []
        self._parents = [parent + 1 for parent in parents]

    def follow(self, request: Any, more: Sequence[int]) -> bool:
        """Commits the new tokens. Returns false if the text is another one."""
        if request.output_ids is not self._output or len(self._output) < self._known:
            return False
        new = [*self._output[self._known :], *more]
        return not new or self._commit(new)

    def _commit(self, new: list[int]) -> bool:
        if not self._open:
            self._rows = new[-1:]
            return False
        picks, row = _INTS[len(self._rows)](), 0
        after = {place: number for number, place in enumerate(zip(self._parents, self._rows[1:]), 1)}
        for token in new:
            picks[row] = token
            row = after.get((row, token), -1)
            if row < 0:
                break
        out = ctypes.byref(self._made)
        made: list[int] = self.session._call("commit", picks, len(picks), 0, out, read=self._read_tokens)
        self._open, self._known, self._rows = False, self._known + len(new), new[-1:]
        if made != new[: len(made)]:
            return False
        if len(made) < len(new):  # SGLang has accepted spare rows
            self.session.append(_ids(new[len(made) :]))
        return True

    def _read_tokens(self) -> list[int]:
        return list((ctypes.c_int32 * self._made.count).from_address(self._made.tokens)) if self._made.count else []

    def end(self) -> None:
        """Hands the text to the memory."""
        if new := list(self._output[self._known :]):
            self._commit(new)
        self.session.keep()
        self.session.close()


def _ends(request: Any) -> list[int]:
    """Returns the tokens that end a request."""
    params = request.sampling_params
    return [] if params.ignore_eos else [*(request.eos_token_ids or ()), *(params.stop_token_ids or ())]


def _ids(ids: Any) -> Tokens:
    """Returns a copy of token ids. Those that no token can have are -1."""
    array = np.array(ids, np.int64)
    return np.where((array < 0) | (array >= BELOW), -1, array).astype(np.int32)


def register() -> None:
    """Adds the method REPRISE to SGLang, which calls it in each of its processes, as a plug-in.

    The method is SGLang's NGRAM with other drafts.
    """
    try:
        from sglang.srt.speculative.spec_info import SpeculativeAlgorithm
        from sglang.srt.speculative.spec_registry import CustomSpecAlgo

        ngram, add = SpeculativeAlgorithm.NGRAM, SpeculativeAlgorithm.register
    except (ImportError, AttributeError):
        logging.getLogger(__name__).warning(_UNKNOWN)
        return

    def same(name: str) -> Any:
        return lambda _, *given, **named: getattr(ngram, name)(*given, **named)

    # All that SGLang asks a method, some of which CustomSpecAlgo does not have.
    members: dict[str, Any] = {
        name: same(name)
        for name, member in vars(SpeculativeAlgorithm).items()
        if isinstance(member, types.FunctionType) and not name.startswith("_") and name != "create_worker"
    }
    members["handle_server_args"] = _handle_server_args
    kind = type("Reprise", (CustomSpecAlgo,), members)
    add("REPRISE", supports_overlap=True, validate_server_args=_validate, spec_class=kind)(_worker)


def _validate(server_args: Any) -> None:
    """Raises ValueError if drafts cannot run with these arguments, or in this release."""
    if not _is_known_release():
        raise ValueError(_UNKNOWN)
    if getattr(server_args, "tp_size", 1) > 1:  # different drafts of two processes would spoil the text
        raise ValueError("REPRISE: leave --tp-size at 1: no two processes of a model have been tried")
    if (server_args.speculative_num_draft_tokens or 0) > LONGEST + 1:
        raise ValueError(f"REPRISE: --speculative-num-draft-tokens must be at most {LONGEST + 1}")


def _is_known_release() -> bool:
    try:
        from sglang.srt.arg_groups.speculative_hook import _handle_ngram  # noqa: F401
        from sglang.srt.speculative import ngram_worker

        worker = ngram_worker.NGRAMWorker
        source = inspect.getsource(worker._prepare_draft_tokens)
        return (
            list(inspect.signature(worker.__init__).parameters) == _ARGUMENTS
            and all(hasattr(ngram_worker, name) for name in ("NgramCorpus", "NgramVerifyInput"))
            and hasattr(worker, "_update_ngram_corpus")
            and all(name in source for name in _USED)
        )
    except (ImportError, AttributeError, OSError, TypeError, ValueError):
        return False


class _Arguments:
    """Server arguments that SGLang's own function resolves."""

    def __init__(self, server_args: Any) -> None:
        self._server_args = server_args
        self._resolved_overrides: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server_args, name)


def _handle_server_args(_: Any, server_args: Any) -> None:
    """Sets the same arguments as for NGRAM."""
    from sglang.srt.arg_groups.speculative_hook import _handle_ngram

    resolved = _Arguments(server_args)
    _handle_ngram(resolved)
    for _, fields in resolved._resolved_overrides:
        for name, value in fields.items():
            setattr(server_args, name, value)


def _worker(_: Any) -> Any:
    """Returns the class of SGLang's worker, with other drafts."""
    from sglang.srt.arg_groups.overrides import resolving_view
    from sglang.srt.distributed.parallel_state import get_world_group
    from sglang.srt.speculative import ngram_worker

    base: Any = ngram_worker.NGRAMWorker

    def create(self: Any, server_args: Any, gpu_id: int, nccl_port: int, target_worker: Any) -> None:
        def corpus(*, draft_token_num: int, max_bfs_breadth: int, **_: Any) -> Drafts:
            given: Options = dict(options)  # type: ignore[assignment]
            if "key" not in given:  # the processes of a model must draft the same
                given["key"] = get_world_group().broadcast_object(secrets.randbits(64), src=0)
            vocabulary = int(target_worker.model_runner.model_config.vocab_size)
            shared = not resolving_view(server_args).disable_radix_cache
            return Drafts(draft_token_num, max_bfs_breadth, vocabulary, shared, given)

        before, ngram_worker.NgramCorpus = ngram_worker.NgramCorpus, corpus  # SGLang's would be compiled
        try:
            base.__init__(self, server_args, gpu_id, nccl_port, target_worker)
        finally:
            ngram_worker.NgramCorpus = before

    def prepare(self: Any, batch: Any) -> Any:
        more: list[list[int]] = [[] for _ in batch.reqs]
        if self.enable_overlap and not batch.grammar_needs_sync():  # output_ids are a pass behind
            ids, width = batch.spec_info.accept_tokens.tolist(), self.draft_token_num
            for i, count in enumerate(batch.spec_info.accept_lens.tolist()):
                more[i] = ids[i * width : i * width + count]
        return self.ngram_corpus.batch_get(list(zip(batch.reqs, more)))

    def update(self: Any, batch: Any) -> None:
        """SGLang's corpus learns here."""

    members = {"__init__": create, "_prepare_draft_tokens": prepare, "_update_ngram_corpus": update}
    return type("RepriseWorker", (base,), members)
