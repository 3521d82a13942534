"""Host memory made of the driver's own pieces, mapped side by side in one range of addresses: cuMemCreate with a
location on a host's node. What expandable segments do with a GPU's memory.
"""

import ctypes
from dataclasses import dataclass, field

from libcuda import Driver, Unavailable

# cuda.h
PINNED, TO_READ_AND_WRITE = 1, 3
ON_DEVICE, ON_HOST_NODE = 1, 3
HOST_NODE_OF_DEVICE, HOST_PIECES_SUPPORTED = 134, 141


class Location(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("id", ctypes.c_int)]


class Properties(ctypes.Structure):
    """CUmemAllocationProp, of which only kind and location are ever set."""

    _fields_ = [
        ("kind", ctypes.c_int),
        ("handle_kinds", ctypes.c_int),
        ("location", Location),
        ("windows", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


def node_of(driver: Driver, device: int) -> int:
    """The node of the host that is nearest to the device; 0 where the machine has no nodes."""
    if not driver.attribute(HOST_PIECES_SUPPORTED, device):
        raise Unavailable("the device says that it does not support pieces of host memory")
    return max(0, driver.attribute(HOST_NODE_OF_DEVICE, device))


@dataclass
class Arena:
    """A range of addresses that grows at its end, for one device and the host."""

    driver: Driver
    device: int
    node: int
    most: int
    address: int = 0
    size: int = 0
    pieces: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self):
        self.properties = Properties(kind=PINNED, location=Location(ON_HOST_NODE, self.node))
        granularity, address = ctypes.c_size_t(), ctypes.c_ulonglong()
        self.driver.call(
            "cuMemGetAllocationGranularity", ctypes.byref(granularity), ctypes.byref(self.properties), 0
        )
        self.granularity = granularity.value
        self.driver.call(
            "cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(self.most), ctypes.c_size_t(0),
            ctypes.c_ulonglong(0), ctypes.c_ulonglong(0),
        )
        self.address = address.value

    def grow(self, size: int) -> int:
        """Maps a piece behind the last one and says where it begins."""
        if size % self.granularity:
            raise Unavailable(f"pieces are multiples of {self.granularity} bytes here, which {size} is not")
        handle, at = ctypes.c_ulonglong(), self.address + self.size
        none, length = ctypes.c_ulonglong(0), ctypes.c_size_t(size)
        self.driver.call("cuMemCreate", ctypes.byref(handle), length, ctypes.byref(self.properties), none)
        try:
            self.driver.call("cuMemMap", ctypes.c_ulonglong(at), length, ctypes.c_size_t(0), handle, none)
        except Exception:
            self.driver.call("cuMemRelease", handle)
            raise
        self.pieces.append((at, size, handle.value))
        self.size += size
        both = (Access * 2)(
            Access(Location(ON_DEVICE, self.device), TO_READ_AND_WRITE),
            Access(Location(ON_HOST_NODE, self.node), TO_READ_AND_WRITE),
        )
        self.driver.call("cuMemSetAccess", ctypes.c_ulonglong(at), length, both, ctypes.c_size_t(2))
        return at

    def shrink(self) -> int:
        """Releases the last piece and returns its length."""
        at, size, handle = self.pieces.pop()
        self.size -= size
        self.driver.call("cuMemUnmap", ctypes.c_ulonglong(at), ctypes.c_size_t(size))
        self.driver.call("cuMemRelease", ctypes.c_ulonglong(handle))
        return size

    def close(self) -> None:
        while self.pieces:
            self.shrink()
        self.driver.call("cuMemAddressFree", ctypes.c_ulonglong(self.address), ctypes.c_size_t(self.most))
