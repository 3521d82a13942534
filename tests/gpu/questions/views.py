"""Host memory as a tensor of the GPU's, so that torch's kernels read and write it where it lies.

By DLPack, which asks neither numpy nor CUDA whose memory it is.
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


# Whoever has a view refers to them for as long as it likes.
_kept: list = []


def bytes_at(address: int, size: int) -> torch.Tensor:
    """So many bytes at an address that the first GPU can reach."""
    shape = (ctypes.c_int64 * 1)(size)
    described = Tensor(address, GPU, 0, 1, Kind(UNSIGNED, 8, 1), shape, None, 0, None, None)
    _kept.extend([shape, described])
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return torch.utils.dlpack.from_dlpack(capsule(ctypes.addressof(described), b"dltensor", None))
