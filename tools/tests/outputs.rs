//! Where commands write, and what they read that is no file: devices, pipes, links, standard input and output.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use pinbuddy_events::trace::Header;
use tempfile::TempDir;

use crate::started;
use started::{command, fed, file, says, told, tools};

/// A folder with a trace in it and a table of blocks.
fn inputs() -> (TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let header = Header { torch: Some("2.15.0".to_owned()), ..Header::default() };
    let trace = started::trace_of(&folder, "tensors-155", 2, &header);
    let table = file(&folder, "blocks.csv", "id,lower,upper,size\nfirst,0,3,4\nsecond,1,2,4\n");
    (folder, trace, table)
}

/// Each command that has an output, for this file, without the output's name.
fn with_outputs<'a>(trace: &'a str, table: &'a str) -> [Vec<&'a str>; 4] {
    [
        vec!["report", trace, "--time-limit", "0", "--out"],
        vec!["report", trace, "--format", "csv", "-o"],
        vec!["plan", trace, "--time-limit", "0", "--out"],
        vec!["plan", "--instance", table, "--time-limit", "0", "--out"],
    ]
}

/// Starts a command with its standard output on `stdout`.
fn onto(arguments: &[&str], stdout: impl Into<Stdio>) -> Output {
    let mut started = command();
    let child = started.args(arguments).stdout(stdout).stderr(Stdio::piped());
    child.spawn().unwrap().wait_with_output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn pipes_and_devices_are_written_into_and_stay_what_they_are() {
    let (folder, trace, table) = inputs();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let name = pipe.to_str().unwrap();
    for arguments in with_outputs(&trace, &table) {
        let from = pipe.clone();
        let reader = std::thread::spawn(move || fs::read(from).unwrap());
        told(&[&arguments[..], &[name]].concat());
        assert!(!reader.join().unwrap().is_empty(), "{arguments:?}");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        told(&[&arguments[..], &["/dev/null"]].concat());
        let null = fs::metadata("/dev/null").unwrap();
        assert!(null.file_type().is_char_device());
    }
}

#[test]
fn standard_output_gets_the_file_alone_by_each_of_its_names() {
    let (folder, trace, table) = inputs();
    for arguments in with_outputs(&trace, &table) {
        let wanted = folder.path().join("wanted");
        told(&[&arguments[..], &[wanted.to_str().unwrap()]].concat());
        let begins = fs::read(&wanted).unwrap()[..8].to_vec();
        for name in ["-", "/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"] {
            let whole = [&arguments[..], &[name]].concat();
            // A pipe, and a file with something in it already.
            let output = tools(&whole);
            assert!(output.stdout.starts_with(&begins), "{whole:?}");
            assert!(!output.stderr.is_empty(), "{whole:?}");
            let log = folder.path().join("log");
            fs::write(&log, "before\n").unwrap();
            let append = OpenOptions::new().append(true).open(&log).unwrap();
            assert!(onto(&whole, append).status.success());
            let logged = fs::read(&log).unwrap();
            let expected = [b"before\n", &begins[..]].concat();
            assert!(logged.starts_with(&expected), "{whole:?}");
        }
        // A log that a shell has open for standard error keeps what it has, and what comes behind the output.
        let log = file(&folder, "log", "before\n");
        let open = OpenOptions::new().append(true).open(&log).unwrap();
        assert!(command().args(arguments).arg("/dev/fd/2").stderr(open).output().unwrap().status.success());
        let written = fs::read(&log).unwrap();
        assert!(written.starts_with(b"before\n") && written.len() > b"before\n".len());
    }
    assert!(fs::symlink_metadata("/dev/stdout").unwrap().is_symlink());
}

#[test]
fn an_input_is_never_the_output() {
    let (folder, trace, table) = inputs();
    let (trace, table) = (&*trace, &*table);
    let [link, hard] = ["link", "hard"].map(|it| folder.path().join(it));
    for (input, arguments) in [trace, trace, trace, table].into_iter().zip(with_outputs(trace, table)) {
        let _ = [&link, &hard].map(fs::remove_file);
        symlink(input, &link).unwrap();
        fs::hard_link(input, &hard).unwrap();
        let before = fs::read(input).unwrap();
        for name in [Path::new(input), &link, &hard] {
            let said = started::refused(&[&arguments[..], &[name.to_str().unwrap()]].concat());
            says(&said, "is also an input");
            assert_eq!(fs::read(input).unwrap(), before);
        }
    }
    for other in ["--compare", "--plan"] {
        let said = started::refused(&["report", trace, other, table, "-o", table]);
        says(&said, "is also an input");
    }
}

/// Commands that print something, with the trace for those that need it.
fn printing(trace: &str) -> [Vec<&str>; 11] {
    [
        vec!["plan", trace, "--time-limit", "0"],
        vec!["plan", trace, "--time-limit", "0", "--json"],
        vec!["advise", trace, "--time-limit", "0"],
        vec!["advise", trace, "--time-limit", "0", "--json"],
        vec!["report", trace, "--time-limit", "0"],
        vec!["report", trace, "--format", "csv", "-o", "-"],
        vec!["explain", "own", "allocator", "serves"],
        vec!["completions", "bash"],
        vec!["top", "--once", "1"],
        vec!["--help"],
        vec!["plan", "--help"],
    ]
}

#[test]
fn a_full_disk_is_an_error_in_one_line_and_a_reader_that_leaves_early_is_none() {
    let (_folder, trace, _) = inputs();
    for arguments in printing(&trace) {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = onto(&arguments, full);
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        says(&said, "No space left on device");
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
        let lines = said.lines().filter(|it| !it.starts_with("  see  "));
        assert_eq!(lines.count(), 1, "{arguments:?}: {said}");

        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let [usual, early] = [tools(&arguments), onto(&arguments, writer)];
        assert_eq!(early.status.code(), usual.status.code(), "{arguments:?}");
        assert_eq!(errors(&early).len(), errors(&usual).len(), "{arguments:?}");
    }
    let said = started::refused(&["report", &trace, "-o", "/dev/full"]);
    says(&said, "error: /dev/full cannot be written: No space left");
}

/// What a command says of standard input, which is `stdin`.
fn of(arguments: &[&str], stdin: impl Into<Stdio>) -> String {
    let output = fed(arguments, stdin);
    let said = errors(&output);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// A pipe that has what is in a file.
fn piped(file: &str) -> Stdio {
    let child = Command::new("cat").arg(file).stdout(Stdio::piped()).spawn();
    child.unwrap().stdout.take().unwrap().into()
}

#[test]
fn standard_input_is_read_from_pipes_and_files_by_each_of_its_names() {
    let (folder, trace, table) = inputs();
    let csv = told(&["report", &trace, "--format", "csv", "-o", "-"]);
    for name in ["-", "/dev/stdin"] {
        // Without a name, what comes from a pipe goes into one.
        let report = ["report", name, "--format", "csv"];
        assert_eq!(of(&report, piped(&trace)), csv);
        assert_eq!(of(&report, File::open(&trace).unwrap()), csv);
        let plan = ["plan", name, "--time-limit", "0"];
        assert!(of(&plan, piped(&trace)).contains(" requests"));
        assert!(of(&["advise", name, "--time-limit", "0"], piped(&trace)).contains("Recommended"));
        let placed = of(&["plan", "--instance", name], piped(&table));
        assert!(placed.starts_with("2 blocks in 8 bytes"), "{placed}");
    }
    let left = fs::read_dir(folder.path()).unwrap();
    let mut left: Vec<_> = left.map(|it| it.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["blocks.csv", "tensors-155.jsonl"]);
}

/// Some devices never end, and what can be read once is copied.
#[test]
fn a_device_is_no_input() {
    for program in ["report", "advise", "plan"] {
        for (name, stdin) in [("/dev/zero", "/dev/null"), ("-", "/dev/zero")] {
            let done = command().args([program, name]).stdin(File::open(stdin).unwrap()).output().unwrap();
            let said = errors(&done);
            assert!(!done.status.success() && said.contains("expected a file or a pipe, found a device"), "{said}");
        }
    }
}

#[test]
fn what_is_cut_off_is_used_up_to_there_and_said_and_a_search_that_cannot_be_told_of_goes_on() {
    let (folder, trace, _) = inputs();
    let whole = fs::read(&trace).unwrap();
    let part = file(&folder, "part.jsonl", &whole[..whole.len() / 2]);
    let plan = ["plan", &part, "--time-limit", "0"];
    let output = tools(&plan);
    assert!(output.status.success());
    says(&errors(&output), "part.jsonl is cut off at line ");
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    assert!(command().args(plan).stderr(full).output().unwrap().status.success());
}
