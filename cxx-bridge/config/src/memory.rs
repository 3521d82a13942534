//! The variables that say where page-locked memory comes from: which backing, which pages, which NUMA
//! node, how many threads. Values only; `backing` decides what the machine can do.

use serde::{Serialize, Serializer};

use super::parse::{self, number, word};
use super::{Reader, Setting, variables};
use std::ffi::OsString;

/// Where the engine's regions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// `Pages` where that works, else `Cuda`.
    Auto,
    /// CUDA allocates them, as PyTorch's own settings ask.
    Cuda,
    /// They are mapped here and registered with CUDA.
    Pages,
}

/// The largest pages that a region may have; each falls back to those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum HugePages {
    /// As `Giant`, without a warning if larger pages are missing.
    #[serde(rename = "auto")]
    Auto,
    /// Huge pages of 1 GiB from the system's pool.
    #[serde(rename = "1G")]
    Giant,
    /// Huge pages of 2 MiB from the system's pool.
    #[serde(rename = "2M")]
    Large,
    /// Ordinary memory that the kernel backs with huge pages where it can.
    #[serde(rename = "thp")]
    Transparent,
    /// Pages of 4 KiB.
    #[serde(rename = "off")]
    Off,
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

/// What children have of regions that are mapped here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fork {
    /// The same memory, which they read and write as their parent does.
    Share,
    /// Nothing: a child that touches them crashes.
    Hide,
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
            backing: reader.read(variables::BACKING, Way::Auto, |text| {
                let words = [
                    ("auto", Way::Auto),
                    ("cuda", Way::Cuda),
                    ("pages", Way::Pages),
                ];
                word(text, &words, "is none of auto, cuda and pages")
            }),
            huge_pages: reader.read(variables::HUGE_PAGES, HugePages::Auto, |text| {
                let words = [
                    ("auto", HugePages::Auto),
                    ("off", HugePages::Off),
                    ("thp", HugePages::Transparent),
                    ("2m", HugePages::Large),
                    ("1g", HugePages::Giant),
                ];
                word(text, &words, "is none of auto, off, thp, 2M and 1G")
            }),
            fork: reader.read(variables::FORK, Fork::Share, |text| {
                let words = [("share", Fork::Share), ("hide", Fork::Hide)];
                word(text, &words, "is neither share nor hide")
            }),
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
                    Ok(Numa::Node(
                        u32::try_from(node).map_err(|_| parse::TOO_LARGE)?,
                    ))
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
