//! A line of the doctor's report: what was found, its status, and commands that improve it.

use serde::Serialize;

use super::setting::Setting;

/// Its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    /// Nothing to do.
    Ok,
    /// Works, but could be better.
    Note,
    /// The main job cannot run.
    Missing,
}

/// A command, and who runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Fix {
    /// `run`, `as root` or `on the host`: at most eleven letters.
    pub how: &'static str,
    /// The command, for a shell.
    pub command: String,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// Its subject, in a word or two.
    pub name: String,
    /// Its status.
    pub status: Status,
    /// What was found.
    pub value: String,
    /// Commands that improve it; one of them is enough.
    pub fixes: Vec<Fix>,
}

impl Finding {
    fn new(status: Status, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), status, value: value.into(), fixes: Vec::new() }
    }

    /// A finding that is fine.
    pub(super) fn ok(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(Status::Ok, name, value)
    }

    /// A finding that could be better.
    pub(super) fn note(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(Status::Note, name, value)
    }

    /// A finding of something that is missing.
    pub(super) fn missing(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(Status::Missing, name, value)
    }

    /// Adds a command that anyone may run.
    pub(super) fn run(self, command: impl Into<String>) -> Self {
        self.fix("run", command)
    }

    /// Adds a command for root.
    pub(super) fn root(self, command: impl Into<String>) -> Self {
        self.fix("as root", command)
    }

    /// Adds a command for whoever starts this container.
    pub(super) fn host(self, command: impl Into<String>) -> Self {
        self.fix("on the host", command)
    }

    /// Adds a command for root of the machine, outside of a container.
    pub(super) fn machine_root(self, setting: Setting, command: impl Into<String>) -> Self {
        if setting.container { self.host(command) } else { self.root(command) }
    }

    fn fix(mut self, how: &'static str, command: impl Into<String>) -> Self {
        let command = command.into();
        self.fixes.push(Fix { how, command });
        self
    }
}
