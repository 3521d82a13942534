//! The kernel: whether it can populate pages on request, and collapse them.

use serde::Serialize;

use super::finding::Finding;
use super::setting::Setting;
use pinbuddy_machine::Files;

/// The first kernel with `MADV_POPULATE_WRITE`.
const POPULATE: (u32, u32) = (5, 14);

/// The first kernel with `MADV_COLLAPSE`.
const COLLAPSE: (u32, u32) = (6, 1);

/// The kernel's release.
#[derive(Debug, Serialize)]
pub(super) struct Kernel {
    /// `6.1.0-18-amd64`.
    pub release: Option<String>,
    /// Whether `MADV_POPULATE_WRITE` exists, by the release.
    pub populates: bool,
    /// Whether `MADV_COLLAPSE` exists, by the release.
    pub collapses: bool,
}

impl Kernel {
    /// Reads the release.
    pub(super) fn read(files: &Files) -> Self {
        let release = files.text("proc/sys/kernel/osrelease");
        let numbers = release.as_deref().and_then(numbers);
        Self {
            populates: numbers.is_some_and(|it| it >= POPULATE),
            collapses: numbers.is_some_and(|it| it >= COLLAPSE),
            release,
        }
    }

    /// A finding.
    pub(super) fn finding(&self, setting: Setting) -> Finding {
        let release = self.release.as_deref().unwrap_or("of an unknown release");
        let name = "kernel";
        if self.populates {
            return Finding::ok(name, format!("{release}, has MADV_POPULATE_WRITE"));
        }
        let value =
            format!("{release}, no MADV_POPULATE_WRITE ({}.{}): pages are touched one by one", POPULATE.0, POPULATE.1);
        let command = setting.install("linux-image-amd64", "kernel") + " && reboot";
        Finding::note(name, value).machine_root(setting, command)
    }
}

fn numbers(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|it: char| !it.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_all_kinds() {
        assert_eq!(numbers("6.1.0-18-amd64"), Some((6, 1)));
        assert_eq!(numbers("5.14.0-427.el9.x86_64"), Some((5, 14)));
        assert_eq!(numbers("4.18"), Some((4, 18)));
        assert_eq!(numbers("6.8-rc1"), Some((6, 8)));
        assert_eq!(numbers("nonsense"), None);
    }
}
