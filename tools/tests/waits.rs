//! Where the run itself waited for the driver, as a user is told: for traces that say it and older ones. `old_files` has it as other programs get it.

use serde_json::Value;
use tempfile::TempDir;

use crate::started;
use started::{Lines, data, says, told};

/// A run whose first request waited 4 ms before anything else happened, and which waited again in its second iteration.
const WAITED: &str = r#"{"t":5000000,"op":"alloc","id":1,"bytes":8388608,"thread":2}
{"t":5000000,"op":"wait","id":1,"took":4000000,"thread":2}
{"t":6000000,"op":"iter"}
{"t":7000000,"op":"alloc","id":2,"bytes":1048576,"thread":0}
{"t":9000000,"op":"alloc","id":3,"bytes":2097152,"thread":0}
{"t":9000000,"op":"wait","id":3,"took":1500000,"thread":0}
{"t":9000000,"op":"free","id":1,"thread":0}
{"t":9500000,"op":"clear"}
{"t":9900000,"op":"wait","took":300000,"thread":1}
"#;

/// The run's trace, as of this version.
fn waited(folder: &TempDir, name: &str, version: u64, events: &str) -> String {
    let fields = format!(r#""version":{version},"unit":"ns","torch":"2.15.0""#);
    started::file(folder, name, Lines::with_head(&fields).0 + events)
}

#[test]
fn where_the_run_waited_for_the_driver_is_told() {
    let folder = TempDir::new().unwrap();
    let file = waited(&folder, "waited.jsonl", 5, WAITED);
    let said = told(&["report", &file, "--format", "json", "--time-limit", "0"]);
    let sum = "the run itself waited 3 times for the driver, 5.80 ms in all";
    assert!(said.trim_end().ends_with(sum), "{said}");
    let advice = told(&["advise", &file]);
    says(&advice, "The run itself waited 3 times for the driver, 5.80 ms in all.");

    let data = data(&file, &["--time-limit", "0"]);
    // Begins from that of the first wait on, each as the difference to the one before.
    insta::assert_snapshot!(
        data["waits"],
        @r#"{"bytes":[8388608,2097152,0],"count":3,"from":[0,6500,2100],"later":{"count":2,"total":1800},"thread":[2,0,1],"took":[4000,1500,300],"total":5800}"#
    );
    let stock = &data["allocators"][0];
    let others = [&data["end"], &data["iterations"][0], &stock["name"], &stock["waited"]];
    assert_eq!(serde_json::json!(others), serde_json::json!([8900, 5000, "stock", 3]));
}

#[test]
fn a_trace_without_waits_says_whether_it_would_have_them() {
    let folder = TempDir::new().unwrap();
    let without: Vec<&str> = WAITED.lines().filter(|it| !it.contains("wait")).collect();
    let without = without.join("\n") + "\n";
    for (version, expected) in [(5, serde_json::json!({"count": 0, "total": 0})), (4, Value::Null)] {
        let file = waited(&folder, "without.jsonl", version, &without);
        let data = data(&file, &["--time-limit", "0", "--compare", &file]);
        assert_eq!(data["waits"]["count"], expected["count"]);
        assert_eq!(data["compare"]["waits"], expected);
        let said = told(&["report", &file, "--format", "csv"]);
        assert_eq!(said.contains("never waited for the driver"), version == 5);
    }
}
