# SPDX-License-Identifier: Apache-2.0
"""llama-server with the type reprise, for day.py: one server that is kept, and one for each new object."""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
from engine import Engine, Output


class LlamaServer(Engine):
    name = "llama-server"

    def __init__(self, model: str, program: str) -> None:
        self._command = [program, "-m", model, "-np", "1", "-c", "2048", "-t", "1", "-tb", "1", "--no-webui"]
        asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        self.version = (asked.stdout + asked.stderr).split("version:")[-1].split(" (")[0].strip()
        self._servers = {"reprise": _Server(self._command)}
        self.eos = self._servers["reprise"].ask("tokenize", {"content": "<|im_end|>", "parse_special": True})["tokens"][0]

    def encode(self, text: str) -> list[int]:
        body = {"content": text, "parse_special": True}
        ids: list[int] = self._servers["reprise"].ask("tokenize", body)["tokens"]
        return ids

    def prepare(self, ids: list[int]) -> None:
        for server in self._servers.values():
            server.complete(ids, 0)

    def decode(self, way: str, ids: list[int], count: int, **sampling: Any) -> Output:
        server = self._servers[way]
        begun = server.seconds()
        reply = server.complete(ids, count)
        # The reply has the number of passes, and not how many rows each of them had.
        return Output(reply["tokens"], [0] * reply["timings"]["predicted_passes"], server.seconds() - begun)

    def renew(self) -> None:
        if "fresh" in self._servers:
            self._servers.pop("fresh").end()
        self._servers["fresh"] = _Server(self._command)

    def logits_at(self, ids: list[int], plain: list[int], at: int) -> Any:
        """Returns log probabilities, which are as far apart as the logits."""
        body = {"n_probs": 50, "speculative.n_max": 0}
        [entry] = self._servers["reprise"].complete(ids + plain[:at], 1, **body)["completion_probabilities"]
        logits = np.full(1 << 20, -np.inf, np.float32)
        for each in entry["top_logprobs"]:
            logits[each["id"]] = each["logprob"]
        return logits


class _Server:
    """A process that serves on a free port of this machine."""

    def __init__(self, command: list[str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._address = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            [*command, "--port", str(port), "--spec-type", "reprise"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        atexit.register(self.end)
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{self._address}/health", timeout=5).close()
                return
            except OSError:
                time.sleep(0.1)
            if self._process.poll() is not None:
                break
        raise RuntimeError(f"the server did not start: {' '.join(command)} --spec-type reprise")

    def ask(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(f"{self._address}/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=600) as reply:
            return json.load(reply)

    def complete(self, ids: list[int], count: int, **more: Any) -> Any:
        """Decodes greedily."""
        body = {"prompt": ids, "n_predict": count, "return_tokens": True, "temperature": 0, "top_k": 1, **more}
        return self.ask("completion", body)

    def seconds(self) -> float:
        """Returns the processor time of all threads."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()
        atexit.unregister(self.end)


def make(model: str, options: dict[str, Any]) -> Engine:
    return LlamaServer(os.path.abspath(model), options["server"])
