"""Figures of rounds: medians, quartiles, ratios.

A ratio is of medians over the same rounds, and its quartiles are those of the rounds' ratios, since a disturbance
mostly affects everything in a round.
"""

import statistics


def quartiles(values: list[float]) -> list[float]:
    """The first and the third; of one value, the value."""
    if len(values) < 2:
        return [values[0], values[0]]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return [low, high]


def spread(values: list[float]) -> dict:
    """The statistics of at least one round."""
    return {"median": statistics.median(values), "quartiles": quartiles(values), "rounds": values}


def ratio(of: list[float], over: list[float]) -> dict:
    """`of` over `over`, by round; both have the same number of rounds, at least one, and `over` no zero."""
    if len(of) != len(over):
        raise ValueError(f"{len(of)} rounds over {len(over)}")
    each = [one / other for one, other in zip(of, over)]
    return {
        "ratio": statistics.median(of) / statistics.median(over),
        "quartiles": quartiles(each),
        "rounds": each,
    }
