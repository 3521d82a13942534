//! Prints the error of a failed command to standard error.

use anyhow::Error;

use crate::disk;

/// The error, then its causes, the innermost last.
pub fn say(error: &Error) {
    let mut said = error.to_string();
    eprintln!("error: {said}");
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Some causes only repeat their parent's text.
        if !said.ends_with(&cause) {
            eprintln!("  because   {}", cause.replace('\n', "\n            "));
        }
        said = cause;
    }
    if error.chain().any(disk::is_full) {
        eprintln!("  to do     free some space, then run the same command again");
    }
}
