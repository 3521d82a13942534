//! Memory that forked children share, which blocks are made of, and whether it gets huge pages.
//!
//! The rule is the engine's, [`How`]: huge pages at the first touch if `shmem_enabled` allows them, else by collapsing, else none.

use serde::Serialize;

use super::finding::Finding;
use super::kernel::Kernel;
use super::setting::Setting;
use crate::show::size;
use pinbuddy_machine::{
    Files, Shared as How, TRANSPARENT, huge_page_bytes, page_bytes, shared_of_size, transparent_mode,
};

/// The settings that decide.
#[derive(Debug, Serialize)]
pub(super) struct Shared {
    /// `shmem_enabled`: `always`, `within_size`, `advise`, `never`, `deny` or `force`.
    pub enabled: Option<String>,
    /// The same for huge pages of the machine's size only, on newer kernels; `inherit` means the former.
    pub of_size: Option<String>,
    /// The size of the machine's pages in bytes.
    pub page_bytes: u64,
    /// That of its huge pages.
    pub huge_page_bytes: u64,
}

impl Shared {
    /// Reads them.
    pub(super) fn read(files: &Files) -> Self {
        let page = page_bytes(files);
        let huge = huge_page_bytes(files, page);
        Self {
            enabled: transparent_mode(files, "shmem_enabled"),
            of_size: transparent_mode(files, &shared_of_size(huge)),
            page_bytes: page as u64,
            huge_page_bytes: huge as u64,
        }
    }

    /// Judges the settings. `transparent`: whether the kernel gives huge pages to programs that ask.
    pub(super) fn finding(&self, setting: Setting, kernel: &Kernel, transparent: bool) -> Finding {
        let name = "shared";
        let (page, huge) = (size(self.page_bytes), size(self.huge_page_bytes));
        let own = shared_of_size(self.huge_page_bytes as usize);
        let line = |how: &str| format!("forked children read blocks; outside the pools, pages of {how}");
        if !transparent {
            let how = format!("{page}: there are no transparent huge pages");
            return Finding::ok(name, line(&how));
        }
        let (all, of_size) = (self.enabled.as_deref(), self.of_size.as_deref());
        let (why, file) = match How::of(all, of_size, kernel.collapses) {
            How::Collapsed => {
                let how = format!("{huge}, which MADV_COLLAPSE puts together");
                return Finding::ok(name, line(&how));
            }
            How::Touched => {
                let word = of_size.filter(|it| *it != "inherit").or(all);
                let how = format!("{huge} (shmem_enabled: {})", word.unwrap_or_default());
                return Finding::ok(name, line(&how));
            }
            How::TooOld => ("no MADV_COLLAPSE (6.1), and shmem_enabled is never".to_owned(), "shmem_enabled"),
            How::Denied if all == Some("deny") => ("shmem_enabled is deny".to_owned(), "shmem_enabled"),
            How::Denied => (format!("{own} is never"), &*own),
        };
        Finding::note(name, line(&format!("{page}: {why}")))
            .machine_root(setting, format!("echo advise > /{TRANSPARENT}/{file}"))
            .run("export BUDDY_FORK=hide  # where no forked child reads pinned memory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its status, what it says, and what it offers.
    fn judged(shared: &Shared, collapses: bool) -> String {
        let kernel = Kernel { release: None, populates: true, collapses };
        let setting = Setting::read(&Files::below("/nowhere".as_ref()));
        let it = shared.finding(setting, &kernel, true);
        let fix = it.fixes.first().map_or("", |it| it.command.as_str());
        format!("{:?}: {} | {fix}.", it.status, it.value)
    }

    /// A kernel of aarch64 with pages of 64 KiB.
    #[test]
    fn sizes_are_the_machines() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/self/smaps", "KernelPageSize:       64 kB\n");
        write(&format!("{TRANSPARENT}/hpage_pmd_size"), "536870912\n");
        let files = Files::below(folder.path());
        let finding = |own: &str, other: &str| {
            for (kib, text) in [(524_288, own), (2048, other)] {
                let file = format!("{TRANSPARENT}/hugepages-{kib}kB/shmem_enabled");
                write(&file, text);
            }
            judged(&Shared::read(&files), true)
        };
        let lines = [finding("always [never]", "[always] never"), finding("[inherit] never", "always [never]")];
        insta::assert_snapshot!(lines.join("\n"), @r"
        Note: forked children read blocks; outside the pools, pages of 64 KiB: hugepages-524288kB/shmem_enabled is never | echo advise > /sys/kernel/mm/transparent_hugepage/hugepages-524288kB/shmem_enabled.
        Ok: forked children read blocks; outside the pools, pages of 512 MiB, which MADV_COLLAPSE puts together | .
        ");
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
            let (enabled, of_size) = (Some(all.into()), of_size.map(Into::into));
            judged(&Shared { enabled, of_size, page_bytes: 4 << 10, huge_page_bytes: 2 << 20 }, collapses)
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
