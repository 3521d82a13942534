//! `plans`: what is in a folder, and what a command line has there.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use pinbuddy_plan::Plan;
use pinbuddy_store::{Disk, Folder, Key, Launch};

use crate::started;
use started::says;

/// A folder with a script in it, and the plans of what was put.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::write(place.0.path().join("train.py"), "import torch\n").unwrap();
        place
    }

    /// With no settings of this machine's.
    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pinbuddy-tools"));
        for (name, _) in std::env::vars() {
            if ["BUDDY_", "WORLD_", "RANK", "LOCAL_", "SLURM_"].iter().any(|it| name.starts_with(it)) {
                command.env_remove(name);
            }
        }
        command.env("PINBUDDY_SITE", "").arg("plans");
        command.current_dir(self.0.path());
        command
    }

    fn plans(&self, arguments: &[&str]) -> Output {
        let mut command = self.command();
        command.env("BUDDY_PLAN_DIR", self.0.path().join("plans"));
        command.args(arguments).output().unwrap()
    }

    /// What such a command says, which must succeed.
    fn said(&self, arguments: &[&str]) -> String {
        let done = self.plans(arguments);
        assert!(done.status.success(), "{arguments:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// What such a command says that fails.
    fn refused(&self, arguments: &[&str]) -> String {
        let done = self.plans(arguments);
        assert!(!done.status.success(), "{arguments:?}: {done:?}");
        String::from_utf8(done.stderr).unwrap()
    }

    /// Keeps a plan of this run of the script; its name.
    fn put(&self, batch: &str, threshold_mb: Option<usize>) -> String {
        let script = self.0.path().join("train.py");
        let words = ["python", script.to_str().unwrap(), "--batch", batch].map(str::to_owned);
        let command = pinbuddy_store::Command::of(&words, &Disk).unwrap();
        let key = Key::pinned(command, Launch::of(|_| None), "2.15.0", threshold_mb);
        let plans = self.0.path().join("plans");
        let folder = Folder::of(plans.to_str(), |_| None).unwrap();
        folder.make().unwrap();
        let mut text = key.head().into_bytes();
        Plan::default().write(&mut text).unwrap();
        fs::write(folder.file(&key), text).unwrap();
        key.name()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(format!("plans/{name}.plan"))
    }

    fn has(&self, name: &str) -> bool {
        self.file(name).exists()
    }

    /// Says that a plan did not fit its last run.
    fn mark(&self, name: &str) {
        let file = fs::File::open(self.file(name)).unwrap();
        pinbuddy_store::mark(&file, true).unwrap();
    }
}

const WHY: [&str; 7] = ["why", "--torch", "2.15.0+cu132", "--", "python", "train.py", "--batch"];

#[test]
fn why_finds_the_plan_that_a_run_has_made_or_says_what_differs() {
    let place = Place::new();
    let name = place.put("8", None);
    let own = place.said(&[&WHY[..], &["8", "--seed", "3"]].concat());
    says(&own, "BUDDY_PLAN=auto: there is a plan");
    says(&own, &name);
    place.mark(&name);
    let marked = place.said(&[&WHY[..], &["8"]].concat());
    says(&marked, "did not fit its last run");
    let other = place.plans(&[&WHY[..], &["16"]].concat());
    assert_eq!(other.status.code(), Some(1));
    let other = String::from_utf8(other.stdout).unwrap();
    says(&other, "there is no plan");
    says(&other, &format!("near   {name}"));
    says(&other, r#"arguments: here ["--batch","16"], there ["--batch","8"]"#);
    let unknown = place.refused(&["why", "--torch", "2.15.0", "--", "python", "-i"]);
    says(&unknown, "does not say which program");
    let no_torch = place.refused(&["why", "--", "python", "train.py"]);
    says(&no_torch, "--torch VERSION");
}

#[test]
fn plans_are_listed_shown_drawn_removed_exported_and_imported() {
    let place = Place::new();
    assert!(place.said(&["ls"]).starts_with("0 plans"));
    let (one, two) = (place.put("8", None), place.put("16", None));
    let listed = place.said(&["ls"]);
    says(&listed, &one);
    says(&listed, &two);
    says(&listed, "2 plans");
    let shown = place.said(&["show", &one]);
    says(&shown, "train.py --batch 8");
    says(&shown, "0 slots");
    let json: serde_json::Value = serde_json::from_str(&place.said(&["show", "--json", &one])).unwrap();
    assert_eq!(json["key"]["arguments"][1], "8");
    let trace = started::trace(&place.0, "tensors-155", 1);
    let drawn = started::data(&trace, &["--plan", place.file(&one).to_str().unwrap(), "--time-limit", "0"]);
    assert!(drawn["allocators"].as_array().unwrap().iter().any(|it| it["name"] == "a plan"));

    let moved = place.0.path().join("moved.plan");
    let moved = moved.to_str().unwrap();
    place.mark(&one);
    place.said(&["export", &one, moved]);
    place.said(&["rm", &one[one.len() - 16..]]);
    assert_eq!([place.has(&one), place.has(&two)], [false, true]);
    place.said(&["import", moved]);
    assert_eq!([place.has(&one), place.has(&two)], [true, true]);
    let why = place.said(&[&WHY[..], &["8"]].concat());
    assert!(why.contains("there is a plan\n"), "without its mark: {why}");

    says(&place.refused(&["rm", "train"]), "may be each of");
    for unknown in [&["show", "none"][..], &["rm", &one, "none"]] {
        place.refused(unknown);
    }
    assert!(place.has(&one), "all go, or none");
}

#[test]
fn what_a_site_or_a_wheel_sets_counts_as_in_a_run() {
    let place = Place::new();
    let name = place.put("8", Some(2));
    let at = |name: &str| place.0.path().join(name);
    let settings = format!("BUDDY_PLAN_DIR = '{}'\nBUDDY_THRESHOLD_MB = 2\n", at("plans").display());
    fs::write(at("libtorch_pinbuddy.toml"), settings).unwrap();
    let why = |command: &mut Command| {
        let done = command.args(WHY).arg("8").output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    let there = format!("there is a plan\n  key    {name}");
    let said = why(place.command().env("PINBUDDY_SITE", at("libtorch_pinbuddy.toml")));
    says(&said, &there);
    let library = at("libtorch_pinbuddy.so");
    let said = why(place.command().arg("--library").arg(&library));
    says(&said, &there);
    // Turned off by the environment.
    let mut off = place.command();
    let said = why(off.env("BUDDY_THRESHOLD_MB", "").arg("--library").arg(&library));
    says(&said, "threshold_mb: here null, there 2");
}

#[test]
fn what_has_no_plan_is_not_exported_and_what_is_damaged_is_removed_by_its_name() {
    let place = Place::new();
    let name = place.put("8", None);
    let file = place.file(&name);
    let whole = fs::read_to_string(&file).unwrap();
    let head = whole.split_inclusive('\n').next().unwrap();
    let none = r#"{"format":"pinbuddy-no-plan","version":1}"#;
    fs::write(&file, [head, none].concat()).unwrap();
    says(&place.said(&["show", &name]), "none: nothing of this program's");
    let said = place.refused(&["export", &name, "out.plan"]);
    says(&said, "has no plan to export");
    says(&said, "nothing of this program's can be");
    assert!(!place.0.path().join("out.plan").exists());

    fs::write(&file, [0xff; 100]).unwrap();
    assert!(place.said(&["ls"]).starts_with("0 plans"));
    place.refused(&["rm", "train"]);
    assert_eq!(place.said(&["rm", &name]), format!("removed {name}\n"));
    assert!(!place.has(&name));
}

#[test]
fn what_is_no_exported_plan_is_not_imported_and_nothing_into_a_folder_that_no_run_would_use() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let name = place.put("8", None);
    let whole = fs::read_to_string(place.file(&name)).unwrap();
    let head = whole.split_inclusive('\n').next().unwrap();
    let file = place.0.path().join("file");
    let (cut, headless) = (&whole[..whole.len() - 5], &whole[head.len()..]);
    for text in ["", "import torch\n", head, cut, headless] {
        fs::write(&file, text).unwrap();
        place.refused(&["import", file.to_str().unwrap()]);
    }
    let folder = place.0.path().join("plans");
    let plans = || fs::read_dir(&folder).unwrap().count();
    assert_eq!(plans(), 1);
    place.said(&["export", &name, "moved"]);
    place.said(&["rm", &name]);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    says(&place.refused(&["import", "moved"]), "others may write it");
    assert_eq!(plans(), 0);
}
