//! The Debian archive in this machine's package sources.

use std::fs;

/// Debian's archive.
#[derive(Debug, PartialEq, Eq)]
pub struct Archive {
    address: String,
}

impl Archive {
    /// The first archive among the machine's package sources.
    pub fn of_this_machine() -> Option<Self> {
        let list = fs::read_to_string("/etc/apt/sources.list").ok();
        let parts = fs::read_dir("/etc/apt/sources.list.d")
            .into_iter()
            .flatten()
            .flatten();
        let parts = parts.filter_map(|entry| {
            let text = fs::read_to_string(entry.path()).ok()?;
            match entry.path().extension()?.to_str()? {
                "sources" => in_stanzas(&text),
                "list" => in_lines(&text),
                _ => None,
            }
        });
        list.as_deref()
            .and_then(in_lines)
            .into_iter()
            .chain(parts)
            .next()
    }

    /// apt's line for the source packages of a release, verified with a keyring.
    pub fn source_line(&self, release: &str, keyring: &str) -> String {
        format!(
            "deb-src [signed-by={keyring}] {} {release} main\n",
            self.address
        )
    }
}

/// Whether it is the archive itself, not security updates or another vendor's packages.
fn archive(address: &str, suites: &str) -> Option<Archive> {
    let whole = address.trim_end_matches('/').ends_with("/debian") && !suites.contains("security");
    whole.then(|| Archive {
        address: address.to_owned(),
    })
}

/// `deb [options] ADDRESS SUITE COMPONENT…`.
fn in_lines(text: &str) -> Option<Archive> {
    text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("deb ")?.trim_start();
        let rest = if rest.starts_with('[') {
            rest.split_once(']')?.1
        } else {
            rest
        };
        let mut words = rest.split_whitespace();
        archive(words.next()?, words.next()?)
    })
}

/// Stanzas of `Field: value`.
fn in_stanzas(text: &str) -> Option<Archive> {
    text.split("\n\n").find_map(|stanza| {
        let field = |name: &str| {
            stanza.lines().find_map(|line| {
                let (field, value) = line.split_once(':')?;
                field.eq_ignore_ascii_case(name).then(|| value.trim())
            })
        };
        if field("Enabled") == Some("no") {
            return None;
        }
        let suites = field("Suites")?;
        field("URIs")?
            .split_whitespace()
            .find_map(|address| archive(address, suites))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_in_both_formats() {
        let expected = Some(Archive {
            address: "http://a.example/debian".into(),
        });
        let stanzas = "Types: deb\nURIs: http://a.example/debian-security\nSuites: bookworm-security\n\n\
                       Types: deb\n# a comment\nURIs: http://a.example/debian\nSuites: bookworm bookworm-updates\n";
        assert_eq!(in_stanzas(stanzas), expected);
        let lines = "# deb http://b.example/debian sid main\n\
                     deb [arch=amd64 signed-by=/x.gpg] http://a.example/debian bookworm main\n";
        assert_eq!(in_lines(lines), expected);
    }

    #[test]
    fn other_archives_are_not() {
        assert_eq!(in_lines("deb http://c.example/apt stable main\n"), None);
        assert_eq!(
            in_lines("deb http://c.example/debian bookworm-security main\n"),
            None
        );
        assert_eq!(
            in_stanzas("Enabled: no\nURIs: http://a.example/debian\nSuites: bookworm\n"),
            None
        );
        assert_eq!(in_stanzas(""), None);
    }

    #[test]
    fn the_source_line_keeps_signatures() {
        let archive = Archive {
            address: "http://a.example/debian".into(),
        };
        insta::assert_snapshot!(
            archive.source_line("trixie", "/keys.gpg"),
            @"deb-src [signed-by=/keys.gpg] http://a.example/debian trixie main"
        );
    }
}
