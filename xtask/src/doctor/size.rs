//! Formats sizes.

/// `22.4 GiB`, `512 MiB`, `64 KiB`; rounded down.
pub fn size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0x4000_0000.. => (1 << 30, "GiB"),
        0x10_0000.. => (1 << 20, "MiB"),
        _ => (1 << 10, "KiB"),
    };
    match (bytes / unit, bytes % unit * 10 / unit) {
        (whole, 0) => format!("{whole} {name}"),
        (whole, tenths) => format!("{whole}.{tenths} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn rounded_down() {
        let shown = [0, 64 << 10, (1 << 30) - 1, 3 << 29].map(size);
        assert_eq!(shown, ["0 KiB", "64 KiB", "1023.9 MiB", "1.5 GiB"]);
    }
}
