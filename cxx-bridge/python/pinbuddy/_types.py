"""Types of the dictionaries that the package returns.

Every size is in bytes. Sizes of blocks are rounded up to 4 KiB, as the engine cuts them.
"""

from typing import Literal, TypedDict


class Setting(TypedDict):
    """One ``BUDDY_`` variable."""

    value: int | str | bool | None
    """The value in use; ``None`` if the machine decides (``BUDDY_MAX_MB``) or there is none (``BUDDY_TRACE``)."""
    origin: Literal["built-in", "wheel", "site", "environment", "rejected"]
    """Where it came from; ``rejected``: nothing that was set can be used, and the built-in value is."""
    file: str | None
    """The file that sets it, with ``wheel`` and ``site``."""
    remark: str | None
    """What is wrong with the value, for people."""


class Gauge(TypedDict):
    """A quantity over time, with the meaning of the ``Stat`` of PyTorch's caching allocators."""

    current: int
    peak: int
    """The largest value since ``torch.cuda.reset_peak_host_memory_stats()``."""
    allocated: int
    """The sum of additions since ``torch.cuda.reset_accumulated_host_memory_stats()``."""
    freed: int
    """The sum of removals since then."""


class Counters(TypedDict):
    """The engine's counters. Active and idle bytes make up the pinned bytes."""

    pinned_bytes: Gauge
    segments: Gauge
    active_bytes: Gauge
    """In blocks that a tensor has or streams still use, as PyTorch counts them."""
    active_blocks: Gauge
    pending_bytes: Gauge
    """The part of the active bytes in blocks that were freed while streams still use them."""
    pending_blocks: Gauge
    idle_bytes: int
    returned_bytes: int
    """Unpinned since nobody had used them for ``BUDDY_IDLE_S``, so far."""
    dedicated_bytes: int
    """The part of the pinned bytes in regions longer than a segment, for one block each."""
    largest_free_run_bytes: int
    """The longest block that can be served without pinning."""
    hits: int
    """Requests served."""
    misses: int
    """How often a request had to wait for memory to be pinned."""


class WarmUp(TypedDict):
    """Progress of the warm-up."""

    mode: Literal["background", "sync", "off"]
    """As ``BUDDY_WARMUP`` says."""
    phase: Literal["cold", "running", "paused", "done"]
    """``paused``: an ``empty_cache`` unpinned segments, which are pinned again when demand shows."""
    pinned: int
    """Segments that it has pinned so far, including those pinned again."""
    owed: int
    """The deficit: segments that it is still to pin."""
    stopped: str | None
    """Why it gave up, if it did."""


class Budget(TypedDict):
    """The most that the engine pins."""

    bytes: int
    why: str
    """The reason for the number, for people."""


class Segment(TypedDict):
    """One pinned region. Its free, live and pending bytes make up its bytes."""

    address: int
    bytes: int
    kind: Literal["small", "large", "idle", "dedicated", "planned"]
    """The requests that it serves: below 4 MiB, others, none now, one longer than a segment, or those
    that a plan has slots for."""
    free_bytes: int
    live_blocks: int
    live_bytes: int
    pending_blocks: int
    pending_bytes: int
    largest_free_run_bytes: int
    backing: Literal["pages", "cuda"]
    """``pages``: mapped by pinbuddy and registered with CUDA; ``cuda``: allocated by CUDA."""
    page_bytes: int | None
    """The size of most of its pages, as the kernel says; ``None`` if unknown."""
    huge_bytes: int | None
    """How much of it has pages of more than 4 KiB; ``None`` if unknown."""
    numa_node: int | None
    """The NUMA node of all of it; ``None`` if unknown or more than one."""
    home_node: int | None
    """The NUMA node whose devices it serves (``BUDDY_NUMA=auto``); ``None``: all, or those of an unknown node."""


class Block(TypedDict):
    """A part of a segment that serves a request."""

    offset: int
    """From the segment's address, in bytes."""
    bytes: int
    state: Literal["live", "pending"]


class SegmentBlocks(Segment):
    """A segment with its blocks, in the order of their offsets; the parts between them are free."""

    blocks: list[Block]


class Plan(TypedDict):
    """How a plan fares (``BUDDY_PLAN``)."""

    pinned: bool
    """Whether all of its regions are pinned."""
    hits: int
    """Requests that slots served."""
    misses: int
    """Requests whose slot was taken, or its region not pinned."""
    unplanned: int
    """Requests that have no slot."""
    drift: int
    """How often a thread lost its place in its sequence: too many of its requests differed."""
    resyncs: int
    """How often a thread's place was found again, or an iteration's mark put it back."""
    given_up: int
    """How often nothing was kept for a thread any more, since hardly any of its requests had a slot."""
    borrowed: int
    """Requests without a slot that were served with what the plan leaves idle."""


class StreamPlan(TypedDict):
    """How the plan of a GPU's stream fares (``BUDDY_DEVICE_PLAN``)."""

    device: int
    stream: int
    """How many streams of this device asked for planned memory before it."""
    reserved_bytes: int
    """What its regions take."""
    dropped: bool
    """Whether the plan is used no more: its regions could not be had, or memory was short."""
    given_back: int
    """How often idle regions were given back since memory was short, with the plan in force."""
    hits: int
    """Requests that slots served."""
    misses: int
    """Requests whose slot was taken."""
    unplanned: int
    """Requests that have no slot."""
    resyncs: int
    """How often the stream's place in its sequence was lost and found again."""
    borrowed: int
    """Requests without a slot that were served with what the plan leaves idle."""


class ChosenPlan(TypedDict):
    """The file that ``auto`` chose."""

    file: str
    state: Literal["new", "used", "none"]
    """``new``: this run is recorded, and writes it. ``none``: neither, and a line says why."""


class Auto(TypedDict):
    """What ``BUDDY_PLAN=auto`` and ``BUDDY_DEVICE_PLAN=auto`` chose; ``None`` where that is not set, or there is no file to choose."""

    pinned: ChosenPlan | None
    device: ChosenPlan | None


class InPlace(TypedDict):
    """Memory that ``pin_`` has pinned where it was."""

    pins: int
    bytes: int
    """Of its pages."""


class Stats(TypedDict):
    """A snapshot of the engine."""

    state: Literal["on", "off", "retired", "forked", "absent"]
    """``off``: ``BUDDY_DISABLE=1``. ``absent``: the plug-in was not loaded. ``retired``: the engine met a
    defect of its own and left everything to PyTorch. ``forked``: this is a child of a fork, and the engine
    is its parent's."""
    warm_up: WarmUp | None
    """``None`` in a child."""
    budget: Budget | None
    """``None`` before anything was pinned, and in a child."""
    engine: Counters | None
    """``None`` once the engine is retired, and in a child."""
    plan: Plan | None
    """``None`` if no plan is in use, once the engine is retired, and in a child."""
    device: list[StreamPlan] | None
    """``None`` if no plan for device memory is in use, and in a child."""
    auto: Auto | None
    """``None`` in a child."""
    in_place: InPlace | None
    """``None`` in a child."""
    segments: list[Segment]
