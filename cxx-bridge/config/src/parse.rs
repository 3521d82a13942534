//! Parses the text of a variable into its value or an error.
//!
//! Pure functions of strings. Each error completes the sentence `NAME="value" ...`.

use pinbuddy_core::MAX_REGION;

use super::MIB;

pub(super) const TOO_LARGE: &str = "is more than this machine can address";

const MOST_SECONDS: usize = 366 * 24 * 3600;

/// A whole number.
pub(super) fn number(text: &str) -> Result<usize, &'static str> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.strip_prefix('-') {
        Some(rest) if digits(rest) => Err("is negative"),
        _ if !digits(text) => Err("is not a whole number, such as 8"),
        // Only digits are left, so it can only fail by being too large.
        _ => text.parse().map_err(|_| TOO_LARGE),
    }
}

/// A number of MiB whose bytes can be addressed.
pub(super) fn megabytes(text: &str) -> Result<usize, &'static str> {
    let count = number(text)?;
    if count > isize::MAX as usize / MIB { Err(TOO_LARGE) } else { Ok(count) }
}

/// As [`megabytes`], of a block.
pub(super) fn block_size(text: &str) -> Result<usize, &'static str> {
    match megabytes(text)? {
        0 => Err("is zero, and a block has a size"),
        size if size > MAX_REGION / MIB => Err("is more than the 1 TiB that a block can have"),
        size => Ok(size),
    }
}

/// A time in seconds, or -1.
pub(super) fn seconds(text: &str) -> Result<i64, &'static str> {
    match text {
        "-1" => Ok(-1),
        _ => match number(text) {
            Ok(seconds) if seconds <= MOST_SECONDS => Ok(seconds as i64),
            Ok(_) => Err("is more than a year"),
            Err("is negative") => Err("is negative, and only -1 (never) may be"),
            Err(why) => Err(why),
        },
    }
}

/// The name of a file.
pub(super) fn name(text: &str) -> Result<Option<String>, &'static str> {
    Ok(Some(text.to_owned()))
}

/// The path of a folder, which does not depend on the one that a program is in.
pub(super) fn folder(text: &str) -> Result<Option<String>, &'static str> {
    match text.starts_with('/') {
        true => Ok(Some(text.to_owned())),
        false => Err("is no absolute path (`~` is not expanded)"),
    }
}

/// On or off.
pub(super) fn switch(text: &str) -> Result<bool, &'static str> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("is neither 1 nor 0"),
    }
}

/// One of a few words, in any case.
pub(super) fn word<T: Copy>(text: &str, words: &[(&str, T)], refusal: &'static str) -> Result<T, &'static str> {
    let found = words.iter().find(|(it, _)| it.eq_ignore_ascii_case(text));
    found.map(|(_, value)| *value).ok_or(refusal)
}
