"""Actions: pin memory ahead of need, unpin idle memory, and say where an iteration ends."""

from typing import Any

from pinbuddy import _library
from pinbuddy._read import enabled, stats


def warm_up(wait: bool = False, device: Any = None) -> bool:
    """Starts pinning the blocks that ``BUDDY_BLOCK_COUNT`` asks for, and those that ``empty_cache``
    unpinned.

    A thread of its own pins them, whatever ``BUDDY_WARMUP`` says; requests are served meanwhile.
    With ``wait`` the call returns when the thread has ended; other Python threads run on. Does
    nothing if all of them are pinned already. Where no count is set, it pins as much as 8 blocks,
    within the budget, in regions that are short at first.

    May be called before the program has chosen a GPU: with several of them the thread waits until the
    program uses one, and ``wait`` does not. With ``device``, which is what ``torch.cuda.device`` takes,
    that GPU is used at once.

    Returns ``True``, or ``False`` if nothing can be pinned: on a machine with no GPU, and if the
    engine is off. ``stats()["warm_up"]`` says what was pinned; a pin that fails is no error here,
    and is named there.

    Raises what ``torch.cuda.init()`` raises if CUDA cannot be started.
    """
    import torch

    if not enabled() or not torch.cuda.is_available():
        return False
    # Pinning starts CUDA in this process. PyTorch must know: from now on it refuses CUDA in children
    # of a fork, where CUDA would fail less clearly.
    torch.cuda.init()
    library = _library.load()
    if device is None:
        return bool(library.pinbuddy_warm_up(wait))
    with torch.cuda.device(device):
        if not torch._C._cuda_hasPrimaryContext(torch.cuda.current_device()):
            # Makes the context, which being current does not.
            torch.cuda.synchronize()
        return bool(library.pinbuddy_warm_up(wait))


def empty_cache() -> None:
    """Unpins memory that is cached and idle, as ``torch.accelerator.empty_host_cache()`` does:
    segments with no block in them, and blocks that PyTorch's own mechanism caches below the
    threshold.

    Segments that the user asked to have ready are pinned again when demand shows. If the engine is
    off, this is ``torch.accelerator.empty_host_cache()``, which does nothing before the process has
    had a tensor on a device. Does nothing on a machine with no GPU, and in a child of a fork that
    has not started CUDA.

    Raises what ``torch.accelerator.empty_host_cache()`` raises if memory cannot be unpinned.
    """
    import torch

    if _library.load().pinbuddy_empty_cache():
        return
    # A child's cached memory is its parent's, unless the child has started CUDA itself.
    if stats()["state"] != "forked" or torch.cuda.is_initialized():
        # The public name is newer than the function that it calls.
        empty = getattr(torch.accelerator, "empty_host_cache", torch._C._host_emptyCache)
        empty()


def iteration() -> None:
    """Says that an iteration of the program, such as a training step, is over. Costs a microsecond. It is a mark in a
    recorded trace (``BUDDY_TRACE``, ``pinbuddy.trace``), and tells a plan where the program is."""
    _library.load().pinbuddy_iteration()
