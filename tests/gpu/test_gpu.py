# SPDX-License-Identifier: Apache-2.0
"""The tools of bench/gpu without an engine, torch or a GPU."""
import asyncio
import contextlib
import importlib.util
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GPU = ROOT / "bench/gpu"
sys.path.insert(0, str(GPU))
import in_sglang
import loop
import make_requests
import measure
import passes
import script
from script import InputError, Request, Script

TRACES = sorted((ROOT / "bench/traces").glob("*.jsonl"))


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, text, name="file.json"):
        path = self.folder / name
        path.write_text(text)
        return path


class Requests(Folder):
    def test_a_draw_keeps_the_bounds_and_depends_on_the_seed_alone(self):
        warm, chosen = make_requests.choose(TRACES, each=5, shortest=70, longest=200, context=500)
        self.assertEqual((warm, chosen), make_requests.choose(TRACES, each=5, shortest=70, longest=200, context=500))
        self.assertNotEqual(chosen, make_requests.choose(TRACES, each=5, shortest=70, longest=200, context=500, seed=1)[1])
        self.assertEqual(sorted(each.category for each in chosen), sorted([file.stem for file in TRACES] * 5))
        self.assertEqual(len(warm), 4)
        for each in warm + chosen:
            self.assertTrue(70 <= len(each.output) <= 200 and len(each.prompt) <= 500)
        prompts = [tuple(each.prompt) for each in warm + chosen]
        self.assertEqual(len(set(prompts)), len(prompts))

    def test_the_prompt_of_a_turn_is_the_whole_text_before_it(self):
        turns = [{"prompt": [1, 2], "output": [3]}, {"prompt": [4], "output": [5, 6]}]
        file = self.file(json.dumps({"id": "a", "category": "c", "turns": turns}) + "\n", "t.jsonl")
        self.assertEqual(make_requests.turns([file]), [Request("c", [1, 2], [3]), Request("c", [1, 2, 3, 4], [5, 6])])

    def test_both_files_have_the_same_requests(self):
        out, trace = self.folder / "r.json", self.folder / "r.jsonl"
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(make_requests.main([str(TRACES[0]), "--each", "3", "--out", str(out), "--trace", str(trace)]), 0)
        self.assertIn("3 chat; ", said.getvalue())
        _, chosen = script.read(out)
        self.assertEqual(make_requests.turns([trace]), chosen)

    def test_what_cannot_be_used_is_one_line_with_status_2(self):
        for arguments, wanted in (
            (["missing.jsonl"], "missing.jsonl cannot be read"),
            ([str(self.file("{}", "t.jsonl"))], r"t.jsonl:1: KeyError\('turns'\); bench/replay/to_trace.py writes"),
            ([str(TRACES[0]), "--shortest", "9999"], "only 0 turns have 9999 to 700 output tokens"),
        ):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(make_requests.main([*arguments, "--out", str(self.folder / "r.json")]), 2)
            self.assertRegex(said.getvalue(), wanted)
            self.assertEqual(said.getvalue().count("\n"), 1)


class Table(Folder):
    A, B = Request("a", [7, 8], [9, 10]), Request("b", [7], [8, 11, 12, 13])

    def test_a_line_has_the_token_after_each_position(self):
        made = Script([self.A, self.B, self.A])
        table = made.table()
        for request in (self.A, self.B):
            text, line = request.prompt + request.output, table[made.find(request.prompt)]
            self.assertEqual(line[: len(text) - 1], text[1:])
        self.assertEqual(made.find([1]), -1)
        self.assertEqual(set(table[-1]), {0})
        self.assertEqual(len({len(line) for line in table}), 1)

    def test_two_outputs_of_a_prompt_are_refused(self):
        with self.assertRaisesRegex(InputError, "the same prompt and different outputs"):
            Script([self.A, Request("c", [7, 8], [9])])

    def test_a_file_without_requests_is_refused(self):
        def of(prompt, output):
            each = {"category": "c", "prompt": prompt, "output": output}
            return json.dumps({"warm": [each], "requests": [each]})

        for text, wanted in (("{", "JSONDecodeError"), ("{}", "KeyError"), ('{"warm": [], "requests": []}', "no requests"),
                             (of([], [1]), "token ids"), (of([1], [-1]), "token ids"), (of(1, [1]), "TypeError")):
            with self.assertRaisesRegex(InputError, wanted):
                script.read(self.file(text))

    def test_the_vocabulary_has_all_tokens(self):
        make_requests.write(self.folder / "r.json", [self.A], [Request("c", [1], [200])])
        self.assertEqual(script.config("tiny", self.folder / "r.json")["vocab_size"], 256)
        self.assertEqual(script.config("8b", self.folder / "r.json")["vocab_size"], 128256)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "needs torch")
    def test_the_recorded_token_of_each_row_wins(self):
        import torch

        made = Script([self.A, self.B])
        logits = torch.randn(5, 16)
        lines = torch.tensor([made.find([7]), made.find([7, 8]), made.find([7]), -1, made.find([7])])
        script.win(logits, torch.tensor(made.table()), lines, torch.tensor([0, 1, 3, 2, 99]))
        self.assertEqual(logits.argmax(1).tolist(), [8, 9, 13, 0, 0])
        chances = (logits / 0.8).softmax(1)
        self.assertEqual(chances.sort(1).values[:, -2:].tolist(), [[0, 1]] * 5)


class FakeEngine:
    """Yields one token for each request a pass, and `drafted` more if it decodes. A prompt takes a pass and 100 s."""

    def __init__(self, drafted, asynchronous):
        self.drafted, self.asynchronous, self.now, self.most = drafted, asynchronous, 0.0, 0
        self.left = {}
        self.ready = []

    def add(self, name, request):
        self.left[name] = [list(request.output), True]
        self.most = max(self.most, len(self.left))

    def step(self):
        if self.asynchronous:  # a pass begins before the outputs of the last one are handed on
            self.ready.append(self.run())
            return self.ready.pop(0) if len(self.ready) > 1 or not self.left else []
        return self.run()

    def run(self):
        outputs = []
        self.now += 1
        for name, state in list(self.left.items()):
            count = 1 if state[1] else 1 + self.drafted
            self.now += 100 * state[1]
            tokens, state[0], state[1] = state[0][:count], state[0][count:], False
            if not state[0]:
                del self.left[name]
            outputs.append((name, tokens, not state[0]))
        return outputs


class Decode(unittest.TestCase):
    def decode(self, lengths, slots, drafted=0, asynchronous=False):
        requests = [Request("c", [number], list(range(length))) for number, length in enumerate(lengths)]
        engine = FakeEngine(drafted, asynchronous)
        rows = passes.decode(engine.step, engine.add, requests, slots, clock=lambda: engine.now)
        self.assertEqual([row["output"] for row in rows], [each.output for each in requests])
        self.assertEqual(engine.most, min(slots, len(lengths)))
        return rows

    def test_one_slot_counts_all_passes_after_the_first_token(self):
        for row in self.decode([5, 9], 1):
            self.assertEqual((row["tokens"], row["passes"], row["seconds"]), (len(row["output"]) - 1,) * 2 + (row["passes"],))
        self.assertEqual([(row["tokens"], row["passes"]) for row in self.decode([5, 9], 1, drafted=1)], [(4, 2), (8, 4)])

    def test_passes_count_only_while_every_slot_decodes(self):
        rows = self.decode([4, 10, 6], 2)
        # Passes 2 to 4 of the first two; then a prompt; then the last two until one ends.
        self.assertEqual([row["passes"] for row in rows], [3, 8, 5])
        self.assertEqual([row["seconds"] for row in rows], [3, 8, 5])

    def test_no_prompt_is_in_the_time_of_an_engine_that_runs_ahead(self):
        for row in self.decode([6, 6, 12, 9], 1, asynchronous=True):
            self.assertLessEqual(row["seconds"], row["passes"])

    def test_more_slots_have_four_requests_each(self):
        requests = [Request("ab"[number % 2], [number], [1]) for number in range(40)]
        self.assertEqual(passes.some(requests, 1, 1), [0, 1, 2, 3])
        self.assertEqual(len(passes.some(requests, 3, 1)), 6)
        self.assertEqual(len(passes.some(requests, 3, 8)), 32)


class FakeSglang:
    """Sends a message for each pass: one token of each request, as SGLang's scheduler does from its process."""

    def __init__(self):
        self.loop, self.tokenizer_manager = asyncio.new_event_loop(), types.SimpleNamespace(_handle_batch_output=self.handle)
        self.queues, self.asked, self.flushes, self.handled = {}, [], [], 0

    async def handle(self, message):
        self.handled += 1
        for name in message.rids:
            self.queues[name].put_nowait(None)

    async def async_generate(self, *, input_ids, sampling_params, rid, stream):
        self.asked.append((input_ids, sampling_params, rid, stream))
        self.queues[rid] = asyncio.Queue()
        if sampling_params["max_new_tokens"] > 9:
            raise ValueError("too long")
        self.loop.create_task(self.run(rid, sampling_params["max_new_tokens"]))
        return self.stream(rid, sampling_params["max_new_tokens"])

    async def run(self, name, count):
        for token in range(count):
            reason = {"type": "length"} if token == count - 1 else None
            message = types.SimpleNamespace(rids=[name], output_ids=[[token]], finished_reasons=[reason])
            await self.tokenizer_manager._handle_batch_output(message)

    async def stream(self, name, count):
        for _ in range(count):
            await self.queues[name].get()
            yield {}

    def flush_cache(self):
        return types.SimpleNamespace(success=self.flushes.pop(0))


class StepsOfSglang(unittest.TestCase):
    def setUp(self):
        self.engine = FakeSglang()
        self.addCleanup(self.engine.loop.close)
        self.addCleanup(lambda: self.engine.loop.run_until_complete(self.cancel()))

    async def cancel(self):
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def test_each_message_is_a_step(self):
        steps = in_sglang.Steps(self.engine, 0.0)
        requests = [Request("c", [number], list(range(length))) for number, length in enumerate((3, 5, 1))]
        for _ in range(2):  # a name that has come before is another request of the engine
            rows = passes.decode(steps.step, steps.add, requests, 2)
            self.assertEqual([row["output"] for row in rows], [each.output for each in requests])
        self.assertEqual(self.engine.handled, 18)
        self.assertEqual(len({rid for _, _, rid, _ in self.engine.asked}), 6)
        self.assertEqual(self.engine.asked[1][:2], ([1], {"temperature": 0.0, "max_new_tokens": 5, "ignore_eos": True}))
        self.assertTrue(all(stream for *_, stream in self.engine.asked))

    def test_sampling_has_a_seed_of_the_request(self):
        steps = in_sglang.Steps(self.engine, 0.8)
        passes.decode(steps.step, steps.add, [Request("c", [1], [0]), Request("c", [2], [0])], 1)
        self.assertEqual([sampling["sampling_seed"] for _, sampling, _, _ in self.engine.asked], [0, 1])

    def test_a_request_that_fails_ends_the_process(self):
        steps = in_sglang.Steps(self.engine, 0.0)
        steps.add("0", Request("c", [1], [0] * 10))
        with self.assertRaisesRegex(SystemExit, "a request failed: ValueError.'too long'"):
            steps.step()

    def test_the_caches_are_flushed_as_soon_as_sglang_can(self):
        steps = in_sglang.Steps(self.engine, 0.0)
        self.engine.flushes = [False, False, True]
        with unittest.mock.patch("time.sleep") as slept:
            steps.forget()
            self.assertEqual((slept.call_count, self.engine.flushes), (2, []))
            self.engine.flushes = [False] * 100
            with self.assertRaisesRegex(SystemExit, "has not flushed"):
                steps.forget()


class Measure(Folder):
    def measure(self, *arguments, status=0):
        engine = types.SimpleNamespace(__file__=str(ROOT / "tests/gpu/fake_engine.py"), DEFAULT=["plain", "three"],
                                       WAYS={"plain": None, "one": 1, "three": 3}, REPLAYED={"one": "copy:k=1"})
        make_requests.write(self.folder / "r.json", [Request("w", [9], [1])],
                            [Request("ab"[n % 2], [n], [1] * 41) for n in range(4)])
        arguments = ["--requests", self.folder / "r.json", "--json", self.folder / "runs.json", "--slots", "1,2", *arguments]
        out, error, fake = io.StringIO(), io.StringIO(), unittest.mock.patch.dict(measure.ENGINES, vllm=engine)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error), fake:
            self.assertEqual(measure.main([str(each) for each in arguments]), status, error.getvalue())
        return out.getvalue(), error.getvalue()

    def test_the_tables_compare_with_plain_decoding_and_with_the_prediction(self):
        results = [{"strategy": "copy:k=1", "category": name, "mat": 1.5} for name in "ab"]
        predicted = self.file(json.dumps({"results": results}))
        out, _ = self.measure("--ways", "plain", "one", "--prediction", predicted)
        self.assertIn("| plain | 100.0 | 100.0 | 100.0 tokens/s |  | 10.00 | 1 | 0 of 4 |", out)
        self.assertEqual(out.count("| one | 2.00 | 2.00 | 2.00 | 2.00 | 10.00 | 1 | 0 of 4 |"), 2)
        self.assertIn("| one | 2.00 (1.50) | 2.00 (1.50) |", out)
        again, _ = self.measure("--report", self.folder / "runs.json", "--prediction", predicted)
        self.assertEqual(again, out)
        self.assertIn("a message of the engine", (self.folder / "runs.one.log").read_text())

    def test_an_output_that_differs_is_counted_with_status_1(self):
        out, _ = self.measure(status=1)
        self.assertIn("| three | 4.00 | 4.00 | 4.00 | 4.00 | 10.00 | 1 | 1 of 4 |", out)

    def test_a_way_that_fails_leaves_the_others(self):
        out, error = self.measure("--ways", 'broken="fails"', "plain", status=2)
        self.assertRegex(error, r"^measure.py: broken: the engine ended with status 3: no device; see .*runs.broken.log\n$")
        self.assertIn("| plain | 100.0 |", out)

    def test_arguments_that_cannot_be_used_are_one_line_with_status_2(self):
        for arguments, wanted in (
            (["--ways", "four"], "there is no way four; choose from plain, one, three, or give NAME=JSON"),
            (["--ways", "x={"], "--ways: x: "),
            (["--slots", "1,5"], r"--slots 5: .*r.json has only 4 requests"),
            (["--requests", "missing.json"], "missing.json cannot be read"),
            (["--prediction", self.file("{}")], "write it with reprise-replay"),
            (["--report", "missing.json"], "missing.json"),
        ):
            out, error = self.measure(*arguments, status=2)
            self.assertRegex(error, wanted)
            self.assertEqual((out, error.count("\n")), ("", 1))


class FakePasses:
    def __init__(self):
        self.widths = []

    def run(self, lines, context):
        self.widths.append([len(line) for line in lines])
        return 0.0


@unittest.skipUnless(importlib.util.find_spec("numpy"), "needs numpy")
class Loop(unittest.TestCase):
    TEXT = (1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 9, 1, 2, 3)

    def test_the_longest_match(self):
        import numpy as np

        ids = np.array(self.TEXT, np.int32)
        self.assertEqual(loop.longest_match(ids, len(ids), 16, latest=True), (3, 9))
        self.assertEqual(loop.longest_match(ids, len(ids), 16, latest=False), (3, 3))
        self.assertEqual(loop.longest_match(ids, 9, 2, latest=True), (2, 3))
        self.assertEqual(loop.longest_match(ids, 6, 16, latest=True), (0, 0))
        self.assertEqual(loop.Lookup().draft(ids, len(ids)).tolist(), [4, 5, 6, 1, 2])
        self.assertEqual(loop.Lookup().draft(ids, 7).tolist(), [])

    def test_the_adaptive_lookup_drafts_what_pays(self):
        import numpy as np

        ids = np.array([*range(50), *range(10)], np.int32)
        drafter = loop.Adaptive(0.1)
        self.assertEqual(len(drafter.draft(ids, 51)), 1)  # a match of 1: 0.3 pays, 0.09 does not
        self.assertEqual(len(drafter.draft(ids, 59)), 10)  # a match of 9: 0.8^10 pays, 0.8^11 does not
        for _ in range(200):
            drafter.learn(10, 0)
        self.assertEqual(len(drafter.draft(ids, 59)), 0)
        for _ in range(200):
            drafter.learn(10, 10)
        self.assertEqual(len(drafter.draft(ids, 59)), 31)

    def test_the_recording_is_what_is_committed(self):
        prompt, output = list(self.TEXT), [4, 5, 6, 7, 1, 2, 3, 4]
        for drafter in (loop.Lookup(), loop.Adaptive(0.01)):
            engine = FakePasses()
            _, passes, rows = loop.by_lookup(drafter, engine, prompt, output)
            self.assertEqual(passes, len(engine.widths))
            self.assertEqual(rows, sum(width - 1 for (width,) in engine.widths))
            self.assertLess(passes, len(output))
        self.assertEqual(loop.plain(FakePasses(), prompt, output), (0.0, 8, 0))
        requests = [Request("c", prompt, output[:length]) for length in (3, 5, 8)]
        self.assertEqual(loop.eight(FakePasses(), None, requests, 16)["passes"], 2)


class Help(unittest.TestCase):
    def test_help_needs_no_engine(self):
        for name in ("make_requests", "measure", "loop"):
            done = subprocess.run([sys.executable, str(GPU / f"{name}.py"), "--help"], capture_output=True, text=True,
                                  timeout=60, env={"COLUMNS": "100"}, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([line for line in done.stdout.splitlines() if len(line) > 100], [])


if __name__ == "__main__":
    unittest.main()
