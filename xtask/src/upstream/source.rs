//! A PyTorch source tree with tests, and their names.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::python::Choice;
use crate::runtime::Runtime;
use crate::support::refusal::refuse;

/// The C++ test, in PyTorch's tree.
pub const CPP_TEST: &str = "aten/src/ATen/test/cuda_caching_host_allocator_test.cpp";
/// The Python tests, in PyTorch's tree.
pub const PYTHON_TEST: &str = "test/test_cuda.py";
/// The choice of tests in test_cuda.py.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Tests of pinned memory, most of which need no working kernel.
    Pinned,
    /// Also tests of graphs and copies, which show whether pinned memory is safe to use.
    Gpu,
}

impl Selection {
    /// The choice for a CUDA runtime.
    pub fn of(runtime: &Runtime) -> Self {
        if runtime.is_real() {
            Self::Gpu
        } else {
            Self::Pinned
        }
    }

    /// Patterns: a test is chosen if its name or its class's name contains one.
    pub fn patterns(self) -> &'static [&'static str] {
        match self {
            Self::Pinned => &[
                "pinned",
                "pin_memory",
                "host_memory",
                "HostAllocator",
                "cudart_register",
                "non_blocking",
                "blocking_by_default",
                "record_stream",
                "test_streams",
            ],
            Self::Gpu => &[
                "pinned",
                "pin_memory",
                "host_memory",
                "HostAllocator",
                "graph",
                "copy",
                "non_blocking",
                "record_stream",
            ],
        }
    }

    /// The time limit of a test program: more than the slowest configuration (8 GiB pinned for real) needs on a
    /// slow machine, and than the hundreds of optimizer tests in graphs.
    pub fn limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Pinned => 600,
            Self::Gpu => 3600,
        })
    }
}

/// A tree with both test files.
#[derive(Debug)]
pub struct Source {
    root: PathBuf,
    /// The choice of its tests.
    pub selection: Selection,
    /// Names of the C++ tests, as `suite.test`.
    pub cpp_tests: Vec<String>,
    /// Names of the Python tests.
    pub python_tests: Vec<String>,
}

impl Source {
    /// Opens a tree, and refuses one without tests.
    pub fn open(root: &Path, selection: Selection) -> Result<Self> {
        let read = |file: &str| {
            let path = root.join(file);
            fs::read_to_string(&path).map_err(|error| {
                refuse(format!("{} is not a PyTorch source tree", root.display()))
                    .found(format!("{}: {error}", path.display()))
                    .expected(format!("{CPP_TEST} and {PYTHON_TEST} in it"))
                    .remedy("pass --source a checkout of pytorch, or leave it out to use Debian's 2.6.0")
            })
        };
        let cpp_tests = named_in_cpp(&read(CPP_TEST)?);
        let python_tests = named_in_python(&read(PYTHON_TEST)?, selection.patterns());
        if cpp_tests.is_empty() || python_tests.is_empty() {
            return Err(
                refuse(format!("{} names no pinned-memory tests", root.display()))
                    .found(format!(
                        "{} in C++, {} in Python",
                        cpp_tests.len(),
                        python_tests.len()
                    ))
                    .expected(format!(
                        "TEST(…) in {CPP_TEST}, test_*{}* in {PYTHON_TEST}",
                        selection.patterns()[0]
                    ))
                    .into(),
            );
        }
        let root = fs::canonicalize(root).with_context(|| format!("finding {}", root.display()))?;
        Ok(Self {
            root,
            selection,
            cpp_tests,
            python_tests,
        })
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The C++ test.
    pub fn cpp(&self) -> PathBuf {
        self.root.join(CPP_TEST)
    }

    /// The Python tests.
    pub fn python(&self) -> Choice {
        Choice {
            file: self.root.join(PYTHON_TEST),
            patterns: self
                .selection
                .patterns()
                .iter()
                .map(|&it| it.into())
                .collect(),
            last: Vec::new(),
            without: Vec::new(),
            limit: self.selection.limit(),
        }
    }
}

/// `TEST(Suite, name)` as `Suite.name`.
fn named_in_cpp(text: &str) -> Vec<String> {
    let tests = text.lines().filter_map(|line| {
        let (suite, name) = line
            .trim_start()
            .strip_prefix("TEST(")?
            .split_once(')')?
            .0
            .split_once(',')?;
        Some(format!("{}.{}", suite.trim(), name.trim()))
    });
    tests.collect()
}

/// `def test_…pinned…(`, and every test of a `class …HostAllocator…`.
fn named_in_python(text: &str, patterns: &[&str]) -> Vec<String> {
    let mut class = "";
    let tests = text.lines().filter_map(|line| {
        if let Some(name) = line.strip_prefix("class ") {
            class = name;
        }
        let name = line.trim_start().strip_prefix("def ")?.split_once('(')?.0;
        let wanted = |it: &&str| name.contains(*it) || class.contains(*it);
        (name.starts_with("test_") && patterns.iter().any(wanted)).then(|| name.to_owned())
    });
    tests.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_tests_in_the_sources() {
        assert_eq!(
            named_in_cpp("TEST(A, b) {\n  TEST_X(c, d)\nTEST(A,e) {}"),
            ["A.b", "A.e"]
        );
        let python = "    def test_pinned_memory_x(self):\n    def helper_pinned_memory(self):\n    def test_other(self):\n";
        let pinned = Selection::Pinned.patterns();
        assert_eq!(named_in_python(python, pinned), ["test_pinned_memory_x"]);
        let python = "def test_graph_capture_simple(\n self):\ndef test_copy_non_blocking(self):\ndef test_other(self):\n";
        let gpu = Selection::Gpu.patterns();
        let found = ["test_graph_capture_simple", "test_copy_non_blocking"];
        assert_eq!(named_in_python(python, gpu), found);
        let python = "class TestCuda(TestCase):\n    def test_other(self):\nclass TestCachingHostAllocatorCudaGraph(TestCase):\n    def test_two_graphs(self):\n";
        assert_eq!(named_in_python(python, pinned), ["test_two_graphs"]);
    }

    #[test]
    fn a_folder_without_the_tests_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let message = Source::open(folder.path(), Selection::Pinned)
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("is not a PyTorch source tree"),
            "{message}"
        );
        for file in [CPP_TEST, PYTHON_TEST] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let message = Source::open(folder.path(), Selection::Pinned)
            .unwrap_err()
            .to_string();
        assert!(message.contains("0 in C++, 0 in Python"), "{message}");
    }
}
