//! The program, as a user starts it.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use pinbuddy_events::trace::Header;
use pinbuddy_plan::{Block, Plan, check};
use serde_json::Value;
use tempfile::TempDir;

use crate::started;
use started::{Lines, command, file, json, says, told};

/// A workload as a trace of the second of two processes.
fn trace(folder: &TempDir, name: &str, steps: u32) -> String {
    let header = Header { rank: Some(1), world_size: Some(2), ..Header::default() };
    started::trace_of(folder, name, steps, &header)
}

#[test]
fn a_table_is_placed_and_written_with_offsets() {
    let folder = tempfile::tempdir().unwrap();
    let text = "id,lower,upper,size\nfirst,0,3,4\nsecond,1,2,4\nthird,2,5,4\nfourth,3,6,4\n";
    let table = file(&folder, "blocks.csv", text.as_bytes());
    let out = folder.path().join("placed.csv");
    let out = out.to_str().unwrap();
    let said = json(&["plan", "--instance", &table, "--out", out, "--json"]);
    assert!(said["peak"] == 8 && said["lower_bound"] == 8, "{said}");
    assert_eq!(said["gap_percent"], 0.0);
    assert_eq!(said["ended"], "optimal");
    for key in ["efficiency", "seconds", "threads", "by", "blocks"] {
        assert!(!said[key].is_null(), "{key}");
    }
    for other in ["stock", "engine"] {
        for key in ["peak", "gap_percent", "efficiency", "seconds"] {
            assert!(said[other][key].is_number(), "{other}: {key}");
        }
    }
    let placed = fs::read_to_string(out).unwrap();
    let mut lines = placed.lines();
    assert_eq!(lines.next(), Some("id,lower,upper,size,offset"));
    let placed = lines.map(|line| {
        let mut numbers = line.split(',').skip(1).map(|it| it.parse().unwrap());
        let [lower, upper, size, offset] = [(); 4].map(|()| numbers.next().unwrap());
        (Block { lower, upper, size }, offset)
    });
    let (blocks, offsets): (Vec<Block>, Vec<u64>) = placed.unzip();
    assert_eq!(check(&blocks, None, &offsets), Ok(8));
    let said = told(&["plan", "--instance", &table]);
    assert!(said.starts_with("4 blocks in 8 bytes, 0.00 % above the lower bound of 8 bytes\n"));
}

#[test]
fn a_trace_becomes_a_plan_that_its_run_can_use() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(&folder, "tensors-155", 6);
    let out = folder.path().join("run.plan");
    let arguments = format!("plan {trace} --time-limit 5 --torch 2.15.0+cu132 --json --out");
    let mut arguments: Vec<&str> = arguments.split(' ').collect();
    arguments.push(out.to_str().unwrap());
    let said = json(&arguments);
    let plan = Plan::read(&fs::read_to_string(&out).unwrap()).unwrap();
    let mode = fs::metadata(&out).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let it = &plan.made_for;
    // The threshold is as in a run with BUDDY_PLAN.
    let made_for = (it.torch.as_str(), it.rank, it.world_size, it.threshold);
    assert_eq!(made_for, ("2.15.0", 1, 2, 0));
    assert_eq!(said["peak"].as_u64(), Some(plan.reserved()));
    assert!(said["efficiency"].as_f64().unwrap() > 0.9, "{said}");
    let [hits, slots, peak] = ["hits", "slots", "peak"].map(|key| said[key].as_u64());
    assert!(hits > Some(0) && slots > Some(0), "{said}");
    assert!(said["stock"]["peak"].as_u64() >= peak, "{said}");
    let other = format!("plan {trace} --torch 2.14.1 --threshold-mb 1 --time-limit 1");
    let other = told(&other.split(' ').collect::<Vec<_>>());
    says(&other, " of 1.00 MiB or more");
    says(&other, "To use it: --out FILE");
}

#[test]
fn advice_for_people_and_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(&folder, "checkpoint", 25);
    let said = json(&["advise", &trace, "--json", "--time-limit", "1"]);
    let choices = said["choices"].as_array().unwrap().iter();
    let names: Vec<&str> = choices.filter_map(|it| it["name"].as_str()).collect();
    for name in ["stock", "stock, tuned", "#181094", "pinbuddy", "pinbuddy, WARMUP=off GROWTH=exact"] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    let is_planned = names.iter().any(|it| it.starts_with("pinbuddy, a plan"));
    assert!(is_planned, "{names:?}");
    let reason = said["recommendation"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("it pins "), "{reason}");
    let mut findings = said["findings"].as_array().unwrap().iter();
    assert!(findings.any(|it| it["id"] == "clears_inside_iterations"));
    let text = told(&["advise", &trace, "--time-limit", "1"]);
    says(&text, "\nRecommended: ");
    let evidence = "\n   evidence  4 empty_cache calls in 4 of 25 iterations";
    says(&text, evidence);
    // Of a program that marks no iterations nothing is said of them.
    let lines = fs::read_to_string(&trace).unwrap();
    let unmarked: Vec<&str> = lines.lines().filter(|it| !it.contains("\"iter\"")).collect();
    let text = told(&["advise", &file(&folder, "unmarked.jsonl", unmarked.join("\n").as_bytes()), "--time-limit", "1"]);
    let stock = text.lines().find(|it| it.starts_with("  stock ")).unwrap();
    assert!(stock.ends_with(" -") && !text.contains("iteration"), "{text}");
}

#[test]
fn a_plan_is_compared_with_what_its_advice_names() {
    let folder = tempfile::tempdir().unwrap();
    let small = (0..40).map(|id| format!("{{\"t\":{id},\"op\":\"alloc\",\"id\":{id},\"bytes\":1048576}}\n"));
    let small = file(&folder, "small.jsonl", small.collect::<String>().as_bytes());
    for trace in [trace(&folder, "checkpoint", 5), trace(&folder, "variable-lengths", 5), small] {
        let [plan, advice] = ["plan", "advise"].map(|it| json(&[it, &trace, "--json", "--time-limit", "0"]));
        for (one, name) in [("stock", "stock"), ("engine", "pinbuddy")] {
            let mut choices = advice["choices"].as_array().unwrap().iter();
            let choice = choices.find(|it| it["name"] == name).unwrap();
            let pairs = [("peak", "pinned"), ("pins", "pins"), ("waits", "waits")];
            for (in_plan, in_advice) in pairs {
                assert_eq!(plan[one][in_plan], choice[in_advice], "{trace}: {in_plan} of {name}");
            }
        }
    }
}

#[test]
fn what_cannot_be_used_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("none").display().to_string();
    let file = |name: &str, bytes: &[u8]| file(&folder, name, bytes);
    let empty = file("empty", b"");
    let lines = b"{\"t\":1,\"op\":\"iter\"}\n{\"t\":1,\"op\":\"free\",\"id\":4}\n";
    let wrong = file("wrong.jsonl", lines);
    let hostile = file("hostile.pickle", b"\x80\x04cos\nsystem\n.");
    let zip = file("snapshot.pt", b"PK\x03\x04");
    let packed = file("run.jsonl.zst", b"\x28\xb5\x2f\xfd");
    let table = file("blocks.csv", b"id,lower,upper,size\n1,5,5,3\n");
    let request = "{\"t\":1,\"op\":\"alloc\",\"id\":4,\"bytes\":";
    let small = file("small.jsonl", format!("{request}9}}\n").as_bytes());
    let large = file("large.jsonl", format!("{request}99999999}}\n").as_bytes());
    let page = file("page.jsonl", b"<html><body>404</body></html>");
    let semicolons = file("semicolons.csv", b"action;addr;size;stream\n");
    let malloc = file("malloc.csv", b"action,addr,size,stream\noom,0,0,0\nmalloc,5,9,0\n");
    let long = file("long.csv", b"action,addr,size,stream\nalloc,1,2199023255552,0\n");
    let commands: [&[&str]; 19] = [
        &["plan", &page],
        &["plan", &semicolons],
        &["plan", &malloc],
        &["plan", &long],
        &["plan", &none],
        &["plan", &empty],
        &["advise", &empty],
        &["advise", &wrong],
        &["report", &packed],
        &["advise", &hostile],
        &["plan", &zip],
        &["advise", &zip],
        &["plan", &small, "--threshold-mb", "4"],
        &["plan", "--instance", &table],
        &["plan", &large, "--out", "x"],
        &["report", &empty],
        &["report", &small, "--plan", &small],
        &["report", &small, "--compare", "/nowhere"],
        &["report", &small, "-o", "/nowhere/x.html"],
    ];
    let said = commands.map(started::refused).join("\n");
    insta::assert_snapshot!(said.replace(&folder.path().display().to_string(), "FOLDER"));
    assert!(!folder.path().join("small.report.html").exists());
}

#[test]
fn absurd_sizes_take_no_memory_in_proportion() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = Lines::default();
    (0..100).for_each(|id| lines.alloc(1, id, 1 << 40));
    let trace = file(&folder, "huge.jsonl", lines.0);
    let table = format!("id,lower,upper,size\n1,0,5,{}\n", 1_u64 << 59);
    let table = file(&folder, "huge.csv", table);
    // The most memory that it had, and what it said.
    let watched = |arguments: &[&str]| {
        let mut command = command();
        // A file, since nobody reads a pipe before the end.
        let said = folder.path().join("said.json");
        command.args(arguments).stdout(File::create(&said).unwrap());
        let mut child = command.spawn().unwrap();
        let status = format!("/proc/{}/status", child.id());
        let mut most = 0;
        while child.try_wait().unwrap().is_none() {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|it| it.strip_prefix("VmHWM:"));
            let kibibytes = line.and_then(|it| it.trim().strip_suffix(" kB")?.parse().ok());
            most = most.max(kibibytes.unwrap_or(0_u64));
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(most < 1 << 20, "{most} KiB");
        assert!(child.wait().unwrap().success());
        serde_json::from_slice::<Value>(&fs::read(&said).unwrap()).unwrap()
    };
    let said = watched(&["plan", &trace, "--time-limit", "1", "--json"]);
    assert_eq!(said["stock"]["stopped"], true);
    assert_eq!(said["requests"], 100);
    let said = watched(&["advise", &trace, "--time-limit", "1", "--json"]);
    let why = &said["recommendation"]["reason"];
    assert_eq!(why, "every choice would pin more than 2 TiB");
    let said = watched(&["plan", "--instance", &table, "--json"]);
    assert_eq!(said["stock"], Value::Null);
    assert_eq!(said["peak"], 1_u64 << 59);
}

/// Three requests of each iteration repeat; three longer ones have any size.
#[test]
fn a_plan_is_measured_by_what_lives_at_once_also_where_sizes_vary() {
    let folder = tempfile::tempdir().unwrap();
    let (mut lines, mut id) = (Lines::default(), 0_u64);
    for step in 0..12_u64 {
        let first = id;
        for request in 0..6 {
            let mib = if request < 3 { 1 } else { 20 + step * 7919 * request % 181 };
            lines.alloc(id, id, mib << 20);
            id += 1;
        }
        (first..id).for_each(|one| lines.free(id, one));
        lines.iter(id);
    }
    let trace = file(&folder, "varied.jsonl", lines.0);
    let said = json(&["plan", &trace, "--json"]);
    let number = |key: &str| said[key].as_f64().unwrap();
    let efficiency = number("peak_requested") / number("peak");
    assert_eq!(number("efficiency"), efficiency);
    assert!(efficiency > 0.95, "{said}");
    assert_eq!((number("slots"), number("hits")), (72.0, 72.0));
    assert_eq!(said["best"], "plan");
    assert_eq!(said["made_of"], "a place for each request");
    let text = told(&["plan", &trace]);
    assert!(!text.contains('%'), "{text}");
    let efficiency = format!("efficiency {:.3}, in 1 region\n", number("efficiency"));
    says(&text, "\n  plan  ");
    says(&text, &efficiency);
    says(&text, said["why"].as_str().unwrap());
}

/// Generated programs gather no lists, and keep what they pin for a while.
#[test]
fn what_no_program_does_is_not_found_in_it() {
    let folder = tempfile::tempdir().unwrap();
    for (name, steps) in [
        ("training-1f1b", 3),
        ("training-interleaved", 3),
        ("zero-offload", 3),
        ("data-loader", 100),
        ("kv-cache", 100),
        ("tensors-155", 4),
        ("variable-lengths", 10),
    ] {
        let trace = trace(&folder, name, steps);
        let said = json(&["advise", &trace, "--json", "--time-limit", "0"]);
        let found = said["findings"].as_array().unwrap();
        let wrong = ["gathered_into_a_list", "pinned_and_freed_at_once", "waits_long_for_a_stream"];
        let is_wrong = |it: &&Value| wrong.contains(&it["id"].as_str().unwrap());
        assert_eq!(found.iter().find(is_wrong), None, "{name}");
    }
}

/// Requests of private pools, as those of a graph's capture: no plan serves them, so each comparison has them on both sides or on none.
/// Here: twenty steps of a block of 10 MiB, and of one of 100 MiB of a private pool.
#[test]
fn private_memory_counts_for_a_plan_as_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = Lines::with_head(r#""version":4,"torch":"2.15.0+cu132""#);
    for step in 0..20_u64 {
        let (t, own, private) = (step * 100, 2 * step, 2 * step + 1);
        lines.alloc(t, own, 10 << 20);
        let fields = [("id", private), ("bytes", 100 << 20), ("private", 1)];
        lines.put(t, "alloc", &fields);
        lines.free(t + 50, own);
        lines.free(t + 50, private);
        lines.iter(t + 60);
    }
    let file = &file(&folder, "run.jsonl", lines.0);
    let advice = json(&["advise", file, "--json"]);
    let choices = advice["choices"].as_array().unwrap();
    let is_plan = |it: &&Value| it["name"].as_str().unwrap().contains("a plan of");
    let plan = choices.iter().find(is_plan);
    let pinned = plan.unwrap()["pinned"].as_u64().unwrap();
    assert!(pinned >= 110 << 20, "{pinned}");
    let planned = json(&["plan", file, "--json"]);
    assert_eq!(planned["requests"], 20);
    assert_eq!(planned["stock"]["peak"], 16 << 20);
}
