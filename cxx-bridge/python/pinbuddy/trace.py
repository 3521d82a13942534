"""Records requests for pinned memory to a file, as ``BUDDY_TRACE`` does from a program's first request on.

One line of JSON for each request (below the threshold too), free, use on a stream, ``empty_cache`` and
``pinbuddy.iteration()``. A thread writes them; the program waits for nothing. If requests come faster
than they can be written, some are left out, and the file says how many.
"""

import os

from pinbuddy import _library


def start(path: str | os.PathLike[str]) -> None:
    """Records to ``path`` from now on: requests made from now on, and what becomes of their blocks.

    ``{rank}`` and ``{pid}`` in the name are replaced; if a launcher started several ranks, the rank is
    added to a name without ``{rank}``. A file that is there is overwritten.

    Raises ``RuntimeError`` if a trace is being recorded already, in a child of a process that
    recorded, if the engine is off, and if the file cannot be written; ``ValueError`` for a name with a zero byte.
    """
    if why := _library.refusal("pinbuddy_trace_start", _library.file_name(path)):
        raise RuntimeError(f"no trace is recorded: {why} (see: pinbuddy explain 'no trace is recorded')")


def stop() -> bool:
    """Ends the trace, whoever began it. Returns ``True`` once it is written, or ``False`` if there was
    none."""
    return bool(_library.load().pinbuddy_trace_stop())
