"""Device memory of a training of one billion parameters on batches of several lengths.

With PyTorch's allocator as it comes, with expandable segments, and with a plan that a recorded run has made; each also on
the same batches in another order. Each run has its own process and the device to itself.
"""

import random

import measuring
from measuring import Worker, in_rounds, ratio, spread, together

SIZES = {"words": 16000, "width": 2048, "heads": 16, "layers": 20, "batch": 4}
SMALL = {"words": 512, "width": 256, "heads": 4, "layers": 2, "batch": 4}
# Tokens of the batches of an epoch.
LENGTHS = [2048, 1024, 1536, 512, 1792, 1280]
SMALL_LENGTHS = [1024, 512, 768, 256, 896, 640]
EPOCHS = 3
# More, for the planner to see what repeats.
RECORDED_EPOCHS = 4
EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
ANOTHER = ", another order"
COMPARED = ("reserved_gib", "step_s")
GIB = 1 << 30


def measure(it: measuring.Fixture) -> None:
    plan = it.out.with_suffix(".plan")
    plan.unlink(missing_ok=True)
    lengths = SMALL_LENGTHS if it.simulated else LENGTHS
    sizes = (SMALL if it.simulated else SIZES) | {"lengths": lengths, "epochs": EPOCHS}
    recorded = train(it, "ours", sizes | {"epochs": RECORDED_EPOCHS}, BUDDY_DEVICE_PLAN=plan)
    if not plan.exists():
        raise RuntimeError("the recorded run has written no plan")
    others = sizes | {"lengths": random.Random(3).sample(lengths, len(lengths))}
    settings = {"stock": {}, "expandable segments": EXPANDABLE, "planned": {"BUDDY_DEVICE_PLAN": plan}}

    def ask(name: str) -> dict:
        return train(it, way_of(name), others if ANOTHER in name else sizes, **settings[name.removesuffix(ANOTHER)])

    names = [f"{name}{order}" for order in ("", ANOTHER) for name in settings]
    in_rounds(it, 3, names, ask, lambda seen: results(seen) | {"sizes": sizes, "parameters": recorded["parameters"]})


def train(it: measuring.Fixture, way: str, sizes: dict, **settings) -> dict:
    with together({way: Worker(it.ways[way], "train_lengths", **settings)}) as workers:
        return workers[way].last("train", which=way, **sizes)


# Of a run, and of stock's in the same round. What is requested is the program's, and with a plan its peak is an upper
# bound (docs/device.md): so stock's counts for all.
FIGURES = {
    "reserved_gib": lambda it, _: it["reserved"] / GIB,
    "efficiency": lambda it, stock: stock["requested"] / it["reserved"],
    "step_s": lambda it, _: it["step_s"],
}


def results(seen: dict[str, list[dict]]) -> dict:
    by_run = {
        name: {what: [of(*both) for both in zip(rounds, seen[stock_of(name)])] for what, of in FIGURES.items()}
        for name, rounds in seen.items()
    }
    return {
        "figures": {name: {what: spread(own) for what, own in by.items()} for name, by in by_run.items()},
        "ratio": {
            name: {what: ratio(by[what], by_run[stock_of(name)][what]) for what in COMPARED}
            for name, by in by_run.items() if name != stock_of(name)
        },
        "served": {name: served(rounds[0]) for name, rounds in seen.items() if way_of(name) == "ours"},
    }


def stock_of(name: str) -> str:
    """Stock's run on batches in the same order."""
    return f"stock{ANOTHER}" if ANOTHER in name else "stock"


def way_of(name: str) -> str:
    return "ours" if name.startswith("planned") else "stock"


def served(run: dict) -> dict:
    """What the plan has done with requests, all streams together."""
    streams = run["streams"] or []
    counts = {what: sum(it[what] for it in streams) for what in ("hits", "misses", "unplanned", "borrowed")}
    return counts | {"dropped": any(it["dropped"] for it in streams)}
