//! Whether a Python has a wheel of a release. Refusals end with the typed command, corrected.

use xtask_patchkit::release::{Release, Versions, numbers};
use xtask_python::Python;
use xtask_support::refusal::{Refusal, refuse};
use xtask_support::typed;

/// The refusal of a Python that the release has no official wheel for. `typed` is the command line.
pub fn no_wheel_for(versions: &Versions, release: &Release, python: &Python, typed: &[String]) -> Option<Refusal> {
    let (version, pythons, own) = (&release.version, &release.pythons, python.short());
    if pythons.is_empty() || pythons.contains(&own) {
        return None;
    }
    let mut remedy = Vec::new();
    let minor = |it: &&String| numbers(it).get(1).map(|it| it.abs_diff(python.version.1));
    let with_lock = pythons.iter().filter(|it| !it.ends_with('t'));
    if let Some(other) = with_lock.min_by_key(minor) {
        remedy.push(typed::with(typed, "--python", &format!("python{other}")));
    }
    let sorted = versions.sorted();
    let older = sorted.iter().rev().find(|it| it.pythons.contains(&own));
    if let Some(older) = older {
        let command = typed::with(typed, "--torch", &older.version);
        remedy.push(format!("{command}  # the newest one for Python {own}"));
    }
    let refusal = refuse(format!("torch {version} has no official wheel for Python {own}"))
        .found(python.describe())
        .expected(format!("one of Python {}", pythons.join(", ")));
    Some(refusal.remedy(remedy.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask_patchkit::fixture::releases;
    use xtask_python::python311;

    #[test]
    fn a_python_without_a_wheel() {
        let versions = releases();
        let newest = versions.find(None).unwrap();
        let line = ["build-wheel", "--python", "python3"].map(str::to_owned);
        let refused = |python: &Python| {
            let refusal = no_wheel_for(&versions, newest, python, &line);
            refusal.map(|it| it.to_string()).unwrap_or_default()
        };
        let mut python = python311();
        let older = refused(&python);
        python.version = (3, 9, 2);
        insta::assert_snapshot!("no_wheel", format!("{older}\n\n{}", refused(&python)));
        python.version = (3, 13, 0);
        assert_eq!(refused(&python), "");
        python.free_threaded = true;
        assert!(refused(&python).contains("no official wheel for Python 3.13t"));
        python.version = (3, 14, 0);
        assert_eq!(refused(&python), "");
    }
}
