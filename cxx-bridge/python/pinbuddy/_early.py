"""With a plan, memory is pinned once CUDA is initialised, and not only by the first request.

Invariants: without a plan nothing here is called by torch; whatever fails, CUDA is initialised all the same.
"""

import os
from typing import Any

from pinbuddy import _library, _read


def prepare(torch: Any) -> None:
    """Has ``torch`` say when CUDA is initialised, now or later. Does not initialise it."""
    if os.environ.get("BUDDY_PLAN", "") or _file_names_a_plan():
        # Not public, but as old as torch.cuda itself. Without it the first request pins.
        call = getattr(torch.cuda, "_lazy_call", None)
        if call is not None:
            call(_cuda_is_up)


def _file_names_a_plan() -> bool:
    """Whether the site's file or the wheel's does; only the library reads them."""
    try:
        return _read.config()["BUDDY_PLAN"]["value"] is not None
    except Exception:
        # Without a library no plan is used.
        return False


def _cuda_is_up() -> None:
    try:
        _library.load().pinbuddy_cuda_is_up()
    except Exception:
        # It would fail torch.cuda.init(). `python -m pinbuddy doctor` says what is wrong with the library.
        pass
