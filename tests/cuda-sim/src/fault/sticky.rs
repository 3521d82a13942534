//! Errors that stay: CUDA's documentation says of them that the context can no longer be used, and that the process
//! must end to go on with CUDA. Each later call that needs the context answers the same, and nothing clears it but
//! `cudaDeviceReset`. Any other error is the call's own, and the thread's last one until that is asked for.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Error;

/// The error that stays; 0: none.
static STICKY: AtomicU32 = AtomicU32::new(0);

/// After these the context is lost.
const STAY: [Error; 14] = [
    Error::cudaErrorIllegalAddress,
    Error::cudaErrorLaunchTimeout,
    Error::cudaErrorAssert,
    Error::cudaErrorHardwareStackError,
    Error::cudaErrorIllegalInstruction,
    Error::cudaErrorMisalignedAddress,
    Error::cudaErrorInvalidAddressSpace,
    Error::cudaErrorInvalidPc,
    Error::cudaErrorLaunchFailure,
    Error::cudaErrorContained,
    Error::cudaErrorECCUncorrectable,
    Error::cudaErrorNvlinkUncorrectable,
    Error::cudaErrorExternalDevice,
    Error::cudaErrorMpsClientTerminated,
];

/// Calls that need no context and go on.
const EXEMPT: [&str; 10] = [
    "cudaGetDevice",
    "cudaGetDeviceCount",
    "cudaDeviceGetAttribute",
    "cudaDeviceGetPCIBusId",
    "cudaGetDeviceProperties",
    "cudaGetDeviceProperties_v2",
    "cudaDriverGetVersion",
    "cudaRuntimeGetVersion",
    "cudaThreadExchangeStreamCaptureMode",
    "cudaDeviceReset",
];

/// Whether a call goes on after a sticky error.
pub(crate) fn is_exempt(entry: &str) -> bool {
    EXEMPT.contains(&entry)
}

/// From now on every call answers this error, if it is one that stays.
pub(super) fn keep(error: Error) {
    if STAY.contains(&error) {
        STICKY.store(error.0, Ordering::Relaxed);
    }
}

/// The error that stays, if there is one.
pub(crate) fn error() -> Option<Error> {
    match STICKY.load(Ordering::Relaxed) {
        0 => None,
        number => Some(Error(number)),
    }
}

/// The context is a new one.
pub(crate) fn forget() {
    STICKY.store(0, Ordering::Relaxed);
}
