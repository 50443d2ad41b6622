# SPDX-License-Identifier: Apache-2.0
"""Tests of coverage.py, with counts as gcov writes them."""

import pathlib
import tempfile
import unittest

import coverage


def branch(count, throw=False):
    return {"count": count, "throw": throw, "fallthrough": False}


def function(name, line, column, count=1):
    return {"name": name, "demangled_name": name, "start_line": line, "start_column": column, "execution_count": count}


def line(number, branches, name=None, count=1):
    entry = {"line_number": number, "count": count, "branches": [branch(taken) for taken in branches]}
    return entry | ({"function_name": name} if name else {})


def header(*objects):
    found = coverage.Header()
    for functions, lines in objects:
        found.add({"functions": functions, "lines": lines})
    return found


class Decisions(unittest.TestCase):
    def test_calls_are_left_out(self):
        call = [branch(5), branch(0, throw=True)]
        self.assertEqual(coverage.decisions([branch(3), branch(0)] + call + [branch(1), branch(2)]), [3, 0, 1, 2])
        self.assertEqual(coverage.decisions(call), [])


class Merging(unittest.TestCase):
    def test_instances_of_a_template_add_up(self):
        functions = [function("f<int>", 1, 5), function("f<long>", 1, 5)]
        found = header((functions, [line(2, [3, 0], "f<int>"), line(2, [0, 4], "f<long>")]))
        self.assertEqual(found.branches()[2], [3, 4])
        self.assertEqual(found.lines[2], 2)

    def test_object_files_add_up(self):
        one = ([function("f", 1, 5)], [line(2, [3, 0], "f")])
        two = ([function("f", 1, 5), function("g", 1, 5)], [line(2, [0, 4], "f"), line(2, [1, 0], "g")])
        self.assertEqual(header(one, two).branches()[2], [4, 4])

    def test_of_instances_with_fewer_branches_nothing_is_counted(self):
        functions = [function("f<int>", 1, 5), function("f<long>", 1, 5)]
        found = header((functions, [line(2, [3, 0], "f<int>"), line(2, [0, 4, 0, 4], "f<long>")]))
        self.assertEqual(found.branches()[2], [0, 4, 0, 4])

    def test_two_functions_at_a_line_keep_their_branches(self):
        functions = [function(name, 2, column) for column in (5, 30) for name in (f"a{column}", f"b{column}")]
        found = header((functions, [line(2, [3, 0], "a5"), line(2, [0, 4], "a30")]))
        self.assertEqual(found.branches()[2], [3, 0, 0, 4])

    def test_instances_that_gcov_lists_one_after_the_other_add_up(self):
        functions = [function("l<int>", 1, 5), function("l<long>", 1, 5)]
        found = header((functions, [line(2, [3, 0, 2, 0, 0, 0, 0, 7])]))
        self.assertEqual(found.branches()[2], [3, 0, 2, 7])

    def test_an_instance_without_the_line_does_not_count(self):
        three = [function("l<int>", 1, 5), function("l<long>", 1, 5), function("l<char>", 1, 5)]
        found = header((three, [line(2, [3, 0, 2, 0, 0, 0, 0, 7])]), (three, [line(2, [1, 1, 1, 0])]))
        self.assertEqual(found.branches()[2], [4, 1, 3, 7])


class Explained(unittest.TestCase):
    def entries(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "explained.txt"
            path.write_text(text, encoding="utf-8")
            return coverage.read_explained(path)

    def test_entries_have_a_number_and_a_reason(self):
        self.assertEqual(self.entries("# all\n\nloop/a.hpp: 2: if (a: b)\n  a reason\n  in two lines\n"),
                         {("loop/a.hpp", "if (a: b)"): 2})
        for wrong in ("loop/a.hpp: 2: if (a)\n", "loop/a.hpp: 2: if (a)\nloop/a.hpp: 2: if (b)\n  a reason\n",
                      "loop/a.hpp: if (a)\n  a reason\n", "loop/a.hpp: 0: if (a)\n  a reason\n", "  a reason\n",
                      "loop/a.hpp: 1: if (a)\n  a reason\nloop/a.hpp: 1: if (a)\n  a reason\n"):
            with self.assertRaises(coverage.Fault, msg=wrong):
                self.entries(wrong)

    def test_only_the_explained_branches_may_be_missed(self):
        found = [("loop/a.hpp", 7, "if (a)", [1], 2), ("loop/a.hpp", 9, "if (a)", [0, 1], 2)]
        self.assertEqual(coverage.compare(found, {("loop/a.hpp", "if (a)"): 3}), [])
        self.assertEqual(len(coverage.compare(found, {("loop/a.hpp", "if (a)"): 2})), 2, "both lines are named")
        self.assertEqual(len(coverage.compare(found, {})), 2)
        self.assertIn("lower the number", coverage.compare(found, {("loop/a.hpp", "if (a)"): 4})[0])
        self.assertEqual(len(coverage.compare([], {("loop/a.hpp", "if (a)"): 1})), 1)


class Table(unittest.TestCase):
    def test_a_share_is_rounded_down(self):
        self.assertEqual(coverage.percent(9999, 10000), "99.9")
        self.assertEqual(coverage.percent(0, 0), "-")

    def test_layers_are_folders(self):
        found = {"loop/a.hpp": header(([function("f", 1, 5)], [line(2, [3, 0], "f"), line(3, [], "f", 0)])),
                 "top.hpp": header(([function("g", 1, 5)], [line(2, [3, 1], "g")]))}
        self.assertEqual(coverage.totals(found), {"loop": [2, 1, 2, 1], "top": [1, 1, 2, 2], "all": [3, 2, 4, 3]})


if __name__ == "__main__":
    unittest.main()
