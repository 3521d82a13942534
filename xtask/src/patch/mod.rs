//! `cargo xtask patch`: the patch toolkit, on the checkout's series.

mod pristine;

use std::io::Write as _;

use anyhow::Result;

use crate::cli::patch::{Command, Patch, Verify};
use crate::programs::script;
use crate::support::paths;
use xtask_patchkit::release::{Release, Versions};
use xtask_patchkit::tree::Tree;
use xtask_patchkit::{apply, series};

/// The command.
pub fn run(args: &Patch) -> Result<()> {
    let versions = Versions::read(paths::root())?;
    match &args.command {
        Command::Verify(args) => verify(&versions, args),
        Command::Apply(args) => {
            let tree = Tree::open(&args.source, &versions)?;
            let release = match &args.torch {
                Some(version) => versions.find(Some(version))?,
                None => tree.release(&versions)?,
            };
            print!("{}", apply::to_tree(&tree, &versions.header, release, &series_of(release)?)?);
            Ok(())
        }
        Command::Header(args) => {
            let release = versions.find(args.torch.as_deref())?;
            let bytes = pristine::header(&versions, release, &args.python)?;
            Ok(std::io::stdout().write_all(&bytes)?)
        }
        Command::Drift(more) => match script("patch", &["drift"], more)? {},
        Command::Export(more) => match script("patch", &["export"], more)? {},
        Command::Rebase(more) => match script("patch", &["rebase"], more)? {},
    }
}

fn series_of(release: &Release) -> Result<Vec<series::Patch>> {
    series::read(&paths::root().join("patches").join(&release.series))
}

fn verify(versions: &Versions, args: &Verify) -> Result<()> {
    let releases = match args.all {
        true => versions.with_sources().collect(),
        false => vec![versions.find(args.torch.as_deref())?],
    };
    for release in releases {
        let (series, header) = (series_of(release)?, &versions.header);
        let bytes = pristine::header(versions, release, &args.python)?;
        let read = |path: &str| Ok((path == header).then(|| bytes.clone()));
        let after = apply::after("the official wheel", header, release, &series, &read)?;
        anyhow::ensure!(after.is_some(), "torch {} needs no series", release.version);
        println!(
            "torch {}: {} patches on the official wheel's header give SHA-256 {}, as pinned",
            release.version,
            series.len(),
            release.patched_sha256
        );
    }
    Ok(())
}
