# SPDX-License-Identifier: Apache-2.0
"""The speculator for vLLM's second model runner. register() of vllm.py imports it if the engine asks for one."""

from __future__ import annotations

import ctypes
import secrets
import time
import types
from ctypes import c_int32, c_void_p
from typing import TYPE_CHECKING, Any

import torch
from vllm.distributed.parallel_state import get_tp_group
from vllm.v1.worker.gpu.spec_decode.speculator import BaseSpeculator

from ._costs import CostCurve
from ._errors import ArgumentError
from ._library import library
from ._steps import Buffers, Settings, run
from .vllm import Proposer, _create, _width, settings_of

if TYPE_CHECKING:
    from ._options import Options

_STEPS = 4  # steps whose arrays are in use: more than an engine has in flight


class _Pinned(Buffers):
    """Arrays that a device reads and writes."""

    def __init__(self, slots: int, width: int, pinned: bool) -> None:
        super().__init__(slots)
        self.lengths = torch.zeros(slots, dtype=torch.int32, pin_memory=pinned)
        self.drafts = torch.zeros((slots, width), dtype=torch.int64, pin_memory=pinned)


class Speculator(BaseSpeculator):  # type: ignore[misc]
    """Drafts for all requests of a batch.

    The engine runs a fixed number of drafted rows for each request, so a draft is as long as there is evidence. The
    rows after a draft hold the last token again. A stream of the device makes the call that drafts, after the kernels
    that write the sampled tokens and before those that read the drafts. So neither the scheduler nor the runner waits.
    """

    supports_mm_inputs = False
    draft_logits = None
    enable_adaptive_verification = False

    def __init__(self, proposer: type[Proposer], vllm_config: Any, device: Any, req_states: Any, runner: Any) -> None:
        """`proposer`: the class with the options. `runner`: it gets the requests."""
        if device.type not in ("cuda", "cpu"):
            raise ArgumentError(f"vllm: this runner has drafts on CUDA and on processors, but not on {device.type}")
        if vllm_config.parallel_config.tensor_parallel_size > 1:  # different drafts would spoil the text
            raise ArgumentError("vllm: the second runner has drafts without tensor parallelism only: use the first one")
        self._launch = _launcher() if device.type == "cuda" else None
        self._entry = ctypes.cast(library.reprise_batch_step, c_void_p)
        host = getattr(getattr(req_states.all_token_ids, "_uva_buf", None), "cpu", None)
        if host is None and self._launch is not None:
            raise ArgumentError("vllm: the host cannot read the ids of requests: use a system with pinned memory")
        ids = req_states.all_token_ids.gpu if host is None else host
        # Processes that share a model must draft alike. So costs are told, and they have the same secret key.
        secret = get_tp_group().broadcast_object(secrets.randbits(64), src=0)
        given: Options = {"key": secret, "cost": CostCurve.linear(0.0), **proposer.options}
        self._states, self.width, slots = req_states, _width(vllm_config), req_states.max_num_reqs
        self.drafter, self._requests = _create(proposer, vllm_config, given, slots)
        self._added: dict[str, Any] = {}  # the requests by name, as they came
        self._drafts = torch.zeros((slots, self.width), dtype=torch.int64, device=device)
        self._buffers = [_Pinned(slots, self.width, self._launch is not None) for _ in range(_STEPS)]
        for each in self._buffers:
            step = each.step
            step.batch, step.below = self.drafter._open().pointer, self.drafter._below
            step.longest = vllm_config.model_config.max_model_len
            step.ids, step.stride, step.lengths = ids.data_ptr(), ids.stride(0), each.lengths.data_ptr()
            step.drafts, step.width = each.drafts.data_ptr(), self.width
        self._ids = ids  # the steps point to it
        self._turn = 0
        self._follow(runner)

    def init_cudagraph_manager(self, cudagraph_mode: Any) -> None:
        """vLLM calls this; there is no graph."""

    def capture(self) -> None:
        """vLLM calls this; there is nothing to capture."""

    def propose(self, input_batch: Any, *_: Any, dummy_run: bool = False, **__: Any) -> Any:
        """Returns the drafts of all rows, which the device has once its stream has come to them."""
        count = input_batch.num_reqs
        if dummy_run:
            return self._drafts[:count]
        buffers, states = self._next(), self._states
        ends = input_batch.num_computed_prefill_tokens_np + input_batch.num_scheduled_tokens[:count]
        sampled = (ends >= input_batch.prefill_len_np).tolist()
        lines = input_batch.idx_mapping_np.tolist()
        self._requests.fill(
            buffers, input_batch.req_ids, self._added, lines, sampled, self._settings,
            lambda row: int(states.prompt_len.np[lines[row]]), states.req_id_to_index.__contains__,
        )  # fmt: skip
        with torch.inference_mode():
            return self._run(buffers)[:count]

    def _run(self, buffers: _Pinned) -> Any:
        """Lets the device make the call, in its order, and returns the drafts of all rows."""
        buffers.lengths.copy_(self._states.total_len.gpu, non_blocking=True)
        if self._launch is None:
            if run(self.drafter, buffers.step):
                buffers.drafts.zero_()  # those of an earlier step
        else:
            buffers.step.done = 0
            stream = torch.cuda.current_stream().cuda_stream
            if status := self._launch(stream, self._entry, ctypes.addressof(buffers.step)):
                raise RuntimeError(f"cuLaunchHostFunc returned {status}")
        count = buffers.step.count
        self._drafts[:count].copy_(buffers.drafts[:count], non_blocking=True)
        return self._drafts

    def _next(self) -> _Pinned:
        """Returns the buffers of the oldest step. It ended long ago, unless the host is far ahead of the device."""
        self._turn = (self._turn + 1) % _STEPS
        buffers = self._buffers[self._turn]
        waited = 0
        while not buffers.step.done:
            time.sleep(20e-6)
            waited += 1
            if waited % 50_000 == 0:
                torch.cuda.current_stream().query()  # raises the error of a device that makes no calls any more
        if status := buffers.step.status:
            buffers.step.status = 0
            self._requests.failed(status)
        return buffers

    def _settings(self, request: Any) -> Settings:
        return settings_of(getattr(request.sampling_params, "extra_args", None), self.width, self._requests.salt)

    def _follow(self, runner: Any) -> None:
        """Keeps the settings of the requests that the runner gets."""
        add = runner.add_requests

        def add_requests(_: Any, scheduled: Any) -> None:
            add(scheduled)
            self._added = {name: self._added[name] for name in self._states.req_id_to_index if name in self._added}
            for new in scheduled.scheduled_new_reqs:
                self._added[new.req_id] = types.SimpleNamespace(sampling_params=new.sampling_params)

        runner.add_requests = types.MethodType(add_requests, runner)


def _launcher() -> Any:
    """Returns the function that lets a stream make a call. The host goes on at once."""
    launch = ctypes.CDLL("libcuda.so.1").cuLaunchHostFunc
    launch.restype, launch.argtypes = c_int32, [c_void_p, c_void_p, c_void_p]
    return launch
