//! `ci/fresh.sh`: a home of cargo's and a cache that start empty, with this machine's configuration.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Runs what follows `source ci/fresh.sh`, for a user whose home is that folder.
fn shell(home: &Path, script: &str) -> Output {
    Command::new("bash")
        .args([
            "-c",
            &format!("set -euo pipefail; source ci/fresh.sh; {script}"),
        ])
        .current_dir(root())
        .env_clear()
        .envs([
            ("HOME", home.as_os_str()),
            ("PATH", "/usr/bin:/bin".as_ref()),
        ])
        .output()
        .unwrap()
}

#[test]
fn cargos_home_has_the_configuration_and_nothing_that_was_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let theirs = folder.path().join(".cargo");
    let fresh = folder.path().join("fresh");
    for (name, text) in [
        ("config.toml", "[net]\nretry = 3\n"),
        ("registry/cache/cxx.crate", "fetched"),
    ] {
        let path = theirs.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    // What the last run has fetched goes, too.
    fs::create_dir_all(fresh.join("registry/cache")).unwrap();
    let script = format!(
        "fresh_cargo_home {0}; echo $CARGO_HOME; echo $PATH; find {0} -type f",
        fresh.display()
    );
    let output = shell(folder.path(), &script);
    let expected = format!(
        "{0}\n/usr/bin:/bin:{1}/bin\n{0}/config.toml\n",
        fresh.display(),
        theirs.display()
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert_eq!(
        fs::read_to_string(fresh.join("config.toml")).unwrap(),
        "[net]\nretry = 3\n"
    );
    assert!(
        theirs.join("registry/cache/cxx.crate").exists(),
        "the user's own stays"
    );
}

#[test]
fn a_home_without_configuration_and_the_cache_are_empty() {
    let folder = tempfile::tempdir().unwrap();
    let (home, cache) = (folder.path().join("cargo"), folder.path().join("cache"));
    fs::create_dir(&cache).unwrap();
    fs::write(cache.join("torch.whl"), "").unwrap();
    let script = format!(
        "fresh_cargo_home {}; fresh_cache {}; ls -A $CARGO_HOME $XDG_CACHE_HOME | grep -v : || true",
        home.display(),
        cache.display()
    );
    let output = shell(folder.path(), &script);
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "");
}

#[test]
fn the_home_in_use_is_not_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join(".cargo");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("config.toml"), "").unwrap();
    let output = shell(
        folder.path(),
        &format!("fresh_cargo_home {}", home.display()),
    );
    assert!(!output.status.success() && home.join("config.toml").exists());
}

/// They are run with nothing else set.
#[test]
fn what_a_change_must_pass_and_the_nightly_run_start_so() {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    for name in [".ci/run", "ci/nightly.sh"] {
        let text = read(name);
        let first = text.find("fresh_cargo_home").unwrap();
        assert!(text.find("\ncargo xtask").unwrap() > first, "{name}");
    }
    assert!(read("ci/nightly.sh").contains("fresh_cache"));
}
