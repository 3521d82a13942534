//! Runs a client once, in its own folder, with a time limit.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::client::Client;
use super::report::{self, Ran};
use crate::python::environment::{Environment, clear_settings};
use crate::runtime::Runtime;
use crate::support::paths;
use crate::support::scratch::Scratch;

/// Many times longer than any client takes on two busy cores.
const LIMIT: Duration = Duration::from_secs(300);
/// Lines of standard error in messages.
const LAST_WORDS: usize = 8;

/// Runs the client in an environment, with default settings but these, and no network.
pub fn run(
    client: &Client,
    environment: &Environment,
    runtime: &Runtime,
    settings: &[(&str, &str)],
) -> Result<Ran> {
    let work = Scratch::folder(&paths::target().join("clients/work"))?;
    let folder = paths::root().join("tests/clients");
    let mut command = runtime.command(environment.python())?;
    clear_settings(&mut command);
    command
        .current_dir(work.path())
        .arg(folder.join(format!("{}.py", client.file)))
        .args(client.arguments)
        .envs(settings.iter().copied())
        .env("HOME", work.path())
        .env("HF_HUB_OFFLINE", "1")
        // Children see their parent's pinned memory, as with a driver.
        .env("PINBUDDY_SIM_SHARED", "1")
        .env("GLOO_SOCKET_IFNAME", "lo")
        .env("OMP_NUM_THREADS", "2")
        .env(
            "PINBUDDY_TEST_REAL",
            if runtime.is_real() { "1" } else { "0" },
        );
    let logs = Scratch::folder(&paths::target().join("clients/logs"))?;
    let mut ran = limited(&mut command, logs.path(), LIMIT)?;
    let places = [(folder.as_path(), "CLIENTS"), (work.path(), "WORK")];
    let said = std::mem::take(&mut ran.last_words);
    let environments = environment.parent().unwrap_or(environment);
    ran.warnings = report::warnings(&said, environments, &places);
    ran.exception = report::exception(&said);
    ran.last_words = last(&said);
    Ok(ran)
}

/// Runs it to its end or the limit; `last_words` is all of standard error.
fn limited(command: &mut Command, logs: &Path, limit: Duration) -> Result<Ran> {
    let (output, errors) = (logs.join("output"), logs.join("errors"));
    let create =
        |path: &Path| File::create(path).with_context(|| format!("creating {}", path.display()));
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(create(&output)?)
        .stderr(create(&errors)?)
        .spawn()
        .with_context(|| format!("starting {}", command.get_program().display()))?;
    let exit = loop {
        if let Some(status) = child.try_wait()? {
            break words(status);
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            break format!("stopped after {} s", limit.as_secs());
        }
        thread::sleep(Duration::from_millis(20));
    };
    let seconds = (start.elapsed().as_secs_f64() * 10.0).round() / 10.0;
    let read = |path: &Path| {
        let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        anyhow::Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(Ran {
        exit,
        seconds,
        warnings: Default::default(),
        exception: None,
        last_words: read(&errors)?,
        report: report::read(&read(&output)?),
    })
}

fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, signal) => format!("signal {}", signal.unwrap_or_default()),
    }
}

fn last(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_WORDS)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Ran {
        let folder = tempfile::tempdir().unwrap();
        limited(
            Command::new("sh").args(["-c", script]),
            folder.path(),
            limit,
        )
        .unwrap()
    }

    #[test]
    fn how_it_ended_and_what_it_said_on_each_stream() {
        let minute = Duration::from_secs(60);
        let ran = shell("echo no report; echo warning >&2; exit 3", minute);
        assert_eq!(
            (ran.exit.as_str(), ran.last_words.as_str()),
            ("exit code 3", "warning\n")
        );
        assert!(ran.report.is_none() && !ran.succeeded());
        assert_eq!(shell("kill -11 $$", minute).exit, "signal 11");
        let ran = shell("sleep 60", Duration::from_millis(50));
        assert_eq!(ran.exit, "stopped after 0 s");
    }

    #[test]
    fn an_end_without_a_report_is_no_success() {
        assert!(!shell("true", Duration::from_secs(60)).succeeded());
    }

    #[test]
    fn the_last_words_are_the_last_lines() {
        let text: Vec<_> = (1..=20).map(|it| it.to_string()).collect();
        assert_eq!(last(&text.join("\n")), "13\n14\n15\n16\n17\n18\n19\n20");
        assert_eq!(last("one"), "one");
    }
}
