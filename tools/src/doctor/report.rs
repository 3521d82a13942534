//! The report: findings by subject, as a text table and as JSON.

use std::fmt;

use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;

use super::finding::{Finding, Fix, Status};

#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Whether a program can pin memory here.
    pub ready: bool,
    /// The groups of findings, in order.
    pub subjects: Vec<Subject>,
}

/// A group of findings.
#[derive(Debug, Serialize)]
pub(super) struct Subject {
    pub subject: &'static str,
    pub findings: Vec<Finding>,
}

impl Report {
    /// A report of these groups.
    pub(super) fn new(subjects: Vec<(&'static str, Vec<Finding>)>) -> Self {
        let some = subjects.into_iter().filter(|it| !it.1.is_empty());
        let subjects = some.map(|(subject, findings)| Subject { subject, findings });
        let subjects: Vec<_> = subjects.collect();
        let mut all = subjects.iter().flat_map(|it| &it.findings);
        let ready = all.all(|it| it.status != Status::Missing);
        Self { ready, subjects }
    }

    /// As text; with colours for a terminal.
    pub(super) fn display(&self, colours: bool) -> impl fmt::Display {
        let report = self;
        Text { report, colours }
    }

    /// The findings of one status.
    pub(super) fn of(&self, status: Status) -> impl Iterator<Item = &Finding> {
        let all = self.subjects.iter().flat_map(|it| &it.findings);
        all.filter(move |it| it.status == status)
    }

    /// The last line: whether the machine is ready, and how many things could be better.
    fn verdict(&self) -> String {
        let notes = match self.of(Status::Note).count() {
            0 => String::new(),
            1 => " One thing could be better.".to_owned(),
            many => format!(" {many} things could be better."),
        };
        let names = self.of(Status::Missing).map(|it| it.name.as_str());
        let names: Vec<_> = names.collect();
        if names.is_empty() {
            format!("The machine is ready: programs can pin memory here.{notes}")
        } else {
            format!("Needed and missing: {}.{notes}", names.join(", "))
        }
    }
}

struct Text<'a> {
    report: &'a Report,
    colours: bool,
}

impl Text<'_> {
    fn style(&self, style: Style) -> Style {
        if self.colours { style } else { Style::new() }
    }

    fn finding(&self, f: &mut fmt::Formatter<'_>, finding: &Finding, width: usize) -> fmt::Result {
        let Finding { name, value, .. } = finding;
        let (word, colour) = match finding.status {
            Status::Ok => ("ok", AnsiColor::Green),
            Status::Note => ("note", AnsiColor::Yellow),
            Status::Missing => ("missing", AnsiColor::Red),
        };
        let colour = self.style(colour.on_default());
        writeln!(f, "  {colour}{word:<9}{colour:#}{name:<width$}  {value}")?;
        let dim = self.style(Style::new().dimmed());
        for Fix { how, command } in &finding.fixes {
            writeln!(f, "  {:9}{dim}{how:<width$}{dim:#}  {command}", "")?;
        }
        Ok(())
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.report.subjects.iter().flat_map(|it| &it.findings);
        let width = names.map(|it| it.name.chars().count()).max().unwrap_or(0);
        let bold = self.style(Style::new().bold());
        for Subject { subject, findings } in &self.report.subjects {
            writeln!(f, "{bold}{subject}{bold:#}")?;
            for finding in findings {
                self.finding(f, finding, width)?;
            }
            writeln!(f)?;
        }
        writeln!(f, "{}", self.report.verdict())
    }
}
