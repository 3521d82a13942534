"""One copy of weights for all processes of a machine: each maps the same file and pins it in place.

    python examples/one_copy.py                            # four processes, a file of 64 MiB that it makes
    python examples/one_copy.py --file model.safetensors   # a file of yours

Each copies the file to its GPU from pinned memory, and compares. The file is in memory once, however many have it. The tensors that
safetensors loads begin within pages and cannot be pinned; those that `tensors_of` makes are parts of the pinned file.
"""

import argparse
import json
import multiprocessing
import os
import re
import tempfile
import warnings

import numpy
import torch

MIB = 1 << 20
# Seconds after which a process takes another one to have failed.
PATIENCE = 300
# Types of safetensors, which has names of its own for torch's.
TYPES = {"BOOL": "bool", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}
TYPES |= {f"{short}{bits}": f"{kind}{bits}" for short, kind in {"F": "float", "I": "int", "U": "uint"}.items() for bits in (8, 16, 32, 64)}


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--file", help="the file to map; without it, one is made")
    options = parser.parse_args()
    with tempfile.NamedTemporaryFile() as made:
        if not options.file:
            made.write(os.urandom(64 * MIB))
            made.flush()
        # Not forked: a child of a process that uses CUDA cannot.
        context = multiprocessing.get_context("spawn")
        arguments = options.processes, options.file or made.name, context.Barrier(options.processes, timeout=PATIENCE), context.Queue()
        workers = [context.Process(target=work, args=(rank, *arguments)) for rank in range(options.processes)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    if any(worker.exitcode for worker in workers):
        raise SystemExit("a process failed, as the lines above say")
    rows = sorted(arguments[-1].get() for _ in workers)
    for rank, pinned, whole, part, tensors in rows:
        print(f"process {rank}: {pinned // MIB} MiB pinned in place, {'all bytes arrived' if whole else 'BYTES DIFFER'}; its part of them: {part / MIB:.0f} MiB{tensors}")
    print(f"in all {sum(it[1] for it in rows) // MIB} MiB pinned, {sum(it[3] for it in rows) / MIB:.0f} MiB of memory")


def work(rank: int, processes: int, name: str, all_pinned, said) -> None:
    import pinbuddy

    # Shared with whoever maps it, too; nobody can write to it, which PyTorch warns of.
    warnings.simplefilter("ignore")
    weights = torch.from_numpy(numpy.memmap(name, dtype=numpy.uint8, mode="r"))
    device = torch.device("cuda", rank % torch.cuda.device_count())
    with pinbuddy.pinned(weights, processes=processes):
        on_device = weights.to(device, non_blocking=True)
        whole = torch.equal(on_device.cpu(), weights)
        all_pinned.wait()
        tensors = ""
        if name.endswith(".safetensors"):
            found = tensors_of(weights).values()
            tensors = f"; {sum(it.is_pinned() for it in found)} of {len(found)} tensors pinned"
        said.put((rank, pinbuddy.stats()["in_place"]["bytes"], whole, part_of(weights.data_ptr()), tensors))
        all_pinned.wait()


def tensors_of(weights: torch.Tensor) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file, which is mapped as a whole: parts of its memory."""
    length = int.from_bytes(weights[:8].numpy().tobytes(), "little")
    header = json.loads(weights[8 : 8 + length].numpy().tobytes())
    header.pop("__metadata__", None)
    data = weights[8 + length :]

    def tensor(it: dict) -> torch.Tensor:
        return data[slice(*it["data_offsets"])].view(getattr(torch, TYPES[it["dtype"]])).reshape(it["shape"])

    return {name: tensor(it) for name, it in header.items()}


def part_of(address: int) -> int:
    """Bytes of the mapping at this address, each divided by how many processes have it, as the kernel says."""
    with open("/proc/self/smaps") as smaps:
        mappings = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) .*?^Pss: +(\d+) kB", smaps.read(), re.MULTILINE | re.DOTALL)
    return next(int(kib) * 1024 for start, end, kib in mappings if int(start, 16) <= address < int(end, 16))


if __name__ == "__main__":
    main()
