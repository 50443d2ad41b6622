# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/draft_model that need no torch."""
import ast
import itertools
import json
import pathlib
import random
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench/draft_model"))
import texts

PROMPTS = ROOT / "bench/prompts"
CODE = "def add(values):\n    total = 0\n    for each in values:\n        total += each\n    return total"


class Prompts(unittest.TestCase):
    def test_held_out_sessions_are_every_second_one_of_each_category(self):
        ours, others = texts.bundled(PROMPTS, held_out=False), texts.bundled(PROMPTS, held_out=True)
        self.assertEqual(len(ours), len(others))
        self.assertEqual({category for category, _ in ours}, {category for category, _ in others})
        self.assertFalse({turn for _, turn in ours} & {turn for _, turn in others})

    def test_a_folder_without_prompts_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(texts.InputError, "no prompts; give the folder bench/prompts"):
                texts.bundled(pathlib.Path(folder), held_out=False)
            for line in ("no JSON", json.dumps({"category": "chat", "turns": []}), "[]"):
                (pathlib.Path(folder) / "chat.jsonl").write_text(line + "\n")
                with self.assertRaisesRegex(texts.InputError, "chat.jsonl, line 1: no session"):
                    texts.bundled(pathlib.Path(folder), held_out=False)

    def test_paragraphs_are_joined_and_bounded(self):
        found = texts.paragraphs(["one two\nthree\n\nshort\n\nvery " + "long " * 9, "one two\nthree"], 10, 30)
        self.assertEqual(found, ["one two three"])

    def test_the_text_at_hand_is_enough(self):
        self.assertGreater(len(texts.texts_at_hand()), 500)
        code = texts.code_at_hand()
        self.assertGreater(len(code), 100)
        self.assertTrue(all(5 <= source.count("\n") + 1 <= 16 for source in code))
        self.assertEqual([source for source in code if not ast.parse(source)], [])

    def test_an_edit_renames_the_commonest_name(self):
        asked = texts.edit(CODE, random.Random(1))
        self.assertRegex(asked, r"^Rename total to [a-z]+ in this code\.")
        self.assertIn(CODE, asked)
        self.assertNotIn("to total in", asked)
        self.assertIsNone(texts.edit("def one(): pass", random.Random(1)))

    def test_a_name_that_the_code_has_is_not_the_new_one(self):
        taken = CODE + "".join(f"\n{name}" for name in texts.NAMES[1:])
        self.assertIn("to value in", texts.edit(taken, random.Random(1)))

    def test_prompts_go_on_without_end_and_use_each_known_one_once(self):
        made = list(itertools.islice(texts.prompts(["A", "B"], ["the text"], [CODE], random.Random(1)), 40))
        self.assertEqual(sorted(each for each in made if len(each) == 1), ["A", "B"])
        self.assertEqual(sum(each.startswith("Rename") for each in made), 19)
        self.assertEqual(sum(each.endswith("\n\nthe text") for each in made), 19)

    def test_the_chat_template(self):
        self.assertEqual(
            texts.chat("Hi"),
            "<|im_start|>system\nYou are a helpful AI assistant.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n",
        )


class Acceptance(unittest.TestCase):
    def test_a_draft_is_accepted_up_to_its_first_wrong_token(self):
        self.assertEqual(texts.agreed([1, 2, 3], [1, 2, 3]), 3)
        self.assertEqual(texts.agreed([1, 9, 3], [1, 2, 3]), 1)
        self.assertEqual(texts.agreed([9, 2, 3], [1, 2, 3]), 0)
        self.assertEqual(texts.agreed([], [1]), 0)

    def test_shares_by_position_are_among_the_drafts_that_were_right_until_there(self):
        lengths = [(3, 3), (3, 1), (3, 0), (1, 1)]  # the last one ends with the text
        self.assertEqual(texts.by_position(lengths, 4), [0.75, 0.5, 1.0, 0.0])
        self.assertEqual(texts.by_position([], 2), [0.0, 0.0])

    def test_every_few_rows_validate(self):
        self.assertEqual(texts.split(range(7), 3), ([1, 2, 4, 5], [0, 3, 6]))


if __name__ == "__main__":
    unittest.main()
