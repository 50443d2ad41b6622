# SPDX-License-Identifier: Apache-2.0
"""The steps of a job without Ray: allow-list, shards, publishing, failures, and servers that change generations."""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
import threading
import unittest
from pathlib import Path
from unittest import mock

from support import INDEX, PLACES, SECRET, SERVER, FleetCase, occurrences, sha256, tokens_of

import fleet
import published
import shards
from shards import FleetError, Snapshot


class Split(unittest.TestCase):
    def test_keeps_order_and_balances_bytes(self) -> None:
        generator = random.Random(1)
        for _ in range(300):
            sizes = [generator.choice((0, 1, 10, generator.randrange(1000))) for _ in range(generator.randrange(1, 40))]
            given = [Snapshot("t", f"{i}.snapshot", size) for i, size in enumerate(sizes)]
            count = generator.randrange(1, 12)
            cut = shards.split(given, count)
            self.assertEqual([one for shard in cut for one in shard], given)
            self.assertLessEqual(len(cut), count)
            self.assertTrue(all(cut))
            for shard in cut:
                self.assertLessEqual(sum(one.size for one in shard), sum(sizes) / count + max(sizes))


class AllowList(FleetCase):
    def names(self, text: str) -> list[str]:
        path = self.root / "list"
        path.write_text(text)
        return shards.allowed_tenants(path)

    def test_has_a_name_on_each_line(self) -> None:
        self.assertEqual(self.names("# all\n b \n\na\nb\n"), ["a", "b"])

    def test_refuses_paths(self) -> None:
        for name in ("..", ".hidden", "a/b", "/a", "a/../west"):
            with self.assertRaisesRegex(FleetError, "line 2: .* is no name of a tenant's folder"):
                self.names(f"a\n{name}\n")

    def test_empty_or_missing_publishes_nothing(self) -> None:
        self.serve("north", "a", ["Rome"])
        self.allow()
        self.assertIn("allow.txt: allows no tenant; write the name", self.refusal())
        (self.root / "allow.txt").unlink()
        self.assertIn("allow.txt: the list of allowed tenants cannot be read", self.refusal())

    def test_keeps_the_tokens_of_others_out(self) -> None:
        self.serve_all()
        report = self.build()
        self.assertEqual(report["tenants_not_allowed"], 1)
        self.assertEqual(occurrences(self.current(), "Lisbon"), 2)  # in a request and in an answer
        self.assertEqual(occurrences(self.current(), SECRET), 0)
        self.assertEqual(set(SECRET) & set(map(chr, tokens_of(self.current()))), set())
        self.assertNotIn(b"west", self.current().read_bytes())
        for path in self.published.iterdir():
            self.assertNotIn(b"west", path.read_bytes())

        # The checks above can fail: once the tenant is allowed, each of them finds the text.
        self.allow("north", "south", "west")
        self.assertEqual(self.build()["tenants_not_allowed"], 0)
        self.assertEqual(occurrences(self.current(), SECRET), 2)
        self.assertIn(ord("~"), tokens_of(self.current()))
        self.assertIn(b"west", self.current().read_bytes())

        # A tenant that leaves the list is not in the next generation.
        self.allow("south")
        self.build()
        self.assertEqual(occurrences(self.current(), SECRET) + occurrences(self.current(), "Lisbon"), 0)

    def test_opens_no_folder_of_others(self) -> None:
        self.serve_all()
        opened: list[str] = []
        listening = True

        def listen(event: str, arguments: tuple) -> None:
            if listening and event in ("open", "os.scandir", "os.listdir"):
                opened.append(str(arguments[0]))

        sys.addaudithook(listen)
        arguments = [str(argument) for argument in self.arguments("--local")[2:]]
        with mock.patch("sys.stdout"):
            self.assertEqual(fleet.main(arguments), 0)
        listening = False
        folders = {Path(path).name for path in opened if Path(path).parent == self.snapshots.resolve()}
        self.assertEqual(folders, {"north", "south"})

    def test_follows_no_link(self) -> None:
        self.serve_all()
        (self.snapshots / "south" / "c.snapshot").symlink_to("../west/a.snapshot")
        self.assertIn("south/c.snapshot: cannot be read, or is a link", self.refusal())
        report = self.build("--skip-damaged")
        self.assertEqual([skipped["name"] for skipped in report["skipped"]], ["south/c.snapshot"])
        self.assertNotIn(ord("~"), tokens_of(self.current()))
        self.allow("north", "shadow")
        (self.snapshots / "shadow").symlink_to("west")
        self.assertIn("shadow: is no folder but a file or a link", self.refusal("--skip-damaged"))

    def test_a_private_snapshot_is_refused_even_if_allowed(self) -> None:
        self.serve("north", "a", ["Rome"])
        self.serve("east", "a", [SECRET], "--private")
        self.allow("north", "east")
        self.assertRegex(self.refusal(), "east/a.snapshot: its tokenizer has the fingerprint 0x")


class Corpora(FleetCase):
    def test_are_the_same_for_any_number_of_shards(self) -> None:
        self.serve_all()
        expected = sha256(self.single_build("north", "south"))
        for count in ("1", "2", "3", "7"):
            for width in ("2", "3"):
                shutil.rmtree(self.published)
                self.published.mkdir()
                report = self.build("--shards", count, "--width", width)
                self.assertEqual(report["snapshots"], 4)
                self.assertEqual(report["shards"], min(int(count), report["shards"]))
                self.assertEqual(sha256(self.current()), expected)

    def test_list_their_inputs(self) -> None:
        self.serve_all()
        self.build("--shards", "3")
        manifest = json.loads((self.published / "manifest.json").read_text())
        self.assertEqual(manifest["sha256"], sha256(self.current()))
        self.assertEqual(manifest["bytes"], self.current().stat().st_size)
        self.assertEqual((manifest["vocabulary"], manifest["fingerprint"]), (128, "0x0000000000000007"))
        inputs = json.loads((self.published / manifest["inputs"]).read_text())["snapshots"]
        self.assertEqual([given["name"] for given in inputs], [f"{t}/{n}.snapshot" for t, n in PLACES if t != "west"])
        for given in inputs:
            self.assertEqual(given["sha256"], sha256(self.snapshots / given["name"]))

    def test_need_a_snapshot_with_tokens(self) -> None:
        self.assertIn("the allowed tenants have no snapshots; nothing was published", self.refusal())
        self.serve("north", "a", [])
        self.assertIn("no usable snapshot has tokens; nothing was published", self.refusal())
        self.serve("south", "b", ["Rome"])
        (self.snapshots / "south" / "b.snapshot.12-0.tmp").write_text("of a save that was killed")
        report = self.build("--shards", "2")
        self.assertEqual((report["snapshots"], report["tenants_without_snapshots"]), (2, []))
        self.assertEqual(sha256(self.current()), sha256(self.single_build("south/b.snapshot")))

    def test_are_not_published_twice(self) -> None:
        self.serve_all()
        self.assertEqual([self.build()["published"], self.build()["published"]], [True, False])
        self.assertEqual(self.generations(), ["generation-000001.corpus"])


class Failures(FleetCase):
    def test_a_damaged_snapshot_is_named(self) -> None:
        self.serve_all()
        damaged = self.snapshots / "south" / "a.snapshot"
        whole = damaged.read_bytes()
        for data in (whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:], whole[:100], b"", b"text\n"):
            damaged.write_bytes(data)
            self.assertIn("south/a.snapshot: ", self.refusal("--shards", "2"))
        report = self.build("--shards", "2", "--skip-damaged")
        self.assertEqual([skipped["name"] for skipped in report["skipped"]], ["south/a.snapshot"])
        rest = ("north/a.snapshot", "north/b.snapshot", "south/b.snapshot")
        self.assertEqual(sha256(self.current()), sha256(self.single_build(*rest)))
        inputs = json.loads((self.published / "generation-000001.json").read_text())
        self.assertEqual([given["name"] for given in inputs["snapshots"]], list(rest))
        self.assertIn("south/a.snapshot: ", inputs["skipped"][0]["reason"])

    def test_another_tokenizer_is_refused(self) -> None:
        self.serve_all()
        message = self.refusal("--fingerprint", "8")
        self.assertRegex(message, "north/a.snapshot: its tokenizer has the fingerprint 0x0+7, but .* 0x0+8")
        self.assertIn("is outside the vocabulary of 80 ids", self.refusal("--vocabulary", "80"))
        message = self.refusal("--fingerprint", "8", "--skip-damaged")
        self.assertIn("no usable snapshot has tokens; nothing was published", message)

    def test_the_message_of_the_tool_is_passed_on(self) -> None:
        self.serve_all()
        self.assertIn("none/reprise-index: cannot be run on ", self.refusal("--tool", "none/reprise-index", status=1))
        tool = self.root / "tool"
        for step in ("build", "merge", "verify"):
            fault = f'echo "no {step} today" >&2; exit 1'
            tool.write_text(f'#!/bin/sh\n[ $1 != {step} ] || {{ {fault}; }}\nexec {INDEX} "$@"\n')
            tool.chmod(0o755)
            message = self.refusal("--tool", str(tool), "--skip-damaged", status=1)
            self.assertRegex(message, f"reprise-index {step} on .*: no {step} today")
        tool.write_text("#!/bin/sh\nkill -9 $$\n")
        self.assertIn("by signal 9", self.refusal("--tool", str(tool), status=1))

    def test_a_full_disk_stops_the_job(self) -> None:
        self.serve_all()
        tool = self.root / "tool"
        tool.write_text(f'#!/bin/bash\n[ $1 != merge ] || {{ trap "" XFSZ; ulimit -f 4; }}\nexec {INDEX} "$@"\n')
        tool.chmod(0o755)
        self.assertRegex(self.refusal("--tool", str(tool), status=1), "reprise-index merge on .*: .*merge-.*corpus")

    def test_an_address_that_does_not_answer_is_refused(self) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            with self.assertRaisesRegex(FleetError, "no cluster answers: .*refused; check the address"):
                fleet.check_address(f"127.0.0.1:{unused.getsockname()[1]}")
        for other in (None, "auto", "local", "ray://head:10001"):
            fleet.check_address(other)

    def test_missing_folders_are_not_created(self) -> None:
        self.serve("north", "a", ["Rome"])
        self.work.rmdir()
        done = subprocess.run(self.arguments("--local"), capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--work", done.stderr)
        self.assertIn("is no folder; create it, or check that it is mounted", done.stderr)
        with mock.patch("sys.stderr", new_callable=io.StringIO) as errors:
            self.assertEqual(fleet.main(["clean", "--published", str(self.root / "none")]), 2)
        self.assertIn("none: is no folder; create it", errors.getvalue())


class Publishing(FleetCase):
    def publish(self, text: str, ignore_locks: bool = False) -> dict:
        corpus = self.root / "merged"
        corpus.write_text(text)
        return published.publish(self.published, corpus, {}, {}, lambda path: None, ignore_locks)

    def clean(self, keep: int = 1, ignore_locks: bool = False) -> dict:
        return published.clean(self.published, keep, ignore_locks)

    def read(self) -> str:
        manifest = published.read_manifest(self.published)
        assert manifest
        self.assertEqual(sha256(self.published / manifest["file"]), manifest["sha256"])
        return (self.published / manifest["file"]).read_text()

    def crash_at(self, call: int) -> bool:
        """Publishes in a process that dies before system call `call`. Returns whether it died."""
        child = os.fork()
        if child == 0:
            calls = 0

            def counted(real):
                def wrapper(*arguments, **options):
                    nonlocal calls
                    calls += 1
                    if calls == call:
                        os._exit(9)
                    return real(*arguments, **options)

                return wrapper

            for name in ("replace", "fsync", "unlink", "open", "close"):
                setattr(os, name, counted(getattr(os, name)))
            published.write_synced = counted(published.write_synced)
            self.publish("new")
            self.clean()
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9

    def test_a_crash_anywhere_leaves_an_old_or_a_new_generation(self) -> None:
        seen = []
        call = 1
        while True:
            shutil.rmtree(self.published)
            self.published.mkdir()
            self.publish("old")
            if not self.crash_at(call):
                break
            seen.append(self.read())
            # The next job needs no repair.
            self.publish("next")
            self.assertEqual(self.read(), "next")
            self.clean()
            self.assertEqual(len(self.generations()), 1)
            self.assertEqual(list(self.published.glob("*.tmp")), [])
            call += 1
        self.assertEqual(self.read(), "new")
        self.assertEqual(seen, sorted(seen, reverse=True), "once the new one is there, it stays")
        self.assertGreater(seen.count("old"), 8)
        self.assertGreater(seen.count("new"), 3)

    def test_a_corpus_that_is_not_whole_is_not_published(self) -> None:
        self.publish("old")
        check = mock.Mock(side_effect=FleetError("is damaged"))
        (self.root / "merged").write_text("new")
        with self.assertRaisesRegex(FleetError, "is damaged"):
            published.publish(self.published, self.root / "merged", {}, {}, check, False)
        self.assertEqual((self.read(), self.generations()), ("old", ["generation-000001.corpus"]))

    def test_nothing_is_written_through_a_planted_link(self) -> None:
        victim = self.root / "victim"
        victim.write_text("precious")
        for name in ("generation-000001.corpus", "generation-000001.json", "manifest.json"):
            (self.published / (name + ".tmp")).symlink_to(victim)
        self.publish("new")
        self.assertEqual((self.read(), victim.read_text()), ("new", "precious"))

    def test_a_full_disk_leaves_the_old_generation(self) -> None:
        self.publish("old")
        (self.root / "merged").write_text("new" * 10000)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
            with self.assertRaisesRegex(FleetError, "tmp: cannot be written: File too large; nothing was published"):
                published.publish(self.published, self.root / "merged", {}, {}, lambda path: None, False)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        self.assertEqual((self.read(), self.generations()), ("old", ["generation-000001.corpus"]))
        self.assertEqual(list(self.published.glob("*.tmp")), [])

    def test_one_job_publishes_at_a_time(self) -> None:
        with published.sole_publisher(self.published, False):
            with self.assertRaisesRegex(FleetError, "another job publishes there"):
                self.publish("new")

    def test_a_lease_keeps_a_generation(self) -> None:
        self.publish("1")
        reader = open(self.current())
        fcntl.flock(reader, fcntl.LOCK_SH)
        self.publish("2")
        self.assertEqual(self.clean(), {"removed": [], "in_use": ["generation-000001.corpus"]})
        reader.close()
        self.assertEqual(self.clean(), {"removed": ["generation-000001.corpus"], "in_use": []})
        left = sorted(path.suffix for path in self.published.iterdir())
        self.assertEqual(left, [".corpus", ".json", ".json", ".lock"])

    def test_the_last_generations_stay(self) -> None:
        for text in "12345":
            self.publish(text)
        self.clean(keep=3)
        self.assertEqual(self.generations(), [f"generation-00000{number}.corpus" for number in (3, 4, 5)])

    def test_without_locks_the_count_decides(self) -> None:
        with mock.patch.object(fcntl, "flock", side_effect=OSError(errno.ENOTSUP, "Operation not supported")):
            with self.assertRaisesRegex(FleetError, "has no locks .*; use --ignore-locks, .* --keep"):
                self.publish("1")
            for text in "123":
                self.publish(text, ignore_locks=True)
            self.clean(keep=2, ignore_locks=True)
        self.assertEqual(self.generations(), ["generation-000002.corpus", "generation-000003.corpus"])

    def test_a_withdrawn_corpus_is_not_replaced_under_its_name(self) -> None:
        self.publish("1")
        (self.published / "manifest.json").unlink()
        self.assertEqual(self.clean(), {"removed": [], "in_use": []})
        self.assertEqual(self.publish("1")["generation"], 2)

    def test_a_damaged_manifest_stops_the_job(self) -> None:
        for text in ("", "[]", '{"generation": "1", "file": "a"}', "\xff"):
            (self.published / "manifest.json").write_text(text)
            with self.assertRaisesRegex(FleetError, "manifest.json: is no manifest; remove it"):
                self.publish("new")


class Talk:
    """A server that answers one request at a time."""

    def __init__(self, case: FleetCase, tenant: str, name: str) -> None:
        arguments = [SERVER, case.published, case.snapshots, tenant, name]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self.limit = threading.Timer(60, self.process.kill)
        self.limit.start()
        case.addCleanup(self.end)

    def ask(self, place: str) -> dict:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(place + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self) -> tuple[int, str]:
        """Ends the server. Returns its exit status and its notes."""
        self.limit.cancel()
        if self.process.stdin and not self.process.stdin.closed:
            self.notes = self.process.communicate()[1]
        return self.process.returncode, self.notes


class Servers(FleetCase):
    def test_draft_from_the_corpus(self) -> None:
        self.serve_all()
        alone = self.serve("south", "new", ["Tirana"])[0]
        (self.snapshots / "south" / "new.snapshot").unlink()
        self.build()
        shared = self.serve("south", "new", ["Tirana"])[0]
        self.assertEqual((alone["generation"], shared["generation"]), (0, 1))
        self.assertEqual(alone["tokens"], shared["tokens"])
        self.assertLess(shared["passes"] * 3, alone["passes"])

    def test_open_new_generations_between_requests(self) -> None:
        self.serve_all()
        self.build("--keep", "1")
        busy, idle = Talk(self, "north", "busy"), Talk(self, "north", "idle")
        self.assertEqual((busy.ask("Rome")["generation"], idle.ask("Rome")["generation"]), (1, 1))

        self.serve("south", "c", ["Wien"])
        report = self.build("--keep", "1")
        self.assertEqual((report["generation"], report["removed"]), (2, []))
        self.assertEqual(report["in_use"], ["generation-000001.corpus"])
        self.assertEqual(busy.ask("Wien")["generation"], 2)
        # The other server still reads the first one, so the file stays.
        self.assertEqual(published.clean(self.published, 1, False)["in_use"], ["generation-000001.corpus"])
        self.assertEqual(idle.end(), (0, ""))
        self.assertEqual(published.clean(self.published, 1, False)["removed"], ["generation-000001.corpus"])
        self.assertEqual(busy.ask("Bern")["generation"], 2)
        self.assertEqual(busy.end(), (0, ""))
        # Both have left snapshots for the next generation.
        self.assertEqual(self.build()["snapshots"], 7)

    def test_drop_a_withdrawn_corpus(self) -> None:
        self.serve_all()
        self.build()
        server = Talk(self, "north", "c")
        self.assertEqual(server.ask("Rome")["generation"], 1)
        (self.published / "manifest.json").unlink()
        self.assertEqual(server.ask("Rome")["generation"], 0)
        self.assertEqual(server.end(), (0, ""))

    def test_keep_the_old_generation_if_the_new_one_cannot_be_used(self) -> None:
        self.serve_all()
        self.build()
        server = Talk(self, "north", "c")
        self.assertEqual(server.ask("Rome")["generation"], 1)
        manifest = self.published / "manifest.json"
        good = json.loads(manifest.read_text())
        cut = self.published / "generation-000002.corpus"
        cut.write_bytes(self.current().read_bytes()[:-1])
        other = self.published / "generation-000003.corpus"
        arguments = [INDEX, "build", "--vocabulary", "99999", "--fingerprint", "7", "--output", other, "north"]
        subprocess.run(arguments, cwd=self.snapshots, check=True, capture_output=True)
        faults = []
        for text in (
            "{",
            '{"generation": 0, "file": "a"}',
            '{"generation": 2, "file": "../secret"}',
            json.dumps(good | {"generation": 2, "file": cut.name}),
            json.dumps(good | {"generation": 3, "file": other.name}),
            json.dumps(good | {"generation": 4, "file": "none.corpus"}),
        ):
            manifest.write_text(text)
            self.assertEqual(server.ask("Rome")["generation"], 1)
        status, notes = server.end()
        faults = notes.splitlines()
        self.assertEqual((status, len(faults)), (0, 6), notes)
        self.assertIn("manifest.json: line 1: ", faults[0])
        self.assertIn("names no generation and no file in its folder", faults[1])
        self.assertIn("names no generation and no file in its folder", faults[2])
        self.assertIn(f"{cut.name}: ", faults[3])
        self.assertIn(f"{other.name}: ", faults[4])
        self.assertIn("none.corpus: the manifest names this file, but it does not exist", faults[5])


if __name__ == "__main__":
    unittest.main()
