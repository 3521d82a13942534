//! What may not be called while a capture is under way.
//!
//! A prohibited call spoils the captures that it disturbs and is refused.

use std::cell::Cell;

use crate::bindings::cudaStreamCaptureMode as Mode;
use crate::capture::{self, Capture};
use crate::error::{Error, Status};

thread_local! {
    /// The thread's own mode (`cudaThreadExchangeStreamCaptureMode`).
    static THREAD_MODE: Cell<Mode> = const { Cell::new(Mode::cudaStreamCaptureModeGlobal) };
}

/// `cudaThreadExchangeStreamCaptureMode`.
pub(crate) fn exchange_mode(mode: Mode) -> Status<Mode> {
    if mode.0 > Mode::cudaStreamCaptureModeRelaxed.0 {
        return Err(Error::cudaErrorInvalidValue);
    }
    Ok(THREAD_MODE.replace(mode))
}

/// A potentially unsafe call, such as an allocation: refused where a capture that it could
/// disturb is under way, which is then spoiled.
pub(crate) fn unsafe_call() -> Status {
    let mode = THREAD_MODE.get();
    let thread = std::thread::current().id();
    spoil(|capture| prohibits(mode, capture.mode, capture.thread == thread))
        .map_err(|_| Error::cudaErrorStreamCaptureUnsupported)
}

/// A call that waits for a whole device: refused while any of its streams is captured.
pub(crate) fn device_call(device: i32) -> Status {
    spoil(|capture| capture.has(|stream| stream.device == device)).map_err(|_| Error::cudaErrorStreamCaptureUnsupported)
}

/// A use of the legacy default stream: refused while a blocking stream of the device is captured.
pub(crate) fn legacy_call(device: i32) -> Status {
    spoil(|capture| capture.has(|stream| stream.device == device && stream.is_blocking()))
        .map_err(|_| Error::cudaErrorStreamCaptureImplicit)
}

/// Whether a thread's potentially unsafe call is prohibited by a capture.
fn prohibits(thread_mode: Mode, capture_mode: Mode, own: bool) -> bool {
    let own = own && capture_mode != Mode::cudaStreamCaptureModeRelaxed;
    match thread_mode {
        Mode::cudaStreamCaptureModeGlobal => own || capture_mode == Mode::cudaStreamCaptureModeGlobal,
        Mode::cudaStreamCaptureModeThreadLocal => own,
        _ => false,
    }
}

/// Spoil the captures that a call disturbs; an error if there are any.
fn spoil(disturbs: impl Fn(&Capture) -> bool) -> Result<(), ()> {
    let mut result = Ok(());
    for capture in capture::active().iter().filter(|capture| disturbs(capture)) {
        capture.invalidate();
        result = Err(());
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_prohibit_what_cuda_says() {
        let modes = [
            Mode::cudaStreamCaptureModeGlobal,
            Mode::cudaStreamCaptureModeThreadLocal,
            Mode::cudaStreamCaptureModeRelaxed,
        ];
        // A row for the thread's mode, a column for the capture's: where the capture is the thread's own, and another's.
        let of = |own| modes.map(|thread| modes.map(|capture| prohibits(thread, capture, own)));
        assert_eq!(of(true), [[true, true, false], [true, true, false], [false; 3]]);
        assert_eq!(of(false), [[true, false, false], [false; 3], [false; 3]]);
    }
}
