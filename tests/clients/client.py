"""What the client programs share: the report that each prints at its end, for test_clients.py to
compare.

A program does one thing as users do it, with fixed seeds and any torch. It knows nothing of the fork; warnings and
exit codes are compared from outside. To run one by itself, with stock's Python or the fork's:

    cargo xtask sim -- "$(cargo xtask venv)/bin/python" tests/clients/kv_pool.py
"""

import contextlib
import ctypes
import gc
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).parent.parent / "python"))
from release import COUNTS_WHAT_IS_ACTIVE, host_stats  # noqa: E402

MIB = 1 << 20
# Without a GPU kernels compute nothing, so only copied data is meaningful.
COMPUTES = os.environ.get("PINBUDDY_TEST_REAL") == "1"
# These do not depend on the allocator, if nothing is in use at the end.
COUNTED = ("active_requests.allocated", "active_requests.current", "active_requests.freed")


def run(program: Callable[[], dict]) -> None:
    """Runs the program and prints its results with torch's statistics of pinned memory."""
    torch.manual_seed(0)
    torch.cuda.init()
    results = {name: checksum(value) for name, value in program().items()}
    gc.collect()
    torch.cuda.synchronize()
    # Any request makes the allocator notice finished copies. It is not the program's: where pins are made to fail, only
    # those of the program count (test_faults.py).
    with contextlib.suppress(RuntimeError):
        torch.empty(1, pin_memory=True)
    stats = host_stats()
    counted = {name: stats[name] for name in COUNTED} if COUNTS_WHAT_IS_ACTIVE else {}
    report = {
        "results": results,
        "statistics": counted,
        "names": sorted(stats),
        "peak_pinned": stats["allocated_bytes.peak"],
        "peak_active": stats["active_bytes.peak"],
        "pins": stats["num_host_alloc"],
    }
    sys.stderr.flush()
    print(json.dumps(report), flush=True)


def checksum(value) -> object:
    """A number or text unchanged; an object with tensors as a hash of their kinds, shapes, bytes and everything
    else."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return repr(value)
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.hexdigest()[:16]


def computed(value) -> object:
    """A result of kernels: compared on a GPU; without one only its kinds and shapes are."""
    return value if COMPUTES else checksum([_shape(it) for it in _tensors(value)])


def pinned(*shape: int, dtype=torch.float32) -> torch.Tensor:
    return torch.empty(*shape, dtype=dtype, pin_memory=True)


def _add(digest, value) -> None:
    if isinstance(value, torch.Tensor):
        digest.update(repr(_shape(value)).encode())
        plain = value.detach().cpu().contiguous()
        digest.update(ctypes.string_at(plain.data_ptr(), plain.nbytes))
    elif isinstance(value, Mapping):
        for key in value:
            digest.update(repr(key).encode())
            _add(digest, value[key])
    elif isinstance(value, (list, tuple)):
        digest.update(b"[")
        for it in value:
            _add(digest, it)
        digest.update(b"]")
    else:
        digest.update(repr(value).encode())


def _shape(tensor: torch.Tensor) -> tuple:
    return str(tensor.dtype), tuple(tensor.shape)


def _tensors(value) -> Iterable[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for it in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(it)
