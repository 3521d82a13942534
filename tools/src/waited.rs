//! How often a recorded run waited for the driver, and for how long: a sum for texts. Knows no file.

use std::fmt;

use serde::Serialize;

use crate::show;

/// See the module's documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Waited {
    /// How often.
    pub count: u64,
    /// How long together, in microseconds.
    pub total: u64,
}

impl Waited {
    /// One more, of so many microseconds. A file may claim more than there is time.
    pub(crate) fn add(&mut self, took: u64) {
        self.count += 1;
        self.total = self.total.saturating_add(took);
    }
}

impl fmt::Display for Waited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            0 => f.write_str("never waited for the driver"),
            count => {
                write!(f, "waited {} for the driver, {} in all", show::count(count, "time"), show::time(self.total))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_run() {
        let mut waited = Waited::default();
        let mut said = vec![waited.to_string()];
        for took in [312, 41_000, 2_500_000, u64::MAX] {
            waited.add(took);
            said.push(waited.to_string());
        }
        insta::assert_snapshot!(said.join("\n"), @r"
        never waited for the driver
        waited 1 time for the driver, 312 µs in all
        waited 2 times for the driver, 41.31 ms in all
        waited 3 times for the driver, 2.54 s in all
        waited 4 times for the driver, 18446744073709.55 s in all
        ");
    }
}
