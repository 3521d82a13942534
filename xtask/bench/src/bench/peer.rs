//! The allocators that are compared, and the settings that make each of them what it is.
//!
//! Each is stock's or the fork's libtorch with an environment; the proposal's model is in the harness.

use super::place;

/// An allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// The official wheel's, as it comes.
    Stock,
    /// The same with all that its settings offer against rounding, slow pins and slow events.
    StockTuned,
    /// The same with memory reserved by the first request.
    Reserve,
    /// The proposal of pytorch/pytorch#181094, modelled in `tests/bench/buddy_181094.cpp`.
    Buddy181094,
    /// The fork, as it comes.
    Pinbuddy,
    /// The fork with no warm-up and growth by what is asked for.
    PinbuddyExact,
}

/// What pinned memory is in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Page-locked.
    Locked,
    /// In the simulator: counted, and not there. So any size fits any machine.
    Counted,
}

/// Variables of a process.
pub type Settings = Vec<(&'static str, String)>;

impl Peer {
    /// Those whose speed is compared; exact growth pins less, and is no faster or slower.
    pub const TIMED: [Self; 5] = [
        Self::Stock,
        Self::StockTuned,
        Self::Reserve,
        Self::Buddy181094,
        Self::Pinbuddy,
    ];
    /// All.
    pub const ALL: [Self; 6] = [
        Self::Stock,
        Self::StockTuned,
        Self::Reserve,
        Self::Buddy181094,
        Self::Pinbuddy,
        Self::PinbuddyExact,
    ];

    /// In tables, plots and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::StockTuned => "stock-tuned",
            Self::Reserve => "reserve",
            Self::Buddy181094 => "buddy-181094",
            Self::Pinbuddy => "pinbuddy",
            Self::PinbuddyExact => "pinbuddy-exact",
        }
    }

    /// Whether it is in the fork.
    pub fn is_fork(self) -> bool {
        matches!(self, Self::Pinbuddy | Self::PinbuddyExact)
    }

    /// What the harness calls it.
    pub fn argument(self) -> &'static str {
        match self {
            Self::Stock | Self::StockTuned | Self::Reserve => "stock",
            Self::Buddy181094 => "buddy-181094",
            Self::Pinbuddy | Self::PinbuddyExact => "fork",
        }
    }

    /// The variables that make it so.
    pub fn settings(self, memory: Memory) -> Settings {
        let counted = memory == Memory::Counted;
        let mut settings = Settings::new();
        let alloc_conf = match self {
            // Registering touches memory, which is to be counted only.
            Self::StockTuned if counted => Some(
                "pinned_max_round_threshold_mb:1,pinned_use_background_threads:True".to_owned(),
            ),
            Self::StockTuned => Some(format!(
                "pinned_max_round_threshold_mb:1,pinned_use_background_threads:True,\
                 pinned_use_cuda_host_register:True,pinned_num_register_threads:{}",
                place::cores().min(8).next_power_of_two()
            )),
            // As much as the others have ahead by default.
            Self::Reserve => Some("pinned_reserve_segment_size_mb:8192".to_owned()),
            _ => None,
        };
        settings.extend(alloc_conf.map(|it| ("PYTORCH_ALLOC_CONF", it)));
        if self == Self::PinbuddyExact {
            settings.push(("BUDDY_WARMUP", "off".to_owned()));
            settings.push(("BUDDY_GROWTH", "exact".to_owned()));
        }
        if counted {
            settings.push(("PINBUDDY_SIM_LOCK", "0".to_owned()));
            if self.is_fork() {
                // Memory of its own would be touched; and the machine's size is no matter.
                settings.push(("BUDDY_BACKING", "cuda".to_owned()));
                settings.push(("BUDDY_MAX_MB", "1000000".to_owned()));
            }
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_only_the_fork_has_its_settings() {
        let mut names = Peer::ALL.map(Peer::name).to_vec();
        names.dedup();
        assert_eq!(names.len(), Peer::ALL.len());
        for peer in Peer::ALL {
            let ours = |name: &str| name.starts_with("BUDDY_");
            let settings = peer.settings(Memory::Counted);
            assert_eq!(settings.iter().any(|(name, _)| ours(name)), peer.is_fork());
        }
        assert!(Peer::Stock.settings(Memory::Locked).is_empty());
        assert!(Peer::Pinbuddy.settings(Memory::Locked).is_empty());
    }
}
