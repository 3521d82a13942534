//! Device variables: where they are, and copies to them.

use std::ffi::c_void;

use super::Out;
use crate::bindings::cudaMemcpyKind as CopyKind;
use crate::error::{Error, answer};
use crate::symbol;
use crate::transfer::{At, copy_bytes};

#[unsafe(no_mangle)]
extern "C" fn cudaGetSymbolAddress(address: Out<*mut c_void>, symbol: usize) -> Error {
    answer("cudaGetSymbolAddress", || {
        address.put(std::ptr::with_exposed_provenance_mut(symbol::address(
            symbol,
        )?))
    })
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
        copy_bytes(to, from, bytes, kind, At::Now)
    })
}
