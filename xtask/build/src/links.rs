//! Links that a wheel gives beside upstream's: `--project-url LABEL=URL`, as `Project-URL` in METADATA.
//!
//! Invariant: a link is one line that every reader of METADATA splits into the same label and address.

use std::collections::BTreeMap;

use anyhow::Result;

use xtask_support::refusal::refuse;

/// Addresses by their labels.
pub type Links = BTreeMap<String, String>;

/// A label's length in characters, of the core metadata specification.
const LONGEST: usize = 32;

/// The links on the command line.
pub fn parse(given: &[impl AsRef<str>]) -> Result<Links> {
    let mut links = Links::new();
    for pair in given.iter().map(AsRef::as_ref) {
        let (label, url) = pair.split_once('=').unwrap_or((pair, ""));
        if let Some(why) = problem(label, url) {
            return Err(refuse(format!("--project-url {pair:?}: {why}"))
                .expected("LABEL=URL, for instance Source=https://example.com/torch")
                .into());
        }
        if let Some((other, before)) = links.iter().find(|(it, _)| plain(it) == plain(label)) {
            return Err(refuse(format!("--project-url gives {label} twice"))
                .found(format!("{other}={before} and {label}={url}"))
                .into());
        }
        links.insert(label.to_owned(), url.to_owned());
    }
    Ok(links)
}

/// The reason why METADATA cannot have a link.
fn problem(label: &str, url: &str) -> Option<String> {
    // A reader ends a line at more characters than the line feed, for instance at U+2028.
    let is_broken = |it: char| it.is_control() || (it.is_whitespace() && it != ' ');
    let host = ["https://", "http://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    if plain(label).is_empty() || label.trim() != label || label.contains(is_broken) {
        return Some("the label is no text in one line".into());
    }
    if label.contains(',') {
        return Some("the label has a comma, which ends it in METADATA".into());
    }
    if label.chars().count() > LONGEST {
        return Some(format!("the label is longer than {LONGEST} characters"));
    }
    if !host.is_some_and(|it| it.starts_with(|first: char| first.is_alphanumeric() || first == '[')) {
        return Some("the address is not https://HOST or http://HOST".into());
    }
    url.contains(|it: char| is_broken(it) || it == ' ').then(|| "the address has a space or a control character".into())
}

/// A label as the specification compares it.
fn plain(label: &str) -> String {
    let kept = label.chars();
    let kept = kept.filter(|it| !it.is_ascii_punctuation() && !it.is_whitespace());
    kept.flat_map(char::to_lowercase).collect()
}

/// Links that METADATA can have beside those that it has.
///
/// # Errors
///
/// If it has one of such a label: readers refuse two.
pub fn check_beside(links: &Links, metadata: &str) -> Result<()> {
    let head = metadata.lines().take_while(|it| !it.is_empty());
    let theirs = head.filter_map(|it| it.strip_prefix("Project-URL: ")?.split_once(','));
    for (label, url) in theirs {
        if let Some(ours) = links.keys().find(|it| plain(it) == plain(label)) {
            return Err(refuse(format!("--project-url {ours:?}: the official wheel has that label"))
                .expected("another label")
                .found(format!("{label}, {}", url.trim()))
                .into());
        }
    }
    Ok(())
}

/// The lines of METADATA, each with its end.
pub fn lines(links: &Links) -> String {
    let line = |(label, url): (&String, &String)| format!("Project-URL: {label}, {url}\n");
    links.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_metadata_cannot_have_is_refused() {
        let long = format!("{}=https://a.example", "l".repeat(33));
        let refused = [
            &["Source"][..],
            &["=https://a.example"],
            &[" Source=https://a.example"],
            &["Source, old=https://a.example"],
            &["So\nVersion: 9=https://a.example"],
            &["So\u{2028}urce=https://a.example"],
            &[&long],
            &["Source=ftp://a.example"],
            &["Source=https:///torch"],
            &["Source=https://a.example/a b"],
            &["Source=https://a.example/\r\nVersion: 9"],
            &["Source=https://a.example/\u{7}"],
            &["Bug Tracker=https://a.example", "bug-tracker=https://b.example"],
        ];
        let refused = refused.map(|it| format!("{:#}", parse(it).unwrap_err()));
        insta::assert_snapshot!(refused.join("\n--\n"));
    }

    #[test]
    fn a_label_that_upstream_has_is_refused() {
        let links = parse(&["bug-tracker=https://a.example"]).unwrap();
        let of = |line: &str| check_beside(&links, &format!("Name: torch\n{line}\n\ntext\n"));
        assert!(of("Project-URL: Bugs, https://b.example").is_ok());
        let why = of("Project-URL: Bug Tracker, https://b.example").unwrap_err();
        assert!(format!("{why:#}").contains("bug-tracker"), "{why:#}");
        // Behind the head it is a description.
        assert!(of("\nProject-URL: Bug Tracker, https://b.example").is_ok());
    }

    #[test]
    fn links_are_lines_of_metadata_in_the_order_of_their_labels() {
        let widest = "ä".repeat(LONGEST);
        let pairs = [
            "Source=https://git.example:8443/torch?a=b,c#d".to_owned(),
            format!("{widest}=https://[::1]/"),
            "Bug Tracker=http://a.example".to_owned(),
        ];
        let links = parse(&pairs).unwrap();
        let expected = format!(
            "Project-URL: Bug Tracker, http://a.example\n\
             Project-URL: Source, https://git.example:8443/torch?a=b,c#d\n\
             Project-URL: {widest}, https://[::1]/\n"
        );
        assert_eq!(lines(&links), expected);
        assert_eq!(lines(&Links::new()), "");
    }
}
