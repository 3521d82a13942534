//! The driver itself, through cudarc. The only file that calls libcuda. Addresses and sizes are plain numbers.
//!
//! A failed call leaves no error behind: the driver's interface has none that lasts, except for a kernel's bad access. A function
//! that libcuda lacks panics in cudarc, which `asking` reports as one that is missing.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::ptr;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

/// Why something has no answer of its own: a call of CUDA that failed, with the driver's words, or what this machine lacks.
#[derive(Debug)]
pub struct Failure(pub String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub type Result<T> = std::result::Result<T, Failure>;

pub fn unavailable<T>(why: impl Into<String>) -> Result<T> {
    Err(Failure(why.into()))
}

#[derive(Clone, Copy)]
pub enum Kernel {
    /// Writes each byte of memory of the device with all its bits turned.
    Turn { at: usize, size: usize },
    /// Runs for so many nanoseconds.
    Spin { nanoseconds: u64 },
}

/// A stream's handle.
pub type Stream = usize;

const KERNELS: &str = concat!(include_str!("kernels.ptx"), "\0");
const WIDTH: u32 = 256;

/// The first device, its primary context and the kernels `turn` and `spin`, where they can be loaded.
pub struct Driver {
    context: sys::CUcontext,
    kernels: std::result::Result<[sys::CUfunction; 2], String>,
}

// SAFETY: contexts and functions are handles, which any thread may use once it has entered the context.
unsafe impl Sync for Driver {}

/// The outcome of a call by its name.
fn called<T>(name: &str, outcome: std::result::Result<T, DriverError>) -> Result<T> {
    outcome.map_err(|error| {
        let words = error.error_string().unwrap_or_default().to_string_lossy();
        Failure(format!("{name} returned {} ({words})", error.0 as u32))
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

fn load() -> Result<[sys::CUfunction; 2]> {
    let mut module = ptr::null_mut();
    call!(cuModuleLoadData(&raw mut module, KERNELS.as_ptr().cast()))?;
    let function = |name: &CStr| {
        let mut function = ptr::null_mut();
        call!(cuModuleGetFunction(&raw mut function, module, name.as_ptr()))?;
        Ok(function)
    };
    Ok([function(c"turn")?, function(c"spin")?])
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
        let context = called("cuDevicePrimaryCtxRetain", unsafe { result::primary_ctx::retain(device) })?;
        let mut it = Self { context, kernels: Err(String::new()) };
        it.enter()?;
        it.kernels = load().map_err(|failure| failure.to_string());
        Ok(it)
    }

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

    /// A new stream, which is not ordered with others.
    pub fn stream(&self) -> Result<Stream> {
        let kind = result::stream::StreamKind::NonBlocking;
        Ok(called("cuStreamCreate", result::stream::create(kind))?.expose_provenance())
    }

    pub fn copy_to_device(&self, host: usize, device: usize, size: usize, stream: Stream) -> Result<()> {
        let (host, stream) = (pointer(host), stream_of(stream));
        call!(cuMemcpyHtoDAsync_v2(device as u64, host, size, stream))
    }

    pub fn launch(&self, kernel: Kernel, stream: Stream) -> Result<()> {
        let (which, words, threads) = match kernel {
            Kernel::Turn { at, size } => (0, [at as u64, at as u64, size as u64], size),
            Kernel::Spin { nanoseconds } => (1, [nanoseconds, 0, 0], 1),
        };
        let function = match &self.kernels {
            Ok(kernels) => kernels[which],
            Err(why) => return unavailable(format!("no kernel can be loaded: {why}")),
        };
        let mut arguments = words.each_ref().map(|it| ptr::from_ref(it).cast_mut().cast::<c_void>());
        let blocks = threads.div_ceil(WIDTH as usize) as u32;
        let (stream, arguments) = (stream_of(stream), arguments.as_mut_ptr());
        let width = WIDTH.min(threads as u32);
        call!(cuLaunchKernel(function, blocks, 1, 1, width, 1, 1, 0, stream, arguments, ptr::null_mut()))
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
}
