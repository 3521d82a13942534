"""Activations of sequences of many lengths wait in pinned memory: the first program to try.

    BUDDY_DISABLE=1 python examples/offload.py            # as stock
    python examples/offload.py                            # as pinbuddy comes
    BUDDY_PLAN=offload.plan python examples/offload.py    # the first run makes a plan, the next start with it
    python examples/offload.py --beside-stock             # with stock in a process of its own, then as above, side by side

It is in the wheel, too: `pinbuddy try`, and `pinbuddy try --plan offload.plan`, both beside stock.

Each step copies what its layers made to the host, and back. Sequences have as many tokens as they have, so that sizes
vary from step to step; a new size may have to be pinned by the driver, and that is where a step waits. Half a second goes by
before the first step, where a program loads its model: with a plan, all memory is pinned meanwhile.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time

import torch

MIB = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter, allow_abbrev=False)
    parser.add_argument("--steps", type=count, default=8)
    parser.add_argument("--layers", type=count, default=32)
    parser.add_argument("--width", type=count, default=2048)
    parser.add_argument("--loading", type=float, default=0.5, help="seconds before the first step, in which a program loads its model")
    parser.add_argument("--beside-stock", action="store_true", help="run the same with stock first, in a process of its own")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit(
            "there is no GPU here. Run it on a machine with one; what needs none: pinbuddy report, advise and plan, of a trace that "
            "was recorded elsewhere"
        )
    runs = {"stock": with_stock(options)} if options.beside_stock else {}
    runs["pinbuddy" if runs else "here"] = run(options)
    if options.beside_stock and not serves():
        raise SystemExit("pinbuddy does not serve here, so there is nothing to see beside stock. Why, and what to do: python -m pinbuddy doctor")
    print(json.dumps(runs) if options.json else table(runs))


def count(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of 1 or more, found {text}")
    return int(text)


def serves() -> bool:
    """Whether pinned memory is pinbuddy's."""
    import pinbuddy

    return pinbuddy.enabled()


def with_stock(options: argparse.Namespace) -> dict:
    """What the same command gives with PyTorch's own allocator."""
    if sys.stderr.isatty():
        print("with stock first, in a process of its own …", file=sys.stderr)
    words = [f"--{name}={getattr(options, name)}" for name in ("steps", "layers", "width", "loading")]
    settings = {name: value for name, value in os.environ.items() if not name.startswith("BUDDY_")}
    done = subprocess.run(
        [sys.executable, __file__, *words, "--json"], env=settings | {"BUDDY_DISABLE": "1"}, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise SystemExit(f"the run with stock ended with {done.returncode}, as its last lines say; without it: python {__file__}")
    return json.loads(done.stdout)["here"]


def run(options: argparse.Namespace) -> dict:
    """Of each step: tokens, MiB offloaded, how often the driver pinned, ms until the memory was there. And MiB pinned at most."""
    lengths = random.Random(0)
    torch.zeros(1, device="cuda")
    time.sleep(options.loading)
    rows, before = [], pins()
    for _ in range(options.steps):
        tokens = 128 * lengths.randint(4, 24)
        made = torch.empty(tokens, options.width, dtype=torch.bfloat16, device="cuda")
        start = time.perf_counter()
        kept = [torch.empty_like(made, device="cpu", pin_memory=True) for _ in range(options.layers)]
        waited = time.perf_counter() - start
        for place in kept:
            place.copy_(made, non_blocking=True)
        for place in reversed(kept):
            made.copy_(place, non_blocking=True)
        torch.cuda.synchronize()
        rows.append({"tokens": tokens, "mib": sum(it.nbytes for it in kept) / MIB, "pins": pins() - before, "ms": waited * 1e3})
        before = pins()
        del kept
    return {"steps": rows, "pinned_mib": pinned()}


def table(runs: dict) -> str:
    """A line a step, the runs side by side, and what each waited and pinned in all."""
    lines = [" " * 20 + "".join(f"{name:>21}" for name in runs)] if len(runs) > 1 else []
    lines.append("step  tokens     MiB" + "    pins    ms waited" * len(runs))
    for step, rows in enumerate(zip(*(it["steps"] for it in runs.values()))):
        places = "".join(f"{it['pins']:8}  {it['ms']:11.1f}" for it in rows)
        lines.append(f"{step:4}  {rows[0]['tokens']:6}  {rows[0]['mib']:6.0f}{places}")
    for name, it in runs.items():
        waited, most = sum(row["ms"] for row in it["steps"]), max(row["mib"] for row in it["steps"])
        who = f"{name:8}  " if len(runs) > 1 else ""
        lines.append(f"{who}waited {waited / 1e3:.2f} s; pinned {it['pinned_mib'] / 1024:.2f} GiB, {it['pinned_mib'] / most:.2f} times the largest step")
    return "\n".join(lines)


def pins() -> int:
    """How often the driver was asked to pin so far."""
    return torch.cuda.host_memory_stats()["num_host_alloc"]


def pinned() -> float:
    """MiB pinned at most."""
    stats = torch.cuda.host_memory_stats()
    # torch before 2.10 counts them by another name.
    return stats.get("reserved_bytes.peak", stats.get("allocated_bytes.peak", 0)) / MIB


if __name__ == "__main__":
    main()
