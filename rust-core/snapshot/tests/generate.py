"""Writes a snapshot as PyTorch would: FILE PROTOCOL EVENTS. Standard library only."""

import pickle
import sys

MIB = 1 << 20


def frames(number: int) -> list[dict]:
    """The same frames each time, as PyTorch shares them; every other list of them is shared, too."""
    return SHARED.setdefault(number, made(number)) if number % 4 == 0 else made(number)


def made(number: int) -> list[dict]:
    return [FRAMES[number % len(FRAMES)], FRAMES[0]]


SHARED = {}
FRAMES = [{"name": f"function_{at}", "filename": "/somewhere/model.py", "line": at} for at in range(300)]
# A function whose name means something to the reader.
FRAMES[0]["name"] = "alloc"


def entry(action: str, addr: int, size: int, stream: int, time: int, pool: tuple[int, int] = (0, 0)) -> dict:
    return {
        "action": action,
        "addr": addr,
        "size": size,
        "stream": stream,
        "time_us": time,
        "compile_context": "N/A",
        "user_metadata": "",
        "pool_id": pool,
        "frames": frames(time),
    }


def history(events: int, base: int) -> list[dict]:
    """Memory that is handed out, freed, and safe again one event later."""
    trace, time = [], 1_795_413_779_000_000
    for number in range(events // 3):
        addr, size = base + (number % 7) * MIB, 1000 + number % 5
        stream = 6840124508557279248 if number % 2 else 0
        for action in ("alloc", "free_requested", "free_completed"):
            trace.append(entry(action, addr, size, stream, time))
            time += 2
    return trace


def main() -> None:
    file, protocol, events = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    device = history(events, 140_000_000_000_000)
    device.append({"action": "oom", "device_free": 5, "size": 1 << 40, "stream": 0, "time_us": 1, "frames": []})
    device.append({"action": "snapshot", "addr": -1, "size": 0, "stream": 0, "time_us": 1, "frames": []})
    # Private pools, each tuple a second time by the memo.
    first = [entry("alloc", addr, 7, 99, device[0]["time_us"], pool) for pool in [(1, 0), (0, 1)] for addr in (1, 2)]
    pools = first if events == 9 else []
    step = "Optimizer.step#AdamW.step"
    steps = [{"stage": stage, "name": step, "device": 0, "time_us": device[3]["time_us"] + 1} for stage in ("START", "END")]
    snapshot = {
        "segments": [{"address": 1, "blocks": [{"size": 5, "state": "active_allocated"}], "frames": frames(3)}],
        "device_traces": [pools, device],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "threshold": 0.5, "on": True, "none": None},
        "external_annotations": steps,
        "host_segments": [],
        "host_traces": history(events // 2, 1 << 63),
    }
    with open(file, "wb") as to:
        pickle.dump(snapshot, to, protocol=protocol)


main()
