//! A source build of a stand-in for PyTorch's tree, whose build entry quickly writes a wheel with two small
//! libraries. Everything else is real.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::plan::{Asked, Plan};
use super::prerequisites::Seen;
use super::variables::Environment;
use super::{make, series};
use crate::cli::{Launcher, SourceBuild};
use crate::doctor::finding::Finding;
use crate::support::hash::Digest;
use crate::support::progress::Progress;
use crate::wheel::provenance::Provenance;
use xtask_patchkit::release::Versions;

const HEADER: &str = "aten/src/ATen/core/CachingHostAllocator.h";
const STOCK: &str = "one\ntwo\nthree\n";
const SEAMED: &str = "one\nTWO\nthree\n";
const CMAKE: &str = "caffe2/CMakeLists.txt";
const LINKED: &str = "first\ninclude(ours)\nlast\n";

/// Compiles two libraries, as CMake would, and writes a wheel of the tree.
const SETUP: &str = r#"
import base64, hashlib, os, pathlib, subprocess, sys, zipfile
out = pathlib.Path(sys.argv[sys.argv.index('--dist-dir') + 1])
if pathlib.Path('break').exists():
    sys.exit('[7/9] the stand-in was told to fail')
count = pathlib.Path('build/count')
count.parent.mkdir(exist_ok=True)
count.write_text(str(int(count.read_text()) + 1) if count.exists() else '1')
lib = pathlib.Path('build/lib')
lib.mkdir(exist_ok=True)
def link(name, *others):
    subprocess.run(['g++', '-shared', '-x', 'c++', '/dev/null', f'-Wl,-soname,{name}', '-o', lib / name, '-x', 'none',
                    '-Wl,--no-as-needed', *others], check=True)
link('libtorch_pinbuddy.so')
link('libtorch_cuda.so', *([lib / 'libtorch_pinbuddy.so'] if 'ours' in open('caffe2/CMakeLists.txt').read() else []))
version = os.environ['PYTORCH_BUILD_VERSION']
tags = f'cp{sys.version_info[0]}{sys.version_info[1]}-' * 2 + 'linux_x86_64'
info = f'torch-{version}.dist-info'
files = {
    'torch/include/ATen/core/CachingHostAllocator.h': open('aten/src/ATen/core/CachingHostAllocator.h', 'rb').read(),
    'torch/lib/libtorch_cuda.so': (lib / 'libtorch_cuda.so').read_bytes(),
    'torch/lib/libtorch_pinbuddy.so': (lib / 'libtorch_pinbuddy.so').read_bytes(),
    'torch/version.py': f"__version__ = '{version}'\ncuda: str = '12.4'\nhip = None\n".encode(),
    f'{info}/METADATA': f'Metadata-Version: 2.1\nName: torch\nVersion: {version}\n'.encode(),
    f'{info}/WHEEL': f'Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tags}\n'.encode(),
    f'{info}/top_level.txt': b'functorch\ntorch\n',
}
record = ''
for name, data in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
    record += f'{name},sha256={digest},{len(data)}\n'
files[f'{info}/RECORD'] = (record + f'{info}/RECORD,,\n').encode()
with zipfile.ZipFile(out / f'torch-{version}-{tags}.whl', 'w') as wheel:
    for name, data in files.items():
        wheel.writestr(name, data)
"#;

/// A project with patches, a tree for them, and a toolkit that only prints its version.
struct StandIn {
    folder: TempDir,
    versions: Versions,
}

impl StandIn {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let patch = |path: &str, old: &str, new: &str| {
            format!("Subject: [PATCH] Change\n\n--- a/{path}\n+++ b/{path}\n{old}{new}")
        };
        write("project/patches/2.6.0/series", "seam.patch\n");
        let seam = patch(HEADER, "@@ -1,3 +1,3 @@\n one\n", "-two\n+TWO\n three\n");
        write("project/patches/2.6.0/seam.patch", &seam);
        write("project/patches/source/series", "link.patch\n");
        let link = patch(
            CMAKE,
            "@@ -1,2 +1,3 @@\n first\n",
            "+include(ours)\n last\n",
        );
        write("project/patches/source/link.patch", &link);
        write("tree/version.txt", "2.6.0a0\n");
        write(&format!("tree/{HEADER}"), STOCK);
        write(&format!("tree/{CMAKE}"), "first\nlast\n");
        write(
            "tree/pyproject.toml",
            "[build-system]\nrequires = []\nbuild-backend = \"setuptools.build_meta:__legacy__\"\n",
        );
        write("tree/setup.py", SETUP);
        write(
            "cuda/bin/nvcc",
            "#!/bin/sh\necho 'Cuda compilation tools, release 12.4, V12.4.131'\n",
        );
        let nvcc = folder.path().join("cuda/bin/nvcc");
        fs::set_permissions(nvcc, fs::Permissions::from_mode(0o755)).unwrap();
        let versions = format!(
            "header = \"{HEADER}\"\n[cuda]\n[[release]]\nversion = \"2.15.0\"\nheader_sha256 = \"{:064}\"\n\
             patched_sha256 = \"\"\nseries = \"2.15.0\"\n[[source_release]]\nversion = \"2.6.0\"\n\
             header_sha256 = \"{}\"\npatched_sha256 = \"{}\"\nseries = \"2.6.0\"\nsource_series = [\"source\"]\n",
            0,
            Digest::of(STOCK.as_bytes()).hex(),
            Digest::of(SEAMED.as_bytes()).hex()
        );
        let versions = toml::from_str(&versions).unwrap();
        Self { folder, versions }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn environment(&self) -> Environment {
        let path = std::env::var("PATH").unwrap();
        let cuda = self.path("cuda").display().to_string();
        Environment::from([("PATH".into(), path), ("CUDA_HOME".into(), cuda)])
    }

    fn plan(&self, building: &SourceBuild) -> Plan {
        let asked = Asked {
            source: &self.path("tree"),
            python: Path::new("python3"),
            out: &self.path("dist"),
            building,
            environment: self.environment(),
        };
        let mut plan = Plan::make(&self.path("project"), &self.versions, asked).unwrap();
        // A separate folder for each test.
        plan.work = self.path("scratch");
        plan
    }

    fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        let root = self.path("tree");
        let files = super::layout::files(&root).unwrap();
        files
            .into_iter()
            .map(|it| (it.clone(), fs::read(root.join(it)).unwrap()))
            .collect()
    }

    /// How often the tree's own build has run.
    fn builds(&self, build_tree: &Path) -> String {
        fs::read_to_string(build_tree.join("build/count")).unwrap_or_default()
    }
}

fn progress() -> Progress {
    Progress::new(super::STEPS)
}

#[test]
fn a_wheel_comes_out_and_the_tree_is_as_it_was() {
    let stand_in = StandIn::new();
    let before = stand_in.tree();
    let plan = stand_in.plan(&SourceBuild::default());
    let summary = make(&plan, &progress()).unwrap();
    assert_eq!(stand_in.tree(), before);
    assert!(!plan.work.exists(), "nothing is left of the build");
    let name = summary
        .path
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let fork = format!(
        "torch-2.6.0+cu124.pinbuddy.{}-cp3",
        env!("CARGO_PKG_VERSION")
    );
    assert!(
        name.starts_with(&fork) && name.ends_with("-linux_x86_64.whl"),
        "{name}"
    );
    let papers = Provenance::read(&summary.path).unwrap();
    let patches: Vec<_> = papers
        .inputs
        .patches
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(patches, ["seam.patch", "link.patch"]);
    assert_eq!(papers.header_sha256.1, Digest::of(SEAMED.as_bytes()).hex());
}

#[test]
fn what_fails_goes_on_where_it_was() {
    let stand_in = StandIn::new();
    let plan = stand_in.plan(&SourceBuild::default());
    let build_tree = plan.build_tree();
    fs::write(stand_in.path("tree/break"), "").unwrap();
    let error = make(&plan, &progress()).unwrap_err().to_string();
    assert!(error.contains("the stand-in was told to fail"), "{error}");
    assert_eq!(fs::read_to_string(build_tree.join(HEADER)).unwrap(), SEAMED);
    let untouched = |path: &str| {
        fs::metadata(build_tree.join(path))
            .unwrap()
            .modified()
            .unwrap()
    };
    let times = [HEADER, CMAKE, "setup.py"].map(untouched);
    fs::remove_file(stand_in.path("tree/break")).unwrap();
    // As if writing the built wheel had been interrupted.
    fs::write(stand_in.path("dist"), "no folder").unwrap();
    make(&plan, &progress()).unwrap_err();
    assert_eq!(
        [HEADER, CMAKE, "setup.py"].map(untouched),
        times,
        "or all were compiled anew"
    );
    assert_eq!(stand_in.builds(&build_tree), "1");
    make(&plan, &progress()).unwrap_err();
    assert_eq!(stand_in.builds(&build_tree), "1", "the wheel was there");
    // A changed file is noticed.
    fs::write(stand_in.path("tree/new.cpp"), "").unwrap();
    make(&plan, &progress()).unwrap_err();
    assert_eq!(stand_in.builds(&build_tree), "2");
    fs::remove_file(stand_in.path("dist")).unwrap();
    make(&plan, &progress()).unwrap();
    assert_eq!(fs::read_dir(stand_in.path("dist")).unwrap().count(), 1);
}

#[test]
fn with_keep_the_tree_itself_is_built() {
    let stand_in = StandIn::new();
    let building = SourceBuild {
        keep: true,
        ..SourceBuild::default()
    };
    let plan = stand_in.plan(&building);
    make(&plan, &progress()).unwrap();
    make(&plan, &progress()).unwrap();
    let tree = stand_in.tree();
    assert_eq!(tree[HEADER], SEAMED.as_bytes());
    assert_eq!(tree[CMAKE], LINKED.as_bytes(), "applied once");
    assert_eq!(stand_in.builds(&stand_in.path("tree")), "2");
}

#[test]
fn a_wheel_that_does_not_load_our_library_is_refused() {
    let stand_in = StandIn::new();
    let setup = SETUP.replace("if 'ours' in", "if 'theirs' in");
    fs::write(stand_in.path("tree/setup.py"), setup).unwrap();
    let error = make(&stand_in.plan(&SourceBuild::default()), &progress()).unwrap_err();
    let said = format!("{error:#}");
    assert!(said.contains("libtorch_cuda.so needs"), "{said}");
    assert_eq!(fs::read_dir(stand_in.path("dist")).unwrap().count(), 0);
}

#[test]
fn a_tree_that_the_series_do_not_fit_is_refused_before_anything_is_done() {
    let stand_in = StandIn::new();
    fs::write(stand_in.path("tree").join(CMAKE), "another\n").unwrap();
    let plan = stand_in.plan(&SourceBuild::default());
    let error = series::patched(&plan).unwrap_err().to_string();
    assert!(
        error.contains("the series for source builds does not apply"),
        "{error}"
    );
    assert!(error.contains(CMAKE), "{error}");
    fs::write(stand_in.path("tree").join(HEADER), "one\ntwo\nTHREE\n").unwrap();
    assert!(series::patched(&plan).is_err());
    assert!(!plan.work.exists());
}

#[test]
fn the_dry_run_names_every_command_and_variable() {
    let stand_in = StandIn::new();
    let building = SourceBuild {
        cuda_arch: Some("9.0".into()),
        launcher: Some(Launcher::Sccache),
        jobs: Some(24),
        keep: false,
    };
    let mut plan = stand_in.plan(&building);
    plan.python = crate::python::python311();
    let extra = [
        ("CMAKE_BUILD_TYPE", "Release"),
        ("SCCACHE_BUCKET", "hidden"),
        ("HOME", "/root"),
    ];
    let mut environment = stand_in.environment();
    environment.insert("PATH".into(), "/usr/bin".into());
    environment.extend(extra.map(|(name, value)| (name.into(), value.into())));
    let programs = plan.work.join("venv/bin");
    let wanted = super::variables::Wanted {
        version: &plan.version,
        root: Path::new("/pinbuddy"),
        cuda: Some((
            Path::new("/usr/local/cuda"),
            Path::new("/usr/local/cuda/bin/nvcc"),
        )),
        arch: Some("9.0"),
        launcher: Some("sccache"),
        jobs: 24,
        programs: &programs,
    };
    plan.variables = super::variables::Variables::of(&wanted, &environment);
    let findings = [
        Finding::ok("python", plan.python.describe()),
        Finding::missing("disk", "20 GB free").run("df -h  # free some space there"),
    ];
    let text = plan.describe(&findings);
    let text = text.replace(&stand_in.folder.path().display().to_string(), "");
    let text = text.replace(env!("CARGO_PKG_VERSION"), "<ours>");
    insta::assert_snapshot!(text);
    assert!(!Seen::look(&plan).findings().is_empty());
}
