"""One run of a client program with stock, the fork or the plug-in: its exit, its report, and its standard error made comparable."""

import json
import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
# Many times longer than any client takes on two busy cores.
LIMIT_SECONDS = 300
SUCCESS = "exit code 0"
# A caller's settings that would change what is compared.
CLEARED = ("BUDDY_", "PYTORCH_", "PYTHON")


@dataclass(frozen=True)
class Client:
    """A program of this folder; docs/clients.md says what each does."""

    name: str
    file: str
    arguments: tuple[str, ...] = ()
    # The library that it needs besides torch.
    library: str | None = None
    # Whether `cargo xtask test` runs it.
    quick: bool = False


CLIENTS = [
    *(Client(f"loader-{how}", "loader", (how,)) for how in ("fork", "spawn", "forkserver", "persistent")),
    Client("loader-pinned-data", "loader_pinned_data"),
    Client("forked-child-large", "forked_child", ("large",)),
    Client("forked-child-small", "forked_child", ("small",), quick=True),
    Client("save-on-cpu", "save_on_cpu"),
    *(Client(f"checkpoint-{how}", "checkpoint", (how,)) for how in ("thread", "process")),
    Client("fsdp-offload", "fsdp_offload", quick=True),
    Client("kv-pool", "kv_pool", quick=True),
    Client("accelerate", "accelerate_offload", library="accelerate"),
    Client("diffusers", "diffusers_offload", library="diffusers"),
    Client("lightning", "lightning_fit", library="lightning"),
    Client("safetensors", "safetensors_load", library="safetensors"),
    Client("torchao", "torchao_optimizer", library="torchao"),
    Client("torchdata", "torchdata_nodes", library="torchdata"),
    Client("transformers", "transformers_cache", library="transformers"),
]


@dataclass(frozen=True)
class Way:
    """An interpreter with torch, and folders for PYTHONPATH: the libraries, the plug-in."""

    name: str
    python: str
    packages: tuple[str, ...] = ()


@dataclass
class Ran:
    exit: str
    seconds: float = 0.0
    # What client.py prints; None if the program did not finish.
    report: dict | None = None
    # The lines of standard error, without what varies from run to run.
    warnings: set[str] = field(default_factory=set)
    # The exception that ended the program.
    exception: str | None = None
    last_words: str = ""

    @property
    def succeeded(self) -> bool:
        return self.exit == SUCCESS and self.report is not None

    @property
    def end(self) -> str:
        return self.exit if self.succeeded else f"{self.exit}, {self.exception or 'no exception'}"


def run(client: Client, way: Way, places: dict[str, str], **settings: str) -> Ran:
    """Runs it in its own folder, with no settings but these and no network. `places` has names of folders, for its lines."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(CLEARED)}
    with tempfile.TemporaryDirectory(prefix="pinbuddy-client-") as work:
        environment = kept | {
            "PYTHONPATH": os.pathsep.join(way.packages),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": work,
            "HF_HUB_OFFLINE": "1",
            "PINBUDDY_SIM_QUIET": "1",
            # Children see their parent's pinned memory, as with a driver.
            "PINBUDDY_SIM_SHARED": "1",
            "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "2",
        }
        command = [way.python, str(HERE / f"{client.file}.py"), *client.arguments]
        said, start = Path(work) / "output", time.monotonic()
        errors = said.with_name("errors")
        # Files, since children may keep a pipe open.
        with said.open("w") as output, errors.open("w") as error:
            program = subprocess.Popen(
                command, cwd=work, env=environment | settings, stdin=subprocess.DEVNULL, stdout=output, stderr=error
            )
            try:
                code = program.wait(LIMIT_SECONDS)
                end = f"exit code {code}" if code >= 0 else f"signal {-code}"
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()
                end = f"stopped after {LIMIT_SECONDS} s"
        text = errors.read_text(errors="replace")
        return Ran(
            end,
            round(time.monotonic() - start, 1),
            read(said.read_text(errors="replace")),
            warnings(text, places | {str(HERE): "CLIENTS", work: "WORK"}),
            exception(text),
            "\n".join(text.splitlines()[-8:]),
        )


FIELDS = {"results", "statistics", "names", "peak_pinned", "peak_active", "pins"}


def read(output: str) -> dict | None:
    """The last line of standard output, if it is a report."""
    try:
        report = json.loads(output.rstrip().rpartition("\n")[2])
    except ValueError:
        return None
    return report if isinstance(report, dict) and report.keys() == FIELDS else None


# What Python says above an exception that ended a thread or a child, or that it went past. Which of these notice that a program
# ends, and in which order, is a race.
BESIDE_THE_PROGRAM = ("Exception in thread ", "Exception ignored in", "Process ")


def exception(text: str) -> str | None:
    """The exception that ended the program itself: the last one of its main thread."""
    found, above, expected = None, "", False
    for line in filter(str.strip, text.splitlines()):
        if line == "Traceback (most recent call last):":
            expected = not above.startswith(BESIDE_THE_PROGRAM)
        elif expected and re.fullmatch(r"\w+(\.\w+)*", line.partition(":")[0]):
            found, expected = line.partition(":")[0], False
        above = line
    return found


# The stack trace that torch prints below a warning of its C++ code.
BELOW_A_WARNING = ("frame #", "<omitting python frames>", "Exception raised from ", "Search for `cuda", " (function ")
# Folders of one run, identifiers, addresses and numbers.
VARIES = re.compile(r"/tmp/[^\s'\",:;)]*|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]*|[0-9]+")


def warnings(text: str, places: dict[str, str]) -> set[str]:
    """The lines of standard error, comparable: folders have names, and numbers are gone."""
    found = set()
    # Progress bars overwrite their own line.
    for line in re.split("[\n\r]", text):
        line = line.rstrip()
        if line and not line.startswith(BELOW_A_WARNING):
            # The longest first: one folder may lie in another.
            for folder in sorted(places, key=len, reverse=True):
                line = line.replace(folder, places[folder])
            found.add(VARIES.sub(lambda it: "/tmp/#" if it[0].startswith("/tmp/") else "#", line))
    return found
