"""Host memory as a GPU tensor, so that torch's kernels access it directly.

By DLPack, which does not check the memory's origin.
"""

import ctypes

import torch

GPU, UNSIGNED = 2, 1


class Kind(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_kind", ctypes.c_int),
        ("device", ctypes.c_int),
        ("dimensions", ctypes.c_int),
        ("kind", Kind),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


# Kept alive, since views refer to them.
_kept: list = []


def bytes_at(address: int, size: int) -> torch.Tensor:
    """So many bytes at an address that the first GPU can reach."""
    shape = (ctypes.c_int64 * 1)(size)
    described = Tensor(address, GPU, 0, 1, Kind(UNSIGNED, 8, 1), shape, None, 0, None, None)
    _kept.extend([shape, described])
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return torch.utils.dlpack.from_dlpack(capsule(ctypes.addressof(described), b"dltensor", None))
