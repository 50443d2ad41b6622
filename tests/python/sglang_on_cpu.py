#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SGLang with reprise on a processor: the tokens of plain decoding, of SGLang's own NGRAM, and of REPRISE.

    sglang_on_cpu.py MODEL [METHOD...]      MODEL: the folder of a Llama, without a tokenizer, or `tiny`, a random one

Run it with the Python of an environment that has SGLang and this package. The engine, its scheduler, its workers and
its attention backend intel_amx are SGLang's. PyPI has no kernels of SGLang for processors: those are in
sglang_stand_in/sgl_kernel, in torch. Everything runs greedily, in float32. Each method is a process of its own. The
exit status is 1 if an output differs from that of plain decoding, or if REPRISE saves no passes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import tiny_llama

HERE = Path(__file__).resolve().parent
METHODS = {
    "plain": {},
    "NGRAM": {"speculative_algorithm": "NGRAM"},
    "REPRISE": {"speculative_algorithm": "REPRISE"},
    "REPRISE, chains": {"speculative_algorithm": "REPRISE", "speculative_ngram_max_bfs_breadth": 1},
    "REPRISE, no cache": {"speculative_algorithm": "REPRISE", "disable_radix_cache": True},
    "REPRISE, overlap": {"speculative_algorithm": "REPRISE"},  # as on a GPU; the stand-in makes SGLang do it
}
TOKENS = 96
GROUP = "sglang.srt.plugins"


def prompts(vocabulary: int) -> list[list[int]]:
    """Returns prompts that repeat themselves, and one that does not."""
    lines = [[3 + (7 * line + 5 * i) % (vocabulary - 3) for i in range(9 + line)] for line in range(5)]
    return [
        lines[0] * 6,
        lines[1] * 4 + lines[2] + lines[1] * 2,
        (lines[2] + lines[3]) * 3,
        lines[4] + lines[3] + lines[4] + lines[3][:4],
        [3 + (11 * i * i + i) % (vocabulary - 3) for i in range(40)],
        lines[0] + lines[1] + lines[2] + lines[0][:5],
    ]


def generate(model: str, options: dict[str, Any]) -> dict[str, Any]:
    """Returns the outputs and passes of each run."""
    import sglang

    engine = sglang.Engine(
        model_path=model, device="cpu", dtype="float32", skip_tokenizer_init=True, attention_backend="torch_native",
        max_running_requests=4, max_total_tokens=8192, mem_fraction_static=0.3, disable_cuda_graph=True,
        random_seed=1, log_level="warning", **options,
    )  # fmt: skip
    ids = prompts(json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))["vocab_size"])

    def run(inputs: list[list[int]], extra: list[dict[str, Any]] | None = None, **params: Any) -> list[Any]:
        each = [
            {"temperature": 0, "max_new_tokens": TOKENS - 3 * i, "ignore_eos": True, **params}
            | ({"custom_params": extra[i]} if extra else {})
            for i in range(len(inputs))
        ]
        made = engine.generate(input_ids=inputs, sampling_params=each)
        return [(one["output_ids"], one["meta_info"].get("spec_verify_ct", len(one["output_ids"]) - 1)) for one in made]

    runs = {"batch": run(ids), "alone": [run([each])[0] for each in ids], "again": run(ids)}
    plain = [output for output, _ in runs["alone"]]
    runs["off"] = run(ids[:2], [{"reprise_enabled": False}, {"reprise_max_draft": 2}])
    fresh = [ids[4][::-1], ids[4][3:] + ids[4][:3]]
    told = [output for output, _ in run(fresh, [{"reprise_enabled": False}] * 2)]
    runs["predicted"] = run(fresh, [{"reprise_prediction": each} for each in told])
    runs["wrong settings"] = run(fresh, [{"reprise_prediction": [-5, 10**9]}, {"reprise_max_draft": "many"}])
    runs["eos"] = run(ids, ignore_eos=False, stop_token_ids=[plain[0][9], plain[1][12]])
    time.sleep(1)  # the scheduler has to know that the last request has ended
    assert engine.flush_cache().success
    runs["flushed"] = run(ids)
    engine.shutdown()
    return runs


def prepare(folder: Path) -> list[str]:
    """Makes the stand-in a plug-in of SGLang, and reprise too if it is not installed.

    Sets the environment of processes with SGLang. Returns the paths of their modules.
    """
    plugins = {"sgl_kernel_stand_in": "sgl_kernel:register"}
    if not any(point.value.startswith("reprise_decoding.") for point in entry_points(group=GROUP)):
        plugins["reprise_decoding"] = "reprise_decoding.sglang:register"
    for name, value in plugins.items():
        info = folder / f"{name}-0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {value}\n", encoding="utf-8")
    os.environ.update(SGLANG_USE_CPU_ENGINE="1", HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1")
    return [str(folder), str(HERE / "sglang_stand_in")]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1] != "tiny":
            return compare(sys.argv[1], sys.argv[2:] or list(METHODS))
        tiny_llama.write(folder, 512)
        return compare(folder, sys.argv[2:] or list(METHODS))


def compare(model: str, methods: list[str]) -> int:
    """Runs the methods, prints their counts, and returns the exit status."""
    plain: dict[str, Any] = {}
    failed = 0
    for method in ["plain", *(method for method in methods if method != "plain")]:
        with tempfile.TemporaryDirectory() as folder:
            paths = [*prepare(Path(folder)), os.environ.get("PYTHONPATH", "")]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
            environment["STAND_IN_OVERLAP"] = str(int(method.endswith("overlap")))
            out = Path(folder) / "out.json"
            subprocess.run([sys.executable, __file__, model, method, out, "child"], env=environment, check=True)
            runs = json.loads(out.read_text(encoding="utf-8"))
        plain = plain or runs
        for run, outputs in runs.items():
            tokens, passes = sum(len(each) - 1 for each, _ in outputs), sum(passes for _, passes in outputs)
            expected = plain.get(run, [])
            differ = sum(one[0] != other[0] for one, other in zip(outputs, expected))
            slow = method.startswith("REPRISE") and run != "wrong settings" and passes >= tokens
            failed += differ + slow
            faults = [f"{differ} OUTPUTS DIFFER"] * (differ > 0) + ["NO PASSES SAVED"] * slow
            counts = f"{tokens:5} tokens {passes:5} passes {tokens / passes:5.2f} tokens a pass"
            print(f"{method:18} {run:15} {counts}", *faults, flush=True)
    print(f"{failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    if sys.argv[-1] == "child":
        made = generate(sys.argv[1], METHODS[sys.argv[2]])
        Path(sys.argv[3]).write_text(json.dumps(made), encoding="utf-8")
    else:
        sys.exit(main())
