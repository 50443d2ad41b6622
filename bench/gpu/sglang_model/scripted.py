# SPDX-License-Identifier: Apache-2.0
"""A scripted Llama for SGLang: every pass is computed in full, then the recorded tokens win (script.py).

The slots of SGLang's pool of requests tell the rows of a pass. A prompt is known when it runs, so it must run as a
whole: without a prefix cache and in one chunk. Only passes with prompts wait for the device; a CUDA graph can capture
the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from script import Script, read, win
from sglang.srt.models.llama import LlamaForCausalLM

SLOTS = 1 << 16  # more than the pool has


class ScriptedLlama(LlamaForCausalLM):  # type: ignore[misc]
    def __init__(self, config: Any, quant_config: Any = None, prefix: str = "") -> None:
        super().__init__(config, quant_config, prefix)
        warm, requests = read(Path(config.script))
        self.script = Script(warm + requests)
        self.table = torch.tensor(self.script.table(), device=self.lm_head.weight.device)
        self.lines = torch.full((SLOTS,), -1, device=self.table.device)  # of each slot

    @torch.no_grad()
    def forward(self, input_ids: Any, positions: Any, forward_batch: Any, *more: Any, **named: Any) -> Any:
        out = super().forward(input_ids, positions, forward_batch, *more, **named)
        slots, mode = forward_batch.req_pool_indices, forward_batch.forward_mode
        if mode.is_extend() and not mode.is_target_verify():
            ends = torch.cumsum(forward_batch.extend_seq_lens, 0)
            prompts = torch.tensor_split(input_ids.cpu(), ends[:-1].cpu())
            lines = torch.tensor([self.script.find(prompt.tolist()) for prompt in prompts], device=self.table.device)
            self.lines[slots] = lines
            positions = positions[ends - 1]
        lines = self.lines[slots].repeat_interleave(len(positions) // max(1, len(slots)))
        win(out.next_token_logits, self.table, lines, positions)
        return out


EntryClass = ScriptedLlama
