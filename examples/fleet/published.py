# SPDX-License-Identifier: Apache-2.0
"""The folder of published generations. Each step leaves a folder that readers can use, even after a crash.

    manifest.json              the current generation: number, file, bytes, sha256
    generation-000002.corpus   its corpus
    generation-000002.json     the snapshots in it, with their checksums
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from shards import FleetError

MANIFEST = "manifest.json"
LOCK = "publish.lock"
TEMPORARY = ".tmp"
GENERATION = re.compile(r"generation-(\d{6,})\.corpus")
BLOCK = 1 << 20


def corpus_name(number: int) -> str:
    return f"generation-{number:06}.corpus"


def inputs_name(number: int) -> str:
    return f"generation-{number:06}.json"


def read_manifest(folder: Path) -> dict | None:
    """Returns the manifest, or None if nothing is published."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if isinstance(manifest["generation"], int) and isinstance(manifest["file"], str):
            return manifest
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        pass
    raise FleetError(f"{folder / MANIFEST}: is no manifest; remove it, and servers go on without a corpus")


def generations(folder: Path) -> list[int]:
    """Returns the numbers of all corpora in the folder, published or not."""
    matches = (GENERATION.fullmatch(name) for name in os.listdir(folder))
    return sorted(int(match[1]) for match in matches if match)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder survive a power cut."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def write_synced(path: Path, blocks: Iterator[bytes]) -> None:
    """Writes a new file, through no link. Removes the one that a crashed job left under this name."""
    path.unlink(missing_ok=True)
    with open(path, "xb") as out:
        for block in blocks:
            out.write(block)
        out.flush()
        os.fsync(out.fileno())


def write_json(folder: Path, name: str, value: dict) -> None:
    """Writes a file under a temporary name, then renames it."""
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    temporary = folder / (name + TEMPORARY)
    write_synced(temporary, iter([text.encode()]))
    os.replace(temporary, folder / name)
    sync_folder(folder)


@contextlib.contextmanager
def sole_publisher(folder: Path, ignore_locks: bool) -> Iterator[None]:
    """Refuses to publish while another job publishes to the same folder."""
    with open(folder / LOCK, "ab") as lock:
        if not ignore_locks:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FleetError(f"{folder}: another job publishes there; run one job at a time", 1) from None
            except OSError as error:
                raise FleetError(
                    f"{folder}: its file system has no locks ({error.strerror}); use --ignore-locks, run one job at a "
                    "time, and give --keep as many generations as the slowest server needs"
                ) from None
        yield


def blocks_of(path: Path, digest: hashlib._Hash) -> Iterator[bytes]:
    with open(path, "rb") as source:
        while block := source.read(BLOCK):
            digest.update(block)
            yield block


def publish(
    folder: Path, corpus: Path, facts: dict, inputs: dict, check: Callable[[Path], None], ignore_locks: bool
) -> dict:
    """Publishes a corpus as the next generation and returns its manifest.

    `check` reads the copy before it gets its name. Publishes nothing if the current generation has the same bytes.
    After an error or a crash, the manifest names the old generation, whose file is unchanged.
    """
    with sole_publisher(folder, ignore_locks):
        current = read_manifest(folder)
        # A number is never used again: a crashed job may have left its file, and a server may have it open.
        number = max([0, *generations(folder), current["generation"] if current else 0]) + 1
        digest = hashlib.sha256()
        temporary = folder / (corpus_name(number) + TEMPORARY)
        try:
            write_synced(temporary, blocks_of(corpus, digest))
            if current and current.get("sha256") == digest.hexdigest() and (folder / current["file"]).exists():
                return current
            check(temporary)
            os.replace(temporary, folder / corpus_name(number))
        except OSError as error:
            raise FleetError(f"{temporary}: cannot be written: {error.strerror}; nothing was published", 1) from None
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(folder)
        write_json(folder, inputs_name(number), inputs)
        size = (folder / corpus_name(number)).stat().st_size
        manifest = {"format": 1, "generation": number, "file": corpus_name(number), "bytes": size}
        manifest |= {"sha256": digest.hexdigest(), "inputs": inputs_name(number)} | facts
        write_json(folder, MANIFEST, manifest)
        return manifest


def remove_unless_read(path: Path, ignore_locks: bool) -> bool:
    """Removes a corpus unless a reader holds a lease on it. Returns False if it stays."""
    # Exclusive locks on NFS need a file that is open for writing.
    file = os.open(path, os.O_RDWR)
    try:
        if not ignore_locks:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    except OSError:
        return False
    finally:
        os.close(file)
    return True


def clean(folder: Path, keep: int, ignore_locks: bool) -> dict:
    """Removes generations that nobody reads, except the current one and the `keep` - 1 before it.

    Without a manifest, removes nothing. Returns the files that were removed, and those that are in use.
    """
    with sole_publisher(folder, ignore_locks):
        report: dict[str, list[str]] = {"removed": [], "in_use": []}
        current = read_manifest(folder)
        if current is None:
            return report
        numbers = generations(folder)
        kept = [number for number in numbers if number <= current["generation"]][-keep:]
        for number in numbers:
            if number in kept:
                continue
            gone = remove_unless_read(folder / corpus_name(number), ignore_locks)
            report["removed" if gone else "in_use"].append(corpus_name(number))
            if gone:
                (folder / inputs_name(number)).unlink(missing_ok=True)
        for name in os.listdir(folder):
            if name.endswith(TEMPORARY):  # of a job that crashed
                (folder / name).unlink(missing_ok=True)
        return report
