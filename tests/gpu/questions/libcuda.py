"""The CUDA runtime and driver that torch uses, by their C interfaces, without torch itself.

A call that fails raises `Refused` and leaves no sticky error behind; a function or a library that is not there
raises `Unavailable`, since nothing can be asked of it.
"""

import ctypes
import importlib.util
from pathlib import Path

TO_DEVICE, TO_HOST = 1, 2
# cudaStreamNonBlocking: not ordered with the default stream.
NON_BLOCKING = 1


class Unavailable(Exception):
    """Why something cannot be asked on this machine."""


class Refused(Exception):
    """A call of CUDA that failed."""

    def __init__(self, name: str, status: int, words: str):
        super().__init__(f"{name} returned {status} ({words})")
        self.status = status


def _function(library: ctypes.CDLL, name: str):
    try:
        return getattr(library, name)
    except AttributeError:
        raise Unavailable(f"there is no {name} in {library._name or 'this process'}") from None


class Runtime:
    """libcudart. Addresses and sizes are plain numbers."""

    def __init__(self, library: ctypes.CDLL):
        self._library = library
        # Makes the context, so that it is not timed later.
        self.call("cudaSetDevice", 0)
        self.call("cudaFree", ctypes.c_void_p(None))

    def call(self, name: str, *arguments) -> None:
        status = _function(self._library, name)(*arguments)
        if status:
            self._library.cudaGetLastError()
            words = self._library.cudaGetErrorString
            words.restype = ctypes.c_char_p
            raise Refused(name, status, (words(status) or b"").decode())

    def register(self, address: int, size: int) -> None:
        self.call("cudaHostRegister", ctypes.c_void_p(address), ctypes.c_size_t(size), 0)

    def unregister(self, address: int) -> None:
        self.call("cudaHostUnregister", ctypes.c_void_p(address))

    def host_alloc(self, size: int) -> int:
        return self._address("cudaHostAlloc", ctypes.c_size_t(size), 0)

    def host_free(self, address: int) -> None:
        self.call("cudaFreeHost", ctypes.c_void_p(address))

    def device_alloc(self, size: int) -> int:
        return self._address("cudaMalloc", ctypes.c_size_t(size))

    def device_free(self, address: int) -> None:
        self.call("cudaFree", ctypes.c_void_p(address))

    def seen_by_device(self, address: int) -> int:
        """The device address of pinned memory."""
        return self._address("cudaHostGetDevicePointer", ctypes.c_void_p(address), 0)

    def stream(self) -> int:
        return self._address("cudaStreamCreateWithFlags", NON_BLOCKING)

    def copy(self, to: int, source: int, size: int, kind: int, stream: int) -> None:
        self.call(
            "cudaMemcpyAsync", ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(size), kind,
            ctypes.c_void_p(stream),
        )

    def finish(self, stream: int) -> None:
        self.call("cudaStreamSynchronize", ctypes.c_void_p(stream))

    def memory_info(self) -> tuple[int, int]:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cudaMemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def _address(self, name: str, *arguments) -> int:
        address = ctypes.c_void_p()
        self.call(name, ctypes.byref(address), *arguments)
        return address.value or 0


class Driver:
    """libcuda."""

    def __init__(self):
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise Unavailable(str(error)) from None

    def call(self, name: str, *arguments) -> None:
        status = _function(self._library, name)(*arguments)
        if status:
            words = ctypes.c_char_p()
            self._library.cuGetErrorString(status, ctypes.byref(words))
            raise Refused(name, status, (words.value or b"").decode())

    def attribute(self, number: int, device: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value


def runtime() -> Runtime:
    """The simulator's runtime if it is preloaded, otherwise that of this interpreter's torch."""
    whole = ctypes.CDLL(None)
    if hasattr(whole, "cudaHostRegister"):
        return Runtime(whole)
    found = importlib.util.find_spec("torch")
    if found is None:
        raise Unavailable("this interpreter has no torch, and with it no libcudart")
    packages = Path(found.submodule_search_locations[0]).parent
    libraries = sorted(packages.glob("nvidia/*/lib/libcudart.so.*"))
    # If torch was built with the system's CUDA, the loader finds it.
    for name in [*map(str, libraries[-1:]), "libcudart.so.13", "libcudart.so.12", "libcudart.so"]:
        try:
            return Runtime(ctypes.CDLL(name))
        except OSError:
            continue
    raise Unavailable(f"there is no libcudart in {packages} or where the loader looks")
