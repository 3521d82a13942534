//! Host memory to register: 4 KiB pages, private huge pages and shared huge pages, all of them touched.
//!
//! Shared huge pages work whatever /sys says of shared memory, unless it says `deny`: one byte is touched in each 2 MiB, and the
//! kernel is told to collapse them (Linux 6.1 and later).

use std::io;
use std::path::Path;
use std::ptr;
use std::thread;

use pinbuddy_machine::{Cgroup, Files, Limits};

use crate::driver::{Result, unavailable};

pub const MIB: usize = 1 << 20;
pub const GIB: usize = 1 << 30;
const HUGE: usize = 2 * MIB;
const MOST_THREADS: usize = 8;
const TRIES: usize = 5;
/// One of so many parts of the free memory may be pinned; the rest is left for other programs.
const SHARE: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    pub name: &'static str,
    pub huge: bool,
    shared: bool,
}

impl Kind {
    pub const SHARED_HUGE: Self = Self::new("shared huge pages", true, true);
    pub const PRIVATE_HUGE: Self = Self::new("private huge pages", true, false);
    pub const SMALL: Self = Self::new("4 KiB pages", false, false);
    pub const SHARED_SMALL: Self = Self::new("shared 4 KiB pages", false, true);
    pub const ALL: [Self; 4] = [Self::SHARED_HUGE, Self::PRIVATE_HUGE, Self::SMALL, Self::SHARED_SMALL];

    const fn new(name: &'static str, huge: bool, shared: bool) -> Self {
        Self { name, huge, shared }
    }

    /// The first that can be had here: an old or emulated kernel cannot collapse.
    pub fn best() -> Result<Self> {
        let found = Self::ALL.into_iter().find(|kind| Region::new(*kind, HUGE).is_ok());
        found.map_or_else(|| unavailable("no memory of any kind can be had"), Ok)
    }
}

/// Mapped memory, aligned to a huge page; unmapped when dropped.
pub struct Region {
    pub address: usize,
    pub size: usize,
    pub kind: Kind,
    whole: (usize, usize),
}

impl Region {
    /// With every page there.
    pub fn new(kind: Kind, size: usize) -> Result<Self> {
        if size > room() {
            return unavailable(format!("{} MiB is more than a {SHARE}rd of the memory that is free", size / MIB));
        }
        let region = Self::mapped(kind, size)?;
        match region.fill() {
            Ok(()) => Ok(region),
            Err(error) => unavailable(format!("{} cannot be had: {error}", kind.name)),
        }
    }

    fn mapped(kind: Kind, size: usize) -> Result<Self> {
        let private = libc::MAP_PRIVATE | libc::MAP_NORESERVE;
        let start = map(0, size + HUGE, private, libc::PROT_NONE)?;
        let (address, whole) = (start.next_multiple_of(HUGE), (start, size + HUGE));
        let region = Self { address, size, kind, whole };
        // Mapped again at an aligned address: the kernel collapses shared memory only if its own offset is aligned, too.
        let sharing = if kind.shared { libc::MAP_SHARED } else { private };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        map(address, size, sharing | libc::MAP_FIXED, access)?;
        Ok(region)
    }

    /// With as many threads as are useful.
    fn fill(&self) -> io::Result<()> {
        let pages = self.size.div_ceil(HUGE);
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let count = MOST_THREADS.min(cores).min(pages).max(1);
        let border = |at: usize| self.address + self.size.min(pages * at / count * HUGE);
        thread::scope(|scope| {
            let parts = (0..count).map(|at| scope.spawn(move || fill(self.kind, border(at), border(at + 1))));
            let parts: Vec<_> = parts.collect();
            parts
                .into_iter()
                .try_for_each(|it| it.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))))
        })
    }

    /// How much of it is mapped in huge pages, according to the kernel.
    pub fn huge(&self) -> f64 {
        let smaps = Files::below(Path::new("/")).text("proc/self/smaps").unwrap_or_default();
        let (mut found, mut inside) = (0_usize, false);
        for line in smaps.lines() {
            let mut words = line.split_whitespace();
            let head = words.next().unwrap_or_default();
            if let Some((low, high)) = head.split_once('-') {
                let [low, high] = [low, high].map(|it| usize::from_str_radix(it, 16).unwrap_or(0));
                inside = low < self.address + self.size && high > self.address;
            } else if inside && matches!(head, "AnonHugePages:" | "ShmemPmdMapped:") {
                found += words.next().and_then(|it| it.parse().ok()).unwrap_or(0) * 1024;
            }
        }
        // The kernel may have merged a neighbour of the same kind into the area.
        (found as f64 / self.size as f64).min(1.0)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range is this region's alone.
        unsafe { libc::munmap(ptr::with_exposed_provenance_mut(self.whole.0), self.whole.1) };
    }
}

/// `1024 MiB of 4 KiB pages`.
pub fn on(size: usize, kind: Kind) -> String {
    format!("{} MiB of {}", size / MIB, kind.name)
}

/// Bytes that may be pinned without harm to other programs.
pub fn room() -> usize {
    let limits = Limits::read(&Files::below(Path::new("/")));
    let cgroup = limits.cgroup.as_ref().map(Cgroup::left);
    let least = limits.available.into_iter().chain(cgroup).min();
    usize::try_from(least.unwrap_or(u64::MAX) / SHARE).unwrap_or(usize::MAX)
}

fn fill_with(address: usize, byte: u8, size: usize) {
    // SAFETY: questions write only where they have mapped at least so much, and nothing else uses it meanwhile.
    unsafe { ptr::write_bytes(ptr::with_exposed_provenance_mut::<u8>(address), byte, size) }
}

fn map(address: usize, size: usize, flags: i32, protection: i32) -> Result<usize> {
    let flags = flags | libc::MAP_ANONYMOUS;
    let at = ptr::with_exposed_provenance_mut(address);
    // SAFETY: a new range, or one that was just mapped for this.
    let found = unsafe { libc::mmap(at, size, protection, flags, -1, 0) };
    if found == libc::MAP_FAILED {
        let why = io::Error::last_os_error();
        return unavailable(format!("no {} MiB can be mapped: {why}", size / MIB));
    }
    Ok(found.expose_provenance())
}

fn advise(low: usize, high: usize, advice: i32) -> io::Result<()> {
    // SAFETY: the advice changes no byte of this region.
    match unsafe { libc::madvise(ptr::with_exposed_provenance_mut(low), high - low, advice) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn fill(kind: Kind, low: usize, high: usize) -> io::Result<()> {
    if kind == Kind::SHARED_HUGE {
        return collapse(low, high);
    }
    let pages = if kind.huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
    advise(low, high, pages)?;
    if advise(low, high, libc::MADV_POPULATE_WRITE).is_err() {
        // Before Linux 5.14.
        fill_with(low, 1, high - low);
    }
    Ok(())
}

fn collapse(low: usize, high: usize) -> io::Result<()> {
    for page in (low..high).step_by(HUGE) {
        fill_with(page, 1, 1);
    }
    for _ in 1..TRIES {
        match advise(low, high, libc::MADV_COLLAPSE) {
            // A page was busy, or no huge page was free, and one may be free now.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM)) => {}
            other => return other,
        }
    }
    advise(low, high, libc::MADV_COLLAPSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_region_can_be_written_and_read() {
        for kind in [Kind::SMALL, Kind::SHARED_SMALL, Kind::PRIVATE_HUGE] {
            let region = Region::new(kind, 3 * HUGE).unwrap();
            assert!(region.address.is_multiple_of(HUGE));
            fill_with(region.address, 7, region.size);
            let start = ptr::with_exposed_provenance::<u8>(region.address);
            // SAFETY: the region is mapped, and nothing else uses it.
            let seen = unsafe { std::slice::from_raw_parts(start, region.size) };
            assert!(seen.iter().all(|it| *it == 7), "{kind:?}");
            assert!(kind.huge || region.huge() == 0.0, "{}", region.huge());
        }
    }

    #[test]
    fn more_than_a_third_of_the_free_memory_is_refused() {
        let Err(failure) = Region::new(Kind::SMALL, room() * 2) else { panic!("it was mapped") };
        assert!(failure.to_string().contains("more than a 3rd"), "{failure}");
    }
}
