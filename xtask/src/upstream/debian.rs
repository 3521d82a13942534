//! PyTorch's 2.6.0 sources from Debian "trixie", in the user's cache.
//!
//! The archive's address comes from the machine's package sources. A private apt configuration fetches the package,
//! so the machine does not change and apt verifies the archive's signature. Once cached, no network is needed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use super::archive::Archive;
use crate::support::hash::Digest;
use crate::support::paths;
use crate::support::progress::Step;
use crate::support::refusal::{Refusal, refuse};
use crate::support::scratch::Scratch;

/// Debian's release, package, and the version that the tests are known to fit.
const RELEASE: &str = "trixie";
const PACKAGE: &str = "pytorch";
const VERSION: &str = "2.6.0+dfsg";
/// Hash of the upstream tarball, which is the same in all Debian revisions.
const TARBALL_SHA256: &str = "099a9601bc40d67656e75735c44abedb0fbe92d08817852ab7472eebb7e6ddff";

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The unpacked files: the tests, and memory_viz.
const WANTED: [&str; 3] = [
    "pytorch-*/test/*.py",
    "pytorch-*/aten/src/ATen/test/*",
    "pytorch-*/torch/utils/viz/*.js",
];

/// The tree with the unpacked files in the cache, fetched if missing.
pub fn ensure(step: &Step) -> Result<PathBuf> {
    let folder = paths::cache()
        .join("upstream")
        // Trees of earlier revisions had fewer files.
        .join(format!("{PACKAGE}-{VERSION}.2"));
    if folder.exists() {
        return Ok(folder);
    }
    let archive = archive()?;
    let work = Scratch::folder(&folder.with_extension("apt"))?;
    step.say(format!("asking Debian's archive for {PACKAGE} {VERSION}"));
    let tarball = download(&archive, work.path(), step)?;
    let found = Digest::of_file(&tarball)?.hex();
    if found != TARBALL_SHA256 {
        return Err(
            refuse(format!("{PACKAGE} {VERSION} is not the tarball it was"))
                .found(found)
                .expected(TARBALL_SHA256)
                .remedy("run it again; if that does not help, pass --source a checkout of pytorch")
                .into(),
        );
    }
    step.say("unpacking what is wanted of it");
    let tree = Scratch::folder(&folder)?;
    unpack(&tarball, tree.path())?;
    tree.publish(&folder)?;
    Ok(folder)
}

fn unpack(tarball: &Path, into: &Path) -> Result<()> {
    let shell = Shell::new()?;
    let output = cmd!(
        shell,
        "tar -xJf {tarball} -C {into} --strip-components=1 --wildcards --no-wildcards-match-slash {WANTED...}"
    )
    .quiet()
    .ignore_status()
    .output()
    .context("running tar")?;
    if output.status.success() {
        return Ok(());
    }
    Err(refuse("the tests cannot be unpacked")
        .found(String::from_utf8_lossy(&output.stderr).trim())
        .expected("tar and xz to work, and room on the disk")
        .remedy("apt-get install xz-utils")
        .into())
}

/// Runs apt-get with a private configuration; returns the upstream tarball.
fn download(archive: &Archive, work: &Path, step: &Step) -> Result<PathBuf> {
    for folder in ["state/lists/partial", "cache/archives/partial", "source"] {
        fs::create_dir_all(work.join(folder)).with_context(|| format!("creating {folder}"))?;
    }
    fs::write(
        work.join("sources.list"),
        archive.source_line(RELEASE, KEYRING),
    )?;
    apt(work, &["update"])?;
    step.say(format!("downloading {PACKAGE} {VERSION} (27 MB)"));
    apt(
        work,
        &["source", "--download-only", "--only-source", PACKAGE],
    )?;
    let tarball = work
        .join("source")
        .join(format!("{PACKAGE}_{VERSION}.orig.tar.xz"));
    if tarball.exists() {
        return Ok(tarball);
    }
    let names = fs::read_dir(work.join("source"))?
        .flatten()
        .map(|it| it.file_name());
    let names: Vec<_> = names.map(|it| it.to_string_lossy().into_owned()).collect();
    Err(
        refuse(format!("Debian's {RELEASE} has another {PACKAGE} now"))
            .found(names.join(", "))
            .expected(format!("{PACKAGE} {VERSION}"))
            .remedy("pass --source a checkout of pytorch")
            .into(),
    )
}

fn apt(work: &Path, arguments: &[&str]) -> Result<()> {
    let shell = Shell::new()?;
    shell.change_dir(work.join("source"));
    let show = |folder: &str| work.join(folder).display().to_string();
    let settings = [
        format!("Dir::State={}", show("state")),
        format!("Dir::Cache={}", show("cache")),
        format!("Dir::Etc::sourcelist={}", show("sources.list")),
        "Dir::Etc::sourceparts=/dev/null".to_owned(),
        // The folders belong to this user.
        "APT::Sandbox::User=root".to_owned(),
        "APT::Update::Error-Mode=any".to_owned(),
        "APT::Get::AllowUnauthenticated=false".to_owned(),
    ];
    let settings = settings.iter().flat_map(|setting| ["-o", setting.as_str()]);
    let output = cmd!(shell, "apt-get -q {settings...} {arguments...}")
        .env("LC_ALL", "C")
        .quiet()
        .ignore_status()
        .output();
    let output = output.map_err(|error| no_package(format!("apt-get: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with(['E', 'W']))
        .collect();
    Err(no_package(errors.join("\n")).into())
}

fn no_package(found: String) -> Refusal {
    refuse(format!(
        "Debian's source package {PACKAGE} {VERSION} cannot be had"
    ))
    .found(found)
    .expected(format!(
        "a Debian archive that answers, and its key in {KEYRING}"
    ))
    .remedy("connect to the network and run it again, or pass --source a checkout of pytorch")
}

fn archive() -> Result<Archive> {
    if !Path::new(KEYRING).exists() {
        return Err(no_package(format!("no {KEYRING}"))
            .remedy(
                "apt-get install debian-archive-keyring, or pass --source a checkout of pytorch",
            )
            .into());
    }
    Archive::of_this_machine().ok_or_else(|| {
        no_package("no Debian archive among the machine's package sources (/etc/apt)".into())
            .remedy("pass --source a checkout of pytorch")
            .into()
    })
}
