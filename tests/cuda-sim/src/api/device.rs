//! Devices: count, choice, properties and versions.

use std::ffi::{c_char, c_int, c_uint};

use super::{Out, loaded};
use crate::bindings::{CUDART_VERSION, cudaDeviceAttr, cudaDeviceProp};
use crate::bindings_cuda12::{CUDART_VERSION as CUDART_VERSION_12, cudaDeviceProp as Cuda12DeviceProp};
use crate::error::Error;
use crate::{capture_rules, device, fault, note, properties, stream, waiting};

entries! {
    fn cudaGetDeviceCount(count: Out<c_int>) { count.put(device::count()?) }

    fn cudaGetDevice(current: Out<c_int>) {
        device::count()?;
        current.put(device::current())
    }

    fn cudaSetDevice(device: c_int) { device::set_current(device) }

    fn cudaInitDevice(device: c_int, _device_flags: c_uint, _flags: c_uint) {
        device::activate(device)
    }

    fn cudaDeviceSynchronize() { waiting::synchronize_device(device::activate_current()?) }

    fn cudaDeviceReset() {
        capture_rules::unsafe_call()?;
        waiting::synchronize_device(device::current())?;
        device::deactivate(device::current());
        fault::sticky::forget();
        Ok(())
    }

    /// CUDA 13's layout; in a CUDA 12 process this name is CUDA 11's, which is not simulated.
    fn cudaGetDeviceProperties(answer_to: Out<cudaDeviceProp>, device: c_int) {
        device::check(device)?;
        if loaded::major() < 13 {
            note::once("cudaGetDeviceProperties", || {
                "cudaGetDeviceProperties of CUDA 11 is not simulated; CUDA 12 programs use \
                 cudaGetDeviceProperties_v2"
                    .into()
            });
            return Err(Error::cudaErrorNotSupported);
        }
        answer_to.put(properties::cuda13(device))
    }

    /// CUDA 12's layout.
    fn cudaGetDeviceProperties_v2(answer_to: Out<Cuda12DeviceProp>, device: c_int) {
        device::check(device)?;
        answer_to.put(properties::cuda12(device))
    }

    fn cudaDeviceGetAttribute(value: Out<c_int>, attribute: cudaDeviceAttr, device: c_int) {
        device::check(device)?;
        value.put(properties::attribute(attribute, device)?)
    }

    fn cudaDeviceGetPCIBusId(text: Out<c_char>, length: c_int, device: c_int) {
        device::check(device)?;
        let id = format!("0000:{:02x}:00.0\0", properties::bus(device));
        if text.is_null() || usize::try_from(length).map_or(true, |length| length < id.len()) {
            return Err(Error::cudaErrorInvalidValue);
        }
        text.put_all(id.bytes().map(|byte| byte as c_char));
        Ok(())
    }

    fn cudaDeviceCanAccessPeer(can: Out<c_int>, device: c_int, peer: c_int) {
        device::check(device)?;
        device::check(peer)?;
        can.put(c_int::from(device != peer))
    }

    fn cudaDeviceEnablePeerAccess(peer: c_int, _flags: c_uint) {
        device::check(peer)?;
        if peer == device::current() {
            return Err(Error::cudaErrorInvalidDevice);
        }
        Ok(())
    }

    fn cudaDeviceGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        least.put_if_wanted(stream::LEAST_PRIORITY);
        greatest.put_if_wanted(stream::GREATEST_PRIORITY);
        Ok(())
    }

    fn cudaProfilerStart() { Ok(()) }
    fn cudaProfilerStop() { Ok(()) }
    fn cudaDriverGetVersion(version: Out<c_int>) { version.put(runtime_version()) }
    fn cudaRuntimeGetVersion(version: Out<c_int>) { version.put(runtime_version()) }
}

/// The version of the headers that the simulator was made with, of the loaded major version.
fn runtime_version() -> c_int {
    let version = if loaded::major() < 13 { CUDART_VERSION_12 } else { CUDART_VERSION };
    version.cast_signed()
}

/// Whether a device's primary context exists, for the driver stub.
#[unsafe(no_mangle)]
extern "C" fn pinbuddy_sim_context_active(device: c_int) -> c_int {
    c_int::from(device::is_active(device))
}
