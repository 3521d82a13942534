//! Messages that docs/troubleshooting.md explains: the library, or the program beside it, says each of them, and no warning of
//! the library's is without an explanation.
//!
//! A heading quotes a part of the message that has no number in it. A message that is not one of the library's log, of which
//! the first points to `pinbuddy explain`, has a pointer of its own, and each pointer is to a heading.

use super::File;

const PAGE: &str = "docs/troubleshooting.md";
/// Who speaks.
const SOURCES: [&str; 4] = [
    "cxx-bridge/src/",
    "cxx-bridge/cpp/",
    "cxx-bridge/python/",
    "tools/src/",
];
/// How the library warns.
const WARNS: [&str; 3] = ["log::warn(", "self.once(", "warnings.push("];

/// How others speak, and how far the text of a call goes. Their pointer quotes a heading.
const POINTED: [(&str, &str); 5] = [
    ("TORCH_WARN(", ");"),
    ("TORCH_WARN_ONCE(", ");"),
    ("    report(", ");"),
    ("raise RuntimeError(", "\n\n"),
    ("raise ValueError(", "\n\n"),
];
const POINTER: &str = "pinbuddy explain '";

/// All complaints, one per line.
pub fn check(files: &[File]) -> Vec<String> {
    let speaks = |file: &&File| SOURCES.iter().any(|it| file.path.starts_with(it));
    let said: Vec<(&str, String)> = files
        .iter()
        .filter(speaks)
        .map(|it| (&*it.path, joined(it.text.as_deref().unwrap_or_default())))
        .collect();
    let page = files.iter().find(|it| it.path == PAGE);
    let lines = page
        .and_then(|it| it.text.as_deref())
        .unwrap_or_default()
        .lines();
    let headings: Vec<(usize, &str)> = (1..)
        .zip(lines)
        .filter_map(|(number, line)| Some((number, line.strip_prefix("### `")?.strip_suffix('`')?)))
        .collect();
    let unsaid = headings.iter().filter_map(|(number, message)| {
        let is_said = said.iter().any(|(_, text)| text.contains(message));
        (!is_said).then(|| format!("{PAGE}:{number}: nothing says {message:?}"))
    });
    let unexplained = said.iter().flat_map(|(path, text)| {
        let without = warnings(text).filter(|warning| {
            let is_explained = headings.iter().any(|(_, it)| warning.contains(it));
            !is_explained && warning.contains(' ')
        });
        without.map(move |it| format!("{PAGE}: no heading quotes what {path} says: {it:?}"))
    });
    let pointers = said.iter().flat_map(|(path, text)| {
        let own = own(text);
        let without = without_pointer(own)
            .map(move |it| format!("{path}: no pointer to `pinbuddy explain` in {it:?}"));
        let lost = pointers(own)
            .filter(|it| !headings.iter().any(|heading| heading.1 == *it))
            .map(move |it| format!("{path}: {PAGE} has no heading {it:?} to point to"));
        without.chain(lost).collect::<Vec<_>>()
    });
    unsaid.chain(unexplained).chain(pointers).collect()
}

/// A source without its tests.
fn own(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or_default()
}

/// The beginnings of calls that have no pointer.
fn without_pointer(text: &str) -> impl Iterator<Item = &str> {
    let calls = POINTED.iter().flat_map(move |(call, end)| {
        let found = text.match_indices(call);
        found.map(move |(at, _)| text[at..].split(end).next().unwrap_or_default())
    });
    // A declaration has no text.
    let calls = calls.filter(|it| it.contains('"') && !it.contains(POINTER));
    calls.map(|it| it.lines().next().unwrap_or_default())
}

/// What is pointed to, where that is no part of a format.
fn pointers(text: &str) -> impl Iterator<Item = &str> {
    let found = text.split(POINTER).skip(1);
    let quoted = found.filter_map(|it| Some(it.split_once('\'')?.0));
    quoted.filter(|it| !it.contains('{'))
}

/// What a source warns of: the first text of each call.
fn warnings(text: &str) -> impl Iterator<Item = &str> {
    let own = own(text);
    let calls = WARNS.iter().flat_map(|call| own.match_indices(call));
    calls.filter_map(|(at, _)| {
        let rest = &own[at..];
        let end = rest.find("\n}").unwrap_or(rest.len());
        let (_, text) = rest[..end].split_once('"')?;
        text.split_once('"').map(|(text, _)| text)
    })
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
                "cxx-bridge/cpp/e.cpp",
                "  TORCH_WARN(\"bad: \", why);\n  TORCH_WARN(\"a third, \"\n    \"and a fourth\",\n    \" (see: pinbuddy explain 'third, and a')\");",
            ),
            file(
                "cxx-bridge/python/f.py",
                "raise ValueError(\"worse (see: pinbuddy explain 'nothing')\")\n\nraise RuntimeError(\n    \"worst\"\n)",
            ),
            file(
                "cxx-bridge/src/d.rs",
                "log::warn(|| \"one thing and another\");\nlog::warn(|| \"a sixth thing\");\n#[cfg(test)]\nlog::warn(|| \"a test\")",
            ),
            file(
                PAGE,
                "### `thing and another`\n### `third, and a`\n### `a fifth`\n### By message\n",
            ),
        ];
        assert_eq!(
            check(&files),
            [
                format!("{PAGE}:3: nothing says \"a fifth\""),
                format!(
                    "{PAGE}: no heading quotes what cxx-bridge/src/d.rs says: \"a sixth thing\""
                ),
                "cxx-bridge/cpp/e.cpp: no pointer to `pinbuddy explain` in \"TORCH_WARN(\\\"bad: \\\", why\"".to_owned(),
                "cxx-bridge/python/f.py: no pointer to `pinbuddy explain` in \"raise RuntimeError(\"".to_owned(),
                format!("cxx-bridge/python/f.py: {PAGE} has no heading \"nothing\" to point to"),
            ]
        );
    }
}
