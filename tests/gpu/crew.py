"""Drives measuring processes (`worker.py`) in turns. Knows nothing of what they do."""

import json
import subprocess
from pathlib import Path

from ways import Way


class Worker:
    """A process with one allocator and these settings. Starts at once; `ready` waits for it."""

    def __init__(self, way: Way, module: str, **settings):
        self.process = subprocess.Popen(
            [way.python, str(Path(__file__).parent / "worker.py"), module, way.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=way.environment(**settings),
        )
        self.title = f"{module} with {way.name} {settings}"

    def ready(self) -> "Worker":
        """Waits until torch is imported and CUDA is initialized."""
        self._answer()
        return self

    def ask(self, function: str, **arguments):
        """Calls a function of the module. Raises RuntimeError with its error."""
        line = json.dumps({"do": function, "with": arguments})
        try:
            print(line, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass
        return self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.title}: ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.title}:\n{answer['error']}")
        return answer["value"]

    def close(self) -> None:
        """Ends it, and waits until its memory is released. May be called again."""
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Crew:
    """Workers by name, which start side by side and end together."""

    def __init__(self, workers: dict[str, Worker]):
        self.workers = workers

    def __enter__(self) -> dict[str, Worker]:
        try:
            for worker in self.workers.values():
                worker.ready()
        except RuntimeError:
            self.__exit__()
            raise
        return self.workers

    def __exit__(self, *_) -> None:
        for worker in self.workers.values():
            worker.close()


def in_order(names, turn: int) -> list:
    """Each turn begins with another one, so that nobody is always first, or always after the same one."""
    names = list(names)
    first = turn % len(names)
    return names[first:] + names[:first]
