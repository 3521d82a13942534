//! Our own rules for workflows, besides actionlint's and zizmor's: every command can be run by hand, every job has
//! a time limit, every action is pinned with its version beside it.
//!
//! Reads lines instead of YAML, since each rule has only one spelling.

use super::File;

/// All complaints, one per line.
pub fn check(files: &[File]) -> Vec<String> {
    let workflows = files.iter().filter(|it| it.is_workflow());
    workflows.flat_map(check_one).collect()
}

fn check_one(file: &File) -> Vec<String> {
    let text = file.text.as_deref().unwrap_or_default();
    let mut complaints = Vec::new();
    for (number, line) in text.lines().enumerate() {
        complaints
            .extend(check_line(line).map(|what| format!("{}:{}: {what}", file.path, number + 1)));
    }
    let count = |key: &str| {
        text.lines()
            .filter(|it| it.trim_start().starts_with(key))
            .count()
    };
    if count("runs-on:") != count("timeout-minutes:") {
        complaints.push(format!("{}: a job without timeout-minutes", file.path));
    }
    for (key, why) in [
        ("permissions: {}", "jobs say what they need"),
        ("concurrency:", "two runs would be in each other's way"),
    ] {
        if !text.lines().any(|it| it.starts_with(key)) {
            complaints.push(format!("{}: no `{key}` at the top: {why}", file.path));
        }
    }
    complaints
}

fn check_line(line: &str) -> Option<&'static str> {
    let line = line.trim_start().trim_start_matches("- ");
    if let Some(command) = line.strip_prefix("run:") {
        let command = command.trim_start();
        let by_hand = command.starts_with("ci/") || command.starts_with("cargo xtask ");
        return (!by_hand).then_some("a command that is neither ci/… nor cargo xtask …");
    }
    let action = line.strip_prefix("uses:")?.trim_start();
    if action.starts_with("./") {
        return None;
    }
    let (_, rest) = action.split_once('@')?;
    let (hash, version) = rest.split_once(" # ").unwrap_or((rest, ""));
    let pinned = hash.len() == 40 && hash.bytes().all(|it| it.is_ascii_hexdigit());
    (!pinned || !version.starts_with('v'))
        .then_some("an action without its commit's whole hash and `# vX.Y.Z`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_complained_of() {
        let text = "permissions: {}\njobs:\n  a:\n    runs-on: x\n    steps:\n      - uses: actions/checkout@v7\n\
                    \x20     - run: ci/lint.sh\n      - run: |\n          curl x | sh\n";
        let path = ".github/workflows/a.yml".to_owned();
        let file = File {
            path,
            text: Some(text.to_owned()),
        };
        insta::assert_snapshot!(check(&[file]).join("\n"), @"
        .github/workflows/a.yml:6: an action without its commit's whole hash and `# vX.Y.Z`
        .github/workflows/a.yml:8: a command that is neither ci/… nor cargo xtask …
        .github/workflows/a.yml: a job without timeout-minutes
        .github/workflows/a.yml: no `concurrency:` at the top: two runs would be in each other's way
        ");
    }

    #[test]
    fn a_pinned_action() {
        let pinned = format!("- uses: a/b@{} # v1.2.3", "0a".repeat(20));
        assert_eq!(check_line(&pinned), None);
        assert!(check_line(&pinned.replace(" # v1.2.3", "")).is_some());
    }
}
