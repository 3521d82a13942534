//! Lines that are used, lines that are not, and a TOML reader beside ours.

use proptest::prelude::*;

use super::*;
use crate::Config;

fn site(text: &str) -> (Layer, Vec<String>) {
    Layer::parse(Origin::Site, "site.toml", text)
}

/// Names and values of a file.
fn values(text: &str) -> Vec<(String, String)> {
    let sets = site(text).0.sets.into_iter();
    sets.map(|it| (it.name, it.value)).collect()
}

#[test]
fn strings_numbers_and_switches_are_values() {
    let text = "# for all jobs\n\n  BUDDY_MAX_MB = 4096   # a rank\r\nBUDDY_LOG=\"info\"#x\n\
                BUDDY_PLAN = 'C:\\a\"b'\nBUDDY_TRACE = \"a\\\"b\\\\c # d\"\n\tBUDDY_LIVE\t=\ttrue\nBUDDY_IDLE_S = -1";
    let expected = [
        ("BUDDY_MAX_MB", "4096"),
        ("BUDDY_LOG", "info"),
        ("BUDDY_PLAN", "C:\\a\"b"),
        ("BUDDY_TRACE", "a\"b\\c # d"),
        ("BUDDY_LIVE", "true"),
        ("BUDDY_IDLE_S", "-1"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(values(text), expected);
    assert_eq!(site(text).1, [] as [String; 0]);
    let (config, warnings) = Config::layered(|_| None, &[site(text).0]);
    assert_eq!(warnings, [] as [String; 0]);
    assert_eq!(config.max_mb.value, Some(4096));
    assert!(config.live.value);
    assert_eq!(config.idle_s.value, Some(-1));
}

#[test]
fn a_line_that_cannot_be_used_is_one_complaint_and_the_others_count() {
    let text = "[pinbuddy]\nBUDDY_LOG = \"off\nBUDDY_LOG = info\nBUDDY_MAX_MB = 1.5\nBUDDY_MAX_MB = 007\n\
                BUDDY_LOG = \"a\\nb\"\n= 1\nBUDDY_MAX_MB = 1 2\nBUDDY_MAX_MB =\nBUDDY.MAX = 1\nBUDDY_LOG\n\
                BUDDY_TRESHOLD_MB = 2\nthreshold = 1\nBUDDY_THRESHOLD_MB = 2\nBUDDY_THRESHOLD_MB = 3\nBUDDY_LIVE = 1\n";
    insta::assert_snapshot!(site(text).1.join("\n"));
    let expected = [("BUDDY_THRESHOLD_MB", "2"), ("BUDDY_LIVE", "1")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(values(text), expected);
}

/// As a TOML reader finds it, if it takes the file.
fn by_toml(text: &str) -> Option<BTreeMap<String, String>> {
    let table: toml::Table = text.parse().ok()?;
    let value = |it| match it {
        toml::Value::String(text) => Some(text),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(is) => Some(is.to_string()),
        _ => None,
    };
    let pairs = table.into_iter();
    pairs.map(|(name, it)| Some((name, value(it)?))).collect()
}

/// Pieces of lines, so that many of them are nearly right.
fn file() -> impl Strategy<Value = String> {
    let names = ["BUDDY_MAX_MB", "BUDDY_LOG", "BUDDY_LIVE"];
    let others = [
        "=", "=", "=", " ", "\n", "\n", "\r\n", "\"", "\"", "'", "'", "\\", "\\\"", "#", "1", "0", "-", "true",
        "false", "x", "[", "]", ".", "_", ",", "\t", "ü", "\u{1}", "\u{7f}", "\u{85}",
    ];
    let pieces: Vec<&str> = names.into_iter().chain(others).collect();
    prop::collection::vec(prop::sample::select(pieces), 0..24).prop_map(|it| it.concat())
}

/// Files of lines that are right by themselves.
fn lines() -> impl Strategy<Value = String> {
    let name = prop::sample::select(VARIABLES.map(|it| it.name).to_vec());
    let value = prop_oneof![
        any::<i32>().prop_map(|it| it.to_string()),
        any::<bool>().prop_map(|it| it.to_string()),
        "'[ -&(-~ü]{0,9}'",
        "\"([ !#-\\[\\]-~ü]|\\\\\"|\\\\\\\\){0,9}\"",
    ];
    let comment = prop::sample::select(vec!["", " # one", "#"]);
    let line = (name, value, comment).prop_map(|(name, value, end)| format!("{name} = {value}{end}\n"));
    prop::collection::vec(line, 0..6).prop_map(|it| it.concat())
}

proptest! {
    /// What we take without a complaint is TOML, and means the same; what is right by itself is taken.
    #[test]
    fn a_file_without_complaints_is_what_toml_finds(text in prop_oneof![file(), lines()]) {
        let (layer, complaints) = site(&text);
        if complaints.is_empty() {
            let ours: BTreeMap<_, _> = layer.sets.into_iter().map(|it| (it.name, it.value)).collect();
            prop_assert_eq!(by_toml(&text), Some(ours));
        }
    }

    /// Good lines cost at most the complaint that a name comes twice.
    #[test]
    fn lines_that_are_right_are_taken(text in lines()) {
        let (layer, complaints) = site(&text);
        prop_assert!(complaints.iter().all(|it| it.contains("is set before")), "{:?}", complaints);
        prop_assert_eq!(layer.sets.len() + complaints.len(), text.lines().count());
    }

    /// What the build writes is read back as it was given, or refused.
    #[test]
    fn a_written_file_is_read_back(value in "\\PC{0,20}|[ -~\\\\\"\n\t]{0,20}") {
        let given = BTreeMap::from([("BUDDY_TRACE".to_owned(), value.clone())]);
        let read = values(&text(&given));
        if refusals(&given).is_empty() {
            prop_assert_eq!(read, [("BUDDY_TRACE".to_owned(), value)]);
        }
    }

    /// The environment counts before the site, the site before the wheel, and the wheel before what is built in. An empty value
    /// asks for what is built in, and what comes after it does not count.
    #[test]
    fn the_first_origin_with_a_usable_value_counts(
        set in prop::array::uniform3(prop::option::of(prop_oneof![Just("many".to_owned()), Just(String::new()), (1..99u32).prop_map(|it| it.to_string())])),
    ) {
        let line = |at: usize, origin| {
            let text = set[at].as_ref().map_or_else(String::new, |it| format!("BUDDY_THRESHOLD_MB = \"{it}\"\n"));
            Layer::parse(origin, "file", &text).0
        };
        let layers = [line(1, Origin::Site), line(2, Origin::Wheel)];
        let lookup = |name: &str| set[0].clone().filter(|_| name == "BUDDY_THRESHOLD_MB").map(Into::into);
        let (config, warnings) = Config::layered(lookup, &layers);
        let first = set.iter().position(|it| it.as_ref().is_some_and(|it| it != "many"));
        let bad = set[..first.unwrap_or(3)].iter().flatten().count();
        prop_assert_eq!(warnings.len(), bad);
        let (value, origin) = match first {
            Some(at) if set[at].as_deref() != Some("") => {
                let origin = [Origin::Environment, Origin::Site, Origin::Wheel][at];
                (set[at].as_ref().unwrap().parse().unwrap(), origin)
            }
            _ if bad == 0 => (4, Origin::Default),
            _ => (4, Origin::Rejected),
        };
        let found = &config.threshold_mb;
        prop_assert_eq!((found.value, found.origin), (value, origin));
        prop_assert_eq!(found.remark.is_some(), bad > 0);
        prop_assert_eq!(found.file.is_some(), matches!(origin, Origin::Site | Origin::Wheel));
    }
}

#[test]
fn an_empty_value_turns_off_what_a_site_or_a_wheel_sets_and_says_nothing() {
    let all: String = VARIABLES.iter().map(|it| format!("{} = \"1\"\n", it.name)).collect();
    let (built_in, _) = Config::read(|_| None);
    for (environment, file) in [(Some(" "), &*all), (None, &all.replace('1', ""))] {
        let layers = [site(file).0, Layer::parse(Origin::Wheel, "wheel.toml", &all).0];
        let (config, warnings) = Config::layered(|_| environment.map(Into::into), &layers);
        assert_eq!((config, warnings), (built_in.clone(), vec![]));
    }
}

#[test]
fn an_unusable_value_says_where_it_is_and_what_counts_instead() {
    let site = site("BUDDY_LOG = \"loud\"\nBUDDY_MAX_MB = 8\n").0;
    let wheel = Layer::parse(Origin::Wheel, "wheel.toml", "\nBUDDY_LOG = \"info\"\n").0;
    let lookup = |name: &str| (name == "BUDDY_MAX_MB").then(|| "half".into());
    let (config, warnings) = Config::layered(lookup, &[site, wheel]);
    insta::assert_snapshot!(warnings.join("\n"));
    assert_eq!(config.log.origin, Origin::Wheel);
    assert_eq!(config.log.file.as_deref(), Some("wheel.toml"));
}

#[test]
fn a_build_refuses_what_a_program_would_warn_of() {
    let refused = |name: &str, value: &str| refusals(&BTreeMap::from([(name.to_owned(), value.to_owned())])).join("; ");
    assert_eq!(refused("BUDDY_LOG", "info"), "");
    let all = [
        ("BUDDY_LOG", "loud"),
        ("BUDDY_TRESHOLD_MB", "1"),
        ("BUDDY_TRACE", "a\nb"),
        ("BUDDY_PLAN_DIR", "plans"),
        ("PATH", "/x"),
    ];
    let all = all.map(|(name, value)| refused(name, value));
    insta::assert_snapshot!(all.join("\n"));
}
