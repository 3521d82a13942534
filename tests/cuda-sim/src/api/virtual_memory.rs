//! The driver's virtual memory management (`cuMem*`), for `driver` to give out. Layouts and numbers are cuda.h's.

use std::ffi::{c_int, c_uint, c_ulonglong};

use super::{In, Out};
use crate::error::{Error, Status, guard};
use crate::virtual_memory::{self, GRANULARITY, Mapping};

/// `CU_MEM_ALLOCATION_TYPE_PINNED`.
const PINNED: c_uint = 1;
/// `CU_MEM_LOCATION_TYPE_DEVICE`.
const ON_A_DEVICE: c_uint = 1;
/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`: the only kind that memory may be made for; none is exported.
const FILE_DESCRIPTOR: c_uint = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_NONE`.
const NO_ACCESS: c_uint = 0;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
const READ_WRITE: c_uint = 3;

/// `CUmemLocation`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Location {
    kind: c_uint,
    id: c_int,
}

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Properties {
    kind: c_uint,
    exported_as: c_uint,
    location: Location,
    windows: usize,
    flags: [u8; 8],
}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    location: Location,
    flags: c_uint,
}

impl Location {
    fn device(self) -> Status<i32> {
        if self.kind == ON_A_DEVICE { Ok(self.id) } else { Err(Error::cudaErrorNotSupported) }
    }
}

impl Properties {
    /// The device of pinned device memory, which is all there is.
    fn device(&self) -> Status<i32> {
        if self.kind != PINNED {
            return Err(Error::cudaErrorInvalidValue);
        }
        if self.exported_as & !FILE_DESCRIPTOR != 0 {
            return Err(Error::cudaErrorNotSupported);
        }
        self.location.device()
    }
}

pub(super) extern "C" fn address_reserve(
    base: Out<usize>,
    bytes: usize,
    alignment: usize,
    _wanted: usize,
    flags: c_ulonglong,
) -> Error {
    guard("cuMemAddressReserve", || {
        refuse_flags(flags)?;
        base.put(virtual_memory::reserve(bytes, alignment)?)
    })
}

pub(super) extern "C" fn address_free(base: usize, bytes: usize) -> Error {
    guard("cuMemAddressFree", || virtual_memory::unreserve(base, bytes))
}

pub(super) extern "C" fn create(
    handle: Out<u64>,
    bytes: usize,
    properties: In<Properties>,
    flags: c_ulonglong,
) -> Error {
    guard("cuMemCreate", || {
        refuse_flags(flags)?;
        let properties = properties.get()?;
        let device = properties.device()?;
        handle.put(virtual_memory::create(device, bytes, properties.exported_as)?)
    })
}

pub(super) extern "C" fn release(handle: u64) -> Error {
    guard("cuMemRelease", || virtual_memory::release(handle))
}

pub(super) extern "C" fn map(base: usize, bytes: usize, offset: usize, handle: u64, flags: c_ulonglong) -> Error {
    guard("cuMemMap", || {
        refuse_flags(flags)?;
        if offset != 0 {
            return Err(Error::cudaErrorInvalidValue);
        }
        virtual_memory::map(Mapping { base, bytes, handle })
    })
}

pub(super) extern "C" fn unmap(base: usize, bytes: usize) -> Error {
    guard("cuMemUnmap", || virtual_memory::unmap(base, bytes))
}

pub(super) extern "C" fn set_access(base: usize, bytes: usize, access: In<Access>, count: usize) -> Error {
    guard("cuMemSetAccess", || {
        for one in access.items(count)? {
            let allowed = match one.flags {
                NO_ACCESS => false,
                READ_WRITE => true,
                _ => return Err(Error::cudaErrorNotSupported),
            };
            virtual_memory::set_access(base, bytes, one.location.device()?, allowed)?;
        }
        Ok(())
    })
}

pub(super) extern "C" fn get_allocation_granularity(
    bytes: Out<usize>,
    properties: In<Properties>,
    _which: c_uint,
) -> Error {
    guard("cuMemGetAllocationGranularity", || {
        crate::device::check(properties.get()?.device()?)?;
        bytes.put(GRANULARITY)
    })
}

pub(super) extern "C" fn get_allocation_properties(properties: Out<Properties>, handle: u64) -> Error {
    guard("cuMemGetAllocationPropertiesFromHandle", || {
        let physical = virtual_memory::properties(handle)?;
        properties.put(Properties {
            kind: PINNED,
            exported_as: physical.exported_as,
            location: Location { kind: ON_A_DEVICE, id: physical.device },
            windows: 0,
            flags: [0; 8],
        })
    })
}

pub(super) extern "C" fn retain_allocation_handle(handle: Out<u64>, address: usize) -> Error {
    guard("cuMemRetainAllocationHandle", || handle.put(virtual_memory::retain(address)?))
}

/// No flags are defined.
fn refuse_flags(flags: c_ulonglong) -> Status {
    if flags == 0 { Ok(()) } else { Err(Error::cudaErrorInvalidValue) }
}
