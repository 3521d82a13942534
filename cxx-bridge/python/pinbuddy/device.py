"""Plans and traces of the GPU's own memory, as ``BUDDY_DEVICE_PLAN`` and ``BUDDY_DEVICE_TRACE`` ask for them."""

import os

from pinbuddy import _library
from pinbuddy._read import stats as _stats
from pinbuddy._types import StreamPlan


def enable(
    *, plan: str | os.PathLike[str] | None = None, trace: str | os.PathLike[str] | None = None
) -> None:
    """Plans or records this process's device memory, before CUDA is initialised and once.

    ``plan``: a file. If it is not there, this run is recorded and the file written; if it is, requests that come
    again have their places in a region, small ones only where that reserves less. ``trace``: a file to which requests, frees, uses on streams and segments are recorded. In both
    names ``{rank}`` is replaced, and added where it is missing if a launcher started several ranks; in the trace's also
    ``{pid}``. A plan that cannot be used costs one line of warning, as with the variable.

    Raises ``RuntimeError`` once CUDA is initialised, if a plan or a trace is in force already, and if the engine is off;
    ``ValueError`` if neither file is named, and for a name with a zero byte.
    """
    if plan is None and trace is None:
        raise ValueError(
            "expected the name of a plan's file or of a trace's, found neither: enable(plan='device.plan') "
            "(see: pinbuddy explain 'found neither: enable')"
        )
    names = [None if it is None else _library.file_name(it) for it in (plan, trace)]
    if why := _library.refusal("pinbuddy_device_enable", *names):
        raise RuntimeError(
            f"device memory is neither planned nor recorded: {why} "
            "(see: pinbuddy explain 'device memory is neither planned nor recorded')"
        )


def stats() -> list[StreamPlan] | None:
    """How the plan fares, for each stream that has asked for memory: ``pinbuddy.stats()["device"]``. Sizes are in bytes;
    ``None`` if no plan is in use."""
    return _stats()["device"]
