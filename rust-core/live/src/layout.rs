//! Pages as words of 64 bits, in the machine's own byte order: writer and reader are on one machine.

use std::array;

use thiserror::Error;

use super::{Budget, Counters, NodeUse, Page, Process};

/// The name of the file that a page is in. It has no path: `/proc/PID/fd` shows it.
pub const NAME: &str = "pinbuddy-live";

/// The version of the layout.
pub const VERSION: u64 = 1;

/// How many words a page has.
pub const WORDS: usize = NODES_FROM + MOST_NODES * OF_NODE;

/// Of how many nodes a page has room for the memory.
pub const MOST_NODES: usize = 16;

/// How long the file is, in bytes.
pub const LENGTH: usize = 4096;

/// Which word is the sequence: odd while others are written, and changed by each write.
pub const SEQUENCE: usize = 2;

const MAGIC: u64 = u64::from_ne_bytes(*b"pinbuddy");

/// Words of the program's name.
const NAME_FROM: usize = 32;
const NAME_BYTES: usize = (NODES_FROM - NAME_FROM) * 8;

/// Words of nodes: for each its number and one more, so that 0 is none, and its memory.
const NODES_FROM: usize = 40;
const OF_NODE: usize = 3;

/// No number: no rank, no device.
const NONE: u64 = u64::MAX;

/// More than any machine has: a reader takes no number beyond.
pub const MOST_BYTES: u64 = 1 << 52;

/// Why bytes are no page.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Fault {
    /// Not even its beginning.
    #[error("expected a page of {LENGTH} bytes, found {0}")]
    Short(usize),
    /// Something else.
    #[error("expected a page that begins with \"pinbuddy\", found something else")]
    Foreign,
    /// Another layout.
    #[error(
        "expected version {VERSION} of the live page, found version {0}: the process has another release of pinbuddy; use \
         the `pinbuddy` that belongs to it"
    )]
    Version(u64),
    /// It is being written, or the writer was killed meanwhile.
    #[error("expected a whole page, found one that is being written")]
    Torn,
    /// A number that cannot be.
    #[error("expected {what}, found {found}: something else has written to the page")]
    Absurd {
        /// What should be there.
        what: &'static str,
        /// What is.
        found: u64,
    },
}

impl Page {
    /// As words; that of the sequence is 0, and the writer's.
    pub fn words(&self) -> [u64; WORDS] {
        let (it, of) = (&self.process, &self.counters);
        let (rank, ranks) = it.rank.map_or((NONE, NONE), |(rank, of)| (rank.into(), of.into()));
        let (limited, budget) = match of.budget {
            Budget::Unknown => (0, 0),
            Budget::Bytes(bytes) => (1, bytes),
            Budget::Unlimited => (2, 0),
        };
        let fixed = [
            MAGIC,
            VERSION,
            0,
            it.pid.into(),
            it.since,
            self.updated,
            rank,
            ranks,
            it.device.map_or(NONE, u64::from),
            of.retired.into(),
            of.pinned,
            of.peak_pinned,
            of.live,
            of.pending,
            limited,
            budget,
            of.segments,
            of.served,
            of.misses,
            of.planned,
            of.unplanned,
            of.waits,
            of.waited,
        ];
        let mut name = [0; NAME_BYTES];
        let shown = shorten(&it.program).as_bytes();
        name[..shown.len()].copy_from_slice(shown);
        let name = name.chunks_exact(8).map(word);
        let nodes = self.nodes.iter().take(MOST_NODES);
        let nodes = nodes.flat_map(|it| [u64::from(it.node) + 1, it.pinned, it.used]);
        let mut words = [0; WORDS];
        words[..fixed.len()].copy_from_slice(&fixed);
        put(&mut words[NAME_FROM..], name);
        put(&mut words[NODES_FROM..], nodes);
        words
    }

    /// What a file has, that was read while nobody wrote.
    ///
    /// # Errors
    ///
    /// Why it is no page.
    pub fn read(bytes: &[u8]) -> Result<Self, Fault> {
        if bytes.len() < WORDS * 8 {
            return Err(Fault::Short(bytes.len()));
        }
        let at = |index: usize| word(&bytes[index * 8..index * 8 + 8]);
        let [magic, version, sequence] = array::from_fn(at);
        if magic != MAGIC {
            return Err(Fault::Foreign);
        }
        if version != VERSION {
            return Err(Fault::Version(version));
        }
        if sequence % 2 == 1 {
            return Err(Fault::Torn);
        }
        let name = &bytes[NAME_FROM * 8..NODES_FROM * 8];
        let page = Self {
            process: Process {
                pid: number(at(3), "the id of a process")?,
                rank: rank(at(6), at(7))?,
                device: match at(8) {
                    NONE => None,
                    device => Some(number(device, "the number of a device")?),
                },
                program: shown(name),
                since: at(4),
            },
            updated: at(5),
            counters: Counters {
                retired: at(9) != 0,
                pinned: size(at(10))?,
                peak_pinned: size(at(11))?,
                live: size(at(12))?,
                pending: size(at(13))?,
                budget: match at(14) {
                    0 => Budget::Unknown,
                    1 => Budget::Bytes(size(at(15))?),
                    2 => Budget::Unlimited,
                    found => return absurd("a kind of budget, 0 to 2", found),
                },
                segments: at(16),
                served: at(17),
                misses: at(18),
                planned: at(19),
                unplanned: at(20),
                waits: at(21),
                waited: at(22),
            },
            nodes: nodes(at)?,
        };
        let of = &page.counters;
        if of.live + of.pending > of.pinned {
            return absurd("no more live and pending than pinned", of.live + of.pending);
        }
        Ok(page)
    }
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}

fn absurd<T>(what: &'static str, found: u64) -> Result<T, Fault> {
    Err(Fault::Absurd { what, found })
}

fn number(found: u64, what: &'static str) -> Result<u32, Fault> {
    u32::try_from(found).or(absurd(what, found))
}

fn size(found: u64) -> Result<u64, Fault> {
    if found > MOST_BYTES {
        return absurd("a number of bytes that a machine can have", found);
    }
    Ok(found)
}

fn put(to: &mut [u64], words: impl Iterator<Item = u64>) {
    for (to, word) in to.iter_mut().zip(words) {
        *to = word;
    }
}

fn nodes(at: impl Fn(usize) -> u64) -> Result<Vec<NodeUse>, Fault> {
    let mut nodes = Vec::new();
    for from in (NODES_FROM..WORDS).step_by(OF_NODE) {
        let Some(node) = at(from).checked_sub(1) else {
            continue;
        };
        let (pinned, used) = (size(at(from + 1))?, size(at(from + 2))?);
        if used > pinned {
            return absurd("no more of a node in use than pinned", used);
        }
        let node = number(node, "the number of a node")?;
        nodes.push(NodeUse { node, pinned, used });
    }
    Ok(nodes)
}

fn rank(rank: u64, of: u64) -> Result<Option<(u32, u32)>, Fault> {
    if rank == NONE {
        return Ok(None);
    }
    if rank >= of {
        return absurd("a rank below the number of ranks", rank);
    }
    Ok(Some((number(rank, "a rank")?, number(of, "a number of ranks")?)))
}

/// As much of a name as there is room for.
fn shorten(name: &str) -> &str {
    let mut end = name.len().min(NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Text that a terminal shows as it is.
fn shown(name: &[u8]) -> String {
    let end = name.iter().position(|it| *it == 0).unwrap_or(name.len());
    let printable = |it: char| if it.is_control() { '?' } else { it };
    String::from_utf8_lossy(&name[..end]).chars().map(printable).collect()
}
