# SPDX-License-Identifier: Apache-2.0
"""Writes small models with random weights for tests of the llama.cpp adapter, one for each kind of memory.

    python make_tiny_models.py FOLDER

attention.gguf       Llama: every layer keeps all rows
sliding_window.gguf  Gemma 3: every second layer keeps a window of 8 rows
recurrent.gguf       Mamba: one state, no rows
hybrid.gguf          Jamba: two layers with a state around one with rows

All in 32-bit floats, with a fixed seed: the same files every time. Needs the packages gguf and numpy.

Weights are scaled so that what a model says next depends on all that it has read: a model with small weights repeats
one token, with which a conformance test finds nothing.
"""

import pathlib
import sys

import gguf
import numpy as np

SEED = 20
CONTEXT = 2048
WORDS = 64  # tokens beside the control and byte tokens
VOCABULARY = 3 + 256 + WORDS
WIDTH = 64
HIDDEN = 128  # of the feed-forward layers
HEADS = 4
KEY_HEADS = 2
HEAD = WIDTH // HEADS
WINDOW = 8
INNER = 2 * WIDTH  # of Mamba layers, which want it so
STATE = 16
RANK = 8
KERNEL = 4


class Model:
    """A file that is being written: metadata, a vocabulary, and tensors of a random generator of its own."""

    def __init__(self, path: pathlib.Path, architecture: str, layers: int, seed: int):
        self.path = path
        self.writer = gguf.GGUFWriter(path, architecture)
        self.random = np.random.default_rng(SEED + seed)
        writer = self.writer
        writer.add_name(f"random {architecture}")
        writer.add_context_length(CONTEXT)
        writer.add_embedding_length(WIDTH)
        writer.add_block_count(layers)
        writer.add_feed_forward_length(HIDDEN)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_vocab_size(VOCABULARY)
        self.add_vocabulary()
        self.normal("token_embd.weight", (VOCABULARY, WIDTH), 1.0)
        # Not tied to the embedding: such a model would rather say again what it has just read.
        self.normal("output.weight", (VOCABULARY, WIDTH), 4.0 / np.sqrt(WIDTH))
        self.ones("output_norm.weight", WIDTH)

    def add_vocabulary(self) -> None:
        """Of SentencePiece's kind: three control tokens, all bytes, and pairs of letters."""
        kinds = gguf.TokenType
        tokens = [("<unk>", 0.0, kinds.UNKNOWN), ("<s>", 0.0, kinds.CONTROL), ("</s>", 0.0, kinds.CONTROL)]
        tokens += [(f"<0x{byte:02X}>", 0.0, kinds.BYTE) for byte in range(256)]
        letters = "etaoinsr"
        pairs = [a + b for a in letters for b in letters]
        tokens += [(pair, -1.0 - i, kinds.NORMAL) for i, pair in enumerate(pairs)]
        self.writer.add_tokenizer_model("llama")
        self.writer.add_token_list([text.encode() for text, _, _ in tokens])
        self.writer.add_token_scores([score for _, score, _ in tokens])
        self.writer.add_token_types([int(kind) for _, _, kind in tokens])
        self.writer.add_unk_token_id(0)
        self.writer.add_bos_token_id(1)
        self.writer.add_eos_token_id(2)
        self.writer.add_add_bos_token(True)

    def add(self, name: str, values: np.ndarray) -> None:
        self.writer.add_tensor(name, np.ascontiguousarray(values, dtype=np.float32))

    def normal(self, name: str, shape: tuple[int, ...], deviation: float) -> None:
        self.add(name, self.random.normal(0.0, deviation, shape))

    def ones(self, name: str, size: int) -> None:
        self.add(name, np.ones(size))

    def projection(self, name: str, rows_in: int, rows_out: int, gain: float = 1.0) -> None:
        """Keeps the size of what it is given, times `gain`."""
        self.normal(name, (rows_out, rows_in), gain / np.sqrt(rows_in))

    def add_attention(self, layer: int, gain: float = 2.0) -> None:
        block = f"blk.{layer}."
        self.ones(block + "attn_norm.weight", WIDTH)
        self.projection(block + "attn_q.weight", WIDTH, HEADS * HEAD, gain)
        self.projection(block + "attn_k.weight", WIDTH, KEY_HEADS * HEAD, gain)
        self.projection(block + "attn_v.weight", WIDTH, KEY_HEADS * HEAD, gain)
        self.projection(block + "attn_output.weight", HEADS * HEAD, WIDTH, gain)

    def add_feed_forward(self, layer: int) -> None:
        block = f"blk.{layer}."
        self.ones(block + "ffn_norm.weight", WIDTH)
        self.projection(block + "ffn_gate.weight", WIDTH, HIDDEN, 2.0)
        self.projection(block + "ffn_up.weight", WIDTH, HIDDEN, 2.0)
        self.projection(block + "ffn_down.weight", HIDDEN, WIDTH)

    def add_mamba(self, layer: int, normalised: bool) -> None:
        block = f"blk.{layer}."
        self.ones(block + "attn_norm.weight", WIDTH)
        self.projection(block + "ssm_in.weight", WIDTH, 2 * INNER, 2.0)
        self.normal(block + "ssm_conv1d.weight", (INNER, KERNEL), 1.0)
        self.normal(block + "ssm_conv1d.bias", (INNER,), 0.1)
        self.projection(block + "ssm_x.weight", INNER, RANK + 2 * STATE, 2.0)
        if normalised:
            self.ones(block + "ssm_dt_norm.weight", RANK)
            self.ones(block + "ssm_b_norm.weight", STATE)
            self.ones(block + "ssm_c_norm.weight", STATE)
        self.projection(block + "ssm_dt.weight", RANK, INNER)
        # Steps of 0.01 to 0.3 behind the softplus, and rates of decay from 1/4 on: a state that remembers.
        step = np.exp(self.random.uniform(np.log(0.01), np.log(0.3), INNER))
        self.add(block + "ssm_dt.bias", np.log(np.expm1(step)))
        self.add(block + "ssm_a", -np.tile(np.arange(1, STATE + 1) / 4.0, (INNER, 1)))
        self.ones(block + "ssm_d", INNER)
        self.projection(block + "ssm_out.weight", INNER, WIDTH, 2.0)

    def add_attention_sizes(self) -> None:
        self.writer.add_head_count(HEADS)
        self.writer.add_rope_dimension_count(HEAD)

    def add_mamba_sizes(self) -> None:
        self.writer.add_ssm_conv_kernel(KERNEL)
        self.writer.add_ssm_inner_size(INNER)
        self.writer.add_ssm_state_size(STATE)
        self.writer.add_ssm_time_step_rank(RANK)

    def write(self) -> None:
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()
        print(f"{self.path}: {self.path.stat().st_size} bytes")


def attention(folder: pathlib.Path) -> None:
    layers = 3
    model = Model(folder / "attention.gguf", "llama", layers, 1)
    model.add_attention_sizes()
    model.writer.add_head_count_kv(KEY_HEADS)
    for layer in range(layers):
        model.add_attention(layer)
        model.add_feed_forward(layer)
    model.write()


def sliding_window(folder: pathlib.Path) -> None:
    layers = 4
    model = Model(folder / "sliding_window.gguf", "gemma3", layers, 2)
    model.add_attention_sizes()
    model.writer.add_head_count_kv(KEY_HEADS)
    model.writer.add_key_length(HEAD)
    model.writer.add_value_length(HEAD)
    model.writer.add_sliding_window(WINDOW)
    model.writer.add_uint32("gemma3.attention.sliding_window_pattern", 2)
    for layer in range(layers):
        model.add_attention(layer)
        model.add_feed_forward(layer)
        block = f"blk.{layer}."
        model.ones(block + "attn_q_norm.weight", HEAD)
        model.ones(block + "attn_k_norm.weight", HEAD)
        # The embedding comes in eight times as large as what the layers add without this.
        model.add(block + "post_attention_norm.weight", np.full(WIDTH, 8.0))
        model.add(block + "post_ffw_norm.weight", np.full(WIDTH, 4.0))
    model.write()


def recurrent(folder: pathlib.Path) -> None:
    layers = 3
    model = Model(folder / "recurrent.gguf", "mamba", layers, 3)
    model.add_mamba_sizes()
    for layer in range(layers):
        model.add_mamba(layer, normalised=False)
    model.write()


def hybrid(folder: pathlib.Path) -> None:
    layers = 3
    model = Model(folder / "hybrid.gguf", "jamba", layers, 4)
    model.add_attention_sizes()
    model.add_mamba_sizes()
    model.writer.add_head_count_kv([KEY_HEADS if layer == 1 else 0 for layer in range(layers)])
    for layer in range(layers):
        if layer == 1:
            model.add_attention(layer)
        else:
            model.add_mamba(layer, normalised=True)
        model.add_feed_forward(layer)
    model.write()


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for make in (attention, sliding_window, recurrent, hybrid):
        make(folder)


if __name__ == "__main__":
    main()
