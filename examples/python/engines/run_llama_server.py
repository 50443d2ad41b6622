# SPDX-License-Identifier: Apache-2.0
"""llama-server with the type reprise, for day.py: one server that is kept, and one for each new object."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from engine import Engine, Output

sys.path.append(str(Path(__file__).resolve().parents[3] / "bench/server_http"))
from server_http import LIKELIEST, Server  # noqa: E402


class LlamaServer(Engine):
    name = "llama-server"

    def __init__(self, model: str, program: str) -> None:
        asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        self.version = (asked.stdout + asked.stderr).split("version:")[-1].split(" (")[0].strip()
        self._options = argparse.Namespace(server=Path(program), model=model, threads=1)
        self._folder = tempfile.TemporaryDirectory()
        self._servers = {"reprise": self._start("reprise")}
        self.eos = self.encode("<|im_end|>")[0]

    def _start(self, way: str) -> Server:
        return Server(self._options, ["--spec-type", "reprise"], 1, Path(self._folder.name, f"{way}.log")).__enter__()

    def __del__(self) -> None:
        for server in getattr(self, "_servers", {}).values():
            server.__exit__()

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._servers["reprise"].post("/tokenize", {"content": text, "parse_special": True})["tokens"]
        return ids

    def prepare(self, ids: list[int]) -> None:
        for server in self._servers.values():
            server.complete(ids, 0)

    def decode(self, way: str, ids: list[int], count: int, **sampling: Any) -> Output:
        server = self._servers[way]
        begun = _seconds(server)
        reply = server.complete(ids, count)
        # The reply has the number of passes, and not how many rows each of them had.
        return Output(reply["tokens"], [0] * reply["timings"]["predicted_passes"], _seconds(server) - begun)

    def renew(self) -> None:
        if "fresh" in self._servers:
            self._servers.pop("fresh").__exit__()
        self._servers["fresh"] = self._start("fresh")

    def logits_at(self, ids: list[int], plain: list[int], at: int) -> Any:
        """Returns log probabilities, which are as far apart as the logits."""
        more = {"n_probs": LIKELIEST, "speculative.n_max": 0}
        [entry] = self._servers["reprise"].complete(ids + plain[:at], 1, **more)["completion_probabilities"]
        logits = np.full(1 << 20, -np.inf, np.float32)
        for each in entry["top_logprobs"]:
            logits[each["id"]] = each["logprob"]
        return logits


def _seconds(server: Server) -> float:
    """Returns the processor time of all threads of a server."""
    tasks = Path(f"/proc/{server.process.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9


def make(model: str, options: dict[str, Any]) -> Engine:
    return LlamaServer(os.path.abspath(model), options["server"])
