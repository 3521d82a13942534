"""A copy across two registrations is refused, and no copy within the engine's memory crosses any."""

# The CUDA runtime of the process: the simulator's, in front, or torch's own.
RUNTIME = """
import mmap, pinbuddy
def runtime():
    whole = ctypes.CDLL(None)
    if hasattr(whole, "cudaHostRegister"):
        return whole
    paths = {line.split()[-1] for line in open("/proc/self/maps") if "libcudart" in line}
    return ctypes.CDLL(paths.pop())
use_gpu()
cuda = runtime()
def register(address, size):
    return cuda.cudaHostRegister(ctypes.c_void_p(address), ctypes.c_size_t(size), 1)
def copy(to, source, size, kind):
    stream = torch.cuda.current_stream().cuda_stream
    return cuda.cudaMemcpyAsync(ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(size), kind,
                                ctypes.c_void_p(stream))
def both_ways(host, device, size):
    return [copy(device, host, size, 1), copy(host, device, size, 2)]
"""
INVALID_VALUE = 1


def test_by_the_runtime_alone(ours):
    """4 MiB in two registrations: copies of 2 MiB within each of them, and across their border."""
    program = """
half = 2 * MIB
memory = mmap.mmap(-1, 2 * half)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
memory[:] = wanted = bytes(at % 251 for at in range(2 * half))
registered = [register(part, half) for part in (address, address + half)]
on_device = torch.empty(half, dtype=torch.uint8, device="cuda")
copies = [both_ways(address + offset, on_device.data_ptr(), half) for offset in (0, half, half // 2)]
cuda.cudaGetLastError()
torch.cuda.synchronize()
arrived = bytes(on_device.cpu().tolist()) == wanted[half:] and memory[:] == wanted
answer([registered, copies, arrived])
"""
    within, across = [0, 0], [INVALID_VALUE, INVALID_VALUE]
    assert ours(RUNTIME + program) == [[0, 0], [within, within, across], True]


def test_each_segment_of_the_engine_is_in_one_registration(ours):
    """One copy takes a whole segment: those of the warm-up and one that a request pinned."""
    program = """
blocks = [pinned(24).fill_(at) for at in range(6)] + [pinned(90).fill_(6)]
copies, backings = [], []
for segment in pinbuddy.stats()["segments"]:
    on_device = torch.empty(segment["bytes"], dtype=torch.uint8, device="cuda")
    copies += both_ways(segment["address"], on_device.data_ptr(), segment["bytes"])
    backings.append(segment["backing"])
torch.cuda.synchronize()
whole = all(bool((block == at).all()) for at, block in enumerate(blocks))
answer([copies, backings, whole, all(of_engine(it) and it.is_pinned() for it in blocks)])
"""
    copies, backings, whole, engines = ours(RUNTIME + program, BUDDY_BACKING="pages", BUDDY_WARMUP="sync", BUDDY_MAX_MB="1024")
    assert len(backings) > 2 and set(backings) == {"pages"}, "blocks are not registered here"
    assert set(copies) == {0} and whole and engines
