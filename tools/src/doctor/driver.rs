//! What CUDA's driver says of itself and of its GPUs. The only file that calls it.
//!
//! A missing libcuda is a normal case. Invariant: creates no context and allocates nothing on a device.

use std::ffi::{CStr, c_char, c_int};

use cudarc::driver::result::{DriverError, device, init};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use serde::Serialize;

/// A version as CUDA counts it: 13020 is 13.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub struct CudaVersion(pub i32);

impl std::fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major(), self.0 % 1000 / 10)
    }
}

impl std::str::FromStr for CudaVersion {
    type Err = &'static str;

    /// Of `13.2`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |part: &str| part.parse().ok().filter(|it| (0..1000).contains(it));
        let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
        let parsed = number(major).zip(number(minor).filter(|it| *it < 100));
        let (major, minor) = parsed.ok_or("expected a version of CUDA, such as 13.2")?;
        Ok(Self(1000 * major + 10 * minor))
    }
}

impl CudaVersion {
    /// Of 13.2, 13: the part within which a newer runtime works on an older driver.
    pub fn major(self) -> i32 {
        self.0 / 1000
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
pub(super) enum Driver {
    /// libcuda is missing.
    Absent,
    /// libcuda answers with an error.
    Refuses {
        /// `CUDA_ERROR_NO_DEVICE`.
        error: String,
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
pub(super) struct Gpu {
    /// `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// In bytes.
    pub memory: u64,
    /// `0000:1a:00.0`, as in /sys/bus/pci/devices.
    pub address: String,
    /// Whether its memory is the host's: an integrated GPU, or one that uses the host's page tables.
    pub shares_memory: bool,
}

impl Driver {
    /// Asks libcuda.
    pub(super) fn ask() -> Self {
        // SAFETY: loading NVIDIA's library runs its constructors, as in every CUDA program.
        if !unsafe { sys::is_culib_present() } {
            return Self::Absent;
        }
        Self::look().unwrap_or_else(|DriverError(error)| Self::Refuses { error: format!("{error:?}") })
    }

    fn look() -> Result<Self, DriverError> {
        init()?;
        let mut version = 0;
        // SAFETY: the place for the answer is valid.
        unsafe { sys::cuDriverGetVersion(&raw mut version).result()? };
        let count = device::get_count()?;
        if count == 0 {
            sys::CUresult::CUDA_ERROR_NO_DEVICE.result()?;
        }
        Ok(Self::Works { cuda: CudaVersion(version), gpus: (0..count).map(Gpu::ask).collect::<Result<_, _>>()? })
    }
}

impl Gpu {
    /// The GPU with this number, of an initialized driver.
    fn ask(ordinal: c_int) -> Result<Self, DriverError> {
        let device = device::get(ordinal)?;
        // `0000:1a:00.0` with its end, and room for longer domains.
        let mut address = [0 as c_char; 32];
        // SAFETY: the device is the driver's, and the length is the buffer's.
        let memory = unsafe {
            sys::cuDeviceGetPCIBusId(address.as_mut_ptr(), address.len() as c_int, device).result()?;
            device::total_mem(device)?
        };
        // SAFETY: the device is the driver's.
        let is = |it| unsafe { device::get_attribute(device, it) }.map(|value| value != 0);
        // Signed on x86-64, and not on aarch64.
        let address = address.map(|it: c_char| it.to_ne_bytes()[0]);
        let address = CStr::from_bytes_until_nul(&address).unwrap_or_default();
        Ok(Self {
            name: device::get_name(device)?,
            memory: memory as u64,
            shares_memory: is(Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED)?
                || is(Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES)?,
            address: address.to_string_lossy().to_lowercase(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::CudaVersion;

    #[test]
    fn versions_as_torch_and_the_driver_write_them() {
        for (text, number) in [("13.2", 13020), ("12.8", 12080), ("13", 13000)] {
            assert_eq!(text.parse(), Ok(CudaVersion(number)));
        }
        assert_eq!(CudaVersion(13020).to_string(), "13.2");
        for text in ["", "13.", "rocm", "-1.0", "13.2.1", "99999999999.0"] {
            assert!(text.parse::<CudaVersion>().is_err(), "{text}");
        }
    }
}
