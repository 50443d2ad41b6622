# SPDX-License-Identifier: Apache-2.0
"""Lines and branches of the headers that the tests have run, from the counts that gcov reads.

The rules for merging and for leaving out branches are in README.md of this folder. Writes a tracefile for gcovr, prints
a table by layer, and compares the branches that no test takes with explained.txt.
"""

import argparse
import collections
import json
import math
import pathlib
import subprocess
import sys

# In these layers, each branch that no test takes needs an explanation.
EXPLAINED_LAYERS = ("core", "engine", "loop")
# Headers directly in include/reprise/ belong to this row of the table.
TOP = "top"


class Fault(Exception):
    """A fault of the input, with a message for the user."""


def decisions(branches):
    """Returns the counts of the branches that are no calls: a call has two, to the next statement and to the handler
    of an exception."""
    kept = []
    for branch in branches:
        if branch["throw"]:
            # The first branch of the call comes directly before.
            if kept:
                kept.pop()
        else:
            kept.append(branch["count"])
    return kept


def period(entries):
    """Returns how many branches one instance has, for entries of (counts, instances) that gcov lists one instance
    after the other."""
    sizes = {len(counts) // instances if instances and len(counts) % instances == 0 else 0
             for counts, instances in entries}
    if len(sizes) == 1 and min(sizes) > 1:
        return min(sizes)
    # Some instances lack the line, so the number of instances says nothing.
    return math.gcd(*(len(counts) for counts, _ in entries))


class Header:
    """The counts of one header. An instantiation of a template adds to the counts of its source."""

    def __init__(self):
        self.lines = collections.Counter()
        self.functions = {}  # position of a function -> [name, count]
        self.groups = {}  # (line, position of a function) -> number of branches -> counts
        self.loose = collections.defaultdict(list)  # line -> [(counts, instances of the function before the line)]

    def add(self, file):
        """Adds what gcov says of the header in one object file."""
        positions = {}
        instances = collections.Counter()
        for function in file["functions"]:
            position = (function["start_line"], function["start_column"])
            positions[function["name"]] = position
            instances[position] += 1
            known = self.functions.setdefault(position, [function["demangled_name"], 0])
            known[1] += function["execution_count"]
        for line in file["lines"]:
            number = line["line_number"]
            self.lines[number] += line["count"]
            counts = decisions(line["branches"])
            if not counts:
                continue
            position = positions.get(line.get("function_name"))
            if position is not None and instances[position] > 1:
                self.add_group(number, position, counts)
            elif position is not None:
                self.loose[number].append((counts, 1))
            else:
                before = max((place for place in instances if place[0] < number), default=None)
                self.loose[number].append((counts, instances[before] if before else 0))

    def add_group(self, line, position, counts):
        sizes = self.groups.setdefault((line, position), {})
        kept = sizes.setdefault(len(counts), [0] * len(counts))
        sizes[len(counts)] = [a + b for a, b in zip(kept, counts)]

    def branches(self):
        """Returns the counts of each line's branches."""
        groups = {key: {size: list(counts) for size, counts in sizes.items()} for key, sizes in self.groups.items()}
        for line, entries in self.loose.items():
            size = period(entries)
            total = [0] * size
            for counts, _ in entries:
                for i, count in enumerate(counts):
                    total[i % size] += count
            same = [sizes for (number, _), sizes in groups.items() if number == line and size in sizes]
            if same:
                same[0][size] = [a + b for a, b in zip(same[0][size], total)]
            else:
                groups[line, (0, 0)] = {size: total}
        found = collections.defaultdict(list)
        for (line, _), sizes in sorted(groups.items()):
            # Smaller instances have lost conditions that are constants for their types.
            found[line] += sizes[max(sizes)]
        return found


def read(build, gcov, root):
    """Returns the counts of every header in `root`, from all object files in `build`."""
    notes = sorted(build.rglob("*.gcno"))
    if not any(build.rglob("*.gcda")):
        raise Fault(f"{build} has no .gcda files: build the preset coverage there, and run its tests")
    headers = collections.defaultdict(Header)
    for note in notes:
        if not note.with_suffix(".gcda").exists():
            continue
        command = [gcov, "--json-format", "--branch-probabilities", "--stdout", str(note)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise Fault(f"{' '.join(command)} failed: {run.stderr.strip()}; gcov must fit the compiler of {build}")
        for file in json.loads(run.stdout)["files"]:
            path = pathlib.Path(file["file"]).resolve()
            if path.is_relative_to(root):
                headers[path.relative_to(root).as_posix().removeprefix("reprise/")].add(file)
    return dict(sorted(headers.items()))


def path_of(name):
    """Returns the path below include/ of a header, whose name is without reprise/ if it belongs to the core."""
    return name if name.startswith("reprise_") else f"reprise/{name}"


def layer_of(name):
    return name.split("/")[0] if "/" in name else TOP


def totals(headers):
    """Returns for each layer: lines, lines run, branches, branches taken."""
    found = collections.defaultdict(lambda: [0, 0, 0, 0])
    for name, header in headers.items():
        branches = [count for counts in header.branches().values() for count in counts]
        figures = (len(header.lines), sum(1 for count in header.lines.values() if count > 0),
                   len(branches), sum(1 for count in branches if count > 0))
        for layer in (layer_of(name), "all"):
            found[layer] = [a + b for a, b in zip(found[layer], figures)]
    return found


def percent(part, whole):
    # Rounded down, so that 100.0 means all.
    return f"{part * 1000 // whole / 10:.1f}" if whole else "-"


def table(headers):
    rows = ["| layer | lines | lines run, % | branches | branches taken, % |", "|---|---|---|---|---|"]
    found = totals(headers)
    for layer in sorted(set(found) - {"all"}) + ["all"]:
        lines, run, branches, taken = found[layer]
        rows.append(f"| {layer} | {lines} | {percent(run, lines)} | {branches} | {percent(taken, branches)} |")
    return "\n".join(rows)


def tracefile(headers, prefix):
    """Returns the counts in the form that gcovr reads."""
    files = []
    for name, header in headers.items():
        branches = header.branches()
        lines = []
        for number in sorted(header.lines):
            # gcov derives some counts from others, and can derive one below 0, which gcovr refuses.
            listed = [{"branchno": i, "count": max(count, 0), "fallthrough": False, "throw": False}
                      for i, count in enumerate(branches.get(number, []))]
            lines.append({"line_number": number, "count": header.lines[number], "branches": listed})
        functions = [{"name": label, "lineno": position[0], "execution_count": count,
                      "blocks_percent": 100.0 if count else 0.0}
                     for position, (label, count) in sorted(header.functions.items())]
        files.append({"file": f"{prefix}/{path_of(name)}", "lines": lines, "functions": functions})
    return files


def missed(headers, root):
    """Returns each line of the explained layers with a branch that no test takes: (header, line, text, indices of
    the branches, number of branches)."""
    found = []
    for name, header in headers.items():
        if layer_of(name) not in EXPLAINED_LAYERS:
            continue
        source = (root / path_of(name)).read_text(encoding="utf-8").splitlines()
        for line, counts in sorted(header.branches().items()):
            never = [i for i, count in enumerate(counts) if count == 0]
            if never:
                found.append((name, line, source[line - 1].strip(), never, len(counts)))
    return found


def read_explained(path):
    """Returns {(header, text of the line): number of branches}. An entry is `HEADER: N: TEXT`, and indented lines with
    the reason follow it."""
    entries = {}
    reason = True
    last = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" "):
            if last is None:
                raise Fault(f"{path}:{number}: a reason without an entry: begin with HEADER: N: TEXT")
            reason = True
            continue
        parts = line.split(": ", 2)
        if len(parts) != 3 or not parts[1].isdigit() or parts[1] == "0":
            raise Fault(f"{path}:{number}: not HEADER: N: TEXT, where N is the number of branches that no test takes")
        if not reason:
            raise Fault(f"{path}:{number}: the entry before this one has no reason: add an indented line")
        last = (parts[0], parts[2].strip())
        if last in entries:
            raise Fault(f"{path}:{number}: a second entry for this line: add its number to the first")
        entries[last] = int(parts[1])
        reason = False
    if not reason:
        raise Fault(f"{path}: the last entry has no reason: add an indented line")
    return entries


def compare(found, explained):
    """Returns the differences between the branches that no test takes and the explained ones, as sentences."""
    counts = collections.Counter()
    places = collections.defaultdict(list)
    for name, line, text, never, size in found:
        counts[name, text] += len(never)
        which = ", ".join(str(i + 1) for i in never)
        places[name, text].append(f"{name}:{line}: no test takes branch {which} of {size}: {text}")
    faults = []
    for key, count in counts.items():
        if count > explained.get(key, 0):
            faults += [place + f"\n    {count} at this line, {explained.get(key, 0)} explained: "
                       "add a test, or a reason to explained.txt" for place in places[key]]
    for key, count in explained.items():
        if counts[key] < count:
            faults.append(f"explained.txt: {key[0]}: {count}: {key[1]}\n    only {counts[key]} of these "
                          "branches are not taken: lower the number, or remove the entry")
    return faults


def main(arguments=None):
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Coverage of the headers, from the counts of gcov.")
    parser.add_argument("build", type=pathlib.Path, help="folder of the preset coverage, after its tests")
    parser.add_argument("--gcov", default="gcov", help="the gcov of the compiler (gcov)")
    parser.add_argument("--explained", type=pathlib.Path, default=here / "explained.txt",
                        help="the list of explained branches (explained.txt in this folder)")
    parser.add_argument("--list", action="store_true", help="also print every line with a branch that no test takes")
    options = parser.parse_args(arguments)
    root = here.parent.parent / "include"
    try:
        headers = read(options.build, options.gcov, root)
        explained = read_explained(options.explained)
    except (Fault, OSError) as fault:
        print(fault, file=sys.stderr)
        return 2
    # gcovr reads a tracefile only in the version of its format; coverage.sh installs the version that has this one.
    trace = {"gcovr/format_version": "0.15", "files": tracefile(headers, "include")}
    (options.build / "tracefile.json").write_text(json.dumps(trace), encoding="utf-8")
    found = missed(headers, root)
    if options.list:
        for name, line, text, never, size in found:
            print(f"{name}:{line}: {', '.join(str(i + 1) for i in never)} of {size}: {text}")
    print(table(headers))
    print(f"Of {', '.join(EXPLAINED_LAYERS)}, no test takes {sum(len(never) for *_, never, _ in found)} branches "
          f"at {len(found)} lines.")
    faults = compare(found, explained)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
