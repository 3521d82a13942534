//! `cargo xtask patch`: the patch toolkit, on the checkout's series.

mod pristine;

use std::path::Path;

use anyhow::Result;

use crate::cli::patch::{Command, Drift, Export, Patch, Rebase, Verify};
use crate::support::paths;
use xtask_patchkit::fit::{self, Files};
use xtask_patchkit::release::{Release, Versions};
use xtask_patchkit::tree::Tree;
use xtask_patchkit::{apply, drift, export, rebase, series};

/// The command.
pub fn run(args: &Patch) -> Result<()> {
    let versions = Versions::read(paths::root())?;
    match &args.command {
        Command::Verify(args) => verify(&versions, args),
        Command::Apply(args) => {
            let (tree, release) = open(&versions, &args.source, args.torch.as_deref())?;
            print!(
                "{}",
                apply::to_tree(&tree, &versions.header, release, &series_of(release)?)?
            );
            Ok(())
        }
        Command::Drift(args) => drift(&versions, args),
        Command::Export(args) => export(&versions, args),
        Command::Rebase(args) => rebase(&versions, args),
    }
}

fn series_of(release: &Release) -> Result<Vec<series::Patch>> {
    series::read(&paths::root().join("patches").join(&release.series))
}

/// A tree, and the release that was named or that the tree is of.
fn open<'a>(
    versions: &'a Versions,
    source: &Path,
    torch: Option<&str>,
) -> Result<(Tree, &'a Release)> {
    let tree = Tree::open(source, versions)?;
    let release = match torch {
        Some(version) => versions.find(Some(version))?,
        None => tree.release(versions)?,
    };
    Ok((tree, release))
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

fn drift(versions: &Versions, args: &Drift) -> Result<()> {
    let tree = Tree::open(&args.source, versions)?;
    let release = match &args.torch {
        Some(version) => versions.find(Some(version))?,
        None => tree.release(versions).or_else(|_| versions.find(None))?,
    };
    print!("{}", drift::look(&tree, release, &series_of(release)?)?);
    Ok(())
}

fn export(versions: &Versions, args: &Export) -> Result<()> {
    let (tree, release) = open(versions, &args.source, args.torch.as_deref())?;
    let patches = paths::root().join("patches");
    print!(
        "{}",
        export::export(&patches, &versions.header, &tree, release)?
    );
    Ok(())
}

fn rebase(versions: &Versions, args: &Rebase) -> Result<()> {
    let from = versions.find(Some(&args.from))?;
    let series = series_of(from)?;
    let of_release = |release: &Release| -> Result<(String, Files)> {
        let bytes = pristine::header(versions, release, &args.python)?;
        let files = Files::from([(versions.header.clone(), Some(bytes))]);
        Ok((format!("torch {}", release.version), files))
    };
    let folder = |to: &str| {
        paths::target()
            .join("rebase")
            .join(format!("{}-to-{to}", from.version))
    };
    let (to, folder, next) = match (&args.to, &args.source) {
        (Some(version), _) => {
            let release = versions.find(Some(version))?;
            let folder = folder(&release.version);
            let next = format!(
                "cargo xtask patch export --source {} --torch {}",
                paths::show(&folder),
                release.version
            );
            (of_release(release)?, folder, next)
        }
        (None, Some(source)) => {
            let tree = Tree::open(source, versions)?;
            let shown = tree.root.display().to_string();
            let folder = folder(&tree.root.file_name().unwrap_or_default().to_string_lossy());
            let next = format!(
                "git -C {} diff to..new | git -C {shown} apply",
                paths::show(&folder)
            );
            let files = fit::read_all(&series, &|path| tree.read(path))?;
            ((shown, files), folder, next)
        }
        (None, None) => anyhow::bail!("there is nothing to carry the series to"),
    };
    let from = of_release(from)?;
    let job = rebase::Job {
        series: &series,
        from,
        to,
        folder,
        next,
    };
    print!("{}", rebase::carry(&job)?);
    Ok(())
}
