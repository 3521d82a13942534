//! Numbers for people.

/// Bytes in the unit in which they are short.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.2} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} bytes"),
    }
}

/// The same with one digit, rounded down: `22.4 GiB`, `512 MiB`, `64 KiB`.
pub(crate) fn size(bytes: u64) -> String {
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

/// Microseconds in the unit in which they are short.
pub(crate) fn time(us: u64) -> String {
    let units = [(1_000_000_u64, "s"), (1000, "ms")];
    match units.iter().find(|(unit, _)| us >= *unit) {
        Some((unit, name)) => format!("{:.2} {name}", us as f64 / *unit as f64),
        None => format!("{us} µs"),
    }
}

/// A count with its noun, which takes an s.
pub(crate) fn count(number: u64, noun: &str) -> String {
    count_of(number, noun, &format!("{noun}s"))
}

/// The same with a plural of its own.
pub(crate) fn count_of(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Words in lines; all but the first begin with `indent`.
pub(crate) fn wrapped(text: &str, columns: usize, indent: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.trim().is_empty() && line.chars().count() + 1 + word.chars().count() > columns {
            lines.push(std::mem::replace(&mut line, indent.to_owned() + word));
        } else {
            let space = if line.is_empty() { "" } else { " " };
            line = format!("{line}{space}{word}");
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_rounded_down() {
        let shown = [0, 64 << 10, (1 << 30) - 1, 3 << 29].map(size);
        assert_eq!(shown, ["0 KiB", "64 KiB", "1023.9 MiB", "1.5 GiB"]);
    }
}
