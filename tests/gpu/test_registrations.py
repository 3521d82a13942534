"""Copies across two adjacent registrations, as BUDDY_REGISTER_CHUNK_MB makes them."""

import pytest

# The CUDA runtime of the process: the simulator's, in front, or torch's own.
RUNTIME = """
import mmap
class Attributes(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("device", ctypes.c_int), ("device_pointer", ctypes.c_void_p),
                ("host_pointer", ctypes.c_void_p), ("reserved", ctypes.c_long * 8)]
def runtime():
    whole = ctypes.CDLL(None)
    if hasattr(whole, "cudaHostRegister"):
        return whole
    paths = {line.split()[-1] for line in open("/proc/self/maps") if "libcudart" in line}
    return ctypes.CDLL(paths.pop())
use_gpu()
cuda = runtime()
def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status:
        answer([f"{name} failed with {status}"])
        raise SystemExit
def attributes(address):
    it = Attributes()
    call("cudaPointerGetAttributes", ctypes.byref(it), ctypes.c_void_p(address))
    return it.kind, it.device_pointer == address
def copy(to, source, size, kind):
    stream = torch.cuda.current_stream().cuda_stream
    call("cudaMemcpyAsync", ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(size), kind,
         ctypes.c_void_p(stream))
TO_DEVICE, TO_HOST, HOST_MEMORY = 1, 2, 1
"""


def test_by_the_runtime_alone(ours):
    """4 MiB in two registrations: copies of 2 MiB across the border, and attributes on both sides."""
    program = """
half = 2 * MIB
memory = mmap.mmap(-1, 2 * half)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
for part in (address, address + half):
    call("cudaHostRegister", ctypes.c_void_p(part), ctypes.c_size_t(half), 1)
memory[:] = bytes(at % 251 for at in range(2 * half))
sides = [attributes(address + half - 1), attributes(address + half)]
on_device = torch.empty(half, dtype=torch.uint8, device="cuda")
middle = address + half // 2
copy(on_device.data_ptr(), middle, half, TO_DEVICE)
torch.cuda.synchronize()
there = bytes(on_device.cpu().tolist()) == memory[half // 2:half // 2 + half]
other = torch.arange(half).remainder(241).to(torch.uint8).cuda()
copy(middle, other.data_ptr(), half, TO_HOST)
torch.cuda.synchronize()
back = memory[half // 2:half // 2 + half] == bytes(other.cpu().tolist())
for part in (address, address + half):
    call("cudaHostUnregister", ctypes.c_void_p(part))
answer([[kind == HOST_MEMORY for kind, _ in sides], there, back])
"""
    assert ours(RUNTIME + program) == [[True, True], True, True]


@pytest.mark.parametrize("chunk", [2, 16])
def test_blocks_of_the_engine_that_lie_across_chunks(ours, chunk):
    """Every block of 24 MiB contains a border of chunks; each byte has to arrive, in both directions."""
    program = """
import pinbuddy
blocks = [pinned(24) for _ in range(4)]
pattern = torch.arange(24 * MIB).remainder(253).to(torch.uint8)
whole = []
for at, block in enumerate(blocks):
    block.copy_(pattern + at)
    on_device = block.to("cuda", non_blocking=True)
    back = pinned(24).copy_(on_device, non_blocking=True)
    torch.cuda.synchronize()
    whole.append(torch.equal(back, pattern + at))
chunk = {chunk} * MIB
segment = next(it for it in pinbuddy.stats()["segments"] if it["address"] <= blocks[0].data_ptr()
               < it["address"] + it["bytes"])
borders = [segment["address"] + at for at in range(chunk, segment["bytes"], chunk)]
inside = [it for it in borders if blocks[0].data_ptr() < it < blocks[0].data_ptr() + 24 * MIB]
sides = {{attributes(it + side)[0] == HOST_MEMORY for it in inside for side in (-1, 0)}}
answer([whole, all(of_engine(it) for it in blocks), all(it.is_pinned() for it in blocks), len(inside) > 0,
        list(sides), segment["backing"]])
"""
    whole, engines, pinned, crossed, sides, backing = ours(
        RUNTIME + program.format(chunk=chunk), BUDDY_REGISTER_CHUNK_MB=str(chunk), BUDDY_WARMUP="sync"
    )
    assert backing == "pages", "blocks are not registered here"
    assert whole == [True] * 4 and engines and pinned and crossed and sides == [True]
