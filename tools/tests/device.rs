//! Traces of device memory, and the plans made of them.

use std::fs;

use pinbuddy_plan::device::THRESHOLD;
use pinbuddy_plan::file::device::DevicePlan;
use serde_json::Value;
use tempfile::TempDir;

mod started;
use started::{refused, told};

/// Two streams of a device that ask for the same in each of ten steps, and one request for another device's.
fn trace(folder: &TempDir) -> String {
    let mut lines = String::from(
        "{\"format\":\"pinbuddy-trace\",\"version\":4,\"memory\":\"device\",\"torch\":\"2.15.0+cu132\"}\n",
    );
    let mut add = |line: String| lines.push_str(&(line + "\n"));
    let alloc = |id: u64, kib: u64, device: u32, stream: u32| {
        let bytes = kib << 10;
        format!(
            "{{\"t\":1,\"op\":\"alloc\",\"id\":{id},\"bytes\":{bytes},\"device\":{device},\"stream\":{stream}}}"
        )
    };
    add(alloc(1, 9 << 10, 1, 0));
    add("{\"t\":1,\"op\":\"segment_alloc\",\"device\":0,\"bytes\":20971520}".to_owned());
    // Below the threshold: not the stream that a run counts first.
    add(alloc(2, 255, 0, 5));
    for step in 1..=10 {
        let ids = [10 * step, 10 * step + 1, 10 * step + 2];
        for (id, (mib, stream)) in ids.into_iter().zip([(3, 4), (7, 4), (5, 2)]) {
            add(alloc(id, mib << 10, 0, stream));
        }
        for id in ids {
            add(format!("{{\"t\":1,\"op\":\"free\",\"id\":{id}}}"));
        }
        add("{\"t\":1,\"op\":\"iter\"}".to_owned());
    }
    let path = folder.path().join("device.jsonl");
    fs::write(&path, lines).unwrap();
    path.display().to_string()
}

#[test]
fn a_device_plan_has_a_region_for_each_stream() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(&folder);
    let out = folder.path().join("device.plan");
    let said = told(&["plan", &trace, "--json", "--out", out.to_str().unwrap()]);
    let said: Value = serde_json::from_str(&said).unwrap();
    let plans = DevicePlan::read(&fs::read_to_string(&out).unwrap()).unwrap();
    let found: Vec<((u32, u32), u64)> = plans
        .plans
        .iter()
        .map(|(stream, plan)| ((*stream).into(), plan.reserved() >> 20))
        .collect();
    assert_eq!(found, [((0, 0), 10), ((0, 1), 5)]);
    for (_, plan) in &plans.plans {
        assert_eq!(
            (plan.made_for.torch.as_str(), plan.made_for.threshold),
            ("2.15.0", THRESHOLD)
        );
    }
    let numbers = [
        "requests",
        "hits",
        "peak",
        "peak_requested",
        "run_peak",
        "requests_below_threshold",
    ];
    let numbers = numbers.map(|it| said[it].as_u64().unwrap());
    assert_eq!(numbers, [30, 30, 15 << 20, 15 << 20, 20 << 20, 1]);
    let reserved = [
        "stock",
        "expandable",
        "plan_before_stock",
        "plan_before_expandable",
    ];
    let reserved = reserved.map(|it| said[it]["peak"].as_u64().unwrap() >> 20);
    // The small request has 2 MiB, and each stream 20 MiB, since its requests are below 10 MiB; a region of 10 MiB has a segment
    // of its own, but for expandable segments, which have pages of 20 MiB.
    assert_eq!(reserved, [42, 42, 32, 42]);
    assert!(said["engine"].is_null() && said["device"] == 0);
    let text = told(&["plan", &trace]);
    assert!(
        text.contains("reserves 15.00 MiB")
            && text.contains("stock: 42.00 MiB reserved, of which 36.3 % were in use at most")
            && text.contains("BUDDY_DEVICE_PLAN=FILE"),
        "{text}"
    );
}

#[test]
fn where_no_stream_has_a_plan_none_is_offered() {
    let folder = tempfile::tempdir().unwrap();
    let said = told(&["plan", &trace(&folder), "--device", "1"]);
    assert!(
        said.starts_with(
            "1 request of 256.00 KiB or more, at most 9.00 MiB at once; no stream's come again: no plan\n"
        ),
        "{said}"
    );
    assert!(
        said.ends_with(
            "To have a plan: record more steps, or end each with pinbuddy.iteration()\n"
        ),
        "{said}"
    );
    assert!(
        !said.contains("the plan reserves") && !said.contains("To use it"),
        "{said}"
    );
}

#[test]
fn of_device_memory_what_cannot_be_planned_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(&folder);
    for (arguments, said) in [
        (
            &["--device", "7"][..],
            "has no memory of device 7; it has that of: 0, 1",
        ),
        (
            &["--device", "1", "--out", "x"],
            "has no stream whose requests from 256 KiB on come again",
        ),
        (&["--threshold-mb", "4"], "leave out --threshold-mb"),
    ] {
        let found = refused(&[&["plan", &trace], arguments].concat());
        assert!(found.contains(said), "{found}");
    }
}

#[test]
fn advice_on_device_memory_is_about_pieces_and_a_plan() {
    let folder = tempfile::tempdir().unwrap();
    let said = told(&["advise", &trace(&folder)]);
    assert!(
        said.contains("export BUDDY_DEVICE_PLAN=device.plan"),
        "{said}"
    );
    assert!(
        said.ends_with("Nothing wrong was found in the program.\n"),
        "{said}"
    );
    // Each step asks for another size, which no segment of the steps before fits.
    let mut lines = String::from(
        "{\"format\":\"pinbuddy-trace\",\"version\":4,\"memory\":\"device\",\"torch\":\"2.15.0+cu132\"}\n",
    );
    for id in 1..=40 {
        let bytes = (20 + id) << 20;
        lines +=
            &format!("{{\"t\":{id},\"op\":\"segment_alloc\",\"device\":0,\"bytes\":{bytes}}}\n");
        lines += &format!(
            "{{\"t\":{id},\"op\":\"alloc\",\"id\":{id},\"bytes\":{bytes},\"device\":0,\"stream\":1}}\n"
        );
        lines += &format!("{{\"t\":{id},\"op\":\"free\",\"id\":{id}}}\n");
    }
    let path = folder.path().join("pieces.jsonl");
    fs::write(&path, lines).unwrap();
    let said = told(&["advise", path.to_str().unwrap(), "--json"]);
    let said: Value = serde_json::from_str(&said).unwrap();
    let found = &said["findings"][0];
    assert_eq!(found["id"], "reserved_far_above_requested");
    assert_eq!(
        (&found["bytes"], &said["choices"]),
        (
            &((20 * 40 + 20 * 41 - 60_u64) << 20).into(),
            &Value::Array(vec![])
        )
    );
    let to_do = found["to_do"].as_str().unwrap();
    assert!(to_do.contains("expandable_segments:True"), "{to_do}");
}
