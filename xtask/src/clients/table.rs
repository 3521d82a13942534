//! The table of clients: time, pinned memory, and whether the runs were equal.

use std::fmt::Write as _;

use serde::Serialize;

use super::differences::{Judged, Kind};
use super::report::Ran;

/// One client.
#[derive(Debug, Serialize)]
pub struct Row {
    pub client: &'static str,
    /// Its library besides torch.
    pub library: Option<&'static str>,
    pub stock: Ran,
    pub others: Vec<(Kind, Ran)>,
    pub differences: Vec<Judged>,
    /// Listed differences that were not found.
    pub gone: Vec<String>,
}

/// The verdict on a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Equal,
    /// Different, as listed.
    AsListed,
    Differs,
    /// It failed with stock, so nothing can be compared.
    FailsWithStock,
}

impl Row {
    pub fn outcome(&self) -> Outcome {
        let unlisted = self.differences.iter().any(|it| it.why.is_none());
        if !self.stock.succeeded() {
            Outcome::FailsWithStock
        } else if unlisted || !self.gone.is_empty() {
            Outcome::Differs
        } else if self.differences.is_empty() {
            Outcome::Equal
        } else {
            Outcome::AsListed
        }
    }

    pub fn failed(&self) -> bool {
        matches!(self.outcome(), Outcome::Differs | Outcome::FailsWithStock)
    }

    /// All complaints, one per line.
    fn complaints(&self) -> Vec<String> {
        let Self { client, stock, .. } = self;
        if !stock.succeeded() {
            let report = if stock.report.is_none() {
                ", no report"
            } else {
                ""
            };
            let said = stock.last_words.replace('\n', "\n    ");
            return vec![format!(
                "{client}, stock: {}{report}\n    {said}",
                stock.exit
            )];
        }
        let mut lines = Vec::new();
        for it in self.differences.iter().filter(|it| it.why.is_none()) {
            lines.push(format!("{client}, {}: {}", it.with, it.difference));
        }
        for (kind, ran) in self.others.iter().filter(|(_, ran)| !ran.succeeded()) {
            let unlisted = |it: &Judged| it.with == *kind && it.why.is_none();
            if self.differences.iter().any(unlisted) {
                let said = ran.last_words.replace('\n', "\n    ");
                lines.push(format!("{client}, {kind}, last words:\n    {said}"));
            }
        }
        for line in &self.gone {
            let file = "tests/clients/differences.toml";
            lines.push(format!("{client}: {line}: take it out of {file}"));
        }
        lines
    }
}

/// The table, then the complaints.
pub fn text(rows: &[Row]) -> String {
    let kinds: Vec<Kind> = rows.first().map_or_else(Vec::new, |row| {
        row.others.iter().map(|(kind, _)| *kind).collect()
    });
    let columns: Vec<String> = std::iter::once("stock".to_owned())
        .chain(kinds.iter().map(ToString::to_string))
        .collect();
    let longest = rows.iter().map(|it| it.client.len()).max().unwrap_or(0);
    let width = longest.max("client".len()) + 2;
    let group = 9 * columns.len();
    let mut text = format!(
        "{:width$}{:>group$}{:>group$}\n",
        "", "seconds", "pinned at most, MiB"
    );
    let _ = write!(text, "{:width$}", "client");
    for column in columns.iter().chain(&columns) {
        let _ = write!(text, "{column:>9}");
    }
    text.push('\n');
    for row in rows {
        let _ = write!(text, "{:width$}", row.client);
        let runs = || std::iter::once(&row.stock).chain(row.others.iter().map(|(_, ran)| ran));
        for ran in runs() {
            let _ = write!(text, "{:>9.1}", ran.seconds);
        }
        for ran in runs() {
            let mib = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 20));
            let cell = ran.report.as_ref().map(|it| mib(it.peak_pinned));
            let _ = write!(text, "{:>9}", cell.as_deref().unwrap_or("-"));
        }
        let _ = writeln!(text, "  {}", words(row));
    }
    let complaints: Vec<_> = rows.iter().flat_map(Row::complaints).collect();
    if !complaints.is_empty() {
        let _ = write!(text, "\n{}\n", complaints.join("\n"));
    }
    text
}

fn words(row: &Row) -> String {
    match row.outcome() {
        Outcome::Equal => "equal".to_owned(),
        Outcome::Differs => "DIFFERS".to_owned(),
        Outcome::FailsWithStock => "FAILS WITH STOCK".to_owned(),
        Outcome::AsListed => {
            let mut what: Vec<_> = row
                .differences
                .iter()
                .map(|it| it.difference.what.to_string())
                .collect();
            what.dedup();
            what.sort_unstable();
            what.dedup();
            format!("as listed: {}", what.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::compare::tests::ran;
    use crate::clients::compare::{Difference, What};

    fn row(client: &'static str) -> Row {
        Row {
            client,
            library: None,
            stock: ran(),
            others: vec![(Kind::Fork, ran()), (Kind::PlugIn, ran())],
            differences: Vec::new(),
            gone: Vec::new(),
        }
    }

    fn differs(why: Option<&str>) -> Judged {
        let difference = Difference {
            what: What::Exit,
            of: None,
            stock: "exit code 0".to_owned(),
            found: "signal 11".to_owned(),
        };
        let why = why.map(str::to_owned);
        Judged {
            with: Kind::Fork,
            difference,
            why,
        }
    }

    #[test]
    fn a_row_for_each_and_what_is_wrong() {
        let equal = row("kv-pool");
        let mut listed = row("forked-child-large");
        listed.differences = vec![differs(Some("because"))];
        let mut crashed = row("loader-fork");
        crashed.differences = vec![differs(None)];
        crashed.others[0].1.exit = "signal 11".to_owned();
        crashed.others[0].1.report = None;
        crashed.others[0].1.last_words = "Traceback\nSegmentation fault".to_owned();
        let mut gone = row("save-on-cpu");
        gone.gone = vec!["exit no longer differs with the fork".to_owned()];
        let mut stock = row("torchao");
        stock.stock.exit = "exit code 1".to_owned();
        stock.stock.report = None;
        stock.stock.last_words = "ImportError: torchao".to_owned();
        let rows = [equal, listed, crashed, gone, stock];
        let failed: Vec<_> = rows.iter().map(Row::failed).collect();
        assert_eq!(failed, [false, false, true, true, true]);
        insta::assert_snapshot!(text(&rows));
    }

    #[test]
    fn json_has_the_differences_with_their_reasons() {
        let mut row = row("kv-pool");
        row.differences = vec![differs(Some("because"))];
        let json = serde_json::to_value(&row).unwrap();
        assert_eq!(json["client"], "kv-pool");
        assert_eq!(json["differences"][0]["what"], "exit");
        assert_eq!(json["differences"][0]["with"], "fork");
        assert_eq!(json["differences"][0]["why"], "because");
        assert_eq!(json["others"][1][0], "plug-in");
        assert_eq!(json["others"][1][1]["report"]["pins"], 3);
    }
}
