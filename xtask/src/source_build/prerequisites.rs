//! The prerequisites of PyTorch's own build, each with a command to get it. Looking and judging are separate, as in
//! `doctor`, and the lines are its findings.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::plan::Plan;
use super::toolkit::Toolkit;
use crate::build_wheel::compile::TOOLS;
use crate::doctor::building::Program;
use crate::doctor::finding::{Finding, Status};
use crate::doctor::memory::Memory;
use crate::doctor::setting::Setting;
use crate::support::refusal::refuse;
use crate::support::{disk, paths};
use pinbuddy_machine::Files;

/// Memory of one compiler with template-heavy kernels, in bytes.
pub const PER_JOB: u64 = 4 << 30;
/// Disk space for a tree with submodules, objects and libraries for several GPUs, and two wheels, in bytes.
const ROOM: u64 = 45_000_000_000;

/// The facts.
pub struct Seen {
    /// How commands are worded.
    pub setting: Setting,
    /// g++, cargo, rustc, git.
    pub programs: Vec<Program>,
    /// The interpreter, and whether C programs can be compiled for it.
    pub python: (String, bool),
    /// CUDA's compiler.
    pub toolkit: Option<Toolkit>,
    /// Whether cuDNN's header is there.
    pub cudnn: bool,
    /// The compiler launcher and its path.
    pub launcher: Option<(String, Option<PathBuf>)>,
    /// The tree's empty submodules.
    pub absent: Vec<String>,
    /// The build's folder, and the free bytes there.
    pub room: (PathBuf, Option<u64>),
    /// Available memory in bytes.
    pub memory: Option<u64>,
    /// Parallel compilers.
    pub jobs: u32,
}

impl Seen {
    /// Looks at this machine and at the tree.
    pub fn look(plan: &Plan) -> Self {
        let files = &Files::below(Path::new("/"));
        let path = plan.environment.get("PATH").map_or("", String::as_str);
        let launcher = plan.variables.launcher().map(|name| {
            let found = path.split(':').map(|it| Path::new(it).join(name));
            (name.to_owned(), found.into_iter().find(|it| it.is_file()))
        });
        let cudnn = plan.toolkit.as_ref().is_some_and(Toolkit::has_cudnn);
        let named = ["CUDNN_INCLUDE_DIR", "CUDNN_ROOT", "CUDNN_INCLUDE_PATH"];
        Self {
            setting: Setting::read(files),
            programs: TOOLS.map(Program::look).into(),
            python: (plan.python.describe(), plan.python.has_headers()),
            toolkit: plan.toolkit.clone(),
            cudnn: cudnn
                || Path::new("/usr/include/cudnn.h").exists()
                || named.iter().any(|it| plan.environment.contains_key(*it)),
            launcher,
            absent: absent_submodules(&plan.tree.root),
            room: (plan.work.clone(), disk::free(&plan.work).map(|it| it.bytes)),
            memory: Memory::read(files).left(),
            jobs: plan.jobs,
        }
    }

    /// Judges the facts.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = vec![self.headers()];
        let programs = self.programs.iter();
        findings.extend(programs.filter_map(|it| it.finding(self.setting)));
        findings.extend(self.cuda());
        findings.push(Finding::ok(
            "cmake, ninja",
            "by pip, in the build's own environment",
        ));
        findings.extend(self.launcher.as_ref().map(|it| cache(it, self.setting)));
        findings.push(self.submodules());
        findings.push(self.disk());
        findings.push(self.memory());
        findings
    }

    fn headers(&self) -> Finding {
        let (shown, there) = &self.python;
        if *there {
            return Finding::ok("python", shown);
        }
        Finding::missing("python", format!("{shown}, without Python.h"))
            .root(self.setting.install("python3-dev", "python3-devel"))
    }

    fn cuda(&self) -> Vec<Finding> {
        let Some(toolkit) = &self.toolkit else {
            let value = "no nvcc (CUDACXX, CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda)";
            let install = self.setting.install("cuda-toolkit", "cuda-toolkit");
            return vec![
                Finding::missing("CUDA toolkit", value)
                    .run("export CUDA_HOME=DIR  # where a toolkit is")
                    .root(format!("{install}  # from NVIDIA's package archive")),
            ];
        };
        let value = format!("{} in {}", toolkit.shown(), toolkit.home.display());
        let cudnn = if self.cudnn {
            Finding::ok("cuDNN", "there")
        } else {
            Finding::note("cuDNN", "no cudnn.h; PyTorch would be built without it")
                .run("export CUDNN_ROOT=DIR  # where it is")
        };
        vec![Finding::ok("CUDA toolkit", value), cudnn]
    }

    fn submodules(&self) -> Finding {
        let name = "submodules";
        let Some(first) = self.absent.first() else {
            return Finding::ok(name, "there");
        };
        let others = match self.absent.len() {
            1 => String::new(),
            many => format!(" and {} more", many - 1),
        };
        Finding::missing(name, format!("{first}{others}: empty"))
            .run("git submodule update --init --recursive  # in the tree")
    }

    fn disk(&self) -> Finding {
        let (folder, free) = &self.room;
        let shown = paths::show(folder);
        let gigabytes = |bytes: u64| bytes / 1_000_000_000;
        let Some(free) = *free else {
            return Finding::note("disk", format!("{shown}: what is free is unknown"));
        };
        let value = format!(
            "{} GB free for {shown}; a build takes up to {}",
            gigabytes(free),
            gigabytes(ROOM)
        );
        if free >= ROOM {
            return Finding::ok("disk", value);
        }
        Finding::missing("disk", value).run(format!("df -h {shown}  # free some space there"))
    }

    fn memory(&self) -> Finding {
        let name = "memory";
        let jobs = u64::from(self.jobs);
        let Some(memory) = self.memory else {
            return Finding::note(name, format!("unknown, for {jobs} compilers at once"));
        };
        let gibibytes = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
        let value = format!(
            "{} for {jobs} compilers at once; each takes up to {}",
            gibibytes(memory),
            gibibytes(PER_JOB)
        );
        if memory >= jobs * PER_JOB {
            return Finding::ok(name, value);
        }
        match memory / PER_JOB {
            0 => Finding::missing(name, value)
                .run("free -h  # end what uses it, or take a larger machine"),
            fits => Finding::missing(name, value)
                .run(format!("cargo xtask build-wheel --source … --jobs {fits}")),
        }
    }
}

fn cache((name, found): &(String, Option<PathBuf>), setting: Setting) -> Finding {
    let label = "compiler launcher";
    match found {
        Some(path) => Finding::ok(label, path.display().to_string()),
        None => Finding::missing(label, format!("{name} is not on the PATH"))
            .root(setting.install(name, name)),
    }
}

/// Empty submodules according to .gitmodules. None for an unpacked archive, which has no such file.
fn absent_submodules(root: &Path) -> Vec<String> {
    let text = fs::read_to_string(root.join(".gitmodules")).unwrap_or_default();
    let paths = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("path = "));
    let empty = |path: &&str| {
        let entries = fs::read_dir(root.join(path));
        entries.map_or(true, |mut it| it.next().is_none())
    };
    paths.filter(empty).map(str::to_owned).collect()
}

/// Refuses if anything is missing, and lists all of it.
pub fn require(findings: &[Finding]) -> Result<()> {
    let missing: Vec<_> = findings
        .iter()
        .filter(|it| it.status == Status::Missing)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let lines = missing
        .iter()
        .map(|it| format!("{}: {}", it.name, it.value));
    let fixes = missing.iter().flat_map(|it| &it.fixes);
    let fixes = fixes.map(|fix| format!("{}: {}", fix.how, fix.command));
    Err(refuse("PyTorch cannot be built here")
        .found(lines.collect::<Vec<_>>().join("\n"))
        .expected("what is named above; nothing was done")
        .remedy(fixes.collect::<Vec<_>>().join("\n"))
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::setting::Packages;

    fn bare() -> Seen {
        Seen {
            setting: Setting {
                packages: Some(Packages::Apt),
                container: false,
            },
            programs: Vec::new(),
            python: ("Python 3.11.7".into(), false),
            toolkit: None,
            cudnn: false,
            launcher: Some(("sccache".into(), None)),
            absent: vec!["third_party/fmt".into(), "third_party/onnx".into()],
            room: ("/build".into(), Some(20_000_000_000)),
            memory: Some(16 << 30),
            jobs: 8,
        }
    }

    #[test]
    fn each_that_is_missing_has_its_remedy() {
        let findings = bare().findings();
        for finding in findings.iter().filter(|it| it.status == Status::Missing) {
            assert!(!finding.fixes.is_empty(), "{finding:?}");
        }
        insta::assert_snapshot!(require(&findings).unwrap_err());
    }

    #[test]
    fn enough_of_all_is_enough() {
        let mut seen = bare();
        seen.python.1 = true;
        seen.toolkit = Some(Toolkit {
            home: "/usr/local/cuda-12.4".into(),
            nvcc: "/usr/local/cuda-12.4/bin/nvcc".into(),
            version: (12, 4),
        });
        seen.launcher = None;
        seen.absent.clear();
        seen.room.1 = Some(ROOM);
        seen.jobs = 4;
        require(&seen.findings()).unwrap();
        seen.memory = Some(PER_JOB - 1);
        assert!(require(&seen.findings()).is_err(), "not even one compiler");
    }

    #[test]
    fn empty_submodules_are_seen() {
        let root = tempfile::tempdir().unwrap();
        assert!(
            absent_submodules(root.path()).is_empty(),
            "an unpacked archive"
        );
        let modules = "[submodule \"a\"]\n\tpath = third_party/a\n[submodule \"b\"]\n\tpath = third_party/b\n";
        fs::write(root.path().join(".gitmodules"), modules).unwrap();
        fs::create_dir_all(root.path().join("third_party/b")).unwrap();
        fs::create_dir_all(root.path().join("third_party/a/src")).unwrap();
        assert_eq!(absent_submodules(root.path()), ["third_party/b"]);
    }
}
