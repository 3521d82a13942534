//! The programs of the part `worst`, and their figures with targets.

/// A program for which an allocator that pins ahead can be worse than stock.
#[derive(Debug)]
pub struct Program {
    /// Its name for `--only`, and the path of its figures.
    pub name: &'static str,
    pub run: Run,
    /// In the order of the table.
    pub judged: &'static [Judged],
}

/// How it runs.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// `tests/programs/NAME.py` with arguments, with stock and with the fork.
    Beside(&'static str, &'static [&'static str]),
    /// The same with the fork alone.
    Alone(&'static str, &'static [&'static str]),
    /// Patterns of requests in the harness.
    Pairs,
    /// Requests of several threads in the harness, and a reader of statistics.
    Statistics,
    /// Requests among holes, in the harness.
    Holes,
}

/// A printed figure, and how it is judged.
#[derive(Debug)]
pub struct Judged {
    /// Its name in the program's output.
    pub key: &'static str,
    /// Its name in the results.
    pub name: &'static str,
    pub how: How,
    /// The target: at most this.
    pub target: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    /// Ratio of the fork to stock.
    OverStock,
    /// Ratio of the fork's seconds to the allowance for a single request: 1.5 times stock's and 20 ms. The 20 ms
    /// allow for a hiccup where stock takes no time.
    OverAllowed,
    /// Difference from stock: for counts that may be 0.
    MoreThanStock,
    /// The fork's value.
    Ours,
}

impl How {
    /// The value of one round.
    pub fn of(self, stock: f64, fork: f64) -> f64 {
        match self {
            Self::OverStock => fork / stock,
            Self::OverAllowed => fork / (1.5 * stock + 0.02),
            Self::MoreThanStock => fork - stock,
            Self::Ours => fork,
        }
    }
}

/// Never worse than stock, with a tolerance of a tenth for noise in the time of a whole program.
const TIME: Judged = judged("seconds", "seconds_ratio", How::OverStock, 1.1);
const SLOWEST: Judged = judged("slowest", "slowest_over_allowed", How::OverAllowed, 1.0);
const PEAK: Judged = judged("peak_mib", "peak_ratio", How::OverStock, 1.0);
const PINS: Judged = judged("pins", "pins_ratio", How::OverStock, 1.0);
const PINNED: Judged = judged("pinned_mib", "pinned_ratio", How::OverStock, 1.0);
const PAIR: Judged = judged("pair_ns", "pair_ratio", How::OverStock, 1.1);

const fn judged(key: &'static str, name: &'static str, how: How, target: f64) -> Judged {
    Judged {
        key,
        name,
        how,
        target,
    }
}

const fn ours(key: &'static str, target: f64) -> Judged {
    judged(key, key, How::Ours, target)
}

const fn more(key: &'static str, name: &'static str, target: f64) -> Judged {
    judged(key, name, How::MoreThanStock, target)
}

const fn beside(
    name: &'static str,
    file: &'static str,
    arguments: &'static [&'static str],
    judged: &'static [Judged],
) -> Program {
    let run = Run::Beside(file, arguments);
    Program { name, run, judged }
}

/// docs/bench.md explains each.
pub const PROGRAMS: [Program; 25] = [
    beside("worst/stall-quiet", "stall", &["0"], &[TIME, SLOWEST]),
    beside("worst/stall-busy", "stall", &["2"], &[TIME, SLOWEST]),
    beside("worst/loader", "loader", &[], &[TIME, SLOWEST]),
    beside("worst/captures", "captures", &[], &[TIME, SLOWEST]),
    beside("worst/clears", "clears", &[], &[TIME, SLOWEST]),
    beside("worst/cold-large", "cold_large", &[], &[TIME, SLOWEST]),
    beside(
        "worst/cold-large-exact",
        "cold_large",
        &["exact"],
        &[TIME, SLOWEST],
    ),
    beside("worst/cold-first", "cold_large", &["first"], &[SLOWEST]),
    beside(
        "worst/growing-large-new",
        "growing_large",
        &["new"],
        &[TIME, PINS, PEAK],
    ),
    beside(
        "worst/growing-large-old",
        "growing_large",
        &["old"],
        &[TIME, PINS, PEAK],
    ),
    beside("worst/random-large", "random_large", &[], &[PEAK]),
    beside(
        "worst/growing-small",
        "growing_small",
        &[],
        &[
            TIME,
            PINS,
            PEAK,
            judged("pinned_ever_mib", "pinned_ever_ratio", How::OverStock, 1.0),
        ],
    ),
    beside(
        "worst/rounds-threads",
        "rounds_threads",
        &[],
        &[ours("pinned_over_largest", 1.1), PINNED],
    ),
    beside("worst/exit-quiet", "exit", &["0"], &[TIME]),
    beside("worst/exit-busy", "exit", &["2"], &[TIME]),
    beside(
        "worst/impossible-request",
        "impossible_request",
        &[],
        &[more("pins_after", "more_pins_after", 0.0), SLOWEST],
    ),
    beside("worst/pool-over-budget", "pool_over_budget", &[], &[PINNED]),
    beside("worst/rewarm", "rewarm", &[], &[PINNED]),
    beside(
        "worst/many-regions",
        "many_regions",
        &[],
        &[
            TIME,
            ours("end_over_beginning", 1.5),
            // The kernel allows some 65,000 areas in total.
            more("areas", "more_areas", 1000.0),
        ],
    ),
    beside("worst/busy-streams", "streams", &["busy", "31"], &[PAIR]),
    beside(
        "worst/external-streams",
        "streams",
        &["external", "3000"],
        &[PAIR],
    ),
    Program {
        name: "worst/spawn-ranks",
        run: Run::Alone("spawn_ranks", &[]),
        judged: &[ours("budgets_over_half", 1.0)],
    },
    Program {
        name: "worst/pairs",
        run: Run::Pairs,
        judged: &[],
    },
    Program {
        name: "worst/statistics",
        run: Run::Statistics,
        judged: &[],
    },
    Program {
        name: "worst/holes",
        run: Run::Holes,
        judged: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use xtask_support::paths;

    #[test]
    fn each_has_a_name_of_its_own_and_a_file() {
        let mut names = PROGRAMS.map(|it| it.name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PROGRAMS.len());
        for program in &PROGRAMS {
            let name = program.name.strip_prefix("worst/").unwrap();
            assert!(!name.is_empty() && !name.contains('/'));
            let (Run::Beside(file, _) | Run::Alone(file, _)) = program.run else {
                continue;
            };
            let path = paths::root().join(format!("tests/programs/{file}.py"));
            assert!(path.is_file(), "{}", path.display());
            assert!(!program.judged.is_empty(), "{name} is judged");
        }
    }

    #[test]
    fn the_documents_say_why_each_is_here() {
        let page = std::fs::read_to_string(paths::root().join("docs/bench.md")).unwrap();
        for program in &PROGRAMS {
            let name = program.name.strip_prefix("worst/").unwrap();
            let rows = page.lines().filter(|it| it.starts_with("| `"));
            let mut first_cells = rows.filter_map(|it| it.split('|').nth(1));
            let quoted = format!("`{name}`");
            assert!(first_cells.any(|it| it.contains(&quoted)), "{name}");
        }
    }

    /// A program that runs with the fork alone cannot be compared with stock.
    #[test]
    fn alone_is_as_it_is() {
        let alone = PROGRAMS
            .iter()
            .filter(|it| matches!(it.run, Run::Alone(..)));
        for program in alone {
            assert!(program.judged.iter().all(|it| it.how == How::Ours));
        }
    }

    #[test]
    fn how_a_round_is_judged() {
        assert_eq!(How::OverStock.of(2.0, 3.0), 1.5);
        assert!((How::OverAllowed.of(0.12, 0.2) - 1.0).abs() < 1e-9);
        // Stock takes no time, the fork has a hiccup.
        assert!(How::OverAllowed.of(1e-5, 0.02) < 1.0);
        assert_eq!(How::MoreThanStock.of(0.0, 0.0), 0.0);
        assert_eq!(How::Ours.of(9.0, 1.1), 1.1);
    }
}
