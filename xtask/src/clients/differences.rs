//! `tests/clients/differences.toml`: known differences with reasons. An unlisted difference is a failure, and so is
//! a listed one that no longer exists.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::client::CLIENTS;
use super::compare::{Difference, What};
use crate::support::paths;
use crate::support::refusal::refuse;

/// What is compared with stock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Fork,
    PlugIn,
}

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    #[serde(rename = "difference", default)]
    entries: Vec<Entry>,
}

/// One known difference.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub client: String,
    pub what: What,
    /// The result, the statistic, or a part of the warning. None: any.
    of: Option<String>,
    /// The fork or the plug-in. None: both.
    with: Option<Kind>,
    pub why: String,
}

/// A difference, and the reason if it is known.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    pub with: Kind,
    #[serde(flatten)]
    pub difference: Difference,
    pub why: Option<String>,
}

impl Known {
    /// Reads the file of this checkout.
    pub fn read() -> Result<Self> {
        let path = paths::root().join("tests/clients/differences.toml");
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text, &path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self> {
        let known: Self =
            toml::from_str(text).with_context(|| format!("reading {}", path.display()))?;
        for entry in &known.entries {
            let listed = CLIENTS.iter().any(|it| it.name == entry.client);
            let wrong = match (listed, entry.why.trim()) {
                (false, _) => "a known difference is of no client that there is",
                (true, "") => "a known difference has no reason",
                _ => continue,
            };
            return Err(refuse(wrong)
                .found(format!(
                    "client = {:?}, what = \"{}\"",
                    entry.client, entry.what
                ))
                .expected("the name of a client, what differs, and why")
                .remedy(format!("correct {}", paths::show(path)))
                .into());
        }
        Ok(known)
    }

    /// The known differences of one client.
    pub fn of(&self, client: &str) -> impl Iterator<Item = &Entry> {
        let client = client.to_owned();
        self.entries.iter().filter(move |it| it.client == client)
    }

    /// Adds the known reasons to differences.
    pub fn judge(&self, client: &str, with: Kind, found: Vec<Difference>) -> Vec<Judged> {
        let judged = |difference: Difference| {
            let entry = self.of(client).find(|it| it.is(with, &difference));
            Judged {
                with,
                why: entry.map(|it| it.why.clone()),
                difference,
            }
        };
        found.into_iter().map(judged).collect()
    }

    /// The listed differences of a client that were not found, after it was compared with all of `kinds`.
    pub fn gone(&self, client: &str, kinds: &[Kind], found: &[Judged]) -> Vec<String> {
        let mut lines = Vec::new();
        for entry in self.of(client) {
            for &with in kinds
                .iter()
                .filter(|it| entry.with.is_none_or(|with| with == **it))
            {
                let there = |it: &Judged| it.with == with && entry.is(with, &it.difference);
                if !found.iter().any(there) {
                    let of = entry
                        .of
                        .as_ref()
                        .map_or_else(String::new, |it| format!(" of {it:?}"));
                    lines.push(format!(
                        "{}{of} no longer differs with the {with}",
                        entry.what
                    ));
                }
            }
        }
        lines
    }
}

impl Entry {
    fn is(&self, with: Kind, difference: &Difference) -> bool {
        let of = || match (&self.of, &difference.of) {
            (None, _) => true,
            (Some(part), Some(of)) if self.what == What::Warnings => of.contains(part.as_str()),
            (Some(wanted), of) => of.as_ref() == Some(wanted),
        };
        self.what == difference.what && self.with.is_none_or(|it| it == with) && of()
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Fork => "fork",
            Self::PlugIn => "plug-in",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Kind; 2] = [Kind::Fork, Kind::PlugIn];

    fn known(text: &str) -> Result<Known> {
        Known::parse(text, Path::new("differences.toml"))
    }

    fn difference(what: What, of: Option<&str>) -> Difference {
        Difference {
            what,
            of: of.map(str::to_owned),
            stock: "1".to_owned(),
            found: "2".to_owned(),
        }
    }

    #[test]
    fn the_file_of_this_checkout_can_be_read_and_the_document_has_it() {
        let page = fs::read_to_string(paths::root().join("docs/clients.md")).unwrap();
        for entry in Known::read().unwrap().entries {
            let row = format!("| `{}` | {} |", entry.client, entry.what);
            assert!(page.contains(&row), "docs/clients.md has no row {row}");
        }
    }

    #[test]
    fn what_is_listed_has_its_reason_and_nothing_else() {
        let known = known(
            "[[difference]]\nclient = 'kv-pool'\nwhat = 'results'\nof = 'child'\nwhy = 'because'\n\
             [[difference]]\nclient = 'kv-pool'\nwhat = 'warnings'\nof = 'pinbuddy: '\nwith = 'fork'\nwhy = 'said'",
        )
        .unwrap();
        let why = |client: &str, with, what, of| {
            let judged = known.judge(client, with, vec![difference(what, of)]);
            judged[0].why.clone()
        };
        let because = Some("because".to_owned());
        assert_eq!(
            why("kv-pool", Kind::Fork, What::Results, Some("child")),
            because
        );
        assert_eq!(
            why("kv-pool", Kind::PlugIn, What::Results, Some("child")),
            because
        );
        assert_eq!(
            why("kv-pool", Kind::Fork, What::Results, Some("data")),
            None
        );
        assert_eq!(why("kv-pool", Kind::Fork, What::Exit, None), None);
        assert_eq!(
            why("loader-fork", Kind::Fork, What::Results, Some("child")),
            None
        );
        let line = Some("pinbuddy: a region");
        assert_eq!(
            why("kv-pool", Kind::Fork, What::Warnings, line),
            Some("said".to_owned())
        );
        assert_eq!(why("kv-pool", Kind::PlugIn, What::Warnings, line), None);
    }

    #[test]
    fn what_is_no_longer_there_is_said_for_each_that_was_run() {
        let known =
            known("[[difference]]\nclient = 'kv-pool'\nwhat = 'exit'\nwhy = 'because'").unwrap();
        let crash = difference(What::Exit, None);
        let found = known.judge("kv-pool", Kind::Fork, vec![crash]);
        assert_eq!(known.gone("kv-pool", &[Kind::Fork], &found), [""; 0]);
        assert_eq!(
            known.gone("kv-pool", &BOTH, &found),
            ["exit no longer differs with the plug-in"]
        );
        assert_eq!(known.gone("kv-pool", &BOTH, &[]).len(), 2);
        assert_eq!(known.gone("loader-fork", &BOTH, &[]), [""; 0]);
    }

    #[test]
    fn a_client_that_is_not_there_and_a_reason_that_is_not_given_are_refused() {
        let text = "[[difference]]\nclient = 'kv'\nwhat = 'exit'\nwhy = 'because'";
        insta::assert_snapshot!(known(text).unwrap_err(), @r#"
        a known difference is of no client that there is
          found     client = "kv", what = "exit"
          expected  the name of a client, what differs, and why
          to do     correct differences.toml
        "#);
        let text = "[[difference]]\nclient = 'kv-pool'\nwhat = 'exit'\nwhy = ' '";
        assert!(
            known(text)
                .unwrap_err()
                .to_string()
                .contains("has no reason")
        );
        let text = "[[difference]]\nclient = 'kv-pool'\nwhat = 'time'\nwhy = 'because'";
        known(text).unwrap_err();
    }
}
