"""One copy of weights for all processes of a machine: each maps the same file and pins it in place.

    python examples/one_copy.py                            # four processes, a file of 64 MiB that it makes
    python examples/one_copy.py --file model.safetensors   # a file of yours
    python examples/one_copy.py --processes 8

Each process copies the file to its GPU from pinned memory, and compares. At the end each says how much it has pinned, and how
much of the machine's memory the file takes: once, however many have it.
"""

import argparse
import multiprocessing
import os
import tempfile
import warnings

import torch

MIB = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter, allow_abbrev=False)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--file", help="the file to map; without it, one is made")
    options = parser.parse_args()
    if options.file:
        return show(options.file, options.processes)
    with tempfile.NamedTemporaryFile() as made:
        made.write(os.urandom(64 * MIB))
        made.flush()
        show(made.name, options.processes)


def show(name: str, processes: int) -> None:
    """Runs so many processes, which have the file pinned at once."""
    # Not forked: a child of a process that uses CUDA cannot.
    context = multiprocessing.get_context("spawn")
    all_pinned = context.Barrier(processes)
    said = context.Queue()
    workers = [context.Process(target=work, args=(rank, processes, name, all_pinned, said)) for rank in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise SystemExit("a process failed, as the lines above say")
    rows = sorted(said.get() for _ in workers)
    for rank, pinned, whole, part in rows:
        print(f"process {rank}: {pinned // MIB} MiB pinned in place, {'all bytes arrived' if whole else 'BYTES DIFFER'}; its part of them: {part / MIB:.0f} MiB")
    print(f"in all {sum(it[1] for it in rows) // MIB} MiB pinned, {sum(it[3] for it in rows) / MIB:.0f} MiB of memory")


def work(rank: int, processes: int, name: str, all_pinned, said) -> None:
    import pinbuddy

    weights = map_file(name)
    device = torch.device("cuda", rank % torch.cuda.device_count())
    with pinbuddy.pinned(weights, read_only=True, processes=processes):
        on_device = weights.to(device, non_blocking=True)
        whole = torch.equal(on_device.cpu(), weights)
        all_pinned.wait()
        said.put((rank, pinbuddy.stats()["in_place"]["bytes"], whole, part_of(weights.data_ptr())))
        all_pinned.wait()


def map_file(name: str) -> torch.Tensor:
    """A file's bytes, shared with whoever maps it, too; nobody can write to them."""
    import numpy

    with warnings.catch_warnings():
        # That the array cannot be written.
        warnings.simplefilter("ignore")
        return torch.from_numpy(numpy.memmap(name, dtype=numpy.uint8, mode="r"))


def part_of(address: int) -> int:
    """Bytes of the mapping at this address, each divided by how many processes have it, as the kernel says."""
    found = False
    with open("/proc/self/smaps") as smaps:
        for line in smaps:
            first = line.split()[0]
            if not first.endswith(":"):
                start, end = (int(it, 16) for it in first.split("-"))
                found = start <= address < end
            elif found and first == "Pss:":
                return int(line.split()[1]) * 1024
    raise RuntimeError(f"nothing is mapped at {address:#x}")


if __name__ == "__main__":
    main()
