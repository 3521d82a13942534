//! Unsafe code of ours, counted per crate, each block with its reason: a comment with `SAFETY:` before its statement.
//!
//! clippy refuses a block without one (`undocumented_unsafe_blocks`); here they are counted as well. A block is `unsafe {`
//! or `unsafe impl`. Functions that are unsafe to call are none: what they do is in blocks
//! (`unsafe_op_in_unsafe_fn`). Reads sources as rustfmt leaves them, the tests' too.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::Effort;
use super::row::Explored;
use crate::support::paths;
use crate::support::refusal::refuse;

/// The check.
pub fn run(_effort: Effort) -> Result<Explored> {
    let mut blocks: BTreeMap<String, u64> = BTreeMap::new();
    let mut without = Vec::new();
    for file in sources()? {
        let text = fs::read_to_string(paths::root().join(&file))
            .with_context(|| format!("reading {file}"))?;
        let found = find(&text);
        if !found.is_empty() {
            *blocks.entry(folder(&file)).or_default() += found.len() as u64;
        }
        let bare = found.iter().filter(|(_, has_reason)| !has_reason);
        without.extend(bare.map(|(line, _)| format!("{file}:{line}")));
    }
    ensure!(
        !blocks.is_empty(),
        "not one unsafe block was found; the bridge has some"
    );
    if !without.is_empty() {
        return Err(refuse("unsafe code without its reason")
            .found(without.join(", "))
            .expected("a comment with SAFETY: before it")
            .remedy("say why it is sound, or do without it")
            .into());
    }
    let all = blocks.values().sum();
    let row = Explored::default().figure("unsafe blocks, each with its reason", all);
    Ok(blocks.into_iter().fold(row, |row, (crate_, number)| {
        row.figure(format!("in {crate_}"), number)
    }))
}

/// Rust sources that git knows.
fn sources() -> Result<Vec<String>> {
    let output = Command::new("git")
        .current_dir(paths::root())
        .args(["ls-files", "-z", "--", "*.rs"])
        .output()
        .context("running git")?;
    ensure!(output.status.success(), "git does not list the sources");
    let text = String::from_utf8(output.stdout)?;
    let names = text.split('\0').filter(|it| !it.is_empty());
    Ok(names.map(str::to_owned).collect())
}

/// The crate's folder.
fn folder(file: &str) -> String {
    let mut above = Path::new(file).ancestors().skip(1);
    let found = above.find(|it| paths::root().join(it).join("Cargo.toml").is_file());
    found.unwrap_or(Path::new("")).display().to_string()
}

/// The line of each block, and whether its reason stands there.
fn find(text: &str) -> Vec<(usize, bool)> {
    let lines: Vec<&str> = text.lines().collect();
    let code: Vec<String> = lines.iter().map(|it| without_text(it)).collect();
    let whole = code.join("\n");
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    let mut found = Vec::new();
    for (at, word) in whole.match_indices("unsafe") {
        let rest = &whole[at + word.len()..];
        let next = rest.trim_start();
        let starts_block = next.starts_with('{') || next.starts_with("impl");
        if starts_block && !whole[..at].ends_with(is_part) && !rest.starts_with(is_part) {
            let line = whole[..at].matches('\n').count();
            found.push((line + 1, has_reason(&lines[..line])));
        }
    }
    found
}

/// Whether the comment before the statement that goes on below these lines says why.
fn has_reason(above: &[&str]) -> bool {
    for line in above.iter().rev().map(|it| it.trim()) {
        if line.starts_with("//") {
            if line.contains("SAFETY:") {
                return true;
            }
        } else if line.is_empty() || line.ends_with([';', '{', '}', ',']) {
            return false;
        }
    }
    false
}

/// A line without its comment, and without what stands in quotation marks.
fn without_text(line: &str) -> String {
    let mut code = String::new();
    let (mut quoted, mut escaped) = (false, false);
    for (at, it) in line.char_indices() {
        match it {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '/' if !quoted && line[at..].starts_with("//") => break,
            it if !quoted => code.push(it),
            _ => {}
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_and_so_is_what_stands_before_them() {
        let text = [
            "// unsafe { a comment }",
            "fn one() {",
            "    // SAFETY: because,",
            "    // as it is.",
            "    let found =",
            "        unsafe { call() };",
            "    let text = \"unsafe {\"; // unsafe {",
            "    unsafe { call() };",
            "    // SAFETY: another's.",
            "    call();",
            "    unsafe {",
            "        call()",
            "    }",
            "}",
            "// SAFETY: it is.",
            "unsafe impl Send for A {}",
            "unsafe fn two() {}",
            "#[unsafe(no_mangle)]",
            "fn unsafe_code() {}",
        ]
        .join("\n");
        assert_eq!(
            find(&text),
            [(6, true), (8, false), (11, false), (16, true)]
        );
    }

    #[test]
    fn all_of_ours_say_why() {
        let row = run(Effort {
            actions: 0,
            seconds: 0,
            soak_seconds: 0,
        })
        .unwrap();
        assert!(row.figures.iter().any(|(name, _)| name == "in cxx-bridge"));
        assert!(row.figures[0].1 > 20, "{:?}", row.figures);
    }
}
