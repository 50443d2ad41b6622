# SPDX-License-Identifier: Apache-2.0
"""The mutants that tests/mutation/mutate.py finds in code, and its refusals. Compiles nothing."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import mutate  # noqa: E402


def changes(text):
    """The mutants of a text as (operator, old, new), in order of operator."""
    return [(name, text[begin:end], new) for name, begin, end, new in mutate.changes_of(mutate.code_of(text))]


class Mutants(unittest.TestCase):
    def test_each_operator(self):
        self.assertEqual(changes("if (a < b) f(x);"),
                         [("relational", "<", "<="), ("condition", "a < b", None), ("statement", "f(x);", ";")])
        self.assertEqual(changes("return a + b * c;"), [("arithmetic", "+", "-"), ("arithmetic", "*", "/")])
        self.assertEqual(changes("return a && !b;"), [("logical", "&&", "||"), ("negation", "!", "")])
        self.assertEqual(changes("return x >> y;"), [("bitwise", ">>", "<<")])
        self.assertEqual(changes("return true;"), [("truth", "true", "false")])
        self.assertEqual(changes("return std::min(a, b);"), [("min-max", "min", "max")])
        self.assertEqual(changes("return 7;"), [("constant", "7", "8"), ("constant", "7", "6")])
        self.assertEqual(changes("return 0U;"), [("constant", "0", "1")])
        self.assertIn(("statement", "++x;", ";"), changes("{ ++x; }"))
        self.assertIn(("statement", "a.b(c)[d] = e;", ";"), changes("{ a.b(c)[d] = e; }"))

    def test_text_that_has_none(self):
        for text in ("// a < b\n", "/* 1 + 2\n true */", 'f("a < 1 && true");', "#include <a>\n#if A > 1\n",
                     "static_assert(sizeof(int) == 4, \"x\");", "REPRISE_EXPECTS(a < (b + 1));", "std::vector<int> v2;",
                     "template <int N = 3> T&& f(T&& x);", "uint32_t* p;", "requires A && B {", "auto x = 0x1f;"):
            self.assertEqual(changes(text), [], text)

    def test_places_stay_the_same(self):
        text = '/// "quoted"\nint a = f(\'"\') + 1;  // it\'s\nint b = c - d;\n'
        self.assertEqual(len(mutate.code_of(text)), len(text))
        self.assertEqual(changes(text)[:2], [("arithmetic", "+", "-"), ("arithmetic", "-", "+")])

    def test_the_tests_named_after_a_header_come_after_its_own(self):
        tests = mutate.tests_by_header(6)["reprise/loop/session.hpp"]
        self.assertEqual(tests[0], "loop/session.test.cpp")
        self.assertEqual(set(tests[1:5]),
                         {f"loop/session_{name}.test.cpp" for name in ("checkpoints", "rebase", "stops", "trees")})

    def test_the_end_of_a_declaration_is_not_drawn(self):
        options = mutate.options_of(["--header", "reprise/core/datastore.hpp", "--count", "999"])
        drawn, total = mutate.drawn_mutants(options, mutate.tests_by_header(6))
        self.assertNotIn("noexcept;", [mutant.old for mutant in drawn])
        self.assertEqual(len(drawn), total)

    def test_a_draw_depends_on_its_seed_and_grows(self):
        tests = mutate.tests_by_header(6)
        self.assertEqual(tests["reprise/core/draft.hpp"][0], "core/draft.test.cpp")

        def drawn(*arguments):
            return mutate.drawn_mutants(mutate.options_of(arguments), tests)[0]

        ten = drawn("--count", "10")  # fewer, if some of them are the ends of declarations
        self.assertEqual(drawn("--count", "20")[: len(ten)], ten)
        self.assertNotEqual(drawn("--count", "20"), drawn("--count", "20", "--seed", "2"))
        only = drawn("--header", "reprise/core/limits.hpp", "--count", "9")
        self.assertEqual({mutant.header for mutant in only}, {"reprise/core/limits.hpp"})


class Refusals(unittest.TestCase):
    def call(self, *arguments):
        done = subprocess.run([sys.executable, mutate.__file__, *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_wrong_options(self):
        self.assertEqual(self.call("--count", "0")[0], 2)
        self.assertIn("there is no folder include/reprise/nowhere", self.call("--folders", "nowhere")[1])
        status, output = self.call("--header", "reprise/core/nowhere.hpp")
        self.assertEqual(status, 1)
        self.assertIn("no header of core loop engine that a test includes has this name", output)

    def test_a_damaged_file_of_results(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "results.jsonl"
            file.write_text('{"identity": "a", "verdict": "killed"}\n{"iden\n', encoding="utf-8")
            status, output = self.call("--results", str(file))
        self.assertEqual(status, 1)
        self.assertIn("results.jsonl:2: this line is no result", output)


if __name__ == "__main__":
    unittest.main()
