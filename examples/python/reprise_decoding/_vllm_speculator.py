# SPDX-License-Identifier: Apache-2.0
"""The speculator for vLLM's second model runner. register() of vllm.py imports it if the engine asks for one."""

from __future__ import annotations

import ctypes
import hashlib
import time
import types
import warnings
from ctypes import POINTER, Structure, c_int32, c_int64, c_size_t, c_void_p
from typing import Any

import torch
from vllm.v1.worker.gpu.spec_decode.speculator import BaseSpeculator

from . import _library
from ._arrays import address, tokens
from ._batch import BatchDrafter
from ._costs import CostCurve
from ._errors import ArgumentError
from ._memory import Memory
from ._options import LONGEST, options
from .vllm import settings_of

_GOES_ON, _BEGINS, _WAITS = range(3)
_STEPS = 4  # steps whose arrays are in use: one more than an engine has in flight, and one that is filled


class Row(Structure):
    """reprise_python_row, as native/rows.cpp declares it."""

    _fields_ = [
        ("slot", c_size_t),
        ("most", c_size_t),
        ("kind", c_size_t),
        ("options", c_void_p),
        ("prediction", c_void_p),
        ("predicted", c_size_t),
        ("prompt", c_size_t),
    ]


class Step(Structure):
    """reprise_python_step, as native/rows.cpp declares it."""

    _fields_ = [
        ("batch", c_void_p),
        ("ids", c_void_p),
        ("stride", c_size_t),
        ("longest", c_size_t),
        ("lengths", c_void_p),
        ("known", c_void_p),
        ("rows", POINTER(Row)),
        ("size", c_size_t),
        ("count", c_size_t),
        ("slots", POINTER(_library.Slot)),
        ("drafts", c_void_p),
        ("width", c_size_t),
        ("status", c_int32),
        ("done", c_int32),
    ]


class _Buffers:
    """The arrays of a step, which a device reads and writes until its stream has made the call."""

    def __init__(self, slots: int, width: int, pinned: bool) -> None:
        self.lengths = torch.zeros(slots, dtype=torch.int32, pin_memory=pinned)
        self.drafts = torch.zeros((slots, width), dtype=torch.int64, pin_memory=pinned)
        self.rows = (Row * (2 * slots))()
        self.slots = (_library.Slot * slots)()
        self.step = Step(done=1)
        self.kept: list[Any] = []  # what the rows point to


class Speculator(BaseSpeculator):  # type: ignore[misc]
    """Drafts for all requests of a batch.

    The engine runs a fixed number of drafted rows for each request, so a draft is as long as there is evidence. The
    rows after a draft hold the last token again. A stream of the device makes the call that drafts, after the kernels
    that write the sampled tokens and before those that read the drafts. So neither the scheduler nor the runner waits.
    """

    supports_mm_inputs = False
    draft_logits = None
    enable_adaptive_verification = False

    def __init__(self, proposer: Any, vllm_config: Any, device: Any, req_states: Any, runner: Any, salts: bool) -> None:
        """`proposer`: the class with the options. `runner`: it gets the requests. `salts`: the requests carry them."""
        self._run = _native()
        self._entry = ctypes.cast(self._run, c_void_p)
        self.width = vllm_config.speculative_config.num_speculative_tokens
        if self.width > LONGEST:
            raise ArgumentError(f"num_speculative_tokens: must be at most {LONGEST}, but is {self.width}")
        self._states = req_states
        self._launch = _launcher() if device.type == "cuda" else None  # None: a call is made at once
        if self._launch is None and device.type != "cpu":
            raise ArgumentError(f"vllm: this runner has drafts on CUDA and on processors, but not on {device.type}")
        host = getattr(getattr(req_states.all_token_ids, "_uva_buf", None), "cpu", None)
        if host is None and self._launch is not None:
            raise ArgumentError("vllm: the host cannot read the ids of requests: use a system with pinned memory")
        self._ids = req_states.all_token_ids.gpu if host is None else host
        slots = req_states.max_num_reqs
        # Processes that share a model must draft alike. So costs are told, and a key that clients do not know is shared.
        secret = int.from_bytes(hashlib.sha256(f"reprise {vllm_config.instance_id}".encode()).digest()[:8], "little")
        given = {"max_draft": self.width, "key": secret, "cost": CostCurve.linear(0.0), **proposer.options}
        caching = bool(getattr(vllm_config.cache_config, "enable_prefix_caching", False))
        if "memory" not in given:
            given["memory"] = Memory(text=caching and salts, key=given["key"])
        self._usual = given.get("salt", 0)
        self._assigned = {name: given[name] for name in ("memory", "max_bytes", "key") if name in given}
        self.drafter = BatchDrafter(slots, **given)
        self._vocabulary, eos = proposer.limits(vllm_config.model_config, self.drafter._below)
        for slot in range(slots):
            self.drafter.stop_at(slot, eos)
        self._known = (c_size_t * slots)()
        self._names: list[str | None] = [None] * slots
        self._salts = [self._usual] * slots
        self._extras: dict[str, Any] = {}
        self._follow(runner)
        self._buffers = [_Buffers(slots, self.width, self._launch is not None) for _ in range(_STEPS)]
        self._turn, self._warned = 0, False
        self._longest = vllm_config.model_config.max_model_len
        self._drafts = torch.zeros((slots, self.width), dtype=torch.int64, device=device)

    def init_cudagraph_manager(self, cudagraph_mode: Any) -> None:
        """vLLM calls this; there is no graph."""

    def capture(self) -> None:
        """vLLM calls this; there is nothing to capture."""

    @torch.inference_mode()
    def propose(self, input_batch: Any, *_: Any, dummy_run: bool = False, **__: Any) -> Any:
        """Returns the drafts of all rows, which the device has once its stream has come to them."""
        count = input_batch.num_reqs
        if dummy_run:
            return self._drafts[:count]
        buffers = self._next_buffers()
        rows = self._rows(buffers, input_batch)
        step = buffers.step
        step.batch = self.drafter._open().pointer
        step.ids, step.stride, step.longest = self._ids.data_ptr(), self._ids.stride(0), self._longest
        step.lengths, step.known = buffers.lengths.data_ptr(), ctypes.addressof(self._known)
        step.rows, step.size, step.count, step.slots = buffers.rows, count, rows, buffers.slots
        step.drafts, step.width, step.done = buffers.drafts.data_ptr(), self.width, 0
        buffers.lengths.copy_(self._states.total_len.gpu, non_blocking=True)
        if self._launch is None:
            self._run(ctypes.byref(step))
        elif status := self._launch(torch.cuda.current_stream().cuda_stream, self._entry, ctypes.addressof(step)):
            raise RuntimeError(f"cuLaunchHostFunc returned {status}")
        self._drafts[:count].copy_(buffers.drafts[:count], non_blocking=True)
        return self._drafts[:count]

    def _next_buffers(self) -> _Buffers:
        """Returns the buffers of the oldest step. It ended long ago, unless the host is far ahead of the device."""
        self._turn = (self._turn + 1) % _STEPS
        buffers = self._buffers[self._turn]
        while not buffers.step.done:
            time.sleep(20e-6)
        if buffers.step.status != _library.OK and not self._warned:
            self._warned = True
            warnings.warn(f"reprise: a step had no drafts (status {buffers.step.status})", stacklevel=2)
        buffers.kept.clear()
        return buffers

    def _rows(self, buffers: _Buffers, batch: Any) -> int:
        """Fills in the rows of the step, in the order of the batch, and after them the slots of ended requests."""
        states, names = self._states, self._names
        ends = batch.num_computed_prefill_tokens_np + batch.num_scheduled_tokens[: batch.num_reqs]
        samples = (ends >= batch.prefill_len_np).tolist()
        begun = False
        for row, name, slot, sampled in zip(buffers.rows, batch.req_ids, batch.idx_mapping_np.tolist(), samples):
            row.slot, row.kind, row.options, row.prediction = slot, _GOES_ON if sampled else _WAITS, None, None
            row.most, salt, prediction = settings_of(self._extras.get(name), self.width, self._usual)
            if sampled and names[slot] != name:
                self._extras.pop(names[slot], None)
                begun, names[slot], row.kind = True, name, _BEGINS
                self._assign(buffers, row, salt)
                if prediction is not None:
                    self._predict(buffers, row, prediction, int(states.prompt_len.np[slot]))
        count = batch.num_reqs
        ended = [slot for slot, name in enumerate(names) if name is not None and name not in states.req_id_to_index]
        for row, slot in zip(buffers.rows[count : count + len(ended)], ended if begun else ()):
            self._extras.pop(names[slot], None)
            row.slot, row.options, names[slot] = slot, None, None
            self._assign(buffers, row, self._usual)
            count += 1
        return count

    def _assign(self, buffers: _Buffers, row: Row, salt: Any) -> None:
        if self._salts[row.slot] != salt:
            self._salts[row.slot] = salt
            struct, _ = options(salt=salt, vocabulary=self.drafter._below % 2**31, **self._assigned)
            buffers.kept.append(struct)
            row.options = ctypes.addressof(struct)

    def _predict(self, buffers: _Buffers, row: Row, prediction: Any, prompt: int) -> None:
        try:
            ids = tokens(prediction, "reprise_prediction", self._vocabulary)
        except (TypeError, ValueError, MemoryError):  # an exception would end the engine
            return
        buffers.kept.append(ids)
        row.prediction, row.predicted, row.prompt = address(ids), len(ids), prompt

    def _follow(self, runner: Any) -> None:
        """Keeps the settings of the requests that the runner gets."""
        add = runner.add_requests

        def add_requests(runner: Any, scheduled: Any) -> None:
            for new in scheduled.scheduled_new_reqs:
                self._extras[new.req_id] = getattr(new.sampling_params, "extra_args", None)
            add(scheduled)

        runner.add_requests = types.MethodType(add_requests, runner)


def _native() -> Any:
    """Returns the function of native/rows.cpp."""
    run = getattr(_library.library, "reprise_python_run_step", None)
    if run is None:
        raise ArgumentError("REPRISE_LIBRARY: the library is none of this package: leave the variable unset")
    run.restype, run.argtypes = None, [c_void_p]
    return run


def _launcher() -> Any:
    """Returns the function that lets a stream make a call. The host goes on at once."""
    launch = ctypes.CDLL("libcuda.so.1").cuLaunchHostFunc
    launch.restype, launch.argtypes = c_int32, [c_void_p, c_void_p, c_void_p]
    return launch
