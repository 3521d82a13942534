"""Draws charts as SVG by matplotlib. Knows nothing of their meaning.

usage: plots.py CHARTS.json DIR     A chart: file, title, x, y, x_scale and y_scale (log, bytes), steps, and the
                                    series, each a list of points; one called `live` is an area behind the others.
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "pinbuddy", "svg.fonttype": "none"})  # the same charts give the same bytes; text is text
from matplotlib import pyplot  # noqa: E402

# Names as documents have them, and colours that colour-blind readers can distinguish (Okabe and Ito).
SHOWN = {"stock-tuned": "stock tuned", "reserve": "reserved", "pinbuddy-exact": "exact growth",
         "pinbuddy-plan": "with a plan"}
COLOURS = {"stock": "#000000", "stock-tuned": "#0072b2", "reserve": "#cc79a7",
           "pinbuddy": "#009e73", "pinbuddy-exact": "#56b4e9", "pinbuddy-plan": "#d55e00",
           "warmed": "#009e73", "planned": "#d55e00", "defaults": "#56b4e9"}
# Later lines are thinner, so that lines below them stay visible.
WIDTHS = {"pinbuddy": 5, "reserve": 3.5, "pinbuddy-exact": 2.5}


def as_bytes(value: float, _position) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit:
            return f"{value / unit:g} {name}"
    return f"{value:g} B"


def draw(chart: dict, note: str, file: Path) -> None:
    figure, axes = pyplot.subplots(figsize=(9.6, 5.4), layout="constrained")
    # Stock last and dashed.
    for name in sorted(chart["series"], key=lambda it: (it != "live", it == "stock", -WIDTHS.get(it, 2))):
        if not (points := chart["series"][name]):
            continue
        x, y = zip(*points)
        shown = SHOWN.get(name, name)
        if name == "live":
            axes.fill_between(x, y, step="post", color="#bbbbbb", label=shown)
            continue
        axes.plot(x, y, label=shown, color=COLOURS.get(name), linewidth=WIDTHS.get(name, 2), marker="" if chart.get("steps") else "o",
                  linestyle="--" if name == "stock" else "-", drawstyle="steps-post" if chart.get("steps") else "default")
    for which, scale in (("x", chart.get("x_scale")), ("y", chart.get("y_scale"))):
        if scale:
            getattr(axes, f"set_{which}scale")("log", **({} if scale == "log" else {"base": 2}))
        if scale == "bytes":
            getattr(axes, f"{which}axis").set_major_formatter(as_bytes)
    if not chart.get("y_scale"):
        axes.set_ylim(bottom=0)
    axes.set(title=chart["title"], xlabel=chart["x"], ylabel=chart["y"])
    axes.grid(color="#e1e1e1")
    figure.legend(loc="outside right upper", title=note, frameon=False)
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    run, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    for it in run["charts"]:
        draw(it, run["note"], folder / f"{it['file']}.svg")
