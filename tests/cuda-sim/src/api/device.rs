//! Devices: count, choice, properties and versions.

use std::ffi::{c_char, c_int, c_uint};

use super::{Out, loaded};
use crate::bindings::{CUDART_VERSION, cudaDeviceAttr, cudaDeviceProp};
use crate::bindings_cuda12::{
    CUDART_VERSION as CUDART_VERSION_12, cudaDeviceProp as Cuda12DeviceProp,
};
use crate::error::{Error, answer};
use crate::{capture_rules, device, fault, note, properties, stream, waiting};

#[unsafe(no_mangle)]
extern "C" fn cudaGetDeviceCount(count: Out<c_int>) -> Error {
    answer("cudaGetDeviceCount", || count.put(device::count()?))
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetDevice(current: Out<c_int>) -> Error {
    answer("cudaGetDevice", || {
        device::count()?;
        current.put(device::current())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaSetDevice(device: c_int) -> Error {
    answer("cudaSetDevice", || device::set_current(device))
}

#[unsafe(no_mangle)]
extern "C" fn cudaInitDevice(device: c_int, _device_flags: c_uint, _flags: c_uint) -> Error {
    answer("cudaInitDevice", || device::activate(device))
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceSynchronize() -> Error {
    answer("cudaDeviceSynchronize", || {
        waiting::synchronize_device(device::activate_current()?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceReset() -> Error {
    answer("cudaDeviceReset", || {
        capture_rules::unsafe_call()?;
        waiting::synchronize_device(device::current())?;
        device::deactivate(device::current());
        fault::sticky::forget();
        Ok(())
    })
}

/// CUDA 13's layout; in a CUDA 12 process this name is CUDA 11's, which is not simulated.
#[unsafe(no_mangle)]
extern "C" fn cudaGetDeviceProperties(answer_to: Out<cudaDeviceProp>, device: c_int) -> Error {
    answer("cudaGetDeviceProperties", || {
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
    })
}

/// CUDA 12's layout.
#[unsafe(no_mangle)]
extern "C" fn cudaGetDeviceProperties_v2(answer_to: Out<Cuda12DeviceProp>, device: c_int) -> Error {
    answer("cudaGetDeviceProperties_v2", || {
        device::check(device)?;
        answer_to.put(properties::cuda12(device))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceGetAttribute(
    value: Out<c_int>,
    attribute: cudaDeviceAttr,
    device: c_int,
) -> Error {
    answer("cudaDeviceGetAttribute", || {
        device::check(device)?;
        value.put(properties::attribute(attribute, device)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceGetPCIBusId(text: Out<c_char>, length: c_int, device: c_int) -> Error {
    answer("cudaDeviceGetPCIBusId", || {
        device::check(device)?;
        let id = format!("0000:{:02x}:00.0\0", properties::bus(device));
        if text.is_null() || usize::try_from(length).map_or(true, |length| length < id.len()) {
            return Err(Error::cudaErrorInvalidValue);
        }
        text.put_all(id.bytes().map(|byte| byte as c_char));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceCanAccessPeer(can: Out<c_int>, device: c_int, peer: c_int) -> Error {
    answer("cudaDeviceCanAccessPeer", || {
        device::check(device)?;
        device::check(peer)?;
        can.put(c_int::from(device != peer))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceEnablePeerAccess(peer: c_int, _flags: c_uint) -> Error {
    answer("cudaDeviceEnablePeerAccess", || {
        device::check(peer)?;
        if peer == device::current() {
            return Err(Error::cudaErrorInvalidDevice);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) -> Error {
    answer("cudaDeviceGetStreamPriorityRange", || {
        least.put_if_wanted(stream::LEAST_PRIORITY);
        greatest.put_if_wanted(stream::GREATEST_PRIORITY);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaProfilerStart() -> Error {
    answer("cudaProfilerStart", || Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn cudaProfilerStop() -> Error {
    answer("cudaProfilerStop", || Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn cudaDriverGetVersion(version: Out<c_int>) -> Error {
    answer("cudaDriverGetVersion", || version.put(runtime_version()))
}

#[unsafe(no_mangle)]
extern "C" fn cudaRuntimeGetVersion(version: Out<c_int>) -> Error {
    answer("cudaRuntimeGetVersion", || version.put(runtime_version()))
}

/// The version of the headers that the simulator was made with, of the loaded major version.
fn runtime_version() -> c_int {
    let version = if loaded::major() < 13 {
        CUDART_VERSION_12
    } else {
        CUDART_VERSION
    };
    version.cast_signed()
}

/// Whether a device's primary context exists, for the driver stub.
#[unsafe(no_mangle)]
extern "C" fn pinbuddy_sim_context_active(device: c_int) -> c_int {
    c_int::from(device::is_active(device))
}
