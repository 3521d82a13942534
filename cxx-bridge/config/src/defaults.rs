//! The file that sets variables for a site or a wheel: a small part of TOML.
//!
//! A line is `NAME = VALUE`, a comment or empty. A value is a string (`"text"` with the escapes `\"` and `\\`, or
//! `'text'`), a whole number, `true` or `false`. Pure functions of text. Invariants: a file without complaints is TOML, and
//! a TOML reader finds the same in it (tested); a line that cannot be used is one complaint, and all other lines count.

use std::collections::BTreeMap;

use crate::setting::{INSTEAD, Origin};
use crate::variables::{self, VARIABLES};

/// A line that sets a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// The variable's name.
    pub name: String,
    /// Its value, as the environment would have it.
    pub value: String,
    /// The line's number.
    pub line: usize,
}

/// A file, as one of the origins of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Whose file it is.
    pub origin: Origin,
    /// Its path, for people.
    pub path: String,
    /// What it sets; each name once.
    pub sets: Vec<Set>,
}

/// So much of a line is shown.
const SHOWN: usize = 60;

impl Layer {
    /// Reads a file's text; returns complaints, too.
    pub fn parse(origin: Origin, path: &str, text: &str) -> (Self, Vec<String>) {
        let mut sets: Vec<Set> = Vec::new();
        let mut complaints = Vec::new();
        for (at, text) in text.split('\n').enumerate() {
            let line = at + 1;
            let Some((name, value)) = (match assignment(text.strip_suffix('\r').unwrap_or(text)) {
                Ok(found) => found,
                Err(()) => {
                    let shown: String = text.trim().chars().take(SHOWN).collect();
                    complaints.push(format!(
                        "{path}, line {line}, is not used: expected NAME = \"text\", a number, true or false, or a comment, \
                         found {shown:?}"
                    ));
                    continue;
                }
            }) else {
                continue;
            };
            let complaint = if VARIABLES.iter().all(|known| known.name != name) {
                variables::unknown_name(name)
            } else if let Some(before) = sets.iter().find(|it| it.name == name) {
                format!("{name} is set before, and line {} counts", before.line)
            } else {
                sets.push(Set { name: name.to_owned(), value, line });
                continue;
            };
            complaints.push(format!("{path}, line {line}, is not used: {complaint}"));
        }
        let layer = Self { origin, path: path.to_owned(), sets };
        (layer, complaints)
    }
}

/// The text of a file that sets these variables.
pub fn text(values: &BTreeMap<String, String>) -> String {
    let line = |(name, value): (&String, &String)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        format!("{name} = \"{value}\"\n")
    };
    values.iter().map(line).collect()
}

/// Why a wheel cannot set these variables, by the rules for names and values that hold when a program starts; nothing if it can. What
/// files and a machine decide is said there alone.
pub fn refusals(values: &BTreeMap<String, String>) -> Vec<String> {
    let is_known = |name: &String| VARIABLES.iter().any(|known| known.name == *name);
    let names = values.keys().filter(|name| !is_known(name));
    let mut refusals: Vec<String> = names.map(|name| variables::unknown_name(name)).collect();
    let (_, warnings) = crate::Config::read(|name| values.get(name).map(Into::into));
    let own = |warning: &String| {
        let end = warning.find(INSTEAD).unwrap_or(warning.len());
        warning[..end].to_owned()
    };
    refusals.extend(warnings.iter().map(own));
    for (name, value) in values.iter().filter(|(name, _)| is_known(name)) {
        let one = BTreeMap::from([(name.clone(), value.clone())]);
        let sets = Layer::parse(Origin::Wheel, "", &text(&one)).0.sets;
        if !matches!(&sets[..], [set] if set.value == *value) {
            refusals.push(format!("{name}={value:?} does not fit on a line of text"));
        }
    }
    refusals
}

/// The name and the value that a line sets, if it sets one.
fn assignment(line: &str) -> Result<Option<(&str, String)>, ()> {
    let is_blank = |it: char| it == ' ' || it == '\t';
    if line.chars().any(|it| it.is_control() && it != '\t') {
        return Err(());
    }
    let line = line.trim_matches(is_blank);
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (name, rest) = line.split_once('=').ok_or(())?;
    let name = name.trim_matches(is_blank);
    let is_bare = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'-';
    if name.is_empty() || !name.bytes().all(is_bare) {
        return Err(());
    }
    let (value, rest) = value(rest.trim_start_matches(is_blank)).ok_or(())?;
    let rest = rest.trim_start_matches(is_blank);
    match rest.is_empty() || rest.starts_with('#') {
        true => Ok(Some((name, value))),
        false => Err(()),
    }
}

/// The value at the beginning of the text, and what comes after it.
fn value(text: &str) -> Option<(String, &str)> {
    if let Some(rest) = text.strip_prefix('\'') {
        let (value, rest) = rest.split_once('\'')?;
        return Some((value.to_owned(), rest));
    }
    if let Some(rest) = text.strip_prefix('"') {
        return escaped(rest);
    }
    let end = text.find([' ', '\t', '#']).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let digits = word.strip_prefix('-').unwrap_or(word);
    let is_number = !digits.is_empty()
        && digits.bytes().all(|it| it.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    (is_number || word == "true" || word == "false").then(|| (word.to_owned(), rest))
}

/// A string without its first quote, and what comes after it.
fn escaped(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match letters.next()?.1 {
                escaped @ ('"' | '\\') => value.push(escaped),
                _ => return None,
            },
            _ => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests;
