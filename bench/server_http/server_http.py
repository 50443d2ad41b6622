#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures llama-server over HTTP: plain decoding, the server's own drafters, and reprise.

    server_http.py record --server S --model M --out REQUESTS.jsonl   writes the requests, with the answers of plain decoding
    server_http.py run --server S --model M --requests REQUESTS.jsonl --json RUNS.json
    server_http.py report RUNS.json                                   prints the table again
    server_http.py ties RUNS.json --server S --model M --requests REQUESTS.jsonl   shows where other texts begin

Each run starts the server anew and sends all requests. The types take turns, so a machine that becomes slower affects
all of them. As many clients send requests as the server has slots; a client sends the turns of a conversation in order.

The requests are a file of traces (docs/formats.md), so `reprise-replay REQUESTS.jsonl` predicts what drafts can gain.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import math
import os
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
TYPES = ["plain", "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache", "reprise"]
CONTEXT = 4096  # tokens of a slot
LIKELIEST = 20  # tokens whose probability is asked for
# Student's t for two-sided intervals of 95%, for 1 to 10 degrees of freedom.
STUDENT = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23]


class InputError(Exception):
    """What was wrong, where, and what to do."""


# ---- Requests --------------------------------------------------------------------------------------------------------


def conversations(prompts: Path, skip: int, every: int, categories: list[str] | None = None) -> list[dict[str, Any]]:
    """Every `every`-th session of each category, after the first `skip`, and variants of some.

    A variant is what a second client sends: the same conversation with its last question changed after the others were
    answered (edited), or the same first message with a later question at its end (alike).
    """
    chosen: list[dict[str, Any]] = []
    files = [prompts / f"{name}.jsonl" for name in categories] if categories else sorted(prompts.glob("*.jsonl"))
    for file in files:
        if not file.is_file():
            raise InputError(f"{file} is missing: give names of files in {prompts} with --categories, without .jsonl")
        sessions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for session in sessions[skip::every]:
            chosen.append(session)
            turns = session["turns"]
            if len(turns) > 2:
                chosen.append({**session, "id": session["id"] + "+edited", "turns": [*turns[:-2], turns[-1]]})
            elif len(turns) == 2:
                chosen.append({**session, "id": session["id"] + "+alike", "turns": ["\n\n".join(turns)]})
    if not chosen:
        raise InputError(f"{prompts} has no sessions in files *.jsonl: give the folder of prompts with --prompts")
    return chosen


def loop_at(output: list[int], context: list[int], window: int = 48, times: int = 3) -> int | None:
    """The number of tokens that stay of an output that repeats itself: the exact rule of bench/llama/loops.hpp."""
    before = collections.Counter(tuple(context[i : i + window]) for i in range(len(context) - window + 1))
    ends: dict[tuple[int, ...], list[int]] = {}
    for end in range(window, len(output) + 1):
        block = tuple(output[end - window : end])
        places = ends.setdefault(block, [])
        places.append(end)
        if len(places) < before[block] + times:
            continue
        first = max(before[block], 1)
        period, keep = places[first] - places[first - 1], places[first]
        while keep > period and output[keep - 1] == output[keep - 1 - period]:
            keep -= 1
        return keep
    return None


# ---- The server ------------------------------------------------------------------------------------------------------


class Server:
    """A llama-server of this machine, until the end of a `with` block."""

    def __init__(self, options: argparse.Namespace, flags: list[str], slots: int, log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        threads = str(options.threads)
        program = options.server.resolve() if options.server.exists() else options.server
        command = [str(program), "-m", str(options.model), "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--threads", threads, "--threads-batch", threads, "-np", str(slots), "-c", str(CONTEXT * slots)]
        # One cache for all slots, as without -np; later flags win.
        command += ["--kv-unified"] if slots > 1 else []
        self.log = log
        with log.open("w") as out:
            try:
                self.process = subprocess.Popen([*command, "--no-webui", *flags], stdout=out, stderr=out)
            except OSError as error:
                raise InputError(f"{options.server} cannot be started: {error.strerror}") from error

    def __enter__(self) -> Server:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2).close()
                return self
            except OSError:
                time.sleep(0.2)
            if self.process.poll() is not None:
                break
        self.process.kill()
        raise InputError(f"the server did not start; its messages are in {self.log}")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def post(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=900) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            raise InputError(f"{path}: the server answered {error.code}: {error.read().decode()[:300]}") from error

    def complete(self, prompt: list[int], tokens: int, **more: Any) -> dict[str, Any]:
        """Greedy decoding of at most `tokens` tokens."""
        body = {"prompt": prompt, "n_predict": tokens, "return_tokens": True, "cache_prompt": True, **more}
        reply: dict[str, Any] = self.post("/completion", {**body, "temperature": 0, "top_k": 1, "seed": 1})
        return reply


# ---- Record ----------------------------------------------------------------------------------------------------------


def record(options: argparse.Namespace) -> None:
    sessions = conversations(options.prompts, options.skip, options.every, options.categories)
    cut = written = 0
    with Server(options, [], 1, options.out.with_suffix(".log")) as server, options.out.open("w") as out:
        for number, session in enumerate(sessions, 1):
            messages = [{"role": "system", "content": session["system"]}] if "system" in session else []
            context: list[int] = []
            turns = []
            for text in session["turns"]:
                messages.append({"role": "user", "content": text})
                shown = server.post("/apply-template", {"messages": messages})["prompt"]
                ids = server.post("/tokenize", {"content": shown, "add_special": not context, "parse_special": True})
                # A cut answer is not what the template prints, so the prompt of a later turn is what follows it.
                prompt = ids["tokens"] if not context else after_answer(server, messages, shown)
                if len(context) + len(prompt) + options.tokens > CONTEXT:
                    break
                answer = server.complete(context + prompt, options.tokens)
                # The token that ends an answer is the first of what follows it.
                output = answer["tokens"][:-1] if answer["stop_type"] == "eos" else answer["tokens"]
                keep = loop_at(output, context + prompt)
                cut += keep is not None
                output = output[:keep]
                if not output:
                    break
                turns.append({"prompt": prompt, "output": output})
                context += prompt + output
                messages.append({"role": "assistant", "content": server.post("/detokenize", {"tokens": output})["content"]})
            if turns:
                name = {"id": session["id"], "category": session["category"], "turns": turns}
                out.write(json.dumps(name, separators=(",", ":")) + "\n")
                written += 1
            progress(f"{number} of {len(sessions)} sessions, {cut} answers cut at a loop")
    progress("")
    print(f"{options.out}: {written} sessions, {cut} answers cut at a loop")


def after_answer(server: Server, messages: list[dict[str, str]], shown: str) -> list[int]:
    """The ids that follow the last answer: the end of the turn, the new message, and the start of the next answer."""
    answered = server.post("/apply-template", {"messages": messages[:-1], "add_generation_prompt": False})["prompt"]
    answer = messages[-2]["content"].strip()
    if not shown.startswith(answered) or answer not in answered:
        raise InputError("the chat template changes earlier messages: use a model whose template keeps them")
    text = shown[answered.rindex(answer) + len(answer) :]
    ids: list[int] = server.post("/tokenize", {"content": text, "add_special": False, "parse_special": True})["tokens"]
    return ids


# ---- Run -------------------------------------------------------------------------------------------------------------


def read_requests(file: Path) -> list[list[dict[str, Any]]]:
    """For each session, its requests in order, without those whose prompt an earlier request has."""
    sessions = []
    sent: set[tuple[int, ...]] = set()
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            session = json.loads(line)
            context: list[int] = []
            requests = []
            for turn, part in enumerate(session["turns"], 1):
                context = context + part["prompt"]
                if tuple(context) not in sent:
                    requests.append({"id": f"{session['id']}#{turn}", "prompt": context, "tokens": len(part["output"])})
                sent.add(tuple(context))
                context = context + part["output"]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{file}:{number}: {error!r}; write the file with `server_http.py record`") from error
        if requests:
            sessions.append(requests)
    if not sessions:
        raise InputError(f"{file} is empty: write it with `server_http.py record`")
    return sessions


def read_runs(file: Path) -> dict[str, Any]:
    """Results that `run` has written."""
    try:
        result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        for name in ("runs", "model", "requests", "load"):
            result[name]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file}: {error!r}; write the file with `server_http.py run`") from error
    return result


def measure(server: Server, sessions: list[list[dict[str, Any]]], clients: int) -> dict[str, Any]:
    """Sends all requests, and returns what was measured."""
    left = collections.deque(enumerate(sessions))
    answers: dict[tuple[int, int], dict[str, Any]] = {}
    failures: list[BaseException] = []

    def client() -> None:
        while not failures:
            try:
                number, requests = left.popleft()
            except IndexError:
                return
            try:
                for turn, request in enumerate(requests):
                    reply = server.complete(request["prompt"], request["tokens"])
                    timings = reply["timings"]
                    answers[number, turn] = {
                        "id": request["id"],
                        "tokens": reply["tokens"],
                        "ms": timings["predicted_ms"],
                        "prompt_ms": timings["prompt_ms"],
                        "drafted": timings.get("draft_n", 0),
                        "accepted": timings.get("draft_n_accepted", 0),
                    }
            except BaseException as error:  # noqa: BLE001: the main thread raises it
                failures.append(error)

    begin = time.monotonic()
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return {"seconds": time.monotonic() - begin, "answers": [answers[key] for key in sorted(answers)]}


def named_flags(types: list[str]) -> Iterator[tuple[str, list[str]]]:
    for text in types:
        name, given, flags = text.partition("=")
        own = [] if name == "plain" else ["--spec-type", name]
        yield name, shlex.split(flags) if given else own


@contextlib.contextmanager
def copied_history(history: Path | None) -> Iterator[str]:
    """The name of a copy, because the server writes its history when it ends."""
    with tempfile.TemporaryDirectory() as folder:
        if history is not None:
            for file in [history, *history.parent.glob(history.name + ".*")]:
                shutil.copy2(file, folder)
        yield str(Path(folder) / (history.name if history else "history"))


def run(options: argparse.Namespace) -> None:
    sessions = read_requests(options.requests)
    kinds = list(named_flags(options.types))
    if len({name for name, _ in kinds}) < len(kinds):
        raise InputError("two types have the same name: give names as in --types plain 'other=--spec-type ngram-mod'")
    if options.history is not None:
        kinds.append(("reprise, next day", ["--spec-type", "reprise", "--spec-reprise-history", "HISTORY"]))
    if options.compare not in [None, *(name for name, _ in kinds)]:
        raise InputError(f"--compare {options.compare}: no such type is measured: give one of --types")
    setup = {"model": options.model.name, "requests": options.requests.name, "threads": options.threads, "load": options.load}
    result: dict[str, Any] = {**setup, "runs": []}
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.load)]
    steps = options.runs * len(kinds) * len(options.slots)
    try:
        for number in range(options.runs):
            for slots in options.slots:
                for name, flags in kinds if number % 2 == 0 else reversed(kinds):
                    progress(f"run {len(result['runs']) + 1} of {steps}: {name}, {slots} slots")
                    log = options.json.with_suffix(".log")
                    with copied_history(options.history) as history:
                        with Server(options, [flag.replace("HISTORY", history) for flag in flags], slots, log) as server:
                            measured = measure(server, sessions, slots)
                    result["runs"].append({"type": name, "flags": flags, "slots": slots, "round": number, "load": os.getloadavg()[0], **measured})
                    options.json.write_text(json.dumps(result))
    finally:
        for process in busy:
            process.kill()
    progress("")
    report(result, options.compare)


# ---- Report ----------------------------------------------------------------------------------------------------------


def tokens_of(one: dict[str, Any]) -> int:
    return sum(len(answer["tokens"]) for answer in one["answers"])


def category_of(answer: dict[str, Any]) -> str:
    """The category of a request: the part of its id before the slash."""
    return str(answer["id"]).partition("/")[0]


def passes_of(one: dict[str, Any]) -> int:
    return tokens_of(one) - sum(answer["accepted"] for answer in one["answers"])


def speed(one: dict[str, Any]) -> float:
    """Tokens a second: while decoding, with one slot; of the whole run, prompts included, with several."""
    if one["slots"] > 1:
        return tokens_of(one) / one["seconds"]
    return 1000 * tokens_of(one) / sum(answer["ms"] for answer in one["answers"])


def bounds(ratios: list[float]) -> list[str]:
    """The geometric mean of ratios, and the bounds of its interval of 95%, which are empty for less than three ratios."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    if len(logs) < 3:
        return [f"{math.exp(mean):.3f}", "", ""]
    half = STUDENT[min(len(logs) - 1, len(STUDENT)) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    return [f"{math.exp(at):.3f}" for at in (mean, mean - half, mean + half)]


def interval(ratios: list[float]) -> str:
    mean, low, high = bounds(ratios)
    return f"{mean} ({low} to {high})" if low else mean


def is_own(one: dict[str, Any]) -> bool:
    """A type of the server itself."""
    return "--spec-type" in one["flags"] and not any("reprise" in flag.split(",") for flag in one["flags"])


def compare(runs: list[dict[str, Any]], name: str) -> None:
    """Prints the speed of one type over that of each other one, with one slot, for each category."""
    runs = [one for one in runs if one["slots"] == 1]
    by_type: dict[str, dict[int, dict[str, Any]]] = {}
    for one in runs:
        by_type.setdefault(one["type"], {})[one["round"]] = one
    if name not in by_type:
        raise InputError(f"--compare {name}: no run with one slot has this type: give one of {', '.join(by_type)}")
    others = [other for other in by_type if other != name]

    def part(one: dict[str, Any], category: str) -> dict[str, Any]:
        return {**one, "answers": [answer for answer in one["answers"] if category in ("all", category_of(answer))]}

    print(f"\n{name} over the other types, one slot, by category")
    print("| text | tokens | " + " | ".join(f"over {other} | from | to" for other in others) + " |")
    print("|---" * (2 + 3 * len(others)) + "|")
    categories = sorted({category_of(answer) for answer in runs[0]["answers"]})
    for category in [*categories, "all"]:
        own = {r: speed(part(one, category)) for r, one in by_type[name].items()}
        cells = [category, str(tokens_of(part(runs[0], category)))]
        for other in others:
            ratios = [own[r] / speed(part(one, category)) for r, one in by_type[other].items() if r in own]
            cells += bounds(ratios)
        print("| " + " | ".join(cells) + " |")


def report(result: dict[str, Any], compared: str | None = None) -> None:
    runs = result["runs"]
    for slots in sorted({one["slots"] for one in runs}):
        by_type: dict[str, list[dict[str, Any]]] = {}
        for one in runs:
            if one["slots"] == slots:
                by_type.setdefault(one["type"], []).append(one)
        speeds = {name: {one["round"]: speed(one) for one in ones} for name, ones in by_type.items()}

        def ratio(name: str, other: str, speeds: dict[str, dict[int, float]] = speeds) -> list[float]:
            return [value / speeds[other][r] for r, value in speeds[name].items() if r in speeds[other]]

        own = [name for name, ones in by_type.items() if is_own(ones[0])]
        best = max(own, key=lambda name: statistics.median(speeds[name].values()), default="")
        plain = by_type.get("plain", [])
        texts = {answer["id"]: answer["tokens"] for answer in plain[0]["answers"]} if plain else {}
        print(f"\n{slots} slot{'s' * (slots > 1)}, {result['model']}, {result['load']} busy programs beside it")
        print("| type | runs | tokens/s | least | most | passes | drafted | accepted | prompts, s | over plain | over the best own | other texts |")
        print("|---|---|---|---|---|---|---|---|---|---|---|---|")
        for name, ones in by_type.items():
            values = sorted(speeds[name].values())
            middle = sorted(ones, key=speed)[len(ones) // 2]
            changed = {a["id"] for one in ones for a in one["answers"] if texts and a["tokens"] != texts.get(a["id"])}
            cells = [
                f"{name}, the best own" if name == best else name,
                str(len(ones)),
                f"{statistics.median(values):.1f}",
                f"{values[0]:.1f}",
                f"{values[-1]:.1f}",
                str(passes_of(middle)),
                str(sum(answer["drafted"] for answer in middle["answers"])),
                str(sum(answer["accepted"] for answer in middle["answers"])),
                f"{sum(answer['prompt_ms'] for answer in middle['answers']) / 1000:.1f}",
                interval(ratio(name, "plain")) if plain else "",
                interval(ratio(name, best)) if best else "",
                str(len(changed)),
            ]
            print("| " + " | ".join(cells) + " |")
    if compared is not None:
        compare(runs, compared)
    print("\nRatios: geometric mean over rounds, with its interval of 95%.")


# ---- Near ties -------------------------------------------------------------------------------------------------------


def differences(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Each other text once: where it leaves that of the first plain run, and how both go on there."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for slots in sorted({one["slots"] for one in result["runs"]}):
        runs = [one for one in result["runs"] if one["slots"] == slots]
        plain = next((one for one in runs if one["type"] == "plain"), None)
        if plain is None:
            raise InputError(f"there is no plain run with {slots} slots: measure the type plain, too")
        texts = {answer["id"]: answer["tokens"] for answer in plain["answers"]}
        for one in runs:
            for answer in one["answers"]:
                text, other = texts[answer["id"]], answer["tokens"]
                at = next((i for i, pair in enumerate(zip(text, other)) if pair[0] != pair[1]), None)
                if at is None:
                    if len(text) != len(other):
                        raise InputError(f"{answer['id']}: two texts end at different tokens: such runs cannot be compared")
                    continue
                key = (slots, one["type"], answer["id"], at, other[at])
                found[key] = {"slots": slots, "type": one["type"], "id": answer["id"], "at": at,
                              "before": text[:at], "plain": text[at], "other": other[at]}
    return list(found.values())


def margin(reply: dict[str, Any], one: dict[str, Any]) -> float | None:
    """By how much the other token is less likely than that of plain decoding: a difference of log-probabilities. None:
    one of them is not among the likeliest tokens."""
    likeliest = {top["id"]: top["logprob"] for top in reply["completion_probabilities"][0]["top_logprobs"]}
    if one["plain"] not in likeliest or one["other"] not in likeliest:
        return None
    return float(likeliest[one["plain"]] - likeliest[one["other"]])


def verdict(row_by_row: float | None, at_once: float | None, epsilon: float) -> str:
    if row_by_row is None or at_once is None:
        return "no near tie"
    low, high = sorted((row_by_row, at_once))
    if low <= epsilon and high >= -epsilon:
        return "near tie"
    return "plain decoding gives the other" if high < 0 else "no near tie"


def ties(options: argparse.Namespace) -> int:
    """Shows whether other texts begin at near ties of plain decoding. Returns 4 if one does not."""
    result = read_runs(options.runs)
    for name, given in (("model", options.model.name), ("requests", options.requests.name)):
        if result[name] != given:
            raise InputError(f"{options.runs} was measured with the {name} {result[name]}, not with {given}")
    found = differences(result)
    prompts = {request["id"]: request["prompt"] for turns in read_requests(options.requests) for request in turns}
    for one in found:
        if one["id"] not in prompts:
            raise InputError(f"{options.requests} has no request {one['id']}: give the requests of {options.runs}")
    wrong = 0
    with Server(options, [], 1, options.runs.with_suffix(".ties.log")) as server:
        print("| slots | type | request | token | plain | other | less likely by, row by row | less likely by, at once | |")
        print("|---|---|---|---|---|---|---|---|---|")
        for number, one in enumerate(found, 1):
            progress(f"text {number} of {len(found)}")
            prompt = prompts[one["id"]]
            text = prompt + one["before"]
            at_once = margin(server.complete(text, 1, n_probs=LIKELIEST, cache_prompt=False), one)
            # The prompt at once, and then a row with each request.
            for known in range(len(prompt), len(text) + 1):
                row = server.complete(text[:known], 1, n_probs=LIKELIEST, cache_prompt=known > len(prompt))
            row_by_row = margin(row, one)
            said = verdict(row_by_row, at_once, options.epsilon)
            wrong += said == "no near tie"
            shown = ["unlikely" if value is None else f"{value:.4f}" for value in (row_by_row, at_once)]
            print(f"| {one['slots']} | {one['type']} | {one['id']} | {one['at'] + 1} | {one['plain']} | {one['other']} "
                  f"| {shown[0]} | {shown[1]} | {said} |")
    progress("")
    print("\nLog-probabilities of plain decoding, where the other text begins; all rows one after another, or in one pass.")
    print(f"Near tie: one of the two values is within {options.epsilon} of zero, or one is negative and the other is not.")
    return 4 if wrong else 0


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


# ---- Options ---------------------------------------------------------------------------------------------------------


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)

    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--server", type=Path, required=True, help="the program llama-server")
    common.add_argument("--model", type=Path, required=True, help="a GGUF file")
    common.add_argument("--threads", type=int, default=1, help="threads of the server (default: 1)")

    recording = commands.add_parser("record", parents=[common], help="write the requests")
    recording.add_argument("--out", type=Path, required=True, help="the file to write")
    recording.add_argument("--prompts", type=Path, default=ROOT / "bench/prompts", help="folder of prompts (bench/prompts)")
    recording.add_argument("--categories", nargs="+", metavar="NAME", help="files of prompts, without .jsonl (default: all)")
    recording.add_argument("--every", type=int, default=10, help="take each n-th session of a category (default: 10)")
    recording.add_argument("--skip", type=int, default=0, help="sessions of a category to leave out first (default: 0)")
    recording.add_argument("--tokens", type=int, default=200, help="tokens of an answer at most (default: 200)")

    running = commands.add_parser("run", parents=[common], help="send the requests to each type in turn")
    running.add_argument("--requests", type=Path, required=True, help="a file that `record` has written")
    running.add_argument("--json", type=Path, required=True, help="the file of results to write")
    running.add_argument("--types", nargs="+", default=TYPES, metavar="TYPE", help="values of --spec-type, plain, or NAME=FLAGS")
    running.add_argument("--slots", type=int, nargs="+", default=[1, 4], help="slots of the server (default: 1 4)")
    running.add_argument("--runs", type=int, default=5, help="runs of each type (default: 5)")
    running.add_argument("--history", type=Path, help="also measure reprise with a copy of this --spec-reprise-history")
    running.add_argument("--compare", metavar="NAME", help="print the speed of this type over the others, by category")
    running.add_argument("--load", type=int, default=0, help="busy programs that run at the same time (default: 0)")

    tying = commands.add_parser("ties", parents=[common], help="show whether other texts begin at near ties; ends with 4 if one does not")
    tying.add_argument("runs", type=Path, metavar="RUNS.json", help="a file of results that `run` has written")
    tying.add_argument("--requests", type=Path, required=True, help="the requests of these results")
    tying.add_argument("--epsilon", type=float, default=0.05, help="log-probabilities this close are a near tie (default: 0.05)")

    reporting = commands.add_parser("report", help="print the table of a file of results")
    reporting.add_argument("--compare", metavar="NAME", help="as in run")
    reporting.add_argument("files", type=Path, nargs="+", metavar="RUNS.json")
    return parser.parse_args(arguments)


def main() -> int:
    options = parsed()
    try:
        if options.command == "record":
            record(options)
        elif options.command == "run":
            run(options)
        elif options.command == "ties":
            return ties(options)
        else:
            for file in options.files:
                report(read_runs(file), options.compare)
    except (InputError, OSError) as error:
        print(f"server_http.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
