# SPDX-License-Identifier: Apache-2.0
"""A small random Llama, for tests with real engines. It needs torch and transformers."""

from __future__ import annotations

SHAPE = {
    "vocab_size": 128, "hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2, "head_dim": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 127,
}  # fmt: skip


def write(folder: str, positions: int) -> None:
    """Writes the model into a folder. `positions`: the longest sequence."""
    import torch
    import transformers

    torch.manual_seed(7)
    made = transformers.LlamaConfig(**SHAPE, max_position_embeddings=positions)
    transformers.AutoModelForCausalLM.from_config(made).save_pretrained(folder)
