//! The C++ side of the bridge under sanitizers: ThreadSanitizer, and AddressSanitizer with
//! UndefinedBehaviorSanitizer.
//!
//! Twice. By itself (`units`), with `tests/sanitize/stand-in` for torch, CUDA and Rust, all of it instrumented: there
//! the defects of `tests/sanitize/defects.toml` have to be found. And as the library that people get (`library`), under
//! real torch in the simulator, where only our C++ is instrumented. Knows no command line.

mod compile;
mod defects;
mod library;
mod program;
mod suppressions;
mod units;

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::support::tally::Tally;
use program::Run;

/// What looks on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sanitizer {
    /// ThreadSanitizer: races.
    Thread,
    /// AddressSanitizer and UndefinedBehaviorSanitizer: memory that is not one's own, and what C++ leaves undefined.
    Address,
}

impl Sanitizer {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Thread, Self::Address];

    /// As `defects.toml` and file names have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Address => "address",
        }
    }

    /// How to have what g++ links with.
    fn remedy(self) -> &'static str {
        match self {
            Self::Thread => {
                "apt-get install libgcc-$(g++ -dumpversion)-dev, or dnf install libtsan"
            }
            Self::Address => {
                "apt-get install libgcc-$(g++ -dumpversion)-dev, or dnf install libasan libubsan"
            }
        }
    }

    /// What the compiler and the linker are told.
    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Thread => &["-fsanitize=thread"],
            Self::Address => &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
        }
    }
}

/// What was run, and what it found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Runs of programs that ended well.
    pub programs: u64,
    /// Seeded defects that were found.
    pub defects: u64,
    /// Runs under real torch that ended well.
    pub library: u64,
}

/// A row of `cargo xtask test`: each program and each defect once.
pub fn quick() -> Result<Tally> {
    let looked = thread::scope(|scope| {
        let both = Sanitizer::ALL.map(|it| scope.spawn(move || units::once(it, Run::Short)));
        both.map(|it| {
            it.join()
                .unwrap_or_else(|_| Err(anyhow!("a thread panicked")))
        })
    });
    let mut tally = Tally::default();
    for it in looked {
        let it = it?;
        tally.passed += usize::try_from(it.programs + it.defects)?;
    }
    Ok(tally)
}

/// A row of `cargo xtask test --nightly`: the library under real torch.
pub fn nightly() -> Result<Tally> {
    let mut tally = Tally::default();
    let (only, seconds) = (
        env::var("PINBUDDY_SANITIZER"),
        env::var("PINBUDDY_SANITIZE_SECONDS"),
    );
    for sanitizer in Sanitizer::ALL {
        if only.as_ref().is_ok_and(|name| name != sanitizer.name()) {
            continue;
        }
        tally.passed += usize::try_from(match &seconds {
            Ok(seconds) => {
                let looked = long(sanitizer, seconds.parse()?)?;
                looked.programs + looked.defects + looked.library
            }
            Err(_) => library::once(sanitizer, 1)?,
        })?;
    }
    Ok(tally)
}

/// `ci/explore.sh tsan asan`: both ways for as many seconds each, with another seed each time.
fn long(sanitizer: Sanitizer, seconds: u64) -> Result<Looked> {
    let mut looked = units::once(sanitizer, Run::Short)?;
    let start = Instant::now();
    for seed in 2.. {
        if start.elapsed() > Duration::from_secs(seconds) {
            break;
        }
        looked.programs += units::programs(sanitizer, Run::Long(seed))?;
    }
    let start = Instant::now();
    for seed in 1.. {
        looked.library += library::once(sanitizer, seed)?;
        if start.elapsed() > Duration::from_secs(seconds) {
            break;
        }
    }
    Ok(looked)
}
