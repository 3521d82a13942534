"""What the engine can be asked to do: pin ahead of need, and give back what is idle."""

from pinbuddy import _library
from pinbuddy._read import enabled, stats


def warm_up(wait: bool = False) -> bool:
    """Starts pinning what ``BUDDY_BLOCK_COUNT`` asks for, and what ``empty_cache`` gave back.

    A thread of its own does the pinning, whatever ``BUDDY_WARMUP`` says; requests are served
    meanwhile. With ``wait`` the call returns when that is over; other Python threads run on.
    Nothing happens where all of it is pinned already.

    Returns ``True``, or ``False`` where nothing can be pinned: on a machine with no GPU and where
    the engine is off. What was pinned is in ``stats()["warm_up"]``; a pin that fails is no error
    here, and named there.

    Raises what ``torch.cuda.init()`` raises where CUDA cannot be started.
    """
    import torch

    if not enabled() or not torch.cuda.is_available():
        return False
    # Pinning starts CUDA in this process. PyTorch must know: it refuses CUDA in children forked
    # from now on, where CUDA would fail in less clear ways.
    torch.cuda.init()
    return bool(_library.load().pinbuddy_warm_up(wait))


def empty_cache() -> None:
    """Gives back the pinned memory that is cached and idle, as
    ``torch.accelerator.empty_host_cache()`` does: segments with no block in them, and what
    PyTorch's own mechanism caches below the threshold.

    The next request that finds no room has as many segments pinned again. Where the engine is off
    this is ``torch.accelerator.empty_host_cache()``, which does nothing before the process has had
    a tensor on a device. On a machine with no GPU, and in a forked child with no CUDA of its own,
    nothing is done.

    Raises what ``torch.accelerator.empty_host_cache()`` raises where memory cannot be given back.
    """
    import torch

    if _library.load().pinbuddy_empty_cache():
        return
    # What is cached in a forked child is its parent's, unless the child has started CUDA itself.
    if stats()["state"] != "forked" or torch.cuda.is_initialized():
        # The public name is younger than what it stands for.
        empty = getattr(torch.accelerator, "empty_host_cache", torch._C._host_emptyCache)
        empty()
