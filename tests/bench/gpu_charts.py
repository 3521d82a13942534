"""The charts of a GPU run (tests/gpu), from its results.json. What was not measured is left out."""

# Lines, by key of the results: stock's and ours.
STEPS = ["stock", "warmed", "planned", "defaults"]


def charts(results: dict) -> list[dict]:
    made = []
    for workload, what in (("transformer", "activations"), ("optimizer", "optimizer")):
        steps = results.get("measured", {}).get(workload, {}).get("first_steps_s", {})
        series = {key: [[number, it] for number, it in enumerate(steps[key], 1)] for key in STEPS if steps.get(key)}
        if series:
            made.append({"file": f"steps-{workload}", "title": f"First steps, {what} offloaded", "x": "step", "y": "seconds",
                         "series": series})
    return made
