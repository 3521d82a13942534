"""Pins in place of each kind of memory: what they cost, whether copies are right and asynchronous, and what ends them during a copy.

A process for each kind, which take turns, and one for stock's pinned memory. A part that fails is kept as its error. The simulator
computes no kernels: there the device compares nothing. Copies are of a quarter of the bytes. At last `examples/one_copy.py`, two
processes that map one file.
"""

import contextlib
import mmap
import os
import subprocess
import tempfile
import warnings
from pathlib import Path

import measuring
from measuring import Worker, spread, together

STOCK, READ = "stock's pinned memory", "file, to be read"
KINDS = ("heap", READ, "file, shared", "shared memory")
PARTS = ("costs", "copies", "ends")
EXAMPLE = "one copy"


def pattern(words: int, device: str):
    import torch

    return torch.arange(words, device=device).mul_(0x9E3779B97F4A7).add_(words)


def memory(kind: str, path: str, want):
    """Memory of a kind with this in it."""
    import torch

    if kind == STOCK:
        return torch.empty_like(want, pin_memory=True).copy_(want)
    if not kind.startswith("file"):
        return want.clone().share_memory_() if kind == "shared memory" else want.clone()
    tensor = torch.from_file(path, shared=True, size=len(want), dtype=torch.int64).copy_(want)
    if kind == READ:
        warnings.simplefilter("ignore")
        with open(path, "rb") as file:
            tensor = torch.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), dtype=torch.int64)
    return tensor


def costs(kind: str, path: str, words: int, simulated: bool) -> dict:
    """Seconds per GiB of three pins and their ends; whether the memory is pinned before, during and after."""
    import torch
    from program import seconds

    torch.zeros(1, device="cuda")
    made = [] if kind == STOCK else [memory(kind, path, pattern(words, "cpu"))]
    pin, unpin = (lambda: made.append(torch.empty(words, dtype=torch.int64, pin_memory=True))), torch._C._host_emptyCache
    if kind != STOCK:
        import pinbuddy

        pin, unpin = (lambda: pinbuddy.pin_(made[0])), (lambda: pinbuddy.unpin_(made[0]))
    pins, unpins, states, gib = [], [], [], words / (1 << 27)

    def look() -> None:
        states.append(bool(made) and made[0].is_pinned())

    for _ in range(3):
        look()
        pins.append(seconds(pin) / gib)
        look()
        if kind == STOCK:
            made.clear()
        unpins.append(seconds(unpin) / gib)
    look()
    return {"pin": spread(pins), "unpin": spread(unpins), "is_pinned": states, "right": states == [False, True] * 3 + [False]}


def behind_a_kernel(to, source, act=lambda: None) -> dict:
    """A copy on a side stream that a kernel keeps busy for 0.2 s, then `act`: what was over when.

    `source` is called, so that no caller keeps the memory.
    """
    import torch
    from program import seconds

    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(350_000_000)
        call = seconds(lambda: to.copy_(source(), non_blocking=True))
        running = not torch.cuda.current_stream().query()
        waited = seconds(act)
        over = torch.cuda.current_stream().query()
    torch.cuda.synchronize()
    return {"call_s": call, "returned_first": running, "act_s": waited, "over": over}


def copies(kind: str, path: str, words: int, simulated: bool) -> dict:
    """To the device and back, unpinned and pinned: GB/s, and behind a kernel."""
    import torch
    from program import seconds

    want, there = pattern(words, "cpu"), torch.zeros(words, dtype=torch.int64, device="cuda")
    tensor, told, right = memory(kind, path, want), {}, {}
    for which in ("pinned",) if kind == STOCK else ("unpinned", "pinned"):
        if kind != STOCK and which == "pinned":
            import pinbuddy

            pinbuddy.pin_(tensor)
        for way, to, source in (("to", there, tensor), ("back", tensor, there)):
            if (kind, way) != (READ, "back"):
                to.zero_()
                told[f"{which} {way}"] = behind_a_kernel(to, lambda: source)
                right[f"{which} {way}, on the host"] = torch.equal(to.cpu(), want)
                if not simulated and way == "to":
                    right[f"{which} {way}, on the device"] = torch.equal(to, pattern(words, "cuda"))
                taken = [seconds(lambda: (to.copy_(source, non_blocking=True), torch.cuda.synchronize())) for _ in range(5)]
                told[f"{which} {way}"]["gb_per_s"] = spread([want.nbytes / it / 1e9 for it in taken])
    return told | {"compared": right, "right": all(right.values())}


def ends(kind: str, path: str, words: int, simulated: bool) -> dict:
    """An `unpin_` and a `del` during a copy: each waits for it, and the copy is right."""
    import pinbuddy
    import torch

    want, there, told = pattern(words, "cpu"), torch.zeros(words, dtype=torch.int64, device="cuda"), {}
    held = [memory(kind, path, want)]
    for name, act in (("unpin_", lambda: pinbuddy.unpin_(held[0])), ("del", held.clear)):
        there.zero_()
        pinbuddy.pin_(held[0])
        told[name] = behind_a_kernel(there, lambda: held[0], act)
        told[name]["data"] = torch.equal(there.cpu(), want)
    return told | {"right": all(it["returned_first"] and it["over"] and it["data"] for it in told.values())}


def measure(it: measuring.Fixture) -> None:
    whole, shm = 160 << 20 if it.simulated else 256 << 20 if it.quick else 1 << 30, os.statvfs("/dev/shm")
    sizes = dict.fromkeys([STOCK, *KINDS], whole)
    sizes["shared memory"] = min(whole, shm.f_bavail * shm.f_frsize // (2 << 20) << 20)
    with tempfile.TemporaryDirectory(dir=it.out.parent) as folder:
        workers = {name: Worker(it.ways["stock" if name == STOCK else "ours"], "measure_in_place", BUDDY_WARMUP="off") for name in sizes}
        seen: dict = {name: {"bytes": size} for name, size in sizes.items()}
        with together(workers):
            for part in PARTS:
                for at, (name, size) in enumerate(sizes.items()):
                    if (name, part) != (STOCK, "ends") and it.left() > 3:
                        words, path = size // (8 if part == "costs" else 32), f"{folder}/{at}-{part}"
                        seen[name][part] = asked(workers[name], part, kind=name, path=path, words=words, simulated=it.simulated)
                        with contextlib.suppress(FileNotFoundError):
                            os.unlink(path)
                        it.write(seen)
    if it.left() > 3:
        seen[EXAMPLE] = {EXAMPLE: one_copy(it)}
        it.write(seen)


def one_copy(it: measuring.Fixture) -> dict:
    """The example's last line, and whether the bytes of both processes arrived, of which the machine has one copy."""
    ours, example = it.ways["ours"], Path(__file__).parents[2] / "examples/one_copy.py"
    command, seconds = [ours.python, str(example), "--processes=2"], max(it.left(), 1)
    try:
        outcome = subprocess.run(command, env=ours.environment(), capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"unfinished_s": seconds}
    if outcome.returncode:
        return {"error": outcome.stderr.strip()}
    said = outcome.stdout.splitlines()
    whole = sum(": 64 MiB pinned in place, all bytes arrived" in line for line in said)
    return {"said": said[-1], "right": whole == 2 and said[-1] == "in all 128 MiB pinned, 64 MiB of memory"}


def asked(worker: Worker, part: str, **arguments) -> dict:
    try:
        return worker.ask(part, **arguments)
    except RuntimeError as error:
        return {"error": str(error).strip()}


def broken(told: dict, simulated: bool) -> list[str]:
    """Wrong data and ends that do not wait; an error is an answer of a GPU's driver, but a defect in the simulator."""
    parts = [(f"in place: {name}: {part}", own[part]) for name, own in told.items() for part in (*PARTS, EXAMPLE) if part in own]
    return [f"{name}: {it.get('error', it)}" for name, it in parts if it.get("right") is False or simulated and "error" in it]
