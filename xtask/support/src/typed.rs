//! The command line that the user typed, with one word changed: for the last line of a refusal.

use std::env;

/// The words after `cargo xtask`.
pub fn arguments() -> Vec<String> {
    let typed = env::args_os().skip(1);
    typed.map(|it| it.to_string_lossy().into_owned()).collect()
}

/// The command with the option set to that value, whether or not it was typed.
pub fn with(arguments: &[String], option: &str, value: &str) -> String {
    let mut words = arguments.to_vec();
    let typed = words.iter().position(|it| it == option);
    let joined = words.iter().position(|it| it.starts_with(&format!("{option}=")));
    match (typed, joined) {
        (Some(at), _) if at + 1 < words.len() => words[at + 1] = value.to_owned(),
        (_, Some(at)) => words[at] = format!("{option}={value}"),
        _ => words.extend([option.to_owned(), value.to_owned()]),
    }
    let quoted = words.iter().map(|it| format!(" {}", quoted(it)));
    format!("cargo xtask{}", quoted.collect::<String>())
}

/// A word, quoted for a shell if necessary.
pub fn quoted(word: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || "_@%+=:,./-".contains(it);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn an_option_is_set_whether_it_was_there_or_not() {
        for (typed, expected) in [
            ("venv /a'b", r"cargo xtask venv '/a'\''b' --python python3.13"),
            ("venv --python python3.9 --stock", "cargo xtask venv --python python3.13 --stock"),
            ("venv --python=python3.9", "cargo xtask venv --python=python3.13"),
        ] {
            assert_eq!(with(&words(typed), "--python", "python3.13"), expected);
        }
        assert_eq!(quoted("-I/a b/it's"), r"'-I/a b/it'\''s'");
    }
}
