//! The compared allocators and their settings.
//!
//! Each is stock's or the fork's libtorch with some variables; the proposal's model is in the harness.

use super::environments;

/// An allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The official wheel, with its defaults.
    Stock,
    /// Stock with all settings against rounding, slow pins and slow events.
    StockTuned,
    /// Stock with memory reserved by the first request.
    Reserve,
    /// The proposal of pytorch/pytorch#181094, modelled in `tests/bench/buddy_181094.cpp`.
    Buddy181094,
    /// The fork, with its defaults.
    Pinbuddy,
    /// The fork with no warm-up and exact growth.
    PinbuddyExact,
    /// The fork with a plan of an earlier run ([`super::planned`]).
    PinbuddyPlan,
}

/// The kind of pinned memory in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Page-locked.
    Locked,
    /// Only counted by the simulator, so that any size fits any machine.
    Counted,
}

/// Environment variables of a process.
pub type Settings = Vec<(&'static str, String)>;

impl Subject {
    /// The allocators whose speed is compared. Exact growth pins less, but its speed is the same; plans have a part of
    /// their own.
    pub const TIMED: [Self; 5] = [
        Self::Stock,
        Self::StockTuned,
        Self::Reserve,
        Self::Buddy181094,
        Self::Pinbuddy,
    ];
    /// All.
    pub const ALL: [Self; 7] = [
        Self::Stock,
        Self::StockTuned,
        Self::Reserve,
        Self::Buddy181094,
        Self::Pinbuddy,
        Self::PinbuddyExact,
        Self::PinbuddyPlan,
    ];

    /// Its name in tables, plots and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::StockTuned => "stock-tuned",
            Self::Reserve => "reserve",
            Self::Buddy181094 => "buddy-181094",
            Self::Pinbuddy => "pinbuddy",
            Self::PinbuddyExact => "pinbuddy-exact",
            Self::PinbuddyPlan => "pinbuddy-plan",
        }
    }

    /// Whether it uses the fork.
    pub fn is_fork(self) -> bool {
        matches!(
            self,
            Self::Pinbuddy | Self::PinbuddyExact | Self::PinbuddyPlan
        )
    }

    /// Its name in the harness.
    pub fn argument(self) -> &'static str {
        match self {
            Self::Stock | Self::StockTuned | Self::Reserve => "stock",
            Self::Buddy181094 => "buddy-181094",
            Self::Pinbuddy | Self::PinbuddyExact | Self::PinbuddyPlan => "fork",
        }
    }

    /// Its variables.
    pub fn settings(self, memory: Memory) -> Settings {
        let counted = memory == Memory::Counted;
        let mut settings = Settings::new();
        let alloc_conf = match self {
            // Registering would touch memory that is only counted.
            Self::StockTuned if counted => Some(
                "pinned_max_round_threshold_mb:1,pinned_use_background_threads:True".to_owned(),
            ),
            Self::StockTuned => Some(format!(
                "pinned_max_round_threshold_mb:1,pinned_use_background_threads:True,\
                 pinned_use_cuda_host_register:True,pinned_num_register_threads:{}",
                environments::cores().min(8).next_power_of_two()
            )),
            // As much as the others pin ahead by default.
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
                // Mapped memory would be touched, and the budget would be the machine's.
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
    fn the_document_explains_each() {
        let page = xtask_support::paths::root().join("docs/bench.md");
        let page = std::fs::read_to_string(page).unwrap();
        for subject in Subject::ALL {
            // As plots name it, and in JSON.
            let (name, shown) = (subject.name(), super::super::plot::shown(subject.name()));
            let row = match shown == name {
                true => format!("\n| {name} |"),
                false => format!("\n| {shown} (`{name}`) |"),
            };
            assert!(page.contains(&row), "docs/bench.md has no {row:?}");
        }
    }

    #[test]
    fn names_differ_and_only_the_fork_has_its_settings() {
        let mut names = Subject::ALL.map(Subject::name).to_vec();
        names.dedup();
        assert_eq!(names.len(), Subject::ALL.len());
        for subject in Subject::ALL {
            let ours = |name: &str| name.starts_with("BUDDY_");
            let settings = subject.settings(Memory::Counted);
            assert_eq!(
                settings.iter().any(|(name, _)| ours(name)),
                subject.is_fork()
            );
        }
        assert!(Subject::Stock.settings(Memory::Locked).is_empty());
        assert!(Subject::Pinbuddy.settings(Memory::Locked).is_empty());
    }
}
