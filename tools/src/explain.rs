//! `explain`: a message in, what it means and what to do about it out.
//!
//! What is known is docs/troubleshooting.md and the pages that it leads to, which are compiled in: a user of the wheel has no
//! other copy of them.
//!
//! Invariant: what is read from standard input is a line at a time, and a line has a limit.

mod page;
mod pages;
mod terms;

use std::collections::HashSet;
use std::io::{self, BufRead, IsTerminal as _, Read as _, Write};
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::{cli, output};
use page::{Entry, Page};

/// The longest line that is looked at, in bytes; of a longer one, its beginning.
const LONGEST: u64 = 1 << 16;

/// The most entries that are shown where no message was recognised.
const MOST_NEAR: usize = 3;

const UNREADABLE: &str = "standard input cannot be read";

/// The text of the page.
const PAGE: &str = include_str!("../../docs/troubleshooting.md");

/// The message in a text that is explained here, if there is one: of several, the longest.
#[must_use]
pub fn known(text: &str) -> Option<&'static str> {
    let page = Page::read(PAGE);
    let titles = page.messages_in(text).map(|it| it.title);
    titles.max_by_key(|it| it.len())
}

/// The command. Fails if nothing is known of what was asked.
pub fn run(args: &cli::Explain) -> Result<ExitCode> {
    let page = Page::read(PAGE);
    let asked = args.message.join(" ");
    let is_known = if !asked.trim().is_empty() {
        let mut is_known = false;
        output::print_with(|to| {
            is_known = answer(&page, &asked, to)?;
            Ok(())
        })?;
        is_known
    } else {
        let mut from = io::stdin().lock();
        // Where nobody types, as in a container, there is no log either.
        if from.is_terminal() || from.fill_buf().context(UNREADABLE)?.is_empty() {
            output::print_with(|to| list(&page, to))?;
            true
        } else {
            log(&page, from)?
        }
    };
    Ok(output::ends(is_known))
}

/// What is known of a message, or else what comes near to it.
fn answer(page: &Page, asked: &str, out: &mut impl Write) -> io::Result<bool> {
    let asked = asked.trim();
    match pages::asked_for(asked) {
        Some(Ok(text)) => return out.write_all(text.as_bytes()).map(|()| true),
        Some(Err(why)) => return out.write_all(why.as_bytes()).map(|()| false),
        None => {}
    }
    let defined = terms::defined(asked);
    if let Some(it) = &defined {
        it.write(out)?;
    }
    let known: Vec<&Entry> = page.messages_in(asked).collect();
    if !known.is_empty() {
        known.iter().try_for_each(|it| it.write(out))?;
        return Ok(true);
    }
    let near = page.near(asked);
    if near.is_empty() && defined.is_none() {
        return elsewhere(asked, out);
    }
    if near.iter().any(|it| !it.title.to_lowercase().contains(&asked.to_lowercase())) {
        writeln!(out, "No message of pinbuddy's has these words. What comes nearest:\n")?;
    }
    near.iter().take(MOST_NEAR).try_for_each(|it| it.write(out))?;
    Ok(true)
}

/// The pages that have it in their text.
fn elsewhere(asked: &str, out: &mut impl Write) -> io::Result<bool> {
    let sections = pages::sections_with(asked);
    let Some((page, _)) = sections.first() else {
        writeln!(
            out,
            "Nothing is known of that. All that is known: pinbuddy explain, with no more words. Whether pinbuddy is in \
             place: pinbuddy doctor"
        )?;
        return Ok(false);
    };
    writeln!(out, "'{asked}' is in:")?;
    let mut near = sections.iter().take(MOST_NEAR);
    near.try_for_each(|(page, heading)| writeln!(out, "  docs/{page}.md: {heading}"))?;
    writeln!(out, "To read a page: pinbuddy explain docs/{page}.md")?;
    Ok(true)
}

/// Each message of a log, once.
fn log(page: &Page, mut from: impl BufRead) -> Result<bool> {
    let mut told = HashSet::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        let part = from.by_ref().take(LONGEST).read_until(b'\n', &mut line).context(UNREADABLE)?;
        if part == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        // Other programs' lines may have the same words.
        let is_ours = text.contains("pinbuddy") || text.starts_with("error: ");
        for entry in page.messages_in(&text).filter(|_| is_ours) {
            if told.insert(entry.title) {
                let is_read = output::print_with(|to| {
                    writeln!(to, "{}", text.trim_end())?;
                    entry.write(to)
                })?;
                if !is_read {
                    return Ok(true);
                }
            }
        }
    }
    if told.is_empty() {
        let nothing = "No message of pinbuddy's is in it that needs an explanation.\n";
        output::print(&nothing)?;
    }
    Ok(!told.is_empty())
}

/// All that is known.
fn list(page: &Page, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "Symptoms:\n")?;
    page.symptoms.iter().try_for_each(|it| it.write(out))?;
    writeln!(out, "Messages, each of which pinbuddy explain MESSAGE explains:\n")?;
    let mut messages = page.messages.iter();
    messages.try_for_each(|it| writeln!(out, "  {}", it.title))
}
