#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: makes small faults in the headers, one at a time, and reports which of them no test finds.

Each fault (mutant) is made in a copy of include/. A few test files that include the changed header are compiled,
without optimisation, and run with a time limit, its own test first. Undefined behaviour ends a test at once: the tests
are compiled with UBSan, the assertions of libstdc++ and REPRISE_CONTRACTS=2. A mutant is

  killed        if a test fails, crashes, or exceeds the time limit, or if a static_assert of a test fails
  survived      if every one of these tests passes
  not compiled  if the header or a test does not compile otherwise; it does not count

The rate is killed / (killed + survived). Every result is appended to a file at once, so an interrupted run continues
where it stopped. A result counts again only while the text of its header is the same.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import math
import os
import pathlib
import queue
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Tests of these folders need more than the library, or take longer than a mutant may.
OTHER_TESTS = ("c/", "common/", "compile_fail/", "consumer/", "digests/", "fuzz/", "house/", "index_tool/", "llama/",
               "mlx/", "property/", "replay/", "server/")
# Tests of all layers in which every allocation of a session fails once.
SESSION_ALLOCATIONS = "property/allocation.test.cpp"
MEMORY = 3 << 30
# A trap needs no library. The checks of each pointer are left out, because a test takes longer to compile with them.
SANITIZE = ["-fsanitize=shift,signed-integer-overflow,integer-divide-by-zero,bounds,bool,enum,float-cast-overflow,return",
            "-fsanitize-undefined-trap-on-error", "-D_GLIBCXX_ASSERTIONS", "-DREPRISE_CONTRACTS=2"]

# Each operator: name, pattern in the code without comments and literals, replacements of the whole match.
SWAPS = [
    ("relational", r" (<=|>=|<|>|==|!=) ", {"<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"], "==": ["!="], "!=": ["=="]}),
    ("arithmetic", r" (\+=|-=|\+|-|\*|/|%) ",
     {"+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"], "+=": ["-="], "-=": ["+="]}),
    ("bitwise", r" (<<|>>|&|\||&=|\|=) ", {"<<": [">>"], ">>": ["<<"], "&": ["|"], "|": ["&"], "&=": ["|="], "|=": ["&="]}),
    ("logical", r" (&&|\|\|) ", {"&&": ["||"], "||": ["&&"]}),
    ("step", r"(\+\+|--)", {"++": ["--"], "--": ["++"]}),
    ("truth", r"\b(true|false)\b", {"true": ["false"], "false": ["true"]}),
    ("min-max", r"\bstd::(min|max)\b", {"min": ["max"], "max": ["min"]}),
]
CONSTANT = re.compile(r"(?<![\w.'])(\d+)(?=[uUlLzZ]*\b)(?![\w]*[.'x])")
CONDITION = re.compile(r"\b(?:if|while) \(")
NEGATION = re.compile(r"(?<=[(\s])!(?=[\w(])")
CALL = r"(?:\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))"
STATEMENT = re.compile(
    r"(?<=[;{})])(\s+)((?:continue|break|(?:\+\+|--)?[A-Za-z_][\w:]*(?:(?:\.|->)\w+|\[[^\]]*\]|" + CALL
    + r")*(?:\s[-+*/|&]?=\s[^;{}]*)?);)")

# Ends of declarations, which STATEMENT takes for statements: without them the code is the same. They stay in the draw,
# because every draw of a seed would change without them, but they are never judged or counted.
NO_STATEMENTS = ("noexcept;",)

Mutant = collections.namedtuple("Mutant", "header line column operator old new begin end identity")


class Failure(Exception):
    """A sentence for the user."""


def blanked(text, begin, end):
    return text[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + text[end:]


def bracket_end(text, begin):
    """The position after the bracket that closes the one at `begin`."""
    pairs = {"(": ")", "<": ">", "{": "}"}
    depth = 0
    for at in range(begin, len(text)):
        depth += (text[at] == text[begin]) - (text[at] == pairs[text[begin]])
        if depth == 0:
            return at + 1
    return len(text)


def code_of(text):
    """The text with blanks in place of comments, literals, directives, static_asserts, template heads and concepts."""
    pattern = r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*"
    for found in list(re.finditer(pattern, text, re.S | re.M)):
        text = blanked(text, *found.span())
    for head, bracket in ((r"\bstatic_assert ?\(", "("), (r"\bREPRISE_EXPECTS\(", "("), (r"\btemplate <", "<"),
                          (r"\bnoexcept\(", "("), (r"\balignas\(", "(")):
        for found in list(re.finditer(head, text)):
            text = blanked(text, found.start(), bracket_end(text, text.index(bracket, found.start())))
    for found in list(re.finditer(r"\bconcept \w+ =[^;{]*(?:\{.*?\}[^;{]*)*;|\brequires [^{;]*", text, re.S)):
        text = blanked(text, *found.span())
    return text


def changes_of(code):
    """Yields (operator, begin, end, new text) for every mutant of the code."""
    for name, pattern, replacements in SWAPS:
        for found in re.finditer(pattern, code):
            for new in replacements[found[1]]:
                yield name, *found.span(1), new
    for found in re.finditer(CONSTANT, code):
        value = int(found[1])
        for new in [value + 1] + ([value - 1] if value > 0 else []):
            yield "constant", *found.span(1), str(new)
    for found in re.finditer(CONDITION, code):
        end = bracket_end(code, found.end() - 1)
        # A condition with a declaration cannot be negated in this way.
        if not re.search(r"[;{]|[^=<>!]=[^=]", code[found.end():end - 1]):
            yield "condition", found.end(), end - 1, None
    for found in re.finditer(NEGATION, code):
        yield "negation", *found.span(), ""
    for found in re.finditer(STATEMENT, code):
        yield "statement", *found.span(2), ";"


def mutants_of(header):
    """Every mutant of a header, given by its path below include/."""
    text = (ROOT / "include" / header).read_text(encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    made = []
    for operator, begin, end, new in changes_of(code_of(text)):
        old = text[begin:end]
        new = f"!({old})" if new is None else new
        line = text.count("\n", 0, begin) + 1
        column = begin - text.rfind("\n", 0, begin)
        identity = f"{header}:{line}:{column}:{operator}:{new}:{digest}"
        made.append(Mutant(header, line, column, operator, " ".join(old.split()), new, begin, end, identity))
    return made


def includes_of(path):
    return set(re.findall(r'^#include "(reprise/[^"]+)"', path.read_text(encoding="utf-8"), re.M))


def reached_from(included, graph):
    """The headers that `included` lead to, each with its distance: 0 for those of `included`."""
    distance = dict.fromkeys(included, 0)
    waiting = collections.deque(included)
    while waiting:
        header = waiting.popleft()
        for further in graph.get(header, ()):
            if further not in distance:
                distance[further] = distance[header] + 1
                waiting.append(further)
    return distance


def counts_allocations(test):
    """True if the test replaces operator new, and thus needs support/allocation_counter.cpp."""
    return ".allocation." in test or test == SESSION_ALLOCATIONS


def tests_by_header(most):
    """For each header the test files that include it: its own test first, then those of its layer that are named after
    it (session_trees for session), then those of its layer, then those that include it through other headers, the
    nearest first. A header that no test includes directly has none. Tests that count and fail allocations come last, in
    addition to `most`: those of the header's layer that are named after it, and the one of a session."""
    graph = {path.relative_to(ROOT / "include").as_posix(): sorted(includes_of(path))
             for path in sorted((ROOT / "include").rglob("*.hpp"))}
    found = collections.defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("*.test.cpp")):
        name = path.relative_to(ROOT / "tests").as_posix()
        if name == SESSION_ALLOCATIONS or not name.startswith(OTHER_TESTS):
            for header, distance in reached_from(sorted(includes_of(path)), graph).items():
                found[header].append((distance, name))
    chosen = {}
    for header, tests in found.items():
        stem = pathlib.Path(header).stem
        layer = header.split("/")[1] + "/"
        allocating = [name for _, name in sorted(tests)
                      if name == SESSION_ALLOCATIONS or name.startswith(f"{layer}{stem}.allocation.")]
        tests = [test for test in tests if not counts_allocations(test[1])]
        if not tests or min(tests)[0] > 0:
            continue

        def order(test):
            distance, path = test
            name = pathlib.Path(path).name
            near = path.startswith(layer)
            own = distance == 0 and name.startswith(stem + ".")
            named_after = near and name.startswith(stem + "_")
            return not own, not named_after, distance > 0, not near, test

        chosen[header] = [name for _, name in sorted(tests, key=order)[:most]] + allocating
    return chosen


class Workshop:
    """A copy of include/ and the programs made with it. One thread uses it at a time."""

    def __init__(self, folder, options, common):
        self.folder = folder
        self.options = options
        self.common = common  # what precompile() has made
        shutil.copytree(ROOT / "include", folder / "include")

    def execute(self, command, seconds):
        """Returns the status and the output; None for the status after `seconds` of processor time, or after six times
        as long on the clock. On a busy machine, a test thus gets no less time than on another."""
        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        environment = dict(os.environ, REPRISE_PROPERTY_CASES="200")
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=6 * seconds,
                                  preexec_fn=limit, env=environment, cwd=self.folder, check=False)
        except subprocess.TimeoutExpired:
            return None, ""
        status = None if done.returncode == -signal.SIGXCPU else done.returncode
        return status, done.stdout.decode(errors="replace")

    def run_test(self, test, include=None):
        """Returns "passed", "failed", "time" or "not compiled", and the output. `include`: the headers (the copy)."""
        program = self.folder / "program"
        counter = [str(self.common / "allocation_counter.o")] if counts_allocations(test) else []
        command = [*compile_command(self.options.compiler, include or self.folder / "include"),
                   "-include", str(self.common / "test_header.hpp"), str(ROOT / "tests" / test), *counter,
                   "-lgmock", "-lgtest", "-lgtest_main", "-lpthread", "-o", str(program)]
        status, output = self.execute(command, 180)
        if status != 0:
            asserted = re.search("static assertion failed|static_assert failed", output)  # g++, clang
            return ("failed" if asserted else "not compiled"), output
        status, output = self.execute([str(program), "--gtest_brief=1"], self.options.timeout)
        return ("time" if status is None else "passed" if status == 0 else "failed"), output

    def header_compiles(self, header):
        command = compile_command(self.options.compiler, self.folder / "include")
        status, _ = self.execute([*command, "-fsyntax-only", "-x", "c++", str(self.folder / "include" / header)], 60)
        return status == 0

    def judge(self, mutant, tests, sound):
        """Returns (verdict, reason). `sound(test)`: whether the test passes without a mutant."""
        path = self.folder / "include" / mutant.header
        text = path.read_text(encoding="utf-8")
        count = 0
        try:
            path.write_text(text[:mutant.begin] + mutant.new + text[mutant.end:], encoding="utf-8")
            for test in tests:
                if not sound(test):
                    continue
                result, output = self.run_test(test)
                # A test also fails to compile if the header does.
                if count == 0 and "error:" in output and not self.header_compiles(mutant.header):
                    return "not compiled", "header"
                if result == "not compiled":
                    return "not compiled", test
                if result != "passed":
                    return "killed", f"{test}: {result}"
                count += 1
            return "survived", f"{count} test files"
        finally:
            path.write_text(text, encoding="utf-8")


def read_results(path):
    found = {}
    if path.is_file():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                entry = json.loads(line)
                found[entry["identity"]] = entry
            except (ValueError, KeyError, TypeError):
                raise Failure(f"{path}:{number}: this line is no result; remove it, or name another file with --results")
    return found


def summary_of(entries):
    count = collections.Counter(entry["verdict"] for entry in entries)
    counted = count["killed"] + count["survived"]
    return {
        "mutants": len(entries),
        "killed": count["killed"],
        "survived": count["survived"],
        "not_compiled": count["not compiled"],
        "rate": round(count["killed"] / counted, 4) if counted else None,
    }


def grouped(entries, member):
    groups = collections.defaultdict(list)
    for entry in entries:
        groups[entry[member]].append(entry)
    return {name: summary_of(group) for name, group in sorted(groups.items())}


def report_text(entries):
    lines = []
    for member in ("header", "operator"):
        lines.append(f"{member:44} {'killed':>8} {'survived':>8} {'not compiled':>12}")
        for name, row in grouped(entries, member).items():
            lines.append(f"{name:44} {row['killed']:8} {row['survived']:8} {row['not_compiled']:12}")
        lines.append("")
    for entry in sorted(entries, key=lambda e: (e["header"], e["line"])):
        if entry["verdict"] == "survived":
            lines.append(f"survived: include/{entry['header']}:{entry['line']}:{entry['column']}: {entry['operator']}: "
                         f"{entry['old']!r} -> {entry['new']!r} ({entry['reason']})")
    row = summary_of(entries)
    rate = "no mutant counts" if row["rate"] is None else f"{100 * row['rate']:.1f}% killed"
    lines.append(f"{row['mutants']} mutants: {row['killed']} killed, {row['survived']} survived, "
                 f"{row['not_compiled']} not compiled; {rate}")
    return "\n".join(lines)


def compile_command(compiler, include):
    return [*compiler.split(), "-std=c++20", "-O0", "-w", *SANITIZE, f"-I{include}", f"-I{ROOT}/tests", f"-I{ROOT}/bench", f"-I{ROOT}",
            f'-DREPRISE_SOURCE_DIR="{ROOT}"']


def precompile(folder, compiler):
    """Compiles for all tests at once what no mutant changes: the headers of GoogleTest and of the standard library, for
    -include, and the object that counts allocations."""
    standard = {line for path in (ROOT / "include").rglob("*.hpp")
                for line in re.findall(r"^#include <\w+>", path.read_text(encoding="utf-8"), re.M)}
    header = folder / "test_header.hpp"
    header.write_text("\n".join(["#include <gmock/gmock.h>", "#include <gtest/gtest.h>", *sorted(standard), ""]),
                      encoding="utf-8")
    clang = "clang" in compiler
    output = folder / f"test_header.hpp.{'pch' if clang else 'gch'}"
    counter = ROOT / "tests/support/allocation_counter.cpp"
    templates = ["-fpch-instantiate-templates"] if clang else []
    for what, arguments in (("the headers of GoogleTest", [*templates, "-x", "c++-header", str(header), "-o", str(output)]),
                            (counter.name, ["-c", str(counter), "-o", str(folder / "allocation_counter.o")])):
        done = subprocess.run([*compile_command(compiler, ROOT / "include"), *arguments], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise Failure(f"{compiler} cannot compile {what}: {done.stderr.strip().splitlines()[:1]}")


def drawn_mutants(options, tests):
    headers = sorted(h for h in tests if h.startswith(tuple(f"reprise/{folder}/" for folder in options.folders)))
    if options.header:
        headers = [h for h in headers if h in options.header]
        for name in sorted(set(options.header) - set(headers)):
            raise Failure(f"{name}: no header of {' '.join(options.folders)} that a test includes has this name")
    every = [mutant for header in headers for mutant in mutants_of(header)]
    random.Random(options.seed).shuffle(every)
    counted = [mutant.old not in NO_STATEMENTS for mutant in every]
    return [mutant for mutant, counts in zip(every[:options.count], counted) if counts], sum(counted)


def run(options):
    tests = tests_by_header(options.most_tests)
    drawn, total = drawn_mutants(options, tests)
    if options.list:
        for mutant in drawn:
            print(f"include/{mutant.header}:{mutant.line}:{mutant.column}: {mutant.operator}: {mutant.old!r} -> {mutant.new!r}")
        return 0
    results = read_results(options.results)
    known = {key: entry for key, entry in results.items() if not (options.again and entry["verdict"] == "survived")}
    waiting = [mutant for mutant in drawn if mutant.identity not in known]
    options.results.parent.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="reprise-mutants-") as temporary, \
            open(options.results, "a", encoding="utf-8") as kept, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        folder = pathlib.Path(temporary)
        if waiting:
            precompile(folder, options.compiler)
        workshops = queue.Queue()
        for number in range(options.jobs):
            workshops.put(Workshop(folder / str(number), options, folder))
        sound = {}

        def judged(mutant):
            if time.monotonic() - begun > options.seconds:
                return None
            workshop = workshops.get()

            def is_sound(test):
                if test not in sound:
                    result, output = workshop.run_test(test, ROOT / "include")
                    if result not in ("passed", "time"):
                        raise Failure(f"tests/{test} does not pass without a mutant ({result}):\n{output[-2000:]}")
                    sound[test] = result == "passed"
                    if not sound[test]:
                        print(f"left out: tests/{test} takes longer than --timeout without a mutant", file=sys.stderr)
                return sound[test]

            try:
                return mutant, *workshop.judge(mutant, tests[mutant.header], is_sound)
            finally:
                workshops.put(workshop)

        done = 0
        for answer in pool.map(judged, waiting):
            if answer is None:
                continue
            mutant, verdict, reason = answer
            entry = dict(mutant._asdict(), verdict=verdict, reason=reason)
            del entry["begin"], entry["end"]
            known[mutant.identity] = entry
            kept.write(json.dumps(entry) + "\n")
            kept.flush()
            done += 1
            print(f"{done}/{len(waiting)} {mutant.header}:{mutant.line} {mutant.operator}: {verdict} ({reason})", file=sys.stderr)
    entries = [known[mutant.identity] for mutant in drawn if mutant.identity in known]
    left = len(drawn) - len(entries)
    if options.format == "json":
        report = {"seed": options.seed, "possible": total, "drawn": len(drawn), "left": left, **summary_of(entries),
                  "headers": grouped(entries, "header"), "operators": grouped(entries, "operator"), "results": entries}
        print(json.dumps(report, indent=1))
    else:
        print(report_text(entries))
        print(f"{total} mutants are possible, {len(drawn)} drawn with seed {options.seed}, {left} left for another run")
    rate = summary_of(entries)["rate"]
    return 1 if rate is not None and 100 * rate < options.at_least else 0


def options_of(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit status: 0; 1 if the rate is below --at-least, or a test fails without a mutant; 2 for wrong options.")
    parser.add_argument("--count", type=int, default=100, help="mutants to draw (100)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (1); a larger --count adds to the same draw")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no mutant after this time (no limit)")
    parser.add_argument("--folders", nargs="+", default=["core", "loop", "engine"], metavar="FOLDER",
                        help="folders of include/reprise (core loop engine)")
    parser.add_argument("--header", action="append", metavar="NAME", help="only this header, such as reprise/core/draft.hpp; repeatable")
    parser.add_argument("--most-tests", type=int, default=6, help="test files for each header, its own first (6)")
    parser.add_argument("--timeout", type=float, default=10,
                        help="processor seconds for each test program; a test that takes longer without a mutant is left out (10)")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time (2)")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"), help="compiler and further flags ($CXX or g++)")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build/mutation/results.jsonl",
                        help="file with all results (build/mutation/results.jsonl)")
    parser.add_argument("--again", action="store_true", help="judge the survivors again, after a test was added")
    parser.add_argument("--at-least", type=float, default=0, metavar="PERCENT", help="exit status 1 below this rate (0)")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="form of the report (text)")
    parser.add_argument("--list", action="store_true", help="print the drawn mutants, and make none")
    options = parser.parse_args(arguments)
    for name in ("count", "jobs", "most_tests"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    for folder in options.folders:
        if not (ROOT / "include/reprise" / folder).is_dir():
            parser.error(f"there is no folder include/reprise/{folder}")
    return options


def main():
    options = options_of(sys.argv[1:])
    try:
        return run(options)
    except (Failure, OSError) as error:
        print(f"mutate.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("mutate.py: stopped; call it again to continue", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
