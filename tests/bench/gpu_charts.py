"""The charts of a GPU run (tests/gpu), from its results.json. What was not measured is left out."""

# Lines, by key of the results: stock's and ours.
STEPS = ["stock", "warmed", "planned", "defaults"]
COPIES = ["stock", "engine", "engine, 4 KiB"]
PAGES = ["4 KiB", "THP", "hugetlb"]
THREADS = [1, 2, 4, 8, 16]


def charts(results: dict) -> list[dict]:
    measured = results.get("measured", {})
    copies = measured.get("bandwidth", {}).get("gb_per_s", {})
    made = [_pins(measured.get("pins", {}).get("s_per_gib", {}))]
    for direction, title in (("h2d", "Copies to the GPU"), ("d2h", "Copies from the GPU")):
        series = {key: _by_size(copies.get(direction, {}), key) for key in COPIES}
        made.append({"file": f"bandwidth-{direction}", "title": title, "x": "size of a copy", "y": "GB/s", "x_scale": "bytes",
                     "series": series})
    for workload, what in (("transformer", "activations"), ("optimizer", "optimizer")):
        steps = measured.get(workload, {}).get("first_steps_s", {})
        series = {key: [[number, it] for number, it in enumerate(steps.get(key, []), 1)] for key in STEPS}
        made.append({"file": f"steps-{workload}", "title": f"First steps, {what} offloaded", "x": "step", "y": "seconds",
                     "series": series})
    for chart in made:
        chart["series"] = {name: points for name, points in chart["series"].items() if points}
    return [chart for chart in made if chart["series"]]


def _pins(cost: dict) -> dict:
    """Seconds per GiB by threads; constant for cudaHostAlloc, which has no such choice."""
    series = {pages: [[count, cost[f"{pages}, {count}"]["median"]] for count in THREADS if f"{pages}, {count}" in cost] for pages in PAGES}
    measured = sorted({count for points in series.values() for count, _ in points})
    if "cudaHostAlloc" in cost:
        series["stock"] = [[count, cost["cudaHostAlloc"]["median"]] for count in measured]
    return {"file": "pins", "title": "What pinning costs", "x": "threads", "y": "seconds a GiB", "x_scale": "log2", "series": series}


def _by_size(sizes: dict, key: str) -> list:
    """The median of `key` for each size, such as `16 MiB`."""
    return sorted([float(size.split()[0]) * (1 << 20), by[key]["median"]] for size, by in sizes.items() if key in by)
