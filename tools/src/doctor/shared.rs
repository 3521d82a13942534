//! Memory that forked children share, which blocks are made of, and whether it gets huge pages.
//!
//! The rule is the engine's (cxx-bridge/src/backing/machine.rs): huge pages at the first touch if `shmem_enabled`
//! allows them, else by collapsing, else none.

use serde::Serialize;

use super::finding::Finding;
use super::kernel::Kernel;
use super::setting::Setting;
use pinbuddy_machine::{Files, TRANSPARENT, transparent_mode};

/// The settings that decide.
#[derive(Debug, Serialize)]
pub(super) struct Shared {
    /// `shmem_enabled`: `always`, `within_size`, `advise`, `never`, `deny` or `force`.
    pub enabled: Option<String>,
    /// The same for pages of 2 MiB only, on newer kernels; `inherit` means the former.
    pub of_2_mib: Option<String>,
}

impl Shared {
    /// Reads them.
    pub(super) fn read(files: &Files) -> Self {
        Self {
            enabled: transparent_mode(files, "shmem_enabled"),
            of_2_mib: transparent_mode(files, "hugepages-2048kB/shmem_enabled"),
        }
    }

    /// Judges the settings. `transparent`: whether the kernel gives huge pages to programs that ask.
    pub(super) fn finding(&self, setting: Setting, kernel: &Kernel, transparent: bool) -> Finding {
        let name = "shared";
        let line =
            |how: &str| format!("forked children read blocks; outside the pools, pages of {how}");
        if !transparent {
            let how = "4 KiB: there are no transparent huge pages";
            return Finding::ok(name, line(how));
        }
        let all = self.enabled.as_deref().unwrap_or("never");
        let of_size = self.of_2_mib.as_deref().unwrap_or("inherit");
        let why = match (all, of_size) {
            ("deny", _) => "shmem_enabled is deny",
            (_, "never") => "hugepages-2048kB/shmem_enabled is never",
            ("never", "inherit") if kernel.collapses => {
                return Finding::ok(name, line("2 MiB, which MADV_COLLAPSE puts together"));
            }
            ("never", "inherit") => "no MADV_COLLAPSE (6.1), and shmem_enabled is never",
            _ => {
                let word = if of_size == "inherit" { all } else { of_size };
                return Finding::ok(name, line(&format!("2 MiB (shmem_enabled: {word})")));
            }
        };
        let file = match of_size {
            "never" if all != "deny" => format!("/{TRANSPARENT}/hugepages-2048kB/shmem_enabled"),
            _ => format!("/{TRANSPARENT}/shmem_enabled"),
        };
        Finding::note(name, line(&format!("4 KiB: {why}")))
            .machine_root(setting, format!("echo advise > {file}"))
            .run("export BUDDY_FORK=hide  # where no forked child reads pinned memory")
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Status;
    use super::*;

    fn judged(all: &str, of_size: Option<&str>, collapses: bool) -> (Status, String, String) {
        let shared = Shared {
            enabled: Some(all.into()),
            of_2_mib: of_size.map(Into::into),
        };
        let kernel = Kernel {
            release: None,
            populates: true,
            collapses,
        };
        let setting = Setting::read(&Files::below("/nowhere".as_ref()));
        let it = shared.finding(setting, &kernel, true);
        let fix = it.fixes.first().map_or("", |it| it.command.as_str());
        (it.status, it.value, fix.to_owned())
    }

    #[test]
    fn the_way_that_the_engine_takes_is_named_with_what_would_be_faster() {
        let cases = [
            ("never", Some("inherit"), true),
            ("never", None, false),
            ("advise", None, false),
            ("never", Some("always"), false),
            ("advise", Some("never"), true),
            ("deny", Some("inherit"), true),
        ];
        let lines = cases.map(|(all, of_size, collapses)| {
            let (status, value, fix) = judged(all, of_size, collapses);
            format!("{status:?}: {value} | {fix}.")
        });
        insta::assert_snapshot!(lines.join("\n"), @r"
        Ok: forked children read blocks; outside the pools, pages of 2 MiB, which MADV_COLLAPSE puts together | .
        Note: forked children read blocks; outside the pools, pages of 4 KiB: no MADV_COLLAPSE (6.1), and shmem_enabled is never | echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled.
        Ok: forked children read blocks; outside the pools, pages of 2 MiB (shmem_enabled: advise) | .
        Ok: forked children read blocks; outside the pools, pages of 2 MiB (shmem_enabled: always) | .
        Note: forked children read blocks; outside the pools, pages of 4 KiB: hugepages-2048kB/shmem_enabled is never | echo advise > /sys/kernel/mm/transparent_hugepage/hugepages-2048kB/shmem_enabled.
        Note: forked children read blocks; outside the pools, pages of 4 KiB: shmem_enabled is deny | echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled.
        ");
    }
}
