//! What tests ask of the simulator beside CUDA's own calls: faults, hazards, and streams that get stuck.

use std::ffi::{CStr, c_char, c_int};
use std::sync::{Arc, Mutex};

use crate::error::{Error, guard, lock};
use crate::work::{Completion, Work};
use crate::{fault, hazard, stream};

/// What holds streams up.
static HELD: Mutex<Vec<Arc<Completion>>> = Mutex::new(Vec::new());

/// Have calls fail from now on as `text` says (`fault`), and count them anew; 0, or 1 where it is no plan.
#[unsafe(no_mangle)]
extern "C" fn pinbuddy_sim_faults(text: *const c_char) -> c_int {
    if text.is_null() {
        return 1;
    }
    // SAFETY: the caller gives a C string, and it is not null.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    c_int::from(!fault::arm(&text))
}

/// How many copies have any of this memory in flight; watched with `PINBUDDY_SIM_HAZARDS=1`.
#[unsafe(no_mangle)]
extern "C" fn pinbuddy_sim_in_flight(address: usize, bytes: usize) -> usize {
    hazard::in_flight(address, bytes)
}

/// An allocator hands this memory out: a hazard if a copy has any of it in flight.
#[unsafe(no_mangle)]
extern "C" fn pinbuddy_sim_handed_out(address: usize, bytes: usize) {
    hazard::handed_out(address, bytes);
}

/// A stream gets stuck: what it is given from now on waits.
#[unsafe(no_mangle)]
extern "C" fn pinbuddy_sim_hold(handle: usize) -> Error {
    guard("pinbuddy_sim_hold", || {
        let gate = Arc::new(Completion::default());
        stream::submit(&stream::resolve(handle)?, Work::Await(Arc::clone(&gate)))?;
        lock(&HELD).push(gate);
        Ok(())
    })
}

/// All streams that are stuck go on.
#[unsafe(no_mangle)]
extern "C" fn pinbuddy_sim_let_go() {
    for gate in lock(&HELD).drain(..) {
        gate.reach();
    }
}
