//! Pinned memory near the most that the control groups of the run allowed. All that the process has counts there.

use super::budget::{Ceiling, Limit};

/// Nearer than so many tenths: the program itself needs memory, too.
const TENTHS: u64 = 7;

pub(super) fn near(limit: u64) -> Ceiling {
    Ceiling::new(Limit {
        id: "near_the_group_limit",
        what: "What is pinned comes close to the limit of the control group, which counts all memory of the program",
        tenths: ("seven tenths", TENTHS),
        name: "the group's limit",
        to_do: "raise the limit of the container or the job, or set BUDDY_MAX_MB below it: beyond the limit the kernel ends \
                the program",
        bytes: limit,
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{MIB, Program};
    use crate::input::About;

    #[test]
    fn what_comes_near_the_limit_is_found() {
        let mut program = Program::default();
        for _ in 0..3 {
            let blocks: Vec<u64> = (0..10).map(|_| program.alloc(8 * MIB)).collect();
            blocks.iter().for_each(|it| program.free(*it));
        }
        let with = |limit| About {
            group_limit: limit,
            ..About::default()
        };
        let found = program.finding("near_the_group_limit", with(Some(110 * MIB)));
        let found = found.unwrap();
        assert_eq!((found.count, found.bytes), (3, 80 * MIB));
        insta::assert_snapshot!(found.evidence, @"3 times above seven tenths of the group's limit (110.00 MiB), 80.00 MiB live at most");
        for limit in [Some(120 * MIB), None] {
            assert_eq!(program.finding("near_the_group_limit", with(limit)), None);
        }
    }
}
