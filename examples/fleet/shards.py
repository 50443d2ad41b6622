# SPDX-License-Identifier: Apache-2.0
"""The steps of a job: allowed tenants, their snapshots, shards of about equal size, and merges.

Every step is a plain function of its arguments, so that any worker can run it again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import stat
import subprocess
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

SUFFIX = ".snapshot"
EMPTY = "no document has tokens"  # in the message of reprise-index if its inputs have no text


class FleetError(Exception):
    """A sentence for the person who runs the job. `status` is the exit status: 2 for input that cannot be used."""

    def __init__(self, sentence: str, status: int = 2) -> None:
        super().__init__(sentence, status)
        self.sentence, self.status = sentence, status

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Snapshot:
    """A file TENANT/SERVER.snapshot. Names in the corpus begin with TENANT, so they are the same on every machine."""

    tenant: str
    server: str
    size: int

    @property
    def name(self) -> str:
        return f"{self.tenant}/{self.server}"


@dataclass(frozen=True)
class Found:
    """The snapshots in canonical order. The order decides the bytes of the corpus."""

    snapshots: list[Snapshot]
    not_allowed: int  # folders of tenants that are not on the list
    absent: list[str]  # allowed tenants without snapshots


@dataclass(frozen=True)
class Job:
    """The arguments that all steps share. `folder` holds all intermediate files and can be read by every worker."""

    snapshots: str
    folder: str
    tool: str
    vocabulary: int
    fingerprint: str
    skip_damaged: bool = False
    memory: str = "2G"


@dataclass
class Part:
    """A corpus of neighbouring snapshots. `path` is None if they have no tokens."""

    path: str | None
    inputs: list[dict] = field(default_factory=list)
    skipped: list[dict] = field(default_factory=list)


def allowed_tenants(path: str | Path) -> list[str]:
    """Returns the tenants that `path` lists, one a line. Lines that begin with # are comments."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise FleetError(f"{path}: the list of allowed tenants cannot be read: {error}") from None
    tenants = set()
    for number, line in enumerate(lines, 1):
        name = line.strip()
        if not name or name.startswith("#"):
            continue
        if "/" in name or name.startswith("."):
            raise FleetError(f"{path}: line {number}: '{name}' is no name of a tenant's folder; write the name alone")
        tenants.add(name)
    if not tenants:
        raise FleetError(f"{path}: allows no tenant; write the name of each tenant that shares its text on a line")
    return sorted(tenants, key=os.fsencode)


def find_snapshots(folder: str | Path, allowed: Sequence[str]) -> Found:
    """Lists the snapshots of the allowed tenants. Opens no folder of another tenant, and follows no link."""
    try:
        entries = {entry.name: entry for entry in os.scandir(folder)}
    except OSError as error:
        raise FleetError(f"{folder}: the folder of snapshots cannot be read: {error.strerror}") from None
    found = Found([], sum(name not in allowed for name in entries), [])
    for tenant in sorted(allowed, key=os.fsencode):
        entry = entries.get(tenant)
        if entry is None:
            found.absent.append(tenant)
            continue
        if not entry.is_dir(follow_symlinks=False):
            raise FleetError(f"{tenant}: is no folder but a file or a link; a link could lead to another tenant's text")
        files = [file for file in os.scandir(entry.path) if file.name.endswith(SUFFIX)]
        for file in sorted(files, key=lambda file: os.fsencode(file.name)):
            found.snapshots.append(Snapshot(tenant, file.name, file.stat(follow_symlinks=False).st_size))
        if not files:
            found.absent.append(tenant)
    return found


def split(snapshots: Sequence[Snapshot], count: int) -> list[list[Snapshot]]:
    """Cuts the list into at most `count` shards of neighbours, with about equal bytes. No shard is empty."""
    total = sum(snapshot.size for snapshot in snapshots)
    shards: list[list[Snapshot]] = [[] for _ in range(count)]
    before = 0
    for snapshot in snapshots:
        middle = before + snapshot.size / 2
        shards[min(int(middle * count / total), count - 1) if total else 0].append(snapshot)
        before += snapshot.size
    return [shard for shard in shards if shard]


def run_tool(job: Job, *arguments: str, folder: str | Path | None = None) -> str:
    """Runs reprise-index and returns its output. Throws FleetError with the message and the status of the tool."""
    place = f"on {socket.gethostname()}"
    try:
        done = subprocess.run([job.tool, *arguments], cwd=folder, capture_output=True, text=True, errors="replace")
    except OSError as error:
        sentence = f"{job.tool}: cannot be run {place}: {error.strerror}; install reprise-index there"
        raise FleetError(sentence, 1) from None
    if done.returncode < 0:
        raise FleetError(f"reprise-index {arguments[0]}: was killed {place} by signal {-done.returncode}", 1)
    if done.returncode != 0:
        message = (done.stderr.strip() or done.stdout.strip()).removeprefix("reprise-index: ")
        raise FleetError(f"reprise-index {arguments[0]} {place}: {message}", done.returncode)
    return done.stdout


def new_path(job: Job, kind: str) -> Path:
    """Returns a path that no other attempt uses. A worker that was taken for dead may still be writing."""
    return Path(job.folder) / f"{kind}-{uuid.uuid4().hex}"


def open_snapshot(job: Job, snapshot: Snapshot) -> BinaryIO:
    """Opens a snapshot without following a link, because a link could lead to another tenant's text."""
    folder = os.open(Path(job.snapshots) / snapshot.tenant, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        file = os.open(snapshot.server, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)
    opened = os.fdopen(file, "rb")
    if not stat.S_ISREG(os.fstat(file).st_mode):
        opened.close()
        raise OSError("is no regular file")
    return opened


def copy_snapshot(job: Job, snapshot: Snapshot, folder: Path) -> dict:
    """Copies a snapshot, because its server may replace it at any time. Returns its name, size and checksum."""
    try:
        with open_snapshot(job, snapshot) as source:
            data = source.read()
    except OSError as error:
        raise FleetError(f"{snapshot.name}: cannot be read, or is a link: {error.strerror or error}") from None
    (folder / snapshot.tenant).mkdir(exist_ok=True)
    (folder / snapshot.name).write_bytes(data)
    return {"name": snapshot.name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def build_corpus(job: Job, folder: Path, names: Sequence[str]) -> str | None:
    """Builds a corpus from these files below `folder`. Returns its path, or None if they have no tokens."""
    output = f"{new_path(job, 'shard')}.corpus"
    tenants = sorted({name.split("/")[0] for name in names}, key=os.fsencode)
    numbers = ["--vocabulary", str(job.vocabulary), "--fingerprint", job.fingerprint]
    limits = ["--memory", job.memory, "--threads", "1"]
    try:
        inputs = tenants if len(names) > 1 else names  # folders, because a command line has a limited length
        run_tool(job, "build", "--output", output, *numbers, *limits, *inputs, folder=folder)
    except FleetError as error:
        if EMPTY not in str(error):
            raise
        return None
    return output


def refusals(job: Job, folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Tries each file alone. Returns the files that the tool refuses, with its reasons."""
    refused = {}
    for name in names:
        try:
            alone = build_corpus(job, folder, [name])
        except FleetError as error:
            if error.status != 2:
                raise
            refused[name] = str(error)
        else:
            if alone:
                os.unlink(alone)
    return refused


def build_shard(job: Job, snapshots: Sequence[Snapshot]) -> Part:
    """Builds the corpus of one shard. With `skip_damaged`, leaves out the snapshots that cannot be used."""
    folder = new_path(job, "inputs")
    folder.mkdir()
    part = Part(None)
    for snapshot in snapshots:
        try:
            part.inputs.append(copy_snapshot(job, snapshot, folder))
        except FleetError as error:
            if not job.skip_damaged:
                raise
            part.skipped.append({"name": snapshot.name, "reason": str(error)})
    names = [given["name"] for given in part.inputs]
    try:
        part.path = build_corpus(job, folder, names) if names else None
    except FleetError as error:
        if error.status != 2 or not job.skip_damaged:
            raise
        refused = refusals(job, folder, names)
        if not refused:
            raise
        for name, reason in refused.items():
            (folder / name).unlink()
            part.skipped.append({"name": name, "reason": reason})
        part.inputs = [given for given in part.inputs if given["name"] not in refused]
        names = [given["name"] for given in part.inputs]
        part.path = build_corpus(job, folder, names) if names else None
    shutil.rmtree(folder)
    return part


def merge_parts(job: Job, *parts: Part) -> Part:
    """Merges the corpora of neighbouring parts, in their order."""
    merged = Part(None)
    for part in parts:
        merged.inputs += part.inputs
        merged.skipped += part.skipped
    paths = [part.path for part in parts if part.path]
    if len(paths) < 2:
        merged.path = paths[0] if paths else None
        return merged
    merged.path = f"{new_path(job, 'merge')}.corpus"
    run_tool(job, "merge", "--output", merged.path, *paths)
    return merged
