"""A stand-in for the driver that maps ordinary memory, to try `questions/arena.py` without a real one."""

import ctypes
import mmap

from libcuda import Refused

GRANULARITY = 2 << 20


class StandIn:
    """`pieces` are handles of created and unreleased memory, `mapped` its addresses."""

    def __init__(self):
        self.reserved: dict[int, mmap.mmap] = {}
        self.pieces: dict[int, int] = {}
        self.mapped: dict[int, int] = {}
        self.open_to: dict[int, set[int]] = {}

    def call(self, name: str, *arguments) -> None:
        getattr(self, name)(*arguments)

    def attribute(self, number: int, device: int) -> int:
        # Pretend that the device supports pieces, on a machine without NUMA nodes.
        return {141: 1, 134: -1}[number]

    def cuMemGetAllocationGranularity(self, granularity, properties, option) -> None:
        assert properties._obj.kind == 1 and properties._obj.location.kind == 3
        granularity._obj.value = GRANULARITY

    def cuMemAddressReserve(self, address, size, alignment, wanted, flags) -> None:
        memory = mmap.mmap(-1, size.value)
        address._obj.value = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self.reserved[address._obj.value] = memory

    def cuMemCreate(self, handle, size, properties, flags) -> None:
        if size.value % GRANULARITY:
            raise Refused("cuMemCreate", 1, "invalid argument")
        handle._obj.value = max(self.pieces, default=0) + 1
        self.pieces[handle._obj.value] = size.value

    def cuMemMap(self, address, size, offset, handle, flags) -> None:
        ends = {at + self.pieces[its] for at, its in self.mapped.items()}
        assert self.pieces[handle.value] == size.value and offset.value == 0
        assert address.value in ends | set(self.reserved), "pieces lie side by side"
        self.mapped[address.value] = handle.value

    def cuMemSetAccess(self, address, size, access, count) -> None:
        assert all(it.flags == 3 for it in access) and count.value == len(access)
        self.open_to[address.value] = {it.location.kind for it in access}

    def cuMemUnmap(self, address, size) -> None:
        del self.mapped[address.value], self.open_to[address.value]

    def cuMemRelease(self, handle) -> None:
        assert handle.value not in self.mapped.values(), "released while it is mapped"
        del self.pieces[handle.value]

    def cuMemAddressFree(self, address, size) -> None:
        assert not self.mapped, "given back while something lies in it"
        del self.reserved[address.value]
