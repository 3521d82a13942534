"""Pins memory that a program has already, where it is: no copy is made."""

import contextlib
import ctypes
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pinbuddy import _library

if TYPE_CHECKING:
    import torch

_LONGEST = 1 << 12


def pin_(tensor: "torch.Tensor", *, read_only: bool = False) -> "torch.Tensor":
    """Pins the whole storage of a CPU tensor where it is, and returns the tensor: ``tensor.is_pinned()`` is true from then on,
    and copies with ``non_blocking=True`` are asynchronous.

    Works for memory from anywhere: a file that is mapped, ``torch.from_numpy``, ``share_memory_()``, ``/dev/shm``. It stays
    pinned until ``unpin_`` has been called as often as ``pin_``, or the storage goes, which waits for copies that use it.
    With ``read_only`` GPUs only read it, and the program promises that nobody writes there: so the pages of a mapped file stay
    the file's, which all processes have in common. Memory that may not be written is pinned that way by itself.

    Raises ``TypeError`` for what is no tensor, ``ValueError`` for a tensor that is not in the CPU's memory, and
    ``RuntimeError`` with the reason where it cannot be pinned: then none of it is.
    """
    import torch

    storage = _storage(tensor, torch)
    if storage.nbytes() == 0:
        return tensor
    if torch.cuda.is_available():
        # Pinning starts CUDA in this process, and PyTorch must know.
        torch.cuda.init()
    _call("pinbuddy_pin", storage._cdata, read_only, storage.is_shared())
    return tensor


def unpin_(tensor: "torch.Tensor") -> "torch.Tensor":
    """Takes one ``pin_`` of the tensor's storage back, and returns the tensor. The last one waits for copies that use it.

    Raises as ``pin_`` does, and ``RuntimeError`` for a storage that ``pin_`` has not pinned.
    """
    import torch

    storage = _storage(tensor, torch)
    if storage.nbytes():
        _call("pinbuddy_unpin", storage._cdata)
    return tensor


@contextlib.contextmanager
def pinned(*tensors: "torch.Tensor", read_only: bool = False) -> Iterator[None]:
    """Pins these tensors in place for the time of a ``with`` block: all of them, or none and an exception."""
    with contextlib.ExitStack() as stack:
        for tensor in tensors:
            pin_(tensor, read_only=read_only)
            stack.callback(unpin_, tensor)
        yield


def _storage(tensor: Any, torch: Any) -> Any:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(
            f"found {type(tensor).__name__}, expected a tensor: torch.from_numpy(array) is one of an array's memory, which stays "
            "pinned as long as that tensor's storage (see: pinbuddy explain 'is one of an array')"
        )
    if tensor.layout is not torch.strided or tensor.device.type != "cpu":
        raise ValueError(
            f"found a tensor of layout {tensor.layout} on {tensor.device}, expected a strided one in the CPU's memory "
            "(see: pinbuddy explain 'a strided one in the CPU')"
        )
    return tensor.untyped_storage()


def _call(name: str, *arguments: int) -> None:
    buffer = ctypes.create_string_buffer(_LONGEST)
    getattr(_library.load(), name)(*arguments, buffer, _LONGEST)
    if buffer.value:
        why = buffer.value.decode(errors="replace")
        raise RuntimeError(f"memory is not pinned in place: {why} (see: pinbuddy explain 'is not pinned in place')")
