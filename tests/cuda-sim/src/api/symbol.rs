//! Device variables: where they are, and copies to and from them.

use std::ffi::c_void;

use super::Out;
use super::transfer::DEFAULT;
use crate::bindings::cudaMemcpyKind as CopyKind;
use crate::error::{Error, answer};
use crate::symbol;
use crate::transfer::{Call, copy};
use crate::work::Area;

#[unsafe(no_mangle)]
extern "C" fn cudaGetSymbolAddress(address: Out<*mut c_void>, symbol: usize) -> Error {
    answer("cudaGetSymbolAddress", || {
        address.put(std::ptr::with_exposed_provenance_mut(symbol::address(
            symbol,
        )?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetSymbolSize(bytes: Out<usize>, symbol: usize) -> Error {
    answer("cudaGetSymbolSize", || bytes.put(symbol::size(symbol)?))
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyToSymbol(
    symbol: usize,
    from: usize,
    bytes: usize,
    offset: usize,
    kind: CopyKind,
) -> Error {
    answer("cudaMemcpyToSymbol", || {
        let to = symbol::part(symbol, offset, bytes)?;
        copy(
            Area::line(to, bytes),
            Area::line(from, bytes),
            kind,
            DEFAULT,
            Call::Sync,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyToSymbolAsync(
    symbol: usize,
    from: usize,
    bytes: usize,
    offset: usize,
    kind: CopyKind,
    stream: usize,
) -> Error {
    answer("cudaMemcpyToSymbolAsync", || {
        let to = symbol::part(symbol, offset, bytes)?;
        copy(
            Area::line(to, bytes),
            Area::line(from, bytes),
            kind,
            stream,
            Call::Async,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyFromSymbol(
    to: usize,
    symbol: usize,
    bytes: usize,
    offset: usize,
    kind: CopyKind,
) -> Error {
    answer("cudaMemcpyFromSymbol", || {
        let from = symbol::part(symbol, offset, bytes)?;
        copy(
            Area::line(to, bytes),
            Area::line(from, bytes),
            kind,
            DEFAULT,
            Call::Sync,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyFromSymbolAsync(
    to: usize,
    symbol: usize,
    bytes: usize,
    offset: usize,
    kind: CopyKind,
    stream: usize,
) -> Error {
    answer("cudaMemcpyFromSymbolAsync", || {
        let from = symbol::part(symbol, offset, bytes)?;
        copy(
            Area::line(to, bytes),
            Area::line(from, bytes),
            kind,
            stream,
            Call::Async,
        )
    })
}
