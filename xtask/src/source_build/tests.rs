//! A source build of a stand-in for PyTorch's tree, whose build entry quickly writes a wheel with two small
//! libraries. Everything else is real.

use std::fs;
use std::path::PathBuf;

use super::plan::Plan;
use super::{make, patched};
use crate::build_wheel::Options;
use crate::support::hash::Digest;
use crate::support::progress::Progress;
use crate::wheel::provenance::Provenance;
use xtask_patchkit::fixture::{self, Fixture, HEADER, pristine};

const CMAKE: &str = "caffe2/CMakeLists.txt";
const LINKED: &str = "first\ninclude(ours)\nlast\n";

/// Compiles two libraries, as CMake would, and writes a wheel of the tree.
const SETUP: &str = include_str!("stand_in.py");

/// A fixture whose tree can be built.
struct StandIn(Fixture);

impl StandIn {
    fn new() -> Self {
        let mut fixture = Fixture::new();
        fixture.versions.releases[0].source_series = vec!["source".to_owned()];
        let link = "@@ -1,2 +1,3 @@\n first\n+include(ours)\n last\n";
        fixture.add_series("source", "Link", CMAKE, link);
        fixture.write(&format!("tree/{CMAKE}"), "first\nlast\n");
        let project = "[build-system]\nrequires = []\nbuild-backend = \"setuptools.build_meta:__legacy__\"\n";
        fixture.write("tree/pyproject.toml", project);
        fixture.write("tree/setup.py", SETUP);
        Self(fixture)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.folder.path().join(path)
    }

    fn plan(&self, keep: bool) -> Plan {
        let options = Options::plain("python3".as_ref(), &self.path("dist"));
        let (ours, tree) = (self.0.ours(), self.0.tree());
        let mut plan = Plan::make(&ours, &self.0.versions, (&tree, keep), &options).unwrap();
        // A separate folder for each test.
        plan.work = self.path("scratch");
        plan
    }

    /// The tree's files, and what its build has made.
    fn tree(&self) -> [Vec<u8>; 5] {
        let names = [HEADER, CMAKE, "pyproject.toml", "setup.py", "build"];
        names.map(|it| fs::read(self.path("tree").join(it)).unwrap_or_default())
    }
}

#[test]
fn what_fails_goes_on_where_it_was_and_the_tree_is_only_read() {
    let stand_in = StandIn::new();
    let before = stand_in.tree();
    let plan = stand_in.plan(false);
    let build_tree = plan.build_tree();
    fs::write(stand_in.path("tree/break"), "").unwrap();
    let error = make(&plan, &progress()).unwrap_err().to_string();
    assert!(error.contains("the stand-in was told to fail"), "{error}");
    assert_eq!(fs::read_to_string(build_tree.join(HEADER)).unwrap(), fixture::patched());
    let times = || [HEADER, CMAKE, "setup.py"].map(|it| fs::metadata(build_tree.join(it)).unwrap().modified().unwrap());
    let first = times();
    fs::remove_file(stand_in.path("tree/break")).unwrap();
    fs::remove_file(build_tree.join("break")).unwrap();
    // As if writing the built wheel had been interrupted.
    fs::write(stand_in.path("dist"), "no folder").unwrap();
    make(&plan, &progress()).unwrap_err();
    assert_eq!(times(), first, "or all would be compiled anew");
    fs::remove_file(stand_in.path("dist")).unwrap();
    let summary = make(&plan, &progress()).unwrap();
    assert_eq!(stand_in.tree(), before);
    assert!(!plan.work.exists(), "nothing is left of the build");
    let name = summary.path.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with(&format!("torch-{}-cp3", plan.version)), "{name}");
    let papers = Provenance::read(&summary.path).unwrap();
    let patches = papers.inputs.patches.iter().map(|it| it.name.as_str());
    assert_eq!(patches.collect::<Vec<_>>(), ["say_five.patch", "add_a_half.patch", "one.patch"]);
    let seamed = Digest::of(fixture::patched().as_bytes());
    assert_eq!(papers.header_sha256.1, seamed.hex());
}

#[test]
fn with_keep_the_tree_itself_is_built() {
    let stand_in = StandIn::new();
    let plan = stand_in.plan(true);
    make(&plan, &progress()).unwrap();
    make(&plan, &progress()).unwrap();
    let [header, cmake, ..] = stand_in.tree();
    assert_eq!(header, fixture::patched().as_bytes());
    assert_eq!(cmake, LINKED.as_bytes(), "applied once");
}

#[test]
fn a_wheel_that_does_not_load_our_library_is_refused() {
    let stand_in = StandIn::new();
    let setup = SETUP.replace("if 'ours' in", "if 'theirs' in");
    fs::write(stand_in.path("tree/setup.py"), setup).unwrap();
    let error = make(&stand_in.plan(false), &progress()).unwrap_err();
    let said = format!("{error:#}");
    assert!(said.contains("libtorch_cuda.so needs"), "{said}");
    assert_eq!(fs::read_dir(stand_in.path("dist")).unwrap().count(), 0);
}

#[test]
fn a_tree_that_the_series_do_not_fit_is_refused_before_anything_is_done() {
    let stand_in = StandIn::new();
    let plan = stand_in.plan(false);
    let refused = || format!("{:#}", patched(&plan, &plan.tree.root).unwrap_err());
    fs::write(stand_in.path("tree").join(CMAKE), "another\n").unwrap();
    let said = refused();
    assert!(said.contains("one.patch does not apply") && said.contains(CMAKE), "{said}");
    fs::write(stand_in.path("tree").join(HEADER), format!("{}more\n", pristine())).unwrap();
    assert!(refused().contains("as the release ships it; nothing was changed"));
    assert!(!plan.work.exists());
}

#[test]
fn the_dry_run_names_every_command_and_variable() {
    let stand_in = StandIn::new();
    let plan = stand_in.plan(false);
    let text = plan.describe(&["nvcc: export CUDA_HOME=DIR".to_owned()]);
    for line in [
        "missing  nvcc",
        "patches/2.15.0/say_five.patch",
        "patches/source/one.patch",
        "/scratch/tree && ",
        "setup.py bdist_wheel --dist-dir",
        "MAX_JOBS=",
        "USE_PINBUDDY=1",
        "BUILD_TEST=0",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let newer =
        "[build-system]\nrequires = [\"scikit-build-core>=1.0\"]\nbuild-backend = \"scikit_build_core.build\"\n";
    fs::write(stand_in.path("tree/pyproject.toml"), newer).unwrap();
    let plan = stand_in.plan(false);
    assert_eq!(plan.packages, ["scikit-build-core>=1.0", "build"]);
    assert!(plan.command().join(" ").contains("-m build --wheel --no-isolation"));
}

fn progress() -> Progress {
    Progress::new(super::STEPS)
}
