//! The one table at the end of `test`: a row for each kind of test.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::tally::Tally;
use super::typed;

/// How many tests are named at the end.
const MOST_NAMES: usize = 20;
const BESIDE: &str = "rows beside others";

/// Its rows so far.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
    /// Only rows whose names contain it are run.
    only: Option<String>,
    /// Whether a row's name does.
    found: bool,
}

#[derive(Debug)]
struct Row {
    name: String,
    tally: Tally,
    took: Duration,
    note: String,
}

impl Table {
    /// A table that runs the rows whose names contain `only`, and every step with a result.
    pub fn of(only: Option<&str>) -> Self {
        let only = only.map(str::to_owned);
        Self { only, ..Self::default() }
    }

    /// Runs `second` on another thread while `first` runs; its rows come behind those of `first`.
    pub fn beside<T>(&mut self, first: impl FnOnce(&mut Self) -> T, second: impl FnOnce(&mut Self) + Send) -> T {
        let mut other = Self::of(self.only.as_deref());
        let made = thread::scope(|scope| {
            let thread = thread::Builder::new().name(BESIDE.to_owned());
            let started = thread.spawn_scoped(scope, || second(&mut other));
            started.expect("the system starts a thread");
            first(self)
        });
        self.found |= other.found;
        self.rows.append(&mut other.rows);
        made
    }

    /// Whether this thread runs rows beside others: what their programs say is then said at once, when they end.
    pub fn is_beside() -> bool {
        thread::current().name() == Some(BESIDE)
    }

    /// Whether a row was asked for that there is.
    pub fn has_found(&self) -> bool {
        self.found
    }

    /// Whether a row of this name is to be run.
    pub fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only))
    }

    /// Adds a row for a step that counts its own tests; an error is one failure.
    pub fn row(&mut self, name: &str, run: impl FnOnce() -> Result<Tally>) {
        if !self.wants(name) {
            return;
        }
        let mut tally = Tally::default();
        if self.value(name, || run().map(|counted| tally = counted)).is_some()
            && let Some(row) = self.rows.last_mut()
        {
            row.tally = tally;
        }
    }

    /// Adds a row for a step whose result is needed later; it counts as one test.
    pub fn value<T>(&mut self, name: &str, run: impl FnOnce() -> Result<T>) -> Option<T> {
        eprintln!("\n== {name}");
        self.found |= self.wants(name);
        let start = Instant::now();
        let result = run();
        let mut row = Row { name: name.to_owned(), tally: Tally::one(), took: start.elapsed(), note: String::new() };
        if let Err(error) = &result {
            crate::failure::say(error);
            let said = error.to_string();
            row.note = said.lines().next().unwrap_or_default().to_owned();
            row.tally = Tally { failed: 1, names: vec![row.note.clone()], ..Tally::default() };
        }
        self.rows.push(row);
        result.ok()
    }

    /// Adds a row for a step that needs what another one has made; a failed one if that has failed.
    pub fn given<T>(&mut self, made: &Option<T>, name: &str, run: impl FnOnce(&T) -> Result<Tally>) {
        match made {
            Some(made) => self.row(name, || run(made)),
            None if self.wants(name) => self.rows.push(Row {
                name: name.to_owned(),
                tally: Tally { failed: 1, ..Tally::default() },
                took: Duration::ZERO,
                note: "not run: what it needs has failed".to_owned(),
            }),
            None => {}
        }
    }

    /// All rows together.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.rows.iter().for_each(|row| total.add(row.tally.clone()));
        total
    }

    /// The last lines for a reader of a log: each failed row as the command that runs it alone, with the words that were typed, and
    /// below it which of its tests failed, or its error. Rows that could not start are left out: another failed row is the reason.
    pub fn failures(&self, typed: &[String]) -> String {
        let mut text = String::new();
        let mut left = MOST_NAMES;
        for Row { name, tally, .. } in &self.rows {
            if tally.names.is_empty() {
                continue;
            }
            text += &format!("failed: {}\n", typed::with(typed, "--only", name));
            for name in tally.names.iter().take(left) {
                text += &format!("    {name}\n");
            }
            let shown = tally.failed.min(left);
            left -= shown;
            if shown < tally.failed {
                text += &format!("    and {} more\n", tally.failed - shown);
            }
        }
        text
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = self.rows.iter().map(|row| row.name.chars().count()).max();
        let width = longest.unwrap_or(0).max(27) + 1;
        writeln!(f, "{:<width$}{:>7}{:>7}{:>8}{:>9}", "", "passed", "failed", "skipped", "seconds")?;
        for row in &self.rows {
            let (name, it, note) = (&row.name, &row.tally, &row.note);
            let (passed, failed, seconds) = (it.passed, it.failed, row.took.as_secs_f64());
            let line = format!("{name:<width$}{passed:>7}{failed:>7}{:>8}{seconds:>9.1}  {note}", it.skipped);
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_and_what_was_not_run_count() {
        let mut table = Table::default();
        table.row("Rust tests", || Ok(Tally { passed: 40, failed: 0, skipped: 2, ..Tally::default() }));
        table.row("PyTorch's own tests", || {
            Ok(Tally {
                failed: 23,
                names: (1..=23).map(|it| format!("test_cuda test_{it}")).collect(),
                ..Tally::default()
            })
        });
        assert_eq!(table.value("wheel", || Ok(7)), Some(7));
        table.row("same bytes twice", || anyhow::bail!("two builds differ\n  found x"));
        table.given(&None::<u32>, "three clients", |_| Ok(Tally::one()));
        for row in &mut table.rows {
            row.took = Duration::from_millis(1234);
        }
        let total = table.total();
        let counts = (total.passed, total.failed, total.skipped);
        assert_eq!(counts, (41, 25, 2));
        let failures = table.failures(&["test".to_owned(), "--all".to_owned()]);
        insta::assert_snapshot!(format!("{table}{failures}"));
    }
}
