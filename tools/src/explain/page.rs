//! docs/troubleshooting.md as entries: symptoms are rows of its table, messages its headings of the third level.

use std::io::{self, Write};

use super::pages;
use crate::show;

/// How wide a line of text is.
const WIDTH: usize = 96;

/// A word that is shorter says nothing about what is meant.
pub(super) const SHORTEST: usize = 4;

/// A symptom or a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The symptom, or the part of a message by which it is known.
    pub(super) title: &'static str,
    /// Paragraphs, in words without marks.
    text: Vec<String>,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) symptoms: Vec<Entry>,
    pub(super) messages: Vec<Entry>,
}

impl Page {
    pub(super) fn read(text: &'static str) -> Self {
        let mut page = Self::default();
        // What stands before the first message of a section is about the page.
        let mut of_message = false;
        for line in text.lines() {
            if let Some(row) = line.strip_prefix("| ") {
                let cells: Vec<&str> = row.trim_end_matches('|').split(" | ").collect();
                if let [symptom, likely, to_do] = cells[..]
                    && symptom != "symptom"
                {
                    page.symptoms.push(Entry {
                        title: symptom,
                        text: vec![
                            format!("Likely: {}.", plain(likely.trim())),
                            format!("To do: {}.", plain(to_do.trim())),
                        ],
                    });
                }
            } else if let Some(title) = line.strip_prefix("### `") {
                let title = title.trim_end_matches('`');
                let text = Vec::new();
                page.messages.push(Entry { title, text });
                of_message = true;
            } else if line.starts_with("## ") {
                of_message = false;
            } else if let Some(entry) = page.messages.last_mut()
                && of_message
            {
                entry.add(line);
            }
        }
        page
    }

    /// The messages that are quoted in a text: all parts of a title, between which a name may stand.
    pub(super) fn messages_in(&self, text: &str) -> impl Iterator<Item = &Entry> {
        let all = self.messages.iter();
        all.filter(move |it| it.title.split(" … ").all(|part| text.contains(part)))
    }

    /// What has all of a text in its title, or else shares words with it: the most of them.
    pub(super) fn near(&self, text: &str) -> Vec<&Entry> {
        let text = text.trim().to_lowercase();
        let has_all = |it: &&Entry| text.len() >= SHORTEST && it.title.to_lowercase().contains(&text);
        let part_of: Vec<&Entry> = self.messages.iter().filter(has_all).collect();
        if !part_of.is_empty() {
            return part_of;
        }
        let words: Vec<&str> = words(&text).collect();
        let shared = |it: &&Entry| {
            let title = it.title.to_lowercase();
            let own: Vec<&str> = self::words(&title).collect();
            words.iter().filter(|word| own.contains(word)).count()
        };
        let all: Vec<&Entry> = self.symptoms.iter().chain(&self.messages).collect();
        let most = all.iter().map(shared).max().unwrap_or(0);
        let is_near = |it: &&Entry| most > 0 && shared(it) == most;
        all.into_iter().filter(is_near).collect()
    }
}

impl Entry {
    /// An entry of another page.
    pub(super) fn new(title: &'static str, text: [&str; 2]) -> Self {
        let text = text.map(plain).to_vec();
        Self { title, text }
    }

    /// A line of the page.
    fn add(&mut self, line: &str) {
        match self.text.last_mut() {
            Some(last) if !line.is_empty() && !last.is_empty() => {
                last.push(' ');
                last.push_str(&plain(line));
            }
            Some(last) if line.is_empty() && last.is_empty() => {}
            _ => self.text.push(plain(line)),
        }
    }

    /// For a terminal.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", plain(self.title))?;
        for paragraph in self.text.iter().filter(|it| !it.is_empty()) {
            for line in show::wrapped(paragraph, WIDTH - 2, "") {
                writeln!(out, "  {line}")?;
            }
        }
        let text = self.text.join(" ");
        for page in pages::named_in(&text) {
            writeln!(out, "  To read {page}: pinbuddy explain {page}")?;
        }
        writeln!(out)
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|it: char| !it.is_alphanumeric() && it != '_');
    words.filter(|it| it.len() >= SHORTEST)
}

/// Without marks: of links, what they say and the page that they lead to.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some([before, said, page, after]) = link(rest) {
        plain.push_str(before);
        // Most say the page's name.
        plain += &match said == page {
            true => format!("docs/{page}"),
            false => format!("{said} (docs/{page})"),
        };
        rest = after;
    }
    plain.push_str(rest);
    plain.replace('`', "")
}

/// What is before a text's first link, what it says, its page, and what is behind it.
fn link(text: &str) -> Option<[&str; 4]> {
    let (before, rest) = text.split_once('[')?;
    let (said, rest) = rest.split_once("](")?;
    let (page, after) = rest.split_once(')')?;
    Some([before, said, page, after])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Title\n\n| symptom | likely | what to do |\n|---|---|---|\n| a slow `first` step | cold | a \
                        [plan](plans.md) |\n\n## By message\n\nBegins so.\n\n### `could not pin`\n\nThe driver\nrefused: \
                        [deploy.md](deploy.md).\n\nMore.\n\n## By message: others\n\nOf those.\n\n### `is no trace`\n\nAnother file.\n\n### `the plan in … is not used`\n\nWhy.\n";

    fn told(entry: &Entry) -> String {
        let mut out = Vec::new();
        entry.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_and_headings_become_entries() {
        let page = Page::read(PAGE);
        assert_eq!((page.symptoms.len(), page.messages.len()), (1, 3));
        assert_eq!(
            told(&page.symptoms[0]),
            "a slow first step\n  Likely: cold.\n  To do: a plan (docs/plans.md).\n  To read docs/plans.md: pinbuddy explain docs/plans.md\n\n"
        );
        assert_eq!(
            told(&page.messages[0]),
            "could not pin\n  The driver refused: docs/deploy.md.\n  More.\n  To read docs/deploy.md: pinbuddy explain docs/deploy.md\n\n"
        );
        assert_eq!(told(&page.messages[1]), "is no trace\n  Another file.\n\n");
        // A name may stand between the parts of a title.
        let is_in = |text: &str| page.messages_in(text).count() == 1;
        assert!(
            is_in("the plan in run.plan is not used: it is long") && !is_in("the plan in run.plan is of few requests")
        );
    }

    #[test]
    fn long_texts_are_wrapped() {
        let text = vec!["word ".repeat(40).trim_end().to_owned()];
        let title = "t";
        let told = told(&Entry { title, text });
        assert!(told.lines().all(|it| it.len() <= WIDTH), "{told}");
        assert_eq!(told.lines().count(), 5, "{told}");
    }
}
