"""What needs a process of its own: settings, which are read once, primary contexts, and fork.

Most of these programs go without torch, which the C interface does not need.
"""

import os
import subprocess
import sys
import textwrap
import unittest
from pathlib import Path


def run(program, **variables):
    """Runs a program with everything of `simulator` in it; what it asserts must hold."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    environment |= {name: str(value) for name, value in variables.items()}
    prelude = "import ctypes, os, threading, time\nfrom simulator import *\n"
    done = subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(program)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode != 0:
        raise AssertionError(f"exit status {done.returncode}:\n{done.stdout}{done.stderr}")


class Contexts(unittest.TestCase):
    def test_the_first_call_that_needs_a_context_makes_it(self):
        run(
            """
            driver = ctypes.CDLL("libcuda.so.1")
            place, other = ctypes.create_string_buffer(2048), ctypes.create_string_buffer(64)
            size = ctypes.c_size_t(4096)

            def active():
                flags, state = ctypes.c_uint(), ctypes.c_int()
                def says(device):
                    assert driver.cuDevicePrimaryCtxGetState(
                        device, ctypes.byref(flags), ctypes.byref(state)) == 0
                    return state.value == 1
                found = [device for device in range(2) if says(device)]
                assert found == stats()["contexts"]
                return found

            asking = {
                "cudaGetDevice": [place],
                "cudaGetDeviceCount": [place],
                "cudaGetDeviceProperties": [place, 0],
                "cudaDeviceGetAttribute": [place, 16, 0],
                "cudaDeviceCanAccessPeer": [place, 0, 1],
                "cudaDriverGetVersion": [place],
                "cudaGetLastError": [],
                "cudaEventQuery": [None],
            }
            for name, arguments in asking.items():
                getattr(runtime, name)(*arguments)
                assert active() == [], name
            making = {
                "cudaFree": [None],
                "cudaFreeHost": [None],
                "cudaHostUnregister": [None],
                "cudaMalloc": [place, size],
                "cudaHostAlloc": [place, size, 0],
                "cudaHostRegister": [None, size, 0],
                "cudaMemGetInfo": [place, other],
                "cudaPointerGetAttributes": [place, other],
                "cudaDeviceSynchronize": [],
                "cudaInitDevice": [0, 0, 0],
                "cudaSetDevice": [0],
                "cudaEventCreate": [place],
                "cudaEventDestroy": [None],
                "cudaStreamCreate": [place],
                "cudaStreamQuery": [None],
                "cudaStreamIsCapturing": [None, place],
            }
            for name, arguments in making.items():
                getattr(runtime, name)(*arguments)
                assert active() == [0], name
                assert runtime.cudaDeviceReset() == SUCCESS
                assert active() == []
            """
        )

    def test_pytorch_pins_with_the_context_that_is_there(self):
        run(
            """
            import torch

            assert torch.cuda.device_count() == 2 and torch.cuda.get_device_name(0)
            assert stats()["contexts"] == []
            torch.ones(3, device="cuda:1")
            pinned = torch.empty(MIB, pin_memory=True)
            assert pinned.is_pinned() and stats()["contexts"] == [1]
            """
        )

    def test_a_thread_that_chose_no_device_unpins_on_the_first(self):
        run(
            """
            runtime.cudaSetDevice(1)
            answer, address = host_alloc(MIB)
            assert (answer, stats()["contexts"]) == (SUCCESS, [1])

            def unpin():
                assert runtime.cudaFreeHost(address) == SUCCESS
                assert (stats()["own_pins"], stats()["own_unpins"]) == (0, 1)

            thread = threading.Thread(target=unpin)
            thread.start()
            thread.join()
            assert stats()["contexts"] == [0, 1]
            assert (stats()["own_pins"], stats()["own_unpins"]) == (1, 0)
            assert (stats()["host_allocs"], stats()["host_frees"]) == (1, 1)
            """
        )


class WithoutLocking(unittest.TestCase):
    def test_more_can_be_pinned_than_there_is(self):
        run(
            """
            runtime.cudaFree(None)
            locked, resident = memory_kib("VmLck"), memory_kib("VmRSS")
            answer, address = host_alloc(60 * GIB)
            assert answer == SUCCESS
            assert memory_kib("VmLck") == locked
            assert memory_kib("VmRSS") - resident < 8 * 1024
            # Ordinary memory, there when it is touched.
            last = (ctypes.c_char * 1).from_address(address.value + 60 * GIB - 1)
            last[0] = b"x"
            assert last[0] == b"x"
            assert stats()["pinned_bytes"] == 60 * GIB
            # The accounts are those of real locking.
            assert host_alloc(5 * GIB)[0] == MEMORY_ALLOCATION
            assert (stats()["pins_refused"], stats()["pinned_bytes"]) == (1, 60 * GIB)
            assert runtime.cudaFreeHost(address) == SUCCESS
            assert (stats()["pinned_bytes"], stats()["pinned_peak_bytes"]) == (0, 60 * GIB)
            """,
            PINBUDDY_SIM_LOCK=0,
            PINBUDDY_SIM_FAIL_PIN_AFTER_MB=64 << 10,
        )

    def test_registration_locks_and_touches_nothing(self):
        run(
            """
            import mmap

            memory = mmap.mmap(-1, GIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            place = (ctypes.c_char * GIB).from_buffer(memory)
            address, size = ctypes.c_void_p(ctypes.addressof(place)), ctypes.c_size_t(GIB)
            runtime.cudaFree(None)
            locked, resident = memory_kib("VmLck"), memory_kib("VmRSS")
            assert runtime.cudaHostRegister(address, size, 0) == SUCCESS
            assert memory_kib("VmLck") == locked
            assert memory_kib("VmRSS") - resident < 8 * 1024
            assert stats()["pinned_bytes"] == GIB and stats()["host_registers"] == 1
            assert runtime.cudaHostUnregister(address) == SUCCESS
            assert stats()["pinned_bytes"] == 0 and stats()["host_unregisters"] == 1
            # What is not mapped is refused all the same.
            del place
            memory.close()
            assert runtime.cudaHostRegister(address, size, 0) == INVALID_VALUE
            """,
            PINBUDDY_SIM_LOCK=0,
        )


class DriverPace(unittest.TestCase):
    def test_a_small_pin_waits_for_a_large_one_and_nothing_else_does(self):
        run(
            """
            stream, event = ctypes.c_void_p(), ctypes.c_void_p()
            answer, small = host_alloc(4096)
            runtime.cudaStreamCreate(ctypes.byref(stream))
            runtime.cudaEventCreate(ctypes.byref(event))
            ended = {}

            def pin(name, size):
                assert host_alloc(size)[0] == SUCCESS
                ended[name] = time.monotonic()

            start = time.monotonic()
            large = threading.Thread(target=pin, args=["large", 256 * MIB])
            large.start()
            while stats()["pinned_bytes"] < 256 * MIB:
                time.sleep(0.001)
            late = threading.Thread(target=pin, args=["late", MIB])
            late.start()
            target, host = ctypes.c_void_p(), ctypes.create_string_buffer(4096)
            assert runtime.cudaMalloc(ctypes.byref(target), ctypes.c_size_t(4096)) == SUCCESS
            assert runtime.cudaMemcpy(target, host, ctypes.c_size_t(4096), 1) == SUCCESS
            assert runtime.cudaEventRecord(event, stream) == SUCCESS
            assert runtime.cudaStreamSynchronize(stream) == SUCCESS
            assert runtime.cudaEventQuery(event) == SUCCESS
            assert runtime.cudaFreeHost(small) == SUCCESS
            assert not ended, "these wait for no pin"
            large.join()
            late.join()
            # 8000 ms per GiB.
            assert ended["large"] - start >= 2
            assert ended["late"] >= ended["large"]
            """,
            PINBUDDY_SIM_LOCK=0,
            PINBUDDY_SIM_PIN_MS_PER_GB=8000,
        )

    def test_a_child_of_fork_does_not_wait(self):
        run(
            """
            pinning = threading.Thread(target=host_alloc, args=[256 * MIB])
            pinning.start()
            while stats()["pinned_bytes"] < 256 * MIB:
                time.sleep(0.001)
            child = os.fork()
            if child == 0:
                os._exit(host_alloc(4096)[0])
            status = os.waitpid(child, 0)[1]
            assert pinning.is_alive()
            assert os.waitstatus_to_exitcode(status) == INITIALIZATION_ERROR
            pinning.join()
            """,
            PINBUDDY_SIM_LOCK=0,
            PINBUDDY_SIM_PIN_MS_PER_GB=16000,
        )

    def test_a_child_shares_pinned_memory_where_that_is_asked_for(self):
        """As with a driver, whose mappings are shared."""
        program = """
            status, address = host_alloc(8192)
            byte = ctypes.c_char.from_address(address.value + 5000)
            byte.value = b"p"
            child = os.fork()
            if child == 0:
                read = byte.value
                byte.value = b"c"
                os._exit(read != b"p")
            assert os.waitpid(child, 0)[1] == 0
            assert byte.value == WRITTEN, byte.value
            assert runtime.cudaFreeHost(address) == SUCCESS
            """
        run(program.replace("WRITTEN", 'b"c"'), PINBUDDY_SIM_SHARED=1)
        run(program.replace("WRITTEN", 'b"p"'))


class Lines(unittest.TestCase):
    def test_a_line_is_written_at_once(self):
        """Processes that share standard error do not write into each other's lines."""
        run(
            """
            # In packet mode a reader gets what each write(2) gave, and no more.
            reading, writing = os.pipe2(os.O_DIRECT)
            os.dup2(writing, 2)
            assert host_alloc(4096)[0] == SUCCESS
            assert runtime.cudaFreeHost(None) == SUCCESS
            assert runtime.cudaFreeHost(ctypes.c_void_p(16)) == INVALID_VALUE
            os.set_blocking(reading, False)
            packets = []
            try:
                while True:
                    packets.append(os.read(reading, 4096))
            except BlockingIOError:
                pass
            assert len(packets) >= 2, packets
            for packet in packets:
                assert packet.startswith(b"pinbuddy-cuda-sim: "), packets
                assert packet.endswith(b"\\n") and packet.count(b"\\n") == 1, packets
            """,
            PINBUDDY_SIM_LOG=1,
            PINBUDDY_SIM_LOCK=0,
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
