//! What the simulated GPU says about itself: a Hopper-like device, in both CUDA layouts.
//!
//! `cudaDeviceProp` differs between CUDA 12 and 13. The caller's layout is known from the entry
//! point that it uses and from which libcudart is loaded (see `api::device`).

use std::ffi::c_char;

use crate::bindings::{cudaDeviceAttr as Attr, cudaDeviceProp};
use crate::bindings_cuda12::cudaDeviceProp as Cuda12DeviceProp;
use crate::config;
use crate::device::CLOCK_KHZ;
use crate::error::{Error, Status};

const NAME: &str = "pinbuddy simulated GPU";
const PROCESSORS: i32 = 132;
const THREADS_PER_BLOCK: i32 = 1024;
const THREADS_PER_PROCESSOR: i32 = 2048;
const SHARED_PER_BLOCK: i32 = 48 << 10;
const SHARED_PER_BLOCK_OPT_IN: i32 = 227 << 10;
const SHARED_PER_PROCESSOR: i32 = 228 << 10;
const REGISTERS: i32 = 65536;
const L2_BYTES: i32 = 50 << 20;
const BUS_BITS: i32 = 5120;
const MEMORY_KHZ: i32 = 2_619_000;

/// The PCI bus number of a device.
pub(crate) fn bus(device: i32) -> i32 {
    0x10 + device
}

/// Thread blocks of a size that fit on one processor.
pub(crate) fn blocks_per_processor(block_size: i32) -> Status<i32> {
    match block_size {
        1..=THREADS_PER_BLOCK => Ok((THREADS_PER_PROCESSOR / block_size).min(32)),
        _ => Err(Error::cudaErrorInvalidValue),
    }
}

/// `cudaDeviceGetAttribute`: what is not listed is a feature that is not there.
pub(crate) fn attribute(attribute: Attr, device: i32) -> Status<i32> {
    if attribute.0 == 0 || attribute.0 >= Attr::cudaDevAttrMax.0 {
        return Err(Error::cudaErrorInvalidValue);
    }
    Ok(match attribute {
        Attr::cudaDevAttrMaxThreadsPerBlock | Attr::cudaDevAttrMaxBlockDimX | Attr::cudaDevAttrMaxBlockDimY => {
            THREADS_PER_BLOCK
        }
        Attr::cudaDevAttrMaxBlockDimZ => 64,
        Attr::cudaDevAttrMaxGridDimX => i32::MAX,
        Attr::cudaDevAttrMaxGridDimY | Attr::cudaDevAttrMaxGridDimZ => 65535,
        Attr::cudaDevAttrMaxSharedMemoryPerBlock => SHARED_PER_BLOCK,
        Attr::cudaDevAttrMaxSharedMemoryPerBlockOptin => SHARED_PER_BLOCK_OPT_IN,
        Attr::cudaDevAttrMaxSharedMemoryPerMultiprocessor => SHARED_PER_PROCESSOR,
        Attr::cudaDevAttrTotalConstantMemory => 65536,
        Attr::cudaDevAttrWarpSize | Attr::cudaDevAttrMaxBlocksPerMultiprocessor => 32,
        Attr::cudaDevAttrMaxRegistersPerBlock | Attr::cudaDevAttrMaxRegistersPerMultiprocessor => REGISTERS,
        Attr::cudaDevAttrMaxPitch => i32::MAX,
        Attr::cudaDevAttrClockRate => CLOCK_KHZ,
        Attr::cudaDevAttrMemoryClockRate => MEMORY_KHZ,
        Attr::cudaDevAttrGlobalMemoryBusWidth => BUS_BITS,
        Attr::cudaDevAttrL2CacheSize => L2_BYTES,
        Attr::cudaDevAttrTextureAlignment => 512,
        Attr::cudaDevAttrMultiProcessorCount => PROCESSORS,
        Attr::cudaDevAttrMaxThreadsPerMultiProcessor => THREADS_PER_PROCESSOR,
        Attr::cudaDevAttrAsyncEngineCount => 3,
        Attr::cudaDevAttrPciBusId => bus(device),
        Attr::cudaDevAttrComputeCapabilityMajor => 9,
        Attr::cudaDevAttrSingleToDoublePrecisionPerfRatio => 2,
        Attr::cudaDevAttrGpuOverlap
        | Attr::cudaDevAttrCanMapHostMemory
        | Attr::cudaDevAttrConcurrentKernels
        | Attr::cudaDevAttrUnifiedAddressing
        | Attr::cudaDevAttrStreamPrioritiesSupported
        | Attr::cudaDevAttrGlobalL1CacheSupported
        | Attr::cudaDevAttrLocalL1CacheSupported
        | Attr::cudaDevAttrComputePreemptionSupported
        | Attr::cudaDevAttrCanUseHostPointerForRegisteredMem
        | Attr::cudaDevAttrCooperativeLaunch
        | Attr::cudaDevAttrHostRegisterSupported => 1,
        Attr::cudaDevAttrIntegrated => i32::from(config::get().integrated),
        Attr::cudaDevAttrPageableMemoryAccess | Attr::cudaDevAttrPageableMemoryAccessUsesHostPageTables => {
            i32::from(config::get().coherent)
        }
        _ => 0,
    })
}

/// Set the fields that both layouts share.
macro_rules! fill_common {
    ($properties:expr, $device:expr) => {{
        let properties = &mut $properties;
        for (to, from) in properties.name.iter_mut().zip(NAME.bytes()) {
            *to = from as c_char;
        }
        let index = c_char::try_from($device).unwrap_or(0);
        properties.uuid.bytes = [0x51; 16];
        properties.uuid.bytes[15] = index;
        properties.totalGlobalMem = config::get().device_bytes;
        properties.integrated = i32::from(config::get().integrated);
        properties.pageableMemoryAccess = i32::from(config::get().coherent);
        properties.pageableMemoryAccessUsesHostPageTables = properties.pageableMemoryAccess;
        properties.sharedMemPerBlock = SHARED_PER_BLOCK as usize;
        properties.sharedMemPerBlockOptin = SHARED_PER_BLOCK_OPT_IN as usize;
        properties.sharedMemPerMultiprocessor = SHARED_PER_PROCESSOR as usize;
        properties.regsPerBlock = REGISTERS;
        properties.regsPerMultiprocessor = REGISTERS;
        properties.warpSize = 32;
        properties.memPitch = i32::MAX as usize;
        properties.maxThreadsPerBlock = THREADS_PER_BLOCK;
        properties.maxThreadsDim = [THREADS_PER_BLOCK, THREADS_PER_BLOCK, 64];
        properties.maxGridSize = [i32::MAX, 65535, 65535];
        properties.totalConstMem = 65536;
        properties.major = 9;
        properties.minor = 0;
        properties.textureAlignment = 512;
        properties.texturePitchAlignment = 32;
        properties.multiProcessorCount = PROCESSORS;
        properties.canMapHostMemory = 1;
        properties.concurrentKernels = 1;
        properties.pciBusID = bus($device);
        properties.asyncEngineCount = 3;
        properties.unifiedAddressing = 1;
        properties.memoryBusWidth = BUS_BITS;
        properties.l2CacheSize = L2_BYTES;
        properties.maxThreadsPerMultiProcessor = THREADS_PER_PROCESSOR;
        properties.streamPrioritiesSupported = 1;
        properties.globalL1CacheSupported = 1;
        properties.localL1CacheSupported = 1;
        properties.computePreemptionSupported = 1;
        properties.canUseHostPointerForRegisteredMem = 1;
        properties.cooperativeLaunch = 1;
        properties.maxBlocksPerMultiProcessor = 32;
        properties.hostRegisterSupported = 1;
    }};
}

/// The properties of a device as CUDA 13 lays them out.
pub(crate) fn cuda13(device: i32) -> cudaDeviceProp {
    // SAFETY: the structure consists of numbers and arrays of numbers, for which zeros are valid.
    let mut properties: cudaDeviceProp = unsafe { std::mem::zeroed() };
    fill_common!(properties, device);
    properties
}

/// The properties of a device as CUDA 12 lays them out.
pub(crate) fn cuda12(device: i32) -> Cuda12DeviceProp {
    // SAFETY: the structure consists of numbers and arrays of numbers, for which zeros are valid.
    let mut properties: Cuda12DeviceProp = unsafe { std::mem::zeroed() };
    fill_common!(properties, device);
    properties.clockRate = CLOCK_KHZ;
    properties.memoryClockRate = MEMORY_KHZ;
    properties.deviceOverlap = 1;
    properties.singleToDoublePrecisionPerfRatio = 2;
    properties
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_say_the_same_and_an_attribute_that_is_none_is_refused() {
        let (new, old) = (cuda13(1), cuda12(1));
        assert_eq!(new.name, old.name);
        assert_eq!((new.major, new.pciBusID), (old.major, old.pciBusID));
        assert_eq!(attribute(Attr::cudaDevAttrPciBusId, 1), Ok(new.pciBusID));
        assert_eq!(attribute(Attr(0), 0), Err(Error::cudaErrorInvalidValue));
        assert_eq!(attribute(Attr::cudaDevAttrMax, 0), Err(Error::cudaErrorInvalidValue));
        assert_eq!(attribute(Attr::cudaDevAttrIntegrated, 0), Ok(0));
    }
}
