"""The simulator in front of the official wheel: what PyTorch sees is what CUDA would show.

Run it inside the simulator, with two devices:

    cargo xtask sim --devices 2 -- PYTHON -m unittest discover -s tests/cuda-sim/python
"""

import ctypes
import threading
import time
import unittest

import torch
from simulator import (
    ALREADY_REGISTERED,
    INVALID_VALUE,
    MEMORY_ALLOCATION,
    MIB,
    NOT_REGISTERED,
    NOT_SUPPORTED,
    NOT_SUPPORTED_IN_CAPTURE,
    SUCCESS,
    host_alloc,
    memory_kib,
    runtime,
    stats,
)

SLEEP_MS = 1500
# A cycle of the simulated clock is a nanosecond.
SLEEP_CYCLES = SLEEP_MS * 1_000_000


def hold(stream):
    """Keep a stream busy for SLEEP_MS."""
    with torch.cuda.stream(stream):
        torch.cuda._sleep(SLEEP_CYCLES)


class Devices(unittest.TestCase):
    def test_there_are_two(self):
        self.assertTrue(torch.cuda.is_available())
        self.assertEqual(torch.cuda.device_count(), 2)
        names = {torch.cuda.get_device_name(device) for device in range(2)}
        self.assertEqual(names, {"pinbuddy simulated GPU"})
        self.assertEqual(torch.cuda.get_device_capability(), (9, 0))

    def test_a_copy_between_them(self):
        source = torch.arange(1000, dtype=torch.int32)
        self.assertTrue(torch.equal(source.to("cuda:0").to("cuda:1").cpu(), source))

    def test_out_of_memory(self):
        with self.assertRaises(torch.cuda.OutOfMemoryError):
            torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
        # The device is usable afterwards.
        self.assertEqual(torch.ones(3).cuda().cpu().sum().item(), 3)

    def test_memory_info(self):
        free, total = torch.cuda.mem_get_info()
        self.assertTrue(0 < free < total)


class Copies(unittest.TestCase):
    def test_both_ways_and_within(self):
        source = torch.randn(1 << 18).pin_memory()
        self.assertTrue(source.is_pinned())
        on_device = source.to("cuda", non_blocking=True)
        copied = on_device.clone()
        back = torch.empty_like(source).pin_memory()
        back.copy_(copied, non_blocking=True)
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(back, source))

    def test_a_pinned_source_is_read_when_the_stream_gets_there(self):
        stream = torch.cuda.Stream()
        source = torch.zeros(1 << 20, dtype=torch.uint8).pin_memory()
        target = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
        hold(stream)
        with torch.cuda.stream(stream):
            target.copy_(source, non_blocking=True)
        source.fill_(7)
        stream.synchronize()
        self.assertEqual(target.cpu().unique().tolist(), [7])

    def test_a_pageable_source_is_read_at_the_call(self):
        stream = torch.cuda.Stream()
        source = torch.zeros(1 << 20, dtype=torch.uint8)
        target = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
        hold(stream)
        with torch.cuda.stream(stream):
            target.copy_(source, non_blocking=True)
        source.fill_(7)
        stream.synchronize()
        self.assertEqual(target.cpu().unique().tolist(), [0])

    def test_a_pinned_target_is_written_later(self):
        stream = torch.cuda.Stream()
        source = torch.full((1 << 20,), 5, dtype=torch.uint8).cuda()
        target = torch.zeros(1 << 20, dtype=torch.uint8).pin_memory()
        torch.cuda.synchronize()
        hold(stream)
        with torch.cuda.stream(stream):
            target.copy_(source, non_blocking=True)
        self.assertEqual(target[-1].item(), 0)
        stream.synchronize()
        self.assertEqual(target[-1].item(), 5)


class Streams(unittest.TestCase):
    def test_sleep_holds_its_stream_and_no_other(self):
        held, free = torch.cuda.Stream(), torch.cuda.Stream()
        start = time.monotonic()
        hold(held)
        self.assertFalse(held.query())
        self.assertTrue(free.query())
        free.synchronize()
        self.assertLess(time.monotonic() - start, SLEEP_MS / 1000)
        held.synchronize()
        self.assertGreaterEqual(time.monotonic() - start, SLEEP_MS / 1000)
        self.assertTrue(held.query())

    def test_events(self):
        stream, other = torch.cuda.Stream(), torch.cuda.Stream()
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        self.assertTrue(start.query())
        start.record(stream)
        hold(stream)
        end.record(stream)
        self.assertFalse(end.query())
        other.wait_event(end)
        self.assertFalse(other.query())
        end.synchronize()
        self.assertTrue(end.query())
        self.assertAlmostEqual(start.elapsed_time(end), SLEEP_MS, delta=SLEEP_MS / 2)
        other.synchronize()
        # A NotReady answer is not left behind as an error.
        torch.ones(1, device="cpu").cuda()

    def test_the_default_stream_does_not_wait_for_pool_streams(self):
        stream = torch.cuda.Stream()
        hold(stream)
        start = time.monotonic()
        torch.ones(10).cuda().cpu()
        self.assertLess(time.monotonic() - start, SLEEP_MS / 2000)
        torch.cuda.synchronize()
        self.assertGreaterEqual(time.monotonic() - start, SLEEP_MS / 2000)

    def test_streams_of_both_devices(self):
        for device in range(2):
            with torch.cuda.device(device):
                stream = torch.cuda.Stream()
                hold(stream)
                self.assertFalse(stream.query())
                torch.cuda.synchronize(1 - device)
                self.assertFalse(stream.query())
                torch.cuda.synchronize(device)
                self.assertTrue(stream.query())


class PinnedMemory(unittest.TestCase):
    def test_it_is_really_locked(self):
        before_kib, before = memory_kib("VmLck"), stats()
        answer, address = host_alloc(64 * MIB)
        self.assertEqual(answer, SUCCESS)
        self.assertGreaterEqual(memory_kib("VmLck") - before_kib, 64 * 1024)
        self.assertEqual(stats()["pinned_bytes"] - before["pinned_bytes"], 64 * MIB)
        inside = ctypes.c_void_p(address.value + 4096)
        self.assertEqual(runtime.cudaFreeHost(inside), INVALID_VALUE)
        self.assertEqual(runtime.cudaFreeHost(address), SUCCESS)
        self.assertEqual(runtime.cudaFreeHost(address), INVALID_VALUE)
        self.assertEqual(runtime.cudaGetLastError(), INVALID_VALUE)
        self.assertEqual(memory_kib("VmLck"), before_kib)

    def test_registration(self):
        tensor = torch.zeros(MIB, dtype=torch.uint8)
        address, size = ctypes.c_void_p(tensor.data_ptr()), ctypes.c_size_t(MIB)
        self.assertFalse(tensor.is_pinned())
        self.assertEqual(runtime.cudaHostRegister(address, size, 0), SUCCESS)
        self.assertTrue(tensor.is_pinned())
        self.assertTrue(tensor[1000:].is_pinned())
        self.assertEqual(runtime.cudaHostRegister(address, size, 0), ALREADY_REGISTERED)
        self.assertEqual(runtime.cudaHostUnregister(address), SUCCESS)
        self.assertEqual(runtime.cudaHostUnregister(address), NOT_REGISTERED)
        self.assertEqual(runtime.cudaHostRegister(None, size, 0), INVALID_VALUE)
        self.assertEqual(runtime.cudaHostRegister(address, ctypes.c_size_t(0), 0), INVALID_VALUE)
        runtime.cudaGetLastError()
        self.assertFalse(tensor.is_pinned())

    def test_a_pin_can_be_made_to_fail(self):
        runtime.pinbuddy_sim_fail_pin_after_mb(ctypes.c_int64(0))
        try:
            self.assertEqual(host_alloc(MIB)[0], MEMORY_ALLOCATION)
            self.assertEqual(runtime.cudaPeekAtLastError(), MEMORY_ALLOCATION)
            self.assertEqual(runtime.cudaGetLastError(), MEMORY_ALLOCATION)
            self.assertEqual(runtime.cudaGetLastError(), SUCCESS)
        finally:
            runtime.pinbuddy_sim_fail_pin_after_mb(ctypes.c_int64(-1))

    def test_a_failed_pin_that_nobody_cleared_is_blamed_on_the_next_kernel(self):
        on_device = torch.zeros(10, device="cuda")
        runtime.pinbuddy_sim_fail_pin_after_mb(ctypes.c_int64(0))
        try:
            self.assertEqual(host_alloc(MIB)[0], MEMORY_ALLOCATION)
        finally:
            runtime.pinbuddy_sim_fail_pin_after_mb(ctypes.c_int64(-1))
        # A call that succeeds forgives nothing.
        self.assertEqual(runtime.cudaFree(None), SUCCESS)
        with self.assertRaises(torch.AcceleratorError):
            on_device.add_(1)
        # It was not a sticky error: once told, it is gone.
        on_device.add_(1)
        self.assertEqual(runtime.cudaGetLastError(), SUCCESS)


class Capture(unittest.TestCase):
    def capture(self, work):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        return graph

    def test_copies_are_recorded_and_replayed(self):
        source = torch.zeros(MIB, dtype=torch.uint8).pin_memory()
        middle = torch.zeros(MIB, dtype=torch.uint8).cuda()
        target = torch.zeros(MIB, dtype=torch.uint8).pin_memory()

        def work():
            middle.copy_(source, non_blocking=True)
            target.copy_(middle, non_blocking=True)

        graph = self.capture(work)
        torch.cuda.synchronize()
        for value in (3, 4):
            source.fill_(value)
            graph.replay()
            torch.cuda.synchronize()
            self.assertEqual(target.unique().tolist(), [value])

    def test_a_side_stream_joins_and_leaves(self):
        source = torch.full((MIB,), 9, dtype=torch.uint8).pin_memory()
        target = torch.zeros(MIB, dtype=torch.uint8).cuda()
        side = torch.cuda.Stream()

        def work():
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                target.copy_(source, non_blocking=True)
            torch.cuda.current_stream().wait_stream(side)

        graph = self.capture(work)
        torch.cuda.synchronize()
        self.assertEqual(target.cpu().unique().tolist(), [0])
        graph.replay()
        self.assertEqual(target.cpu().unique().tolist(), [9])

    def test_an_allocation_spoils_a_global_capture(self):
        stream = torch.cuda.Stream()
        address, graph = ctypes.c_void_p(), ctypes.c_void_p()
        handle = ctypes.c_void_p(stream.cuda_stream)
        size = ctypes.c_size_t(MIB)
        self.assertEqual(runtime.cudaStreamBeginCapture(handle, 0), SUCCESS)
        in_thread = []
        thread = threading.Thread(
            target=lambda: in_thread.append(runtime.cudaHostAlloc(ctypes.byref(address), size, 0))
        )
        thread.start()
        thread.join()
        self.assertEqual(in_thread, [NOT_SUPPORTED_IN_CAPTURE])
        self.assertEqual(runtime.cudaStreamEndCapture(handle, ctypes.byref(graph)), 901)
        self.assertIsNone(graph.value)
        runtime.cudaGetLastError()
        torch.cuda.synchronize()

    def test_an_event_of_a_capture_cannot_be_asked(self):
        stream, event = torch.cuda.Stream(), torch.cuda.Event()
        handle, graph = ctypes.c_void_p(stream.cuda_stream), ctypes.c_void_p()
        self.assertEqual(runtime.cudaStreamBeginCapture(handle, 2), SUCCESS)
        event.record(stream)
        self.assertEqual(runtime.cudaEventQuery(ctypes.c_void_p(event.cuda_event)), 907)
        self.assertEqual(runtime.cudaStreamEndCapture(handle, ctypes.byref(graph)), 901)
        runtime.cudaGetLastError()


class Products(unittest.TestCase):
    """cuBLAS: what it would compute is left out, and all else is as it would be."""

    def test_a_linear_layer_runs_both_ways(self):
        for kind in (torch.float32, torch.bfloat16, torch.float64):
            layer = torch.nn.Linear(32, 8, device="cuda", dtype=kind)
            batch = torch.zeros(4, 32, device="cuda", dtype=kind, requires_grad=True)
            before = stats()["kernels_launched"]
            layer(batch).sum().backward()
            torch.cuda.synchronize()
            self.assertGreaterEqual(stats()["kernels_launched"] - before, 3)
            self.assertEqual(batch.grad.shape, batch.shape)
            self.assertEqual(layer.weight.grad.shape, layer.weight.shape)

    def test_it_has_its_place_on_its_stream(self):
        stream, event = torch.cuda.Stream(), torch.cuda.Event()
        matrix = torch.zeros(8, 8, device="cuda")
        torch.cuda.synchronize()
        hold(stream)
        with torch.cuda.stream(stream):
            torch.mm(matrix, matrix)
            event.record()
        self.assertFalse(event.query())
        stream.synchronize()
        self.assertTrue(event.query())

    def test_a_graph_has_it(self):
        matrix = torch.zeros(8, 8, device="cuda")
        torch.mm(matrix, matrix)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        before = stats()["kernels_launched"]
        with torch.cuda.graph(graph):
            torch.mm(matrix, matrix)
        self.assertGreater(stats()["kernels_launched"], before)
        graph.replay()
        torch.cuda.synchronize()


class Elsewhere(unittest.TestCase):
    def test_what_is_not_simulated_is_refused(self):
        address = ctypes.c_void_p()
        answer = runtime.cudaMallocManaged(ctypes.byref(address), ctypes.c_size_t(MIB), 1)
        self.assertEqual(answer, NOT_SUPPORTED)
        self.assertEqual(runtime.cudaGetLastError(), NOT_SUPPORTED)

    def test_the_profiler_goes_on_without_the_gpu(self):
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profile:
            torch.ones(3).cuda().cpu()
        self.assertIn("aten::copy_", {event.key for event in profile.key_averages()})

    def test_unknown_kernels_are_counted(self):
        before = stats()["kernels_launched"]
        torch.ones(10, device="cuda")
        self.assertGreater(stats()["kernels_launched"], before)


if __name__ == "__main__":
    unittest.main(verbosity=2)
