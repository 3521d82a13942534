//! One setting: its value, where it came from, and what is wrong with what was set.
//!
//! Origins are asked in turn: the environment, the files in their order, and last what is built in. Invariants: an
//! unusable value costs one warning, and the next origin's is used; what an origin hides is not looked at; an empty value
//! hides as well, and asks for what is built in.

use std::ffi::OsString;

use serde::Serialize;

use crate::defaults::Layer;
use crate::variables::Variable;

/// One variable's value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting<T> {
    /// The variable's name.
    pub name: &'static str,
    /// The value in use.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
    /// The file that sets it, if one does.
    pub file: Option<String>,
    /// What is wrong with what was set, or what a setting of PyTorch's does not mean beside it, for people.
    pub remark: Option<String>,
}

impl<T> Setting<T> {
    /// The same setting with its value in another form.
    pub(crate) fn with<U>(&self, value: U) -> Setting<U> {
        Setting { name: self.name, value, origin: self.origin, file: self.file.clone(), remark: self.remark.clone() }
    }
}

/// Where a setting's value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Nobody has set it.
    #[serde(rename = "built-in")]
    Default,
    /// The wheel's file sets it.
    Wheel,
    /// The site's file sets it.
    Site,
    /// The environment sets it.
    Environment,
    /// All that was set is unusable, and what is built in is used.
    Rejected,
}

impl Origin {
    /// Whether somebody has chosen the value.
    pub fn is_set(self) -> bool {
        matches!(self, Self::Wheel | Self::Site | Self::Environment)
    }
}

/// Comes before the default that is used in place of an unusable value.
pub(crate) const INSTEAD: &str = "; using the default, ";

pub(crate) struct Reader<'a, L> {
    lookup: L,
    layers: &'a [Layer],
    pub(crate) warnings: Vec<String>,
}

/// A value that was found: its text, and where.
struct Found<'a> {
    text: OsString,
    origin: Origin,
    place: Option<(&'a Layer, usize)>,
}

impl Found<'_> {
    /// For instance ` in /etc/pinbuddy/site.toml, line 3,`; nothing for the environment.
    fn place(&self) -> String {
        match self.place {
            Some((layer, line)) => format!(" in {}, line {line},", layer.path),
            None => String::new(),
        }
    }
}

impl<'a, L: Fn(&str) -> Option<OsString>> Reader<'a, L> {
    pub(crate) fn new(lookup: L, layers: &'a [Layer]) -> Self {
        let warnings = Vec::new();
        Self { lookup, layers, warnings }
    }

    /// Reads one variable with `parse`, whose error completes the sentence `NAME="value" ...`.
    pub(crate) fn read<T>(
        &mut self,
        variable: Variable,
        default: T,
        parse: impl Fn(&str) -> Result<T, &'static str>,
    ) -> Setting<T> {
        let name = variable.name;
        let mut refused: Vec<(Found<'_>, &str)> = Vec::new();
        let mut taken = None;
        for found in self.found(name) {
            let text = found.text.to_str().map(str::trim).ok_or("is not text");
            if text == Ok("") {
                break;
            }
            match text.and_then(&parse) {
                Ok(value) => {
                    taken = Some((value, found));
                    break;
                }
                Err(why) => refused.push((found, why)),
            }
        }
        let instead = match &taken {
            Some((_, found)) => format!("; using {:?}{}", found.text, found.place().trim_end_matches(',')),
            None => format!("{INSTEAD}{}", variable.default),
        };
        let said =
            |(found, why): &(Found<'_>, &str)| format!("{name}={:?}{} {why}{instead}", found.text, found.place());
        self.warnings.extend(refused.iter().map(said));
        let remarks: Vec<String> =
            refused.iter().map(|(found, why)| format!("{:?}{} {why}", found.text, found.place())).collect();
        let remark = (!remarks.is_empty()).then(|| remarks.join("; "));
        let origin = match &remark {
            Some(_) => Origin::Rejected,
            None => Origin::Default,
        };
        let (value, origin, file) = match taken {
            Some((value, found)) => {
                let file = found.place.map(|(layer, _)| layer.path.clone());
                (value, found.origin, file)
            }
            None => (default, origin, None),
        };
        Setting { name, value, origin, file, remark }
    }

    /// What sets this name, in the order in which it counts.
    fn found(&self, name: &str) -> Vec<Found<'a>> {
        let environment = (self.lookup)(name).map(|text| Found { text, origin: Origin::Environment, place: None });
        let in_files = self.layers.iter().filter_map(|layer| {
            let set = layer.sets.iter().find(|it| it.name == name)?;
            Some(Found { text: set.value.clone().into(), origin: layer.origin, place: Some((layer, set.line)) })
        });
        environment.into_iter().chain(in_files).collect()
    }
}
