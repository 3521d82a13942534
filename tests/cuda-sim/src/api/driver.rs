//! The driver's entry points as the runtime gives them out: PyTorch looks each up by its name.
//!
//! Nothing here is exported by name: the driver's library is the stub. A `CUresult` is a number that the runtime's
//! errors share for all that is answered here. Entry points that are not listed are not found.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::{Out, virtual_memory};
use crate::bindings::{cudaDeviceAttr, cudaDriverEntryPointQueryResult as Lookup};
use crate::error::{Error, Status, guard};
use crate::{device, memory, properties};

/// `CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED`, which the runtime has no name for.
const VIRTUAL_MEMORY: c_int = 102;

extern "C" fn device_get(device: Out<c_int>, ordinal: c_int) -> Error {
    guard("cuDeviceGet", || {
        device::check(ordinal)?;
        device.put(ordinal)
    })
}

extern "C" fn device_get_attribute(value: Out<c_int>, attribute: c_int, device: c_int) -> Error {
    guard("cuDeviceGetAttribute", || {
        device::check(device)?;
        if attribute == VIRTUAL_MEMORY {
            return value.put(1);
        }
        let attribute = cudaDeviceAttr(attribute.cast_unsigned());
        value.put(properties::attribute(attribute, device)?)
    })
}

extern "C" fn get_address_range(base: Out<usize>, bytes: Out<usize>, address: usize) -> Error {
    guard("cuMemGetAddressRange", || {
        let region =
            memory::find(address).filter(|region| region.kind.is_device()).ok_or(Error::cudaErrorInvalidValue)?;
        base.put_if_wanted(region.base);
        bytes.put_if_wanted(region.bytes);
        Ok(())
    })
}

extern "C" fn get_error_string(error: Error, text: Out<*const c_char>) -> Error {
    guard("cuGetErrorString", || text.put(told(error).as_ptr()))
}

fn told(error: Error) -> &'static CStr {
    match error {
        Error::cudaSuccess => c"no error",
        Error::cudaErrorInvalidValue => c"invalid argument",
        Error::cudaErrorMemoryAllocation => c"out of memory",
        Error::cudaErrorInvalidDevice => c"invalid device ordinal",
        Error::cudaErrorInvalidResourceHandle => c"invalid resource handle",
        Error::cudaErrorNotSupported => c"operation not supported",
        _ => c"unknown error",
    }
}

/// Define functions that only refuse; the calling convention leaves their arguments to the caller.
macro_rules! refuse {
    ($($function:ident $name:literal)*) => {$(
        extern "C" fn $function() -> Error {
            guard($name, || Err(Error::cudaErrorNotSupported))
        }
    )*};
}

refuse! {
    export_handle "cuMemExportToShareableHandle"
    import_handle "cuMemImportFromShareableHandle"
    set_words "cuMemsetD32Async"
    write_word "cuStreamWriteValue32"
}

/// The address of a driver's function, in the meaning that its name has had since CUDA 12.0.
fn entry_point(name: &CStr) -> Option<*mut c_void> {
    /// Take the address of each function.
    macro_rules! table {
        ($($name:literal $function:path,)*) => {
            match name.to_bytes() {
                $($name => $function as *const () as *mut c_void,)*
                _ => return None,
            }
        };
    }
    Some(table! {
        b"cuDeviceGet" device_get,
        b"cuDeviceGetAttribute" device_get_attribute,
        b"cuGetErrorString" get_error_string,
        b"cuMemAddressFree" virtual_memory::address_free,
        b"cuMemAddressReserve" virtual_memory::address_reserve,
        b"cuMemCreate" virtual_memory::create,
        b"cuMemExportToShareableHandle" export_handle,
        b"cuMemGetAddressRange" get_address_range,
        b"cuMemGetAllocationGranularity" virtual_memory::get_allocation_granularity,
        b"cuMemGetAllocationPropertiesFromHandle" virtual_memory::get_allocation_properties,
        b"cuMemImportFromShareableHandle" import_handle,
        b"cuMemMap" virtual_memory::map,
        b"cuMemRelease" virtual_memory::release,
        b"cuMemRetainAllocationHandle" virtual_memory::retain_allocation_handle,
        b"cuMemSetAccess" virtual_memory::set_access,
        b"cuMemUnmap" virtual_memory::unmap,
        b"cuMemsetD32Async" set_words,
        b"cuStreamWriteValue32" write_word,
    })
}

fn look_up(name: *const c_char, function: Out<*mut c_void>, result: Out<Lookup>) -> Status {
    if name.is_null() || function.is_null() {
        return Err(Error::cudaErrorInvalidValue);
    }
    // SAFETY: the caller gives a C string, and it is not null.
    let found = entry_point(unsafe { CStr::from_ptr(name) });
    result.put_if_wanted(match found {
        Some(_) => Lookup::cudaDriverEntryPointSuccess,
        None => Lookup::cudaDriverEntryPointSymbolNotFound,
    });
    function.put(found.unwrap_or(std::ptr::null_mut()))
}

entries! {
    fn cudaGetDriverEntryPoint(
        symbol: *const c_char,
        function: Out<*mut c_void>,
        _flags: u64,
        result: Out<Lookup>,
    ) {
        look_up(symbol, function, result)
    }

    fn cudaGetDriverEntryPointByVersion(
        symbol: *const c_char,
        function: Out<*mut c_void>,
        _version: c_uint,
        _flags: u64,
        result: Out<Lookup>,
    ) {
        look_up(symbol, function, result)
    }
}
