//! The plug-in's metadata, with invented libraries.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::build_wheel::Options;
use crate::wheel::provenance::{Inputs, Named};
use crate::wheel::writer::NewFile;

fn library(torch: &str, platform: &str) -> Library {
    let bytes = format!("a library for {torch}").into_bytes();
    let named = |name: &str| Named { name: name.into(), sha256: "ab".repeat(32) };
    let inputs = Inputs {
        base_wheel: named("torch.whl"),
        series: "2.15.0".into(),
        patches: vec![named("open_the_seam.patch")],
        pinbuddy: "0.1.0".into(),
        source_sha256: "cd".repeat(32),
        tools: BTreeMap::new(),
        defaults: BTreeMap::new(),
        links: BTreeMap::from([("Source".into(), "https://git.example".into())]),
        build: None,
    };
    let (floors, fork) = (Floors::default(), format!("{torch}.pinbuddy.0.1.0"));
    let hashes = ("01".repeat(32), "23".repeat(32));
    Library {
        provenance: Provenance::of((&fork, torch), inputs, hashes, &bytes, &floors),
        bytes,
        floors,
        platform: platform.into(),
        cuda: "13.2".into(),
    }
}

fn two() -> [Library; 2] {
    [library("2.8.0+cu128", "manylinux_2_28_x86_64"), library("2.15.0+cu132", "manylinux_2_34_x86_64")]
}

const TOOLS: &[u8] = b"a program";

fn name(libraries: &[Library]) -> WheelName {
    WheelName {
        name: "pinbuddy".into(),
        version: version(libraries, TOOLS).unwrap(),
        python: "py3".into(),
        abi: "none".into(),
        platform: platform(libraries).unwrap(),
    }
}

/// Whose versions change.
fn without_crates(metadata: &str) -> String {
    let lines = metadata.lines().filter(|it| !it.starts_with("License-File: crates/"));
    lines.map(|it| format!("{it}\n")).collect()
}

#[test]
fn the_tag_is_true_for_all_and_the_papers_list_each() {
    let libraries = two();
    let name = name(&libraries);
    let contents = contents::contents(&name, &libraries, TOOLS).unwrap();
    let text = |path: &str| String::from_utf8(contents.files[path].bytes.clone()).unwrap();
    let info = format!("pinbuddy-{}.dist-info", name.version);
    insta::assert_snapshot!(
        [
            format!("{name}\n"),
            text(contents::MANIFEST),
            without_crates(&text(&format!("{info}/METADATA"))),
            text(&format!("{info}/WHEEL")),
        ]
        .join("--\n")
    );
    let licence = "crates/libc-";
    assert!(text(&format!("{info}/METADATA")).contains(&format!("\nLicense-File: {licence}")));
    assert!(contents.files.keys().any(|it| it.starts_with(&format!("{info}/licenses/{licence}"))));
    let package = "pinbuddy/lib/2.8.0+cu128/libtorch_pinbuddy.so";
    assert!(contents.files[package].executable);
    assert!(contents.files["pinbuddy/bin/pinbuddy-tools"].executable);
    assert!(contents.files.contains_key("pinbuddy/_entry.py"));
    assert_eq!(
        text(&format!("{info}/entry_points.txt")),
        "[console_scripts]\npinbuddy = pinbuddy.__main__:main\n\n\
         [torch.backends]\npinbuddy = pinbuddy._entry:autoload\n"
    );
    let example = fs::read_to_string(paths::root().join("examples/offload.py")).unwrap();
    assert_eq!(text("pinbuddy/examples/offload.py"), example);
    assert!(!contents.files.keys().any(|it| it.starts_with("torch")));
}

/// pip leaves an installed version as it is, whatever is in the wheel.
#[test]
fn a_plug_in_that_was_built_anew_has_another_version() {
    let [older, newer] = two();
    let mut changed = library("2.15.0+cu132", "manylinux_2_34_x86_64");
    changed.provenance.inputs.source_sha256 = "ef".repeat(32);
    let named = [[newer], [changed], [older]].map(|libraries| name(&libraries).version);
    assert_eq!(named.iter().collect::<BTreeSet<_>>().len(), 3, "{named:?}");
}

/// As pip compares local versions (PEP 440): part by part, a number above a word, and more parts above fewer.
fn is_newer(version: &str, than: &str) -> bool {
    let parts = |version: &str| -> Vec<(Option<u32>, String)> {
        let (_, local) = version.split_once('+').unwrap();
        local.split('.').map(|part| (part.parse().ok(), part.to_owned())).collect()
    };
    parts(version) > parts(than)
}

#[test]
fn a_plug_in_with_a_higher_number_is_newer_whatever_it_is_built_for() {
    let of = |build: Option<u32>, libraries: &[Library]| {
        let mut numbered = Vec::new();
        for it in libraries {
            let mut it = library(&it.provenance.torch_version, &it.platform);
            it.provenance.inputs.build = build;
            numbered.push(it);
        }
        name(&numbered).version
    };
    let [older, newer] = two();
    let (both, one) = (&two()[..], &[older][..]);
    let versions = [
        of(None, both),
        of(Some(1), both),
        of(Some(9), one),
        of(Some(10), both),
        of(Some(11), &[newer]),
        of(Some(100), one),
    ];
    for pair in versions.windows(2) {
        assert!(is_newer(&pair[1], &pair[0]), "{pair:?}");
    }
    assert!(versions[3].starts_with("0.1.0+10.torch2.8.0.2.15.0.h"), "{versions:?}");
}

#[test]
fn what_is_no_library_is_noticed_before_the_wheel_has_its_name() {
    let libraries = two();
    let name = name(&libraries);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wheel");
    let mut contents = contents::contents(&name, &libraries, TOOLS).unwrap();
    writer::write(None, &contents, &path, &Step::silent()).unwrap();
    let refused_of = |count, contents: &Contents| {
        let error = verify(&path, &name, (count, contents), &Step::silent()).unwrap_err();
        format!("{error:#}")
    };
    let refused = |contents: &Contents| refused_of(2, contents);
    let said = refused_of(3, &contents);
    assert!(said.starts_with("3 libraries"), "one is missing: {said}");
    let said = refused(&contents);
    assert!(!said.contains("is not what was written"), "no library: {said}");
    for path in contents.files.keys().cloned().collect::<Vec<_>>() {
        let written = contents.files[&path].clone();
        contents.files.insert(path.clone(), NewFile::text("other"));
        assert_eq!(refused(&contents), format!("{path} is not what was written"));
        contents.files.insert(path, written);
    }
}

#[test]
fn releases_and_wheels_are_asked_for_together() {
    let args = cli::BuildPlugin {
        torch: vec!["2.8.0".into()],
        wheel: vec!["w/torch-2.11.0+cu126-cp312-cp312-manylinux_2_28_x86_64.whl".into()],
        options: Options { build: Some(7), ..Options::default() },
        ..cli::BuildPlugin::default()
    };
    let asked: Vec<_> = wanted(&args)
        .unwrap()
        .into_iter()
        .map(|it| (it.torch.unwrap_or_default(), it.wheel.is_some(), it.options.build))
        .collect();
    assert_eq!(asked, [("2.8.0".into(), false, Some(7)), ("2.11.0".into(), true, Some(7))]);
}
