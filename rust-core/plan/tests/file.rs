//! Plan files: what is written is read, and nothing else is.

use pinbuddy_plan::file::{Error, Facts, GRANULE, Lane, MadeFor, Plan, Slot};

fn text(plan: &Plan) -> String {
    let mut out = Vec::new();
    plan.write(&mut out).expect("a plan that can be written");
    String::from_utf8(out).unwrap()
}

fn made_for() -> MadeFor {
    MadeFor { torch: "2.15.0".to_owned(), world_size: 8, rank: 3, threshold: 4 << 20 }
}

fn small() -> Plan {
    let [peak, lower_bound] = [16 * GRANULE; 2];
    Plan {
        made_for: made_for(),
        regions: vec![16 * GRANULE, 5 * GRANULE],
        slots: [(3, 0), (1, 2), (16, 0)].map(|(bytes, at)| Slot::from((bytes * GRANULE, 0, at * GRANULE))).to_vec(),
        lanes: vec![
            Lane { prologue: vec![2], period: vec![0, 1, 0], ..Lane::default() },
            Lane { prologue: vec![], period: vec![1, 1], turns: 2, clears: vec![1] },
        ],
        classes: 0,
        facts: Facts {
            requests: 9,
            iterations: 2,
            peak,
            lower_bound,
            gap_percent: 0.125,
            efficiency: 0.762,
            seconds: 1.5,
        },
    }
}

#[test]
fn every_change_of_a_byte_is_noticed() {
    let good = text(&small());
    for at in 0..good.len() {
        for byte in 0..128 {
            let mut bytes = good.clone().into_bytes();
            bytes[at] = byte;
            if let Ok(again) = Plan::read(&String::from_utf8(bytes).unwrap()) {
                assert_eq!(text(&again), good, "byte {at} is {byte}");
            }
        }
    }
}

#[test]
fn a_file_that_was_cut_off_is_refused_with_the_place() {
    let good = text(&small());
    for end in 0..good.len() - 1 {
        let message = Plan::read(&good[..end]).unwrap_err().to_string();
        assert!(message.contains("line 1 column"), "{end}: {message}");
        assert!(end != 100 || message == "it is no plan: it is cut off at line 1 column 100", "{message}");
    }
}

/// What stands in a file, what stands there instead, and what is said of it.
const WRONG: &str = r#"
pinbuddy-plan | pinbuddy-trace | its format is "pinbuddy-trace"; expected "pinbuddy-plan"
"version":1 | "version":7 | its version is 7; this pinbuddy reads version 1
"rank":3 | "rank":8 | rank is 8; expected a number below world_size, 8
65536,20480 | 65536,20481 | region 1 is 20481; expected a multiple of 4096 up to 68719476736
65536,20480 | 65536,18446744073709551615 | region 1 is 18446744073709551615; expected a multiple of 4096 up to 68719476736
[4096,0,8192] | [4096,2,8192] | the region of slot 1 is 2; expected below 2, the number of regions
[4096,0,8192] | [4096,0,65536] | the offset of slot 1 is 65536; expected a multiple of 4096 up to 61440, where it ends with its region
[4096,0,8192] | [0,0,8192] | the length of slot 1 is 0; expected a multiple of 4096 up to 65536, its region's length
[0,1,0] | [0,1,3] | entry 2 of lane 0's period is 3; expected below 3, the number of slots
"prologue":[2] | "prologue":[4294967295] | entry 0 of lane 0's prologue is 4294967295; expected below 3, the number of slots
[0,1,0] | [0,1,1] | the file was changed or damaged
"efficiency":0.762 | "efficiency":-0.762 | facts.efficiency is -0.762; expected a number from 0 to 1000000000
"turns":2 | "turns":0 | lane 1's number of turns is 0; expected a number that 2, the length of its period, is a multiple of
"clears":[1] | "clears":[1,2] | a step before which lane 1 empties the cache is 2; expected 1 at most, the steps of its prologue and an iteration
"rank":3 | "rank":3,"rank":3 | duplicate field `rank` at line 1 column
"rank":3 | "rank":3,"more":3 | unknown field `more`
"rank":3 | "rank":3,"\u001b[31m":3 | unknown field `\u{1b}[31m`
"rank":3, |  | missing field `rank` at line 1 column
"rank":3 | "rank":18446744073709551616 | at line 1 column
"#;

#[test]
fn what_is_wrong_is_named() {
    let good = text(&small());
    for line in WRONG.lines().skip(1) {
        let [from, to, message] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        assert!(good.contains(from), "{from}");
        let error = Plan::read(&good.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(message), "{error}; expected {message}");
    }
    // A trace has an object a line; its first one says what it is.
    let trace = "{\"format\":\"pinbuddy-trace\",\"version\":4}\n{\"t\":1}\n";
    let format = "its format is \"pinbuddy-trace\"; expected \"pinbuddy-plan\"";
    for (text, message) in [(trace, format), (&good.repeat(2), "trailing characters")] {
        let error = Plan::read(text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let sum = good.find(",\"checksum\"").unwrap();
    let error = Plan::read(&format!("{}}}", &good[..sum])).unwrap_err();
    assert!(matches!(error, Error::Checksum { expected: None, .. }), "{error}");
    assert!(matches!(Plan::read(&" ".repeat((64 << 20) + 1)), Err(Error::Long(_))));
}

#[test]
fn a_plan_that_cannot_be_read_is_not_written() {
    let mut plan = small();
    plan.slots[0].offset += 16 * GRANULE;
    let error = plan.write(&mut Vec::new()).unwrap_err();
    assert!(error.to_string().starts_with("the offset of slot 0 is"), "{error}");
}

#[test]
fn it_fits_only_the_run_that_it_was_made_for() {
    let plan = small();
    plan.fits(&made_for()).unwrap();
    let other = MadeFor { torch: "2.14.1".to_owned(), rank: 0, ..made_for() };
    assert_eq!(
        plan.fits(&other).unwrap_err().to_string(),
        "it was made for torch 2.15.0, rank 3; this is torch 2.14.1, rank 0"
    );
}

#[test]
fn the_text_is_what_is_documented_and_reads_if_it_was_laid_out_anew() {
    let seed = include_str!("../../../tests/fuzz/corpus/plan/small");
    let plan = Plan::read(seed).unwrap();
    assert_eq!(text(&plan), seed);
    let value: serde_json::Value = serde_json::from_str(seed).unwrap();
    assert_eq!(Plan::read(&serde_json::to_string_pretty(&value).unwrap()).unwrap(), plan);
}
