//! The variables that say where page-locked memory comes from: which backing, which pages, which NUMA
//! node, how many threads. Values only; `backing` decides what the machine can do.

use serde::{Serialize, Serializer};

use super::parse::{self, number, word};
use super::{Reader, Setting, variables};
use std::ffi::OsString;

words! {
    /// Where the engine's regions come from.
    pub enum Way {
        /// `Pages` where that works, else `Cuda`.
        Auto = "auto",
        /// CUDA allocates them, as PyTorch's own settings ask.
        Cuda = "cuda",
        /// They are mapped here and registered with CUDA.
        Pages = "pages",
    }
}

words! {
    /// The largest pages that a region may have; each falls back to those after it.
    pub enum HugePages {
        /// As `Giant`, without a warning if larger pages are missing.
        Auto = "auto",
        /// Huge pages of 1 GiB from the system's pool.
        Giant = "1G",
        /// Huge pages of 2 MiB from the system's pool.
        Large = "2M",
        /// Ordinary memory that the kernel backs with huge pages where it can.
        Transparent = "thp",
        /// Pages of 4 KiB.
        Off = "off",
    }
}

/// The NUMA node that regions are to lie on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numa {
    /// Where the kernel puts them.
    Off,
    /// That of the device in use.
    Auto,
    /// This one.
    Node(u32),
}

words! {
    /// What children have of regions that are mapped here.
    pub enum Fork {
        /// The same memory, which they read and write as their parent does.
        Share = "share",
        /// Nothing: a child that touches them crashes.
        Hide = "hide",
    }
}

/// The settings of the memory itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Where regions come from.
    pub backing: Setting<Way>,
    /// Their pages.
    pub huge_pages: Setting<HugePages>,
    /// What children have of them.
    pub fork: Setting<Fork>,
    /// How many threads touch pages; by default it depends on the machine.
    pub pin_threads: Setting<Option<usize>>,
    /// Where they lie.
    pub numa: Setting<Numa>,
}

/// More threads do not help: the kernel zeroes pages no faster.
const MOST_THREADS: usize = 256;

impl Memory {
    pub(super) fn read<L: Fn(&str) -> Option<OsString>>(reader: &mut Reader<'_, L>) -> Self {
        Self {
            backing: reader
                .read(variables::BACKING, Way::Auto, |text| word(text, Way::WORDS, "is none of auto, cuda and pages")),
            huge_pages: reader.read(variables::HUGE_PAGES, HugePages::Auto, |text| {
                word(text, HugePages::WORDS, "is none of auto, off, thp, 2M and 1G")
            }),
            fork: reader
                .read(variables::FORK, Fork::Share, |text| word(text, Fork::WORDS, "is neither share nor hide")),
            pin_threads: reader.read(variables::PIN_THREADS, None, |text| match number(text)? {
                0 => Err("is zero, and somebody has to touch the pages"),
                many if many > MOST_THREADS => Err("is more than 256"),
                threads => Ok(Some(threads)),
            }),
            numa: reader.read(variables::NUMA, Numa::Off, |text| {
                let words = [("off", Numa::Off), ("auto", Numa::Auto)];
                let refusal = "is neither off, auto nor the number of a node";
                word(text, &words, refusal).or_else(|_| {
                    let node = number(text).map_err(|_| refusal)?;
                    Ok(Numa::Node(u32::try_from(node).map_err(|_| parse::TOO_LARGE)?))
                })
            }),
        }
    }
}

impl Serialize for Numa {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_str("off"),
            Self::Auto => serializer.serialize_str("auto"),
            Self::Node(node) => serializer.serialize_u32(*node),
        }
    }
}
