//! What becomes of a plan in runs that it fits and runs that it does not. No run has a time: their order counts.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use pinbuddy_store::{Role, is_marked};

use super::super::auto::tests::{at, decided, text};
use super::*;
use crate::plan::Choice;

/// A folder with a plan in it.
fn kept() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let place = at(folder.path(), Role::First);
    fs::write(&place.path, text(&place)).unwrap();
    folder
}

/// A process that has read the plan.
fn read(folder: &Path) -> Place {
    let place = at(folder, Role::First);
    assert!(matches!(decided(&place).0, Choice::Use(_)));
    place
}

/// The same, and it uses the device.
fn begun(folder: &Path) -> Place {
    let place = read(folder);
    place.begin();
    place
}

fn unfit(place: &Place) -> Fate {
    place.unfit(|it| it == body(&text(place)))
}

fn marked(place: &Place) -> bool {
    is_marked(&place.path.metadata().unwrap())
}

#[test]
fn two_runs_in_a_row_that_it_does_not_fit_remove_it_and_the_next_is_recorded() {
    let folder = kept();
    let (first, second) = (begun(folder.path()), begun(folder.path()));
    assert_eq!(unfit(&first), Fate::Marked);
    assert!(marked(&first));
    // It began before that: as a rank of the same run does.
    assert_eq!(unfit(&second), Fate::Marked);
    // A process that uses no device is no run.
    read(folder.path());
    let ranks = [read(folder.path()), read(folder.path())];
    ranks.iter().for_each(Place::begin);
    assert_eq!(ranks.each_ref().map(unfit), [Fate::Removed, Fate::Gone]);
    let (choice, _) = decided(&first);
    assert!(matches!(choice, Choice::Record(_)));
}

#[test]
fn a_run_that_it_fits_between_two_others_keeps_it_even_if_it_is_killed() {
    let folder = kept();
    for _ in 0..3 {
        assert_eq!(unfit(&begun(folder.path())), Fate::Marked);
        assert!(!marked(&begun(folder.path())));
    }
    // It did not seem to fit at first; or another rank said so.
    let run = begun(folder.path());
    assert_eq!(unfit(&run), Fate::Marked);
    run.fits();
    assert!(!marked(&run));
}

#[test]
fn a_plan_that_another_run_has_written_is_neither_marked_nor_removed() {
    let folder = kept();
    assert_eq!(unfit(&begun(folder.path())), Fate::Marked);
    let run = begun(folder.path());
    let other = text(&run) + "\n";
    for newer in [other.as_str(), "import torch\n"] {
        let beside = folder.path().join("new");
        fs::write(&beside, newer).unwrap();
        fs::rename(&beside, &run.path).unwrap();
        assert_eq!(unfit(&run), Fate::Gone);
        assert!(!run.forget(|it| it == body(&text(&run))));
        assert_eq!(fs::read_to_string(&run.path).unwrap(), newer);
        assert!(!marked(&run));
    }
}

#[test]
fn a_plan_that_does_harm_goes_at_once_and_a_named_one_is_its_users() {
    let folder = kept();
    let kept = begun(folder.path());
    let named = Place::named(kept.path.clone());
    assert_eq!(named.unfit(|_| true), Fate::Named);
    named.fits();
    assert!(!named.forget(|_| true) && kept.path.exists());
    assert!(kept.forget(|it| it == body(&text(&kept))) && !kept.path.exists());
}

#[test]
fn in_a_folder_that_cannot_be_written_it_stays_and_another_folder_is_the_way() {
    let folder = kept();
    assert_eq!(unfit(&begun(folder.path())), Fate::Marked);
    let rights = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode));
    rights(0o555).unwrap();
    let fate = unfit(&begun(folder.path()));
    match fate {
        // Root writes there, too.
        Fate::Removed => assert_eq!(crate::surroundings::user(), 0),
        Fate::Stays(ref why) => assert!(why.contains("cannot be written to") && why.ends_with(TO_DO), "{fate}"),
        _ => panic!("{fate}"),
    }
    rights(0o755).unwrap();
}
