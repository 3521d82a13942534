//! Words that are defined: settings' names (docs/variables.md) and the glossary's terms (docs/glossary.md).

use super::page::Entry;
use super::pages;

/// What a setting or a term is, if that is all that was asked for.
pub(super) fn defined(asked: &str) -> Option<Entry> {
    setting(asked).or_else(|| term(asked))
}

/// A setting, which may have a value behind it.
fn setting(asked: &str) -> Option<Entry> {
    let (name, value) = asked.split_once('=').unwrap_or((asked, ""));
    if value.contains(char::is_whitespace) {
        return None;
    }
    // Who reads PINBUDDY_… of a warning, or believes it, asks for the setting's own name.
    let name = name.strip_prefix("PIN").unwrap_or(name);
    let begin = format!("| `{name}` | ");
    let mut rows = page("docs/variables.md").lines();
    let row = rows.find(|it| it.starts_with(&begin))?;
    let rest = row[begin.len()..].trim_end_matches(['|', ' ']);
    let (default, meaning) = rest.split_once(" | ")?;
    let more = format!("Default: {default}. Every setting: docs/variables.md.");
    let title = &row["| `".len()..][..name.len()];
    Some(Entry::new(title, [meaning, &more]))
}

/// The glossary's line of a term, one or many, in any case.
fn term(asked: &str) -> Option<Entry> {
    let asked = asked.to_lowercase();
    let singular = asked.strip_suffix('s').unwrap_or(&asked);
    for line in page("docs/glossary.md").lines() {
        let entry = line.strip_prefix("- **").and_then(|it| it.split_once("**: "));
        let is_asked = |it: &str| it == asked || it == singular;
        if let Some((terms, meaning)) = entry.filter(|it| it.0.split(", ").any(is_asked)) {
            let text = [meaning, "More words: docs/glossary.md."];
            return Some(Entry::new(terms, text));
        }
    }
    None
}

/// The text of a page that is compiled in.
fn page(path: &str) -> &'static str {
    let text = pages::asked_for(path).and_then(Result::ok);
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(asked: &str) -> Option<String> {
        let mut out = Vec::new();
        defined(asked)?.write(&mut out).unwrap();
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_setting_is_known_by_its_name_alone_and_a_term_in_any_form() {
        for asked in ["BUDDY_THRESHOLD_MB", "BUDDY_THRESHOLD_MB=0", "PINBUDDY_THRESHOLD_MB"] {
            let said = told(asked).unwrap();
            assert!(said.starts_with("BUDDY_THRESHOLD_MB\n  the smallest request"));
            for part in ["  Default: 4. ", "pinbuddy explain docs/variables.md"] {
                assert!(said.contains(part), "{said}");
            }
        }
        for asked in ["slot", "Slots", "SLOT"] {
            let said = told(asked).unwrap();
            assert!(said.starts_with("slot\n  a request's place in a plan\n"));
        }
        assert!(told("quota").unwrap().starts_with("budget, quota\n"));
        for unknown in ["BUDDY_THRESHOLD", "variable", "a slot"] {
            assert_eq!(told(unknown), None);
        }
    }
}
