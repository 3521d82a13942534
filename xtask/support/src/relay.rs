//! Runs a command, shows its output as it comes, and keeps it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result};

/// Runs the command; returns both output streams and whether it succeeded. Both are shown on standard error.
pub fn run(command: &mut Command) -> Result<(String, bool)> {
    let shown = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("running {shown}"))?;
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child
            .stdout
            .take()
            .map(|it| Box::new(it) as Box<dyn Read + Send>),
        child
            .stderr
            .take()
            .map(|it| Box::new(it) as Box<dyn Read + Send>),
    ];
    let kept = Mutex::new(String::new());
    thread::scope(|scope| {
        for stream in streams.into_iter().flatten() {
            let kept = &kept;
            scope.spawn(move || {
                let mut reader = BufReader::new(stream);
                let mut line = Vec::new();
                while reader
                    .read_until(b'\n', &mut line)
                    .is_ok_and(|count| count > 0)
                {
                    let text = String::from_utf8_lossy(&line);
                    eprint!("{text}");
                    if let Ok(mut kept) = kept.lock() {
                        kept.push_str(&text);
                    }
                    line.clear();
                }
            });
        }
    });
    let status = child
        .wait()
        .with_context(|| format!("waiting for {shown}"))?;
    Ok((kept.into_inner().unwrap_or_default(), status.success()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_both_streams() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let (text, success) = run(&mut command).unwrap();
        assert!(text.contains("out\n") && text.contains("err\n") && !success);
    }
}
