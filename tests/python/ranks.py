"""One rank of `test_ranks.py`, started by torchrun: pins, talks to the others, says what it found.

usage: ranks.py FOLDER [KILLED UNPINNED]

What it found goes to FOLDER/before-RANK.json. With KILLED and UNPINNED, two ranks' numbers, that is followed by failures: pins of
rank UNPINNED have been failing above 24 MiB from the start, then rank KILLED ends itself as the kernel would end it. torchrun
notices and asks the others to end; before they do, they look at what is left and write FOLDER/after-RANK.json.
"""

import json
import os
import signal
import sys
from pathlib import Path

RANK = int(os.environ["RANK"])
FOLDER, FAILURES = Path(sys.argv[1]), [int(rank) for rank in sys.argv[2:]]
if FAILURES and RANK == FAILURES[1]:
    # Read at the first CUDA call.
    os.environ["PINBUDDY_SIM_FAIL_PIN_AFTER_MB"] = "24"

import torch.distributed as dist  # noqa: E402
from program import of_engine, pinbuddy, pinned, refused, segments, torch, until  # noqa: E402

terminated = []
signal.signal(signal.SIGTERM, lambda *_: terminated.append(True))


def filled(mib: float, value: int) -> torch.Tensor:
    return pinned(mib).fill_(value)


def arrives(tensor: torch.Tensor, value: int) -> bool:
    """Whether a tensor holds that value in every byte, and on the GPU, too."""
    there = tensor.to("cuda", non_blocking=True).cpu()
    return bool((tensor == value).all()) and bool((there == value).all())


def gathered() -> list[int]:
    """A byte of every rank's, from GPU to GPU, through pinned memory on the way."""
    own = filled(1, RANK).to("cuda", non_blocking=True)
    all_ranks = torch.empty(dist.get_world_size(), 1 << 20, dtype=torch.uint8, device="cuda")
    dist.all_gather_into_tensor(all_ranks.flatten(), own)
    return [int(part.unique()) for part in all_ranks.cpu()]


def write(name: str, **found) -> None:
    # "x": two ranks must not write the same file.
    with open(FOLDER / f"{name}-{RANK}.json", "x") as file:
        json.dump({"budget": pinbuddy.stats()["budget"], "segments": segments(), **found}, file)


def main() -> None:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group("cpu:gloo,cuda:gloo")
    kept = filled(8, 100 + RANK)
    write("before", engine=of_engine(kept), right=arrives(kept, 100 + RANK), gathered=gathered())
    dist.barrier()
    if not FAILURES:
        dist.destroy_process_group()
        return
    if RANK == FAILURES[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    until(lambda: terminated)
    large = []
    error = refused(lambda: large.append(filled(32, 50 + RANK)))
    right = all(of_engine(it) and arrives(it, 50 + RANK) for it in large)
    again = filled(4, 150 + RANK)
    served = of_engine(again) and arrives(again, 150 + RANK)
    write("after", kept=arrives(kept, 100 + RANK), error=error, large=right, again=served, state=pinbuddy.stats()["state"])
    sys.stdout.flush()
    # A process group that has lost a member cannot be shut down properly.
    os._exit(0)


if __name__ == "__main__":
    main()
