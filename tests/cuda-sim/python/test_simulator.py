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


class Elsewhere(unittest.TestCase):
    def test_the_profiler_goes_on_without_the_gpu(self):
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profile:
            torch.ones(3).cuda().cpu()
        self.assertIn("aten::copy_", {event.key for event in profile.key_averages()})


if __name__ == "__main__":
    unittest.main(verbosity=2)
