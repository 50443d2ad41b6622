#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of a table, and compares exit status and output.

usage: run.py TABLE NAME=PROGRAM...

A table has these lines; # begins a comment:

    [NAME ARGUMENT...]             program and first arguments of the next commands
    = FILE: TEXT                   a file with a line of text; each line "| TEXT" adds a line
    0 ARGUMENT... => TEXT          exit status, arguments, and a part of the output

The output is standard output, then standard error. In TEXT, " ... " stands between parts in their order, and a part
after ! must not occur. Of {a|b|c}, a command runs with each. <<TEXT>> is a file in.json with this text, which may have
escapes: \\n, \\x1f. $SOURCE is the root of the source tree.

A command with status 2 also has to write nothing except one line to standard error, and to change no file. The lines of
--help and --list have at most 80 columns, and no output has control characters.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def alternatives(text):
    found = re.search(r"\{([^{}]*\|[^{}]*)\}", text)
    if not found:
        return [text]
    return [whole for choice in found[1].split("|")
            for whole in alternatives(text[:found.start()] + choice + text[found.end():])]


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def fault_of(program, arguments, status, wanted, folder):
    """Returns the fault of a run, or an empty text."""
    before = contents(folder)
    ran = subprocess.run(program + arguments, cwd=folder, capture_output=True, stdin=subprocess.DEVNULL,
                         env={**os.environ, "LC_ALL": "C"})
    out, error = (text.decode(errors="replace").replace("\r\n", "\n") for text in (ran.stdout, ran.stderr))
    if ran.returncode != status:
        return f"exit status {ran.returncode}"
    if status == 2 and (out or error.count("\n") != 1 or not error.endswith("\n")):
        return "more than one line of error, or other output"
    if status == 2 and contents(folder) != before:
        return "a file has changed"
    if re.search("[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f]", out + error):
        return "a control character in the output"
    if {"--help", "-h", "--list"} & set(arguments) and max(map(len, out.splitlines())) > 80:
        return "a line of more than 80 columns"
    output = out + error
    place = 0
    for part in wanted.split(" ... "):
        if part.startswith("!"):
            if part[1:] in output:
                return f"the output has: {part[1:]}"
            continue
        place = output.find(part, place)
        if place < 0:
            return f"the output lacks: {part}"
        place += len(part)
    return ""


def run(table, programs, folder):
    count, faults, base, file = 0, 0, [], None
    for number, line in enumerate(table.read_text().replace("$SOURCE", str(SOURCE)).splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            name, *first = shlex.split(line[1:-1])
            base = shlex.split(programs[name]) + first
        elif line.startswith("= "):
            name, _, text = line[2:].partition(":")
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text[1:] + "\n")
        elif line.startswith("|"):
            with file.open("a") as more:
                more.write(line[2:] + "\n")
        else:
            status, command, wanted = re.fullmatch(r"(\d+)( .*?)? => (.*)", line).groups()
            inline = re.search(r"<<(.*)>>", command or "")
            if inline:
                (folder / "in.json").write_bytes(inline[1].encode().decode("unicode_escape").encode("latin-1"))
                command = command.replace(inline[0], "in.json")
            for one in alternatives(command or ""):
                count += 1
                fault = fault_of(base, shlex.split(one), int(status), wanted, folder)
                if fault:
                    faults += 1
                    print(f"{table.name}:{number}:{one}: {fault}")
    print(f"{count} commands, {faults} with a fault")
    return 1 if faults else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(run(pathlib.Path(sys.argv[1]), dict(item.split("=", 1) for item in sys.argv[2:]),
                     pathlib.Path(temporary)))
