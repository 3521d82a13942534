//! Device variables: where they are, and copies to them.

use std::ffi::c_void;

use super::Out;
use crate::bindings::cudaMemcpyKind as CopyKind;
use crate::symbol;
use crate::transfer::{At, copy_bytes};

entries! {
    fn cudaGetSymbolAddress(address: Out<*mut c_void>, symbol: usize) {
        let place = symbol::address(symbol)?;
        address.put(std::ptr::with_exposed_provenance_mut(place))
    }

    fn cudaMemcpyToSymbol(symbol: usize, from: usize, bytes: usize, offset: usize, kind: CopyKind) {
        let to = symbol::part(symbol, offset, bytes)?;
        copy_bytes(to, from, bytes, kind, At::Now)
    }
}
