//! `cargo xtask patch`: the patch toolkit, on the checkout's series.

pub mod pristine;

use anyhow::Result;

use crate::cli::patch::{Change, Command, Commits, Drift, Patch, Rebase, Verify};
use crate::support::paths;
use crate::support::refusal::refuse;
use xtask_patchkit::change::{self, Wanted};
use xtask_patchkit::git::Direction;
use xtask_patchkit::judge::Trial;
use xtask_patchkit::outcome::Outcome;
use xtask_patchkit::rebase::{self, Earlier, Goal};
use xtask_patchkit::release::Versions;
use xtask_patchkit::tree::Tree;
use xtask_patchkit::{Told, commits, drift, lint, series, verify};

/// The command.
pub fn run(args: &Patch) -> Result<()> {
    match &args.command {
        Command::Verify(args) => verify(args),
        Command::Apply(args) => change(args, Direction::Forward),
        Command::Unapply(args) => change(args, Direction::Reverse),
        Command::Lint => lint(),
        Command::Drift(args) => drift(args),
        Command::Import(args) => commits(args, commits::import),
        Command::Export(args) => commits(args, commits::export),
        Command::Rebase(args) => rebase(args),
    }
}

fn verify(args: &Verify) -> Result<()> {
    let root = paths::root();
    let versions = Versions::read(root)?;
    let mut all = Vec::new();
    if let Some(folder) = &args.source {
        all.push(verify::on_tree(root, &versions, folder)?);
    } else {
        let releases = if args.all {
            versions.sorted()
        } else {
            vec![versions.find(args.torch.as_deref())?]
        };
        for release in releases {
            let series = series::read(&root.join("patches").join(&release.series))?;
            let files = pristine::get(&versions, release, &series, &args.python)?;
            let read = |path: &str| Ok(files.get(path).cloned().flatten());
            let on = "the official wheel's header";
            all.push(verify::try_on(root, &versions, release, on, &read)?);
        }
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&all)?);
    } else {
        print!("{}", verify::describe(&all));
    }
    verify::require(&all)
}

fn change(args: &Change, direction: Direction) -> Result<()> {
    let root = paths::root();
    let wanted = Wanted {
        source: &args.source,
        torch: args.torch.as_deref(),
        force: args.force,
    };
    let versions = Versions::read(root)?;
    print!("{}", change::change(root, &versions, wanted, direction)?);
    Ok(())
}

fn lint() -> Result<()> {
    let root = paths::root();
    let versions = Versions::read(root)?;
    let wrong = lint::check(root, &versions)?;
    if wrong.is_empty() {
        println!(
            "patches: {} releases are as they should be",
            versions.with_sources().count()
        );
        return Ok(());
    }
    Err(refuse("the patches are not as they should be")
        .found(wrong.join("\n"))
        .remedy("change what is named above, then run the same command again")
        .into())
}

fn drift(args: &Drift) -> Result<()> {
    let root = paths::root();
    let versions = Versions::read(root)?;
    let drift = drift::look(root, &versions, &args.source, args.torch.as_deref())?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&drift)?);
    } else {
        print!("{}", drift::describe(&drift));
    }
    Ok(())
}

fn commits(args: &Commits, act: Told) -> Result<()> {
    let root = paths::root();
    let versions = Versions::read(root)?;
    let torch = args.torch.as_deref();
    print!("{}", act(root, &versions, &args.source, torch)?);
    Ok(())
}

fn rebase(args: &Rebase) -> Result<()> {
    let root = paths::root();
    let versions = Versions::read(root)?;
    let from = versions.find(Some(&args.from))?;
    let series = series::read(&root.join("patches").join(&from.series))?;
    let goal = match (&args.to, &args.source) {
        (Some(version), _) => Goal::Release(versions.find(Some(version))?.version.clone()),
        (None, Some(folder)) => Goal::Tree(Tree::open(folder, &versions)?),
        (None, None) => anyhow::bail!("there is nothing to carry the series to"),
    };
    let folder = paths::target().join("rebase");
    let job = goal.job(&from.version, &series, &folder);
    let earlier = match (args.go_on, args.restart) {
        (true, _) => Earlier::Continued,
        (_, true) => Earlier::Discarded,
        _ => Earlier::Remade,
    };
    let files = || {
        let old = pristine::get(&versions, from, &series, &args.python)?;
        let trial = Trial {
            header: &versions.header,
            release: from,
            series: &series,
        };
        let outcome = trial.forward(&|path| Ok(old.get(path).cloned().flatten()))?;
        let new = match &goal {
            Goal::Release(version) => {
                let release = versions.find(Some(version))?;
                pristine::get(&versions, release, &series, &args.python)?
            }
            Goal::Tree(tree) => rebase::files(tree, &series)?,
        };
        match outcome.outcome {
            Outcome::Clean => Ok((old, new)),
            other => Err(
                refuse(format!("the series for {} is not in order", job.from))
                    .found(other.to_string())
                    .expected("a series that gives what is pinned")
                    .remedy(other.remedy())
                    .into(),
            ),
        }
    };
    print!("{}", rebase::carry(&job, earlier, files)?);
    Ok(())
}
