//! Asks CUDA's driver and runtime libraries, as the loader finds them. The only file that calls them.
//!
//! A missing library, or one with only some functions (the simulator's stub), is a normal case: each function is
//! looked up before it is called. Invariant: creates no context and allocates nothing on a device.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::ptr;

use libloading::Library;
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
    /// libcuda is missing.
    Absent,
    /// libcuda answers with an error.
    Refuses {
        /// `CUDA_ERROR_NO_DEVICE`.
        error: String,
    },
    /// libcuda lacks functions.
    Lacks {
        /// A missing function.
        symbol: &'static str,
    },
    /// It works.
    Works {
        /// The newest CUDA version that it supports.
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

/// A `CUresult` or a `cudaError_t`: 0 is success.
type Answer = c_int;

const NO_DEVICE: Answer = 100;

impl Driver {
    /// Asks libcuda.
    pub fn ask() -> Self {
        let Some(library) = open(&["libcuda.so.1", "libcuda.so"]) else {
            return Self::Absent;
        };
        let (Ok(answer) | Err(answer)) = Cuda(&library).look();
        answer
    }
}

/// The library.
#[derive(Clone, Copy)]
struct Cuda<'a>(&'a Library);

impl Cuda<'_> {
    fn look(self) -> Result<Driver, Driver> {
        let init = self.get::<unsafe extern "C" fn(c_uint) -> Answer>("cuInit")?;
        // SAFETY: 0 is the only value for the flags.
        self.succeeded(unsafe { init(0) })?;
        type Number = unsafe extern "C" fn(*mut c_int) -> Answer;
        let (mut version, mut count) = (0, 0);
        let (ask_version, ask_count) = (
            self.get::<Number>("cuDriverGetVersion")?,
            self.get::<Number>("cuDeviceGetCount")?,
        );
        let questions = Questions::of(self)?;
        // SAFETY: the driver is initialized, and each call gets an out-pointer of the right type.
        unsafe {
            self.succeeded(ask_version(&raw mut version))?;
            self.succeeded(ask_count(&raw mut count))?;
        }
        if count == 0 {
            self.succeeded(NO_DEVICE)?;
        }
        let gpus = (0..count).map(|ordinal| questions.ask(self, ordinal));
        Ok(Driver::Works {
            cuda: CudaVersion(version),
            gpus: gpus.collect::<Result<_, _>>()?,
        })
    }

    /// A function of type `T`, as NVIDIA's header has it.
    fn get<T: Copy>(self, symbol: &'static str) -> Result<T, Driver> {
        // SAFETY: callers pass the type that cuda.h declares.
        let found = unsafe { self.0.get::<T>(symbol.as_bytes()) };
        found.map(|it| *it).map_err(|_| Driver::Lacks { symbol })
    }

    fn succeeded(self, answer: Answer) -> Result<(), Driver> {
        if answer == 0 {
            return Ok(());
        }
        type Name = unsafe extern "C" fn(Answer, *mut *const c_char) -> Answer;
        let mut name = ptr::null();
        let known = self.get::<Name>("cuGetErrorName");
        // SAFETY: the out-pointer has the right type, and the driver's strings live as long as it is loaded.
        let known = known.is_ok_and(|ask| unsafe { ask(answer, &raw mut name) } == 0);
        let error = if known && !name.is_null() {
            // SAFETY: as above.
            let name = unsafe { CStr::from_ptr(name) };
            name.to_string_lossy().into_owned()
        } else if answer == NO_DEVICE {
            "CUDA_ERROR_NO_DEVICE".to_owned()
        } else {
            format!("CUDA error {answer}")
        };
        Err(Driver::Refuses { error })
    }
}

/// The functions to ask each GPU with.
struct Questions {
    device: unsafe extern "C" fn(*mut c_int, c_int) -> Answer,
    name: Text,
    memory: unsafe extern "C" fn(*mut usize, c_int) -> Answer,
    address: Text,
}

/// A function that writes a string of at most the given length.
type Text = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Answer;

impl Questions {
    fn of(cuda: Cuda<'_>) -> Result<Self, Driver> {
        Ok(Self {
            device: cuda.get("cuDeviceGet")?,
            name: cuda.get("cuDeviceGetName")?,
            memory: cuda.get("cuDeviceTotalMem_v2")?,
            address: cuda.get("cuDeviceGetPCIBusId")?,
        })
    }

    /// The GPUs of an initialized driver.
    fn ask(&self, cuda: Cuda<'_>, ordinal: c_int) -> Result<Gpu, Driver> {
        const LENGTH: c_int = 128;
        let (mut device, mut memory) = (0, 0);
        let mut name = [0; LENGTH as usize];
        let mut address = [0; LENGTH as usize];
        // SAFETY: as in `look`; the buffers have the length that is passed with them.
        unsafe {
            cuda.succeeded((self.device)(&raw mut device, ordinal))?;
            cuda.succeeded((self.name)(name.as_mut_ptr(), LENGTH, device))?;
            cuda.succeeded((self.memory)(&raw mut memory, device))?;
            cuda.succeeded((self.address)(address.as_mut_ptr(), LENGTH, device))?;
        }
        Ok(Gpu {
            name: text(&name),
            memory: memory as u64,
            address: text(&address).to_lowercase(),
        })
    }
}

/// The version of the CUDA runtime on the loader's path. Torch has its own elsewhere.
pub fn runtime() -> Option<CudaVersion> {
    let library = open(&["libcudart.so", "libcudart.so.13", "libcudart.so.12"])?;
    type Number = unsafe extern "C" fn(*mut c_int) -> Answer;
    let mut version = 0;
    // SAFETY: the type is that of cuda_runtime_api.h, and `version` is a valid out-pointer.
    let answer = unsafe { library.get::<Number>("cudaRuntimeGetVersion").ok()?(&raw mut version) };
    (answer == 0).then_some(CudaVersion(version))
}

fn open(names: &[&str]) -> Option<Library> {
    // SAFETY: loading NVIDIA's library runs its constructors, as every CUDA program does.
    names
        .iter()
        .find_map(|it| unsafe { Library::new(*it) }.ok())
}

fn text(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer.iter().map(|it| it.cast_unsigned()).collect();
    CStr::from_bytes_until_nul(&bytes)
        .map(|it| it.to_string_lossy().into_owned())
        .unwrap_or_default()
}
