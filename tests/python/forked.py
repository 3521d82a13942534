"""Runs a program as ``python`` does, in a process that `zygote.py` forks (`start.Zygote.python`).

usage: forked.py SOCKET PYTHON [-u] FILE | -c TEXT | -m MODULE, with the program's arguments

Streams, folder, environment, exit status and signals are the program's own; its parent is the zygote.
"""

import json
import os
import signal
import socket
import sys

PASSED_ON = (signal.SIGINT, signal.SIGTERM)


class Child:
    """A forked program, whose end can be waited for; it is killed if nobody waits."""

    def __init__(self, zygote: str, program: str, environment: dict[str, str], folder: str, streams: list[int], words: list[str]):
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.connection.connect(zygote)
        request = {"program": program, "environment": environment, "folder": folder, "words": words}
        socket.send_fds(self.connection, [json.dumps(request).encode()], streams)
        self.id = int(self.receive())

    def wait(self) -> int:
        """Its exit status, or a signal's number with a minus."""
        with self.connection:
            return int(self.receive())

    def receive(self) -> bytes:
        message = self.connection.recv(64)
        if not message:
            raise RuntimeError("zygote.py has ended; it says why on standard error")
        return message


def program(arguments: list[str]) -> str:
    """What ``python -c`` would be given to run the same."""
    match arguments:
        case ["-u", *rest]:
            return f"import sys; sys.stdout.reconfigure(write_through=True)\n{program(rest)}"
        case ["-c", text, *rest]:
            return f"import sys; sys.argv[1:] = {rest!r}\n{text}"
        case ["-m", name, *rest]:
            run = f"runpy.run_module({name!r}, run_name='__main__', alter_sys=True)"
            return f"import runpy, sys; sys.argv[1:] = {rest!r}; {run}"
        case [file, *rest]:
            run = f"runpy.run_path({file!r}, run_name='__main__')"
            folder = os.path.dirname(os.path.realpath(file))
            return f"import runpy, sys; sys.argv[:] = {[file, *rest]!r}; sys.path[0] = {folder!r}; {run}"
    sys.exit("forked.py: no program")


def main() -> None:
    _, zygote, *words = sys.argv
    # One that comes once the program runs, and before it can be passed on, waits.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    child = Child(zygote, program(words[1:]), dict(os.environ), os.getcwd(), [0, 1, 2], words)
    for number in PASSED_ON:
        signal.signal(number, lambda number, _: os.kill(child.id, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    status = child.wait()
    if status < 0:
        if -status in PASSED_ON:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    main()
