//! Reads and rewrites the small texts in a wheel that carry its version and tags. Pure functions.

use anyhow::{Context, Result, ensure};

/// The contents of torch/version.py, parsed as text: a wheel's Python code is never run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorchVersion {
    /// `2.15.0+cu132`.
    pub version: String,
    /// `13.2`, or none in a build without CUDA.
    pub cuda: Option<String>,
    /// A ROCm version, for AMD builds.
    pub hip: Option<String>,
}

impl TorchVersion {
    /// Reads torch/version.py.
    pub fn parse(text: &str) -> Result<Self> {
        let version = assigned(text, "__version__").and_then(string).context("torch/version.py sets no __version__")?;
        Ok(Self { version, cuda: assigned(text, "cuda").and_then(string), hip: assigned(text, "hip").and_then(string) })
    }
}

/// `2.15.0+cu132.pinbuddy.0.1.0`: newer than the official version, and satisfies `==2.15.0`.
pub fn fork_version(official: &str, ours: &str) -> String {
    let separator = if official.contains('+') { '.' } else { '+' };
    format!("{official}{separator}pinbuddy.{ours}")
}

/// The right-hand side of `name = …` or `name: type = …` at the start of a line.
fn assigned<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?;
        let (annotation, value) = rest.split_once('=')?;
        let annotation = annotation.trim();
        (annotation.is_empty() || annotation.starts_with(':')).then_some(value.trim())
    })
}

/// A Python string literal without escapes.
fn string(literal: &str) -> Option<String> {
    let quote = literal.chars().next().filter(|it| matches!(it, '\'' | '"'))?;
    let inner = literal[1..].strip_suffix(quote)?;
    (!inner.contains([quote, '\\'])).then(|| inner.to_owned())
}

/// torch/version.py with another `__version__`, and nothing else changed.
pub fn rewrite_version_py(text: &str, version: &str) -> Result<String> {
    let mut found = 0;
    let lines: Vec<String> = text
        .split_inclusive('\n')
        .map(|line| {
            let Some(value) = assigned(line, "__version__") else {
                return line.to_owned();
            };
            // One that is no literal is not ours to replace, and the file is refused.
            found += if string(value).is_some() { 1 } else { 2 };
            let end = if line.ends_with('\n') { "\n" } else { "" };
            format!("__version__ = '{version}'{end}")
        })
        .collect();
    ensure!(found == 1, "torch/version.py does not set __version__ once, to a text");
    Ok(lines.concat())
}

/// METADATA with another version, with our licence files if its format lists them, and with more `Project-URL` lines.
pub fn rewrite_metadata(text: &str, version: &str, licences: &[String], links: &str) -> Result<String> {
    let old = header(text, "Version").context("METADATA has no Version")?;
    let (old, new) = (format!("Version: {old}"), format!("Version: {version}"));
    let (head, body) = match text.split_once("\n\n") {
        Some((head, body)) => (head, format!("\n\n{body}")),
        None => (text, "\n".to_owned()),
    };
    let lines = head.lines().map(|it| if it == old { &new } else { it });
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    let file = "License-File: ";
    if let Some(last) = lines.iter().rposition(|it| it.starts_with(file)) {
        let more = licences.iter().map(|it| format!("{file}{it}"));
        lines.splice(last + 1..=last, more);
    }
    // Behind upstream's own links, or else behind the version: both are one line each.
    let is_link = |line: &String| line.starts_with("Project-URL: ");
    let last = lines.iter().rposition(is_link);
    if let Some(last) = last.or_else(|| lines.iter().position(|it| *it == new)) {
        lines.splice(last + 1..=last, links.lines().map(str::to_owned));
    }
    Ok(lines.join("\n") + &body)
}

/// entry_points.txt with one more entry in a group such as `console_scripts`, and nothing else changed; none if the group
/// has one of that name already, or is in a form that is not known here.
pub fn add_entry_point(text: &str, group: &str, entry: &str) -> Option<String> {
    let section = format!("[{group}]");
    if text.trim().is_empty() {
        return Some(format!("{section}\n{entry}\n"));
    }
    let named: Vec<&str> = text.lines().filter(|line| line.contains(group)).collect();
    if named.is_empty() {
        return Some(format!("{}\n\n{section}\n{entry}\n", text.trim_end()));
    }
    if named != [&section] {
        return None;
    }
    let name = |line: &str| line.split_once('=').map(|(name, _)| name.trim().to_owned());
    let of_group = text.lines().skip_while(|line| *line != section).skip(1);
    let mut entries = of_group.take_while(|line| !line.starts_with('['));
    if entries.any(|line| name(line) == name(entry)) {
        return None;
    }
    Some(text.replacen(&section, &format!("{section}\n{entry}"), 1))
}

/// WHEEL with other tags, in place of the old ones.
pub fn rewrite_wheel(text: &str, tags: &[String]) -> Result<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut written = false;
    for line in text.lines() {
        if !line.starts_with("Tag: ") {
            lines.push(line.to_owned());
        } else if !written {
            lines.extend(tags.iter().map(|tag| format!("Tag: {tag}")));
            written = true;
        }
    }
    ensure!(written, "WHEEL has no Tag");
    Ok(lines.join("\n") + if text.ends_with("\n\n") || !text.ends_with('\n') { "\n\n" } else { "\n" })
}

/// The first value of a field in the header part of METADATA or WHEEL.
pub fn header<'a>(text: &'a str, field: &str) -> Option<&'a str> {
    text.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix(field)?.strip_prefix(": "))
}

/// Every tag in WHEEL.
pub fn tags(wheel: &str) -> Vec<&str> {
    wheel.lines().filter_map(|line| line.strip_prefix("Tag: ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION_PY: &str = "from typing import Optional\n\n\
        __all__ = ['__version__', 'debug', 'cuda']\n\
        __version__ = '2.15.0+cu132'\ndebug = False\ncuda: Optional[str] = '13.2'\n\
        git_version = 'd0f2'\nhip: Optional[str] = None\n";
    const METADATA: &str = "Metadata-Version: 2.4\nName: torch\nVersion: 2.15.0\nLicense-File: LICENSE\n\
        License-File: NOTICE\nRequires-Dist: filelock\n\nVersion: 2.15.0 in the text stays\n";

    #[test]
    fn entry_points_get_one_more_command_and_lose_nothing() {
        let script = "pinbuddy = pinbuddy.__main__:main";
        let add = |text: &str| add_entry_point(text, "console_scripts", script);
        let torch = "[console_scripts]\ntorchrun = torch.distributed.run:main\n\n[torchrun.logs_specs]\na = b:C\n";
        let with = format!("[console_scripts]\n{script}\n");
        assert_eq!(add(torch), Some(torch.replacen("[console_scripts]\n", &with, 1)));
        assert_eq!(add(""), Some(with.clone()));
        assert_eq!(add("[a]\nb = c:D\n"), Some(format!("[a]\nb = c:D\n\n{with}")));
        // It has one, or a form that is not known here.
        assert_eq!(add(&with), None);
        assert_eq!(add("[console_scripts]\npinbuddy=x:y\n"), None);
        assert_eq!(add("[ console_scripts ]\na = b:c\n"), None);
        // One of that name in another group is another entry.
        let backend = "pinbuddy = pinbuddy._plugin:autoload";
        let both = format!("{with}\n[torch.backends]\n{backend}\n");
        let add_backend = |text: &str| add_entry_point(text, "torch.backends", backend);
        assert_eq!(add_backend(&with), Some(both.clone()));
        assert_eq!(add_backend(&both), None);
        assert_eq!(
            add(&format!("[torch.backends]\n{backend}\n")),
            Some(format!("[torch.backends]\n{backend}\n\n{with}"))
        );
        assert_eq!(add("[console_scripts]\n[console_scripts]\n"), None);
    }

    #[test]
    fn reads_what_a_build_is() {
        let read = TorchVersion::parse(VERSION_PY).unwrap();
        assert_eq!(
            (read.version.as_str(), read.cuda.as_deref(), read.hip.as_deref()),
            ("2.15.0+cu132", Some("13.2"), None)
        );
        assert_eq!(TorchVersion::parse("__version__ = '2.6.0+cpu'\ncuda: Optional[str] = None\n").unwrap().cuda, None);
        assert!(TorchVersion::parse("__version__ = make_version()\n").is_err());
        assert_eq!(fork_version(&read.version, "0.1.0"), "2.15.0+cu132.pinbuddy.0.1.0");
    }

    #[test]
    fn only_the_version_changes() {
        let fork = "2.15.0+cu132.pinbuddy.0.1.0";
        insta::assert_snapshot!("version_py", rewrite_version_py(VERSION_PY, fork).unwrap());
        let licences = ["pinbuddy/LICENSE", "pinbuddy/NOTICE"].map(str::to_owned);
        insta::assert_snapshot!("metadata", rewrite_metadata(METADATA, fork, &licences, "").unwrap());
        let wheel = "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-manylinux_2_28_x86_64\n\n";
        let tags = ["cp311-cp311-manylinux_2_34_x86_64".to_owned()];
        insta::assert_snapshot!("wheel", rewrite_wheel(wheel, &tags).unwrap());
    }

    #[test]
    fn links_come_behind_upstreams_which_stay() {
        let ours = "Project-URL: Bugs, https://git.example\nProject-URL: Help, https://a.example\n";
        let upstreams = "Project-URL: Source, https://up.example\n";
        let version = "Version: 2.15.0\n";
        let of = |text: &str, links: &str| rewrite_metadata(text, "2.15.0", &[], links).unwrap();
        let linked = METADATA.replacen(version, &format!("{version}{upstreams}"), 1);
        for text in [METADATA, &linked, "Name: torch\nVersion: 2.15.0\n"] {
            assert_eq!(of(text, ""), text);
            let before = if text == linked { upstreams } else { version };
            let expected = text.replacen(before, &format!("{before}{ours}"), 1);
            assert_eq!(of(text, ours), expected);
        }
    }

    #[test]
    fn a_version_that_is_set_twice_or_by_code_is_not_rewritten() {
        let literal = "__version__ = '2.15.0'\n";
        assert!(rewrite_version_py(literal, "9").is_ok());
        for other in [literal, "__version__ = make_version()\n"] {
            let texts = [format!("{other}{literal}"), format!("{literal}{other}")];
            for text in texts {
                assert!(rewrite_version_py(&text, "9").is_err(), "{text}");
            }
        }
        assert!(rewrite_version_py("cuda = '13.2'\n", "9").is_err());
    }

    #[test]
    fn fields_end_where_the_text_begins() {
        assert_eq!(header(METADATA, "Version"), Some("2.15.0"));
        assert_eq!(header("Name: torch\n\nVersion: 1\n", "Version"), None);
    }
}
