//! Checkouts, names and bases that no proposal can be made for.

use super::{NOTE, args, files, fixture, propose};
use crate::cli::upstream_pr::UpstreamPr;
use xtask_patchkit::fixture::{patched, pristine};

#[test]
fn what_is_refused_changes_nothing() {
    let fixture = fixture();
    let before = files(fixture.folder.path());
    let mut said = String::new();
    let mut refused = |change: &dyn Fn(&mut UpstreamPr)| {
        let mut args = args(&fixture);
        change(&mut args);
        said += &propose(&fixture, &args);
    };
    refused(&|args| args.source = args.source.join("nowhere"));
    refused(&|args| args.source = args.source.join("docs"));
    refused(&|args| args.base = "v9.9".into());
    refused(&|args| args.branch = Some("main".into()));
    refused(&|args| args.branch = Some("a b".into()));
    refused(&|args| args.out = args.source.clone());
    refused(&|args| args.bench = Some(args.source.join("version.txt")));
    assert_eq!(files(fixture.folder.path()), before);
    insta::assert_snapshot!("refused", said);
}

#[test]
fn a_series_that_does_not_fit() {
    let mut said = String::new();
    for text in [
        pristine().replace("number 20\n", "number twenty\n"),
        patched(),
        pristine().replace('\n', "\r\n"),
    ] {
        let fixture = fixture();
        fixture.header(&text);
        fixture.git(&[
            "-c",
            "core.autocrlf=false",
            "commit",
            "--quiet",
            "-a",
            "-m",
            "y",
        ]);
        said += &propose(&fixture, &args(&fixture));
    }
    let fixture = fixture();
    fixture.write(&format!("tree/{NOTE}"), "no note\n");
    fixture.git(&["commit", "--quiet", "-a", "-m", "y"]);
    said += &propose(&fixture, &args(&fixture));
    assert!(!fixture.folder.path().join("out").exists());
    insta::assert_snapshot!("no_fit", said);
}
