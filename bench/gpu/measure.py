#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures drafters in a serving engine, with recorded text and without the weights of a model.

The model is scripted: it has the shape of a real one and random weights, runs every pass in full,
and then picks the tokens of a recording. Each way of decoding has an engine and a process of its
own. With several slots, different requests share each pass. Times are those of passes in which
every slot decodes.

    measure.py                           the bundled traces in the shape of Llama-3.1-8B, on a GPU
    measure.py --shape tiny --slots 1,4 --limit 1     tries everything on a CPU
    measure.py --report runs.json        prints the tables again

exit status: 0 done; 1 an output differs from its recording; 2 an argument, a file or an engine
failed
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import in_sglang
import in_vllm
from make_requests import BUNDLED, choose, write
from script import SHAPES, InputError, Script, read

ENGINES: dict[str, Any] = {"vllm": in_vllm, "sglang": in_sglang}
Row = dict[str, Any]  # the figures of a request
ENOUGH = 32  # counted tokens of a request that can be the worst one


# ---- Run -------------------------------------------------------------------------------------------------------------


def run(options: argparse.Namespace) -> dict[str, Any]:
    engine = ENGINES[options.engine]
    ways = dict(named(options.ways or engine.DEFAULT, engine.WAYS))
    result: dict[str, Any] = {"engine": options.engine, "shape": options.shape, "temperature": options.temperature}
    result.update(requests=str(options.requests or "bundled"), replayed=engine.REPLAYED, failed=[], runs=[])
    with tempfile.TemporaryDirectory() as folder:
        file = options.requests
        if file is None:
            file = Path(folder) / "requests.json"
            write(file, *choose(sorted(BUNDLED.glob("*.jsonl"))))
        warm, requests = read(file)
        Script(warm + requests)  # refuses requests that the model cannot tell apart
        if max(options.slots) > len(requests):
            raise InputError(f"--slots {max(options.slots)}: {file} has only {len(requests)} requests: give more, or fewer slots")
        for name, speculation in ways.items():
            task = {"speculation": speculation, "requests": str(file), "shape": options.shape, "slots": options.slots,
                    "limit": options.limit, "runner": options.runner, "temperature": options.temperature}  # fmt: skip
            try:
                for setup, slots, rows in child(Path(engine.__file__), name, task, options.json.with_suffix(f".{name}.log")):
                    result["runs"].append({"way": name, "slots": slots, "setup": setup, "requests": rows})
                    options.json.write_text(json.dumps(result) + "\n", encoding="utf-8")
            except InputError as error:  # the other ways are measured all the same
                print(f"measure.py: {error}", file=sys.stderr)
                result["failed"].append(name)
    return result


def named(given: list[str], ways: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields the names of ways, and their settings: those of the engine's table, or the JSON of NAME=JSON."""
    for each in given:
        name, equals, text = each.partition("=")
        if not equals and name not in ways:
            raise InputError(f"--ways: there is no way {name}; choose from {', '.join(ways)}, or give NAME=JSON")
        try:
            yield name, json.loads(text) if equals else ways[name]
        except ValueError as error:
            raise InputError(f"--ways: {name}: {error}") from error


def child(program: Path, name: str, task: dict[str, Any], log: Path) -> Iterator[tuple[Any, int, list[Row]]]:
    """Runs a way in a process of its own. Yields its setup, and the slots and figures of each part."""
    progress(f"{name}: the engine starts")
    setup: dict[str, Any] = {}
    missing = len(task["slots"])
    command = [sys.executable, str(program), json.dumps(task)]
    with (
        log.open("w", encoding="utf-8") as out,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=out, text=True) as process,
    ):
        try:
            for line in process.stdout or ():
                message = json.loads(line[2:]) if line.startswith("@@") else {}
                if "requests" in message:
                    missing -= 1
                    yield setup, message["slots"], message["requests"]
                elif "done" in message:
                    progress(f"{name}: slots {message['slots']}, {message['done']} of {message['of']} requests")
                elif "setup" in message:
                    setup = message["setup"]
                else:
                    out.write(line)
        except BaseException:  # an interrupt
            process.kill()
            raise
        finally:
            progress("")
    if process.returncode or missing:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["it printed nothing"]
        raise InputError(f"{name}: the engine ended with status {process.returncode}: {lines[-1]}; see {log}")


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


# ---- Report ----------------------------------------------------------------------------------------------------------


def total(rows: list[Row], name: str) -> float:
    return sum(float(row[name]) for row in rows)


def speed(rows: list[Row]) -> float:
    """Returns the tokens per second of a slot."""
    return total(rows, "tokens") / (total(rows, "seconds") or math.inf)


def per_pass(rows: list[Row]) -> float:
    return total(rows, "tokens") / max(1, total(rows, "passes"))


def by_category(rows: list[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row["category"]):
        groups.setdefault(row["category"], []).append(row)
    return groups


def gains(rows: list[Row], plain: list[Row]) -> tuple[dict[str, float], float, float]:
    """Returns the speed over plain decoding of each category, its geometric mean, and that of the worst request."""
    base = by_category(plain)
    ratios = {name: speed(mine) / (speed(base[name]) or math.inf) for name, mine in by_category(rows).items()}
    same = {row["number"]: row for row in plain}
    each = [speed([row]) / speed([same[row["number"]]]) for row in rows
            if min(row["tokens"], same[row["number"]]["tokens"]) >= ENOUGH]  # fmt: skip
    known = [ratio for ratio in ratios.values() if ratio > 0]
    return ratios, statistics.geometric_mean(known) if known else math.nan, min(each, default=math.nan)


def predictions(file: Path | None) -> dict[str, dict[str, float]]:
    """Returns tokens a pass by strategy and category, from the JSON of reprise-replay."""
    if file is None:
        return {}
    found: dict[str, dict[str, float]] = {}
    try:
        for result in json.loads(file.read_text(encoding="utf-8"))["results"]:
            found.setdefault(result["strategy"], {})[result["category"]] = result["mat"]
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file}: {error!r}; write it with reprise-replay --by-category --format json") from error
    return found


def report(result: dict[str, Any], predicted: dict[str, dict[str, float]]) -> int:
    """Prints the tables. Returns the number of outputs that differ."""
    runs = result["runs"]
    wrong = 0
    for slots in sorted({one["slots"] for one in runs}):
        ones = {one["way"]: one for one in runs if one["slots"] == slots}
        plain = ones["plain"]["requests"] if "plain" in ones else None
        names = list(by_category(next(iter(ones.values()))["requests"]))
        unit = "tokens/s of a slot over plain" if plain else "tokens/s of a slot"
        print(f"\n{slots} slot{'s' * (slots > 1)}, {result['engine']}, shape {result['shape']}: {unit}")
        head = ["way", *names, "geometric mean", "worst request", "ms a pass", "runner", "outputs that differ"]
        print(*table_line(head), sep="\n")
        for way, one in ones.items():
            rows = one["requests"]
            differ = sum(row["differs"] for row in rows)
            wrong += differ
            groups = by_category(rows)
            cells = [f"{speed(groups[name]):.1f}" for name in names] + ["", ""]
            if plain and way != "plain":
                ratios, mean, worst = gains(rows, plain)
                cells = [f"{ratios[name]:.2f}" for name in names] + [f"{mean:.2f}", f"{worst:.2f}"]
            elif plain:
                cells[-2] = f"{speed(rows):.1f} tokens/s"
            time = f"{total(rows, 'seconds') / max(1, total(rows, 'passes')) * 1e3:.2f}"
            print(line_of([way, *cells, time, str(one["setup"].get("runner", "")), f"{differ} of {len(rows)}"]))
        print(f"\n{slots} slot{'s' * (slots > 1)}: tokens a pass" + ", predicted in brackets" * bool(predicted))
        print(*table_line(["way", *names]), sep="\n")
        for way, one in ones.items():
            known = predicted.get(result.get("replayed", {}).get(way, ""), {})
            groups = by_category(one["requests"])
            print(line_of([way, *(f"{per_pass(groups[name]):.2f}"
                                  + (f" ({known[name]:.2f})" if name in known else "") for name in names)]))  # fmt: skip
    return wrong


def line_of(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def table_line(cells: list[str]) -> list[str]:
    return [line_of(cells), "|" + "---|" * len(cells)]


# ---- Arguments -------------------------------------------------------------------------------------------------------


def counts(text: str) -> list[int]:
    try:
        found = sorted({int(part) for part in text.split(",")})
    except ValueError:
        found = [0]
    if found[0] < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected whole numbers from 1, as in 1,8,32")
    return found


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    head, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--engine", choices=ENGINES, default="vllm", help="default: vllm")
    add("--shape", choices=SHAPES, default="8b", help="8b: Llama-3.1-8B; tiny: for a CPU (default: 8b)")
    add("--ways", nargs="+", metavar="WAY",
        help="names of the engine's table, or NAME=JSON with settings (default: "
        + "; ".join(f"{name}: {' '.join(engine.DEFAULT)}" for name, engine in ENGINES.items()) + ")")  # fmt: skip
    add("--slots", type=counts, default=[1, 8, 32], metavar="LIST", help="default: 1,8,32")
    add("--requests", type=Path, metavar="FILE", help="of make_requests.py (default: the bundled traces)")
    add("--limit", type=int, default=6, metavar="N",
        help="requests of each category; more if there are not four for each slot (default: 6)")  # fmt: skip
    add("--temperature", type=float, default=0.0, metavar="T", help="above 0: seeded sampling (default: 0)")
    add("--runner", type=int, choices=(1, 2), default=0, help="model runner of vLLM (default: its own choice)")
    add("--prediction", type=Path, metavar="FILE", help="of reprise-replay --by-category --format json")
    add("--json", type=Path, default=Path("runs.json"), metavar="FILE",
        help="the results; FILE.WAY.log: messages of an engine (default: runs.json)")  # fmt: skip
    add("--report", type=Path, metavar="FILE", help="measures nothing: prints the tables of these results")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    try:
        predicted = predictions(options.prediction)
        result = json.loads(options.report.read_text(encoding="utf-8")) if options.report else run(options)
        wrong = report(result, predicted)
        return 2 if result.get("failed") else int(wrong > 0)
    except (InputError, OSError, ValueError, KeyError) as error:
        print(f"measure.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
