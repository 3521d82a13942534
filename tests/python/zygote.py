"""Imports torch once, without our library, and forks a process for each program that it is sent.

usage: zygote.py DESCRIPTOR     (a listening socket of sequenced packets; `start.py` and `forked.py` connect to it)

A connection's one request is the program with its environment, folder and standard streams. The answers are the child's process id
and, once it has ended, its exit status; a child whose connection is closed before is killed. The child has imported torch and
nothing else has happened in it: one thread, no CUDA, no setting of ours read. It takes the request's environment and runs the
program as ``python -c`` does, to the interpreter's ordinary end. When the program imports torch, which it does at once, the
plug-in is loaded. At the end of its own standard input this process ends.

Of the end only that is left out which is the import's: objects of modules that were here before are not destroyed, nor
are torch's static ones. All that takes a quarter of a second of a core. Exit handlers of the program and of the library
run, and what the program has made is destroyed. ``PINBUDDY_TEST_END=whole`` leaves nothing out: for tests of ends.
"""

import atexit
import contextlib
import ctypes
import functools
import gc
import json
import os
import selectors
import signal
import socket
import struct
import sys
import types
from importlib.machinery import BuiltinImporter
from importlib.util import spec_from_loader

OWN_PATH = os.environ.get("PYTHONPATH")
ENDS_WHOLLY = os.environ.get("PINBUDDY_TEST_END") == "whole"
imported: set[str] = set()


def keep_what_was_imported() -> None:
    """The interpreter's end finds no module that was there before the program."""
    names = [name for name in sys.modules if name in imported and name not in ("builtins", "sys", "__main__")]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object([sys.modules.pop(name) for name in names]))


# Exit handlers run from the last to the first: this one after the program's, and after those of torch's modules.
if not ENDS_WHOLLY:
    atexit.register(keep_what_was_imported)

import torch  # noqa: E402


class Imported:
    """Makes the program's first `import torch` find the imported torch, and load the plug-in with the environment's
    settings at that time."""

    def find_spec(self, name: str, path=None, target=None):
        return spec_from_loader(name, self) if name == "torch" else None

    def create_module(self, spec) -> types.ModuleType:
        self.spec = torch.__spec__
        return torch

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self.spec
        sys.meta_path.remove(self)
        if torch._is_device_backend_autoload_enabled():
            torch._import_device_backends()


class Server:
    """Forks for each connection."""

    def __init__(self, listener: socket.socket):
        self.events = selectors.DefaultSelector()
        self.events.register(listener, selectors.EVENT_READ, self.accept)
        self.events.register(0, selectors.EVENT_READ, sys.exit)
        self.listener = listener
        self.children: dict[int, tuple[socket.socket, int]] = {}

    def serve(self) -> tuple[dict, list[int]]:
        """Returns in children only, with the request and its streams."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True:
            for key, _ in self.events.select():
                request = key.data()
                if request:
                    return request

    def accept(self) -> tuple[dict, list[int]] | None:
        connection, _ = self.listener.accept()
        message, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
        child = os.fork() if message else None
        if child == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.close(connection)
            return json.loads(message), streams
        for stream in streams:
            os.close(stream)
        if child is None:
            return connection.close()
        with contextlib.suppress(BrokenPipeError):
            connection.send(str(child).encode())
        end = os.pidfd_open(child)
        self.children[child] = connection, end
        self.events.register(end, selectors.EVENT_READ, functools.partial(self.ended, child))
        self.events.register(connection, selectors.EVENT_READ, functools.partial(self.left, child))

    def ended(self, child: int) -> None:
        connection, end = self.children.pop(child)
        _, status = os.waitpid(child, 0)
        with connection, contextlib.suppress(BrokenPipeError):
            connection.send(str(os.waitstatus_to_exitcode(status)).encode())
            if connection in self.events.get_map():
                self.events.unregister(connection)
        self.events.unregister(end)
        os.close(end)

    def left(self, child: int) -> None:
        if child in self.children:
            self.events.unregister(self.children[child][0])
            os.kill(child, signal.SIGKILL)

    def close(self, connection: socket.socket) -> None:
        """What a child does not need."""
        self.events.close()
        self.listener.close()
        connection.close()
        for other, end in self.children.values():
            other.close()
            os.close(end)
        self.children.clear()


def become(request: dict, streams: list[int]) -> types.ModuleType:
    """Turns this process into the requested one; returns its ``__main__``."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    for name in os.environ.keys() - request["environment"].keys():
        del os.environ[name]
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv, sys.path[0] = ["-c"], ""
    if OWN_PATH != (path := os.environ.get("PYTHONPATH")) and path:
        sys.path[1:1] = path.split(":")
    if request["words"]:
        # What it starts itself is forked, too.
        sys.executable = request["words"][0]
    sys.orig_argv = request["words"] or [sys.executable, "-c", request["program"]]
    take_words(sys.orig_argv)
    del sys.modules["torch"]
    sys.meta_path.insert(0, Imported())
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    # As `python -c` has them.
    main.__annotations__, main.__builtins__, main.__loader__ = {}, __builtins__, BuiltinImporter
    return main


def take_words(words: list[str]) -> None:
    """Has /proc/self/cmdline say these words, where the kernel lets a process do so (`start.tells_words`)."""
    text = b"".join(os.fsencode(it) + b"\0" for it in words)
    # It has to stay.
    take_words.kept = kept = ctypes.create_string_buffer(text, len(text))
    with open("/proc/self/stat") as file:
        fields = [None, None, None, *file.read().rpartition(")")[2].split()]
    code, data, brk, stack, variables = fields[26:28], fields[45:47], fields[47], fields[28], fields[50:52]
    libc, at = ctypes.CDLL(None), ctypes.addressof(kept)
    libc.sbrk.restype = ctypes.c_void_p
    # The kernel's `struct prctl_mm_map`: all stays as it is, but where the words are.
    numbers = map(int, (*code, *data, brk, libc.sbrk(0), stack, at, at + len(text), *variables))
    layout = struct.pack("11QQIi", *numbers, 0, 0, -1)
    PR_SET_MM, PR_SET_MM_MAP = 35, 14
    libc.prctl(PR_SET_MM, ctypes.c_ulong(PR_SET_MM_MAP), layout, ctypes.c_ulong(len(layout)), ctypes.c_ulong(0))


def only_thread() -> None:
    """Refuses other threads, which children would lack, with the locks that they hold."""
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        sys.exit(f"zygote.py: `import torch` has started {threads - 1} threads; children would not have them")


def leave_out_torchs_end() -> None:
    """Whatever is registered from now on, in children, runs first; then the process ends with its status."""
    libc = ctypes.CDLL(None)
    libc.on_exit(ctypes.cast(libc._exit, ctypes.c_void_p), None)


if not ENDS_WHOLLY:
    imported.update(sys.modules)
    leave_out_torchs_end()
only_thread()
# What an import leaves is no garbage: children need not look through it when they end, nor copy its pages.
gc.collect()
gc.freeze()
request, streams = Server(socket.socket(fileno=int(sys.argv[1]))).serve()
# Nobody here holds its ``__main__``, which would keep it beyond its time.
exec(compile(request["program"], "<string>", "exec"), become(request, streams).__dict__)
