//! Host and device memory, and what a pointer is.

use std::ffi::{c_int, c_uint};

use super::Out;
use crate::bindings::cudaMemoryType as MemoryType;
use crate::error::Error;
use crate::work::Work;
use crate::{capture_rules, device, host_memory, memory, stream};

/// Flags that `cudaHostAlloc` knows: portable, mapped, write-combined.
const HOST_ALLOC_FLAGS: c_uint = 7;
/// Flags that `cudaHostRegister` knows: portable, mapped, I/O memory, read-only.
const HOST_REGISTER_FLAGS: c_uint = 15;
/// `cudaInvalidDeviceId`.
const NO_DEVICE: c_int = -2;

entries! {
    fn cudaHostAlloc(address: Out<usize>, bytes: usize, flags: c_uint) {
        if address.is_null() || flags & !HOST_ALLOC_FLAGS != 0 {
            return Err(Error::cudaErrorInvalidValue);
        }
        address.put(host_memory::host_alloc(bytes)?)
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaMallocHost(address: Out<usize>, bytes: usize) -> Error {
    cudaHostAlloc(address, bytes, 0)
}

entries! {
    fn cudaFreeHost(address: usize) { host_memory::host_free(address) }

    fn cudaHostRegister(address: usize, bytes: usize, flags: c_uint) {
        if flags & !HOST_REGISTER_FLAGS != 0 {
            return Err(Error::cudaErrorInvalidValue);
        }
        host_memory::host_register(address, bytes)
    }

    fn cudaHostUnregister(address: usize) { host_memory::host_unregister(address) }

    fn cudaHostGetDevicePointer(device_address: Out<usize>, address: usize, flags: c_uint) {
        if flags != 0 || !memory::is_page_locked(address) {
            return Err(Error::cudaErrorInvalidValue);
        }
        device_address.put(address)
    }

    fn cudaMalloc(address: Out<usize>, bytes: usize) {
        if address.is_null() {
            return Err(Error::cudaErrorInvalidValue);
        }
        capture_rules::unsafe_call()?;
        address.put(memory::device_alloc(bytes)?)
    }

    fn cudaFree(address: usize) {
        capture_rules::unsafe_call()?;
        memory::device_free(address)
    }

    /// The memory is there at once, which is earlier than CUDA promises; in a capture it would have to
    /// come with each launch, which is not simulated.
    fn cudaMallocAsync(address: Out<usize>, bytes: usize, stream: usize) {
        let stream = stream::resolve(stream)?;
        if stream.capture().is_some() {
            return Err(Error::cudaErrorNotSupported);
        }
        address.put(memory::device_alloc(bytes)?)
    }

    fn cudaFreeAsync(address: usize, stream: usize) {
        let stream = stream::resolve(stream)?;
        if !memory::is_device_allocation(address) {
            return Err(Error::cudaErrorInvalidValue);
        }
        stream::submit(&stream, Work::FreeDevice(address)).map(|_| ())
    }

    fn cudaMemGetInfo(free: Out<usize>, total: Out<usize>) {
        let (free_bytes, total_bytes) = device::memory(device::activate_current()?)?;
        free.put(free_bytes)?;
        total.put(total_bytes)
    }
}

/// `cudaPointerAttributes` as far as CUDA 12 and 13 agree; 13 has reserved words after it, which
/// nobody reads and which a CUDA 12 caller has no room for.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct PointerAttributes {
    memory_type: MemoryType,
    device: c_int,
    device_pointer: usize,
    host_pointer: usize,
}

entries! {
    /// It takes the current device's context, which PyTorch minds (`CUDAHooks::isPinnedPtr`).
    fn cudaPointerGetAttributes(place: Out<PointerAttributes>, address: usize) {
        device::activate_current()?;
        let attributes = |memory_type, device, device_pointer, host_pointer| PointerAttributes {
            memory_type,
            device,
            device_pointer,
            host_pointer,
        };
        place.put(match memory::find(address) {
            None => attributes(
                MemoryType::cudaMemoryTypeUnregistered,
                NO_DEVICE,
                0,
                address,
            ),
            Some(region) if region.kind.is_device() => {
                attributes(MemoryType::cudaMemoryTypeDevice, region.device, address, 0)
            }
            Some(region) => attributes(
                MemoryType::cudaMemoryTypeHost,
                region.device,
                address,
                address,
            ),
        })
    }
}
