//! What CUDA's driver and runtime libraries say, where the loader finds them. The only file that calls
//! them.
//!
//! cudarc looks each function up when it is first called and panics where it is not there: a library
//! that is absent, or one with a part of the functions (the simulator's stub), is a normal answer here.
//! So [`Driver::ask`] looks first, and calls nothing that it has not seen.
//! Invariant: makes no context and allocates nothing on a device.

use std::ffi::{CStr, c_char, c_int, c_void};

use cudarc::driver::sys as cuda;
use cudarc::runtime::sys as cudart;
use serde::Serialize;

/// A version as CUDA counts it: 13020 is 13.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub struct CudaVersion(pub i32);

impl std::fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

impl CudaVersion {
    /// Of `13.2`.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        let (major, minor): (i32, i32) = (major.parse().ok()?, minor.parse().ok()?);
        Some(Self(
            major
                .checked_mul(1000)?
                .checked_add(minor.checked_mul(10)?)?,
        ))
    }
}

impl From<CudaVersion> for String {
    fn from(version: CudaVersion) -> Self {
        version.to_string()
    }
}

/// The driver's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "state")]
pub enum Driver {
    /// There is no libcuda.
    Absent,
    /// There is one, which serves nothing.
    Refuses {
        /// `CUDA_ERROR_NO_DEVICE`.
        error: String,
    },
    /// There is a part of one.
    Lacks {
        /// A function that is not in it.
        symbol: &'static str,
    },
    /// It works.
    Works {
        /// The newest CUDA that it serves.
        cuda: CudaVersion,
        /// In CUDA's order.
        gpus: Vec<Gpu>,
    },
}

/// One GPU that this process may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gpu {
    /// `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// In bytes.
    pub memory: u64,
    /// `0000:1a:00.0`, as in /sys/bus/pci/devices.
    pub address: String,
}

const NEEDED: [&str; 7] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceTotalMem_v2",
    "cuDeviceGetPCIBusId",
];

impl Driver {
    /// Asks libcuda.
    pub fn ask() -> Self {
        // SAFETY: loading NVIDIA's library runs its constructors, as every CUDA program does.
        if !unsafe { cuda::is_culib_present() } {
            return Self::Absent;
        }
        let (Ok(answer) | Err(answer)) = Self::start().and_then(|()| Self::look());
        answer
    }

    fn start() -> Result<(), Self> {
        require("cuInit")?;
        // SAFETY: the symbol is there, and 0 is the only value for the flags.
        succeeded(unsafe { cuda::cuInit(0) })
    }

    fn look() -> Result<Self, Self> {
        NEEDED.into_iter().try_for_each(require)?;
        let (mut version, mut count) = (0, 0);
        // SAFETY: all symbols are there, the driver is started, and each call gets a place of the
        // right type for its answer.
        unsafe {
            succeeded(cuda::cuDriverGetVersion(&raw mut version))?;
            succeeded(cuda::cuDeviceGetCount(&raw mut count))?;
        }
        if count == 0 {
            succeeded(cuda::CUresult::CUDA_ERROR_NO_DEVICE)?;
        }
        Ok(Self::Works {
            cuda: CudaVersion(version),
            gpus: (0..count).map(Gpu::ask).collect::<Result<_, _>>()?,
        })
    }
}

impl Gpu {
    /// Of a driver that has been started and has all of [`NEEDED`].
    fn ask(ordinal: c_int) -> Result<Self, Driver> {
        const LENGTH: c_int = 128;
        let (mut device, mut memory) = (0, 0);
        let mut name = [0; LENGTH as usize];
        let mut address = [0; LENGTH as usize];
        // SAFETY: as in `look`; the texts get no more than the length that is passed with them.
        unsafe {
            succeeded(cuda::cuDeviceGet(&raw mut device, ordinal))?;
            succeeded(cuda::cuDeviceGetName(name.as_mut_ptr(), LENGTH, device))?;
            succeeded(cuda::cuDeviceTotalMem_v2(&raw mut memory, device))?;
            let place = address.as_mut_ptr();
            succeeded(cuda::cuDeviceGetPCIBusId(place, LENGTH, device))?;
        }
        Ok(Self {
            name: text(&name),
            memory: memory as u64,
            address: text(&address).to_lowercase(),
        })
    }
}

/// The version of the CUDA runtime on the loader's path. Torch brings its own, elsewhere.
pub fn runtime() -> Option<CudaVersion> {
    // SAFETY: as in `Driver::ask`.
    if !unsafe { cudart::is_culib_present() } {
        return None;
    }
    // SAFETY: the library is there; the symbol is only looked at.
    let known = unsafe { cudart::culib().get::<*const c_void>(b"cudaRuntimeGetVersion\0") };
    known.ok()?;
    let mut version = 0;
    // SAFETY: the symbol is there, and `version` is a place for its answer.
    let answer = unsafe { cudart::cudaRuntimeGetVersion(&raw mut version) };
    (answer == cudart::cudaError_t::cudaSuccess).then_some(CudaVersion(version))
}

fn require(symbol: &'static str) -> Result<(), Driver> {
    // SAFETY: the library is there, and the symbol is only looked at.
    let known = unsafe { cuda::culib().get::<*const c_void>(symbol.as_bytes()) };
    match known {
        Ok(_) => Ok(()),
        Err(_) => Err(Driver::Lacks { symbol }),
    }
}

fn succeeded(answer: cuda::CUresult) -> Result<(), Driver> {
    match answer {
        cuda::CUresult::CUDA_SUCCESS => Ok(()),
        error => Err(Driver::Refuses {
            error: format!("{error:?}"),
        }),
    }
}

fn text(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer.iter().map(|it| it.cast_unsigned()).collect();
    CStr::from_bytes_until_nul(&bytes)
        .map(|it| it.to_string_lossy().into_owned())
        .unwrap_or_default()
}
