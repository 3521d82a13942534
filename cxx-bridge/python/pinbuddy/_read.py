"""Reads the engine's settings and statistics. Nothing here starts CUDA, pins memory, or takes a lock in
a child of a fork."""

from pinbuddy import _library, _summary
from pinbuddy._types import SegmentBlocks, Setting, Stats


def enabled() -> bool:
    """Whether pinbuddy serves this process's pinned memory.

    ``False`` with ``BUDDY_DISABLE=1``, in a child of a fork, if the plug-in was not loaded, and once the
    engine has met a defect of its own and retired; PyTorch's own allocator serves then.
    ``stats()["state"]`` says which. ``False`` also without a GPU, where memory cannot be pinned.
    """
    # Counting GPUs does not start CUDA if the driver's management library can be asked.
    return bool(_library.load().pinbuddy_enabled()) and gpus() > 0


def gpus() -> int:
    """How many GPUs this process sees."""
    import torch

    return torch.cuda.device_count()


def version() -> str:
    """PyTorch's version and pinbuddy's, for instance ``2.15.0+cu132.pinbuddy.0.1.0``, which is a fork's
    ``torch.__version__``. If the plug-in was not loaded, pinbuddy's only: ``0.1.0``."""
    text: bytes = _library.load().pinbuddy_version()
    return text.decode()


def config() -> dict[str, Setting]:
    """Each setting by its variable's name, as read when torch was imported; none if the plug-in was not
    loaded.

    ``value`` is in the variable's own unit (MiB if its name ends in ``_MB``). ``origin`` is ``environment``,
    ``site`` or ``wheel``, with the ``file`` that sets it, ``built-in``, or ``rejected``: nothing that was set can
    be used, and the built-in value is. ``remark`` says what is wrong with what was set, or is ``None``.
    """
    settings = _library.read_json("pinbuddy_config_json")
    keys = ("value", "origin", "file", "remark")
    return {it["name"]: {key: it[key] for key in keys} for it in settings.values()}


def stats() -> Stats:
    """The engine's counters, its segments, the warm-up and the budget; in bytes.

    - ``state``: ``on``, ``off`` (``BUDDY_DISABLE=1``), ``retired`` (the engine met a defect of its
      own and left everything to PyTorch), ``forked`` (a child of a fork, in which the engine is off) or
      ``absent`` (the plug-in was not loaded).
    - ``warm_up``: ``mode`` as ``BUDDY_WARMUP`` says; ``phase``, one of ``cold``, ``running``,
      ``paused`` (an ``empty_cache`` unpinned segments) and ``done``; how many segments it has ``pinned``
      and how many are ``owed``, that is, still missing; why it ``stopped`` early, or ``None``.
    - ``budget``: the most that may be pinned, as ``bytes``, and ``why``. ``None`` before anything
      was pinned.
    - ``engine``: gauges (``current``, ``peak``, ``allocated``, ``freed``) named ``pinned_bytes``,
      ``segments``, ``active_bytes``, ``active_blocks``, ``pending_bytes`` and ``pending_blocks`` (a part
      of the active ones); the numbers ``idle_bytes``, ``returned_bytes`` (unpinned since nobody had used them for
      ``BUDDY_IDLE_S``), ``dedicated_bytes`` and ``largest_free_run_bytes``; and the counts ``hits`` (requests served) and ``misses`` (a request had
      to wait for memory to be pinned). ``None`` once the engine is retired.
    - ``plan``: how the plan of ``BUDDY_PLAN`` fares (``hits``, ``misses``, ``unplanned``, ``drift``, ``resyncs``,
      ``given_up``, ``borrowed``, and whether it is ``pinned``); ``None`` if none is in use.
    - ``device``: the same for each stream of a GPU with a plan (``BUDDY_DEVICE_PLAN``) that has asked for memory:
      the ``device``, the ``stream``'s number among those that asked, the ``reserved_bytes`` of its regions, how
      often these were ``given_back`` since memory was short, and whether the plan was ``dropped``. ``None`` if no such plan is in use.
    - ``auto``: the ``file`` that ``BUDDY_PLAN=auto`` chose (``pinned``), and ``BUDDY_DEVICE_PLAN=auto`` (``device``), and its
      ``state``: ``used``, ``new`` (this run is to write it) or ``none``. ``None`` where no file was chosen.
    - ``in_place``: how many ``pins`` by ``pin_`` there are, and the ``bytes`` of their pages.
    - ``segments``: each pinned region, without its blocks. ``backing`` (``pages`` or ``cuda``),
      ``page_bytes``, ``huge_bytes`` and ``numa_node`` describe its memory as the kernel reports it, once
      for each region, in the first report that lists it. ``home_node`` is the node whose devices a region serves, where
      ``BUDDY_NUMA=auto`` tells nodes apart.

    In a child of a fork, and without the library, ``warm_up``, ``budget``, ``engine``, ``plan``, ``device``, ``auto`` and
    ``in_place`` are ``None`` and ``segments`` is empty.
    """
    # In these cases the library returns the state only; the keys are the same.
    unknown = {"warm_up": None, "budget": None, "engine": None, "plan": None, "device": None, "auto": None, "in_place": None}
    known: Stats = unknown | _library.read_json("pinbuddy_stats_json")
    return known


def segments() -> list[SegmentBlocks]:
    """Each segment with its blocks: ``offset`` in the segment and ``bytes``, and their ``state``,
    ``live`` or ``pending`` (freed while streams still use them).

    Empty while nothing is pinned, and if the engine is off. Scans all pinned memory while requests wait:
    for people and tools, not for every step.
    """
    listed: list[SegmentBlocks] = _library.read_json("pinbuddy_segments_json")
    return listed


def memory_summary() -> str:
    """A table for people, like ``torch.cuda.memory_summary``: what is pinned, live, pending and idle, how
    well it is used, the warm-up and the budget.

    If the engine is off, one line that says why.
    """
    return _summary.summary(stats())
