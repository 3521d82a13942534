//! Messages that docs/troubleshooting.md explains: the library, or the program beside it, says each of them.
//!
//! A heading quotes a part of the message that has no number in it.

use super::File;

const PAGE: &str = "docs/troubleshooting.md";
/// Who speaks.
const SOURCES: [&str; 3] = ["cxx-bridge/src/", "cxx-bridge/cpp/", "tools/src/"];

/// All complaints, one per line.
pub fn check(files: &[File]) -> Vec<String> {
    let of = |file: &File| file.text.as_deref().map(joined).unwrap_or_default();
    let speaks = |file: &&File| SOURCES.iter().any(|it| file.path.starts_with(it));
    let said: Vec<String> = files.iter().filter(speaks).map(of).collect();
    let page = files.iter().find(|it| it.path == PAGE);
    let lines = page
        .and_then(|it| it.text.as_deref())
        .unwrap_or_default()
        .lines();
    let unsaid = (1..).zip(lines).filter_map(|(number, line)| {
        let message = line.strip_prefix("### `")?.strip_suffix('`')?;
        let is_said = said.iter().any(|it| it.contains(message));
        (!is_said).then(|| format!("{PAGE}:{number}: nothing says {message:?}"))
    });
    unsaid.collect()
}

/// A source in which texts that go on in the next line are one: Rust's after a backslash, C++'s after a quotation mark.
fn joined(text: &str) -> String {
    let mut joined = String::new();
    for line in text.lines() {
        let line = line.trim();
        match joined.pop() {
            Some('\\') => joined.push_str(line),
            Some('"') if line.starts_with('"') => joined.push_str(&line[1..]),
            Some(last) => {
                joined.push(last);
                joined.push('\n');
                joined.push_str(line);
            }
            None => joined.push_str(line),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_quote_what_is_said() {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: Some(text.to_owned()),
        };
        let files = [
            file(
                "cxx-bridge/src/a.rs",
                "say(\"one thing and \\\n     another\")",
            ),
            file(
                "cxx-bridge/cpp/b.cpp",
                "  say(\"a third, \"\n      \"and a fourth\");",
            ),
            file("xtask/c.rs", "\"a fifth\""),
            file(
                PAGE,
                "### `thing and another`\n### `third, and a`\n### `a fifth`\n### By message\n",
            ),
        ];
        assert_eq!(
            check(&files),
            [format!("{PAGE}:3: nothing says \"a fifth\"")]
        );
    }
}
