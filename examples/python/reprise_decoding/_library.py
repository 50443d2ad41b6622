# SPDX-License-Identifier: Apache-2.0
"""The shared library: its functions and structs, as include/reprise_c/reprise.h declares them."""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, Structure, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

VERSION = "0.1.0"
UNLIMITED = ctypes.c_size_t(-1).value

OK = 0
OUT_OF_MEMORY = 7
NOT_BEGUN = 8
NOT_PLANNED = 9
FINISHED = 10
OUT_OF_ROOM = 12
BAD_SNAPSHOT = 13
INTERNAL = 15


class LibraryError(Structure):
    """reprise_error"""

    _fields_ = [("status", c_int32), ("message", c_char_p), ("value", c_uint64), ("limit", c_uint64)]


class CostPoint(Structure):
    """reprise_cost_point"""

    _fields_ = [("sequences", c_size_t), ("context", c_size_t), ("rows", c_size_t), ("nanoseconds", c_double)]


class MemoryOptions(Structure):
    """reprise_memory_options"""

    _fields_ = [
        ("size", c_size_t),
        ("max_bytes", c_size_t),
        ("next_token_bytes", c_size_t),
        ("salts", c_size_t),
        ("key", c_uint64),
        ("vocabulary", c_uint32),
        ("flags", c_uint32),
    ]


class Options(Structure):
    """reprise_options"""

    _fields_ = [
        ("size", c_size_t),
        ("curve", c_void_p),
        ("memory", c_void_p),
        ("max_draft_nodes", c_size_t),
        ("max_bytes", c_size_t),
        ("key", c_uint64),
        ("saved_costs", c_char_p),
        ("saved_costs_size", c_size_t),
        ("engine", c_char_p),
        ("vocabulary", c_size_t),
        ("salt", c_uint64),
        ("head_draft", c_double),
        ("head_token", c_double),
        ("head_row", c_double),
        ("head_late", c_double),
    ]


class Slot(Structure):
    """reprise_slot"""

    _fields_ = [
        ("slot", c_size_t),
        ("ids", c_void_p),
        ("count", c_size_t),
        ("most", c_size_t),
        ("conversation", c_uint64),
        ("draft", c_void_p),
        ("drafted", c_size_t),
        ("after", c_size_t),
    ]


class Row(Structure):
    """reprise_row"""

    _fields_ = [
        ("slot", c_size_t),
        ("at", c_size_t),
        ("most", c_size_t),
        ("kind", c_size_t),
        ("options", c_void_p),
        ("prediction", c_void_p),
        ("predicted", c_size_t),
        ("prompt", c_size_t),
        ("drafted", c_size_t),
    ]


class Step(Structure):
    """reprise_step"""

    _fields_ = [
        ("size", c_size_t),
        ("batch", c_void_p),
        ("ids", c_void_p),
        ("stride", c_size_t),
        ("below", c_size_t),
        ("longest", c_size_t),
        ("lengths", c_void_p),
        ("rows", POINTER(Row)),
        ("count", c_size_t),
        ("ended", c_size_t),
        ("drafts", c_void_p),
        ("width", c_size_t),
        ("now_ns", c_int64),
        ("status", c_int32),
        ("done", c_int32),
    ]


class Capabilities(Structure):
    """reprise_capabilities"""

    _fields_ = [
        ("size", c_size_t),
        ("max_rows", c_size_t),
        ("max_context", c_size_t),
        ("max_depth", c_size_t),
        ("max_leaves", c_size_t),
        ("max_rollback", c_size_t),
        ("widths", POINTER(c_size_t)),
        ("width_count", c_size_t),
        ("rollback", c_int32),
        ("has_pad_token", c_int32),
        ("pad_token", c_int32),
    ]


class Limits(Structure):
    """reprise_limits"""

    _fields_ = [
        ("size", c_size_t),
        ("max_tokens", c_size_t),
        ("max_context", c_size_t),
        ("eos", POINTER(c_int32)),
        ("eos_count", c_size_t),
    ]


class Pass(Structure):
    """reprise_pass"""

    _fields_ = [
        ("size", c_size_t),
        ("batch", c_void_p),
        ("rows", c_size_t),
        ("pending", c_size_t),
        ("drafted", c_size_t),
        ("parents", c_void_p),
        ("depths", c_void_p),
    ]


class Commit(Structure):
    """reprise_commit"""

    _fields_ = [
        ("size", c_size_t),
        ("tokens", c_void_p),
        ("count", c_size_t),
        ("rows", c_void_p),
        ("keep", c_size_t),
        ("accepted", c_size_t),
        ("restore", c_int32),
        ("finish", c_int32),
    ]


class State(Structure):
    """reprise_state"""

    _fields_ = [
        ("size", c_size_t),
        ("context", c_void_p),
        ("context_count", c_size_t),
        ("output", c_void_p),
        ("output_count", c_size_t),
        ("cached", c_size_t),
        ("top_k_wanted", c_size_t),
        ("memory_bytes", c_size_t),
        ("finish", c_int32),
    ]


#: The structs by their names in the header.
STRUCTS: dict[str, type[Structure]] = {
    "reprise_error": LibraryError,
    "reprise_cost_point": CostPoint,
    "reprise_memory_options": MemoryOptions,
    "reprise_options": Options,
    "reprise_slot": Slot,
    "reprise_row": Row,
    "reprise_step": Step,
    "reprise_capabilities": Capabilities,
    "reprise_limits": Limits,
    "reprise_pass": Pass,
    "reprise_commit": Commit,
    "reprise_state": State,
}

# A letter for each type, so that a declaration is one line.
_TYPES: dict[str, Any] = {
    "v": None,
    "p": c_void_p,  # a handle, an array or the address of a result
    "z": c_size_t,
    "i": c_int32,
    "l": c_int64,
    "u": c_uint64,
    "d": c_double,
    "s": c_char_p,
    "e": POINTER(LibraryError),
}

#: The type of the result and of the arguments of each function.
FUNCTIONS = {
    "reprise_version": "s",
    "reprise_curve_create_linear": "idpe",
    "reprise_curve_create": "ipzpe",
    "reprise_curve_destroy": "vp",
    "reprise_memory_create": "ippe",
    "reprise_memory_destroy": "vp",
    "reprise_memory_add": "ipupzz",
    "reprise_memory_forget": "ipu",
    "reprise_memory_save": "ipuupzp",
    "reprise_memory_load": "ipuupz",
    "reprise_memory_error": "ep",
    "reprise_follower_create": "ippe",
    "reprise_follower_destroy": "vp",
    "reprise_follower_draft": "ippzzlupp",
    "reprise_follower_draft_after": "ippzzzlupp",
    "reprise_follower_verified": "ipz",
    "reprise_follower_stop_at": "ippz",
    "reprise_follower_forget": "ip",
    "reprise_follower_predict": "ippz",
    "reprise_follower_statistics": "ippzp",
    "reprise_follower_save_costs": "ipspzp",
    "reprise_follower_error": "ep",
    "reprise_batch_create": "ipzpe",
    "reprise_batch_destroy": "vp",
    "reprise_batch_draft": "ippzl",
    "reprise_batch_propose_lookup": "ippzl",
    "reprise_batch_add_head": "ipzpz",
    "reprise_batch_draft_proposed": "ippzl",
    "reprise_batch_known": "ippz",
    "reprise_batch_step": "vp",
    "reprise_batch_ran": "ipz",
    "reprise_batch_verified": "ipzz",
    "reprise_batch_stop_at": "ipzpz",
    "reprise_batch_report_top_k": "ipzzpz",
    "reprise_batch_forget": "ipz",
    "reprise_batch_predict": "ipzpz",
    "reprise_batch_assign": "ipzp",
    "reprise_batch_statistics": "ipzpzp",
    "reprise_batch_save_costs": "ipzspzp",
    "reprise_batch_load_costs": "ipzspz",
    "reprise_batch_error": "ep",
    "reprise_session_create": "ippe",
    "reprise_session_fork": "ipp",
    "reprise_session_keep": "ip",
    "reprise_session_destroy": "vp",
    "reprise_session_predict": "ippz",
    "reprise_session_begin": "ippzzp",
    "reprise_session_propose_lookup": "ippzp",
    "reprise_session_add_head": "ippzl",
    "reprise_session_plan": "ippzp",
    "reprise_session_report_top_k": "ipzpz",
    "reprise_session_report_prompt_row": "ipzpz",
    "reprise_session_commit": "ippzlp",
    "reprise_session_append": "ippzz",
    "reprise_session_truncate": "ipz",
    "reprise_session_rebase": "ippzzp",
    "reprise_session_set_cached": "ipz",
    "reprise_session_state": "ipp",
    "reprise_session_statistics": "ippzp",
    "reprise_session_save_costs": "ipspzp",
    "reprise_session_error": "ep",
}

_NAMES = {"win32": "reprise-c.dll", "darwin": "libreprise-c.dylib"}


def packaged(folder: Path) -> Path:
    """Returns the path of the library in a package: in its folder lib, because help() would take it for a module."""
    return folder / "lib" / _NAMES.get(sys.platform, "libreprise-c.so")


def load(path: str | os.PathLike[str] | None = None) -> ctypes.CDLL:
    """Loads the library and declares its functions.

    `path`: the file; None: the value of the environment variable REPRISE_LIBRARY, or else the file of the package.
    Raises ImportError if there is no library, or if it is of another version.
    """
    chosen = path or os.environ.get("REPRISE_LIBRARY")
    file = Path(chosen) if chosen else packaged(Path(__file__).parent)
    if not file.exists():
        raise ImportError(f"there is no library {file}: install reprise-decoding, or set REPRISE_LIBRARY to its path")
    library = ctypes.CDLL(str(file))
    for name, types in FUNCTIONS.items():
        function = getattr(library, name, None)
        if function is None:
            raise ImportError(f"the library {file} has no function {name}: it is not the library of this package")
        function.restype = _TYPES[types[0]]
        function.argtypes = [_TYPES[letter] for letter in types[1:]]
    found = library.reprise_version().decode()
    if found != VERSION:
        raise ImportError(f"the library {file} has the version {found}, but the package has {VERSION}: install it anew")
    return library


library = load()
