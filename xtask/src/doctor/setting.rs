//! Where commands will be run: which package manager there is, and whether this is a container.

use serde::Serialize;

use pinbuddy_machine::Files;

/// Decides how a command is worded.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Setting {
    /// Debian's kind, Red Hat's, or another.
    pub packages: Option<Packages>,
    /// Limits and drivers are then the host's affair.
    pub container: bool,
}

/// A package manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Packages {
    /// apt-get.
    Apt,
    /// dnf.
    Dnf,
}

impl Setting {
    /// Looks for the programs, and for the marks that container runtimes leave.
    pub fn read(files: &Files) -> Self {
        let packages = if files.exists("usr/bin/apt-get") {
            Some(Packages::Apt)
        } else if files.exists("usr/bin/dnf") {
            Some(Packages::Dnf)
        } else {
            None
        };
        let marks = [
            ".dockerenv",
            "run/.containerenv",
            "run/secrets/kubernetes.io",
        ];
        Self {
            packages,
            container: marks.iter().any(|it| files.exists(it)),
        }
    }

    /// The command that installs a package, by its name on either kind of system.
    pub fn install(self, apt: &str, dnf: &str) -> String {
        match self.packages {
            Some(Packages::Apt) => format!("apt-get install {apt}"),
            Some(Packages::Dnf) => format!("dnf install {dnf}"),
            None => format!("apt-get install {apt}, or dnf install {dnf}"),
        }
    }
}
