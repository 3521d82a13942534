//! A libcuda.so.1 for machines with no driver: what PyTorch's libraries need in order to load.
//!
//! Nothing computes here. The simulator (the `pinbuddy-cuda-sim` library) stands in front of the
//! CUDA runtime; this library only satisfies the driver symbols that libcaffe2_nvrtc.so refers to
//! and answers the few questions that PyTorch asks the driver itself: whether a device's primary
//! context is active, which it passes on to the simulator. Anything else is refused with a driver
//! error, and a program that starts the driver (`cuInit`) learns that there is no device. `nvml` is the same for
//! libnvidia-ml.so.1.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// Defines entry points that only refuse, with the `Answer` and the `$refusal` of the library they are in; the calling
/// convention leaves their arguments to the caller.
macro_rules! refuse {
    ($refusal:ident: $($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> Answer {
            $refusal
        }
    )*};
}

mod nvml;

/// A `CUresult`.
type Answer = c_uint;

const SUCCESS: Answer = 0;
const INVALID_VALUE: Answer = 1;
const NO_DEVICE: Answer = 100;
const NOT_SUPPORTED: Answer = 801;

/// What a context handle is here: nothing reads what it points to.
static CONTEXT: usize = 0;

fn put<T>(place: *mut T, value: T) -> Answer {
    if place.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller of a CUDA function gives valid places for its answers.
    unsafe { place.write(value) };
    SUCCESS
}

/// What the simulator says, where it is loaded; without it there are no devices, so no contexts.
fn context_active(device: c_int) -> c_int {
    type Question = extern "C" fn(c_int) -> c_int;
    static QUESTION: OnceLock<Option<Question>> = OnceLock::new();
    let question = QUESTION.get_or_init(|| {
        let name = c"pinbuddy_sim_context_active";
        // SAFETY: the name is a C string, and the simulator defines it with this signature.
        unsafe {
            let symbol = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
            std::mem::transmute::<*mut c_void, Option<Question>>(symbol)
        }
    });
    question.map_or(0, |ask| ask(device))
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(_flags: c_uint) -> Answer {
    NO_DEVICE
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetCount(count: *mut c_int) -> Answer {
    put(count, 0)
}

#[unsafe(no_mangle)]
extern "C" fn cuDriverGetVersion(version: *mut c_int) -> Answer {
    put(version, 0)
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> Answer {
    put(device, ordinal)
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxGetState(device: c_int, flags: *mut c_uint, active: *mut c_int) -> Answer {
    if !flags.is_null() {
        put(flags, 0);
    }
    put(active, context_active(device))
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *const usize, _device: c_int) -> Answer {
    put(context, &raw const CONTEXT)
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetCurrent(context: *mut *const usize) -> Answer {
    put(context, &raw const CONTEXT)
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(_context: *const usize) -> Answer {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorString(answer: Answer, text: *mut *const c_char) -> Answer {
    let known: &CStr = match answer {
        SUCCESS => c"no error",
        INVALID_VALUE => c"invalid argument",
        NO_DEVICE => c"no CUDA-capable device is detected",
        NOT_SUPPORTED => c"operation not supported",
        _ => c"unknown error",
    };
    put(text, known.as_ptr())
}

refuse! { NOT_SUPPORTED:
    cuDeviceGetAttribute cuFuncGetAttribute cuFuncSetAttribute cuFuncSetCacheConfig
    cuLaunchCooperativeKernel cuLaunchKernel cuLaunchKernelEx cuLinkAddData_v2 cuLinkComplete
    cuLinkCreate_v2 cuLinkDestroy cuModuleGetFunction cuModuleLoad cuModuleLoadData
    cuModuleLoadDataEx cuModuleUnload cuOccupancyMaxActiveBlocksPerMultiprocessor
    cuPointerGetAttribute cuTensorMapEncodeTiled
}
