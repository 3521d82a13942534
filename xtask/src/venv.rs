//! `cargo xtask venv`: makes environments with the fork wheel or the official one, once.
//!
//! They also have numpy, without which torch warns at each start. Invariant: an environment with a marker is
//! complete, and has the wheel whose hash the marker names.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use xshell::{Shell, cmd};

use crate::build_wheel::plan::Plan;
use crate::build_wheel::{Options, Wanted, current, fetch, tree};
use crate::python::environment::Environment;
use crate::python::tools::Tools;
use crate::python::{Python, pip, tools};
use crate::support::hash::Digest;
use crate::support::progress::{Progress, Step};
use crate::support::scratch::Scratch;
use crate::support::{disk, lock, paths, watch};
use crate::wheel::metadata::TorchVersion;
use crate::{build_wheel, cli};
use xtask_patchkit::release::Versions;

const MARKER: &str = "pinbuddy-venv.json";
/// Packages that programs with torch expect.
const BESIDE: [&str; 1] = ["numpy"];
/// Disk space of an environment: 5.4 GB; only torch itself if another environment exists.
const ROOM: u64 = 7_000_000_000;
const ROOM_BESIDE: u64 = 2_500_000_000;

/// The marker, written last.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Marker {
    wheel_sha256: String,
    python: PathBuf,
    version: (u32, u32, u32),
    /// Additional packages.
    beside: Vec<String>,
}

impl Marker {
    fn is_of(&self, python: &Python) -> bool {
        self.python == python.executable && self.version == python.version
    }
}

pub fn run(args: &cli::Venv) -> Result<()> {
    let folder = ensure(args.torch.as_deref(), args.stock, &args.python)?;
    let shown = match args.headers {
        true => env::join_paths(cuda_include(&folder, &args.python)?)?.into(),
        false => folder.to_path_buf(),
    };
    println!("{}", shown.display());
    Ok(())
}

/// A request to build that release into the checkout's dist/.
pub fn wanted(torch: Option<&str>, python: &Path) -> Wanted {
    Wanted {
        torch: torch.map(str::to_owned),
        options: Options::plain(python, &paths::root().join("dist")),
        ..Wanted::default()
    }
}

/// Makes the environment with the fork of `torch`, or with the official wheel; returns its folder.
pub fn ensure(torch: Option<&str>, stock: bool, python: &Path) -> Result<Environment> {
    let _lock = lock::take("venv")?;
    let args = wanted(torch, python);
    let plan = Plan::make(&args)?;
    let tools = tools::ensure(&plan.python)?;
    let (wheel, sha256) = if stock {
        let base = Progress::new(1).step("get the official wheel", |step| fetch::official(&plan, &tools, step))?;
        (base.path, base.sha256)
    } else {
        let wheel = match current::find(&plan, &tools)? {
            Some(wheel) => wheel,
            None => build_wheel::build(&args)?.path,
        };
        let sha256 = Digest::of_file(&wheel)?.hex();
        (wheel, sha256)
    };
    let wanted = Marker {
        wheel_sha256: sha256,
        python: plan.python.executable.clone(),
        version: plan.python.version,
        beside: BESIDE.map(str::to_owned).into(),
    };
    let folder = folder(&plan, stock);
    let present = marker(&folder);
    if present.as_ref() == Some(&wanted) {
        return Environment::open(&folder);
    }
    // Without its marker the environment counts as incomplete.
    let _ = fs::remove_file(folder.join(MARKER));
    let replaces = present.is_some_and(|it| it.is_of(&plan.python));
    Progress::new(1).step(&format!("make {}", paths::show(&folder)), |step| {
        if !replaces {
            create(&plan.python, &folder, &self::folder(&plan, !stock), step)?;
        }
        let wheel = wheel.display().to_string();
        let mut torch = vec!["--resume-retries=20", &wheel];
        torch.extend(["--no-deps", "--force-reinstall"].iter().filter(|_| replaces));
        watch::folder(&folder, step, || {
            install(&tools, &folder, &torch, "install torch and what it needs")?;
            // Separately, or --force-reinstall would fetch it again with each change of the wheel.
            install(&tools, &folder, &BESIDE, "install numpy")
        })
    })?;
    fs::write(folder.join(MARKER), serde_json::to_vec(&wanted)?)?;
    Environment::open(&folder)
}

/// Folders of the headers of an environment's CUDA, fetched if missing.
pub fn cuda_include(stock: &Environment, python: &Path) -> Result<Vec<PathBuf>> {
    let tools = tools::ensure(&Python::probe(python)?)?;
    let versions = Versions::read(paths::root())?;
    let file = stock.torch().join("version.py");
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let cuda = TorchVersion::parse(&text)?.cuda;
    let cuda = versions.cuda(&cuda.context("it is no torch with CUDA")?)?;
    Progress::new(1).step("get CUDA's headers", |step| tree::ensure_cuda(&paths::cache(), cuda, &tools, step))
}

/// Installs packages for tests unless they are there.
pub fn require(folder: &Path, python: &Path, packages: &[&str]) -> Result<()> {
    let tools = tools::ensure(&Python::probe(python)?)?;
    let goal = format!("install {}", packages.join(", "));
    install(&tools, folder, packages, &goal)
}

fn install(tools: &Tools, folder: &Path, what: &[&str], goal: &str) -> Result<()> {
    let inner = folder.join("bin/python").display().to_string();
    let arguments = [&["--python", &inner, "install", "--quiet"], what].concat();
    let temporary = Scratch::folder(&folder.with_extension("tmp"))?;
    pip::run(&tools.python, &arguments, temporary.path(), goal)
}

fn folder(plan: &Plan, stock: bool) -> PathBuf {
    let kind = if stock { "stock" } else { "fork" };
    let name = format!("{}-{kind}-{}", plan.release.version, plan.python.abi_tag());
    paths::target().join("venv").join(name)
}

fn marker(folder: &Path) -> Option<Marker> {
    let marker = serde_json::from_slice(&fs::read(folder.join(MARKER)).ok()?).ok()?;
    folder.join("bin/python").exists().then_some(marker)
}

/// Makes an environment. If the other one is complete and of the same Python, it is a copy of that: pip then replaces torch.
fn create(python: &Python, folder: &Path, other: &Path, step: &Step) -> Result<()> {
    let has_packages = marker(other).is_some_and(|it| it.is_of(python));
    let room = if has_packages { ROOM_BESIDE } else { ROOM };
    disk::require(folder, room, "install torch")?;
    step.say("making the environment");
    if has_packages {
        return share(other, folder);
    }
    // Not by a rename, since an environment contains its own path.
    tools::make_environment(&python.executable, folder)
}

/// Makes `to` a copy of an environment, without its marker. Its commands run its own interpreter.
pub fn share(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("removing {}", to.display()))?;
    }
    // Links take no room, and are safe: pip replaces files instead of writing into them. Two file systems share none.
    if let Err(unlinked) = copy(&["--link"], from, to) {
        let _ = fs::remove_dir_all(to);
        disk::require(to, ROOM, "copy an environment")
            .and_then(|()| copy(&[], from, to))
            .with_context(|| unlinked.to_string())?;
    }
    fs::remove_file(to.join(MARKER))?;
    let (old, new) = (from.display().to_string(), to.display().to_string());
    for entry in fs::read_dir(to.join("bin"))? {
        let path = entry?.path();
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        if path.is_symlink() || !text.contains(&old) {
            continue;
        }
        let rights = fs::metadata(&path)?.permissions();
        // The file that both have stays as it is.
        fs::remove_file(&path)?;
        fs::write(&path, text.replace(&old, &new))?;
        fs::set_permissions(&path, rights)?;
    }
    Ok(())
}

/// An error is the first that `cp` says: it may say the same of each file.
fn copy(how: &[&str], from: &Path, to: &Path) -> Result<()> {
    let shell = Shell::new()?;
    let command = cmd!(shell, "cp --archive {how...} {from} {to}").quiet();
    let output = command.ignore_status().output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    let first = told.lines().next().unwrap_or_default();
    ensure!(output.status.success(), "{first}");
    Ok(())
}

/// The complete environments with the fork in a folder, the newest torch first.
pub fn forks(root: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(root).into_iter().flatten().flatten();
    let mut found: Vec<_> = listed
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let (torch, python) = name.split_once("-fork-")?;
            let numbers = torch.split('.').map(|it| it.parse::<u32>().ok());
            let key = (numbers.collect::<Option<Vec<_>>>()?, python.to_owned());
            marker(&entry.path()).map(|_| (key, entry.path()))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, folder)| folder).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;

    #[test]
    fn environments_with_the_fork_are_listed_by_release_and_only_whole_ones() {
        let root = tempfile::tempdir().unwrap();
        let marker = Marker {
            wheel_sha256: String::new(),
            python: "/usr/bin/python3".into(),
            version: (3, 11, 2),
            beside: Vec::new(),
        };
        for (name, whole) in [
            ("2.9.1-fork-cp311", true),
            ("2.15.0-fork-cp311", true),
            ("2.15.0-stock-cp311", true),
            ("2.16.0-fork-cp311", false),
            ("2.15.0-fork-cp311.tmp-1", false),
        ] {
            let folder = root.path().join(name);
            fs::create_dir_all(folder.join("bin")).unwrap();
            fs::write(folder.join("bin/python"), "").unwrap();
            if whole {
                let text = serde_json::to_string(&marker).unwrap();
                fs::write(folder.join(MARKER), text).unwrap();
            }
        }
        let found = forks(root.path());
        let names: Vec<_> = found.iter().map(|it| it.file_name().unwrap()).collect();
        assert_eq!(names, ["2.15.0-fork-cp311", "2.9.1-fork-cp311"]);
        assert_eq!(forks(Path::new("/nowhere")), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_copy_runs_its_own_interpreter_and_is_not_complete_yet() {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        for folder in [from.join("bin"), from.join("lib/numpy"), to.join("bin")] {
            fs::create_dir_all(folder).unwrap();
        }
        let command = format!("#!{}/bin/python\nrun()\n", from.display());
        for (name, text) in
            [("bin/f2py", command.as_str()), ("bin/other", "#!/bin/sh\n"), ("lib/numpy/b.py", "shared"), (MARKER, "{}")]
        {
            fs::write(from.join(name), text).unwrap();
        }
        fs::write(to.join("bin/old"), "of an interrupted run").unwrap();
        symlink("f2py", from.join("bin/f2py3")).unwrap();
        share(&from, &to).unwrap();
        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(read(to.join("bin/f2py")), command.replace("/from/", "/to/"));
        assert_eq!(read(from.join("bin/f2py")), command);
        let inode = |folder: &Path| fs::metadata(folder.join("lib/numpy/b.py")).unwrap().ino();
        assert_eq!(inode(&from), inode(&to), "shared");
        let link = fs::read_link(to.join("bin/f2py3")).unwrap();
        assert_eq!(link, Path::new("f2py"));
        assert!(!to.join(MARKER).exists() && !to.join("bin/old").exists());
        let said = share(&root.path().join("nowhere"), &to).unwrap_err();
        let said = said.to_string();
        assert!(said.starts_with("cp: ") && said.contains("/nowhere"), "{said}");
    }
}
