"""Pins memory that a program has already, where it is: no copy is made."""

import contextlib
import ctypes
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pinbuddy import _library

if TYPE_CHECKING:
    import torch

_MOST_PROCESSES = 1 << 20
_WHAT = "could not be pinned in place"


def pin_(tensor: "torch.Tensor", *, processes: int = 1) -> "torch.Tensor":
    """Pins the whole storage of a CPU tensor where it is, and returns the tensor: ``tensor.is_pinned()`` is true from then on,
    and copies with ``non_blocking=True`` are asynchronous.

    It stays pinned until ``unpin_`` has been called as often as ``pin_``, or its memory goes; both wait for all work of all GPUs.
    ``processes`` is how many processes pin the same memory: each counts its part in the budget. An interrupt stops it while
    pages are brought in; what the driver does then is one call.

    Raises ``TypeError`` for what is no tensor, ``ValueError`` for one that is not in the CPU's memory or a number of processes
    below 1, and ``RuntimeError`` with the reason where it cannot be pinned: then none of it is.
    """
    _pin(tensor, processes)
    return tensor


def unpin_(tensor: "torch.Tensor") -> "torch.Tensor":
    """Takes one ``pin_`` of the tensor's storage back, and returns the tensor. During a capture the memory stays pinned until the
    next call here or ``empty_cache()``.

    Raises as ``pin_`` does, also where ``pin_`` has not pinned it.
    """
    storage = _storage(tensor)
    if storage.nbytes():
        _call(storage._cdata, 0, (ctypes.c_uint64 * 2)())
    return tensor


@contextlib.contextmanager
def pinned(*tensors: "torch.Tensor", processes: int = 1) -> Iterator[None]:
    """Pins these tensors in place for the time of a ``with`` block: all of them, or none and an exception.

    At the end each pin that was made here ends, whatever the block has done with the tensor.
    """
    with contextlib.ExitStack() as stack:
        for tensor in tensors:
            if pin := _pin(tensor, processes):
                stack.callback(_call, 0, 0, pin)
        yield


def _pin(tensor: Any, processes: int) -> Any:
    """The pin; ``None`` for a tensor without memory."""
    import torch

    storage = _storage(tensor)
    if not 1 <= processes <= _MOST_PROCESSES:
        raise ValueError(f"memory {_WHAT}: found {processes} processes, expected 1 to {_MOST_PROCESSES} (see: pinbuddy explain '{_WHAT}')")
    if storage.nbytes() == 0:
        return None
    if torch.cuda.is_available():
        # Pinning starts CUDA in this process, and PyTorch must know.
        torch.cuda.init()
    pin = (ctypes.c_uint64 * 2)(0, 1)
    asked = storage.is_shared() + 2 * storage.is_pinned() + 4 * processes
    try:
        while pin[1]:
            _call(storage._cdata, asked, pin)
    except BaseException:
        if pin[0]:
            _call(0, 0, pin)
        raise
    return pin


def _storage(tensor: Any) -> Any:
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise TypeError(
            f"memory {_WHAT}: found {type(tensor).__name__}, expected a tensor: torch.from_numpy(array) is one of an array's memory, "
            f"which stays pinned as long as that tensor's storage (see: pinbuddy explain '{_WHAT}')"
        )
    if tensor.layout is not torch.strided or tensor.device.type != "cpu":
        raise ValueError(
            f"memory {_WHAT}: found a tensor of layout {tensor.layout} on {tensor.device}, expected a strided one in the CPU's memory "
            f"(see: pinbuddy explain '{_WHAT}')"
        )
    return tensor.untyped_storage()


def _call(storage: int, asked: int, pin: Any) -> None:
    if why := _library.refusal("pinbuddy_pin", storage, asked, pin):
        what = _WHAT if asked else "could not be unpinned"
        raise RuntimeError(f"memory {what}: {why} (see: pinbuddy explain '{what}')")
