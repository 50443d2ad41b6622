# SPDX-License-Identifier: Apache-2.0
"""The declarations of _library.py are those of the header, and a wrong library is refused."""

from __future__ import annotations

import _ctypes
import ctypes
import pkgutil
import pydoc
import re
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

import reprise_decoding
from reprise_decoding import _errors, _library, _session

REPOSITORY = Path(__file__).resolve().parents[3]
HEADER = REPOSITORY / "include/reprise_c/reprise.h"
NUMBERS = {
    "size_t": ctypes.c_size_t,
    "double": ctypes.c_double,
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "reprise_token": ctypes.c_int32,
    "reprise_status": ctypes.c_int32,
}
LETTERS = {"size_t": "z", "double": "d", "int32_t": "i", "int64_t": "l", "uint64_t": "u"}
LETTERS |= {"reprise_status": "i", "void": "v"}


def header() -> str:
    """The header without comments and preprocessor lines."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(encoding="utf-8"), flags=re.S)
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def letter(declaration: str) -> str:
    """The letter of _library.FUNCTIONS for a result or a parameter."""
    if "*" not in declaration:
        return LETTERS[declaration.split()[0]]
    if "reprise_error*" in declaration:
        return "e"
    return "s" if "const char*" in declaration else "p"


@unittest.skipUnless(HEADER.exists(), "the header is not there: this is not the repository")
class Declarations(unittest.TestCase):
    def test_functions(self) -> None:
        declared = {}
        for result, name, parameters in re.findall(r"REPRISE_API ([^;(]*?)(\w+)\(([^)]*)\);", header()):
            listed = [] if parameters.strip() == "void" else parameters.split(",")
            declared[name] = letter(result.strip()) + "".join(letter(parameter.strip()) for parameter in listed)
        self.assertGreater(len(declared), 30)
        self.assertEqual(declared, _library.FUNCTIONS)

    def test_structs(self) -> None:
        found = dict(re.findall(r"typedef struct (\w+) \{(.*?)\} \w+;", header(), flags=re.S))
        self.assertEqual(set(found), set(_library.STRUCTS))
        for name, body in found.items():
            members = [member.strip() for member in body.split(";") if member.strip()]
            fields = _library.STRUCTS[name]._fields_
            self.assertEqual([re.findall(r"\w+", member)[-1] for member in members], [f[0] for f in fields], name)
            for member, (field, kind) in zip(members, fields):
                if "*" in member:
                    self.assertEqual(ctypes.sizeof(kind), ctypes.sizeof(ctypes.c_void_p), f"{name}.{field}")
                    self.assertNotIn(kind, NUMBERS.values(), f"{name}.{field}")
                else:
                    self.assertIs(kind, NUMBERS[member.split()[0]], f"{name}.{field}")

    def test_constants(self) -> None:
        values = {name: int(value) for name, value in re.findall(r"REPRISE_(\w+) = (\d+)", header())}
        ours = [name for name in values if isinstance(getattr(_library, name, None), int) and name != "UNLIMITED"]
        self.assertGreater(len(ours), 7)
        for name in ours:
            self.assertEqual(getattr(_library, name), values[name], name)
        for name, value in _session._ROLLBACKS.items():
            self.assertEqual(value, values[f"ROLLBACK_{name.upper()}"])
        for value, finish in enumerate(_session._FINISHES):
            self.assertEqual(value, values[f"FINISH_{(finish or 'none').upper()}"])
        for name, argument in (
            ("EMPTY_CONTEXT", "ids"),
            ("CONTEXT_TOO_LONG", "ids"),
            ("CACHED_OUT_OF_RANGE", "cached"),
            ("TOO_MANY_PENDING", "cached"),
            ("BAD_PICKS", "picks"),
            ("BAD_SNAPSHOT", "saved_costs"),
            ("TOKEN_OUT_OF_RANGE", "ids"),
        ):
            self.assertEqual(_errors._BY_CODE[values[name]], argument)

    def test_version(self) -> None:
        text = (REPOSITORY / "include/reprise/core/token.hpp").read_text(encoding="utf-8")
        self.assertIn(f'version_string = "{reprise_decoding.__version__}"', text)


class Loading(unittest.TestCase):
    def test_the_file_of_the_package(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = _library.packaged(Path(folder))
            file.parent.mkdir()
            file.touch()
            self.assertEqual(list(pkgutil.iter_modules([folder])), [], "help() lists the library as a module")

    def test_help_shows_what_is_public(self) -> None:
        shown = pydoc.plain(pydoc.render_doc(reprise_decoding))
        for name in set(reprise_decoding.__all__) - {"__version__"}:
            self.assertIn(f" {name}", shown)
        for name in vars(reprise_decoding):
            if not name.startswith("_") and not isinstance(getattr(reprise_decoding, name), types.ModuleType):
                self.assertIn(name, reprise_decoding.__all__)

    def test_no_file(self) -> None:
        with self.assertRaisesRegex(ImportError, r"there is no library .*nowhere.so: install reprise-decoding"):
            _library.load("/nowhere.so")

    def test_other_library(self) -> None:
        other = getattr(_ctypes, "__file__", None)
        if other is None:
            self.skipTest("this Python has no library of its own to load")
        with self.assertRaisesRegex(ImportError, "has no function reprise_"):
            _library.load(other)

    def test_other_version(self) -> None:
        with mock.patch.object(_library, "VERSION", "9.9.9"):
            found = reprise_decoding.__version__
            with self.assertRaisesRegex(ImportError, f"version {found}, but the package has 9.9.9"):
                _library.load(_library.library._name)


if __name__ == "__main__":
    unittest.main()
