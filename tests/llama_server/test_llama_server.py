# SPDX-License-Identifier: Apache-2.0
"""The script that builds llama-server, and the benchmark over HTTP, without llama.cpp. real_server.py has the rest."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "examples/llama_server"), str(ROOT / "bench/server_http")]
import build  # noqa: E402
import server_http  # noqa: E402

FAKE = ROOT / "tests/llama_server/fake_server.py"


class Build(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.sources = self.folder / "sources"
        for insertion in build.INSERTIONS:
            file = self.sources / insertion.file
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a") as out:
                out.write(f"// before\n{insertion.at}// after\n")

    def run_build(self):
        arguments = sys.argv
        sys.argv = ["build.py", str(self.folder / "out"), "--sources", str(self.sources), "--patch-only"]
        try:
            build.main()
        finally:
            sys.argv = arguments

    def refused(self):
        with self.assertRaises(SystemExit) as refused:
            self.run_build()
        self.assertFalse((self.folder / "out/llama.cpp").exists())
        return str(refused.exception)

    def test_lines_are_inserted_beside_their_places_and_nothing_else_changes(self):
        before = {i.file: (self.sources / i.file).read_text() for i in build.INSERTIONS}
        self.run_build()
        for insertion in build.INSERTIONS:
            after = (self.folder / "out/llama.cpp" / insertion.file).read_text()
            both = insertion.text + insertion.at if insertion.before else insertion.at + insertion.text
            self.assertIn(both, after)
            self.assertEqual((self.sources / insertion.file).read_text(), before[insertion.file])
        for name, text in before.items():
            after = (self.folder / "out/llama.cpp" / name).read_text()
            for insertion in build.INSERTIONS:
                if insertion.file == name:
                    after = after.replace(insertion.text, "", 1)
            self.assertEqual(after, text)

    def test_a_second_run_takes_the_same_sources_only(self):
        self.run_build()
        self.run_build()
        place = self.folder / "out/llama.cpp"
        self.sources = self.sources.rename(self.folder / "others")
        with self.assertRaisesRegex(SystemExit, "is not a whole copy of .*others: remove it"):
            self.run_build()
        self.sources = place
        with self.assertRaisesRegex(SystemExit, "has lines of reprise already"):
            self.run_build()

    def test_other_sources_are_refused_in_one_sentence(self):
        place = build.INSERTIONS[0]
        file = self.sources / place.file
        text = file.read_text()
        file.write_text(text.replace(place.at, "something else\n"))
        self.assertRegex(self.refused(), "common.h has the text .* 0 times instead of once; nothing was changed")
        file.write_text(text + place.at)
        self.assertIn("2 times instead of once", self.refused())
        file.unlink()
        self.assertIn("is missing: these sources are not those of llama-cpp-python", self.refused())


class Requests(unittest.TestCase):
    def test_a_loop_is_cut_to_what_was_said_once(self):
        said = list(range(100, 160))
        self.assertIsNone(server_http.loop_at(said * 2, []))
        self.assertEqual(server_http.loop_at(said * 5, []), 60)
        self.assertEqual(server_http.loop_at([7] * 200, []), 1)
        self.assertIsNone(server_http.loop_at(said * 5, said * 9), "a copy of the prompt")

    def test_variants_are_what_a_second_client_sends(self):
        chosen = server_http.conversations(ROOT / "bench/prompts", 0, 10)
        names = {session["id"]: session for session in chosen}
        edited = names["chat/01+edited"]["turns"]
        self.assertEqual(edited, [names["chat/01"]["turns"][0], names["chat/01"]["turns"][2]])
        self.assertIn("code-edit/01+alike", names)

    def test_a_bad_file_is_refused_with_its_line(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write('{"id":"a","turns":[{"prompt":[1],"output":[2]}]}\n{"id":"b"}\n')
            file.flush()
            with self.assertRaisesRegex(server_http.InputError, r":2: KeyError\('turns'\); write the file with"):
                server_http.read_requests(pathlib.Path(file.name))


class Runs(unittest.TestCase):
    def setUp(self):
        name = tempfile.TemporaryDirectory()
        self.addCleanup(name.cleanup)
        self.folder = pathlib.Path(name.name)

    def rows(self, table):
        return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line[:1] == "|"]

    def run_tool(self, *arguments):
        options = server_http.parsed([str(argument) for argument in arguments])
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.status = getattr(server_http, options.command)(options)
        return out.getvalue()

    def test_requests_are_recorded_sent_and_compared(self):
        server = ["--server", FAKE, "--model", "none.gguf"]
        requests, runs = self.folder / "requests.jsonl", self.folder / "runs.json"
        self.run_tool("record", *server, "--out", requests, "--every", 20, "--tokens", 40)
        sessions = server_http.read_requests(requests)
        prompts = [tuple(request["prompt"]) for turns in sessions for request in turns]
        self.assertEqual(len(prompts), len(set(prompts)), "no prompt is sent twice")
        again = next(turns for turns in sessions if turns[0]["id"].startswith("chat/01#"))
        # The second request has the first answer, the end of its turn and the next question.
        text = "".join(map(chr, again[1]["prompt"]))
        self.assertTrue(text.startswith("".join(map(chr, again[0]["prompt"]))))
        self.assertIn("][user:How often should I run in the first month?][assistant:", text)

        types = ["plain", "mod=--spec-type ngram-mod", "slow=--none"]
        table = self.run_tool("run", *server, "--requests", requests, "--json", runs, "--types", *types,
                              "--slots", 1, 2, "--runs", 3)
        rows = self.rows(table)
        first = {row[0]: row for row in rows[2:5]}
        self.assertEqual(set(first), {"plain", "mod, the best own", "slow"})
        self.assertEqual(first["mod, the best own"][9], "2.000 (2.000 to 2.000)")
        self.assertEqual(first["slow"][9:], ["1.000 (1.000 to 1.000)", "0.500 (0.500 to 0.500)", "0"])
        tokens = sum(request["tokens"] for turns in sessions for request in turns)
        self.assertEqual(first["plain"][5], str(tokens))
        self.assertLess(int(first["mod, the best own"][5]), tokens * 0.55)
        kept = json.loads(runs.read_text())
        self.assertEqual([one["type"] for one in kept["runs"] if one["slots"] == 1][:6],
                         ["plain", "mod", "slow", "slow", "mod", "plain"])

    def test_a_type_is_compared_with_each_other_one_by_category(self):
        server = ["--server", FAKE, "--model", "none.gguf"]
        requests, runs = self.folder / "requests.jsonl", self.folder / "runs.json"
        self.run_tool("record", *server, "--out", requests, "--every", 40, "--tokens", 20, "--categories", "summary", "chat")
        types = ["plain", "draft=--spec-type draft-simple", "both=--spec-type draft-simple,reprise"]
        table = self.run_tool("run", *server, "--requests", requests, "--json", runs, "--types", *types, "--slots", 1,
                              "--runs", 3, "--compare", "both")
        rows = self.rows(table)
        self.assertEqual([row[0] for row in rows[2:5]], ["plain", "draft, the best own", "both"])
        tokens = [sum(r["tokens"] for r in turns) for turns in server_http.read_requests(requests)]
        by_category = [tokens[0] + tokens[1], tokens[2], sum(tokens)]
        self.assertEqual([(row[0], int(row[1])) for row in rows[7:]], list(zip(("chat", "summary", "all"), by_category)))
        for row in rows[7:]:
            self.assertEqual(row[2:], ["2.000"] * 3 + ["1.000"] * 3)
        self.assertIn("both over the other types", self.run_again(runs, "both"))
        with self.assertRaisesRegex(server_http.InputError, "--compare new: no run with one slot has this type: give one of plain"):
            self.run_again(runs, "new")
        with self.assertRaisesRegex(server_http.InputError, "--compare new: no such type is measured"):
            self.run_tool("run", *server, "--requests", requests, "--json", runs, "--types", "plain", "--compare", "new")
        with self.assertRaisesRegex(server_http.InputError, "poems.jsonl is missing: give names of files"):
            self.run_tool("record", *server, "--out", requests, "--categories", "poems")

    def run_again(self, runs, name):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            server_http.report(server_http.read_runs(runs), name)
        return out.getvalue()

    def test_other_texts_are_shown_with_their_distance_from_plain_decoding(self):
        server = ["--server", FAKE, "--model", "none.gguf"]
        requests, runs = self.folder / "requests.jsonl", self.folder / "runs.json"
        self.run_tool("record", *server, "--out", requests, "--every", 40, "--tokens", 20)
        some = server_http.read_requests(requests)
        shown = {}
        for types in (["plain", "same=--none"], ["plain", "close=--near"], ["plain", "far=--wide"]):
            self.run_tool("run", *server, "--requests", requests, "--json", runs, "--types", *types, "--slots", 1, "--runs", 2)
            table = self.run_tool("ties", runs, *server, "--requests", requests)
            rows = self.rows(table)
            shown[types[1].split("=")[0]] = (self.status, rows[2:])
        self.assertEqual(shown["same"], (0, []))
        for kind, status, gap, verdict in (("close", 0, "0.0100", "near tie"), ("far", 4, "0.1600", "no near tie")):
            self.assertEqual(shown[kind][0], status)
            self.assertEqual(len(shown[kind][1]), sum(map(len, some)), "each text once")
            for row in shown[kind][1]:
                self.assertEqual((row[1], row[3], *row[6:]), (kind, "3", gap, gap, verdict))
        self.run_tool("ties", runs, *server, "--requests", requests, "--epsilon", "0.2")
        self.assertEqual(self.status, 0)
        for model, file, message in (("other.gguf", requests, "measured with the model none.gguf, not with other.gguf"),
                                     ("none.gguf", self.folder / "others.jsonl", "measured with the requests requests.jsonl")):
            with self.assertRaisesRegex(server_http.InputError, message):
                self.run_tool("ties", runs, "--server", FAKE, "--model", model, "--requests", file)
        runs.write_text("{}")
        for read in (lambda: self.run_tool("ties", runs, *server, "--requests", requests), lambda: server_http.read_runs(runs)):
            with self.assertRaisesRegex(server_http.InputError, r"runs.json: KeyError\('runs'\); write the file with"):
                read()

    def test_a_near_tie_is_one_that_plain_decoding_can_tip_over(self):
        for row_by_row, at_once, said in ((0.01, 3.0, "near tie"), (3.0, 0.01, "near tie"), (0.2, -0.2, "near tie"),
                                          (3.0, 7.0, "no near tie"), (-3.0, -7.0, "plain decoding gives the other"),
                                          (None, 0.0, "no near tie"), (0.0, None, "no near tie")):
            self.assertEqual(server_http.verdict(row_by_row, at_once, 0.05), said, (row_by_row, at_once))
        tops = {"completion_probabilities": [{"top_logprobs": [{"id": 1, "logprob": -0.5}, {"id": 2, "logprob": -2.0}]}]}
        self.assertEqual(server_http.margin(tops, {"plain": 1, "other": 2}), 1.5)
        self.assertIsNone(server_http.margin(tops, {"plain": 1, "other": 3}))
        self.assertIsNone(server_http.margin(tops, {"plain": 3, "other": 1}))

    def test_differences_are_those_from_the_plain_run_with_as_many_slots(self):
        def one(kind, slots, tokens):
            return {"type": kind, "slots": slots, "answers": [{"id": "a", "tokens": tokens}]}

        found = server_http.differences({"runs": [one("plain", 1, [1, 2, 3]), one("mod", 1, [1, 2, 4]), one("mod", 1, [1, 2, 4]),
                                                  one("plain", 4, [1, 5, 3]), one("plain", 4, [1, 6, 3])]})
        self.assertEqual([(d["slots"], d["type"], d["at"], d["before"], d["plain"], d["other"]) for d in found],
                         [(1, "mod", 2, [1, 2], 3, 4), (4, "plain", 1, [1], 5, 6)])
        with self.assertRaisesRegex(server_http.InputError, "no plain run with 4 slots"):
            server_http.differences({"runs": [one("plain", 1, [1]), one("mod", 4, [1])]})
        with self.assertRaisesRegex(server_http.InputError, "a: two texts end at different tokens"):
            server_http.differences({"runs": [one("plain", 1, [1, 2]), one("mod", 1, [1])]})

    def test_several_slots_share_one_cache_unless_flags_say_otherwise(self):
        for slots, own in ((1, []), (4, ["--kv-unified"])):
            with unittest.mock.patch("subprocess.Popen") as started, tempfile.TemporaryDirectory() as name:
                options = server_http.parsed(["run", "--server", str(FAKE), "--model", "m", "--requests", "r", "--json", "j"])
                server_http.Server(options, ["--no-kv-unified"], slots, pathlib.Path(name) / "log")
            command = started.call_args.args[0]
            self.assertEqual([flag for flag in command if "kv-unified" in flag], [*own, "--no-kv-unified"])

    def test_each_run_begins_with_a_copy_of_the_history(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for file in ("history", "history.1"):
                (folder / file).write_text(file)
            with server_http.copied_history(folder / "history") as copy:
                self.assertEqual(pathlib.Path(copy + ".1").read_text(), "history.1")
                pathlib.Path(copy).write_text("another one")
            self.assertEqual((folder / "history").read_text(), "history")
            self.assertFalse(pathlib.Path(copy).exists())

    def test_a_server_that_does_not_start_is_an_error_that_names_its_log(self):
        with tempfile.TemporaryDirectory() as name:
            requests = pathlib.Path(name) / "requests.jsonl"
            requests.write_text('{"id":"a","turns":[{"prompt":[1],"output":[2]}]}\n')
            with self.assertRaisesRegex(server_http.InputError, "did not start; its messages are in .*runs.log"):
                self.run_tool("run", "--server", "/bin/false", "--model", "m", "--requests", requests, "--json",
                              pathlib.Path(name) / "runs.json")


if __name__ == "__main__":
    unittest.main()
