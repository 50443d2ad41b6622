# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF file as a folder of transformers, in float32: make_folder.py FROM TO"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

source = Path(sys.argv[1]).resolve()
model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
if hasattr(model.config, "quantization_config"):  # the weights are not quantized any more
    del model.config.quantization_config
plain = LlamaForCausalLM(model.config).float()
plain.load_state_dict(model.state_dict())
plain.save_pretrained(sys.argv[2])
AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(sys.argv[2])
