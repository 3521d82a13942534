//! The one form of a refusal: what is wrong, what was found, what was expected, what to do next.

use std::fmt;

/// An error that a user can act on. Built with [`refuse`].
#[derive(Debug, Default)]
pub struct Refusal {
    what: String,
    found: Option<String>,
    expected: Option<String>,
    remedy: Option<String>,
}

/// Starts a refusal: `what` is the one line that says what is wrong.
pub fn refuse(what: impl Into<String>) -> Refusal {
    Refusal { what: what.into(), ..Refusal::default() }
}

impl Refusal {
    /// What is there.
    pub fn found(mut self, text: impl Into<String>) -> Self {
        self.found = Some(text.into());
        self
    }

    /// What should be there.
    pub fn expected(mut self, text: impl Into<String>) -> Self {
        self.expected = Some(text.into());
        self
    }

    /// What to do, best a command.
    pub fn remedy(mut self, text: impl Into<String>) -> Self {
        self.remedy = Some(text.into());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        for (label, text) in [("found", &self.found), ("expected", &self.expected), ("to do", &self.remedy)] {
            let Some(text) = text else { continue };
            for (number, line) in text.trim_end().lines().enumerate() {
                write!(f, "\n  {:<10}{line}", if number == 0 { label } else { "" })?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_up_under_the_labels() {
        let refusal = refuse("the header drifted").found("aa\nbb").expected("cc").remedy("diff -u a b");
        assert_eq!(
            refusal.to_string(),
            "the header drifted\n  found     aa\n            bb\n  expected  cc\n  to do     diff -u a b"
        );
    }
}
