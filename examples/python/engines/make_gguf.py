# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF file again with all tensors in float32: make_gguf.py FROM TO"""

import sys

import gguf
import numpy as np

reader = gguf.GGUFReader(sys.argv[1])
writer = gguf.GGUFWriter(sys.argv[2], str(reader.get_field("general.architecture").contents()))
for field in reader.fields.values():
    if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type"):
        continue
    inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
    writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=inner)
writer.add_file_type(gguf.LlamaFileType.ALL_F32)
for tensor in reader.tensors:
    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
    writer.add_tensor(tensor.name, values)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
