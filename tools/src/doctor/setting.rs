//! The setting in which suggested commands will run: the package manager, and whether this is a container.

use serde::Serialize;

use pinbuddy_machine::Files;

/// Decides how a command is worded.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Setting {
    /// The package manager, if it is known.
    pub packages: Option<Packages>,
    /// In a container, limits and drivers belong to the host.
    pub container: bool,
}

/// A package manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Packages {
    /// apt-get.
    Apt,
    /// dnf.
    Dnf,
}

impl Setting {
    /// Looks for package managers, and for the marks of container runtimes.
    pub(super) fn read(files: &Files) -> Self {
        let packages = if files.exists("usr/bin/apt-get") {
            Some(Packages::Apt)
        } else if files.exists("usr/bin/dnf") {
            Some(Packages::Dnf)
        } else {
            None
        };
        let marks = [".dockerenv", "run/.containerenv", "run/secrets/kubernetes.io"];
        Self { packages, container: marks.iter().any(|it| files.exists(it)) }
    }

    /// The command that installs a package, given its name for each package manager.
    pub(super) fn install(self, apt: &str, dnf: &str) -> String {
        match self.packages {
            Some(Packages::Apt) => format!("apt-get install {apt}"),
            Some(Packages::Dnf) => format!("dnf install {dnf}"),
            None => format!("apt-get install {apt}, or dnf install {dnf}"),
        }
    }
}
