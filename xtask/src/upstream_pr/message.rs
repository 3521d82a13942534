//! The commit message of a patch, for readers who do not know this project.

use anyhow::{Context, Result, ensure};

use xtask_patchkit::lint::{self, TRAILERS};

/// A commit's subject, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// One line.
    pub subject: String,
    /// Paragraphs, with no trailers of ours.
    pub body: String,
}

impl Message {
    /// The message of a patch in the mailbox format.
    pub fn of_patch(text: &str) -> Result<Self> {
        let subject = lint::subject(text).context("it has no subject")?;
        let (_, rest) = text.split_once("\n\n").context("it has no message")?;
        let lines = rest
            .lines()
            .take_while(|line| !line.starts_with("diff --git ") && !line.starts_with("---"));
        let ours = |line: &&str| TRAILERS.iter().any(|it| line.starts_with(it));
        let kept: Vec<&str> = lines.filter(|line| !ours(line)).collect();
        let body = kept.join("\n").trim().to_owned();
        ensure!(!body.is_empty(), "its message does not say why");
        Ok(Self { subject, body })
    }

    /// The message as git takes it.
    pub fn text(&self) -> String {
        format!("{}\n\n{}\n", self.subject, self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_are_left_out_and_a_long_subject_is_one_line() {
        let text = "From 0\nFrom: x\nDate: y\nSubject: [PATCH] Open the\n seam\n\nWhy: because.\n\nMore.\n\n\
                    Reason: ours\nForwarded: no\n\ndiff --git a/A b/A\n";
        let message = Message::of_patch(text).unwrap();
        assert_eq!(message.text(), "Open the seam\n\nWhy: because.\n\nMore.\n");
        assert!(Message::of_patch(&text.replace("Why: because.\n\nMore.\n\n", "")).is_err());
    }
}
