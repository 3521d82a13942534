//! Device variables: registered by the address of their host shadow, given memory when first used.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::error::{Error, Status, lock};
use crate::{device, memory};

#[derive(Debug)]
struct Symbol {
    bytes: usize,
    /// Where it is on each device that used it.
    places: HashMap<i32, usize>,
}

static SYMBOLS: Mutex<Option<HashMap<usize, Symbol>>> = Mutex::new(None);

/// `__cudaRegisterVar`.
pub(crate) fn register(shadow: usize, bytes: usize) {
    let symbol = Symbol { bytes, places: HashMap::new() };
    lock(&SYMBOLS).get_or_insert_default().insert(shadow, symbol);
}

/// How many bytes it has.
fn size(shadow: usize) -> Status<usize> {
    let symbols = lock(&SYMBOLS);
    let symbol = symbols.as_ref().and_then(|symbols| symbols.get(&shadow));
    symbol.map(|symbol| symbol.bytes).ok_or(Error::cudaErrorInvalidSymbol)
}

/// `cudaGetSymbolAddress` on the current device; the memory starts as zeros.
pub(crate) fn address(shadow: usize) -> Status<usize> {
    let device = device::activate_current()?;
    let mut symbols = lock(&SYMBOLS);
    let symbol = symbols.get_or_insert_default().get_mut(&shadow).ok_or(Error::cudaErrorInvalidSymbol)?;
    if let Some(&place) = symbol.places.get(&device) {
        return Ok(place);
    }
    let place = memory::device_alloc(symbol.bytes.max(1))?;
    symbol.places.insert(device, place);
    Ok(place)
}

/// Where a part of a symbol is.
pub(crate) fn part(shadow: usize, offset: usize, bytes: usize) -> Status<usize> {
    let size = size(shadow)?;
    if offset.checked_add(bytes).is_none_or(|end| end > size) {
        return Err(Error::cudaErrorInvalidValue);
    }
    Ok(address(shadow)? + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_has_memory_of_its_own() {
        register(0x1000, 16);
        assert_eq!(size(0x1000), Ok(16));
        assert_eq!(address(0x1000).unwrap() + 4, part(0x1000, 4, 12).unwrap());
        assert_eq!(part(0x1000, 5, 12), Err(Error::cudaErrorInvalidValue));
        assert_eq!(part(0x2000, 0, 1), Err(Error::cudaErrorInvalidSymbol));
    }
}
