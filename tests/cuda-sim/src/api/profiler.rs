//! The profiler interface (CUPTI), refused: libcupti needs a driver and recurses without end when
//! it finds none. PyTorch's profiler then goes on without the GPU's side.

use std::ffi::{c_char, c_uint};

use super::Out;

/// A `CUptiResult`.
type Answer = c_uint;

/// `CUPTI_ERROR_NOT_SUPPORTED`.
const NOT_SUPPORTED: Answer = 27;

#[unsafe(no_mangle)]
extern "C" fn cuptiGetResultString(_answer: Answer, text: Out<*const c_char>) -> Answer {
    text.put_if_wanted(c"the simulated GPU cannot be profiled".as_ptr());
    0
}

/// Define entry points that only refuse; the calling convention leaves their arguments to the
/// caller.
macro_rules! refuse {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> Answer {
            NOT_SUPPORTED
        }
    )*};
}

refuse! {
    cuptiActivityDisable cuptiActivityEnable cuptiActivityEnableCudaEventDeviceTimestamps
    cuptiActivityEnableDriverApi cuptiActivityEnableRuntimeApi cuptiActivityFlushAll
    cuptiActivityGetNextRecord cuptiActivityGetNumDroppedRecords
    cuptiActivityPopExternalCorrelationId cuptiActivityPushExternalCorrelationId
    cuptiActivityRegisterCallbacks cuptiActivityRegisterTimestampCallback
    cuptiActivitySetAttribute cuptiEnableCallback cuptiEnableDomain cuptiFinalize
    cuptiGetCallbackName cuptiGetVersion cuptiSubscribe cuptiUnsubscribe
}
