//! What the launcher said of this process: how many processes work together, and this one's role on its machine.
//!
//! Ranks that behave alike share one plan, also if there are thousands of them. The first process of a machine differs from the
//! others: it gathers, logs, writes checkpoints and loads data for them, all of which pins memory. So there are two roles.
//! Reads the variables that torchrun, Open MPI, Intel MPI and Slurm set; a value that is no number counts as unset.

use serde::{Deserialize, Serialize};

/// What a process does among those of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The first process of its machine, or the only one.
    First,
    /// Any other.
    Other,
}

/// See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// How many processes work together.
    pub world_size: usize,
    /// This one's role.
    pub role: Role,
}

impl Launch {
    /// Of a process with these variables.
    pub fn of(lookup: impl Fn(&str) -> Option<String>) -> Self {
        const ALL: [&str; 4] = [
            "WORLD_SIZE",
            "OMPI_COMM_WORLD_SIZE",
            "PMI_SIZE",
            "SLURM_NTASKS",
        ];
        const HERE: [&str; 4] = [
            "LOCAL_RANK",
            "OMPI_COMM_WORLD_LOCAL_RANK",
            "MPI_LOCALRANKID",
            "SLURM_LOCALID",
        ];
        let number = |name: &&str| lookup(name)?.trim().parse::<usize>().ok();
        let world_size = ALL.iter().find_map(number).unwrap_or(1).max(1);
        let is_other = HERE.iter().find_map(number).is_some_and(|it| it > 0);
        let role = match is_other && world_size > 1 {
            true => Role::Other,
            false => Role::First,
        };
        Self { world_size, role }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> (usize, Role) {
        let lookup = |name: &str| {
            let found = set.iter().find(|(it, _)| *it == name)?;
            Some(found.1.to_owned())
        };
        let Launch { world_size, role } = Launch::of(lookup);
        (world_size, role)
    }

    #[test]
    fn ranks_of_a_machine_have_two_roles() {
        let rank = |rank| of(&[("WORLD_SIZE", "16"), ("LOCAL_RANK", rank)]);
        assert_eq!(rank("0"), (16, Role::First));
        assert_eq!([rank("1"), rank("7")], [(16, Role::Other); 2]);
        let slurm = [("SLURM_NTASKS", "8"), ("SLURM_LOCALID", "3")];
        assert_eq!(of(&slurm), (8, Role::Other));
    }

    #[test]
    fn a_process_alone_is_the_first() {
        assert_eq!(of(&[]), (1, Role::First));
        assert_eq!(of(&[("LOCAL_RANK", "3")]), (1, Role::First));
        let nonsense = [("WORLD_SIZE", "many"), ("LOCAL_RANK", "x")];
        assert_eq!(of(&nonsense), (1, Role::First));
        assert_eq!(of(&[("WORLD_SIZE", "0")]), (1, Role::First));
    }
}
