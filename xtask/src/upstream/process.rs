//! Runs a test program with a time limit and its output in a file.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// The end of a program.
#[derive(Debug)]
pub struct Ended {
    /// Its output, both streams together.
    pub output: String,
    /// `exit status 1`, `signal 11`, `stopped after 600 s`.
    pub how: String,
    /// Whether it was stopped at the limit.
    pub stopped: bool,
}

/// Runs it to its end, or stops it after `limit`. The output is kept in `log`.
pub fn run(command: &mut Command, limit: Duration, log: &Path) -> Result<Ended> {
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    let file = File::create(log).with_context(|| format!("creating {}", log.display()))?;
    let errors = file.try_clone().context("sharing the log")?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .spawn()
        .with_context(|| format!("starting {}", command.get_program().display()))?;
    let start = Instant::now();
    let mut stopped = false;
    let how = loop {
        if let Some(status) = child.try_wait()? {
            break status
                .signal()
                .map_or_else(|| status.to_string(), |it| format!("signal {it}"));
        }
        if start.elapsed() > limit {
            stopped = true;
            child.kill()?;
            child.wait()?;
            break format!("stopped after {} s", limit.as_secs());
        }
        thread::sleep(Duration::from_millis(20));
    };
    let output = fs::read(log).with_context(|| format!("reading {}", log.display()))?;
    Ok(Ended {
        output: String::from_utf8_lossy(&output).into_owned(),
        how,
        stopped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_it_wrote_and_how_it_ended() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("logs/one.log");
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; kill -9 $$"]);
        let ended = run(&mut command, Duration::from_secs(60), &log).unwrap();
        assert_eq!(
            (ended.output.as_str(), ended.how.as_str()),
            ("out\nerr\n", "signal 9")
        );
    }
}
