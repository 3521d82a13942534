//! Every `BUDDY_*` variable: its name and its default. What it means is in docs/variables.md, which has a row for each.
//!
//! Misspelt names are compared with them. Knows no value and reads nothing. Invariant: [`super::Config`] reads exactly
//! these (tested).

/// One variable, as documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its default, as text.
    pub default: &'static str,
}

/// The table: a constant for each variable, and all of them.
macro_rules! variables {
    ($($short:ident: $name:literal, $default:literal;)*) => {
        $(pub(super) const $short: Variable = Variable { name: $name, default: $default };)*

        /// All of them, in the order of docs/variables.md.
        pub const VARIABLES: [Variable; 22] = [$($short),*];
    };
}

variables! {
    BLOCK_SIZE_MB: "BUDDY_BLOCK_SIZE_MB", "1024";
    BLOCK_COUNT: "BUDDY_BLOCK_COUNT", "as demand shows";
    THRESHOLD_MB: "BUDDY_THRESHOLD_MB", "4";
    WARMUP: "BUDDY_WARMUP", "background";
    GROWTH: "BUDDY_GROWTH", "segment";
    MAX_MB: "BUDDY_MAX_MB", "half of what is free";
    IDLE_S: "BUDDY_IDLE_S", "off, except for plans";
    BACKING: "BUDDY_BACKING", "auto";
    HUGE_PAGES: "BUDDY_HUGE_PAGES", "auto";
    FORK: "BUDDY_FORK", "share";
    PIN_THREADS: "BUDDY_PIN_THREADS", "min(8, cores / LOCAL_WORLD_SIZE)";
    NUMA: "BUDDY_NUMA", "off";
    PLAN: "BUDDY_PLAN", "no file";
    PLAN_UPDATE: "BUDDY_PLAN_UPDATE", "0";
    PLAN_DIR: "BUDDY_PLAN_DIR", "the user's cache";
    DEVICE_PLAN: "BUDDY_DEVICE_PLAN", "no file";
    TRACE: "BUDDY_TRACE", "no file";
    DEVICE_TRACE: "BUDDY_DEVICE_TRACE", "no file";
    LIVE: "BUDDY_LIVE", "0";
    LOG: "BUDDY_LOG", "warn";
    GUARD: "BUDDY_GUARD", "0";
    DISABLE: "BUDDY_DISABLE", "0";
}

/// How every variable's name begins.
const PREFIX: &str = "BUDDY_";

/// A warning for each of `names` that starts like one of our variables and is none, or is one behind `PIN`.
pub(super) fn misspelt(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let is_ours = |name: &str| VARIABLES.iter().any(|known| known.name == name);
    // Other names that begin with PINBUDDY_ are tools' and tests'.
    let is_misspelt = |name: &String| match name.strip_prefix("PIN") {
        Some(rest) => is_ours(rest),
        None => name.starts_with(PREFIX) && !is_ours(name),
    };
    let mut unknown: Vec<String> = names.into_iter().filter(is_misspelt).collect();
    unknown.sort_unstable();
    unknown.iter().map(|name| unknown_name(name)).collect()
}

/// What to say of a name that is none of ours.
pub(super) fn unknown_name(name: &str) -> String {
    let distance = |known: &str| strsim::damerau_levenshtein(known, name);
    let nearest = VARIABLES.map(|known| known.name).into_iter();
    let advice = match nearest.min_by_key(|known| distance(known)) {
        Some(near) if 2 * distance(near) <= name.len().saturating_sub(PREFIX.len()) => {
            format!("did you mean {near}?")
        }
        // A setting that is gone resembles none.
        _ => "`python -m pinbuddy` lists all".to_owned(),
    };
    format!("{name} is no setting and has no effect; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_every_variable_and_its_default() {
        let page = include_str!("../../../docs/variables.md");
        let rows = page.lines().filter(|line| line.starts_with("| `BUDDY_"));
        let listed: Vec<&str> = rows.filter_map(|it| Some(it.rsplit_once(" | ")?.0)).collect();
        let expected = VARIABLES.map(|it| format!("| `{}` | {}", it.name, it.default));
        assert_eq!(listed, expected, "docs/variables.md");
    }

    #[test]
    fn a_misspelt_name_is_shown_with_the_nearest_one() {
        let names = [
            "BUDDY_BLOCKSIZE_MB",
            "BUDDY_LOG",
            "BUDDY_REGISTER_CHUNK_MB",
            "BUDDY_TRESHOLD",
            "PATH",
            "PINBUDDY_PLAN",
            "PINBUDDY_SITE",
            "buddy_x",
        ];
        insta::assert_snapshot!(misspelt(names.map(str::to_owned)).join("\n"), @r"
        BUDDY_BLOCKSIZE_MB is no setting and has no effect; did you mean BUDDY_BLOCK_SIZE_MB?
        BUDDY_REGISTER_CHUNK_MB is no setting and has no effect; `python -m pinbuddy` lists all
        BUDDY_TRESHOLD is no setting and has no effect; did you mean BUDDY_THRESHOLD_MB?
        PINBUDDY_PLAN is no setting and has no effect; did you mean BUDDY_PLAN?
        ");
    }
}
