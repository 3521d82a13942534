//! Transparent huge pages: whether programs get them by `madvise`.

use serde::Serialize;

use super::finding::Finding;
use super::setting::Setting;
use pinbuddy_machine::{Files, TRANSPARENT, transparent_mode};

/// The two settings that decide.
#[derive(Debug, Serialize)]
pub(super) struct Transparent {
    /// `enabled`: `always`, `madvise` or `never`.
    pub enabled: Option<String>,
    /// `defrag`: `always`, `defer`, `defer+madvise`, `madvise` or `never`.
    pub defrag: Option<String>,
}

impl Transparent {
    /// Reads them.
    pub(super) fn read(files: &Files) -> Self {
        Self { enabled: transparent_mode(files, "enabled"), defrag: transparent_mode(files, "defrag") }
    }

    /// Whether a region that requests huge pages gets them.
    pub(super) fn usable(&self) -> bool {
        matches!(self.enabled.as_deref(), Some("always" | "madvise"))
    }

    /// Judges the settings, with a command for each obstacle.
    pub(super) fn finding(&self, setting: Setting) -> Finding {
        let name = "transparent";
        let (Some(enabled), Some(defrag)) = (&self.enabled, &self.defrag) else {
            return Finding::ok(name, "this kernel has none");
        };
        let value = format!("enabled: {enabled}, defrag: {defrag}");
        let in_the_way = [("enabled", !self.usable()), ("defrag", matches!(defrag.as_str(), "never" | "defer"))];
        let files: Vec<_> = in_the_way.iter().filter(|(_, it)| *it).collect();
        if files.is_empty() {
            return Finding::ok(name, value);
        }
        let finding = Finding::note(name, value);
        files.into_iter().fold(finding, |finding, (file, _)| {
            finding.machine_root(setting, format!("echo madvise > /{TRANSPARENT}/{file}"))
        })
    }
}
