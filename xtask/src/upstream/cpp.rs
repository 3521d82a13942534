//! Compiles PyTorch's C++ allocator test against an environment's torch, runs it, and reads its results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use super::environment::Environment;
use super::outcome::{Outcome, Outcomes};
use super::process;
use super::source::Source;
use crate::support::paths;
use crate::support::progress::Step;
use crate::support::refusal::refuse;

/// Debian's package with GoogleTest.
const PACKAGE: &str = "libgtest-dev";

/// Ensures GoogleTest; installs it if this is root.
pub fn ensure_gtest(step: &Step) -> Result<()> {
    if has_gtest()? {
        return Ok(());
    }
    let shell = Shell::new()?;
    let is_root = cmd!(shell, "id -u").quiet().read()? == "0";
    if is_root
        && cmd!(shell, "apt-get --version")
            .quiet()
            .ignore_stderr()
            .read()
            .is_ok()
    {
        step.say(format!("apt-get install {PACKAGE}"));
        let install = || {
            let install = cmd!(
                shell,
                "apt-get install -q -y --no-install-recommends {PACKAGE}"
            );
            install
                .env("DEBIAN_FRONTEND", "noninteractive")
                .quiet()
                .ignore_status()
                .output()
        };
        if !install()?.status.success() {
            // A fresh machine has no package lists.
            cmd!(shell, "apt-get update -q")
                .quiet()
                .ignore_status()
                .output()?;
            install()?;
        }
        if has_gtest()? {
            return Ok(());
        }
    }
    Err(refuse("GoogleTest is missing")
        .found("no gtest/gtest.h that g++ can see")
        .expected(format!("the package {PACKAGE}"))
        .remedy(format!(
            "sudo apt-get install {PACKAGE} (or dnf install gtest-devel)"
        ))
        .into())
}

fn has_gtest() -> Result<bool> {
    let shell = Shell::new()?;
    let probe = cmd!(shell, "g++ -E -x c++ -").stdin("#include <gtest/gtest.h>\n");
    Ok(probe
        .quiet()
        .ignore_status()
        .output()
        .context("running g++")?
        .status
        .success())
}

/// Compiles the test and returns the program.
pub fn compile(
    source: &Source,
    environment: &Environment,
    cuda: &[PathBuf],
    folder: &Path,
) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let program = folder.join("cuda_caching_host_allocator_test");
    let (test, torch, runtime) = (source.cpp(), &environment.torch, &environment.cuda_runtime);
    let (include, lib) = (torch.join("include"), torch.join("lib"));
    let api = include.join("torch/csrc/api/include");
    let packages = environment
        .include
        .iter()
        .chain(cuda)
        .flat_map(|folder| ["-isystem".as_ref(), folder.as_os_str()]);
    let runtime_folder = runtime
        .parent()
        .context("the CUDA runtime is in no folder")?;
    let report = paths::root().join("tests/upstream/report_served.h");
    let shell = Shell::new()?;
    // Upstream's warnings are ignored. All libraries are linked, since no symbol of the test refers to
    // libtorch_cuda.so, but CUDA needs it to be loaded.
    let command = cmd!(
        shell,
        "g++ -std=c++20 -O1 -w -isystem {include} -isystem {api} {packages...}
         -include {report} {test} -o {program} -L{lib} -Wl,--no-as-needed -ltorch -ltorch_cuda
         -ltorch_cpu -lc10 -lc10_cuda {runtime} -lgtest -pthread -Wl,-rpath,{lib} -Wl,-rpath,{runtime_folder}"
    );
    let inputs = environment.inputs()?.text(&command.to_string())?;
    let inputs = inputs.file(&report)?.file(&test)?;
    inputs.make(&program, || compiled(command, environment, &test))?;
    Ok(program)
}

fn compiled(command: xshell::Cmd<'_>, environment: &Environment, test: &Path) -> Result<()> {
    let output = command.quiet().ignore_status().output();
    let output = output.context("running g++")?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = complaint
        .lines()
        .filter(|line| line.contains("error"))
        .collect();
    Err(refuse(format!(
        "upstream's C++ test does not compile against {}",
        environment.name
    ))
    .found(errors.join("\n"))
    .expected(format!(
        "{} to fit torch {}",
        test.display(),
        environment.version
    ))
    .remedy("pass --source a PyTorch tree of that release")
    .into())
}

/// Runs the program; returns the outcomes, and how many requests the engine served (`None` without an engine).
pub fn run(command: &mut Command, limit: Duration, log: &Path) -> Result<(Outcomes, Option<u64>)> {
    let ended = process::run(command.arg("--gtest_color=no"), limit, log)?;
    Ok((read(&ended.output, &ended.how), served(&ended.output)))
}

/// The line that `tests/upstream/report_served.h` prints at the end.
fn served(output: &str) -> Option<u64> {
    let stats = output
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("pinbuddy stats: "))?;
    let stats: serde_json::Value = serde_json::from_str(stats).ok()?;
    stats["engine"]["hits"].as_u64()
}

/// Parses GoogleTest's output. A test that started and did not end has crashed.
fn read(output: &str, how: &str) -> Outcomes {
    let mut outcomes = Outcomes::new();
    let mut why = String::new();
    for line in output.lines() {
        // "[ RUN      ] Suite.test", "[       OK ] Suite.test (0 ms)". The list of failures at the end has
        // the same form and is redundant.
        let tag = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let Some((tag, name)) = tag.map(|(tag, rest)| (tag.trim(), rest.trim())) else {
            if why.is_empty() && !line.trim().is_empty() {
                line.trim().clone_into(&mut why);
            }
            continue;
        };
        let name = name
            .split(" (")
            .next()
            .unwrap_or_default()
            .trim_end_matches(',')
            .to_owned();
        match tag {
            "RUN" => {
                why.clear();
                outcomes.insert(name, Outcome::Crashed(how.to_owned()));
            }
            "OK" => {
                outcomes.insert(name, Outcome::Passed);
            }
            "SKIPPED" if outcomes.contains_key(&name) => {
                outcomes.insert(name, Outcome::Skipped(std::mem::take(&mut why)));
            }
            "FAILED" => {
                if let Some(outcome @ Outcome::Crashed(_)) = outcomes.get_mut(&name) {
                    *outcome = Outcome::Failed(std::mem::take(&mut why));
                }
            }
            _ => {}
        }
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_googletest_says() {
        let output = "\
[==========] Running 4 tests from 1 test suite.
[ RUN      ] Suite.good
[       OK ] Suite.good (1 ms)
[ RUN      ] Suite.bad
file.cpp:3: Failure
Expected: a
[  FAILED  ] Suite.bad (0 ms)
[ RUN      ] Suite.other
file.cpp:9: Skipped
[  SKIPPED ] Suite.other (0 ms)
[ RUN      ] Suite.last
terminate called
";
        let outcomes = read(output, "signal 6");
        assert_eq!(outcomes["Suite.good"], Outcome::Passed);
        assert_eq!(
            outcomes["Suite.bad"],
            Outcome::Failed("file.cpp:3: Failure".into())
        );
        assert_eq!(
            outcomes["Suite.other"],
            Outcome::Skipped("file.cpp:9: Skipped".into())
        );
        assert_eq!(outcomes["Suite.last"], Outcome::Crashed("signal 6".into()));
        assert_eq!(outcomes.len(), 4);
    }

    #[test]
    fn reads_what_the_engine_served() {
        let output = "[==========]\npinbuddy stats: {\"engine\":{\"hits\":7}}\n";
        assert_eq!(served(output), Some(7));
        assert_eq!(served("[==========]\n"), None, "stock has no engine");
    }

    #[test]
    fn the_list_of_failures_at_the_end_changes_nothing() {
        let output = "[ RUN      ] S.a\nwhy\n[  FAILED  ] S.a (0 ms)\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] S.a\n";
        let outcomes = read(output, "exit status 1");
        assert_eq!(outcomes.len(), 1);
        assert_eq!(outcomes["S.a"], Outcome::Failed("why".into()));
    }
}
