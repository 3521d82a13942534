//! What the tree's linters said, for people and for the pull request.

use std::fmt::Write as _;

/// All of it.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
    /// Why there is nothing at all.
    pub none: Option<String>,
    /// What clang-format makes of the changed lines.
    pub layout: Vec<String>,
}

#[derive(Debug)]
struct Row {
    code: String,
    files: Vec<String>,
    said: Said,
}

/// What became of one linter.
#[derive(Debug)]
pub enum Said {
    /// It was run.
    Ran {
        /// What it says of the change.
        new: Vec<String>,
        /// How much it says of the files as they were.
        before: usize,
    },
    /// It was not.
    NotRun(String),
}

impl Report {
    /// One linter that looks at some of the files.
    pub fn add(&mut self, code: &str, files: Vec<String>, said: Said) {
        let code = code.to_owned();
        self.rows.push(Row { code, files, said });
    }

    /// What has to be mended.
    pub fn problems(&self) -> Vec<String> {
        let each = self.rows.iter().filter_map(|row| match &row.said {
            Said::Ran { new, .. } => Some(new.iter().map(|it| format!("{}: {it}", row.code))),
            Said::NotRun(_) => None,
        });
        each.flatten().collect()
    }

    /// A Markdown list: what ran, and what did not.
    pub fn describe(&self) -> String {
        if let Some(why) = &self.none {
            return format!("- no linter was run: {why}\n");
        }
        let mut text = String::new();
        let mut clean: Vec<&str> = Vec::new();
        for Row { code, files, said } in &self.rows {
            let _ = match said {
                Said::Ran { new, before: 0 } if new.is_empty() => {
                    clean.push(code);
                    Ok(())
                }
                Said::Ran { new, before } if new.is_empty() => writeln!(
                    text,
                    "- {code}: nothing new; {before} messages about the files as they were"
                ),
                Said::Ran { new, .. } => writeln!(text, "- {code}: {}", new.join("; ")),
                Said::NotRun(why) => {
                    writeln!(text, "- not run: {code}, for {}: {why}", files.join(", "))
                }
            };
        }
        if !clean.is_empty() {
            text.insert_str(0, &format!("- clean: {}\n", clean.join(", ")));
        }
        for line in &self.layout {
            let _ = writeln!(text, "- {line}");
        }
        text
    }
}
