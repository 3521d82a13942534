//! The `BUDDY_*` environment variables: what they mean, what they default to, and what is said
//! about a value that cannot be used.
//!
//! Knows nothing of the engine and prints nothing: it turns strings into a [`Config`] and a list of
//! warnings, so that every case can be tested without touching the process environment. A bad value
//! never stops a program: its default is used, and one warning names the variable, the value found
//! and that default.

use std::ffi::OsString;

use serde::Serialize;

/// Bytes in one of the megabytes that the `_MB` variables count in.
pub const MIB: usize = 1 << 20;

/// One variable's value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting<T> {
    /// The variable's name.
    pub name: &'static str,
    /// The value in use.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
}

/// Where a setting's value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The variable is not set.
    Default,
    /// The variable is set to a usable value.
    Environment,
    /// The variable is set to something unusable, and the default stands in.
    Rejected,
}

/// What the environment asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Config {
    /// Size of a segment pinned by the warm-up, in MiB; at least 1.
    pub block_size_mb: Setting<usize>,
    /// How many segments the warm-up pins; 0 pins none ahead.
    pub block_count: Setting<usize>,
    /// The smallest request that the engine serves, in MiB; 0 means all.
    pub threshold_mb: Setting<usize>,
    /// Whether PyTorch's own allocator stays in place.
    pub disable: Setting<bool>,
}

impl Config {
    /// Reads every variable through `lookup`; returns the configuration and the warnings to show.
    pub fn read(lookup: impl Fn(&str) -> Option<OsString>) -> (Self, Vec<String>) {
        let mut reader = Reader {
            lookup,
            warnings: Vec::new(),
        };
        let block_size_mb = reader.read("BUDDY_BLOCK_SIZE_MB", 1024, |text| {
            let size = megabytes(text)?;
            if size == 0 {
                Err("is zero, and a block has a size")
            } else {
                Ok(size)
            }
        });
        let block_count = reader.read("BUDDY_BLOCK_COUNT", 8, |text| {
            let count = number(text)?;
            // Together the blocks must be addressable, or the sum of their sizes means nothing.
            match (block_size_mb.value * MIB).checked_mul(count) {
                Some(total) if total <= isize::MAX as usize => Ok(count),
                _ => Err(TOO_LARGE),
            }
        });
        let threshold_mb = reader.read("BUDDY_THRESHOLD_MB", 4, megabytes);
        let disable = reader.read("BUDDY_DISABLE", false, switch);
        (
            Self {
                block_size_mb,
                block_count,
                threshold_mb,
                disable,
            },
            reader.warnings,
        )
    }

    /// Reads the process environment.
    pub fn from_environment() -> (Self, Vec<String>) {
        Self::read(|name| std::env::var_os(name))
    }

    /// Size of a segment pinned by the warm-up, in bytes.
    pub fn block_bytes(&self) -> usize {
        self.block_size_mb.value * MIB
    }

    /// The smallest request that the engine serves, in bytes.
    pub fn threshold_bytes(&self) -> usize {
        self.threshold_mb.value * MIB
    }
}

const TOO_LARGE: &str = "is more than this machine can address";

struct Reader<L> {
    lookup: L,
    warnings: Vec<String>,
}

impl<L: Fn(&str) -> Option<OsString>> Reader<L> {
    /// Reads one variable with `parse`, whose error completes the sentence "NAME="value" ...".
    fn read<T: std::fmt::Display>(
        &mut self,
        name: &'static str,
        default: T,
        parse: impl Fn(&str) -> Result<T, &'static str>,
    ) -> Setting<T> {
        let Some(found) = (self.lookup)(name) else {
            return Setting {
                name,
                value: default,
                origin: Origin::Default,
            };
        };
        let parsed = found
            .to_str()
            .ok_or("is not text")
            .and_then(|text| parse(text.trim()));
        match parsed {
            Ok(value) => Setting {
                name,
                value,
                origin: Origin::Environment,
            },
            Err(why) => {
                self.warnings.push(format!(
                    "{name}={found:?} {why}; using the default, {default}"
                ));
                Setting {
                    name,
                    value: default,
                    origin: Origin::Rejected,
                }
            }
        }
    }
}

fn number(text: &str) -> Result<usize, &'static str> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.strip_prefix('-') {
        Some(rest) if digits(rest) => Err("is negative"),
        _ if !digits(text) => Err("is not a whole number"),
        // Only digits are left, so the one way to fail is to be too large.
        _ => text.parse().map_err(|_| TOO_LARGE),
    }
}

/// A number of MiB whose bytes can be addressed.
fn megabytes(text: &str) -> Result<usize, &'static str> {
    let count = number(text)?;
    if count > isize::MAX as usize / MIB {
        Err(TOO_LARGE)
    } else {
        Ok(count)
    }
}

fn switch(text: &str) -> Result<bool, &'static str> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("is neither 1 nor 0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> (Config, Vec<String>) {
        Config::read(|name| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.into())
        })
    }

    #[test]
    fn defaults_are_the_documented_ones_and_say_nothing() {
        let (config, warnings) = read(&[]);
        assert_eq!(config.block_bytes(), 1 << 30);
        assert_eq!(config.block_count.value, 8);
        assert_eq!(config.threshold_bytes(), 4 << 20);
        assert!(!config.disable.value);
        assert_eq!(warnings, [] as [String; 0]);
    }

    #[test]
    fn usable_values_are_taken() {
        let (config, warnings) = read(&[
            ("BUDDY_BLOCK_SIZE_MB", " 1000 "),
            ("BUDDY_BLOCK_COUNT", "0"),
            ("BUDDY_THRESHOLD_MB", "0"),
            ("BUDDY_DISABLE", "1"),
        ]);
        assert_eq!(config.block_bytes(), 1000 << 20);
        assert_eq!(config.block_count.value, 0);
        assert_eq!(config.threshold_bytes(), 0);
        assert!(config.disable.value);
        assert_eq!(config.disable.origin, Origin::Environment);
        assert_eq!(warnings, [] as [String; 0]);
    }

    #[test]
    fn each_unusable_value_is_named_once_with_the_default_used() {
        let (config, warnings) = read(&[
            ("BUDDY_BLOCK_SIZE_MB", "0"),
            ("BUDDY_BLOCK_COUNT", "-3"),
            ("BUDDY_THRESHOLD_MB", "99999999999999999999"),
            ("BUDDY_DISABLE", "maybe"),
        ]);
        insta::assert_snapshot!(warnings.join("\n"), @r#"
        BUDDY_BLOCK_SIZE_MB="0" is zero, and a block has a size; using the default, 1024
        BUDDY_BLOCK_COUNT="-3" is negative; using the default, 8
        BUDDY_THRESHOLD_MB="99999999999999999999" is more than this machine can address; using the default, 4
        BUDDY_DISABLE="maybe" is neither 1 nor 0; using the default, false
        "#);
        assert_eq!(
            (config.block_size_mb.value, config.block_count.value),
            (1024, 8)
        );
        assert_eq!(config.threshold_mb.value, 4);
        assert!(!config.disable.value);
        assert_eq!(config.block_size_mb.origin, Origin::Rejected);
    }

    #[test]
    fn what_is_no_number_or_overflows_in_bytes_is_rejected() {
        for value in ["abc", "", "1.5", "0x10", "+4", "4 MB", "-", "9000000000000"] {
            let (config, warnings) = read(&[("BUDDY_THRESHOLD_MB", value)]);
            assert_eq!(config.threshold_mb.value, 4, "{value:?}");
            assert_eq!(warnings.len(), 1, "{value:?}");
        }
        let (config, warnings) = read(&[
            ("BUDDY_BLOCK_SIZE_MB", "8000000000"),
            ("BUDDY_BLOCK_COUNT", "8000000000"),
        ]);
        assert_eq!(config.block_count.value, 8);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }

    #[cfg(unix)]
    #[test]
    fn a_value_that_is_not_text_is_rejected() {
        use std::os::unix::ffi::OsStringExt;
        let (config, warnings) = Config::read(|name| {
            (name == "BUDDY_BLOCK_COUNT").then(|| OsString::from_vec(vec![0xff, b'1']))
        });
        assert_eq!(config.block_count.value, 8);
        assert_eq!(warnings.len(), 1);
    }
}
