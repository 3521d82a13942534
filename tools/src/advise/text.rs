//! Advice for people.

use std::fmt;

use super::Advice;
use crate::show;

/// The recommendation alone, in a few lines.
#[derive(Debug)]
pub struct Brief<'a>(pub &'a Advice);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let it = &self.0.recommendation;
        writeln!(f, "Recommended: {}", it.choice)?;
        writeln!(f, "  since {}", it.reason)?;
        for line in &it.lines {
            writeln!(f, "    {line}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.counts;
        // A threshold of 0 leaves none out.
        let above = match counts.threshold {
            0 => String::new(),
            threshold => {
                let (above, least) = (counts.requests_above, show::bytes(threshold));
                format!(" ({above} of {least} or more)")
            }
        };
        let requests = show::count(counts.requests, "request");
        let (live, name) = (show::bytes(counts.largest_live), &self.trace);
        // A program that marks no ends of iterations has none.
        let iterations = match counts.iterations {
            0 => String::new(),
            some => format!(", {}", show::count(some, "iteration")),
        };
        writeln!(f, "{name}: {requests}{above}, at most {live} live{iterations}")?;
        if let Some(waited) = counts.waited {
            writeln!(f, "The run itself {waited}.")?;
        }
        match self.choices[..] {
            [] => writeln!(f)?,
            _ => self.table(f)?,
        }
        write!(f, "{}", Brief(self))?;
        if self.findings.is_empty() {
            return writeln!(f, "\nNothing wrong was found in the program.");
        }
        writeln!(f, "\nFound in the program:")?;
        for (number, it) in (1..).zip(&self.findings) {
            writeln!(f, "{number}. {}", it.what)?;
            writeln!(f, "   evidence  {}", it.evidence)?;
            if !it.lines.is_empty() {
                let lines: Vec<String> = it.lines.iter().map(u64::to_string).collect();
                writeln!(f, "   lines     {}", lines.join(", "))?;
            }
            writeln!(f, "   to do     {}", it.to_do)?;
        }
        Ok(())
    }
}

impl Advice {
    /// What each choice would have come to.
    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.choices.iter().map(|it| it.name.chars().count());
        let width = names.max().unwrap_or(0).max(6);
        writeln!(
            f,
            "\n  {:width$}  {:>11}  {:>9}  {:>8}  {:>8}  {:>12}",
            "choice", "pinned", "over live", "waits", "pins", "after iter 1"
        )?;
        for it in &self.choices {
            writeln!(
                f,
                "  {:width$}  {:>11}  {:>9.2}  {:>8}  {:>8}  {:>12}",
                it.name,
                show::bytes(it.pinned),
                it.over_live,
                it.waits.map_or_else(|| "-".to_owned(), |it| it.to_string()),
                it.pins,
                match self.counts.iterations {
                    0 => "-".to_owned(),
                    _ => it.pins_after_first_iteration.to_string(),
                },
            )?;
        }
        if self.choices.iter().any(|it| it.stopped) {
            writeln!(f, "  What pinned more than 2 TiB was replayed no further.")?;
        }
        writeln!(f, "  waits: requests that the driver holds up. #181094 is a proposal that no release has.\n")
    }
}
