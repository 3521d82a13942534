//! What the launcher says about this process: how many processes it started on this machine, and the
//! rank of this one.
//!
//! Reads the variables that torchrun, Open MPI, Intel MPI and Slurm set. Knows no policy; a value that is
//! no number counts as unset.

/// How many processes were started on this machine, and the variable that says so.
pub(crate) fn processes() -> Option<(usize, &'static str)> {
    processes_of(|name| std::env::var(name).ok())
}

/// This process's rank among all that were started, on all machines; `None` if it is the only one.
pub(crate) fn rank() -> Option<usize> {
    Some(rank_of_all()?.0)
}

/// The same, and how many were started.
pub(crate) fn rank_of_all() -> Option<(usize, usize)> {
    rank_of(|name| std::env::var(name).ok())
}

fn processes_of(lookup: impl Fn(&str) -> Option<String>) -> Option<(usize, &'static str)> {
    const HERE: [&str; 4] = [
        "LOCAL_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "MPI_LOCALNRANKS",
        "SLURM_NTASKS_PER_NODE",
    ];
    HERE.iter().find_map(|name| {
        let count = number(&lookup, name)?;
        (count > 0).then_some((count, *name))
    })
}

fn rank_of(lookup: impl Fn(&str) -> Option<String>) -> Option<(usize, usize)> {
    const ALL: [(&str, &str); 4] = [
        ("RANK", "WORLD_SIZE"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
    ];
    let said = |(rank, of)| Some((number(&lookup, rank)?, number(&lookup, of)?));
    let (rank, of) = ALL.into_iter().find_map(said)?;
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
        assert_eq!(of("LOCAL_WORLD_SIZE", " 8 "), Some((8, "LOCAL_WORLD_SIZE")));
        assert_eq!(
            of("SLURM_NTASKS_PER_NODE", "4"),
            Some((4, "SLURM_NTASKS_PER_NODE"))
        );
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
        let slurm = [("SLURM_PROCID", "5"), ("SLURM_NTASKS", "16")];
        assert_eq!(rank_of(among(&slurm)), Some((5, 16)));
    }
}
