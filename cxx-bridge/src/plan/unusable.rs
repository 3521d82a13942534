//! A file that is named as a plan's and cannot be used: why, and what to do about it.
//!
//! A plan of another run, or a damaged one, can be made anew. A file of another kind is somebody's: it is never replaced.

use std::fs;
use std::io;
use std::path::Path;

use pinbuddy_plan::file::{Error, MOST_TEXT, Mismatch};

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
                "pinbuddy-plan" => (
                    "it is a plan of pinned memory",
                    "BUDDY_PLAN takes it, and each of the two has a file of its own",
                ),
                "pinbuddy-device-plan" => (
                    "it is a plan of device memory",
                    "BUDDY_DEVICE_PLAN takes it, and each of the two has a file of its own",
                ),
                "pinbuddy-trace" => (
                    "it is a trace",
                    "`pinbuddy plan` makes a plan of it, with --out ANOTHER",
                ),
                _ => ("it is another kind of file", "name another one"),
            }),
            _ => None,
        };
        Self {
            why: known.map_or_else(|| error.to_string(), |(why, _)| why.to_owned()),
            to_do: known.map(|(_, to_do)| to_do),
        }
    }
}

impl From<Mismatch> for Unusable {
    fn from(error: Mismatch) -> Self {
        Self::stale(&error)
    }
}

impl Unusable {
    fn stale(why: &impl ToString) -> Self {
        Self {
            why: why.to_string(),
            to_do: None,
        }
    }
}

/// The text of a file; `None` if there is no file.
pub(super) fn text(path: &Path) -> Result<Option<String>, Unusable> {
    let of = match fs::metadata(path) {
        Ok(of) => of,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(Unusable::stale(&why)),
    };
    if !of.is_file() {
        return Err(Unusable::stale(&"it is no regular file"));
    }
    if of.len() > MOST_TEXT as u64 {
        let bytes = of.len();
        let why = format!("it has {bytes} bytes; a plan has {MOST_TEXT} at most");
        return Err(Unusable::stale(&why));
    }
    fs::read_to_string(path)
        .map(Some)
        .map_err(|why| Unusable::stale(&why))
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
    fn what_is_no_plan_is_not_to_be_replaced_and_a_damaged_one_is() {
        let to_do = |text: &str| Unusable::from(Plan::read(text).unwrap_err()).to_do;
        let trace = "{\"format\":\"pinbuddy-trace\",\"version\":4}\n{\"t\":1}\n";
        assert!(to_do(trace).unwrap().starts_with("`pinbuddy plan`"));
        let other = "{\"format\":\"a table\",\"version\":1}";
        assert_eq!(to_do(other), Some("name another one"));
        assert_eq!(to_do("{\"format\":\"pinbuddy-plan\",\"version\":9}"), None);
        assert_eq!(to_do("{"), None);
    }
}
