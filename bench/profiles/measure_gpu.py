#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of a decoder's verify pass by its shape, and writes a curve file for reprise.

A decoder in the shape of a known model runs passes of 1 + k rows for each sequence: the anchor and k drafted tokens.
Its weights are random, which does not change the time. On a GPU each shape of pass is a CUDA graph, timed by CUDA
events. On a CPU the same code runs without graphs, to try the script. Before the measurement, a pass of k + 1 rows is
compared with k + 1 passes of one row.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import gc
import json
import os
import platform
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention.bias import causal_lower_right
except ImportError as missing:
    print(f"measure_gpu.py: {missing}; pip install torch", file=sys.stderr)
    sys.exit(2)
try:
    import fused_kernels
except ImportError:  # PyTorch for CPUs has no Triton
    fused_kernels = None

GIB = 1 << 30


class BadInput(Exception):
    """An error that the user can correct: exit code 2."""


class Failed(Exception):
    """A failure during the measurement: exit code 1."""


@dataclass(frozen=True)
class Shape:
    like: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int

    def layer_weights(self) -> int:
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        return attention + 3 * self.hidden * self.ffn + 2 * self.hidden

    def head_weights(self) -> int:
        return self.hidden * (2 * self.vocabulary + 1)

    def cache_per_token(self) -> int:
        """The numbers that one token adds to the cache of one layer."""
        return 2 * self.kv_heads * self.head_dim

    def activations_per_row(self) -> int:
        """An upper bound on the numbers that are alive at any time."""
        return self.vocabulary + 4 * self.ffn + 8 * self.hidden


SHAPES = {
    "8b": Shape("Llama-3-8B", 32, 4096, 32, 8, 128, 14336, 128256),
    "70b": Shape("Llama-3-70B", 80, 8192, 64, 8, 128, 28672, 128256),
    "tiny": Shape("none: to try the script", 4, 64, 8, 2, 16, 128, 512),
}
# This shape is cut to the layers that fit beside the largest cache that leaves FEWEST_LAYERS; larger caches are skipped.
SIZED_TO_FIT = "70b"
FEWEST_LAYERS = 8
# Memory of graphs and kernel workspaces, beside weights, cache and activations.
GPU_RESERVE = 3 * GIB


EPSILON = 1e-5  # of RMSNorm


@dataclass(frozen=True)
class Kernels:
    attention: str  # packed, flash or masked
    fused: bool  # False: those of PyTorch, one for each operation
    processors: int = 1  # of the GPU


class Cache:
    """Keys and values, [layer, sequence, position, head, number], in memory that all passes share. The contents do not
    change the time. The views of different numbers of sequences overlap."""

    def __init__(self, memory: torch.Tensor, shape: Shape, layers: int, sequences: int, capacity: int):
        size = (2, layers, sequences, capacity, shape.kv_heads, shape.head_dim)
        self.keys, self.values = memory[: torch.Size(size).numel()].view(size)


class Decoder:
    """A decoder with RMSNorm, rotary positions, grouped-query attention and SwiGLU. Gives the logits of every row."""

    def __init__(self, shape: Shape, layers: int, positions: int, kernels: Kernels, device, dtype, seed: int):
        self.shape, self.layers, self.kernels = shape, layers, kernels
        self.device, self.dtype = device, dtype
        generator = None if device.type == "meta" else torch.Generator(device).manual_seed(seed)

        def weights(rows: int, columns: int, scale: float) -> torch.Tensor:
            made = torch.empty(rows, columns, device=device, dtype=dtype)
            return made.normal_(0, scale, generator=generator)

        def projection(into: int, out_of: int) -> torch.Tensor:
            return weights(into, out_of, out_of**-0.5)

        def norm() -> torch.Tensor:
            return torch.ones(shape.hidden, device=device, dtype=dtype)

        self.embedding = weights(shape.vocabulary, shape.hidden, 1)
        self.blocks = []
        for _ in range(layers):
            qkv = projection((shape.heads + 2 * shape.kv_heads) * shape.head_dim, shape.hidden)
            out = projection(shape.hidden, shape.heads * shape.head_dim)
            gate_and_up = projection(2 * shape.ffn, shape.hidden)
            down = projection(shape.hidden, shape.ffn)
            self.blocks.append((norm(), qkv, out, norm(), gate_and_up, down))
        self.norm = norm()
        self.head = projection(shape.vocabulary, shape.hidden)

        half = torch.arange(0, shape.head_dim, 2, device=device, dtype=torch.float32) / shape.head_dim
        angles = torch.arange(positions, device=device, dtype=torch.float32)[:, None] * 500000.0**-half
        self.cos = torch.cat((angles.cos(), angles.cos()), 1).to(dtype)[:, None]
        self.sin = torch.cat((-angles.sin(), angles.sin()), 1).to(dtype)[:, None]
        self.biases: dict[tuple[int, int], torch.Tensor] = {}

    def forward(self, ids: torch.Tensor, cache: Cache | None, start: int) -> torch.Tensor:
        """Returns logits [sequence, row, vocabulary] for the rows `ids` [sequence, row] at positions from `start` on.

        Writes their keys and values to the cache. Without a cache, runs the embedding and the head only."""
        x = F.embedding(ids, self.embedding)
        blocks = self.blocks if cache else []
        y = self.normed(x, blocks[0][0] if blocks else self.norm)
        for layer, (_, qkv, out, norm_2, gate_and_up, down) in enumerate(blocks):
            attended = self.attend(F.linear(y, qkv), cache.keys[layer], cache.values[layer], start)
            x, y = self.add_norm(x, F.linear(attended, out), norm_2)
            norm = blocks[layer + 1][0] if layer + 1 < len(blocks) else self.norm
            x, y = self.add_norm(x, F.linear(self.gated(F.linear(y, gate_and_up)), down), norm)
        return F.linear(y, self.head)

    def normed(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (self.shape.hidden,), weight, EPSILON)

    def add_norm(self, x: torch.Tensor, added: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if self.kernels.fused:
            return fused_kernels.add_norm(x, added, weight, EPSILON)
        x = x + added
        return x, self.normed(x, weight)

    def gated(self, gate_and_up: torch.Tensor) -> torch.Tensor:
        if self.kernels.fused:
            return fused_kernels.gated(gate_and_up)
        gate, up = gate_and_up.chunk(2, -1)
        return F.silu(gate) * up

    def attend(self, qkv: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, start: int) -> torch.Tensor:
        """Writes keys and values to the cache of a layer, and returns the attention of the rows of `qkv`."""
        heads = self.shape.heads
        qkv = qkv.view(*qkv.shape[:2], -1, self.shape.head_dim)
        end = start + qkv.shape[1]
        if self.kernels.fused:
            q = fused_kernels.rotate_and_store(qkv, self.cos, self.sin, keys, values, start, heads)
        else:
            q, keys[:, start:end], values[:, start:end] = self.rotated(qkv, start, end)
        return self.attention(q, keys[:, :end], values[:, :end]).flatten(2)

    def rotated(self, qkv: torch.Tensor, start: int, end: int) -> tuple[torch.Tensor, ...]:
        shape = self.shape
        qk, v = qkv.split((shape.heads + shape.kv_heads, shape.kv_heads), 2)
        halves_swapped = qk.unflatten(-1, (2, -1)).flip(-2).flatten(-2)
        qk = torch.addcmul(qk * self.cos[start:end], halves_swapped, self.sin[start:end])
        return *qk.split((shape.heads, shape.kv_heads), 2), v

    def attention(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Row i of r sees all positions except the last r - 1 - i. All tensors are [sequence, row, head, number]."""
        if self.kernels.attention == "packed":
            return fused_kernels.attend(q.contiguous(), k, v, self.kernels.processors)
        sequences, rows, heads, head_dim = q.shape
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        if self.kernels.attention == "flash":
            bias = causal_lower_right(rows, k.shape[2])
            made = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, enable_gqa=True)
        else:
            # The heads of a group become rows of one head, so that their keys and values are read once.
            folded = q.reshape(sequences, k.shape[1], -1, head_dim)
            bias = self.bias(rows, k.shape[2]) if rows > 1 else None
            made = F.scaled_dot_product_attention(folded, k, v, attn_mask=bias)
            made = made.reshape(sequences, heads, rows, head_dim)
        return made.transpose(1, 2)

    def bias(self, rows: int, length: int) -> torch.Tensor:
        """Made once, as numbers, because each layer would convert a mask of booleans again."""
        if (rows, length) not in self.biases:
            seen = torch.ones(rows, length, dtype=torch.bool, device=self.device).tril(length - rows)
            bias = torch.zeros(rows, length, dtype=self.dtype, device=self.device).masked_fill(~seen, float("-inf"))
            self.biases[rows, length] = bias.repeat(self.shape.heads // self.shape.kv_heads, 1)
        return self.biases[rows, length]


def picks(decoder: Decoder, ids: torch.Tensor, cache: Cache | None, start: int) -> torch.Tensor:
    """The timed work: greedy picks after each row, on the device."""
    return decoder.forward(ids, cache, start).argmax(-1)


def kernels_for(options, shape: Shape, device, dtype) -> Kernels:
    """Resolves "auto". Refuses flash attention if torch would replace it by a slow implementation."""
    cuda = device.type == "cuda"
    with_triton = fused_kernels is not None and (cuda or os.environ.get("TRITON_INTERPRET") == "1")
    for option in ("attention packed", "kernels fused"):
        name, value = option.split()
        if getattr(options, name) == value and not with_triton:
            raise BadInput(f"--{option}: needs a CUDA device and Triton (pip install triton)")
    processors = torch.cuda.get_device_properties(device).multi_processor_count if cuda else 1
    attention = options.attention
    if attention == "auto":
        attention = "packed" if cuda and with_triton else "masked"
    if attention == "flash" and cuda:
        q = torch.empty(1, shape.heads, 2, shape.head_dim, device=device, dtype=dtype)
        kv = torch.empty(1, shape.kv_heads, 16, shape.head_dim, device=device, dtype=dtype)
        params = torch.backends.cuda.SDPAParams(q, kv, kv, None, 0.0, False, True)
        if not torch.backends.cuda.can_use_flash_attention(params):
            raise BadInput(f"--attention flash: this torch has no flash attention for {dtype} on this GPU; use masked")
    fused = options.kernels == "fused" or (options.kernels == "auto" and cuda and with_triton)
    return Kernels(attention, fused, processors)


def check(like: Shape, kernels: Kernels, device, dtype, seed: int) -> float:
    """Returns the largest difference between the logits of one pass of many rows and of passes of one row each.

    The difference is relative to the largest logit. Wrong masks, positions or cache rows make it large. The expected
    logits are those of PyTorch's kernels with a mask. The check uses the tiny shape with the heads of `like`, so that
    the same attention kernels run."""
    shape = replace(SHAPES["tiny"], heads=like.heads, kv_heads=like.kv_heads, head_dim=like.head_dim)
    sequences, prompt, rows = 3, 149, 9
    decoder = Decoder(shape, shape.layers, prompt + rows, kernels, device, dtype, seed)
    generator = torch.Generator("cpu").manual_seed(seed)
    ids = torch.randint(shape.vocabulary, (sequences, prompt + rows), generator=generator).to(device)

    def logits(used: Kernels, widths: list[int]) -> torch.Tensor:
        """Of the last rows: runs the prompt, then passes of these widths."""
        decoder.kernels = used
        size = shape.layers * shape.cache_per_token() * sequences * (prompt + rows)
        cache = Cache(torch.randn(size, device=device, dtype=dtype), shape, shape.layers, sequences, prompt + rows)
        decoder.forward(ids[:, :prompt], cache, 0)
        starts = [prompt + sum(widths[:at]) for at in range(len(widths))]
        made = [decoder.forward(ids[:, at : at + width], cache, at) for at, width in zip(starts, widths)]
        return torch.cat(made, 1).float()

    with torch.inference_mode():
        expected = logits(Kernels("masked", False), [1] * rows)
        found = [logits(kernels, widths) for widths in ([rows], [1] * rows, [rows - 2, 2])]
        difference = max(((each - expected).abs().max() / expected.abs().max()).item() for each in found)
        invalid = any(each.isnan().any().item() for each in found)
    tolerance = 1e-4 if dtype == torch.float32 else 5e-2
    if invalid or not difference <= tolerance:
        raise Failed(
            f"check: a pass of {rows} rows and {rows} passes of one row differ by {difference:.2g} of the largest logit"
            f" ({kernels}, {dtype}); at most {tolerance:g} is rounding"
        )
    return difference


class EagerPass:
    """A pass launched kernel by kernel, timed by the CPU's clock until the device is done."""

    def __init__(self, run, device):
        self.run = run
        self.finish = functools.partial(torch.cuda.synchronize, device) if device.type == "cuda" else lambda: None
        self.launch()

    def launch(self) -> None:
        self.finish()
        begin = time.perf_counter_ns()
        self.run()
        self.finish()
        self.nanoseconds = time.perf_counter_ns() - begin

    def wait(self) -> None:
        pass


class GraphPass:
    """A pass as a CUDA graph. launch() does not wait; the time is valid after wait()."""

    def __init__(self, run, pool):
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            run()  # libraries choose kernels and allocate workspaces here; a capture cannot
        torch.cuda.current_stream().wait_stream(aside)
        self.run = run  # keeps the tensors that the graph reads
        self.graph = torch.cuda.CUDAGraph()
        # One pool for all graphs: each overwrites the contents of the last, and none reads them.
        with torch.cuda.graph(self.graph, pool=pool):
            self.picks = run()
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.picks.fill_(-1)
        self.launch()
        self.wait()
        if (self.picks < 0).any().item():
            raise Failed("a CUDA graph ran without choosing tokens: it was captured wrongly")

    def launch(self) -> None:
        self.begin.record()
        self.graph.replay()
        self.end.record()

    def wait(self) -> None:
        torch.cuda.synchronize()

    @property
    def nanoseconds(self) -> float:
        return self.begin.elapsed_time(self.end) * 1e6


def timed(passes: list, warmup: int, samples: int, order: random.Random, progress, when_busy) -> list[list[float]]:
    """Returns the times of each pass, one per round. Each round has a new order, so that a slowdown hits all alike."""
    times: list[list[float]] = [[] for _ in passes]
    for at in range(-warmup, samples):
        shuffled = order.sample(passes, len(passes))
        # The first pass runs twice, because the device is idle before it and the start-up time would count.
        for each in (shuffled[0], *shuffled):
            each.launch()
        if at == -1:
            when_busy()
        passes[0].wait()
        if at >= 0:
            for line, each in zip(times, passes):
                line.append(each.nanoseconds)
        progress(f"round {at + warmup + 1} of {warmup + samples}")
    return times


@dataclass(frozen=True)
class Pair:
    sequences: int
    context: int

    def tokens(self, most_drafted: int) -> int:
        return self.sequences * (self.context + most_drafted)

    def __str__(self) -> str:
        return f"{self.sequences} sequence{'s' if self.sequences > 1 else ''} at context {self.context}"


class Fit:
    """The number of layers, and the pairs of sequences and context whose caches fit beside them."""

    def __init__(self, options, shape: Shape, pairs: list[Pair], free: int | None, reserve: int, number_bytes: int):
        most = max(options.drafted)
        rows = max(pair.sequences for pair in pairs) * (1 + most)
        fixed = reserve + number_bytes * (shape.head_weights() + rows * shape.activations_per_row())

        def per_layer(pair: Pair) -> int:
            return number_bytes * (shape.layer_weights() + pair.tokens(most) * shape.cache_per_token())

        def layers_beside(pair: Pair) -> int:
            return shape.layers if free is None else min(shape.layers, (free - fixed) // per_layer(pair))

        self.layers = options.layers or shape.layers
        if options.shape == SIZED_TO_FIT and not options.layers:
            largest_first = sorted(pairs, key=lambda pair: pair.tokens(most), reverse=True)
            fitting = [layers_beside(pair) for pair in largest_first]
            self.layers = next((n for n in fitting if n >= FEWEST_LAYERS), max(2, fitting[-1]))
        self.pairs = [pair for pair in pairs if layers_beside(pair) >= self.layers]
        self.skipped = [
            {**asdict(pair), "why": f"needs {(fixed + self.layers * per_layer(pair)) / GIB:.1f} GiB"
             f" of memory, {free / GIB:.1f} GiB are free"} for pair in pairs if pair not in self.pairs
        ]  # fmt: skip
        if pairs[0] not in self.pairs:
            room = layers_beside(pairs[0])
            advice = f"--layers {room} fits" if room > 0 else "not one layer fits; give fewer --drafted, or --shape 8b"
            raise BadInput(f"{self.layers} layers of {options.shape} do not fit; {pairs[0]} alone "
                           f"{self.skipped[0]['why']}; {advice}")  # fmt: skip


def free_memory(device) -> int | None:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def ask_driver(device, *fields: str) -> dict[str, str]:
    """Returns the fields from nvidia-smi; empty if that is missing."""
    if device.type != "cuda":
        return {}
    gpu = f"--id=GPU-{torch.cuda.get_device_properties(device).uuid}"
    command = ["nvidia-smi", gpu, f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(fields, (value.strip() for value in answer.split(","))))


def processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def hardware(device) -> str:
    if device.type != "cuda":
        return f"{processor()}, {torch.get_num_threads()} threads"
    gpu = torch.cuda.get_device_properties(device)
    return f"{gpu.name}, {gpu.total_memory / GIB:.0f} GiB, {gpu.multi_processor_count} SMs"


class Report:
    """The curve file. It is written after each pair, so that an interruption loses one pair at most."""

    def __init__(self, options, arguments: list[str], shape: Shape, layers: int, device, kernels: Kernels):
        self.path = options.output
        with_graphs = device.type == "cuda" and options.launch == "graph"
        graphs = "one CUDA graph for each shape of pass, CUDA events" if with_graphs else "no graphs, CPU clock"
        driver = ask_driver(device, "driver_version").get("driver_version")
        self.whole = layers == shape.layers
        self.content = {
            "version": 1,
            "base_ns": None,
            "hardware": hardware(device),
            "model": f"random weights in the shape of {shape.like}",
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            "command": shlex.join(["python3", "bench/profiles/measure_gpu.py", *arguments]),
            "shape": asdict(shape),
            "dtype": options.dtype,
            "layers_measured": layers,
            "layer_scaling": "none" if self.whole else
            f"ns = head_ns + (measured_ns - head_ns) x {shape.layers} / {layers}; head_ns is a pass without layers",
            "attention": kernels.attention,
            "kernels": "fused" if kernels.fused else "torch",
            "timing": f"{graphs}; median of {options.samples}, quartiles in low_ns and high_ns; shuffled; no transfers",
            "versions": {"python": platform.python_version(), "torch": torch.__version__, "cuda": torch.version.cuda,
                         "driver": driver},
            "complete": False,
            "skipped": [],
            "pairs": [],
            "points": [],
        }  # fmt: skip

    def add(self, pair: Pair, drafted: list[int], full: list[list[float]], head: list[list[float]]) -> None:
        shape = self.content["shape"]
        factor = shape["layers"] / self.content["layers_measured"]
        for at, k in enumerate(drafted):
            low, middle, high = statistics.quantiles(full[at], n=4, method="inclusive")
            rest = 0 if self.whole else statistics.median(head[at])
            if middle <= rest:
                raise Failed(f"{pair}, {k} drafted: a pass without layers took as long as one with; is the device busy?")
            point = {"sequences": pair.sequences, "context": pair.context, "rows": pair.sequences * (1 + k)}
            point["ns"], point["low_ns"], point["high_ns"] = (
                round(rest + (t - rest) * factor) for t in (middle, low, high)
            )
            if not self.whole:
                point |= {"measured_ns": round(middle), "head_ns": round(rest)}
            if self.content["base_ns"] is None:
                self.content["base_ns"] = point["ns"]
            self.content["points"].append(point)

    def write(self) -> None:
        lists = ("skipped", "pairs", "points")
        lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in self.content.items() if key not in lists]
        for key in lists:
            rows = ",\n".join(f"  {json.dumps(row)}" for row in self.content[key])
            lines.append(f' "{key}": [\n{rows}\n ]' if rows else f' "{key}": []')
        with temporary_beside(self.path) as file:
            file.write("{\n" + ",\n".join(lines) + "\n}\n")
        os.replace(file.name, self.path)


@contextlib.contextmanager
def temporary_beside(path: Path):
    """Opens a temporary file in the folder of `path`. Removes it if writing fails."""
    try:
        file = tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=path.name, suffix=".part", delete=False)
    except OSError as error:
        raise BadInput(f"--output {path}: {error.strerror}; does the folder exist, and may you write there?") from error
    try:
        with file:
            yield file
        os.chmod(file.name, 0o644)
    except BaseException as error:
        os.unlink(file.name)
        if isinstance(error, OSError):
            raise Failed(f"{path} cannot be written: {error.strerror}") from error
        raise


def measure(options, arguments: list[str], shape: Shape, device, dtype, kernels: Kernels) -> None:
    say = Progress()
    pairs = [Pair(sequences, context) for sequences in options.sequences for context in options.contexts]
    most = max(options.drafted)
    reserve = GPU_RESERVE if device.type == "cuda" else 0
    fit = Fit(options, shape, pairs, free_memory(device), reserve, dtype.itemsize)
    for pair in fit.skipped:
        say.line(f"skipped: {Pair(pair['sequences'], pair['context'])}: {pair['why']}")
    report = Report(options, arguments, shape, fit.layers, device, kernels)
    report.content["skipped"] = fit.skipped
    if report.path.is_dir():
        raise BadInput(f"--output {report.path}: is a folder; give a file")
    with temporary_beside(report.path) as file:  # fail before an hour of measuring, not after
        pass
    os.unlink(file.name)

    say.line(f"{options.shape}: {fit.layers} of {shape.layers} layers, {options.dtype}, attention {kernels.attention}, "
             f"{report.content['hardware']}")  # fmt: skip
    decoder = Decoder(shape, fit.layers, max(options.contexts) + most, kernels, device, dtype, options.seed)
    numbers = fit.layers * shape.cache_per_token() * max(pair.tokens(most) for pair in fit.pairs)
    memory = torch.empty(numbers, device=device, dtype=dtype).normal_()
    generator = torch.Generator("cpu").manual_seed(options.seed)
    order = random.Random(options.seed)
    pool = torch.cuda.graph_pool_handle() if device.type == "cuda" and options.launch == "graph" else None
    plain_pass = None

    for at, pair in enumerate(fit.pairs):
        begin = time.monotonic()
        name = f"{pair} ({at + 1} of {len(fit.pairs)})"
        cache = Cache(memory, shape, fit.layers, pair.sequences, pair.context + most)
        ids = torch.randint(shape.vocabulary, (pair.sequences, 1 + most), generator=generator).to(device)

        def made(k: int, with_layers: bool):
            say.now(f"{name}: preparing the pass with {k} drafted")
            # The anchor is the last token of the context, and the only one that is not cached.
            run = functools.partial(
                picks, decoder, ids[:, : k + 1].contiguous(), cache if with_layers else None, pair.context - 1
            )
            return EagerPass(run, device) if pool is None else GraphPass(run, pool)

        driver: dict[str, str] = {}
        try:
            full = [made(k, True) for k in options.drafted]
            head = [] if report.whole else [made(k, False) for k in options.drafted]
            plain_pass = plain_pass or full[0]
            times = timed(
                [*full, *head, *([plain_pass] if at else [])], options.warmup, options.samples, order,
                lambda text: say.now(f"{name}: {text}"),
                lambda: driver.update(ask_driver(device, "clocks.sm", "clocks.max.sm", "clocks.mem", "power.draw",
                                                 "power.limit", "temperature.gpu")),
            )  # fmt: skip
        except torch.OutOfMemoryError:
            if at == 0:
                raise
            report.content["skipped"].append({**asdict(pair), "why": "ran out of memory"})
            say.line(f"skipped: {name}: ran out of memory")
            continue
        finally:
            full = head = None  # frees the memory of all graphs except the first plain pass
            decoder.biases.clear()
            gc.collect()
        count = len(options.drafted)
        report.add(pair, options.drafted, times[:count], times[count : 2 * count])
        note = {**asdict(pair), "first_pass_ns": round(statistics.median(times[-1] if at else times[0])), **driver}
        report.content["pairs"].append(note)
        report.content["complete"] = at + 1 == len(fit.pairs)
        report.write()
        one, *_, last = report.content["points"][-count:]
        seconds = time.monotonic() - begin
        say.line(f"{name}: {one['ns'] / 1e6:.3f} ms, with {options.drafted[-1]} drafted "
                 f"{last['ns'] / one['ns']:.2f} times that; {seconds:.0f} s")  # fmt: skip
    report.content["complete"] = True
    report.write()
    say.line(f"written: {report.path}")


class Progress:
    """Prints a line for each finished step. On a terminal, the current step is shown and overwritten in place."""

    def line(self, text: str) -> None:
        print(f"\r\x1b[K{text}" if sys.stderr.isatty() else text, file=sys.stderr, flush=True)

    def now(self, text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def numbers(least: int, needed: int | None):
    """Returns a reader of "1,8,32" and "0-64". The numbers are sorted, without duplicates."""

    def read(text: str) -> list[int]:
        found: set[int] = set()
        for part in text.split(","):
            first, dash, last = part.partition("-")
            last = last if dash else first
            if not (first.isdecimal() and last.isdecimal() and least <= int(first) <= int(last) <= 1 << 20):
                raise argparse.ArgumentTypeError(
                    f"'{part}': expected whole numbers from {least} to {1 << 20} and ranges of them, as in 1,8,32 or 0-64"
                )
            found.update(range(int(first), int(last) + 1))
        if needed is not None and needed not in found:
            raise argparse.ArgumentTypeError(f"'{text}': the list must include {needed}, the base of the comparison")
        return sorted(found)

    return read


def at_least(least: int):
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}': expected a whole number of at least {least}")
        return int(text)

    return read


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="measure_gpu.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="exit codes: 0 done; 1 the check or the device failed, or the run was interrupted; 2 bad input",
    )
    add = parser.add_argument
    add("--shape", choices=SHAPES, default="8b",
        help="8b: Llama-3-8B; 70b: Llama-3-70B, cut to the layers that fit, times scaled to 80; tiny: to try the script"
        " (default: 8b)")  # fmt: skip
    add("--device", default="cuda", help="cuda, cuda:N or cpu (default: cuda)")
    add("--output", type=Path, metavar="FILE", help="the curve file (default: SHAPE-DEVICE.json, as in 8b-cuda.json)")
    add("--sequences", type=numbers(1, 1), metavar="LIST",
        help="sequences per pass, each with its own context and drafted tokens (default: 1,8,32,64; tiny: 1,2)")  # fmt: skip
    add("--contexts", type=numbers(1, None), metavar="LIST",
        help="committed tokens of each sequence, the anchor included (default: 1024,8192,32768; tiny: 64,256)")  # fmt: skip
    add("--drafted", type=numbers(0, 0), metavar="LIST",
        help="k: drafted tokens of each sequence (default: 0-64; tiny: 0-8)")  # fmt: skip
    add("--samples", type=at_least(2), default=15, metavar="N", help="measurements of each pass (default: 15)")
    add("--warmup", type=at_least(1), default=3, metavar="N", help="rounds before the measured ones (default: 3)")
    add("--layers", type=at_least(1), metavar="N", help="build only N layers and scale the times to all of them")
    add("--dtype", choices=("bfloat16", "float16", "float32"), help="default: bfloat16 (cpu: float32)")
    add("--attention", choices=("auto", "packed", "flash", "masked"), default="auto",
        help="packed: a Triton kernel that reads the keys of a group once and splits the context among thread blocks;"
        " flash: torch's flash attention with causal_lower_right; masked: scaled_dot_product_attention with a mask;"
        " auto: packed on a GPU with Triton, otherwise masked (default: auto)")  # fmt: skip
    add("--kernels", choices=("auto", "fused", "torch"), default="auto",
        help="of norms, rotary positions and SwiGLU. fused: one Triton kernel each, as in an engine; torch: one kernel"
        " for each operation; auto: fused on a GPU with Triton (default: auto)")  # fmt: skip
    add("--launch", choices=("graph", "eager"), default="graph",
        help="graph: one CUDA graph for each shape of pass; eager: kernel by kernel, without graphs (default: graph)")
    add("--seed", type=at_least(0), default=1, metavar="N", help="seed of weights, tokens and order (default: 1)")
    add("--check", action="store_true",
        help="only compare a pass of k + 1 rows with k + 1 passes of one row on the tiny shape; measure nothing")  # fmt: skip
    options = parser.parse_args(arguments)
    tiny = options.shape == "tiny"
    options.sequences = options.sequences or ([1, 2] if tiny else [1, 8, 32, 64])
    options.contexts = options.contexts or ([64, 256] if tiny else [1024, 8192, 32768])
    options.drafted = options.drafted or list(range(9 if tiny else 65))
    if options.layers and options.layers > SHAPES[options.shape].layers:
        parser.error(f"--layers {options.layers}: {options.shape} has {SHAPES[options.shape].layers}")
    return options


def device_for(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cuda", "cpu"):
        raise BadInput(f"--device {name}: expected cuda, cuda:N or cpu")
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise BadInput("no CUDA device; run with --device cpu --shape tiny to try the script")
        if (device.index or 0) >= torch.cuda.device_count():
            raise BadInput(f"--device {name}: there are {torch.cuda.device_count()} CUDA devices, counted from 0")
        device = torch.device("cuda", device.index or 0)
        torch.cuda.set_device(device)
    return device


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        device = device_for(options.device)
        options.dtype = options.dtype or ("bfloat16" if device.type == "cuda" else "float32")
        options.output = options.output or Path(f"{options.shape}-{device.type}.json")
        dtype = getattr(torch, options.dtype)
        shape = SHAPES[options.shape]
        kernels = kernels_for(options, shape, device, dtype)
        both = device.type == "cpu" and options.attention == "auto"
        for each in ("masked", "flash") if both else (kernels.attention,):
            difference = check(shape, replace(kernels, attention=each), device, dtype, options.seed)
            print(f"check: attention {each}, {options.dtype}: rows at once and one by one differ by {difference:.1e} of "
                  "the largest logit", file=sys.stderr)  # fmt: skip
        if not options.check:
            with torch.inference_mode():
                measure(options, arguments, shape, device, dtype, kernels)
    except BadInput as error:
        print(f"measure_gpu.py: {error}", file=sys.stderr)
        return 2
    except (Failed, torch.OutOfMemoryError) as error:
        print(f"measure_gpu.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nmeasure_gpu.py: interrupted; the file holds the finished pairs, if there are any", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
