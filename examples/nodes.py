"""On a machine of several NUMA nodes each GPU gets pinned memory of its own node.

    python examples/nodes.py     # one process with all GPUs, with BUDDY_NUMA=auto, beside stock

A row a GPU: its node, the node whose GPUs the memory serves, and where the kernel says that it lies (-: not known).
"""

import ctypes
import os
from pathlib import Path

from beside import MIB, STOCK, figures, require, run

# A machine that a test has made up has its own.
SYS = Path(os.environ.get("PINBUDDY_SIM_MACHINE", "/"), "sys")
MOVE_PAGES = 279  # The number of the system call on x86-64.


def measure() -> dict:
    import pinbuddy
    import torch

    rows, kept = [], []
    for device in range(torch.cuda.device_count()):
        with torch.cuda.device(device):
            kept.append(torch.empty(20 * MIB, dtype=torch.uint8, pin_memory=True).fill_(1))
        at, address = torch.cuda.get_device_properties(device), kept[-1].data_ptr()
        file = SYS / f"bus/pci/devices/{at.pci_domain_id:04x}:{at.pci_bus_id:02x}:{at.pci_device_id:02x}.0/numa_node"
        # Whose GPUs it serves; none where it serves all.
        homes = [it["home_node"] for it in pinbuddy.stats()["segments"] if it["address"] <= address < it["address"] + it["bytes"]]
        rows.append([int(file.read_text()) if file.exists() else -1, *(homes or [None]), lies_on(address)])
    return {"rows": rows}


def lies_on(address: int) -> int:
    """The node that the page lies on. With no nodes to move to, this call only says it."""
    node, page = ctypes.c_int(-1), ctypes.c_void_p(address)
    ctypes.CDLL(None).syscall(MOVE_PAGES, 0, ctypes.c_ulong(1), ctypes.byref(page), None, ctypes.byref(node), 0)
    return node.value


def compare() -> list[str]:
    stock, ours = (figures(__file__, **it)["rows"] for it in (STOCK, {"BUDDY_NUMA": "auto", "BUDDY_WARMUP": "off"}))
    lines = ["GPU  node   stock lies on   pinbuddy serves node   and lies on"]
    shown = lambda node: "-" if node is None or node < 0 else str(node)
    for gpu, ((_, _, of_stock), (own, serves, lies)) in enumerate(zip(stock, ours)):
        lines.append(f"{gpu:3}{shown(own):>6}{shown(of_stock):>16}{shown(serves):>23}{shown(lies):>14}")
    nodes = {own for own, _, _ in ours} - {-1}
    require(len(nodes) < 2 or all(own < 0 or serves == own for own, serves, _ in ours), "memory of each GPU's own node", ours)
    return lines if len(nodes) > 1 else [*lines, "All GPUs are on one node: there is nothing to choose."]


if __name__ == "__main__":
    run(measure, compare)
