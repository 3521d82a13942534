//! Every variable, good and bad.

use serde_json::json;

use super::memory::Numa;
use super::of_pairs as read;
use super::variables::VARIABLES;
use super::*;

/// Those that the table does not have: see `the_tables_defaults_are_the_ones_in_use`.
#[test]
fn defaults_are_the_documented_ones_and_say_nothing() {
    let (config, warnings) = read(&[]);
    assert_eq!(config.block_bytes(), 1 << 30);
    assert_eq!(config.threshold_bytes(), 4 << 20);
    assert_eq!(
        (config.block_count.value, config.max_mb.value),
        (None, None)
    );
    assert_eq!(config.of_the_provisioner().idle, None);
    assert_eq!(config.plan_idle(), Some(Duration::MAX));
    assert_eq!(
        (config.memory.pin_threads.value, config.trace.value),
        (None, None)
    );
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
            let depend = [
                "BUDDY_BLOCK_COUNT",
                "BUDDY_MAX_MB",
                "BUDDY_IDLE_S",
                "BUDDY_PIN_THREADS",
                "BUDDY_PLAN_DIR",
            ];
            !depend.contains(&it.name) && it.default != "no file"
        })
        .map(|it| (it.name, it.default))
        .collect();
    let (set, warnings) = read(&defaults);
    assert_eq!(warnings, [] as [String; 0]);
    let text = |config: &Config| {
        serde_json::to_string(config)
            .unwrap()
            .replace("environment", "built-in")
    };
    assert_eq!(text(&set), text(&read(&[]).0));
}

#[test]
fn usable_values_are_taken() {
    let cases = [
        ("BUDDY_BLOCK_SIZE_MB", " 1000 ", json!(1000)),
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
        (
            "BUDDY_TRACE",
            " /tmp/T of {rank} ",
            json!("/tmp/T of {rank}"),
        ),
        ("BUDDY_PLAN_DIR", " /plans of all ", json!("/plans of all")),
        ("BUDDY_LOG", "DEBUG", json!("debug")),
        ("BUDDY_DISABLE", "1", json!(true)),
    ];
    for (name, value, expected) in cases {
        let (config, warnings) = read(&[(name, value)]);
        assert_eq!(warnings, [] as [String; 0]);
        let key = name["BUDDY_".len()..]
            .to_lowercase()
            .replace("warmup", "warm_up");
        let found = &serde_json::to_value(config).unwrap()[key];
        assert_eq!(
            (&found["value"], &found["origin"]),
            (&expected, &json!("environment")),
            "{name}"
        );
    }
    let (config, _) = read(&[("BUDDY_BLOCK_SIZE_MB", "1000"), ("BUDDY_IDLE_S", "-1")]);
    assert_eq!(config.block_bytes(), 1000 << 20);
    assert_eq!(
        (config.of_the_provisioner().idle, config.plan_idle()),
        (None, None)
    );
}

#[test]
fn what_is_guarded_is_all_the_engines() {
    let (config, warnings) = read(&[("BUDDY_GUARD", "1"), ("BUDDY_BLOCK_SIZE_MB", "2")]);
    assert!(config.guard.value && config.threshold_bytes() == 0);
    assert!(warnings.iter().all(|it| !it.contains("BUDDY_THRESHOLD_MB")));
}

#[test]
fn each_unusable_value_is_named_once_with_the_default_used() {
    let (config, warnings) = read(&[
        ("BUDDY_BLOCK_SIZE_MB", "0"),
        ("BUDDY_BLOCK_COUNT", "-3"),
        ("BUDDY_THRESHOLD_MB", "99999999999999999999"),
        ("BUDDY_WARMUP", "eager"),
        ("BUDDY_GROWTH", "double"),
        ("BUDDY_MAX_MB", "half"),
        ("BUDDY_IDLE_S", "-2"),
        ("BUDDY_BACKING", "mmap"),
        ("BUDDY_HUGE_PAGES", "4M"),
        ("BUDDY_FORK", "copy"),
        ("BUDDY_PIN_THREADS", "0"),
        ("BUDDY_NUMA", "near"),
        ("BUDDY_PLAN_DIR", "~/plans"),
        ("BUDDY_LOG", "verbose"),
        ("BUDDY_DISABLE", "maybe"),
    ]);
    insta::assert_snapshot!(warnings.join("\n"), @r#"
    BUDDY_BLOCK_SIZE_MB="0" is zero, and a block has a size; using the default, 1024
    BUDDY_BLOCK_COUNT="-3" is negative; using the default, as demand shows
    BUDDY_THRESHOLD_MB="99999999999999999999" is more than this machine can address; using the default, 4
    BUDDY_WARMUP="eager" is none of background, sync and off; using the default, background
    BUDDY_GROWTH="double" is neither segment nor exact; using the default, segment
    BUDDY_MAX_MB="half" is not a whole number; using the default, half of what is free
    BUDDY_IDLE_S="-2" is negative, and only -1 (never) may be; using the default, what a clear left
    BUDDY_BACKING="mmap" is none of auto, cuda and pages; using the default, auto
    BUDDY_HUGE_PAGES="4M" is none of auto, off, thp, 2M and 1G; using the default, auto
    BUDDY_FORK="copy" is neither share nor hide; using the default, share
    BUDDY_PIN_THREADS="0" is zero, and somebody has to touch the pages; using the default, min(8, cores / LOCAL_WORLD_SIZE)
    BUDDY_NUMA="near" is neither off, auto nor the number of a node; using the default, off
    BUDDY_LOG="verbose" is none of off, warn, info and debug; using the default, warn
    BUDDY_PLAN_DIR="~/plans" is no absolute path (`~` is not expanded); using the default, the user's cache
    BUDDY_DISABLE="maybe" is neither 1 nor 0; using the default, 0
    "#);
    let (defaults, _) = read(&[]);
    assert_eq!(config.block_count.value, defaults.block_count.value);
    assert_eq!(config.growth.value, defaults.growth.value);
    assert_eq!(config.block_size_mb.origin, Origin::Rejected);
}

/// The settings' JSON has the same reason as the warning.
#[test]
fn a_rejected_value_stays_with_its_reason() {
    let (config, _) = read(&[("BUDDY_THRESHOLD_MB", "much"), ("BUDDY_BLOCK_COUNT", "2")]);
    let json = serde_json::to_value(&config).unwrap();
    assert_eq!(
        json["threshold_mb"]["remark"],
        r#""much" is not a whole number"#
    );
    assert_eq!(json["threshold_mb"]["value"], 4);
    assert!(json["block_count"]["remark"].is_null());
    assert!(json["growth"]["remark"].is_null());
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
    assert_eq!(
        (config.max_mb.value, config.max_mb.origin),
        (Some(8193), Origin::Environment)
    );
    assert_eq!(
        config.max_mb.remark.as_deref(),
        Some("more than the 8192 MiB that this machine has")
    );
    for value in ["8192", "0"] {
        assert_eq!(
            read(&[("BUDDY_MAX_MB", value)]).0.compare_with(machine),
            None
        );
    }
    assert_eq!(read(&[]).0.compare_with(machine), None);
}

#[test]
fn blocks_that_could_serve_nothing_are_pointed_out() {
    let (_, warnings) = read(&[("BUDDY_BLOCK_SIZE_MB", "2")]);
    assert_eq!(
        warnings,
        [
            "BUDDY_BLOCK_SIZE_MB is 2 and BUDDY_THRESHOLD_MB 4: a block is too small for any request \
          that it could serve"
        ]
    );
}

#[test]
fn a_block_has_at_most_a_tebibyte() {
    assert_eq!(read(&[("BUDDY_BLOCK_SIZE_MB", "1048576")]).1.len(), 0);
    let (config, warnings) = read(&[("BUDDY_BLOCK_SIZE_MB", "1048577")]);
    assert_eq!((config.block_size_mb.value, warnings.len()), (1024, 1));
}

#[test]
fn what_is_no_number_or_overflows_in_bytes_is_rejected() {
    for value in ["abc", "1.5", "0x10", "+4", "4 MB", "-", "9000000000000"] {
        let (config, warnings) = read(&[("BUDDY_THRESHOLD_MB", value)]);
        assert_eq!(config.threshold_mb.value, 4, "{value:?}");
        assert_eq!(warnings.len(), 1, "{value:?}");
    }
    let (config, warnings) = read(&[
        ("BUDDY_BLOCK_SIZE_MB", "1000000"),
        ("BUDDY_BLOCK_COUNT", "8000000000"),
    ]);
    assert_eq!(config.block_count.value, None);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

#[cfg(unix)]
#[test]
fn a_value_that_is_not_text_is_rejected() {
    use std::os::unix::ffi::OsStringExt;
    let (config, warnings) = Config::read(|name| {
        (name == "BUDDY_BLOCK_COUNT").then(|| OsString::from_vec(vec![0xff, b'1']))
    });
    assert_eq!(config.block_count.value, None);
    assert_eq!(warnings.len(), 1);
}

#[test]
fn no_other_word_and_no_other_number_is_taken_for_memory() {
    for (name, value) in [
        ("BUDDY_HUGE_PAGES", "2048"),
        ("BUDDY_HUGE_PAGES", "on"),
        ("BUDDY_PIN_THREADS", "-1"),
        ("BUDDY_PIN_THREADS", "257"),
        ("BUDDY_NUMA", "-1"),
        ("BUDDY_NUMA", "99999999999"),
    ] {
        let (config, warnings) = read(&[(name, value)]);
        assert_eq!(warnings.len(), 1, "{name}={value}: {warnings:?}");
        assert_eq!(config.memory.numa.value, Numa::Off);
    }
}
