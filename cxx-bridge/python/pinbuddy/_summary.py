"""The memory summary: statistics in, text out.

Pure functions of what ``stats()`` returns; asks neither the library nor torch.
"""

import math
import textwrap
from collections import Counter
from collections.abc import Callable

from pinbuddy._types import Budget, Counters, Gauge, Plan, Segment, Stats, WarmUp

_LABEL, _CELL = 20, 10
_INNER = _LABEL + 3 + 4 * (_CELL + 3) - 1
_FACT = _INNER - _LABEL - 5

_WHY_OFF = {
    "off": "BUDDY_DISABLE=1 leaves pinned memory to PyTorch's own allocator",
    "retired": "the engine met a defect of its own, named on standard error, and retired; since "
    "then PyTorch's own allocator serves",
    "absent": "the plug-in was not loaded; `python -m pinbuddy doctor` says why",
    "forked": "this is a forked child, and the engine and what it pinned are its parent's",
}
NO_GPU = "pinbuddy is off: there is no GPU here, and without one no memory can be pinned; `python -m pinbuddy doctor` says more."
_KINDS = ("planned", "large", "small", "dedicated", "idle")
# More than a machine has: the engine's way to say that it knows no limit.
_NO_LIMIT = 1 << 62


def summary(stats: Stats) -> str:
    """The table for ``stats``, or one line if the engine is off."""
    engine = stats["engine"]
    if stats["state"] != "on" or engine is None:
        # The engine may retire after its state was read and before its counters are.
        state = "retired" if stats["state"] == "on" else stats["state"]
        return f"pinbuddy is off: {_WHY_OFF[state]}."
    thick, thin = f"|{'=' * _INNER}|", f"|{'-' * _INNER}|"
    head = ("Metric", "Current", "Peak", "Tot alloc", "Tot freed")
    lines = [
        thick,
        f"|{'pinbuddy: pinned host memory':^{_INNER}}|",
        thin,
        _row(f"{head[0]:^{_LABEL}}", *(f"{it:^{_CELL}}" for it in head[1:])),
        thick,
        *_sizes(engine),
        thin,
        *_counts(engine),
        thin,
        *_facts(stats, engine),
        thick,
    ]
    return "\n".join(lines)


def size_text(size: int) -> str:
    """A number of bytes as people read it, for instance ``129.5 MiB``; the unit has three
    characters, so that columns line up."""
    if size < 1 << 10:
        return f"{size} B  "
    value = float(size)
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        value /= 1024
        # A value that would round to 1024.0 is 1.0 of the next unit.
        if value < 1023.95:
            break
    return f"{value:.1f} {unit}"


def fragmentation(segments: list[Segment]) -> float:
    """The share of idle bytes that lies outside its segment's longest free run; 0 where nothing is
    idle.

    By segment, since no run goes beyond one: segments that are wholly idle are not fragmented.
    Dedicated regions are never split, and do not count.
    """
    split = [it for it in segments if it["kind"] != "dedicated"]
    idle = sum(it["free_bytes"] for it in split)
    runs = sum(it["largest_free_run_bytes"] for it in split)
    return 1 - runs / idle if idle else 0.0


def _sizes(engine: Counters) -> list[str]:
    return [
        _gauge("Pinned (allocated)", engine["pinned_bytes"], size_text),
        _row("  of it dedicated", size_text(engine["dedicated_bytes"])),
        _gauge("Active", engine["active_bytes"], size_text),
        _gauge("  of it pending", engine["pending_bytes"], size_text),
        _row("Idle", size_text(engine["idle_bytes"])),
    ]


def _counts(engine: Counters) -> list[str]:
    return [
        _gauge("Segments", engine["segments"], str),
        _gauge("Active blocks", engine["active_blocks"], str),
        _gauge("  of them pending", engine["pending_blocks"], str),
    ]


def _facts(stats: Stats, engine: Counters) -> list[str]:
    is_planned = any(it["kind"] == "planned" for it in stats["segments"])
    facts = {
        "Largest free block": _short(engine["largest_free_run_bytes"]) + (" outside the plan" if is_planned else ""),
        "Fragmentation": f"{100 * fragmentation(stats['segments']):.1f} %",
        "Hit rate": _hit_rate(engine),
        "Segments by kind": _kinds(stats["segments"]),
        "Memory": _memory(stats["segments"]),
        "Warm-up": _warm_up(stats["warm_up"]),
        "Budget": _budget(stats["budget"]),
    }
    if by_node := _by_node(stats["segments"]):
        facts["For devices on"] = by_node
    if stats["plan"] is not None:
        facts["Plan"] = _plan(stats["plan"])
    return [line for label, text in facts.items() for line in _fact(label, text)]


def _hit_rate(engine: Counters) -> str:
    served = engine["hits"]
    if served == 0:
        return "nothing served yet"
    # A request may miss, wait and miss again, so there can be more misses than requests.
    at_once = max(0, served - engine["misses"])
    return f"{100 * at_once / served:.1f} % of {_plural(served, 'request')} needed no pin"


def _kinds(segments: list[Segment]) -> str:
    counts: Counter[str] = Counter(it["kind"] for it in segments)
    return ", ".join(f"{counts[kind]} {kind}" for kind in _KINDS if counts[kind]) or "nothing pinned"


def _memory(segments: list[Segment]) -> str:
    """How much there is of each backing, page size and node."""
    sizes: Counter[str] = Counter()
    for it in segments:
        sizes[_place(it)] += it["bytes"]
    return "; ".join(f"{_short(size)} {place}" for place, size in sizes.items()) or "nothing pinned"


def _by_node(segments: list[Segment]) -> str:
    """How much serves the devices of each node, and how much of that is in use; empty where all serves all."""
    if all(it["home_node"] is None for it in segments):
        return ""
    sums: dict[str, tuple[int, int]] = {}
    for it in sorted(segments, key=lambda it: math.inf if it["home_node"] is None else it["home_node"]):
        node = "an unknown node" if it["home_node"] is None else f"node {it['home_node']}"
        size, used = sums.get(node, (0, 0))
        sums[node] = (size + it["bytes"], used + it["live_bytes"] + it["pending_bytes"])
    return "; ".join(f"{node}: {_short(size)}, {_short(used)} active" for node, (size, used) in sums.items())


def _place(segment: Segment) -> str:
    if segment["backing"] == "cuda":
        return "by CUDA"
    page, huge, node = segment["page_bytes"], segment["huge_bytes"], segment["numa_node"]
    text = "in pages of " + (_short(page) if page else "a size unknown")
    if page and huge is not None:
        # Left out if all or none of the region is in huge pages.
        share = 100 * huge // segment["bytes"]
        text += f" ({share} % huge)" if 0 < share < 100 else ""
    return text + (f" on node {node}" if node is not None else "")


def _warm_up(warm_up: WarmUp | None) -> str:
    if warm_up is None:
        return "unknown"
    pinned, owed = warm_up["pinned"], warm_up["owed"]
    text = f"{warm_up['mode']}, {warm_up['phase']}: {_plural(pinned, 'segment')} pinned"
    if warm_up["mode"] == "off" and warm_up["phase"] == "cold":
        # With ``off`` they are not about to be pinned.
        text = f"off: nothing is pinned ahead, unless by warm_up() ({_plural(owed, 'segment')})"
    elif owed:
        text += f", {owed} owed"
    return text + (f"; stopped: {warm_up['stopped']}" if warm_up["stopped"] else "")


def _budget(budget: Budget | None) -> str:
    if budget is None:
        return "decided when something is first pinned"
    size = "none" if budget["bytes"] >= _NO_LIMIT else _short(budget["bytes"])
    return f"{size}, {budget['why']}"


def _plan(plan: Plan) -> str:
    asked = plan["hits"] + plan["misses"] + plan["unplanned"]
    if asked == 0:
        return "no request yet"
    text = f"{100 * plan['hits'] / asked:.1f} % of {_plural(asked, 'request')} got their place"
    counts = {
        "found it taken": plan["misses"],
        "not in the plan": plan["unplanned"],
        "served with what is idle": plan["borrowed"],
    }
    others = [f"{count} {what}" for what, count in counts.items() if count]
    if plan["drift"]:
        others.append(f"{_plural(plan['drift'], 'time')} out of step")
    if plan["resyncs"]:
        others.append(f"{_plural(plan['resyncs'], 'time')} back in step")
    if plan["given_up"]:
        others.append(f"{_plural(plan['given_up'], 'time')} given up")
    return "; ".join([text, ", ".join(others)]) if others else text


def _gauge(label: str, gauge: Gauge, text: Callable[[int], str]) -> str:
    return _row(label, *(text(gauge[key]) for key in ("current", "peak", "allocated", "freed")))


def _row(label: str, *cells: str) -> str:
    padded = [f"{cell:>{_CELL}}" for cell in (*cells, "", "", "", "")[:4]]
    return "| " + " | ".join([f"{label:<{_LABEL}}", *padded]) + " |"


def _fact(label: str, text: str) -> list[str]:
    lines = textwrap.wrap(text, _FACT)
    return [
        f"| {label if at == 0 else '':<{_LABEL}} | {line:<{_FACT}} |" for at, line in enumerate(lines)
    ]


def _short(size: int) -> str:
    return size_text(size).rstrip().replace(".0 ", " ")


def _plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
