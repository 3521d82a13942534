//! Every variable, good and bad.

use std::os::unix::ffi::OsStringExt as _;

use serde_json::json;

use super::of_pairs as read;
use super::variables::VARIABLES;
use super::*;

/// Under which name a variable is in the settings' JSON.
fn key(name: &str) -> String {
    let key = name["BUDDY_".len()..].to_lowercase();
    key.replace("warmup", "warm_up")
}

/// Those that the table does not have: see `the_tables_defaults_are_the_ones_in_use`.
#[test]
fn defaults_are_the_documented_ones_and_say_nothing() {
    let (config, warnings) = read(&[]);
    assert_eq!(config.block_bytes(), 1 << 30);
    assert_eq!(config.threshold_bytes(), 4 << 20);
    assert_eq!((config.block_count.value, config.max_mb.value), (None, None));
    assert_eq!(config.of_the_provisioner().idle, None);
    assert_eq!(config.plan_idle(), Some(Duration::MAX));
    assert_eq!((config.memory.pin_threads.value, config.trace.value), (None, None));
    assert_eq!(warnings, [] as [String; 0]);
}

#[test]
fn the_table_of_variables_is_what_is_read() {
    let read = std::cell::RefCell::new(Vec::new());
    Config::read(|name| {
        read.borrow_mut().push(name.to_owned());
        None
    });
    let mut read = read.into_inner();
    let mut listed = VARIABLES.map(|it| it.name.to_owned());
    read.sort_unstable();
    listed.sort_unstable();
    assert_eq!(read, listed);
}

#[test]
fn the_tables_defaults_are_the_ones_in_use() {
    let defaults: Vec<(&str, &str)> = VARIABLES
        .iter()
        // Their defaults depend on the machine or the program, and are no values.
        .filter(|it| {
            let depend = ["BUDDY_BLOCK_COUNT", "BUDDY_MAX_MB", "BUDDY_IDLE_S", "BUDDY_PIN_THREADS", "BUDDY_PLAN_DIR"];
            !depend.contains(&it.name) && it.default != "no file"
        })
        .map(|it| (it.name, it.default))
        .collect();
    let (set, warnings) = read(&defaults);
    assert_eq!(warnings, [] as [String; 0]);
    let text = |config: &Config| serde_json::to_string(config).unwrap().replace("environment", "built-in");
    assert_eq!(text(&set), text(&read(&[]).0));
}

#[test]
fn usable_values_are_taken() {
    let cases = [
        ("BUDDY_BLOCK_SIZE_MB", " 1000 ", json!(1000)),
        ("BUDDY_BLOCK_SIZE_MB", "1048576", json!(1 << 20)),
        ("BUDDY_BLOCK_COUNT", "0", json!(0)),
        ("BUDDY_THRESHOLD_MB", "0", json!(0)),
        ("BUDDY_WARMUP", "Sync", json!("sync")),
        ("BUDDY_GROWTH", "exact", json!("exact")),
        ("BUDDY_MAX_MB", "0", json!(0)),
        ("BUDDY_IDLE_S", "-1", json!(-1)),
        ("BUDDY_BACKING", "pages", json!("pages")),
        ("BUDDY_HUGE_PAGES", "1g", json!("1G")),
        ("BUDDY_HUGE_PAGES", "2m", json!("2M")),
        ("BUDDY_FORK", "Hide", json!("hide")),
        ("BUDDY_PIN_THREADS", "3", json!(3)),
        ("BUDDY_NUMA", "1", json!(1)),
        ("BUDDY_NUMA", "AUTO", json!("auto")),
        ("BUDDY_TRACE", " /tmp/T of {rank} ", json!("/tmp/T of {rank}")),
        ("BUDDY_PLAN_DIR", " /plans of all ", json!("/plans of all")),
        ("BUDDY_LOG", "DEBUG", json!("debug")),
        ("BUDDY_DISABLE", "1", json!(true)),
    ];
    for (name, value, expected) in cases {
        let (config, warnings) = read(&[(name, value)]);
        assert_eq!(warnings, [] as [String; 0]);
        let found = &serde_json::to_value(config).unwrap()[key(name)];
        assert_eq!((&found["value"], &found["origin"]), (&expected, &json!("environment")), "{name}");
    }
    let (config, _) = read(&[("BUDDY_BLOCK_SIZE_MB", "1000"), ("BUDDY_IDLE_S", "-1")]);
    assert_eq!(config.block_bytes(), 1000 << 20);
    assert_eq!((config.of_the_provisioner().idle, config.plan_idle()), (None, None));
}

#[test]
fn blocks_that_could_serve_nothing_are_pointed_out_unless_a_guard_has_all_served() {
    let small = ("BUDDY_BLOCK_SIZE_MB", "2");
    assert_eq!(
        read(&[small]).1,
        ["BUDDY_BLOCK_SIZE_MB is 2 and BUDDY_THRESHOLD_MB 4: a block is too small for any request \
          that it could serve"]
    );
    let (config, warnings) = read(&[("BUDDY_GUARD", "1"), small]);
    assert!(config.guard.value && config.threshold_bytes() == 0);
    assert!(warnings.iter().all(|it| !it.contains("BUDDY_THRESHOLD_MB")));
}

#[test]
fn a_limit_above_what_the_machine_has_is_pointed_out_and_taken() {
    let machine = (8 << 30, "this machine has");
    let (mut config, warnings) = read(&[("BUDDY_MAX_MB", "8193")]);
    assert_eq!(warnings.len(), 0);
    insta::assert_snapshot!(
        config.compare_with(machine).unwrap(),
        @"BUDDY_MAX_MB is 8193, more than the 8192 MiB that this machine has; what is free bounds pins all the same"
    );
    assert_eq!((config.max_mb.value, config.max_mb.origin), (Some(8193), Origin::Environment));
    assert_eq!(config.max_mb.remark.as_deref(), Some("more than the 8192 MiB that this machine has"));
    for value in ["8192", "0"] {
        assert_eq!(read(&[("BUDDY_MAX_MB", value)]).0.compare_with(machine), None);
    }
    assert_eq!(read(&[]).0.compare_with(machine), None);
}

#[test]
fn an_unusable_value_is_named_once_with_its_reason_and_the_default_is_used() {
    let refused: [(&str, &[&str]); 15] = [
        ("BUDDY_BLOCK_SIZE_MB", &["0", "1048577"]),
        ("BUDDY_BLOCK_COUNT", &["-3", "9000000000", "99000000000"]),
        ("BUDDY_THRESHOLD_MB", &["99999999999999999999", "9000000000000", "abc", "1.5", "0x10", "+4", "4 MB", "-"]),
        ("BUDDY_WARMUP", &["eager"]),
        ("BUDDY_GROWTH", &["double"]),
        ("BUDDY_MAX_MB", &["half"]),
        ("BUDDY_IDLE_S", &["-2"]),
        ("BUDDY_BACKING", &["mmap"]),
        ("BUDDY_HUGE_PAGES", &["4M", "2048", "on"]),
        ("BUDDY_FORK", &["copy"]),
        ("BUDDY_PIN_THREADS", &["0", "-1", "257"]),
        ("BUDDY_NUMA", &["near", "-1", "99999999999"]),
        ("BUDDY_LOG", &["verbose"]),
        ("BUDDY_PLAN_DIR", &["~/plans"]),
        ("BUDDY_DISABLE", &["maybe"]),
    ];
    let pairs = refused.into_iter().flat_map(|(name, values)| {
        let texts = values.iter().map(OsString::from);
        texts.map(move |it| (name, it))
    });
    let no_text = OsString::from_vec(vec![0xff, b'1']);
    let json = |config: &Config| serde_json::to_value(config).unwrap();
    let defaults = json(&read(&[]).0);
    let mut said = Vec::new();
    for (name, value) in pairs.chain([("BUDDY_BLOCK_COUNT", no_text)]) {
        let (config, warnings) = Config::read(|it| (it == name).then(|| value.clone()));
        let (mut found, key) = (json(&config), key(name));
        let (setting, default) = (&found[&key], &defaults[&key]);
        assert_eq!(setting["value"], default["value"], "{name}={value:?}");
        assert_eq!(setting["origin"], "rejected", "{name}={value:?}");
        let reason = setting["remark"].as_str().unwrap();
        let [warning] = &warnings[..] else {
            panic!("{name}={value:?}: {warnings:?}");
        };
        assert!(warning.starts_with(&format!("{name}={reason}; using the default, ")));
        said.push(warning.clone());
        found[&key] = default.clone();
        assert_eq!(found, defaults, "no other setting has changed");
    }
    insta::assert_snapshot!(said.join("\n"));
}
