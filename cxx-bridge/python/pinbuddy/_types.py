"""The shapes of what the package returns: plain dictionaries, typed for readers and checkers.

Every size is in bytes. A size of blocks counts as rounded up to 4 KiB, as the engine cuts them.
"""

from typing import Literal, TypedDict


class Setting(TypedDict):
    """One ``BUDDY_`` variable."""

    value: int | str | bool | None
    """The value in use; ``None`` where the machine decides (``BUDDY_MAX_MB``)."""
    origin: Literal["default", "environment", "rejected"]
    """Where it came from; ``rejected``: what is set cannot be used, and the default stands in."""
    remark: str | None
    """What is wrong with what is set, for people."""


class Gauge(TypedDict):
    """A quantity over time, with the meaning of the ``Stat`` of PyTorch's caching allocators."""

    current: int
    peak: int
    """The most that it was since ``torch.cuda.reset_peak_host_memory_stats()``."""
    allocated: int
    """All that was added since ``torch.cuda.reset_accumulated_host_memory_stats()``."""
    freed: int
    """All that was taken away since then."""


class Counters(TypedDict):
    """The engine's counters. Active and idle bytes make up the pinned bytes."""

    pinned_bytes: Gauge
    segments: Gauge
    active_bytes: Gauge
    """In blocks that a tensor has or streams still use, as PyTorch counts them."""
    active_blocks: Gauge
    pending_bytes: Gauge
    """Those of the active bytes that lie in blocks which were freed while streams still use them."""
    pending_blocks: Gauge
    idle_bytes: int
    dedicated_bytes: int
    """Those of the pinned bytes that lie in regions longer than a segment, for one block each."""
    largest_free_run_bytes: int
    """The longest block that can be served without pinning."""
    hits: int
    """Requests served."""
    misses: int
    """How often a request had to wait for memory to be pinned."""


class WarmUp(TypedDict):
    """How far pinning ahead is."""

    mode: Literal["background", "sync", "off"]
    """As ``BUDDY_WARMUP`` says."""
    phase: Literal["cold", "running", "paused", "done"]
    """``paused``: an ``empty_cache`` gave segments back, and the next request that finds no room
    has them pinned again."""
    pinned: int
    """Segments that it has pinned so far, those pinned again included."""
    owed: int
    """Segments that it is still to pin."""
    stopped: str | None
    """Why it gave up, if it did."""


class Budget(TypedDict):
    """The most that the engine pins."""

    bytes: int
    why: str
    """Where the number came from, for people."""


class Segment(TypedDict):
    """One pinned region. Its free, live and pending bytes make up its bytes."""

    address: int
    bytes: int
    kind: Literal["small", "large", "idle", "dedicated"]
    """What it serves: requests below 4 MiB, others, none now, or one longer than a segment."""
    free_bytes: int
    live_blocks: int
    live_bytes: int
    pending_blocks: int
    pending_bytes: int
    largest_free_run_bytes: int
    backing: Literal["pages", "cuda"]
    """Who has the memory: mapped by pinbuddy and registered, or allocated by CUDA."""
    page_bytes: int | None
    """The size of the pages that most of it has, as the kernel says; ``None`` where unknown."""
    huge_bytes: int | None
    """How much of it lies in pages of more than 4 KiB; ``None`` where unknown."""
    numa_node: int | None
    """The NUMA node that all of it lies on; ``None`` where unknown or more than one."""


class Block(TypedDict):
    """A part of a segment that serves a request."""

    offset: int
    """From the segment's address, in bytes."""
    bytes: int
    state: Literal["live", "pending"]


class SegmentBlocks(Segment):
    """A segment with its blocks, in the order of their offsets; what lies between them is free."""

    blocks: list[Block]


class Stats(TypedDict):
    """What the engine knows at one moment."""

    state: Literal["on", "off", "retired", "forked", "absent"]
    """``off``: ``BUDDY_DISABLE=1``. ``absent``: the plug-in was not loaded. ``retired``: the engine met a defect of its own and left
    everything to PyTorch. ``forked``: this is a forked child, and the engine is its parent's."""
    warm_up: WarmUp | None
    """``None`` in a forked child."""
    budget: Budget | None
    """``None`` before anything was pinned, and in a forked child."""
    engine: Counters | None
    """``None`` once the engine is retired, and in a forked child."""
    segments: list[Segment]
