//! Objects and programs with a sanitizer in them, compiled once of the same inputs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::Sanitizer;
use crate::build_wheel::compile;
use crate::support::paths;
use crate::support::refusal::{Refusal, refuse};
use crate::support::stamp::Inputs;

/// Warnings of ours are errors here as in the library; lines, but no variables, in the debug information.
const FLAGS: [&str; 7] = [
    "-std=c++20",
    "-O1",
    "-g1",
    "-pthread",
    "-Wall",
    "-Wextra",
    "-Werror",
];

/// Where all of it lies.
pub fn folder() -> PathBuf {
    paths::target().join("sanitize")
}

/// Files of a folder and of those in it with that ending, in order.
pub fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(self::files(&path, ending)?);
        } else if path.to_string_lossy().ends_with(ending) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Something to compile.
pub struct Unit<'a> {
    /// What to call it; with the sanitizer, a file name.
    pub name: &'a str,
    /// Compiled as one, in this order, since each by itself would read the same headers again.
    pub sources: Vec<PathBuf>,
    /// Folders of headers that are looked into. They are part of what it is made of, as are the headers beside
    /// the sources.
    pub include: Vec<PathBuf>,
    /// What the compiler is told besides.
    pub flags: Vec<String>,
}

impl Unit<'_> {
    /// The object file.
    pub fn object(&self, sanitizer: Sanitizer) -> Result<PathBuf> {
        let stem = format!("{}-{}", self.name, sanitizer.name());
        let object = folder().join(format!("{stem}.o"));
        let whole = folder().join(format!("{stem}.cpp"));
        fs::create_dir_all(folder()).with_context(|| format!("creating {}", folder().display()))?;
        let (text, arguments) = (self.text(), self.arguments(sanitizer));
        let inputs = self.inputs(&text, &arguments)?;
        inputs.make(&object, || {
            fs::write(&whole, &text).with_context(|| format!("writing {}", whole.display()))?;
            let mut command = Command::new("g++");
            command.args(&arguments).arg("-c").arg(&whole).arg("-o");
            run(command.arg(&object), self.name, sanitizer)
        })?;
        Ok(object)
    }

    /// All sources as one.
    fn text(&self) -> String {
        let lines = self.sources.iter();
        lines
            .map(|it| format!("#include \"{}\"\n", it.display()))
            .collect()
    }

    fn arguments(&self, sanitizer: Sanitizer) -> Vec<String> {
        let mut arguments: Vec<String> = FLAGS.map(str::to_owned).into();
        arguments.extend(sanitizer.flags().iter().map(|&it| it.to_owned()));
        arguments.extend(self.flags.iter().cloned());
        arguments.extend(self.include.iter().map(|it| format!("-I{}", it.display())));
        arguments
    }

    /// What it is made of.
    fn inputs(&self, text: &str, arguments: &[String]) -> Result<Inputs> {
        let mut inputs = compiler()?.text(text)?.text(&arguments.join("\n"))?;
        for source in &self.sources {
            inputs = inputs.file(source)?;
        }
        // A source finds the headers beside it without being told where they are.
        let beside = self.sources.iter().filter_map(|it| it.parent());
        let folders: BTreeSet<&Path> = beside.chain(self.include.iter().map(|it| &**it)).collect();
        for folder in folders {
            for header in files(folder, ".h")? {
                inputs = inputs.file(&header)?;
            }
        }
        Ok(inputs)
    }
}

/// A program of these objects and whatever else the linker is told.
pub fn link(
    name: &str,
    objects: &[PathBuf],
    more: &[String],
    sanitizer: Sanitizer,
) -> Result<PathBuf> {
    let program = folder().join(format!("{name}-{}", sanitizer.name()));
    let mut inputs = compiler()?.text(&more.join("\n"))?;
    for object in objects {
        inputs = inputs.file(object)?;
    }
    inputs.make(&program, || {
        let mut command = Command::new("g++");
        // What the program defines in place of libc's, libraries are to find, too.
        command
            .args(sanitizer.flags())
            .args(["-pthread", "-rdynamic"]);
        command.args(objects).args(more).arg("-o");
        run(command.arg(&program), name, sanitizer)
    })?;
    Ok(program)
}

fn compiler() -> Result<Inputs> {
    let versions = compile::compilers()?;
    Inputs::default().text(versions.get("g++").map_or("", String::as_str))
}

fn run(command: &mut Command, what: &str, sanitizer: Sanitizer) -> Result<()> {
    let output = command.output().context("running g++")?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(refusal(what, sanitizer, said.trim()).into())
}

/// Why something is not made, by what g++ says.
fn refusal(what: &str, sanitizer: Sanitizer, said: &str) -> Refusal {
    // The linker's word for a library; for a header it is "No such file or directory".
    let remedy = if said.contains("cannot find") {
        sanitizer.remedy()
    } else {
        "correct what g++ names, and run it again"
    };
    refuse(format!("{what} does not compile with a sanitizer"))
        .found(said)
        .expected("tests/sanitize and cxx-bridge/cpp to compile with g++ and its sanitizers (libtsan, libasan, libubsan)")
        .remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_that_is_missing_is_named_with_its_package() {
        for (sanitizer, said, package) in [
            (
                Sanitizer::Thread,
                "/usr/bin/ld: cannot find -ltsan: No such file or directory",
                "dnf install libtsan",
            ),
            (
                Sanitizer::Address,
                "/usr/bin/ld: cannot find libasan_preinit.o: No such file or directory",
                "dnf install libasan libubsan",
            ),
        ] {
            let text = refusal("churn", sanitizer, said).to_string();
            let remedy = text.lines().last().unwrap();
            assert!(
                remedy.contains("apt-get install libgcc-") && remedy.contains(package),
                "{text}"
            );
        }
        let text = refusal("churn", Sanitizer::Thread, "x.cpp:1: error: no").to_string();
        assert!(!text.contains("apt-get") && text.contains("correct what g++ names"));
    }

    #[test]
    fn a_header_beside_a_source_is_part_of_what_it_is_made_of() {
        let folder = tempfile::tempdir().unwrap();
        let (source, header) = (folder.path().join("x.cpp"), folder.path().join("x.h"));
        fs::write(&source, "#include \"x.h\"\n").unwrap();
        let unit = Unit {
            name: "x",
            sources: vec![source],
            include: Vec::new(),
            flags: Vec::new(),
        };
        let (output, made) = (folder.path().join("x.o"), std::cell::Cell::new(0));
        for (text, expected) in [("one", 1), ("one", 1), ("two", 2)] {
            fs::write(&header, text).unwrap();
            let make = || {
                made.set(made.get() + 1);
                Ok(fs::write(&output, "")?)
            };
            unit.inputs("", &[]).unwrap().make(&output, make).unwrap();
            assert_eq!(made.get(), expected, "{text}");
        }
    }
}
