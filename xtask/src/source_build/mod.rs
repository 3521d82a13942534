//! `cargo xtask build-wheel --source`: builds a fork wheel from a PyTorch source tree.
//!
//! PyTorch's own build makes the wheel; its patched CMake builds our library and links it into libtorch_cuda.
//! Invariants: the tree is only read, except with `--keep`; the same command resumes an interrupted build; the
//! result gets its name only after it was read back and verified.

mod finish;
mod plan;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::build_wheel::commit;
use crate::build_wheel::summary::{self, StepTime, Summary};
use crate::cli;
use crate::python::{pip, tools};
use crate::support::progress::{Progress, Step};
use crate::support::refusal::refuse;
use crate::support::scratch::Scratch;
use crate::support::{disk, lock, paths};
use plan::Plan;
use xtask_patchkit::fit::{self, Files, Fit};
use xtask_patchkit::release::Versions;
use xtask_patchkit::tree::Tree;
use xtask_patchkit::{apply, git};

const STEPS: usize = 4;
/// Disk space for a tree with submodules, objects and libraries for several GPUs, and two wheels, in bytes.
const ROOM: u64 = 45_000_000_000;
/// How many of the log's last lines a failure shows.
const LAST: usize = 30;
/// A tree without git's folders and build results: of a checkout, what git tracks or would add. What is newer in the copy
/// stays: it is patched.
const COPY: &str = r#"set -o pipefail
if [ -e .git ]; then
    { git ls-files -z --cached --recurse-submodules && git ls-files -z --others --exclude-standard; } |
        while IFS= read -r -d '' it; do if [ -e "$it" ] || [ -L "$it" ]; then printf '%s\0' "$it"; fi; done
else
    find . \( -name .git -o -path ./build -o -path ./dist \) -prune -o ! -type d -print0
fi | tar --create --null --no-recursion --files-from=- |
    tar --extract --keep-newer-files --warning=none --directory "$0""#;

pub fn run(args: &cli::BuildWheel, source: &Path) -> Result<()> {
    let root = paths::root();
    let plan = Plan::make(root, &Versions::read(root)?, source, args)?;
    // Whether the series apply is found out first, before the long work.
    patched(&plan, &plan.tree)?;
    let missing = plan.missing()?;
    if args.dry_run {
        print!("{}", plan.describe(&missing));
        return Ok(());
    }
    if !missing.is_empty() {
        return Err(refuse("PyTorch cannot be built here")
            .found(missing.join("\n"))
            .expected("what is named above; nothing was done")
            .into());
    }
    let _lock = lock::take("source")?;
    disk::require(&plan.work, ROOM, "build PyTorch")?;
    disk::require_writable(&plan.out)?;
    let summary = make(&plan, &Progress::new(STEPS))?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&summary)?);
    } else {
        print!("\n{summary}");
    }
    Ok(())
}

/// Everything after the checks.
fn make(plan: &Plan, progress: &Progress) -> Result<Summary> {
    fs::create_dir_all(&plan.work).with_context(|| format!("creating {}", plan.work.display()))?;
    progress.step("lay out the tree, with the series", |_| lay_out(plan))?;
    progress.step("make the build's environment", |_| make_environment(plan))?;
    let built = progress.step("run PyTorch's own build", |step| build(plan, step))?;
    let made = progress.step("write the fork wheel, and read it back", |step| {
        finish::write(plan, &built, step)
    })?;
    if !plan.keep {
        fs::remove_dir_all(&plan.work)
            .with_context(|| format!("removing {}", paths::show(&plan.work)))?;
    }
    Ok(Summary {
        bytes: fs::metadata(&made.path)?.len(),
        install: summary::install(&plan.python.executable, &made.path),
        path: made.path,
        sha256: made.sha256,
        version: plan.version.clone(),
        series: plan.release.series.clone(),
        floors: made.floors,
        tag: made.name.platform,
        library_bytes: made.library_bytes,
        commit: commit(),
        steps: StepTime::list(progress.times()),
    })
}

/// What the series change in a tree, afterwards: the seam's, whose result is pinned, then the source build's. Patches that
/// are applied already are left alone.
fn patched(plan: &Plan, tree: &Tree) -> Result<Files> {
    let release = &plan.release;
    let mut all = match fit::fit(&plan.header, release, &plan.series, &|path| tree.read(path))? {
        Fit::Clean(after) => after,
        Fit::Applied => Files::new(),
        Fit::Drifted(found) => {
            return Err(refuse(format!(
                "{} is not torch {}",
                tree.root.display(),
                release.version
            ))
            .found(format!("{} with SHA-256 {found}", plan.header))
            .expected(format!(
                "SHA-256 {}, or the pinned result of the series; nothing was changed",
                release.header_sha256
            ))
            .remedy(format!(
                "git -C {} checkout v{} -- {}",
                tree.root.display(),
                release.version,
                plan.header
            ))
            .into());
        }
    };
    let mut left = Vec::new();
    for patch in &plan.source_series {
        if !git::is_applied(&patch.path, &tree.root)? {
            left.push(patch.clone());
        }
    }
    let read = |path: &str| {
        all.get(path)
            .map_or_else(|| tree.read(path), |it| Ok(it.clone()))
    };
    let what = || format!("the series for source builds and {}", tree.root.display());
    let after = fit::apply(&left, &fit::read_all(&left, &read)?).with_context(what)?;
    all.extend(after);
    Ok(all)
}

/// Copies the tree, unless it is built in itself, and applies the series.
fn lay_out(plan: &Plan) -> Result<()> {
    let build_tree = plan.build_tree();
    if !plan.keep {
        fs::create_dir_all(&build_tree)?;
        let shell = Shell::new()?;
        shell.change_dir(&plan.tree.root);
        let copy = git::unbound(cmd!(shell, "bash -c {COPY} {build_tree}"));
        copy.quiet().run().context("copying the tree")?;
    }
    let tree = Tree {
        root: build_tree,
        version: plan.tree.version.clone(),
        header: None,
    };
    let remedy = || {
        format!(
            "if an earlier run has left it so: rm -r {}",
            paths::show(&plan.work)
        )
    };
    apply::replace(&patched(plan, &tree).with_context(remedy)?, &tree.root)
}

/// Makes the environment, unless it has these packages.
fn make_environment(plan: &Plan) -> Result<()> {
    let folder = plan.work.join("venv");
    let marker = folder.join("pinbuddy-source");
    let wanted = format!("{}\n{}\n", plan.python.describe(), plan.packages.join("\n"));
    if fs::read_to_string(&marker).is_ok_and(|it| it == wanted) {
        return Ok(());
    }
    tools::make_environment(&plan.python.executable, &folder)?;
    if !plan.packages.is_empty() {
        let temporary = Scratch::folder(&plan.work.join("pip"))?;
        let mut arguments = vec!["install", "--quiet"];
        arguments.extend(plan.packages.iter().map(String::as_str));
        let goal = "install what PyTorch's build needs";
        pip::run(&plan.interpreter(), &arguments, temporary.path(), goal)?;
    }
    Ok(fs::write(marker, wanted)?)
}

/// Runs PyTorch's build, which goes on where it was interrupted; returns the path of the wheel.
fn build(plan: &Plan, step: &Step) -> Result<PathBuf> {
    let (built, log) = (plan.built(), plan.work.join("build.log"));
    let _ = fs::remove_dir_all(&built);
    fs::create_dir_all(&built).with_context(|| format!("creating {}", built.display()))?;
    let words = plan.command();
    let mut file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
    writeln!(file, "{}", words.join(" "))?;
    step.note(&format!("its output: tail -f {}", paths::show(&log)));
    let mut command = Command::new(&words[0]);
    for name in plan::REMOVED.split_ascii_whitespace() {
        command.env_remove(name);
    }
    let status = command
        .args(&words[1..])
        .current_dir(plan.build_tree())
        .envs(plan.variables.iter().cloned())
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .status()
        .with_context(|| format!("starting {}", words[0]))?;
    let found = fs::read_dir(&built)?.flatten().map(|it| it.path());
    let mut found = found.filter(|it| it.extension().is_some_and(|it| it == "whl"));
    if let (true, Some(wheel), None) = (status.success(), found.next(), found.next()) {
        return Ok(wheel);
    }
    let text = fs::read(&log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    Err(refuse("PyTorch's own build failed")
        .found(format!("{}\n{status}", lines[lines.len().saturating_sub(LAST)..].join("\n")))
        .expected(format!("one wheel in {}, from the command in the log's first line", paths::show(&built)))
        .remedy(format!(
            "look at {}, change what it complains of, and run the same command again: it goes on where it was",
            paths::show(&log)
        ))
        .into())
}
