//! A file of nine lines, and versions of it that were changed in different ways.

use super::*;

const PATCH: &str = "--- a/A.h\n+++ b/A.h\n@@ -2,3 +2,4 @@\n second\n-third\n+THIRD\n+and more\n fourth\n\
    @@ -7,3 +8,3 @@\n seventh\n-eighth\n+EIGHTH\n ninth\n";
const LATER: &str =
    "--- a/A.h\n+++ b/A.h\n@@ -4,2 +4,3 @@\n and more\n fourth\n+fifth and a half\n";
const LINES: [&str; 9] = [
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
];

fn places(text: &str) -> Vec<String> {
    let files = Files::from([("A.h".to_owned(), Some(text.as_bytes().to_vec()))]);
    let mut survey = Survey::new(&files);
    for patch in [PATCH, LATER] {
        survey.patch("a", patch, Direction::Forward).unwrap();
    }
    let places = survey.spots.iter().map(|spot| spot.place.to_string());
    places.collect()
}

#[test]
fn where_they_were() {
    let found = [
        "unchanged, at line 2",
        "unchanged, at line 7",
        "unchanged, at line 4",
    ];
    assert_eq!(places(&LINES.join("\n")), found);
}

#[test]
fn moved_by_lines_above() {
    let found = [
        "moved to line 4, 2 lines further down",
        "moved to line 9, 2 lines further down",
        "moved to line 6, 2 lines further down",
    ];
    assert_eq!(places(&format!("0\n0\n{}", LINES.join("\n"))), found);
}

#[test]
fn a_changed_line_is_named_and_does_not_move_what_is_below() {
    let found = places(&LINES.join("\n").replace("third", "3rd of all"));
    assert_eq!(
        found[..2],
        [
            "nearest match at line 2, where it is expected: 2 of 3 lines\n  gone: third",
            "unchanged, at line 7"
        ]
    );
    // It relies on a line that the first hunk would have put in.
    assert!(
        found[2].ends_with("1 of 2 lines\n  gone: and more"),
        "{found:?}"
    );
}

#[test]
fn lines_between_and_nothing_at_all() {
    let found = places(&LINES.join("\n").replace("eighth", "new\neighth"));
    assert_eq!(
        found[1],
        "nearest match at line 8, 1 line further down: 2 of 3 lines, others come between"
    );
    assert_eq!(places("x\ny\n")[0], "nothing like its lines is in the file");
    assert_eq!(places("")[0], "nothing like its lines is in the file");
}
