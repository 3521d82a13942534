//! The program as a run starts it.

use std::process::Command;

use serde_json::Value;

#[test]
fn without_a_driver_or_a_gpu_there_is_no_answer() {
    for question in ["pace", "stalls", "unpinning"] {
        let output = Command::new(env!("CARGO_BIN_EXE_pinbuddy-gpu-questions"))
            .args([question, "5"])
            // A GPU of this machine is none of this test's.
            .env("CUDA_VISIBLE_DEVICES", "")
            .output()
            .unwrap();
        assert!(output.status.success(), "{question}");
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        assert_eq!(lines.len(), 2, "{question}: {lines:?}");
        assert_eq!(lines[1]["answer"], "cannot be asked here");
        let why = lines[1]["why"].as_str().unwrap();
        assert!(why.contains("libcuda") || why.starts_with("cuInit returned 100"), "{why}");
    }
}
