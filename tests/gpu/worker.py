"""A process that measures on request: `worker.py MODULE ours|stock`.

It imports torch and has CUDA ready, says so, and then does what each line of standard input names, a function
of MODULE with its arguments, so that whoever drives several can let them take turns. Answers are lines of JSON;
what else is printed goes to standard error.
"""

import importlib
import json
import os
import sys
import traceback
from pathlib import Path

LIBRARY = "libtorch_pinbuddy.so"
# `program` and `release`, which tests share, and programs.
SHARED = [str(Path(__file__).parent.parent / it) for it in ("python", "programs")]


def require(which: str) -> None:
    """Has CUDA ready, and checks the allocator: measuring the same one twice would show no difference."""
    import torch

    torch.cuda.init()
    loaded = LIBRARY in Path("/proc/self/maps").read_text()
    if which == "stock" and loaded:
        raise RuntimeError(f"{LIBRARY} is loaded, and this is to be stock")
    if which == "ours":
        import pinbuddy

        if not pinbuddy.enabled():
            raise RuntimeError(f"the engine is off: {pinbuddy.stats()['state']}")


def main(module: str, which: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(act) -> bool:
        try:
            good, line = True, json.dumps({"value": act()})
        except Exception:
            good, line = False, json.dumps({"error": traceback.format_exc()})
        print(line, file=answers, flush=True)
        return good

    def ready() -> None:
        import torch  # noqa: F401

        # Programs that start cold are forked from a process that has not used CUDA.
        if not getattr(importlib.import_module(module), "FORKS", False):
            require(which)

    sys.path += SHARED
    if not answer(ready):
        return
    functions = sys.modules[module]
    for line in sys.stdin:
        asked = json.loads(line)
        answer(lambda: getattr(functions, asked["do"])(**asked["with"]))
    answers.close()
    sys.stderr.flush()
    # A recorded run writes its plan when it ends; others exit without tearing CUDA down, which takes long.
    if not {"BUDDY_PLAN", "BUDDY_DEVICE_PLAN"} & os.environ.keys():
        os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
