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
    """Checks the allocator: measuring the same one twice would show no difference."""
    loaded = LIBRARY in Path("/proc/self/maps").read_text()
    if which == "stock" and loaded:
        raise RuntimeError(f"{LIBRARY} is loaded, and this is to be stock")
    if which == "ours":
        import pinbuddy

        if not pinbuddy.enabled():
            raise RuntimeError(f"the engine is off: {pinbuddy.stats()['state']}")


def use_gpu() -> None:
    """Has CUDA ready, so that it is not timed later."""
    import torch

    torch.zeros(1, device="cuda")


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**line) -> None:
        print(json.dumps(line), file=answers, flush=True)

    sys.path += SHARED
    module, which = sys.argv[1:]
    try:
        import torch

        torch.cuda.init()
        require(which)
        functions = importlib.import_module(module)
        answer(value=None)
    except Exception:
        answer(error=traceback.format_exc())
        return
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer(value=getattr(functions, asked["do"])(**asked["with"]))
        except Exception:
            answer(error=traceback.format_exc())
    answers.close()
    sys.stderr.flush()
    # A recorded run writes its plan when it ends; others exit without tearing CUDA down, which takes long.
    if "BUDDY_PLAN" not in os.environ:
        os._exit(0)


if __name__ == "__main__":
    main()
