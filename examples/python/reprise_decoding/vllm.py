# SPDX-License-Identifier: Apache-2.0
"""For vLLM: speculative_config={"method": "custom_class", "model": "reprise_decoding.vllm.Proposer", ...}."""

from __future__ import annotations

import importlib
import inspect
import secrets
import sys
import types
import warnings
import weakref
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ._arrays import BELOW, Tokens, address, stops, whole
from ._batch import BatchDrafter
from ._errors import ArgumentError
from ._memory import Memory, salt_number
from ._options import LONGEST
from ._request import bound
from ._steps import Buffers, Requests, Settings, run

if TYPE_CHECKING:
    from ._options import Options

_SALT = "reprise_cache_salt"  # in extra_args of a request, on its way through the engine
_carries_salts = False  # register() has been called


class Proposer:
    """Drafts for all rows of a batch. vLLM creates it; make a subclass to change the class members.

    Each request has a slot of a BatchDrafter while vLLM has the request. A row with ids that are no tokens, such as -1,
    drafts nothing.

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
        runner = _caller("propose_draft_token_ids")
        if runner is None:
            raise ArgumentError(
                "vllm: this release creates proposers in another way, so the requests are not known: use vLLM 0.32"
            )
        self._runner = weakref.ref(runner)
        self.most = _width(vllm_config)
        given: Options = {"key": secrets.randbits(64), **self.options}
        self.drafter, self._requests = _create(type(self), vllm_config, given)
        self._buffers = Buffers(self.drafter.slots)
        self._drafts: Any = np.zeros((self.drafter.slots, self.most), np.int64)
        step = self._buffers.step
        step.width, step.drafts, step.below = self.most, address(self._drafts), self.drafter._below
        step.longest = int(vllm_config.model_config.max_model_len)
        if _samples_wrongly():
            warnings.warn(
                "vllm: on a processor, this release samples drafted rows at random temperatures, with every drafter: "
                "use temperature=0, or the remedy in docs/engines.md",
                stacklevel=2,
            )

    def load_model(self, *_: Any, **__: Any) -> None:
        """vLLM calls this; there is no model to load."""

    def propose(
        self, sampled_token_ids: Any, num_tokens_no_spec: Any, token_ids_cpu: Any, slot_mappings: Any = None
    ) -> list[list[int]]:
        """Returns a draft for each row. A row without sampled tokens has a part of its prompt still to run."""
        drafts: list[list[int]] = [[] for _ in sampled_token_ids]
        count = min(len(drafts), self.drafter.slots)
        runner: Any = self._runner()
        batch, requests = getattr(runner, "input_batch", None), getattr(runner, "requests", None)
        names = getattr(batch, "req_ids", ())[:count]
        if requests is None or len(names) < count or getattr(batch, "token_ids_cpu", None) is not token_ids_cpu:
            return drafts  # another release: the salts of the requests are not known
        lengths = np.ascontiguousarray(num_tokens_no_spec[:count], np.int32)
        # vLLM writes no ids for a prompt of embeddings: those of an earlier request are still there.
        told = [getattr(requests.get(name), "prompt_token_ids", ()) is not None for name in names]
        sampled = [len(ids) if has else 0 for ids, has in zip(sampled_token_ids, told)]
        buffers, step = self._buffers, self._buffers.step
        self._requests.fill(
            buffers, names, requests, range(count), sampled, self._settings,
            lambda row: int(lengths[row]) - sampled[row],
        )  # fmt: skip
        table: Any = token_ids_cpu
        if table.dtype != np.int32 or table.strides[1] != 4:  # of another release
            table = np.ascontiguousarray(np.where((table < 0) | (table >= BELOW), -1, table), np.int32)
        step.ids, step.stride, step.lengths = address(table), table.strides[0] // 4, address(lengths)
        step.now_ns = self.drafter._clock()
        if status := run(self.drafter, step):
            self._requests.failed(status)
            return drafts
        for row, each in enumerate(buffers.each[:count]):
            if each.drafted:
                drafts[row] = self._drafts[row, : each.drafted].tolist()
        return drafts

    def _settings(self, request: Any) -> Settings:
        extra = getattr(getattr(request, "sampling_params", None), "extra_args", None)
        return settings_of(extra, self.most, self._requests.salt)


def _width(vllm_config: Any) -> int:
    """Returns the number of drafted rows."""
    return whole(vllm_config.speculative_config.num_speculative_tokens, "num_speculative_tokens", most=LONGEST)


def _create(kind: type[Proposer], vllm_config: Any, given: Options, slots: int = 0) -> tuple[BatchDrafter, Requests]:
    """Returns a batch with the options of a class, and its requests. `slots`: 0 for those of the configuration."""
    given = {"max_draft": _width(vllm_config), **given}
    caching = getattr(getattr(vllm_config, "cache_config", None), "enable_prefix_caching", False)
    if "memory" not in given:
        given["memory"] = Memory(text=bool(caching) and _carries_salts, key=given["key"])
    given["salt"] = salt_number(given.get("salt", 0), given["key"])
    scheduler = getattr(vllm_config, "scheduler_config", None)
    drafter = BatchDrafter(slots or int(getattr(scheduler, "max_num_seqs", 64)), **given)
    model = vllm_config.model_config
    vocabulary = min(int(getattr(model, "get_vocab_size", int)()), drafter._below)  # 0: unknown
    eos = _eos(model, drafter._below) if kind.eos is None else kind.eos
    for slot in range(drafter.slots):
        drafter.stop_at(slot, eos)
    kept: dict[str, Any] = {name: value for name, value in given.items() if name in ("memory", "max_bytes", "key")}
    return drafter, Requests(drafter, kept, given["salt"], vocabulary)


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

        return Speculator(kind, config, device, states, runner)

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
    return bound(extra, most), extra.get(_SALT, salt) if _carries_salts else salt, extra.get("reprise_prediction")


def _caller(method: str) -> Any:
    """Returns the nearest object with this method whose code has called this module; None: there is none."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        owner = frame.f_locals.get("self")
        if hasattr(owner, method):
            return owner
        frame = frame.f_back
    return None


def _eos(model: Any, below: int) -> Tokens:
    """Returns the tokens that end generations by the files of the model. vLLM asks the tokenizer, too."""
    configs = [getattr(model, name, None) for name in ("hf_config", "hf_text_config")]
    found = [getattr(config, "eos_token_id", None) for config in configs]
    generation: dict[str, Any] = getattr(model, "try_get_generation_config", dict)()
    found.append(generation.get("eos_token_id"))
    return stops(np.hstack([ids for ids in found if ids is not None] or [[]]), below)


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
