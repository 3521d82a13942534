//! Last errors, the statistics and the controls that tests use. Names and texts of errors are
//! libcudart's own.

use std::ffi::c_char;

use super::Out;
use crate::error::{self, Error};
use crate::{device, pins, stats};

#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> Error {
    error::take()
}

#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> Error {
    error::peek()
}

/// Write the statistics as JSON, cut to `size` and always ended with a zero; the answer is the
/// length that all of it needs, without the zero.
#[unsafe(no_mangle)]
extern "C" fn pinbuddy_sim_stats_json(text: Out<c_char>, size: usize) -> usize {
    let (now, peak) = pins::now_and_peak();
    let json = stats::json(now, peak, &device::active());
    if size > 0 {
        let kept = json.bytes().take(size - 1).chain([0]);
        text.put_all(kept.map(|byte| byte as c_char));
    }
    json.len()
}

/// Let pins fail beyond so many MiB of page-locked memory; negative: as the environment says.
#[unsafe(no_mangle)]
extern "C" fn pinbuddy_sim_fail_pin_after_mb(mib: i64) {
    pins::set_ceiling(mib.saturating_mul(1 << 20));
}
