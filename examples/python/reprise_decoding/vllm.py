# SPDX-License-Identifier: Apache-2.0
"""For vLLM: speculative_config={"method": "custom_class", "model": "reprise_decoding.vllm.Proposer", ...}."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import secrets
import sys
import types
import warnings
import weakref
from collections.abc import Sequence
from ctypes import c_int32
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ._arrays import BELOW, Tokens, address, has_outside, stops, tokens, whole
from ._batch import BatchDrafter
from ._errors import error
from ._library import Slot, library
from ._memory import Memory
from ._options import LONGEST
from ._request import rest

if TYPE_CHECKING:
    from ._options import Options

_SALT = "reprise_cache_salt"  # in extra_args of a request, on its way through the engine
_carries_salts = False  # register() has been called
_MANY = 2**31  # more rows than any pass has
_Owner = tuple[int | str, str | None]  # whose text a slot has: a salt, and the name of a request with a prediction
_Settings = tuple[int, _Owner, Any]
_DRAFTS = [c_int32 * count for count in range(LONGEST + 1)]


class Proposer:
    """Drafts for all rows of a batch. vLLM creates it; make a subclass to change the class members.

    A row can belong to another request in the next pass. So each slot of the drafter follows a text: a row has the slot
    whose tokens its text begins with. Rows may take turns: a slot keeps its text while no row has it, until its request
    has ended, or all slots are in use and it is the least recently used one. Then a row with a new text gets it, where
    nothing of the text before is left. A row with ids that are no tokens, such as -1, drafts nothing.

    Three entries of SamplingParams.extra_args (`vllm_xargs` of a server) are settings of a request:
    `reprise_enabled`: False (or 0) turns drafts off. `reprise_max_draft`: upper bound on drafted tokens of a pass.
    `reprise_prediction`: a list of token ids that the output may repeat, see Drafter.predict(). An entry with another
    kind of value, or with an id that the model does not have, has no effect, because it would end the engine.
    Drafts come from text of the `cache_salt` of a request alone.

    Nothing is drafted after an EOS token of the model. Requests with `ignore_eos` or `min_tokens` have shorter drafts
    there, and their `stop_token_ids` and `max_tokens` are not used.
    """

    #: Options of BatchDrafter. The default of `max_draft` is num_speculative_tokens, and that of `key` is random. That
    #: of `memory` is a Memory. It keeps text if vLLM shares a prefix cache between requests and the salts of requests
    #: are known, see register().
    options: ClassVar[Options] = {}
    #: The tokens that end a generation; None: those of the model's configuration and generation_config.json.
    eos: ClassVar[Any] = None

    def __init__(self, vllm_config: Any) -> None:
        most = vllm_config.speculative_config.num_speculative_tokens
        self.most = whole(most, "num_speculative_tokens", most=LONGEST)
        self.max_length = int(vllm_config.model_config.max_model_len)
        scheduler = getattr(vllm_config, "scheduler_config", None)
        caching = getattr(getattr(vllm_config, "cache_config", None), "enable_prefix_caching", False)
        self._runner = _runner()
        keeps_text = bool(caching) and _carries_salts and self._runner is not None
        options: Options = {"max_draft": self.most, "key": secrets.randbits(64), **self.options}
        if "memory" not in options:
            options["memory"] = Memory(text=keeps_text, key=options["key"])
        kept = ("memory", "max_bytes", "key")  # options of assign()
        self._assigned: dict[str, Any] = {name: value for name, value in options.items() if name in kept}
        self.drafter = BatchDrafter(int(getattr(scheduler, "max_num_seqs", 64)), **options)
        self._vocabulary, eos = self.limits(vllm_config.model_config, self.drafter._below)
        for slot in range(self.drafter.slots):
            self.drafter.stop_at(slot, eos)
        self._free = list(range(self.drafter.slots))
        self._usual: _Settings = self.most, (options.get("salt", 0), None), None  # of rows without settings
        self._whose: list[_Owner] = [self._usual[1]] * self.drafter.slots  # of the texts
        self._users: list[str | None] = [None] * self.drafter.slots  # the requests of the last rows
        self._ends: dict[int, tuple[int, ...]] = {}  # how the text of each slot ends, in order of their last use
        self._owners: dict[int, int] = {}  # the slots of the rows in the last call
        self._planned: dict[int, int] = {}  # the rows of each slot in its last pass
        self._rows = 0  # those of all slots in the last pass
        self._known = library.reprise_batch_known
        self._array: Any = (Slot * 0)()
        self._entries: list[Any] = []
        self._source: Any = None
        if _samples_wrongly():
            warnings.warn(
                "vllm: on a processor, this release samples drafted rows at random temperatures, with every drafter: "
                "use temperature=0, or the remedy in docs/engines.md",
                stacklevel=2,
            )

    @classmethod
    def limits(cls, model: Any, below: int) -> tuple[int, Tokens]:
        """Returns the number of ids that a model has, 0 if it is unknown, and the ids that end a generation."""
        ends: Tokens = _eos(model, below) if cls.eos is None else cls.eos
        return min(int(getattr(model, "get_vocab_size", int)()), below), ends

    def load_model(self, *_: Any, **__: Any) -> None:
        """vLLM calls this; there is no model to load."""

    def propose(
        self, sampled_token_ids: Any, num_tokens_no_spec: Any, token_ids_cpu: Any, slot_mappings: Any = None
    ) -> list[list[int]]:
        """Returns a draft for each row. A row without sampled tokens has a part of its prompt still to run."""
        # A row may take at most 5 us more than in BatchDrafter.draft(), so the usual rows take the shortest way.
        drafts: list[list[int]] = [[] for _ in sampled_token_ids]
        lengths, longest = np.asarray(num_tokens_no_spec)[: len(drafts)].tolist(), self.max_length
        names, settings = self._settings(token_ids_cpu, len(drafts))
        rows = [
            _Row(number, name, length, length - len(sampled), told)
            for number, (sampled, name, length, told) in enumerate(zip(sampled_token_ids, names, lengths, settings))
            if len(sampled) and length < longest and told is not None
        ]
        table = self._table_of(token_ids_cpu)
        self._find(rows, table)
        good = [row for row in rows if self._has_tokens(row, table)]
        # A row without a slot has run a part of its prompt, of unknown length: such a pass teaches no cost. A row
        # without new tokens has not run: the call is repeated before the pass.
        planned, ends, ran = self._planned, self._ends, 0
        begun = len(good) < len(drafts)
        for row in good:
            if row.slot < 0:
                begun = True
            else:
                ends.pop(row.slot)  # no other row can have it
                if row.known < row.length:
                    ran += planned.get(row.slot, 0)
        if begun or ran != self._rows:  # without a call, those that were planned have run
            self.drafter.ran(_MANY if begun else ran)
        if begun:
            self._release({row.slot for row in good})
            for row in good:
                if row.slot < 0 and (self._free or ends):
                    if self._free:
                        row.slot = self._free.pop()
                    else:
                        row.slot = next(iter(ends))
                        del ends[row.slot]
                    if self._whose[row.slot][0] == row.owner[0]:
                        self.drafter.forget(row.slot)
                    else:
                        self.drafter.assign(row.slot, salt=row.owner[0], **self._assigned)
                    self._whose[row.slot] = row.owner
                    if row.prediction is not None:
                        self._predict(row, table)
            good = [row for row in good if row.slot >= 0]
        array, entries = self._entries_for(len(good))
        first, step = self._first, self._step
        self._owners = owners = {}
        for entry, row in zip(entries, good):
            slot, known, length = row.slot, row.known, row.length
            owners[row.number] = slot
            ends[slot] = row.end
            self._users[slot] = row.name
            entry.slot, entry.count, entry.after = slot, length - known, known
            entry.ids = first + row.number * step + 4 * known
            entry.most = min(row.most, longest - length - 1)

        def read() -> None:
            rows_of_pass = len(good)
            for entry, row in zip(entries, good):
                count = entry.drafted
                planned[row.slot] = 1 + count
                if count:
                    rows_of_pass += count
                    drafts[row.number] = _DRAFTS[count].from_address(entry.draft)[:]
            self._rows = rows_of_pass

        self.drafter._call("draft", array, len(array), self.drafter._clock(), read=read)
        return drafts

    def _predict(self, row: _Row, table: Any) -> None:
        """Gives its prediction to the slot of a row with a new text."""
        with contextlib.suppress(TypeError, ValueError, MemoryError):
            prediction = tokens(row.prediction, "reprise_prediction", self._vocabulary)  # others would end the engine
            self.drafter.predict(row.slot, rest(prediction, table[row.number, row.before : row.length]))

    def _release(self, used: set[int]) -> None:
        """Frees the slots of requests that have ended, so that the memory has their texts and need not keep their salts."""
        runner: Any = self._runner() if self._runner is not None else None
        known, salt = getattr(runner, "requests", None), self._usual[1][0]
        for slot in [slot for slot in self._ends if slot not in used]:
            if known is None or self._users[slot] is None or self._users[slot] in known:
                continue
            if self._whose[slot][0] == salt:
                self.drafter.forget(slot)
            else:
                self.drafter.assign(slot, salt=salt, **self._assigned)
            self._whose[slot] = self._usual[1]
            del self._ends[slot]
            self._free.append(slot)

    def _settings(self, ids: Any, rows: int) -> tuple[Sequence[str | None], list[_Settings | None]]:
        """Returns the names of the rows, and of each the bound on drafted tokens, the owner and the prediction.

        None: they are not known.
        """
        runner: Any = self._runner() if self._runner is not None else None
        batch, known = getattr(runner, "input_batch", None), getattr(runner, "requests", None)
        names = getattr(batch, "req_ids", ())[:rows]
        if known is None or len(names) < rows or getattr(batch, "token_ids_cpu", None) is not ids:
            return [None] * rows, [self._usual if self._runner is None or not _carries_salts else None] * rows
        requests = [known.get(name) for name in names]
        extras = [getattr(getattr(each, "sampling_params", None), "extra_args", None) for each in requests]
        return names, [self._settings_in(extra, name) if extra else self._usual for extra, name in zip(extras, names)]

    def _settings_in(self, extra: dict[str, Any], name: str) -> _Settings:
        most, (salt, _), _ = self._usual
        most, salt, prediction = settings_of(extra, most, salt)
        return most, (salt, name if prediction is not None else None), prediction

    def _find(self, rows: list[_Row], table: Any) -> None:
        """Gives each row the slot whose tokens its text begins with, if there is one."""
        owners, ends, whose, guessed = self._owners, self._ends, self._whose, []
        for row in rows:  # nearly all rows still have their slots of the last call
            slot = owners.get(row.number, -1)
            end = ends.get(slot)
            # The second length: the call is repeated.
            if end is not None and (end[0] == row.before or end[0] == row.length) and whose[slot] == row.owner:
                row.slot = slot
                guessed.append(row)
        if self._check(guessed) == len(rows):
            return
        lost = [row for row in rows if row.slot < 0]
        taken = {row.slot for row in rows}
        slots: dict[Any, list[int]] = {}
        for slot, end in ends.items():
            if slot not in taken:
                slots.setdefault((whose[slot], end), []).append(slot)
        guessed = []
        for row in lost:
            for length in (row.before, row.length):
                if found := slots.get((row.owner, _end(table[row.number], length))):
                    row.slot = found.pop(0)
                    guessed.append(row)
                    break
        self._check(guessed)
        taken = {row.slot for row in rows}
        for row in lost:
            if row.slot < 0:  # a new text, a wrong guess, or passes without a call
                ids = table[row.number, : row.length]
                for slot, end in ends.items():
                    if slot in taken or whose[slot] != row.owner:
                        continue
                    if row.known < end[0] <= row.length and end == _end(ids, end[0]):
                        row.known, row.slot = max((row.known, row.slot), (self.drafter.known(slot, ids), slot))
                taken.add(row.slot)

    def _check(self, rows: list[_Row]) -> int:
        """Takes its slot from each row with another text. Returns how many rows keep theirs."""
        if not rows:
            return 0
        array, entries = self._entries_for(len(rows))
        first, step, drafter = self._first, self._step, self.drafter
        for entry, row in zip(entries, rows):
            entry.slot, entry.ids, entry.count = row.slot, first + row.number * step, row.length
        pointer = drafter._open().pointer
        if status := drafter._alone(self._known, pointer, array, len(rows)):  # _call("known") takes longer
            raise error(status, drafter._error(pointer).contents, "known")
        kept = 0
        for entry, row in zip(entries, rows):
            row.known = entry.after
            if row.known:
                kept += 1
            else:
                row.slot = -1
        return kept

    def _entries_for(self, count: int) -> tuple[Any, list[Any]]:
        """Returns structs for this many rows, as an array and one by one."""
        if len(self._array) != count:
            self._array = (Slot * count)()
            self._entries = list(self._array)
        return self._array, self._entries

    def _table_of(self, ids: Any) -> npt.NDArray[np.int32]:
        """Returns the ids of all rows. Those that no token can have are -1."""
        if ids is not self._source:  # vLLM passes the same array each time
            array = np.asarray(ids)
            if array.dtype != np.int32:
                array = np.where((array < 0) | (array >= BELOW), -1, array).astype(np.int32)
            if array.strides[1] != 4:
                array = np.ascontiguousarray(array)
            self._table, self._first, self._step = array, address(array), array.strides[0]
            self._source = ids if array is ids else None  # a copy does not change with the ids
        return self._table

    def _has_tokens(self, row: _Row, table: npt.NDArray[np.int32]) -> bool:
        """Returns true if all new ids of a row are tokens, and notes how its text ends."""
        new, last = row.length - row.known, max(0, row.length - 4)
        ids = table[row.number, min(row.known, last) : row.length]
        if len(ids) > 100:
            row.end = (row.length, *ids[-4:].tolist())
            return not has_outside(ids[len(ids) - new :], self.drafter._below)
        few = ids.tolist()
        row.end = (row.length, *few[-4:])
        if len(few) > new:
            few = few[len(few) - new :]
        return not few or (min(few) >= 0 and max(few) < self.drafter._below)


def register() -> None:
    """Makes requests carry their `cache_salt` to the proposer. vLLM calls it in each of its processes, as a plugin.

    The plugin is part of the installed package. Without it, if VLLM_PLUGINS leaves it out, or in a release with another
    code, the default memory of the proposer keeps no text. It also lets the second model runner have the proposer's
    drafts, see _vllm_speculator.py.
    """
    global _carries_salts
    _extend_second_runner()
    try:
        from vllm.v1.core.sched.output import NewRequestData

        create = NewRequestData.from_request
    except (ImportError, AttributeError):  # an exception would end vLLM
        return
    if _carries_salts:
        return

    def with_salt(request: Any, *positional: Any, **named: Any) -> Any:
        params = request.sampling_params
        if params is not None:
            extra = {name: value for name, value in (params.extra_args or {}).items() if name != _SALT}
            if request.cache_salt:
                extra[_SALT] = request.cache_salt
            params.extra_args = extra or None
        return create(request, *positional, **named)

    NewRequestData.from_request = staticmethod(with_salt)
    _carries_salts = True


def _extend_second_runner() -> None:
    """Lets vLLM's second model runner have a Proposer, if VLLM_USE_V2_MODEL_RUNNER=1 asks for this runner.

    Replaces two functions: the one that makes a speculator, and the list of what this runner does not support, which
    has `custom_class`. A release that has them not, or with other parameters, keeps its own.
    """
    try:
        from vllm import envs
        from vllm.config import VllmConfig
        from vllm.v1.worker.gpu import spec_decode

        create, unsupported = spec_decode.init_speculator, VllmConfig._get_v2_model_runner_unsupported_features
    except (ImportError, AttributeError):
        return
    parameters = [*inspect.signature(create).parameters, *inspect.signature(unsupported).parameters]
    if parameters != ["vllm_config", "device", "req_states", "self"]:
        return  # another release, or called before

    def supported(config: Any) -> list[str]:
        ours = envs.VLLM_USE_V2_MODEL_RUNNER and _proposer_of(config.speculative_config) is not None
        return [each for each in unsupported(config) if not (ours and "custom_class" in each)]

    def init_speculator(config: Any, device: Any, states: Any) -> Any:
        kind, runner = _proposer_of(config.speculative_config), _caller("add_requests")
        if kind is None or runner is None:
            return create(config, device, states)
        from ._vllm_speculator import Speculator

        return Speculator(kind, config, device, states, runner, _carries_salts)

    VllmConfig._get_v2_model_runner_unsupported_features = supported
    spec_decode.init_speculator = init_speculator
    if runner := sys.modules.get("vllm.v1.worker.gpu.model_runner"):
        runner.init_speculator = init_speculator  # type: ignore[attr-defined]


def _proposer_of(speculation: Any) -> type[Proposer] | None:
    """Returns the proposer's class that a configuration names; None: it names none of ours."""
    if getattr(speculation, "method", None) != "custom_class":
        return None
    module, _, name = str(speculation.model).rpartition(".")
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        return None  # vLLM says so
    return kind if isinstance(kind, type) and issubclass(kind, Proposer) else None


def settings_of(extra: dict[str, Any] | None, most: int, salt: int | str) -> tuple[int, int | str, Any]:
    """Returns the bound on drafted tokens, the salt and the prediction of a request, from its `extra_args`."""
    if not extra:
        return most, salt, None
    bound, enabled = extra.get("reprise_max_draft"), extra.get("reprise_enabled")
    if isinstance(bound, (int, float)) and bound >= 1:
        most = int(min(most, bound))
    most = 0 if isinstance(enabled, (int, float)) and not enabled else most
    return most, extra.get(_SALT, salt) if _carries_salts else salt, extra.get("reprise_prediction")


def _runner() -> weakref.ref[Any] | None:
    """Returns the object of vLLM that is creating the proposer, and has the requests. vLLM passes it to no proposer."""
    owner = _caller("propose_draft_token_ids")
    return None if owner is None else weakref.ref(owner)


def _caller(method: str) -> Any:
    """Returns the nearest object with this method whose code has called this module; None: there is none."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        owner = frame.f_locals.get("self")
        if hasattr(owner, method):
            return owner
        frame = frame.f_back
    return None


class _Row:
    """A row of the batch."""

    __slots__ = ("number", "name", "length", "before", "most", "owner", "prediction", "slot", "known", "end")

    def __init__(self, number: int, name: str | None, length: int, before: int, settings: _Settings) -> None:
        self.number, self.name = number, name  # name: of its request, if it is known
        self.length, self.before = length, before  # tokens now, and before the pass
        self.most, self.owner, self.prediction = settings
        self.slot = -1  # none
        self.known = 0  # tokens that the slot knows
        self.end: tuple[int, ...] = ()


def _eos(model: Any, below: int) -> Tokens:
    """Returns the tokens that end generations by the files of the model. vLLM asks the tokenizer, too."""
    configs = [getattr(model, name, None) for name in ("hf_config", "hf_text_config")]
    found = [getattr(config, "eos_token_id", None) for config in configs]
    generation: dict[str, Any] = getattr(model, "try_get_generation_config", dict)()
    found.append(generation.get("eos_token_id"))
    return stops(np.hstack([ids for ids in found if ids is not None] or [[]]), below)


def _end(ids: Any, length: int) -> tuple[int, ...]:
    """Returns the length and the last tokens of a part of a text, which tell most texts apart."""
    return (length, *ids[max(0, length - 4) : length].tolist())


def _samples_wrongly() -> bool:
    """Returns true if vLLM's code for processors leaves the temperatures of drafted rows unset (release 0.32.0)."""
    try:
        import torch
        from vllm.platforms import current_platform
        from vllm.utils.cpu_triton_utils import _expand_kernel_impl as expand

        temperatures = torch.zeros(1)
        expand(temperatures, torch.ones(1), torch.ones(1, dtype=torch.int32), 0, 1)
        return bool(current_platform.is_cpu()) and float(temperatures[0]) != 1
    except (ImportError, AttributeError, TypeError, RuntimeError):
        return False  # another release, which has other code
