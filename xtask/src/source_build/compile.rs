//! Runs PyTorch's own build in its own environment, with its output in a file.
//!
//! Invariant: an environment with a marker is complete, and has the packages that the marker names.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use super::plan::Plan;
use crate::python::{pip, tools};
use crate::support::paths;
use crate::support::progress::Step;
use crate::support::refusal::refuse;
use crate::support::scratch::Scratch;

const MARKER: &str = "pinbuddy-source.json";
/// How often progress is printed without a terminal.
const PAUSE: Duration = Duration::from_secs(60);
/// How many of the log's last lines a failure shows.
const LAST: usize = 30;

/// Makes the environment unless it exists with these packages.
pub fn ensure_environment(plan: &Plan, step: &Step) -> Result<()> {
    let folder = plan.work.join("venv");
    let wanted = serde_json::to_string(&(
        &plan.python.executable,
        plan.python.version,
        &plan.entry.packages,
    ))?;
    if fs::read_to_string(folder.join(MARKER)).is_ok_and(|text| text == wanted) {
        step.say("made before");
        return Ok(());
    }
    // Not by a rename, since its programs contain its path.
    if plan.entry.packages.is_empty() {
        let (shell, python) = (Shell::new()?, &plan.python.executable);
        cmd!(shell, "{python} -m venv --clear --without-pip {folder}")
            .quiet()
            .run()?;
    } else {
        tools::make_environment(&plan.python.executable, &folder)?;
        let temporary = Scratch::folder(&plan.work.join("pip"))?;
        let mut arguments = vec!["install", "--quiet"];
        arguments.extend(plan.entry.packages.iter().map(String::as_str));
        let goal = "install what PyTorch's build needs";
        pip::run(&plan.interpreter(), &arguments, temporary.path(), goal)?;
    }
    Ok(fs::write(folder.join(MARKER), wanted)?)
}

/// Builds; returns the path of the wheel.
pub fn build(plan: &Plan, step: &Step) -> Result<PathBuf> {
    let built = plan.built();
    if built.exists() {
        fs::remove_dir_all(&built).with_context(|| format!("removing {}", built.display()))?;
    }
    fs::create_dir_all(&built).with_context(|| format!("creating {}", built.display()))?;
    let words = plan.entry.command(&plan.interpreter(), &built);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(plan.build_tree());
    for name in &plan.variables.removed {
        command.env_remove(name);
    }
    command.envs(&plan.variables.set);
    let log = plan.work.join("build.log");
    if !logged(&mut command, &log, step)? {
        return Err(refuse("PyTorch's own build failed")
            .found(last_lines(&log))
            .expected("a wheel from the command above the log's first line")
            .remedy(format!(
                "look at {}, change what it complains of, and run the same command again: it goes on where it was",
                paths::show(&log)
            ))
            .into());
    }
    let wheels = fs::read_dir(&built)?.flatten().map(|it| it.path());
    let mut wheels = wheels.filter(|it| it.extension().is_some_and(|it| it == "whl"));
    match (wheels.next(), wheels.next()) {
        (Some(wheel), None) => Ok(wheel),
        (first, _) => Err(refuse("PyTorch's own build left no wheel, or several")
            .found(if first.is_some() { "several" } else { "none" })
            .expected(format!("one in {}", paths::show(&built)))
            .remedy(format!("look at {}", paths::show(&log)))
            .into()),
    }
}

/// Runs the command; its output goes to the log, and ninja's progress to the terminal.
fn logged(command: &mut Command, log: &Path, step: &Step) -> Result<bool> {
    let mut file = File::create(log).with_context(|| format!("creating {}", log.display()))?;
    writeln!(file, "{command:?}")?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {command:?}"))?;
    let (send, lines) = mpsc::channel::<Vec<u8>>();
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|it| Box::new(it) as _),
        child.stderr.take().map(|it| Box::new(it) as _),
    ];
    for stream in streams.into_iter().flatten() {
        let send = send.clone();
        thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            while reader
                .read_until(b'\n', &mut line)
                .is_ok_and(|count| count > 0)
            {
                if send.send(std::mem::take(&mut line)).is_err() {
                    break;
                }
            }
        });
    }
    drop(send);
    let mut said = Instant::now();
    for line in lines {
        file.write_all(&line)
            .with_context(|| format!("writing {}", log.display()))?;
        if let Some(far) = how_far(&String::from_utf8_lossy(&line)) {
            if said.elapsed() > PAUSE {
                step.note_for_logs(&far);
                said = Instant::now();
            }
            step.say(far);
        }
    }
    Ok(child
        .wait()
        .context("waiting for PyTorch's build")?
        .success())
}

/// The progress in ninja's line, `[123/7000]`, as text.
fn how_far(line: &str) -> Option<String> {
    let (count, _) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    let (done, all) = count.split_once('/')?;
    let (done, all): (u32, u32) = (done.parse().ok()?, all.parse().ok()?);
    Some(format!("{done} of {all} steps"))
}

fn last_lines(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ninjas_count() {
        let line = "[12/7034] Building CXX object c10/CMakeFiles/c10.dir/x.cpp.o\n";
        assert_eq!(how_far(line).as_deref(), Some("12 of 7034 steps"));
        assert_eq!(how_far("[notice] a thing\n"), None);
        assert_eq!(how_far("-- Build files have been written\n"), None);
    }

    #[test]
    fn both_streams_are_in_the_log_and_a_failure_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        assert!(!logged(&mut command, &log, &Step::silent()).unwrap());
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.contains("out\n") && text.contains("err\n"), "{text}");
    }
}
