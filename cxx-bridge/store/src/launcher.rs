//! What the launcher says of this process: how many processes it started, here and on all machines, this one's rank, and its role on
//! its machine.
//!
//! Ranks that behave alike share one plan, also if there are thousands of them. The first process of a machine differs from the
//! others: it gathers, logs, writes checkpoints and loads data for them, all of which pins memory. So there are two roles. Of
//! device memory each process of a machine has a plan of its own: it has another GPU, or another part of a pipeline.
//! Knows no policy; a value that is no number counts as unset.

use serde::{Deserialize, Serialize};

/// The variables of a launcher.
struct Launcher {
    rank: &'static str,
    all: &'static str,
    local_rank: &'static str,
    here: &'static str,
}

/// torchrun, Open MPI, Intel MPI and Slurm.
const LAUNCHERS: [Launcher; 4] = [
    Launcher { rank: "RANK", all: "WORLD_SIZE", local_rank: "LOCAL_RANK", here: "LOCAL_WORLD_SIZE" },
    Launcher {
        rank: "OMPI_COMM_WORLD_RANK",
        all: "OMPI_COMM_WORLD_SIZE",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
        here: "OMPI_COMM_WORLD_LOCAL_SIZE",
    },
    Launcher { rank: "PMI_RANK", all: "PMI_SIZE", local_rank: "MPI_LOCALRANKID", here: "MPI_LOCALNRANKS" },
    Launcher { rank: "SLURM_PROCID", all: "SLURM_NTASKS", local_rank: "SLURM_LOCALID", here: "SLURM_NTASKS_PER_NODE" },
];

/// What a process does among those of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The first process of its machine, or the only one.
    First,
    /// Any other.
    Other,
}

/// What decides which plan a process shares with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// How many processes work together.
    pub world_size: usize,
    /// This one's role.
    pub role: Role,
    /// Its number among those of its machine.
    pub local_rank: usize,
}

impl Launch {
    /// Of a process with these variables.
    pub fn of(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let all = |it: &Launcher| number(&lookup, it.all);
        let local_rank = |it: &Launcher| number(&lookup, it.local_rank);
        let world_size = LAUNCHERS.iter().find_map(all).unwrap_or(1).max(1);
        let local_rank = LAUNCHERS.iter().find_map(local_rank).filter(|_| world_size > 1).unwrap_or(0);
        let role = match local_rank {
            0 => Role::First,
            _ => Role::Other,
        };
        Self { world_size, role, local_rank }
    }
}

/// How many processes were started on this machine, and the variable that says so.
pub fn processes() -> Option<(usize, &'static str)> {
    processes_of(|name| std::env::var(name).ok())
}

/// This process's rank among all that were started, on all machines; `None` if it is the only one.
pub fn rank() -> Option<usize> {
    Some(rank_of_all()?.0)
}

/// The same, and how many were started.
pub fn rank_of_all() -> Option<(usize, usize)> {
    rank_of(|name| std::env::var(name).ok())
}

/// Whether this is a process of the first machine, where ranks are the same as among all.
pub fn is_on_first_machine() -> bool {
    is_first(|name| std::env::var(name).ok())
}

fn is_first(lookup: impl Fn(&str) -> Option<String>) -> bool {
    rank_of(&lookup).is_none_or(|(rank, _)| rank == Launch::of(&lookup).local_rank)
}

fn processes_of(lookup: impl Fn(&str) -> Option<String>) -> Option<(usize, &'static str)> {
    let said = |it: &Launcher| Some((number(&lookup, it.here)?, it.here));
    let mut all = LAUNCHERS.iter().filter_map(said);
    all.find(|(count, _)| *count > 0)
}

fn rank_of(lookup: impl Fn(&str) -> Option<String>) -> Option<(usize, usize)> {
    let said = |it: &Launcher| Some((number(&lookup, it.rank)?, number(&lookup, it.all)?));
    let (rank, of) = LAUNCHERS.iter().find_map(said)?;
    (rank < of && of > 1).then_some((rank, of))
}

fn number(lookup: impl Fn(&str) -> Option<String>, name: &str) -> Option<usize> {
    lookup(name)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks a variable up among these.
    fn among<'a>(set: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| {
            let (_, value) = set.iter().find(|(it, _)| *it == name)?;
            Some((*value).to_owned())
        }
    }

    #[test]
    fn every_launcher_is_heard_and_nonsense_is_not() {
        let of = |name, value| processes_of(among(&[(name, value)]));
        for it in &LAUNCHERS {
            assert_eq!(of(it.here, " 8 "), Some((8, it.here)));
            let set = [(it.rank, "5"), (it.all, "16"), (it.local_rank, "1")];
            assert_eq!(rank_of(among(&set)), Some((5, 16)));
            assert_eq!(role(&set), (16, Role::Other));
        }
        for nonsense in ["0", "-1", "", "many"] {
            assert_eq!(of("LOCAL_WORLD_SIZE", nonsense), None);
        }
    }

    #[test]
    fn a_rank_is_one_of_several() {
        let of = |rank, size| rank_of(among(&[("RANK", rank), ("WORLD_SIZE", size)]));
        assert_eq!(of("3", "8"), Some((3, 8)));
        assert_eq!(of("0", "2"), Some((0, 2)));
        for (rank, size) in [("0", "1"), ("8", "8"), ("x", "8"), ("3", "")] {
            assert_eq!(of(rank, size), None, "{rank} of {size}");
        }
        assert_eq!(rank_of(among(&[("RANK", "3")])), None);
    }

    #[test]
    fn ranks_of_the_first_machine_are_known_though_nobody_says_how_many_there_are() {
        let first = |rank, local_rank| {
            let of_all = [("SLURM_PROCID", rank), ("SLURM_NTASKS", "16"), ("SLURM_LOCALID", local_rank)];
            is_first(among(&of_all))
        };
        assert_eq!(
            [("0", "0"), ("7", "7"), ("8", "0"), ("15", "7")].map(|(a, b)| first(a, b)),
            [true, true, false, false]
        );
        assert!(is_first(among(&[])));
    }

    fn role(set: &[(&str, &str)]) -> (usize, Role) {
        let Launch { world_size, role, .. } = Launch::of(among(set));
        (world_size, role)
    }

    #[test]
    fn ranks_of_a_machine_have_two_roles_and_a_process_alone_is_the_first() {
        for (size, rank, expected) in [
            ("16", "0", (16, Role::First)),
            ("16", "1", (16, Role::Other)),
            ("16", "7", (16, Role::Other)),
            ("", "3", (1, Role::First)),
            ("many", "x", (1, Role::First)),
            ("0", "", (1, Role::First)),
        ] {
            let set = [("WORLD_SIZE", size), ("LOCAL_RANK", rank)];
            assert_eq!(role(&set), expected, "{rank} of {size}");
        }
        assert_eq!(role(&[]), (1, Role::First));
    }
}
