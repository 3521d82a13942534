"""Faults and hazards as the C interface shows them. No torch."""

import unittest

from test_processes import run


class Faults(unittest.TestCase):
    def test_the_nth_call_fails_once_and_has_done_nothing(self):
        run(
            """
            answers = [host_alloc(4096)[0] for _ in range(3)]
            assert answers == [SUCCESS, MEMORY_ALLOCATION, SUCCESS], answers
            assert runtime.cudaGetLastError() == MEMORY_ALLOCATION
            assert runtime.cudaGetLastError() == SUCCESS
            counted = stats()
            assert counted["host_allocs"] == 2 and counted["calls"]["cudaHostAlloc"] == 3, counted
            assert counted["injected"] == 1
            """,
            PINBUDDY_SIM_FAULTS="cudaHostAlloc:2=2",
        )

    def test_from_then_on(self):
        run(
            """
            answers = [host_alloc(4096)[0] for _ in range(4)]
            assert answers == [SUCCESS, 46, 46, 46], answers
            assert runtime.pinbuddy_sim_faults(b"") == 0
            assert host_alloc(4096)[0] == SUCCESS
            """,
            PINBUDDY_SIM_FAULTS="cudaHostAlloc:2+=46",
        )

    def test_an_error_that_stays_is_every_calls_and_cannot_be_cleared(self):
        run(
            """
            place = ctypes.create_string_buffer(64)
            answer, address = host_alloc(4096)
            assert runtime.cudaStreamSynchronize(None) == 700
            for _ in range(2):
                assert runtime.cudaGetLastError() == 700 and runtime.cudaPeekAtLastError() == 700
            assert runtime.cudaFreeHost(address) == 700 and host_alloc(4096)[0] == 700
            assert runtime.cudaGetDevice(place) == SUCCESS
            assert stats()["pinned_bytes"] == 4096, "nothing was freed"
            assert runtime.cudaDeviceReset() == SUCCESS and host_alloc(4096)[0] == SUCCESS
            """,
            PINBUDDY_SIM_FAULTS="cudaStreamSynchronize:1=700",
        )

    def test_a_driver_that_is_gone(self):
        run(
            """
            assert host_alloc(4096)[0] == SUCCESS
            assert host_alloc(4096)[0] == 4 and runtime.cudaStreamSynchronize(None) == 4
            """,
            PINBUDDY_SIM_FAULTS="*:2+=4",
        )

    def test_what_is_no_plan_is_said_and_nothing_fails(self):
        run("assert runtime.pinbuddy_sim_faults(b'cudaHostAlloc') == 1; assert host_alloc(4096)[0] == SUCCESS")

    def test_other_libraries_system_calls_do_not_fail(self):
        run(
            """
            import mmap
            assert len(mmap.mmap(-1, 1 << 20)) == 1 << 20
            assert "MemTotal" in open("/proc/meminfo").read()
            """,
            PINBUDDY_SIM_FAULTS="mmap:1+=12;read:1+=5;open:1+=1",
        )


class Streams(unittest.TestCase):
    def test_a_stuck_stream_delays_its_own_work(self):
        run(
            """
            streams = [ctypes.c_void_p(), ctypes.c_void_p()]
            for it in streams:
                assert runtime.cudaStreamCreateWithFlags(ctypes.byref(it), 1) == SUCCESS
            assert runtime.pinbuddy_sim_hold(streams[0]) == SUCCESS
            assert runtime.cudaStreamQuery(streams[0]) == 600 and runtime.cudaStreamQuery(streams[1]) == SUCCESS
            runtime.pinbuddy_sim_let_go()
            assert runtime.cudaStreamSynchronize(streams[0]) == SUCCESS
            """
        )

    def test_events_are_seen_to_be_complete_out_of_order(self):
        run(
            """
            events = [ctypes.c_void_p() for _ in range(40)]
            for it in events:
                assert runtime.cudaEventCreateWithFlags(ctypes.byref(it), 2) == SUCCESS
                assert runtime.cudaEventRecord(it, None) == SUCCESS
            order = []
            while len(order) < len(events):
                order += [i for i, it in enumerate(events) if i not in order and runtime.cudaEventQuery(it) == SUCCESS]
            assert order != sorted(order), order
            """,
            PINBUDDY_SIM_EVENT_LAG_MS=50,
        )


COPY = """
answer, address = host_alloc(8192)
device, stream = ctypes.c_void_p(), ctypes.c_void_p()
assert runtime.cudaMalloc(ctypes.byref(device), ctypes.c_size_t(8192)) == SUCCESS
assert runtime.cudaStreamCreateWithFlags(ctypes.byref(stream), 1) == SUCCESS
assert runtime.pinbuddy_sim_hold(stream) == SUCCESS
def in_flight():
    return runtime.pinbuddy_sim_in_flight(address, ctypes.c_size_t(4096))
def copy(to, source, kind):
    assert runtime.cudaMemcpyAsync(to, source, ctypes.c_size_t(4096), kind, stream) == SUCCESS
def found():
    runtime.pinbuddy_sim_let_go()
    assert runtime.cudaStreamSynchronize(stream) == SUCCESS
    return stats()["hazards"]
"""
WATCHED = {"PINBUDDY_SIM_HAZARDS": 1}


class Hazards(unittest.TestCase):
    def test_a_copy_that_nobody_disturbs_is_none(self):
        for kind in (1, 2):
            ends = ("device, address", "address, device")[kind - 1]
            run(COPY + f"copy({ends}, {kind}); assert in_flight() == 1; assert found() == 0; assert in_flight() == 0",
                **WATCHED)

    def test_a_source_or_target_that_is_written_meanwhile(self):
        for kind in (1, 2):
            ends = ("device, address", "address, device")[kind - 1]
            run(COPY + f"copy({ends}, {kind}); ctypes.memset(address, 7, 1); assert found() == 1", **WATCHED)

    def test_what_an_earlier_copy_writes_is_none(self):
        run(COPY + "ctypes.memset(address, 7, 1); copy(address, device, 2); copy(device, address, 1); "
            "assert found() == 0", **WATCHED)

    def test_memory_that_is_unpinned_meanwhile(self):
        run(
            COPY
            + """
copy(device, address, 1)
threading.Timer(0.3, runtime.pinbuddy_sim_let_go).start()
assert runtime.cudaFreeHost(address) == SUCCESS
assert found() == 1
""",
            **WATCHED,
        )

    def test_memory_that_is_handed_out_meanwhile(self):
        run(
            COPY
            + """
def hand_out(offset):
    runtime.pinbuddy_sim_handed_out(ctypes.c_void_p(address.value + offset), ctypes.c_size_t(4096))
copy(device, address, 1)
hand_out(4096)
assert stats()["hazards"] == 0
hand_out(4095)
assert found() == 1
hand_out(0)
assert stats()["hazards"] == 1
""",
            **WATCHED,
        )

    def test_memory_that_is_freed_twice(self):
        run(COPY + "runtime.pinbuddy_sim_let_go(); runtime.cudaFreeHost(address); runtime.cudaFreeHost(address); assert found() == 1", **WATCHED)

    def test_registered_memory_that_is_unmapped(self):
        run(
            """
            libc = ctypes.CDLL(None)
            libc.mmap.restype = ctypes.c_void_p
            address = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(8192), 3, 0x22, -1, ctypes.c_size_t(0)))
            assert runtime.cudaHostRegister(address, ctypes.c_size_t(8192), 0) == SUCCESS
            assert libc.munmap(address, ctypes.c_size_t(8192)) == 0
            assert stats()["hazards"] == 1
            """,
            **WATCHED,
        )
