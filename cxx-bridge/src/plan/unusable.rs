//! A file that is named as a plan's and cannot be used: why, and what to do about it.
//!
//! A plan of another run, or a damaged one, can be made anew. A file of another kind is somebody's: it is never replaced.
//! Nor is one of which nobody can say what it is.

use std::fs;
use std::io;
use std::path::Path;

use pinbuddy_plan::file::{Error, MOST_TEXT, Mismatch};
use pinbuddy_store::MOST_HEAD;

/// See the module's documentation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unusable {
    /// Why, as the end of a sentence.
    pub(super) why: String,
    /// What to do about it, if it is not to have it made anew.
    pub(super) to_do: Option<&'static str>,
}

impl From<Error> for Unusable {
    fn from(error: Error) -> Self {
        let known = match &error {
            Error::Format(found, _) => Some(match found.as_str() {
                "pinbuddy-plan" => {
                    ("it is a plan of pinned memory", "BUDDY_PLAN takes it, and each of the two has a file of its own")
                }
                "pinbuddy-device-plan" => (
                    "it is a plan of device memory",
                    "BUDDY_DEVICE_PLAN takes it, and each of the two has a file of its own",
                ),
                "pinbuddy-trace" => ("it is a trace", "`pinbuddy plan` makes a plan of it, with --out ANOTHER"),
                _ => ("it is another kind of file", ANOTHER),
            }),
            _ => None,
        };
        Self {
            why: known.map_or_else(|| error.to_string(), |(why, _)| why.to_owned()),
            to_do: known.map(|(_, to_do)| to_do),
        }
    }
}

/// How plans of both kinds begin.
const HEAD: &str = r#"{"format":"pinbuddy-"#;

/// What to do about a file of another kind.
pub(super) const ANOTHER: &str = "name another one";

impl From<Mismatch> for Unusable {
    fn from(error: Mismatch) -> Self {
        Self::stale(&error)
    }
}

impl Unusable {
    pub(super) fn stale(why: &impl ToString) -> Self {
        Self { why: why.to_string(), to_do: None }
    }

    fn of_another_kind(why: &impl ToString) -> Self {
        Self { to_do: Some(ANOTHER), ..Self::stale(why) }
    }

    fn dangling(target: &Path) -> Self {
        let target = target.display();
        Self {
            to_do: Some("name the file itself, or remove the link"),
            ..Self::stale(&format!("it is a symbolic link to {target}, which is not there"))
        }
    }

    /// The same; where the text does not begin as a plan does, it is somebody's. An empty file is nobody's.
    pub(super) fn unless_ours(self, text: &str) -> Self {
        match is_plan(text) {
            true => self,
            false => Self { to_do: self.to_do.or(Some(ANOTHER)), ..self },
        }
    }
}

/// Whether a text begins as a plan does, as an empty one does, too.
pub(super) fn is_plan(text: &str) -> bool {
    let begin = text.chars().filter(|it| !it.is_whitespace());
    begin.zip(HEAD.chars()).all(|(found, wanted)| found == wanted)
}

/// The text of a file; `None` if there is no file.
pub(super) fn text(path: &Path) -> Result<Option<String>, Unusable> {
    let of = match fs::metadata(path) {
        Ok(of) => of,
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            // A plan would replace the link, and not be where it points.
            let target = fs::read_link(path).ok();
            return target.map_or(Ok(None), |it| Err(Unusable::dangling(&it)));
        }
        Err(why) => return Err(Unusable::of_another_kind(&why)),
    };
    if !of.is_file() {
        return Err(Unusable::of_another_kind(&"it is no regular file"));
    }
    // With a key before it, if it is a kept or exported one.
    if of.len() > (MOST_TEXT + MOST_HEAD) as u64 {
        let bytes = of.len();
        let why = format!("it has {bytes} bytes; a plan has {MOST_TEXT} at most");
        return Err(Unusable::of_another_kind(&why));
    }
    fs::read_to_string(path).map(Some).map_err(|why| Unusable::of_another_kind(&why))
}

#[cfg(test)]
mod tests {
    use pinbuddy_plan::Plan;
    use pinbuddy_plan::file::device::DevicePlan;

    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut text = Vec::new();
        write(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_plan_of_other_memory_is_led_to_its_variable() {
        let pinned = written(|to| Plan::default().write(to));
        let found = Unusable::from(DevicePlan::read(&pinned).unwrap_err());
        assert_eq!(found.why, "it is a plan of pinned memory");
        assert!(found.to_do.unwrap().starts_with("BUDDY_PLAN takes it"));
        let device = written(|to| DevicePlan::default().write(to));
        let found = Unusable::from(Plan::read(&device).unwrap_err());
        assert_eq!(found.why, "it is a plan of device memory");
        assert!(found.to_do.unwrap().starts_with("BUDDY_DEVICE_PLAN"));
    }

    #[test]
    fn a_damaged_plan_is_replaced_and_what_is_no_plan_or_does_not_begin_as_one_is_somebodys() {
        let read = |text: &str| Unusable::from(Plan::read(text).unwrap_err());
        let to_do = |text: &str| read(text).unless_ours(text).to_do;
        let plan = written(|to| Plan::default().write(to));
        for length in [0, 1, 10, 30, plan.len() / 2] {
            assert_eq!(to_do(&plan[..length]), None, "the first {length} bytes");
        }
        assert_eq!(to_do("{\n  \"format\": \"pinbuddy-plan\",\n"), None);
        for other in ["import torch\n", "\u{7f}ELF", "[1]", "{\"model\":1}", "{}"] {
            assert_eq!(to_do(other), Some(ANOTHER), "{other}");
        }
        let trace = "{\"format\":\"pinbuddy-trace\",\"version\":4}\n{\"t\":1}\n";
        assert!(read(trace).to_do.unwrap().starts_with("`pinbuddy plan`"));
        assert_eq!(read("{\"format\":\"a table\",\"version\":1}").to_do, Some("name another one"));
        for damaged in ["{\"format\":\"pinbuddy-plan\",\"version\":9}", "{"] {
            assert_eq!(read(damaged).to_do, None, "{damaged}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_as_text_is_somebodys() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("model.bin");
        fs::write(&file, [0xff, 0xfe, 0]).unwrap();
        assert_eq!(text(&file).unwrap_err().to_do, Some(ANOTHER));
        fs::File::create(&file).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(text(&file).unwrap_err().to_do, Some(ANOTHER));
        assert_eq!(text(folder.path()).unwrap_err().to_do, Some(ANOTHER));
        assert_eq!(text(&folder.path().join("none")), Ok(None));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("gone.plan", &link).unwrap();
        let dangling = text(&link).unwrap_err();
        assert_eq!(dangling.why, "it is a symbolic link to gone.plan, which is not there");
        assert!(dangling.to_do.unwrap().starts_with("name the file itself"));
    }
}
