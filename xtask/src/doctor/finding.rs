//! One line of the doctor's report: what is there, how good that is, and what would make it better.

use serde::Serialize;

use super::setting::Setting;

/// How good it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Nothing to do.
    Ok,
    /// Works, and could be better.
    Note,
    /// The main job cannot run.
    Missing,
}

/// A command, and who runs it or where: `run`, `as root`, `on the host`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// Completes "…:", at most eleven letters.
    pub how: &'static str,
    /// To be pasted into a shell.
    pub command: String,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about, in a word or two.
    pub name: String,
    /// How good it is.
    pub status: Status,
    /// What is there.
    pub value: String,
    /// What makes it better: one of these commands.
    pub fixes: Vec<Fix>,
}

impl Finding {
    fn new(status: Status, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            status,
            value: value.into(),
            fixes: Vec::new(),
        }
    }

    /// As it should be.
    pub fn ok(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(Status::Ok, name, value)
    }

    /// Could be better.
    pub fn note(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(Status::Note, name, value)
    }

    /// Needed and not there.
    pub fn missing(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new(Status::Missing, name, value)
    }

    /// Adds a command that anyone may run.
    pub fn run(self, command: impl Into<String>) -> Self {
        self.fix("run", command)
    }

    /// Adds a command for root.
    pub fn root(self, command: impl Into<String>) -> Self {
        self.fix("as root", command)
    }

    /// Adds a command for who starts this container.
    pub fn host(self, command: impl Into<String>) -> Self {
        self.fix("on the host", command)
    }

    /// Adds a command for the machine's root, who is outside of a container.
    pub fn machine_root(self, setting: Setting, command: impl Into<String>) -> Self {
        if setting.container {
            self.host(command)
        } else {
            self.root(command)
        }
    }

    fn fix(mut self, how: &'static str, command: impl Into<String>) -> Self {
        let command = command.into();
        self.fixes.push(Fix { how, command });
        self
    }
}
