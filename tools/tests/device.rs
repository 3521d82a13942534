//! Traces of device memory, and the plans made of them.

use std::fs;
use std::io::Write as _;

use pinbuddy_plan::device::THRESHOLDS;
use pinbuddy_plan::file::device::DevicePlan;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::started;
use started::{Lines, data, file, json, refused, says, told};

const HEAD: &str = r#""version":4,"memory":"device","torch":"2.15.0+cu132""#;

fn alloc(lines: &mut Lines, (t, id): (u64, u64), bytes: u64, (device, stream): (u64, u64)) {
    lines.put(t, "alloc", &[("id", id), ("bytes", bytes), ("device", device), ("stream", stream)]);
}

/// Two streams of a device that ask for the same in each of ten steps, and one request for another device's.
fn trace() -> (TempDir, String) {
    let mut lines = Lines::with_head(HEAD);
    alloc(&mut lines, (1, 1), 9 << 20, (1, 0));
    lines.put(1, "segment_alloc", &[("device", 0), ("bytes", 20 << 20)]);
    // Below the threshold: not the stream that a run counts first.
    alloc(&mut lines, (1, 2), 255 << 10, (0, 5));
    for step in 1..=10 {
        for (id, (mib, stream)) in (10 * step..).zip([(3, 4), (7, 4), (5, 2)]) {
            alloc(&mut lines, (1, id), mib << 20, (0, stream));
        }
        (10 * step..10 * step + 3).for_each(|id| lines.free(1, id));
        lines.iter(1);
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = file(&folder, "device.jsonl", lines.0);
    (folder, trace)
}

#[test]
fn a_device_plan_has_a_region_for_each_stream_that_reserves_less_with_one() {
    let (folder, trace) = trace();
    let out = folder.path().join("device.plan");
    let said = json(&["plan", &trace, "--json", "--out", out.to_str().unwrap()]);
    let plans = DevicePlan::read(&fs::read_to_string(&out).unwrap()).unwrap();
    let found: Vec<((u32, u32), u64)> =
        plans.plans.iter().map(|(stream, plan)| ((*stream).into(), plan.reserved() >> 20)).collect();
    // One of 5 MiB would have a segment of 20 MiB, as the requests of the second stream have.
    assert_eq!(found, [((0, 0), 10)]);
    for (_, plan) in &plans.plans {
        let made_for = (plan.made_for.torch.as_str(), plan.made_for.threshold);
        assert_eq!(made_for, ("2.15.0", THRESHOLDS[0]));
    }
    let numbers = ["requests", "hits", "peak", "peak_requested", "run_peak", "requests_below_threshold"];
    let numbers = numbers.map(|it| said[it].as_u64().unwrap());
    let peak = (15 << 20) + (255 << 10);
    assert_eq!(numbers, [30, 20, 10 << 20, peak, 20 << 20, 1]);
    // The small request has 2 MiB, and each stream 20 MiB, since its requests are below 10 MiB; a region of 10 MiB has a segment
    // of its own, but for expandable segments, which have pages of 20 MiB.
    assert_eq!(reserved(&said), [42, 42, 32, 42]);
    assert!(said["best"] == "plan" && said["device"] == 0);
    assert_eq!(said["setting"], "PYTORCH_ALLOC_CONF=expandable_segments:False");
    let page = data(&trace, &[]);
    shows_what_plan_says(&page, &said);
    assert!(page["run_peak"] == said["run_peak"] && page["run_peak"] == 20 << 20);
    let text = told(&["plan", &trace]);
    for part in [
        "stock                                reserved  42.00 MiB, efficiency 0.363\n",
        "plan, stock behind it                reserved  32.00 MiB, efficiency 0.477\n",
        "plan of stream 0: made of 10 iterations; ",
        "expandable_segments:False BUDDY_DEVICE_PLAN=FILE in the run",
        "31 requests, of which plans have places for 20; ",
    ] {
        says(&text, part);
    }
}

/// In MiB: stock, expandable segments, and the plan in front of each.
fn reserved(said: &Value) -> [u64; 4] {
    let names = ["stock", "expandable", "plan_before_stock", "plan_before_expandable"];
    names.map(|it| said[it]["peak"].as_u64().unwrap() >> 20)
}

/// The rows of a report's page are those of `plan`, and curves go as high.
fn shows_what_plan_says(page: &Value, said: &Value) {
    let names = [
        ("stock", "stock"),
        ("expandable segments", "expandable"),
        ("plan, stock behind it", "plan_before_stock"),
        ("plan, expandable segments behind it", "plan_before_expandable"),
    ];
    let is_made = |it: &&(&str, &str)| !said[it.1].is_null();
    let peaks = names.iter().filter(is_made);
    let peaks: Vec<Value> = peaks.map(|it| json!([it.0, said[it.1]["peak"]])).collect();
    let rows = page["allocators"].as_array().unwrap().iter();
    let rows: Vec<Value> = rows.map(|it| json!([it["name"], it["peak"]])).collect();
    assert_eq!(rows, peaks);
    for it in page["allocators"].as_array().unwrap() {
        let steps = it["pinned"]["high"].as_array().unwrap().iter();
        let (mut at, mut highest) = (0, 0);
        for step in steps {
            at += step.as_i64().unwrap();
            highest = highest.max(at);
        }
        assert_eq!(Some(highest), it["peak"].as_i64());
    }
}

#[test]
fn a_plan_says_in_front_of_which_allocator_it_is_worse_than_none() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = Lines::with_head(HEAD);
    for _ in 0..10 {
        // One page of 20 MiB holds what is long, as long as what is short, in segments of 2 MiB, is not beside it.
        for sizes in [&[21 << 9][..], &[&[13 << 10][..], &[1 << 10; 8]].concat()] {
            for (id, kib) in (1..).zip(sizes) {
                alloc(&mut lines, (1, id), kib << 10, (0, 0));
            }
            (1..=sizes.len() as u64).for_each(|id| lines.free(1, id));
        }
        lines.iter(1);
    }
    let trace = file(&folder, "short.jsonl", lines.0);
    let said = json(&["plan", &trace, "--json"]);
    assert_eq!(reserved(&said), [34, 28, 22, 40]);
    assert_eq!(said["worse_before"], json!(["expandable segments"]));
    let text = told(&["plan", &trace]);
    says(&text, " 40.00 MiB, efficiency 0.525, more than without a plan\n");
    says(&text, " 22.00 MiB, efficiency 0.955\n");
    says(&text, "and PYTORCH_ALLOC_CONF=expandable_segments:False BUDDY");
}

#[test]
fn what_private_pools_have_is_said_beside_what_the_run_reserved() {
    let (folder, trace) = trace();
    let mut lines = Lines(fs::read_to_string(trace).unwrap());
    let pool = |lines: &mut Lines, id| {
        let of = [("bytes", 64 << 20), ("private", 1), ("device", 0), ("stream", 4)];
        lines.put(1, "alloc", &[&[("id", id)], &of[..]].concat());
    };
    pool(&mut lines, 1000);
    pool(&mut lines, 1001);
    lines.free(1, 1000);
    pool(&mut lines, 1000);
    let trace = file(&folder, "pool.jsonl", lines.0);
    let said = json(&["plan", &trace, "--json"]);
    assert_eq!(said["peak_private"], 128 << 20);
    assert_eq!(said["requests"], 30);
    says(&told(&["plan", &trace]), "128.00 MiB were requested of private pools");
}

#[test]
fn where_no_stream_has_a_plan_none_is_offered() {
    let (_folder, trace) = trace();
    let [page, said] = [data(&trace, &["--device", "1"]), json(&["plan", &trace, "--device", "1", "--json"])];
    shows_what_plan_says(&page, &said);
    let said = told(&["plan", &trace, "--device", "1"]);
    let begins = "1 request, of which plans have places for 0; peak 9.00 MiB; ";
    let ends = "No plan is made. To do: nothing: PyTorch's allocator as it comes has an efficiency of 0.450, and no plan is better\n";
    assert!(said.starts_with(begins) && said.ends_with(ends) && !said.contains("To use it"), "{said}");
}

#[test]
fn of_device_memory_what_cannot_be_planned_is_refused() {
    let (folder, trace) = trace();
    let table = |name, rows: &str| file(&folder, name, format!("action,addr,size,stream\n{rows}"));
    // The second is of a history of the state alone.
    let (none, state) = (table("none.csv", ""), table("state.csv", "snapshot,0,0,0\n"));
    let commands: [&[&str]; 6] = [
        &[&trace, "--device", "7"],
        &[&trace, "--device", "1", "--out", "x"],
        &[&trace, "--threshold-mb", "4"],
        &["tests/old/snapshot.pickle", "--device", "5"],
        &[&none],
        &[&state],
    ];
    let said = commands.map(|it| refused(&[&["plan"], it].concat()));
    let said = said.join("\n");
    insta::assert_snapshot!(said.replace(&folder.path().display().to_string(), "FOLDER"));
}

#[test]
fn advice_on_device_memory_is_about_pieces_and_a_plan() {
    let (folder, trace) = trace();
    let said = told(&["advise", &trace]);
    says(&said, "export BUDDY_DEVICE_PLAN=device.plan");
    assert!(!said.contains("--torch"), "{said}");
    let table = file(&folder, "step.csv", format!("\u{feff}{}", table()));
    let command = "step.csv --torch \"$(python -c 'import torch; print(torch.__version__)')\" --out device.plan";
    says(&told(&["advise", &table]), command);
    assert!(said.ends_with("Nothing wrong was found in the program.\n"), "{said}");
    // Each step asks for another size, which no segment of the steps before fits.
    let mut lines = Lines::with_head(HEAD);
    for id in 1..=40 {
        let bytes = (20 + id) << 20;
        lines.put(id, "segment_alloc", &[("device", 0), ("bytes", bytes)]);
        alloc(&mut lines, (id, id), bytes, (0, 1));
        lines.free(id, id);
    }
    let said = json(&["advise", &file(&folder, "pieces.jsonl", lines.0), "--json"]);
    let found = &said["findings"][0];
    assert_eq!(found["id"], "reserved_far_above_requested");
    assert_eq!(found["bytes"], (20 * 40 + 20 * 41 - 60_u64) << 20);
    assert_eq!(said["choices"], json!([]));
    let to_do = found["to_do"].as_str().unwrap();
    says(to_do, "expandable_segments:True");
}

/// One step of a network, as a history begun in the middle of a program has it: without times, with the end of a block that
/// was there before, and with an action that asks for nothing.
fn table() -> String {
    let mut text = String::from("action,addr,size,stream\nfree_completed,77,4096,0\noom,0,0,0\n");
    let mut say = |action: &str, at: u64, mib: u64| {
        text.push_str(&format!("{action},{at},{},0\n", mib << 20));
    };
    for layer in 0..8 {
        say("alloc", 1000 + layer, 70);
        say("alloc", layer, 22);
        say("free_requested", 1000 + layer, 70);
        say("free_completed", 1000 + layer, 70);
        say("alloc", 100 + layer, 15);
    }
    for layer in (0..8).rev() {
        say("alloc", 2000, 33);
        say("free_completed", layer, 22);
        say("free_completed", 100 + layer, 15);
        say("free_completed", 2000, 33);
    }
    text
}

#[test]
fn a_table_of_events_is_planned_compressed_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let [plain, packed] = ["step.csv", "step.csv.gz"].map(|it| folder.path().join(it));
    fs::write(&plain, table()).unwrap();
    let to = fs::File::create(&packed).unwrap();
    let mut to = flate2::write::GzEncoder::new(to, flate2::Compression::fast());
    to.write_all(table().as_bytes()).unwrap();
    to.finish().unwrap();
    let out = folder.path().join("step.plan");
    for file in [plain, packed] {
        let [file, out] = [&file, &out].map(|it| it.to_str().unwrap());
        let said = json(&["plan", file, "--torch", "2.15.0", "--out", out, "--json"]);
        // At the last layer's buffer; the plan has segments of whole 2 MiB.
        let peak: u64 = (7 * (22 + 15) + 70 + 22) << 20;
        assert_eq!(said["peak_requested"], peak);
        assert_eq!(said["live_before"], 4096);
        let planned = said["plan_before_stock"]["peak"].as_u64().unwrap();
        assert!((peak..=peak + (2 << 20)).contains(&planned), "{said}");
        assert!(said["best"] == "plan" && said["iterations"] == 0, "{said}");
        let stock = ["stock", "expandable"].map(|it| said[it]["peak"].as_u64().unwrap());
        assert!(stock.iter().all(|it| *it > planned), "{said}");
        let plans = DevicePlan::read(&fs::read_to_string(out).unwrap()).unwrap();
        assert!(plans.reserved() <= planned);
    }
}
