#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the common corpus of a fleet from the snapshots of its servers, on a Ray cluster, and publishes it."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import published  # noqa: E402
import shards  # noqa: E402
from shards import FleetError, Job, Part  # noqa: E402

Submit = Callable[..., Any]  # submit(function, *arguments) returns the result, or a promise of it
Collect = Callable[[Any], Part]  # the result of a promise


def build_tree(job: Job, cut: Sequence[Sequence[shards.Snapshot]], width: int, submit: Submit) -> Any:
    """Submits a task for each shard, then merges of up to `width` neighbours until one part is left."""
    parts = [submit(shards.build_shard, job, shard) for shard in cut]
    while len(parts) > 1:
        groups = [parts[first : first + width] for first in range(0, len(parts), width)]
        parts = [submit(shards.merge_parts, job, *group) if len(group) > 1 else group[0] for group in groups]
    return parts[0]


@contextlib.contextmanager
def in_this_process() -> Iterator[tuple[Submit, Collect]]:
    yield lambda function, *arguments: function(*arguments), lambda part: part


def check_address(address: str | None) -> None:
    """Refuses an address HOST:PORT that does not answer. Ray alone would try for minutes."""
    host, colon, port = (address or "").rpartition(":")
    if not colon or "/" in host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except OSError as error:
        sentence = f"--address {address}: no cluster answers: {error}; check the address, or start Ray there"
        raise FleetError(sentence, 1) from None


@contextlib.contextmanager
def on_cluster(address: str | None, retries: int) -> Iterator[tuple[Submit, Collect]]:
    """Runs steps as Ray tasks. A task whose worker or machine dies is run again elsewhere, up to `retries` times."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise FleetError("Ray is not installed; install it, or use --local") from None
    check_address(address or os.environ.get("RAY_ADDRESS"))
    # The steps travel with their tasks, so workers need only Ray and reprise-index.
    ray.cloudpickle.register_pickle_by_value(shards)
    try:
        ray.init(address=address, logging_level="warning", include_dashboard=None if address else False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise FleetError(f"--address {address}: no cluster answers: {error}", 1) from None

    def submit(function: Callable[..., Part], *arguments: Any) -> Any:
        return ray.remote(function).options(num_cpus=1, max_retries=retries).remote(*arguments)

    def collect(part: Any) -> Part:
        try:
            return ray.get(part)
        except ray.exceptions.RayError as error:
            # A merge fails with the error of the shard that it waits for.
            cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error
            if hasattr(cause, "sentence"):
                raise FleetError(cause.sentence, cause.status) from None
            if not isinstance(cause, ray.exceptions.RayError):
                raise
            raise FleetError(f"the cluster lost a task and all its {retries} retries: {cause}", 1) from None

    # Ray prints notes about workers and machines, some of them at the end. Standard output is for the report alone.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            yield submit, collect
        finally:
            ray.shutdown()


def check_corpus(job: Job, path: Path) -> None:
    shards.run_tool(job, "verify", str(path))


def facts_of(job: Job, path: str) -> dict:
    """Returns the facts about a corpus that its manifest has."""
    info = json.loads(shards.run_tool(job, "info", "--format", "json", path))
    facts = {name: info[name] for name in ("documents", "tokens", "vocabulary", "fingerprint")}
    return facts | {"tool": info["version"]}


def check_folder(option: str, path: str) -> None:
    """Refuses a missing folder. To create it would hide that a mount is missing."""
    if not Path(path).is_dir():
        raise FleetError(f"{option} {path}: is no folder; create it, or check that it is mounted")


def build(options: argparse.Namespace) -> dict:
    """Runs the whole job and returns its report."""
    folder = Path(options.published)
    check_folder("--published", options.published)
    check_folder("--work", options.work)
    found = shards.find_snapshots(options.snapshots, shards.allowed_tenants(options.allow))
    if not found.snapshots:
        raise FleetError(f"{options.snapshots}: the allowed tenants have no snapshots; nothing was published")
    cut = shards.split(found.snapshots, options.shards)
    temporary = Path(options.work).resolve() / f"job-{uuid.uuid4().hex}"
    job = Job(
        snapshots=str(Path(options.snapshots).resolve()),
        folder=str(temporary),
        tool=os.path.abspath(shutil.which(options.tool) or options.tool),
        vocabulary=options.vocabulary,
        fingerprint=options.fingerprint,
        skip_damaged=options.skip_damaged,
        memory=options.memory,
    )
    executor = in_this_process() if options.local else on_cluster(options.address, options.retries)
    temporary.mkdir(mode=0o700)  # snapshots are private to their owner, and so are their copies
    try:
        with executor as (submit, collect):
            part = collect(build_tree(job, cut, options.width, submit))
        if part.path is None:
            raise FleetError(f"{options.snapshots}: no usable snapshot has tokens; nothing was published")
        before = published.read_manifest(folder)
        manifest = published.publish(
            folder,
            Path(part.path),
            facts_of(job, part.path),
            {"snapshots": part.inputs, "skipped": part.skipped},
            lambda path: check_corpus(job, path),
            options.ignore_locks,
        )
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    report = {"generation": manifest["generation"], "file": manifest["file"], "tokens": manifest["tokens"]}
    report |= {"published": before is None or before["generation"] != manifest["generation"]}
    report |= {"shards": len(cut), "snapshots": len(part.inputs), "skipped": part.skipped}
    report |= {"tenants_not_allowed": found.not_allowed, "tenants_without_snapshots": found.absent}
    return report | published.clean(folder, options.keep, options.ignore_locks)


def at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text}: expected a whole number of at least {least}")
        return int(text)

    return number


def parser() -> argparse.ArgumentParser:
    statuses = "exit status: 0 done; 1 a tool, a disk or the cluster failed; 2 an argument or an input cannot be used"
    top = argparse.ArgumentParser(prog="fleet.py", description=__doc__, epilog=statuses)
    commands = top.add_subparsers(dest="command", required=True)
    build_command = commands.add_parser("build", help="build a corpus from snapshots and publish it")
    clean_command = commands.add_parser("clean", help="remove old generations that nobody reads")
    add = build_command.add_argument
    add("--snapshots", metavar="DIR", required=True, help="the folder with TENANT/SERVER.snapshot")
    add("--allow", metavar="FILE", required=True, help="the tenants that share their text, one a line")
    add("--work", metavar="DIR", required=True, help="for intermediate files; all workers see it under this path")
    add("--tool", metavar="FILE", default="reprise-index", help="reprise-index, under the same path on all workers")
    add("--vocabulary", metavar="N", type=at_least(1), required=True, help="the number of token ids of the model")
    add("--fingerprint", metavar="N", required=True, help="the fingerprint that servers save their snapshots with")
    add("--shards", metavar="N", type=at_least(1), default=8, help="tasks that build (default 8)")
    add("--width", metavar="N", type=at_least(2), default=8, help="corpora in one merge (default 8)")
    add("--memory", metavar="BYTES", default="2G", help="memory of one build, for reprise-index (default 2G)")
    add("--retries", metavar="N", type=at_least(0), default=3, help="retries of a task whose worker dies (default 3)")
    add("--skip-damaged", action="store_true", help="go on without snapshots that cannot be used, and report them")
    where = build_command.add_mutually_exclusive_group()
    where.add_argument("--address", help="the Ray cluster (default: RAY_ADDRESS, or one of this machine alone)")
    where.add_argument("--local", action="store_true", help="run all steps in this process, without Ray")
    for command in (build_command, clean_command):
        add = command.add_argument
        add("--published", metavar="DIR", required=True, help="the folder of the generations")
        add("--keep", metavar="N", type=at_least(1), default=2, help="newest generations that always stay (default 2)")
        add("--ignore-locks", action="store_true", help="for file systems without locks: --keep alone decides")
        add("--format", choices=("text", "json"), default="text", help="form of the report")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        if options.command == "build":
            report = build(options)
        else:
            check_folder("--published", options.published)
            report = published.clean(Path(options.published), options.keep, options.ignore_locks)
    except FleetError as error:
        print(f"fleet.py: {error}", file=sys.stderr)
        return error.status
    except OSError as error:
        print(f"fleet.py: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    if options.format == "json":
        print(json.dumps(report))
    else:
        for name, value in report.items():
            print(f"{name:26} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
