# SPDX-License-Identifier: Apache-2.0
"""The common part of all objects of the library: one handle, its errors, and one thread at a time."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, SupportsIndex, TypeVar

from . import _library
from ._arrays import BELOW
from ._errors import OrderError, error


Self = TypeVar("Self", bound="Owner")


class Lock:
    """Lets one thread at a time run something. No exception of a signal handler leaves it taken.

    CPython runs signal handlers after calls, so also between the call that takes a lock and the next statement. Here,
    each such place is inside a `try`, and nothing is called between its end and the release.
    """

    __slots__ = ("_lock", "_name", "_waits", "_lost", "__weakref__")

    def __init__(self, name: str, waits: bool = False) -> None:
        self._name, self._waits, self._lost = name, waits, False
        self._lock: Any = threading.RLock()  # it knows its thread
        _locks.add(self)

    def alone(self, run: Callable[..., Any], *arguments: Any) -> Any:
        """Returns run(*arguments). Raises OrderError if the thread may not run it now."""
        lock, taken = self._lock, False
        if lock._is_owned():
            raise OrderError(
                f"{self._name}: a call of this thread has not ended; do not use it in signal handlers and finalizers"
            )
        try:
            try:
                taken = lock.acquire(self._waits)
                if not taken:
                    raise OrderError(f"{self._name}: another thread is using it; use one object for each thread")
                if self._lost:
                    raise OrderError(
                        f"{self._name}: another thread was using it when this process was forked; create a new one"
                    )
                return run(*arguments)
            finally:
                if taken:
                    lock.release()
        except BaseException:  # it may have come just after the lock was taken, or (Python 3.10) before the release
            if lock._is_owned():
                lock.release()
            raise

    def locked(self) -> bool:
        """Returns true during a call. Takes nothing."""
        return repr(self._lock).startswith("<locked")

    def after_fork(self) -> None:
        """Gives the lock up in a new process if a thread that is not in this process has it."""
        if self._lock.acquire(False):
            self._lock.release()
        else:
            self._lock, self._lost = threading.RLock(), True


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


def _after_fork() -> None:
    for lock in list(_locks):
        lock.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Handle:
    """A handle of the library. It is destroyed when nothing refers to it any more."""

    __slots__ = ("pointer", "lock", "_destroy", "__weakref__")

    def __init__(self, kind: str, name: str, waits: bool = False) -> None:
        self.pointer = ctypes.c_void_p()  # the library itself writes it: no exception can come before it is kept
        self.lock = Lock(name, waits)
        self._destroy = getattr(_library.library, f"reprise_{kind}_destroy")

    def destroy(self) -> None:
        """Frees the memory now."""
        pointer, self.pointer = self.pointer, ctypes.c_void_p()
        self._destroy(pointer)

    def __del__(self) -> None:
        if self.pointer and not self.lock._lost:  # a lost handle is half changed
            self._destroy(self.pointer)


class Owner:
    """The owner of a handle. Every call of the library goes through _call() or _alone()."""

    _kind = ""  # part of the names of its functions, such as "session"
    _instead = ""  # what to do in place of a copy
    _shown = "not created"  # for repr()
    _handle: Handle | None = None
    _below = BELOW  # the bound of token ids
    _waits = False  # whether a second thread waits for the first
    _shared = False  # whether other threads may be creating objects with the handle

    def _new(self) -> Handle:
        """Returns a handle, for the library to fill in."""
        return Handle(self._kind, type(self).__name__, self._waits)

    def _own(self, handle: Handle, shown: str) -> None:
        self._shown = shown
        self._error: Any = getattr(_library.library, f"reprise_{self._kind}_error", None)
        self._lock = handle.lock
        self._handle = handle

    def _create(self, options: Any, shown: str, *more: Any) -> None:
        """Creates the handle. `more`: arguments after the options."""
        handle, described = self._new(), _library.LibraryError()
        create = getattr(_library.library, f"reprise_{self._kind}_create")
        status = create(ctypes.byref(options), *more, ctypes.byref(handle.pointer), ctypes.byref(described))
        if status != _library.OK:
            raise error(status, described, type(self).__name__)
        self._own(handle, shown)

    @property
    def _closed(self) -> bool:
        return self._handle is None

    def _open(self) -> Handle:
        """Returns the handle. Raises OrderError if it has been closed."""
        handle = self._handle
        if handle is None:
            raise OrderError(f"{type(self).__name__}: it has been closed; create a new one")
        return handle

    def _alone(self, run: Callable[..., Any], *arguments: Any) -> Any:
        """Returns run(*arguments), while no other thread uses the object."""
        self._open()
        return self._lock.alone(run, *arguments)

    def _call(self, name: str, *arguments: Any, read: Callable[[], Any] | None = None) -> Any:
        """Calls a function of the library, and returns read(). Raises an exception if it fails."""
        return self._alone(self._run, getattr(_library.library, f"reprise_{self._kind}_{name}"), name, arguments, read)

    def _run(self, function: Any, name: str, arguments: Sequence[Any], read: Callable[[], Any] | None) -> Any:
        pointer = self._open().pointer
        status = function(pointer, *arguments)
        if status:
            raise error(status, self._error(pointer).contents, name)
        return read() if read is not None else None

    def _bytes(self, name: str, *arguments: Any) -> bytes:
        """Calls a function that fills a buffer."""
        needed, room = ctypes.c_size_t(), 4096
        while True:
            buffer = ctypes.create_string_buffer(room)
            try:
                self._call(name, *arguments, buffer, room, ctypes.byref(needed))
                return buffer.raw[: needed.value]
            except ValueError as failed:
                if getattr(failed, "status", 0) != _library.OUT_OF_ROOM or needed.value <= room:
                    raise
                room = needed.value

    def close(self) -> None:
        """Frees the memory now, as the end of a `with` block does. Later calls raise OrderError, except close()."""
        if self._handle is not None and not self._lock._lost:
            self._alone(self._close)
        self._handle = None

    def _close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None and not self._shared:  # __del__() would do it too, but exceptions end in finalizers
            handle.destroy()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce_ex__(self, _: SupportsIndex) -> NoReturn:
        # Two objects with one handle would both free it.
        raise TypeError(f"{type(self).__name__}: it cannot be copied or pickled: {self._instead}")

    def __repr__(self) -> str:
        # It calls nothing of the library, and takes no lock, so that another thread can call it at any time.
        state = ", closed" if self._closed else ", in use" if self._lock.locked() else ""
        return f"<reprise_decoding.{type(self).__name__}: {self._shown}{state}>"


def shown(given: dict[str, Any]) -> str:
    """Returns a text for repr(), of the options that are given. They must not be secret."""
    return ", ".join(f"{name}={value!r}" for name, value in given.items() if value) or "default options"
