"""``python -m pinbuddy doctor``: whether pinbuddy is in place in this environment, and if not, why.

Looks for PyTorch, the library and the entry point, imports torch as a program would, and says which
allocator serves pinned memory. Changes nothing, and pins nothing. What the machine offers says ``pinbuddy-tools``.
"""

import importlib.metadata
import os
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

from pinbuddy import _library, _match, _read

_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
# As the library reads it.
_SITE = "PINBUDDY_SITE"
_REINSTALL = "reinstall the plug-in: pip install --force-reinstall pinbuddy-*.whl"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
# Releases whose own allocator may serve a request with a shorter cached block (pytorch/pytorch#192722), with their patch
# releases: later ones compare sizes, earlier ones round all of them. A test compares it with `cpp/upstream.h`.
_OVERFLOWING = ("2.13",)


@dataclass
class Report:
    """The findings; these are the keys of the JSON."""

    served: bool = False
    """Whether pinbuddy serves pinned memory in a program started like this one."""
    why: str = ""
    """Why it does not, as a sentence without a period."""
    to_do: str = ""
    """What to do about it."""
    torch: str | None = None
    torch_folder: str | None = None
    cuda: str | None = None
    gpus: int | None = None
    form: str = "none"
    """``fork``, ``plug-in`` or ``none``."""
    library: str | None = None
    header: str | None = None
    version: str | None = None
    """The library's version; the plug-in's, if no library was loaded."""
    state: str | None = None
    children: str | None = None
    """What children of a fork have of pinned blocks, as ``BUDDY_FORK`` says: ``share`` or ``hide``."""
    fits: list[str] = field(default_factory=list)
    """The versions of torch that the plug-in has libraries for."""
    entry_point: bool | None = None
    """Whether torch finds the plug-in; ``None`` if there is none."""
    site: str | None = None
    """The site's file, which may not be there; ``None`` if ``PINBUDDY_SITE`` is empty."""
    set_by: dict[str, list[str]] = field(default_factory=dict)
    """The settings in use that files set, by their origin: ``site`` and ``wheel``."""
    notes: list[str] = field(default_factory=list)
    """Further findings, each a sentence without a period."""

    def table(self) -> str:
        """As text, for people."""
        torch = f"{self.torch} in {self.torch_folder}" if self.torch else "cannot be imported"
        forms = {"fork": "a fork wheel", "plug-in": "the plug-in", "none": "neither"}
        rows = [
            ("torch", torch),
            ("CUDA", self.cuda or "none"),
            ("GPUs", "unknown" if self.gpus is None else str(self.gpus)),
            ("form", forms[self.form]),
            ("library", self.library or "none"),
            ("version", self.version or "unknown"),
            ("state", self.state or "unknown"),
        ]
        if self.children:
            have = {"share": "read and write pinned blocks, as with stock"}
            hidden = "crash where they read a pinned block (BUDDY_FORK=hide)"
            rows.append(("children", have.get(self.children, hidden)))
        rows.append(("site file", self._site()))
        if set_here := self.set_by.get("wheel"):
            rows.append(("wheel", f"sets {', '.join(set_here)}"))
        if self.fits:
            found = "registered" if self.entry_point else "not registered"
            rows += [("plug-in fits", ", ".join(self.fits)), ("entry point", found)]
        if self.header:
            rows.append(("header", self.header))
        lines = [f"{name:<14}{value}" for name, value in rows]
        lines += ["", *(f"Note: {note}." for note in self.notes), self._verdict()]
        return "\n".join([*lines, *([f"To do: {self.to_do}"] if self.to_do else [])])

    def _site(self) -> str:
        if self.site is None:
            return f"none ({_SITE} is empty)"
        if names := self.set_by.get("site"):
            return f"{self.site}, sets {', '.join(names)}"
        return f"{self.site}, {'sets nothing in use' if os.path.exists(self.site) else 'not there'}"

    def _verdict(self) -> str:
        if self.served:
            return "pinbuddy serves pinned memory."
        if self.torch is None:
            return f"pinbuddy has no PyTorch to serve: {self.why}."
        if self.state == "on":
            return f"pinbuddy is installed, but {self.why}: nobody can pin memory here."
        return f"PyTorch's own allocator serves pinned memory: {self.why}."

    def as_data(self) -> dict[str, Any]:
        """As data, for JSON."""
        return asdict(self)


def examine() -> Report:
    """Looks at this environment."""
    report = Report(site=os.environ.get(_SITE, "/etc/pinbuddy/site.toml") or None)
    plugin = _match.manifest()
    if plugin is not None:
        report.version = plugin["version"]
        report.fits = [it["torch"] for it in plugin["libraries"]]
        points = importlib.metadata.entry_points(group="torch.backends")
        report.entry_point = any(it.value.startswith("pinbuddy.") for it in points)
    try:
        import torch
    except Exception as error:
        report.why = f"torch cannot be imported ({type(error).__name__}: {error})"
        missing = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        report.to_do = (
            "install torch in this environment"
            if missing
            else f"mend or reinstall it: {sys.executable} -c 'import torch' says where it fails"
        )
        return report
    report.torch, report.cuda = str(torch.__version__), torch.version.cuda
    report.torch_folder = os.path.dirname(torch.__file__)
    # Counted by the driver, without making a context.
    report.gpus = _read.gpus()
    match = _match.of_import(torch)
    report.form = match.form
    report.library = match.library and str(match.library)
    report.header = match.header and str(match.header)
    if match.library is None:
        report.why = match.why
        report.to_do = _remedy(report.torch, match, plugin)
        report.notes = _notes(report)
        return report
    library = _library.load()
    report.version, report.state = _read.version(), _read.stats()["state"]
    report.served = _read.enabled()
    config = _read.config()
    for origin in ("site", "wheel"):
        if names := [name for name, it in config.items() if it["origin"] == origin]:
            report.set_by[origin] = names
    if report.served:
        report.children = str(config["BUDDY_FORK"]["value"])
    if isinstance(library, _library.Absent):
        _not_loaded(report, match, plugin)
    elif report.state == "on" and not report.served:
        report.why, report.to_do = _no_gpu()
    elif not report.served:
        file = config["BUDDY_DISABLE"]["file"]
        report.why = f"BUDDY_DISABLE=1 {f'in {file} ' if file else ''}leaves it in place"
        report.to_do = "set BUDDY_DISABLE=0" if file else "unset BUDDY_DISABLE"
    report.notes = _notes(report)
    return report


def _no_gpu() -> tuple[str, str]:
    """Why nothing can be pinned, and what to do."""
    visible = os.environ.get(_VISIBLE)
    if visible is None:
        return "there is no GPU", "run it on a machine with a GPU"
    if visible.strip() in ("", "-1"):
        return f"{_VISIBLE}={visible!r} leaves no GPU", f"unset {_VISIBLE}"
    # Schedulers and containers always set it.
    why = f"there is no GPU, or {_VISIBLE}={visible!r} names none of them"
    return why, "compare with what nvidia-smi lists"


def _notes(report: Report) -> list[str]:
    notes = []
    if report.form == "fork" and (report.fits or _is_installed("pinbuddy")):
        python = sys.executable
        notes.append(
            "the plug-in is installed beside the fork, which does not need it, and whichever came last has "
            "overwritten the other's Python package. To mend it: "
            f"{python} -m pip uninstall --yes pinbuddy && "
            f"{python} -m pip install --force-reinstall --no-deps torch-*.whl"
        )
    if report.state != "on" and ".".join((report.torch or "").split(".")[:2]) in _OVERFLOWING:
        notes.append(
            "PyTorch's own allocator overflows its heap where pinned_max_round_threshold_mb is below "
            f"pinned_max_cached_size_mb (pytorch/pytorch#192722, in torch {', '.join(_OVERFLOWING)}); "
            "pinbuddy does not"
        )
    if report.state == "on":
        remarks = {name: it["remark"] for name, it in _read.config().items() if it["remark"]}
        notes += [f"{name}: {remark}" for name, remark in remarks.items()]
    return notes


def _is_installed(name: str) -> bool:
    """Whether pip has installed a distribution of that name."""
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _remedy(torch: str, match: _match.Match, plugin: dict[str, Any] | None) -> str:
    if match.expected:
        return "install the CUDA build of torch"
    if plugin is None:
        return "install a wheel from your index or a release: pip install pinbuddy-*.whl, the plug-in, or torch-*pinbuddy*.whl, the fork"
    if match.damaged:
        return _REINSTALL
    if any(it["torch"] == torch for it in plugin["libraries"]):
        # pip's own version of it, which an index may have without CUDA's.
        version = importlib.metadata.version("torch") if _is_installed("torch") else torch
        return (
            "reinstall that torch from its index, and keep its headers where an image is slimmed: "
            f"pip install --force-reinstall --no-deps torch=={version}"
        )
    return (
        "install one of the torch versions above, or from your index or a release a plug-in whose version names yours: "
        "pip install pinbuddy-*.whl"
    )


def _not_loaded(report: Report, match: _match.Match, plugin: dict[str, Any] | None) -> None:
    """Why torch was imported without a library that fits."""
    listed = (plugin or {"libraries": []})["libraries"]
    hashes = {it["torch"]: it["sha256"] for it in listed}
    # As torch compares it.
    if (value := os.environ.get(_AUTOLOAD, "1")) != "1":
        report.why, report.to_do = f"{_AUTOLOAD}={value!r} switches autoloading off, as all but 1 does", f"unset {_AUTOLOAD}"
    elif not report.entry_point:
        report.why, report.to_do = "torch does not find the plug-in's entry point", _REINSTALL
    elif match.library and _match.sha256(match.library) != hashes.get(report.torch):
        report.why, report.to_do = "the plug-in's library is damaged", _REINSTALL
    else:
        report.why = "the library could not be loaded, and standard error says why"
        report.to_do = f"what that line names is missing or of another release; if it is pinbuddy's, {_REINSTALL}"
