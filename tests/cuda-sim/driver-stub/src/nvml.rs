//! A libnvidia-ml.so.1: what PyTorch's device allocator asks it for. This library is installed under both names.
//!
//! Expandable segments ask whether a device is on a fabric (it is not), and out-of-memory errors which processes use
//! it (nobody says). Only the names that c10 looks up are here. `nvmlInit` without `_v2` is not, and by that
//! `torch.cuda.device_count` sees that it must ask the runtime.

use std::ffi::{c_char, c_uint};

use crate::put;

/// An `nvmlReturn_t`.
type Answer = c_uint;

const SUCCESS: Answer = 0;
const INVALID_ARGUMENT: Answer = 2;
const NOT_SUPPORTED: Answer = 3;

/// What a device's handle is here: nothing reads what it points to.
static DEVICE: usize = 0;

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> Answer {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(_id: *const c_char, device: *mut *const usize) -> Answer {
    put(device, &raw const DEVICE)
}

/// None: a stand-in cannot know what others do.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetComputeRunningProcesses(
    _device: *const usize,
    count: *mut c_uint,
    _processes: *mut u8,
) -> Answer {
    put(count, 0)
}

/// `nvmlGpuFabricInfo_v2_t`, up to the state.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct FabricInfo {
    version: c_uint,
    cluster: [u8; 16],
    status: Answer,
    clique: c_uint,
    /// 0: the device can be on no fabric.
    state: u8,
}

/// # Safety
///
/// `info` is null or a place for an answer.
#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGpuFabricInfoV(_device: *const usize, info: *mut FabricInfo) -> Answer {
    // SAFETY: the caller gives null or a valid place.
    match unsafe { info.as_mut() } {
        Some(info) => {
            (info.status, info.clique, info.state) = (SUCCESS, 0, 0);
            SUCCESS
        }
        None => INVALID_ARGUMENT,
    }
}

refuse! { NOT_SUPPORTED:
    nvmlDeviceGetNvLinkRemoteDeviceType nvmlDeviceGetNvLinkRemotePciInfo_v2
    nvmlSystemGetCudaDriverVersion_v2
}
