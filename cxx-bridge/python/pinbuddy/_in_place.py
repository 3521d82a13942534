"""Pins memory that a program has already, where it is: no copy is made."""

import contextlib
import ctypes
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pinbuddy import _library

if TYPE_CHECKING:
    import torch

_LONGEST = 1 << 12


def pin_(tensor: "torch.Tensor", *, read_only: bool = False, processes: int = 1) -> "torch.Tensor":
    """Pins the whole storage of a CPU tensor where it is, and returns the tensor: ``tensor.is_pinned()`` is true from then on,
    and copies with ``non_blocking=True`` are asynchronous.

    Takes memory that has its pages for itself: a mapped file, ``/dev/shm``, ``share_memory_()``, large tensors and arrays on the
    heap. It stays pinned until ``unpin_`` has been called as often as ``pin_``, or its memory goes, which waits for copies that
    use it. With ``read_only`` GPUs only read it, and the program promises that nobody writes there: so the pages of a mapped
    file stay the file's, which all processes have in common. Memory that may not be written is pinned that way by itself.
    ``processes`` is how many processes pin the same memory: each counts its part in the budget.

    Raises ``TypeError`` for what is no tensor, ``ValueError`` for a tensor that is not in the CPU's memory or for a number of
    processes below 1, and ``RuntimeError`` with the reason where it cannot be pinned: then none of it is.
    """
    _pin(tensor, read_only, processes)
    return tensor


def unpin_(tensor: "torch.Tensor") -> "torch.Tensor":
    """Takes one ``pin_`` of the tensor's storage back, and returns the tensor. The last one waits for copies that use it.

    Raises as ``pin_`` does, and ``RuntimeError`` for a storage that ``pin_`` has not pinned, or with the reason where it stays
    pinned.
    """
    import torch

    storage = _storage(tensor, torch)
    if storage.nbytes():
        _call("pinbuddy_unpin", storage._cdata, 0)
    return tensor


@contextlib.contextmanager
def pinned(*tensors: "torch.Tensor", read_only: bool = False, processes: int = 1) -> Iterator[None]:
    """Pins these tensors in place for the time of a ``with`` block: all of them, or none and an exception.

    At the end each pin that was made here ends, whatever the block has done with the tensor. What the block raises is raised.
    """
    with contextlib.ExitStack() as stack:
        for tensor in tensors:
            stack.push(_Unpin(_pin(tensor, read_only, processes)))
        yield


class _Unpin:
    """Takes a pin back; the error of a ``with`` block goes before its own."""

    def __init__(self, pin: int) -> None:
        self.pin = pin

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self.pin:
                _call("pinbuddy_unpin", 0, self.pin)
        except RuntimeError as error:
            if kind is None:
                raise
            warnings.warn(str(error), RuntimeWarning, stacklevel=2)


def _pin(tensor: Any, read_only: bool, processes: int) -> int:
    """The pin's number; 0 for a tensor without memory."""
    import torch

    storage = _storage(tensor, torch)
    if processes < 1:
        raise ValueError(
            f"found {processes} processes, expected 1 or more, which pin the same memory (see: pinbuddy explain 'which pin the same')"
        )
    if storage.nbytes() == 0:
        return 0
    if torch.cuda.is_available():
        # Pinning starts CUDA in this process, and PyTorch must know.
        torch.cuda.init()
    pin = ctypes.c_uint64()
    flags = int(read_only) + 2 * storage.is_shared()
    _call("pinbuddy_pin", storage._cdata, flags, processes, ctypes.byref(pin))
    return pin.value


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


def _call(name: str, *arguments: Any) -> None:
    buffer = ctypes.create_string_buffer(_LONGEST)
    getattr(_library.load(), name)(*arguments, buffer, _LONGEST)
    if buffer.value:
        why = buffer.value.decode(errors="replace")
        what = "could not be pinned in place" if name == "pinbuddy_pin" else "could not be unpinned"
        raise RuntimeError(f"memory {what}: {why} (see: pinbuddy explain '{what}')")
