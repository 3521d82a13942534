//! `cargo xtask build-wheel --source`: builds a fork wheel from a PyTorch source tree.
//!
//! PyTorch's own build makes the wheel; its patched CMake builds our library and links it into libtorch_cuda.
//! Invariants: the tree is only read, except with `--keep`; the same command resumes an interrupted build; the
//! result gets its name only after it was read back and verified.

mod plan;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::build_wheel::assemble::{self, Fork};
use crate::build_wheel::compile::{self, LIBRARY};
use crate::build_wheel::inputs;
use crate::build_wheel::summary::Summary;
use crate::cli;
use crate::python::{pip, tools};
use crate::support::hash::Digest;
use crate::support::progress::{Progress, Step};
use crate::support::refusal::refuse;
use crate::support::scratch::Scratch;
use crate::support::{disk, lock, paths};
use crate::wheel::header::in_wheel;
use crate::wheel::name::WheelName;
use crate::wheel::platform::Floors;
use crate::wheel::provenance::{Named, Provenance};
use crate::wheel::verify;
use plan::Plan;
use xtask_patchkit::fit::{self, Files};
use xtask_patchkit::release::Versions;
use xtask_patchkit::{apply, git};

const STEPS: usize = 3 + assemble::STEPS;
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
    let plan = Plan::make(root, &Versions::read(root)?, (source, args.keep), &args.wanted.options)?;
    // Whether the series apply is found out first, before the long work.
    patched(&plan, &plan.tree.root)?;
    let missing = plan.missing()?;
    disk::require_writable(&plan.out)?;
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
    make(&plan, &Progress::new(STEPS))?.print(args.json)
}

/// Everything after the checks.
fn make(plan: &Plan, progress: &Progress) -> Result<Summary> {
    fs::create_dir_all(&plan.work).with_context(|| format!("creating {}", plan.work.display()))?;
    progress.step("lay out the tree, with the series", |_| lay_out(plan))?;
    progress.step("make the build's environment", |_| make_environment(plan))?;
    let built = progress.step("run PyTorch's own build", |step| build(plan, step))?;
    let summary = finish(plan, &built, progress)?;
    if !plan.keep {
        fs::remove_dir_all(&plan.work).with_context(|| format!("removing {}", paths::show(&plan.work)))?;
    }
    Ok(summary)
}

/// Makes a fork wheel of the one that PyTorch's build has written: it lacks our package and papers.
fn finish(plan: &Plan, built: &Path, progress: &Progress) -> Result<Summary> {
    let release = &plan.release;
    let file_name = built.file_name().unwrap_or_default().to_string_lossy();
    let name = WheelName::parse(&file_name)?;
    let mut base = verify::open(built)?;
    let library = base
        .bytes(&format!("torch/lib/{LIBRARY}"))
        .with_context(|| format!("PyTorch's build has put no {LIBRARY} into {file_name}"))?;
    let header = in_wheel(&plan.header).context("the header has no place in a wheel")?;
    let patched = Digest::of(base.text(&header)?.as_bytes()).hex();
    let floors = Floors::of(&library)?;
    let mut tools = compile::compilers()?;
    tools.extend(plan.nvcc.iter().map(|it| ("nvcc".into(), it.1.clone())));
    let base_wheel = Named { name: file_name.into_owned(), sha256: Digest::of_file(built)?.hex() };
    let patches = plan.series.iter().chain(&plan.source_series);
    let inputs = inputs::of(base_wheel, &release.series, patches, tools)?;
    let fork = Fork {
        base: built,
        name: WheelName { version: plan.version.clone(), ..name },
        made: BTreeMap::new(),
        provenance: Provenance::of(
            (&plan.version, &release.version),
            inputs,
            (release.header_sha256.clone(), patched),
            &library,
            &floors,
        ),
        header: (&header, &release.patched_sha256),
        asks: "torch/lib/libtorch_cuda.so",
        library_bytes: library.len() as u64,
        floors,
    };
    fork.write(&plan.out, &plan.python.executable, progress)
}

/// What the series change in a tree, afterwards: the seam's, whose result is pinned, then the source build's. Patches that
/// are applied already are left alone.
fn patched(plan: &Plan, tree: &Path) -> Result<Files> {
    let shown = tree.display().to_string();
    let read = |path: &str| fit::read_below(tree, path);
    let after = apply::after(&shown, &plan.header, &plan.release, &plan.series, &read)?;
    let mut all = after.unwrap_or_default();
    let mut left = Vec::new();
    for patch in &plan.source_series {
        if !git::is_applied(&patch.path, tree)? {
            left.push(patch.clone());
        }
    }
    let read = |path: &str| all.get(path).map_or_else(|| read(path), |it| Ok(it.clone()));
    let what = || format!("the series for source builds and {shown}");
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
    let remedy = || format!("if an earlier run has left it so: rm -r {}", paths::show(&plan.work));
    let files = patched(plan, &build_tree).with_context(remedy)?;
    fit::replace(&files, &build_tree)
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
        .envs(plan.variables.iter().map(|(name, value)| (name, value)))
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
