//! What is wrong on purpose: a package of a licence that is not allowed, from a git repository, without a version; and an
//! advisory about a crate that we use.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use xshell::Shell;
use xtask_patchkit::git;

use super::{Advisories, Deny};

/// A crate that this workspace depends on.
const USED: &str = "anyhow";

/// Where the database of advisories is said to be. No such host can exist.
const URL: &str = "https://sample.invalid/advisories";

const ID: &str = "RUSTSEC-2000-0001";

/// Whether cargo-deny, with the rules in `config`, complains of what is wrong here, and says when advisories cannot be had.
pub(super) fn is_complained_of(program: &Path, manifest: &Path, config: &Path) -> Result<()> {
    let folder = tempfile::tempdir().context("making a folder for what is wrong")?;
    let folder = folder.path();
    let deny = write(program, folder, config)?;
    let said = deny.rules(&[])?.unwrap_or_default();
    for complaint in ["source-not-allowed", "wildcard", "GPL-3.0-only"] {
        ensure!(
            said.contains(complaint),
            "cargo-deny does not say {complaint} of what is wrong:\n{said}"
        );
    }
    let mut deny = Deny {
        manifest: manifest.to_owned(),
        environment: Vec::new(),
        ..deny
    };
    let advisories = deny.advisories()?;
    ensure!(
        matches!(advisories, Ok(Advisories::NotHad(_))),
        "cargo-deny has advisories from nowhere: {advisories:?}"
    );
    deny.environment = in_place_of_url(folder);
    let advisories = deny.advisories()?;
    ensure!(
        matches!(&advisories, Err(said) if said.contains(ID)),
        "cargo-deny does not say {ID} of what is wrong: {advisories:?}"
    );
    Ok(())
}

/// A repository that is the wrong package and the database at once, and a package that uses it.
fn write(program: &Path, folder: &Path, config: &Path) -> Result<Deny> {
    let (wrong, uses) = (folder.join("wrong"), folder.join("uses"));
    let advisory = format!(
        "```toml\n[advisory]\nid = \"{ID}\"\npackage = \"{USED}\"\ndate = \"2000-01-01\"\n[versions]\npatched = []\n```\n\n\
         # A sample\n\nNothing is wrong.\n"
    );
    let package = |name, rest: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"1.0.0\"\nedition = \"2024\"\n{rest}")
    };
    let dependency = format!(
        "license = \"MIT\"\n[dependencies]\nwrong.git = \"file://{}\"\n",
        wrong.display()
    );
    // The section of advisories is the last.
    let rules = fs::read_to_string(config).context("reading deny.toml")?;
    let rules = format!(
        "{rules}\ndb-path = \"{}\"\ndb-urls = [\"{URL}\"]\n",
        folder.join("databases").display()
    );
    for (file, text) in [
        (wrong.join("src/lib.rs"), ""),
        (
            wrong.join("Cargo.toml"),
            &package("wrong", "license = \"GPL-3.0-only\"\n"),
        ),
        (wrong.join(format!("crates/{USED}/{ID}.md")), &advisory),
        (uses.join("src/lib.rs"), ""),
        (uses.join("Cargo.toml"), &package("uses", &dependency)),
        (folder.join("deny.toml"), &rules),
    ] {
        fs::create_dir_all(file.parent().unwrap_or(folder))?;
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    let shell = Shell::new()?;
    for arguments in [
        &["init", "--quiet", "--initial-branch", "main"][..],
        &["add", "."],
        &["commit", "--quiet", "--message", "sample"],
    ] {
        let git = git::at(&shell, &wrong)
            .env("GIT_AUTHOR_NAME", "sample")
            .env("GIT_AUTHOR_EMAIL", "sample@localhost");
        git::output(git.args(arguments))?;
    }
    Ok(Deny {
        program: program.to_owned(),
        manifest: uses.join("Cargo.toml"),
        config: folder.join("deny.toml"),
        // What cargo fetches for it goes away with it.
        environment: vec![(
            "CARGO_HOME".to_owned(),
            folder.join("home").display().to_string(),
        )],
    })
}

/// Has git take the repository for what is at [`URL`].
fn in_place_of_url(folder: &Path) -> Vec<(String, String)> {
    let key = format!("url.file://{}/wrong.insteadOf", folder.display());
    [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", &key),
        ("GIT_CONFIG_VALUE_0", URL),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}
