//! Series on trees in temporary folders, with the git that is installed.

use std::fs;

use crate::fit::{self, Files};
use crate::fixture::{ADDED, Fixture, HEADER, patched, pristine};
use crate::release::Release;
use crate::series::{self, Patch};
use crate::tree::Tree;
use crate::{apply, drift, export, rebase};

impl Fixture {
    fn series(&self) -> Vec<Patch> {
        series::read(&self.ours().join("patches/2.15.0")).unwrap()
    }

    fn release(&self) -> &Release {
        &self.versions.releases[0]
    }

    fn open(&self) -> Tree {
        Tree::open(&self.tree(), &self.versions).unwrap()
    }

    /// What `patch apply` says.
    fn apply(&self) -> String {
        let said = Tree::open(&self.tree(), &self.versions).and_then(|tree| {
            let release = tree.release(&self.versions)?;
            apply::to_tree(&tree, HEADER, release, &self.series())
        });
        self.shown(&said.unwrap_or_else(|error| format!("error: {error:#}\n")))
    }

    fn export(&self) -> String {
        let patches = self.ours().join("patches");
        let said = export::export(&patches, HEADER, &self.open(), self.release());
        self.shown(&said.unwrap_or_else(|error| format!("error: {error:#}\n")))
    }

    /// The folder of the series: texts by name.
    fn texts(&self) -> Vec<(String, String)> {
        let folder = fs::read_dir(self.ours().join("patches/2.15.0")).unwrap();
        let texts = folder.map(|it| it.unwrap()).map(|it| {
            let name = it.file_name().into_string().unwrap();
            (name, fs::read_to_string(it.path()).unwrap())
        });
        let mut texts: Vec<_> = texts.collect();
        texts.sort();
        texts
    }
}

#[test]
fn a_tree_gets_the_series_once() {
    let fixture = Fixture::new();
    let said = fixture.apply() + &fixture.apply();
    assert_eq!(fixture.read(), patched());
    assert_eq!(fs::read(fixture.tree().join(ADDED)).unwrap(), b"new\n");
    insta::assert_snapshot!("applied", said);
}

/// As a build has them.
#[test]
fn a_wheels_headers_are_patched_exactly_and_give_what_is_pinned() {
    let mut fixture = Fixture::new();
    let inside = "torch/include/ATen/core/A.h";
    let headers = |fixture: &Fixture, text: &str| {
        fixture.write(&format!("wheel/{inside}"), text);
        let wheel = fixture.folder.path().join("wheel");
        let release = fixture.release();
        apply::to_headers(&fixture.series(), &wheel, inside, release).map_err(|it| it.to_string())
    };
    let after = headers(&fixture, &pristine()).unwrap();
    assert_eq!(after[inside], patched().into_bytes());
    assert_eq!(after["torch/include/ATen/core/B.h"], b"new\n");
    let other = pristine().replace("number 6\n", "number six\n");
    let said = headers(&fixture, &other).unwrap_err();
    assert!(said.contains("in line 4 of"), "no fuzz: {said}");
    let said = headers(&fixture, &patched()).unwrap_err();
    assert!(said.contains("say_five.patch does not apply"), "{said}");
    fixture.versions.releases[0].patched_sha256 = "a".repeat(64);
    let said = headers(&fixture, &pristine()).unwrap_err();
    assert!(
        said.contains("is not what patches/versions.toml pins"),
        "{said}"
    );
}

#[test]
fn what_does_not_fit_exactly_changes_nothing() {
    let mut said = String::new();
    for text in [
        pristine().replace("number 20\n", "number twenty\n"),
        // The changed line is as it was; one line around it is not.
        pristine().replace("number 6\n", "number six\n"),
        pristine().replace('\n', "\r\n"),
        format!("{}more\n", pristine()),
    ] {
        let fixture = Fixture::new();
        fixture.header(&text);
        said += &fixture.apply();
        assert_eq!(fixture.read(), text);
        assert!(!fixture.tree().join(ADDED).exists());
    }
    let fixture = Fixture::new();
    fs::remove_file(fixture.tree().join(HEADER)).unwrap();
    said += &fixture.apply();
    fixture.header(&pristine());
    fixture.write(&format!("tree/{ADDED}"), "theirs\n");
    said += &fixture.apply();
    let mut fixture = Fixture::new();
    fixture.versions.releases[0].patched_sha256 = String::new();
    said += &fixture.apply();
    assert_eq!(fixture.read(), pristine());
    insta::assert_snapshot!("refused", said);
}

#[test]
fn trees_that_are_no_release() {
    let fixture = Fixture::new();
    fixture.write("tree/version.txt", "2.16.0a0+git1234\n");
    assert_eq!(
        fixture.open().release(&fixture.versions).unwrap().version,
        "2.15.0"
    );
    fixture.header("something else\n");
    let mut said = fixture.apply();
    fs::remove_dir_all(fixture.tree()).unwrap();
    said += &fixture.apply();
    insta::assert_snapshot!("no_release", said);
}

#[test]
fn drift_is_what_git_says() {
    let fixture = Fixture::new();
    let look = || {
        let said = drift::look(&fixture.open(), fixture.release(), &fixture.series());
        fixture.shown(&said.unwrap())
    };
    let mut said = look();
    fixture.write("tree/version.txt", "2.17.0a0\n");
    let newer = pristine().replace("number 20\n", "number twenty\n");
    fixture.header(&format!("one more\n{newer}"));
    said += &look();
    assert_eq!(fixture.read(), format!("one more\n{newer}"));
    insta::assert_snapshot!("drift", said);
}

/// `git am`, as the documents have it, and back.
#[test]
fn commits_export_to_the_same_bytes_however_git_is_configured() {
    let fixture = Fixture::new();
    fixture.commit();
    let mut said = fixture.export();
    let am = || {
        let patches = fixture.series();
        let patches = patches.iter().map(|it| it.path.to_str().unwrap());
        let am = "-c core.autocrlf=false -c core.hooksPath=/dev/null am --quiet --no-gpg-sign";
        fixture.git(&am.split(' ').chain(patches).collect::<Vec<_>>());
    };
    am();
    assert_eq!(fixture.read(), patched());
    said += &fixture.export();
    let first = fixture.texts();
    fixture.configure_git_oddly();
    let reset = "-c core.autocrlf=false reset --quiet --hard HEAD~2";
    fixture.git(&reset.split(' ').collect::<Vec<_>>());
    am();
    fixture.export();
    assert_eq!(fixture.texts(), first);
    insta::assert_snapshot!("export", said);
}

/// As the rule of tests/checkout/rules.py wants them.
#[test]
fn a_patch_has_the_words_of_its_subject_for_its_name() {
    let fixture = Fixture::new();
    fixture.commit();
    for (number, subject) in [
        "Rename ptr_to_block_ to it",
        "Make `_x` public",
        "Say e.g. this. And that",
        "Größe, as GiB...",
    ]
    .iter()
    .enumerate()
    {
        fixture.header(&format!("{}{number}\n", pristine()));
        fixture.git(&["commit", "--quiet", "--all", "--message", subject]);
    }
    fixture.export();
    let names = fixture.series().into_iter().map(|it| it.name);
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            "rename_ptr_to_block_to_it.patch",
            "make_x_public.patch",
            "say_e_g_this_and_that.patch",
            "gr_e_as_gib.patch"
        ]
    );
}

/// The series carried to a header: what is said, the folder, and its header afterwards.
fn carry(fixture: &Fixture, to: &str) -> String {
    let files = |text: &str| {
        let header = (HEADER.to_owned(), Some(text.as_bytes().to_vec()));
        let added = (text == patched()).then(|| b"new\n".to_vec());
        Files::from([header, (ADDED.to_owned(), added)])
    };
    let job = rebase::Job {
        series: &fixture.series(),
        from: ("torch 2.15.0".into(), files(&pristine())),
        to: ("torch 2.14.1".into(), files(to)),
        folder: fixture.folder.path().join("rebase"),
        next: "export it".into(),
    };
    let said = rebase::carry(&job);
    fixture.shown(&said.unwrap_or_else(|error| format!("error: {error}\n")))
}

#[test]
fn what_moved_is_carried_by_git_alone_and_can_be_exported() {
    let mut fixture = Fixture::new();
    let moved = format!("one more\n{}", pristine());
    let said = carry(&fixture, &moved);
    assert!(
        said.contains("2:  ") && said.ends_with("to do: export it\n"),
        "{said}"
    );
    let folder = fixture.folder.path().join("rebase");
    let header = fit::read_below(&folder, HEADER).unwrap().unwrap();
    assert_eq!(
        String::from_utf8(header).unwrap(),
        format!("one more\n{}", patched())
    );
    let hash = xtask_support::hash::Digest::of(moved.as_bytes()).hex();
    fixture.versions.releases[0].header_sha256 = hash;
    let tree = Tree::open(&folder, &fixture.versions).unwrap();
    export::export(
        &fixture.ours().join("patches"),
        HEADER,
        &tree,
        fixture.release(),
    )
    .unwrap();
    let (_, patch) = &fixture.texts()[1];
    assert!(patch.contains("@@ -3,7 +3,7 @@"), "{patch}");
    assert!(carry(&fixture, &moved).contains("is there already"));
}

#[test]
fn a_conflict_is_left_to_git() {
    let fixture = Fixture::new();
    let said = carry(
        &fixture,
        &pristine().replace("number 20\n", "number twenty\n"),
    );
    let folder = fixture.folder.path().join("rebase");
    let header = || fs::read_to_string(folder.join(HEADER)).unwrap();
    assert!(header().contains("<<<<<<<") && header().contains("|||||||"));
    insta::assert_snapshot!("conflict", said);
    // The first two commands that it names.
    let solved = patched().replace("number 20\n", "number twenty\n");
    fs::write(folder.join(HEADER), &solved).unwrap();
    let (_, commands) = said.split_once("then ").unwrap();
    let commands = commands
        .lines()
        .take(2)
        .map(str::trim)
        .collect::<Vec<_>>()
        .join("\n");
    let commands = commands.replace("/rebase", folder.to_str().unwrap());
    let mut shell = std::process::Command::new("sh");
    let shell = shell
        .args(["-ec", &commands])
        .env("GIT_EDITOR", "true")
        .output()
        .unwrap();
    let compared = String::from_utf8(shell.stdout).unwrap();
    assert!(
        shell.status.success() && compared.contains("number twenty"),
        "{compared}"
    );
    assert_eq!(header(), solved);
    let fixture = Fixture::new();
    assert!(carry(&fixture, &patched()).contains("has all of the series"));
}
