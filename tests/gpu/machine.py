"""The machine of a run, and reasons why it is not suitable."""

import datetime
import json
import os
import platform
import re
import resource
import shutil
import subprocess
from pathlib import Path

from ways import Way

GIB = 1 << 30
# Device memory that a context and its torch may take.
CONTEXT_MIB = 2048
# Memory pinned by three processes of the transformer's run, and a margin.
WANTED_GIB = 48

PROBE = """
import importlib.util, json, sys, torch
seen = torch.cuda.is_available()
it = torch.cuda.get_device_properties(0) if seen else None
try:
    import pinbuddy
    pinbuddy, why = pinbuddy.version() if pinbuddy.enabled() else None, "the engine is off"
except ImportError as error:
    pinbuddy, why = None, str(error)
print(json.dumps({
    "torch": torch.__version__, "cuda": torch.version.cuda, "python": sys.version.split()[0],
    "gpu": it and it.name, "gpu_mib": it and it.total_memory >> 20, "gpus": torch.cuda.device_count(),
    "gpu_free_mib": seen and torch.cuda.mem_get_info()[0] >> 20,
    "has_package": importlib.util.find_spec("pinbuddy") is not None,
    "numpy": importlib.util.find_spec("numpy") is not None, "pinbuddy": pinbuddy, "why": why,
}))
"""


def probe(way: Way) -> dict:
    """What torch reports of itself and of the GPU, with one allocator."""
    done = subprocess.run([way.python, "-c", PROBE], env=way.environment(), capture_output=True, text=True, timeout=180)
    if done.returncode != 0:
        raise RuntimeError(f"{way.python} cannot import torch:\n{done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1]) | {"said": done.stderr.strip()}


def complaints(stock: dict, ours: dict, wanted_torch: str | None) -> list[str]:
    """Reasons why nothing can be measured here."""
    wrong = []
    base = stock["torch"].split("+")[0]
    if wanted_torch and base != wanted_torch:
        wrong.append(f"torch is {stock['torch']}; this pack is for {wanted_torch} and no other")
    if not stock["gpu"]:
        wrong.append("torch sees no GPU")
    if stock["pinbuddy"]:
        wrong.append("what is to be stock has pinbuddy in it")
    elif stock["has_package"]:
        # Tests start stock with variables of their own, so nothing can keep torch from loading it.
        wrong.append("a package pinbuddy is installed beside what is to be stock; `python3 -m pip uninstall pinbuddy` removes it")
    if not ours["pinbuddy"]:
        wrong.append(f"pinbuddy does not serve: {ours['why']} {ours['said']}".strip())
    if ours["torch"].split("+")[0] != base:
        wrong.append(f"stock is torch {stock['torch']}, and ours {ours['torch']}")
    return wrong


def context() -> dict:
    """Of this machine."""
    memory = dict(re.findall(r"^(\w+): +(\d+) kB", _read("/proc/meminfo"), re.MULTILINE))
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    fields = "name,driver_version,memory.total,pcie.link.gen.current,pcie.link.width.current"
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "glibc": "".join(platform.libc_ver()),
        "processor": "".join(re.findall(r"^model name\s*: (.*)", _read("/proc/cpuinfo"), re.MULTILINE)[:1]),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(memory["MemTotal"]) * 1024 / GIB, 1),
        "available_gib": round(int(memory["MemAvailable"]) * 1024 / GIB, 1),
        "memlock": "unlimited" if soft == resource.RLIM_INFINITY else soft,
        "shm_gib": round(shutil.disk_usage("/dev/shm").free / GIB, 2) if Path("/dev/shm").exists() else None,
        "thp": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "nr_hugepages": _read("/proc/sys/vm/nr_hugepages"),
        "driver": _read("/proc/driver/nvidia/version").split("\n")[0],
        "nvidia_smi": _said("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"),
    }


def _read(file: str) -> str:
    try:
        return Path(file).read_text().strip()
    except OSError:
        return ""


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def warnings(seen: dict, simulated: bool) -> list[str]:
    """Conditions that affect the figures, but do not prevent the run."""
    said, used = [], (seen["gpu_mib"] or 0) - (seen["gpu_free_mib"] or 0)
    if seen["shm_gib"] is None or seen["shm_gib"] < 0.25:
        said.append(f"/dev/shm has {seen['shm_gib']} GiB: tests of forked loaders may fail")
    if seen["memlock"] != "unlimited":
        said.append(f"RLIMIT_MEMLOCK is {seen['memlock']} bytes; the budget keeps to it if it is more than 64 MiB")
    if not simulated and seen["available_gib"] < WANTED_GIB:
        said.append(f"{seen['available_gib']} GiB are available; the transformer wants {WANTED_GIB}")
    if not simulated and used > CONTEXT_MIB:
        said.append(f"other programs have {used} MiB of the GPU's memory: tests may fail for want of it, and no figure counts")
    return said
