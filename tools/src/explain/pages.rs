//! Pages of docs/ that messages, help and the explanations lead to. They are compiled in: a user of the wheel has no other
//! copy of them.

use super::page::SHORTEST;

/// Names and texts of pages.
macro_rules! pages {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../docs/", $name, ".md")))),*]
    };
}

/// Those for users. Others are about building, testing and measuring pinbuddy, which takes its sources.
const PAGES: [(&str, &str); 16] = pages! {
    "advice" "comparison" "concepts" "deploy" "device" "glossary" "plans" "plugin" "python" "releases" "report"
    "settings" "simulate" "top" "troubleshooting" "variables"
};

/// The text of a page that was asked for as `docs/NAME.md` or `NAME.md`, or why it is not here; nothing where no page was
/// asked for.
pub(super) fn asked_for(words: &str) -> Option<Result<&'static str, String>> {
    let (path, _anchor) = words.split_once('#').unwrap_or((words, ""));
    let name = path.strip_suffix(".md")?;
    let name = name.strip_prefix("docs/").unwrap_or(name);
    let page = PAGES.iter().find(|it| it.0 == name);
    Some(page.map(|it| it.1).ok_or_else(|| {
        let names: Vec<&str> = PAGES.iter().map(|it| it.0).collect();
        let names = names.join(", ");
        format!("The page {path} comes with pinbuddy's sources only. Here are: {names}; for instance pinbuddy explain docs/advice.md\n")
    }))
}

/// The pages and headings of the sections that have a phrase, in any case; those with it in their heading first. Of a phrase
/// that is too short to say anything, none.
pub(super) fn sections_with(phrase: &str) -> Vec<(&'static str, String)> {
    let phrase = phrase.to_lowercase();
    let mut found = Vec::new();
    for (name, text) in PAGES.into_iter().filter(|_| phrase.len() >= SHORTEST) {
        for section in text.split("\n#") {
            let heading = section.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
            if section.to_lowercase().contains(&phrase) {
                found.push((name, heading.replace('`', "")));
            }
        }
    }
    found.sort_by_key(|it| !it.1.to_lowercase().contains(&phrase));
    found
}

/// The pages of docs/ that a text names, each once.
pub(super) fn named_in(text: &str) -> Vec<&str> {
    let mut named = Vec::new();
    for (at, _) in text.match_indices("docs/") {
        let page = &text[at..];
        if let Some(end) = page.find(".md")
            && page[..end].bytes().all(|it| it.is_ascii_lowercase() || b"-/".contains(&it))
            && !named.contains(&&page[..end + 3])
        {
            named.push(&page[..end + 3]);
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// All texts below a folder, but those of tests.
    fn texts(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                texts(&path, found);
            } else if let Ok(text) = fs::read_to_string(&path) {
                let code = text.split("#[cfg(test)]").next().unwrap();
                let marks = ["//", "#", "\"\"\""];
                let is_code = |line: &&str| !marks.iter().any(|it| line.trim_start().starts_with(it));
                let code: Vec<&str> = code.lines().filter(is_code).collect();
                found.push(code.join("\n"));
            }
        }
    }

    #[test]
    fn each_page_that_a_message_names_is_here() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = Vec::new();
        let bridge = ["src", "cpp", "python"].map(|it| root.join("cxx-bridge").join(it));
        for folder in bridge.iter().chain([&root.join("tools/src")]) {
            texts(folder, &mut found);
        }
        let explained = super::super::page::plain(super::super::PAGE);
        found.push(explained.replace("docs/../", ""));
        let mut seen = 0;
        for page in found.iter().flat_map(|it| named_in(it)) {
            // Of a checkout's commands; a table that tests compare.
            if page != "docs/commands.md" {
                assert!(asked_for(page).unwrap().is_ok(), "{page}");
                seen += 1;
            }
        }
        assert!(seen > 10, "{seen}");
    }

    #[test]
    fn a_page_is_found_by_its_path_or_name() {
        for asked in ["docs/deploy.md", "deploy.md", "docs/deploy.md#huge-pages"] {
            let text = asked_for(asked).unwrap().unwrap();
            assert!(text.starts_with("# "), "{asked}");
        }
        assert_eq!(asked_for("could not pin"), None);
        let said = asked_for("docs/bench.md").unwrap().unwrap_err();
        assert!(said.contains("deploy, device"), "{said}");
    }
}
