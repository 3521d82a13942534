//! What nvcc's generated code calls: registration of kernels and variables, and launches.

use std::ffi::{CStr, c_char, c_int, c_uint};

use super::{In, Out};
use crate::bindings::{cudaFuncAttributes, cudaLaunchConfig_st, dim3};
use crate::error::{Error, Status, answer};
use crate::kernel::{self, Configuration};
use crate::{device, properties, stream, symbol};

/// What a fat binary's handle points to; nothing reads it.
static FAT_BINARY: usize = 0;

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinary(_binary: usize) -> *const usize {
    &raw const FAT_BINARY
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinaryEnd(_handle: usize) {}

#[unsafe(no_mangle)]
extern "C" fn __cudaUnregisterFatBinary(_handle: usize) {}

#[unsafe(no_mangle)]
extern "C" fn __cudaInitModule(_handle: usize) -> c_char {
    1
}

/// The arguments after the name say nothing that the simulator needs.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFunction(
    _handle: usize,
    host_function: usize,
    _device_function: usize,
    name: *const c_char,
) {
    if !name.is_null() {
        // SAFETY: nvcc's generated code gives the kernel's mangled name, a C string.
        let name = unsafe { CStr::from_ptr(name) };
        kernel::register(host_function, &name.to_string_lossy());
    }
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterVar(
    _handle: usize,
    shadow: usize,
    _device_address: usize,
    _name: *const c_char,
    _external: c_int,
    bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    symbol::register(shadow, bytes);
}

// Managed variables, textures, surfaces and host variables are not simulated. Their registration
// must not reach libcudart, which does not know the handle.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterManagedVar(_handle: usize) {}
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterHostVar(_handle: usize) {}
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterTexture(_handle: usize) {}
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterSurface(_handle: usize) {}
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterUnifiedTable(_handle: usize) {}

#[unsafe(no_mangle)]
extern "C" fn __cudaPushCallConfiguration(grid: dim3, block: dim3, shared_bytes: usize, stream: usize) -> c_uint {
    kernel::push(Configuration { grid, block, shared_bytes, stream });
    0
}

entries! {
    fn __cudaPopCallConfiguration(
        grid: Out<dim3>,
        block: Out<dim3>,
        shared_bytes: Out<usize>,
        stream: Out<usize>,
    ) {
        let configuration = kernel::pop()?;
        grid.put(configuration.grid)?;
        block.put(configuration.block)?;
        shared_bytes.put(configuration.shared_bytes)?;
        stream.put(configuration.stream)
    }
}

/// A kernel's arguments: an array of pointers to them.
type Arguments = In<In<i64>>;

fn launch(function: usize, stream: usize, arguments: Arguments) -> Status {
    kernel::launch(function, &stream::resolve(stream)?, || arguments.get().and_then(In::get).unwrap_or(0))
}

entries! {
    fn cudaLaunchKernel(
        function: usize,
        _grid: dim3,
        _block: dim3,
        arguments: Arguments,
        _shared_bytes: usize,
        stream: usize,
    ) {
        launch(function, stream, arguments)
    }

    fn cudaLaunchCooperativeKernel(
        function: usize,
        _grid: dim3,
        _block: dim3,
        arguments: Arguments,
        _shared_bytes: usize,
        stream: usize,
    ) {
        launch(function, stream, arguments)
    }

    fn __cudaLaunchKernel(
        kernel: usize,
        _grid: dim3,
        _block: dim3,
        arguments: Arguments,
        _shared_bytes: usize,
        stream: usize,
    ) {
        launch(kernel, stream, arguments)
    }

    fn cudaLaunchKernelExC(
        configuration: In<cudaLaunchConfig_st>,
        function: usize,
        arguments: Arguments,
    ) {
        launch(
            function,
            configuration.get()?.stream.expose_provenance(),
            arguments,
        )
    }

    /// A kernel's handle is the address of its host function.
    fn cudaGetKernel(kernel: Out<usize>, function: usize) {
        kernel::name(function)?;
        kernel.put(function)
    }
}

#[unsafe(no_mangle)]
extern "C" fn __cudaGetKernel(kernel: Out<usize>, function: usize) -> Error {
    cudaGetKernel(kernel, function)
}

entries! {
    fn cudaFuncGetAttributes(place: Out<cudaFuncAttributes>, function: usize) {
        kernel::name(function)?;
        // SAFETY: the structure consists of numbers and arrays of numbers; zeros are valid.
        let mut attributes: cudaFuncAttributes = unsafe { std::mem::zeroed() };
        attributes.maxThreadsPerBlock = 1024;
        attributes.numRegs = 32;
        attributes.ptxVersion = 90;
        attributes.binaryVersion = 90;
        place.put(attributes)
    }

    fn cudaFuncSetAttribute(function: usize, _attribute: c_int, _value: c_int) {
        kernel::name(function).map(|_| ())
    }

    fn cudaKernelSetAttributeForDevice(
        kernel: usize,
        _attribute: c_int,
        _value: c_int,
        device: c_int,
    ) {
        device::check(device)?;
        kernel::name(kernel).map(|_| ())
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: Out<c_int>,
    function: usize,
    block_size: c_int,
    shared_bytes: usize,
) -> Error {
    cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared_bytes, 0)
}

#[unsafe(no_mangle)]
extern "C" fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    blocks: Out<c_int>,
    function: usize,
    block_size: c_int,
    _shared_bytes: usize,
    _flags: c_uint,
) -> Error {
    answer("cudaOccupancyMaxActiveBlocksPerMultiprocessor", || {
        kernel::name(function)?;
        blocks.put(properties::blocks_per_processor(block_size)?)
    })
}
