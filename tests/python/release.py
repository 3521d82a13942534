"""The release of torch, and stock's statistics under today's names.

Programs that tests run import it too, with stock's Python as with the fork's. Knows nothing of the fork.
"""

from importlib.metadata import version

__all__ = ["COUNTS_WHAT_IS_ACTIVE", "block_bytes", "from_minor", "host_stats"]

MAJOR, MINOR = (int(part) for part in version("torch").split("+")[0].split(".")[:2])

# Today's names of statistics that had others before 2.10.
TODAYS = {"segment": "allocations", "reserved_bytes": "allocated_bytes", "allocation": "active_requests", "allocated_bytes": "active_bytes"}


def from_minor(minor: int) -> bool:
    """Whether this is torch 2.`minor` or later."""
    return (MAJOR, MINOR) >= (2, minor)


# From 2.10 to 2.12 stock does not count frees without an event, so active memory only grows.
COUNTS_WHAT_IS_ACTIVE = not from_minor(10) or from_minor(13)


def block_bytes(simulated: dict, kind: str = "pinned_bytes") -> int:
    """What blocks have of the bytes that the simulator's counters call pinned: the fork registers a page before each region, so
    that no registration begins where a block does. For programs that register nothing by themselves."""
    return simulated[kind] - 4096 * (simulated["host_registers"] - simulated["host_unregisters"])


def host_stats() -> dict:
    """torch.cuda.host_memory_stats(), by the names of today's release."""
    import torch

    stats = torch.cuda.host_memory_stats()
    if from_minor(10):
        return stats
    named = [(*name.partition("."), value) for name, value in stats.items()]
    return {TODAYS.get(kind, kind) + dot + when: value for kind, dot, when, value in named}
