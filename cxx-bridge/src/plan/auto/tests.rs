//! What becomes of a kept file, whatever it has in it, and what a process says of itself.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

use pinbuddy_plan::Plan;

use super::*;
use crate::config::of_pairs as read;
use crate::plan::{Choice, choose, decide, this_run};

impl Place {
    /// Of a process that runs this module, in this folder.
    pub(in crate::plan) fn in_folder(folder: &Path, module: &str, role: Role) -> Self {
        let folder = Folder::of(folder.to_str(), |_| None).unwrap();
        let command = Command::of(&["python", "-m", module].map(str::to_owned), &Disk).unwrap();
        let world_size = 16;
        let launch = Launch { world_size, role, local_rank: usize::from(role == Role::Other) };
        Self::keep(folder, Key::pinned(command, launch, "2.15.0", None))
    }
}

pub(in crate::plan) fn at(folder: &Path, role: Role) -> Place {
    Place::in_folder(folder, "train", role)
}

pub(in crate::plan) fn decided(place: &Place) -> (Choice<Plan>, Option<String>) {
    let (config, _) = read(&[]);
    decide(place, &config, this_run("2.15.0", 0), |text, run| {
        let plan = Plan::read(text)?;
        plan.fits(run)?;
        Ok(plan)
    })
}

/// The text of a plan that was made at this place.
pub(in crate::plan) fn text(place: &Place) -> String {
    let mut text = place.head().into_bytes();
    let plan = Plan { made_for: place.run(this_run("2.15.0", 0)), ..Plan::default() };
    plan.write(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn a_first_run_is_recorded_in_a_folder_that_it_makes_and_later_ones_of_its_role_use_the_file() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("a/b");
    for role in [Role::First, Role::Other] {
        let place = at(&folder, role);
        let (choice, said) = decided(&place);
        assert!(
            matches!(choice, Choice::Record(it) if it.run.rank == u32::from(role == Role::Other) && it.run.world_size == 16)
        );
        assert_eq!(said, None);
        assert!(role == Role::Other || !above.path().join("a").exists(), "nothing is written yet");
        place.prepare().unwrap();
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        fs::write(&place.path, text(&place)).unwrap();
        let file = fs::File::open(&place.path).unwrap();
        file.set_modified(long_ago).unwrap();
        let (choice, said) = decided(&place);
        assert!(matches!(choice, Choice::Use(_)), "{said:?}");
        assert!(file.metadata().unwrap().modified().unwrap() > long_ago, "its use is noted");
    }
}

#[test]
fn a_kept_file_that_cannot_be_used_is_made_anew_whatever_is_in_it_and_what_is_no_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let place = at(folder.path(), Role::First);
    let whole = text(&place);
    let other = text(&at(folder.path(), Role::Other));
    let cut = &whole[..whole.len() - 9];
    let head = place.head();
    for damaged in [
        b"",
        cut.as_bytes(),
        other.as_bytes(),
        head.as_bytes(),
        whole.replace("2.15.0", "2.11.0").as_bytes(),
        b"import torch\n",
        &[head.as_bytes(), &[0xff, 0xfe]].concat(),
        &[0; 4096],
    ] {
        fs::write(&place.path, damaged).unwrap();
        is_made_anew(&place);
    }
    let file = fs::File::create(&place.path).unwrap();
    file.set_len(1 << 30).unwrap();
    is_made_anew(&place);
    fs::rename(&place.path, folder.path().join("theirs")).unwrap();
    stays(&place, |path| {
        std::os::unix::fs::symlink("theirs", path).unwrap();
    });
    fs::remove_file(&place.path).unwrap();
    stays(&place, |path| fs::create_dir(path).unwrap());
}

fn is_made_anew(place: &Place) {
    let (choice, said) = decided(place);
    assert!(matches!(choice, Choice::Record(_)), "{said:?}");
    assert!(said.unwrap().contains("is made anew"));
}

/// What is put there is not replaced.
fn stays(place: &Place, put: impl FnOnce(&Path)) {
    put(&place.path);
    let (choice, said) = decided(place);
    assert!(matches!(choice, Choice::Nothing), "{said:?}");
    assert!(said.unwrap().ends_with("remove what is there, or set BUDDY_PLAN_DIR to one that this user may write to"));
}

#[test]
fn a_plan_may_be_as_long_as_a_plan_is_behind_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let place = at(folder.path(), Role::First);
    let mut whole = text(&place);
    let plan = whole.len() - place.head().len();
    whole.push_str(&" ".repeat(pinbuddy_plan::file::MOST_TEXT - plan));
    fs::write(&place.path, whole).unwrap();
    let (choice, said) = decided(&place);
    assert!(matches!(choice, Choice::Use(_)), "{said:?}");
}

#[test]
fn a_program_without_a_key_or_a_plan_is_not_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let (config, _) = read(&[("BUDDY_PLAN_DIR", folder.path().to_str().unwrap())]);
    let words = ["python", "-i"].map(str::to_owned);
    for memory in [Memory::Pinned, Memory::Device] {
        let command = Command::of(&words, &Disk);
        let place = Place::of_command(command, memory, &config, "2.15.0").unwrap();
        assert!(place.is_none());
    }
    let place = at(folder.path(), Role::First);
    let mut text = place.head().into_bytes();
    let run = place.run(this_run("2.15.0", 0));
    let none = crate::plan::NoPlan::new(&run, 5000, "nothing came again");
    none.write(&mut text).unwrap();
    fs::write(&place.path, &text).unwrap();
    let (choice, said) = decided(&place);
    assert!(matches!(choice, Choice::Nothing));
    assert_eq!(said, None);
}

#[test]
fn a_folder_that_cannot_be_is_said_in_one_line_when_a_plan_is_to_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let place = at(&file.join("plans"), Role::First);
    let (choice, said) = decided(&place);
    assert!(matches!(choice, Choice::Record(_)));
    assert_eq!(said, None);
    let said = place.prepare().unwrap_err();
    assert!(said.contains("set BUDDY_PLAN_DIR"), "{said}");
    assert_eq!(said.lines().count(), 1);
}

#[test]
fn a_folder_that_others_may_write_or_own_is_neither_read_nor_written() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("plans");
    fs::create_dir(&folder).unwrap();
    let refused = |in_it: &str| {
        let set = folder.to_str().unwrap();
        let (config, _) = read(&[("BUDDY_PLAN", "auto"), ("BUDDY_PLAN_DIR", set)]);
        let (choice, place, said) = choose(&config, "2.15.0");
        assert!(matches!(choice, Choice::Nothing) && place.is_none());
        let said = said.unwrap();
        assert!(said.contains("BUDDY_PLAN=auto has no effect: its folder") && said.contains(in_it), "{said}");
        assert_eq!(said.lines().count(), 1);
        // It was made so after it was chosen.
        let place = at(&folder, Role::First);
        assert!(place.prepare().unwrap_err().contains(in_it));
    };
    for mode in [0o1777, 0o770, 0o702] {
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        refused(&format!("mode {mode:o}"));
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(at(&folder, Role::First).prepare(), Ok(()));
    // Root alone can give a folder away; others find root's usable.
    let user = folder.metadata().unwrap().uid();
    match chown(&folder, Some(user + 1), None) {
        Ok(()) => refused(&format!("user {}'s", user + 1)),
        Err(_) => assert_eq!(check(Path::new("/usr")), Ok(())),
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_named_file_is_as_it_was_and_an_exported_one_can_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.plan");
    let named = Place::named(path.clone());
    assert_eq!((named.head().as_str(), named.is_kept()), ("", false));
    let mut kept = at(folder.path(), Role::First).head().into_bytes();
    let made_for = this_run("2.15.0", 0);
    let plan = Plan { made_for, ..Plan::default() };
    plan.write(&mut kept).unwrap();
    fs::write(&path, kept).unwrap();
    assert!(matches!(decided(&named).0, Choice::Use(_)));
}

#[test]
fn disabled_nothing_is_chosen() {
    let (config, _) = read(&[("BUDDY_PLAN", "auto"), ("BUDDY_DISABLE", "1")]);
    let (choice, place, said) = choose(&config, "2.15.0");
    assert!(matches!(choice, Choice::Nothing) && place.is_none() && said.is_none());
}

#[test]
fn this_process_has_a_file_of_its_own_for_each_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (config, _) = read(&[("BUDDY_PLAN_DIR", folder.path().to_str().unwrap())]);
    let of = |memory| Place::of(Some(AUTO), memory, &config, "2.15.0").unwrap().unwrap();
    let name = |memory| of(memory).path.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name(Memory::Pinned).starts_with("pinbuddy_bridge"), "{}", name(Memory::Pinned));
    assert_ne!(name(Memory::Pinned), name(Memory::Device));
    assert_eq!(name(Memory::Pinned), name(Memory::Pinned));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "choosing writes nothing");
}
