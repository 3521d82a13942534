//! What an error says where page-locked memory was refused, also to PyTorch's own allocator.
//!
//! CUDA's words are "out of memory", as where a GPU is full: a user looks there. So this says whose memory it is, how much was
//! asked for, who has pinned how much, and which limit stands in the way. Knows no error.

use pinbuddy_machine::{Limit, Of};

use super::Handle;
use crate::backing::Memory;
use crate::budget::Standing;
use crate::log::Bytes;

impl<M: Memory> Handle<M> {
    /// For a pin of `bytes` bytes that the driver refused for want of memory. Reads files.
    pub fn refused_line(&self, bytes: usize) -> String {
        let pinned = self.pinner.quota().taken() as u64;
        line(bytes as u64, pinned, &self.pinner.capacity.standing())
    }
}

fn line(bytes: u64, pinned: u64, standing: &Standing) -> String {
    let others = match standing.others {
        0 => String::new(),
        others => format!(" {} are pinned by other processes with pinbuddy.", Bytes(others)),
    };
    format!(
        "pinbuddy: page-locked host memory was refused, not memory of a GPU: {} were asked for, and this process's engine has \
         {} pinned.{others} {} (see: pinbuddy explain 'page-locked host memory was refused')",
        Bytes(bytes),
        Bytes(pinned),
        obstacle(bytes, pinned, standing),
    )
}

/// What stands in the way, as a sentence.
fn obstacle(bytes: u64, pinned: u64, standing: &Standing) -> String {
    let left = |limit: &Limit| match limit.of {
        Of::Process => limit.bytes.saturating_sub(pinned),
        Of::Machine | Of::Group => limit.bytes,
    };
    let Some(least) = standing.limits.iter().min_by_key(|it| left(it)) else {
        return "No limit is known.".to_owned();
    };
    let (name, has) = (least.name, Bytes(left(least)));
    if left(least) >= bytes {
        return format!(
            "No limit of the kernel's is reached ({name}: {has} left), so the driver refuses to register so much."
        );
    }
    let to_do = match least.of {
        Of::Machine => "end what else uses the machine's memory (pinbuddy top --all shows who holds it), or pin less",
        Of::Group => "raise the limit of the container or job, or pin less",
        Of::Process => "raise it (ulimit -l), or pin less",
    };
    format!("The limit is {name}, under which {has} are left: {to_do}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn limit(bytes: u64, name: &'static str, of: Of) -> Limit {
        Limit { bytes, name, of, of_gpus_too: false }
    }

    #[test]
    fn the_limit_that_stands_in_the_way_is_named() {
        let standing = |available: u64, group: u64, lock: u64| Standing {
            limits: vec![
                limit(available * GIB, "MemAvailable", Of::Machine),
                limit(group * GIB, "memory that the control group leaves", Of::Group),
                limit(lock * GIB, "RLIMIT_MEMLOCK", Of::Process),
            ],
            others: 0,
        };
        for (standing, expected) in [
            (standing(3, 9, 99), "The limit is MemAvailable, under which 3 GiB are left: end what"),
            (standing(9, 3, 99), "the control group leaves, under which 3 GiB are left: raise"),
            (standing(9, 9, 8), "RLIMIT_MEMLOCK, under which 3 GiB are left: raise it (ulimit -l)"),
            (standing(9, 4, 99), "No limit of the kernel's is reached (memory that the control"),
            (Standing::default(), "No limit is known."),
        ] {
            let said = line(4 * GIB, 5 * GIB, &standing);
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn whose_memory_it_is_comes_first() {
        let standing = Standing { others: 2 * GIB, ..Standing::default() };
        assert_eq!(
            line(4 * GIB, GIB, &standing),
            "pinbuddy: page-locked host memory was refused, not memory of a GPU: 4 GiB were asked for, and this process's engine \
             has 1 GiB pinned. 2 GiB are pinned by other processes with pinbuddy. No limit is known. (see: pinbuddy explain \
             'page-locked host memory was refused')"
        );
    }
}
