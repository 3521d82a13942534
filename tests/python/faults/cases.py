"""Which calls of a program fail, and how: a case is one call that fails in one way."""

from collections.abc import Iterator
from dataclasses import dataclass

OUT_OF_MEMORY, GONE, UNKNOWN, ILLEGAL_ADDRESS = 2, 4, 999, 700
TEXTS = {OUT_OF_MEMORY: "out of memory", GONE: "driver shutting down", UNKNOWN: "unknown error",
         ILLEGAL_ADDRESS: "an illegal memory access was encountered"}
PINS = {"cudaHostAlloc", "cudaHostRegister", "cudaMalloc", "cuMemCreate"}
# Without end, or none of the allocator's: the first ones speak for all.
PLENTY = {"cudaGetDevice", "cudaSetDevice", "cudaLaunchKernel", "cudaDeviceGetAttribute", "cudaStreamCreateWithPriority"}
# All calls to CUDA together, by the simulator's name for them: a driver that is gone answers none.
ALL = "*"
# At so many places in a program is the driver gone.
PLACES = 8
# What the quick part has fail: pins, unpins, events, copies, memory of our own, and the driver.
COMMONEST = {
    "cudaHostAlloc", "cudaHostRegister", "cudaHostGetDevicePointer", "cudaHostUnregister", "cudaFreeHost",
    "cudaEventCreateWithFlags", "cudaEventRecord", "cudaEventQuery", "cudaMemcpyAsync", "mmap", "madvise", "open", "read",
    ALL,
}
KINDS = ("once", "for good", "stays")
# Ways of system calls, the quick part's first. Without "once" a way is there from that call on. A signal interrupts a call
# once: Rust's own calls of `open`, `read`, `write` and `fsync` are made again as long as they are interrupted. `madvise` is
# ours, and a kernel that answers nothing but EINTR must not make it hang.
ANY = ("errno 12", "errno 1", "errno 12, once")
INTERRUPTED = "errno 4, once"
WAYS = {
    "read": ("short", "errno 12", "errno 1", "errno 5, once", INTERRUPTED),
    "write": ("short", "errno 28", "errno 28, once", INTERRUPTED),
    "open": (*ANY, INTERRUPTED),
    "fsync": (*ANY, INTERRUPTED),
    "madvise": ("errno 12", "errno 4", "errno 1", "errno 12, once", INTERRUPTED),
}


def is_cuda(entry: str) -> bool:
    """Whether it is a call to CUDA, of the runtime (`cuda…`), the driver (`cu…`) or cuBLAS; else a system call."""
    return entry.startswith("cu") or entry == ALL


@dataclass(frozen=True)
class Case:
    """A call that fails: which, which one of them, and how."""

    program: str
    entry: str
    call: int
    kind: str

    @property
    def error(self) -> int:
        if self.entry == ALL:
            return GONE
        if self.kind == "stays":
            return ILLEGAL_ADDRESS
        return OUT_OF_MEMORY if self.entry in PINS else UNKNOWN

    @property
    def text(self) -> str:
        """The cause, as CUDA words it."""
        return TEXTS[self.error]

    @property
    def plan(self) -> str:
        """As the simulator reads it."""
        if is_cuda(self.entry):
            return f"{self.entry}:{self.call}{'+' if self.kind == 'for good' else ''}={self.error}"
        way, _, once = self.kind.partition(", ")
        return f"{self.entry}:{self.call}{'' if once else '+'}={way.removeprefix('errno ')}"


def ways_of(entry: str, kinds: tuple[str, ...]) -> tuple[str, ...]:
    if entry == ALL:
        return ("for good",)
    if is_cuda(entry):
        return kinds
    # The quick part has fewer. `open(FILE)` fails as `open` does, which has all ways.
    few = len(kinds) - 1 if len(kinds) < len(KINDS) or "(" in entry else None
    return WAYS.get(entry, ANY)[:few]


def cases(program: str, calls: dict[str, int], most: int, kinds: tuple[str, ...] = KINDS) -> Iterator[Case]:
    """Each of the first ``most`` calls of each name, failing in each way."""
    for entry, count in sorted(calls.items()):
        some = min(most, 2) if entry in PLENTY or "(" in entry else most
        numbers = range(1, min(count, some) + 1)
        if entry == ALL:
            places = min(count, most, PLACES)
            numbers = [count * (2 * it + 1) // (2 * places) + 1 for it in range(places)]
        for call in numbers:
            for kind in ways_of(entry, kinds):
                yield Case(program, entry, call, kind)


def with_all(calls: dict[str, int]) -> dict[str, int]:
    """Counts with the one of all calls to CUDA."""
    return calls | {ALL: sum(count for entry, count in calls.items() if is_cuda(entry))}
