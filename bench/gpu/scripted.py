# SPDX-License-Identifier: Apache-2.0
"""A scripted Llama for vLLM: every pass is computed in full, then the recorded tokens win (script.py).

register() also makes both model runners say, before the logits of a pass, which row has which recording and position:
the lines are known on the host, the positions only on the device, where asynchronous scheduling corrects them.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch
from script import Script, read, win
from vllm import ModelRegistry
from vllm.model_executor.models.llama import LlamaForCausalLM


class ScriptedLlama(LlamaForCausalLM):  # type: ignore[misc]
    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)
        warm, requests = read(Path(vllm_config.model_config.hf_config.script))
        self.script = Script(warm + requests)
        self.table = torch.tensor(self.script.table())  # on the device that vLLM has set
        self.rows: tuple[torch.Tensor, torch.Tensor] | None = None  # lines and positions of the next logits
        self.names: list[str] = []  # first runner: the requests of the last batch
        self.lines: torch.Tensor | None = None  # of these requests; second runner: of its request states

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor | None:
        logits: torch.Tensor | None = super().compute_logits(hidden_states)
        rows, self.rows = self.rows, None
        if logits is not None and rows is not None:
            win(logits, self.table, *rows)
        return logits


def register() -> None:
    """Call it in the process of the model, before the engine starts."""
    ModelRegistry.register_model("ScriptedLlama", ScriptedLlama)
    _follow_first(importlib.import_module("vllm.v1.worker.gpu_model_runner").GPUModelRunner)
    try:
        second = importlib.import_module("vllm.v1.worker.gpu.model_runner")
    except ImportError:  # no Triton, or a release without a second runner
        return
    _follow_second(second.GPUModelRunner)


def _follow_first(runner: Any) -> None:
    prepare = runner._prepare_inputs

    def prepared(self: Any, *positional: Any, **named: Any) -> Any:
        made = prepare(self, *positional, **named)
        model, rows, names = self.get_model(), made[0], self.input_batch.req_ids
        if model.names != names:
            model.names = list(names)
            found = [model.script.find(self.requests[name].prompt_token_ids) for name in names]
            model.lines = torch.tensor(found, device=rows.device)
        ends = self.query_start_loc.gpu[1 : len(names) + 1]
        positions = getattr(self.positions, "gpu", self.positions)
        model.rows = model.lines[torch.searchsorted(ends, rows.to(ends.dtype), right=True)], positions[rows]
        return made

    runner._prepare_inputs = prepared


def _follow_second(runner: Any) -> None:
    add, sample = runner.add_requests, runner.sample

    def added(self: Any, scheduled: Any) -> None:
        add(self, scheduled)
        for new in scheduled.scheduled_new_reqs:
            lines = _lines(self)
            lines[self.req_states.req_id_to_index[new.req_id]] = self.model.script.find(new.prompt_token_ids)

    def sampled(self: Any, hidden_states: Any, batch: Any, *more: Any) -> Any:
        self.model.rows = _lines(self)[batch.expanded_idx_mapping.long()], batch.positions[batch.logits_indices]
        return sample(self, hidden_states, batch, *more)

    runner.add_requests, runner.sample = added, sampled


def _lines(runner: Any) -> torch.Tensor:
    """Returns the line of each request state of the second runner."""
    if runner.model.lines is None:
        runner.model.lines = torch.full((runner.max_num_reqs,), -1, device=runner.device)
    lines: torch.Tensor = runner.model.lines
    return lines
