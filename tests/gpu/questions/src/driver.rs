//! The driver itself, through cudarc. The only file that calls libcuda.
//!
//! A failed call leaves no error behind: the driver's interface has none that lasts, except for a kernel's bad access. A function
//! that libcuda lacks panics in cudarc, which `asking` reports as one that is missing.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute, CUmemLocationType};

use crate::cuda::{Direction, Failure, Kernel, Piece, Range, Result, Stream, unavailable};

const KERNELS: &str = concat!(include_str!("kernels.ptx"), "\0");
const WIDTH: u32 = 256;

/// The first device, its primary context and the two kernels.
pub struct Driver {
    device: sys::CUdevice,
    context: sys::CUcontext,
    turn: std::result::Result<sys::CUfunction, String>,
    spin: std::result::Result<sys::CUfunction, String>,
}

// SAFETY: contexts and functions are handles, which any thread may use once it has entered the context.
unsafe impl Sync for Driver {}

/// The outcome of a call by its name.
fn called<T>(name: &str, outcome: std::result::Result<T, DriverError>) -> Result<T> {
    outcome.map_err(|error| {
        let words = error
            .error_string()
            .map(|it| it.to_string_lossy().into_owned());
        let number = error.0 as u32;
        Failure::Refused(format!(
            "{name} returned {number} ({})",
            words.unwrap_or_default()
        ))
    })
}

/// Calls a function of libcuda by its name.
macro_rules! call {
    ($name:ident($($argument:expr),*)) => {
        // SAFETY: places for answers are variables of the caller, and addresses and handles are this device's.
        called(stringify!($name), unsafe { sys::$name($($argument),*) }.result())
    };
}

fn pointer(address: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address)
}

fn stream_of(handle: Stream) -> sys::CUstream {
    ptr::with_exposed_provenance_mut(handle)
}

impl Driver {
    /// Makes the context, so that it is not timed later.
    pub fn connect() -> Result<Self> {
        // SAFETY: loading NVIDIA's library runs its constructors, as in every CUDA program.
        if !unsafe { sys::is_culib_present() } {
            return unavailable("there is no libcuda where the loader looks");
        }
        called("cuInit", result::init())?;
        let device = called("cuDeviceGet", result::device::get(0))?;
        // SAFETY: the device is the driver's.
        let context = called("cuDevicePrimaryCtxRetain", unsafe {
            result::primary_ctx::retain(device)
        })?;
        let mut it = Self {
            device,
            context,
            turn: Err(String::new()),
            spin: Err(String::new()),
        };
        it.enter()?;
        it.turn = it.function(c"turn").map_err(|failure| failure.to_string());
        it.spin = it.function(c"spin").map_err(|failure| failure.to_string());
        Ok(it)
    }

    fn function(&self, name: &std::ffi::CStr) -> Result<sys::CUfunction> {
        let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
        call!(cuModuleLoadData(&raw mut module, KERNELS.as_ptr().cast()))?;
        call!(cuModuleGetFunction(
            &raw mut function,
            module,
            name.as_ptr()
        ))?;
        Ok(function)
    }

    fn attribute(&self, attribute: CUdevice_attribute) -> Result<i32> {
        let mut value: c_int = 0;
        call!(cuDeviceGetAttribute(&raw mut value, attribute, self.device))?;
        Ok(value)
    }
}

fn location(kind: CUmemLocationType, id: i32) -> sys::CUmemLocation {
    sys::CUmemLocation { type_: kind, id }
}

/// Pinned memory on a node of the host.
fn properties(node: i32) -> sys::CUmemAllocationProp {
    // SAFETY: for C, all of its fields may be zero.
    let mut properties: sys::CUmemAllocationProp = unsafe { MaybeUninit::zeroed().assume_init() };
    properties.type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = location(CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, node);
    properties
}

impl Driver {
    /// Has to be called first in each thread other than the first.
    pub fn enter(&self) -> Result<()> {
        call!(cuCtxSetCurrent(self.context))
    }

    pub fn register(&self, address: usize, size: usize) -> Result<()> {
        call!(cuMemHostRegister_v2(pointer(address), size, 0))
    }

    pub fn unregister(&self, address: usize) -> Result<()> {
        call!(cuMemHostUnregister(pointer(address)))
    }

    pub fn host_alloc(&self, size: usize) -> Result<usize> {
        let mut address = ptr::null_mut();
        call!(cuMemHostAlloc(&raw mut address, size, 0))?;
        Ok(address.expose_provenance())
    }

    pub fn host_free(&self, address: usize) -> Result<()> {
        call!(cuMemFreeHost(pointer(address)))
    }

    pub fn device_alloc(&self, size: usize) -> Result<usize> {
        let mut address = 0;
        call!(cuMemAlloc_v2(&raw mut address, size))?;
        Ok(address as usize)
    }

    pub fn device_free(&self, address: usize) -> Result<()> {
        call!(cuMemFree_v2(address as u64))
    }

    /// A new stream, which is not ordered with others.
    pub fn stream(&self) -> Result<Stream> {
        let kind = result::stream::StreamKind::NonBlocking;
        Ok(called("cuStreamCreate", result::stream::create(kind))?.expose_provenance())
    }

    pub fn copy(
        &self,
        direction: Direction,
        host: usize,
        device: usize,
        size: usize,
        stream: Stream,
    ) -> Result<()> {
        let (host, device, stream) = (pointer(host), device as u64, stream_of(stream));
        match direction {
            Direction::ToDevice => call!(cuMemcpyHtoDAsync_v2(device, host, size, stream)),
            Direction::ToHost => call!(cuMemcpyDtoHAsync_v2(host, device, size, stream)),
        }
    }

    pub fn launch(&self, kernel: Kernel, stream: Stream) -> Result<()> {
        let (function, words, threads) = match kernel {
            Kernel::Turn { to, source, size } => {
                (&self.turn, [to as u64, source as u64, size as u64], size)
            }
            Kernel::Spin { nanoseconds } => (&self.spin, [nanoseconds, 0, 0], 1),
        };
        let function = function
            .clone()
            .or_else(|why| unavailable(format!("no kernel can be loaded: {why}")))?;
        let mut arguments = words
            .each_ref()
            .map(|it| ptr::from_ref(it).cast_mut().cast::<c_void>());
        let blocks = threads.div_ceil(WIDTH as usize) as u32;
        let (stream, arguments) = (stream_of(stream), arguments.as_mut_ptr());
        let width = WIDTH.min(threads as u32);
        call!(cuLaunchKernel(
            function,
            blocks,
            1,
            1,
            width,
            1,
            1,
            0,
            stream,
            arguments,
            ptr::null_mut()
        ))
    }

    pub fn finish(&self, stream: Stream) -> Result<()> {
        call!(cuStreamSynchronize(stream_of(stream)))
    }

    /// Whether all work of a stream is over.
    pub fn is_idle(&self, stream: Stream) -> Result<bool> {
        // SAFETY: the stream is this context's.
        match unsafe { sys::cuStreamQuery(stream_of(stream)) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            status => called("cuStreamQuery", status.result()).map(|()| true),
        }
    }

    /// Asks for the device's free memory.
    pub fn memory_info(&self) -> Result<()> {
        called("cuMemGetInfo", result::mem_get_info()).map(|_| ())
    }

    /// A range of addresses for pieces of host memory.
    pub fn reserve(&self, size: usize) -> Result<Range> {
        use CUdevice_attribute as Attribute;
        if self.attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
        )? == 0
        {
            return unavailable("the device says that it does not support pieces of host memory");
        }
        // Below 0 where the machine has no nodes.
        let node = self
            .attribute(Attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID)?
            .max(0);
        let (mut granularity, mut address, its) = (0, 0, properties(node));
        let least = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        call!(cuMemGetAllocationGranularity(
            &raw mut granularity,
            &raw const its,
            least
        ))?;
        call!(cuMemAddressReserve(&raw mut address, size, 0, 0, 0))?;
        Ok(Range {
            address: address as usize,
            size,
            granularity,
            node,
        })
    }

    /// Makes a piece on the range's node, maps it at an address, and opens it to the device and the host.
    pub fn add_piece(&self, range: &Range, at: usize, size: usize) -> Result<Piece> {
        let (mut piece, its) = (0, properties(range.node));
        call!(cuMemCreate(&raw mut piece, size, &raw const its, 0))?;
        // The first failure counts; what is undone behind it may fail as well.
        if let Err(failure) = call!(cuMemMap(at as u64, size, 0, piece, 0)) {
            let _ = call!(cuMemRelease(piece));
            return Err(failure);
        }
        let flags = sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        let both = [
            location(CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, self.device),
            location(
                CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA,
                range.node,
            ),
        ];
        let both = both.map(|location| sys::CUmemAccessDesc { location, flags });
        if let Err(failure) = call!(cuMemSetAccess(at as u64, size, both.as_ptr(), both.len())) {
            let _ = self.remove_piece(at, size, piece);
            return Err(failure);
        }
        Ok(piece)
    }

    pub fn remove_piece(&self, at: usize, size: usize, piece: Piece) -> Result<()> {
        call!(cuMemUnmap(at as u64, size))?;
        call!(cuMemRelease(piece))
    }

    /// Gives a range back in which nothing is mapped.
    pub fn give_back(&self, range: &Range) -> Result<()> {
        call!(cuMemAddressFree(range.address as u64, range.size))
    }
}
