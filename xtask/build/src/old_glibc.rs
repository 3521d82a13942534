//! The interface of an older glibc, to link against: whatever machine builds, the result runs where official wheels do.
//!
//! For each of glibc's libraries a stub is made with the same names, each at the newest version that [`NEWEST`] allows;
//! what is only newer has no place in it. A strong reference to such a name is met by `old_glibc.c` or does not link; a
//! weak one is looked up at run time. Stubs are read by linkers alone.
//!
//! Invariant: a stub promises nothing that this machine's glibc lacks, so the result runs here, too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use xshell::{Shell, cmd};

use xtask_support::hash::Digest;
use xtask_support::scratch::Scratch;
use xtask_wheel::platform::{Symbol, Version, exported};

/// The interface: that of manylinux_2_28, which official wheels have.
const NEWEST: [u32; 2] = [2, 28];

/// What glibc lacks there.
const ADDED: &str = include_str!("old_glibc.c");

/// Stubs that an earlier version of this file has made are no longer used.
const OWN: &str = include_str!("old_glibc.rs");

/// A name of glibc's static part, by which a library's handlers go with it. Some machines have the same in libc.so.6, for
/// programs that were linked long ago.
const STATIC: &str = "pthread_atfork";

/// glibc's libraries, each with the beginnings of the names that libc.so.6 took over from it in 2.34. Before, its users
/// had to name it.
const LIBRARIES: [(&str, &str, &[&str]); 6] = [
    ("libc.so.6", "stub_c", &[]),
    ("libm.so.6", "libm.so", &[]),
    ("libpthread.so.0", "libpthread.so", &["pthread_", "sem_"]),
    ("libdl.so.2", "libdl.so", &["dl"]),
    ("librt.so.1", "librt.so", &["aio_", "mq_", "shm_", "timer_"]),
    (LOADER, "stub_loader", &[]),
];

#[cfg(target_arch = "x86_64")]
const LOADER: &str = "ld-linux-x86-64.so.2";
#[cfg(target_arch = "aarch64")]
const LOADER: &str = "ld-linux-aarch64.so.1";

/// Makes the folder below `target` that linkers are to search first, unless it is there.
pub(crate) fn ensure(target: &Path) -> Result<PathBuf> {
    let shell = Shell::new()?;
    let mut stubs: BTreeMap<&str, Vec<Symbol>> = BTreeMap::new();
    for (library, ..) in LIBRARIES {
        let path = of_machine(&shell, library)?;
        let all = exported(&fs::read(&path)?).context(path.display().to_string())?;
        for (symbol, moved) in offered(all) {
            let owner = owner(library, &symbol.name, moved);
            stubs.entry(owner).or_default().push(symbol);
        }
    }
    let rest = of_machine(&shell, "libc_nonshared.a")?;
    let compiler = cmd!(shell, "g++ --version").quiet().read()?;
    let key = format!("{ADDED}{OWN}{stubs:?}{}{compiler}", rest.display());
    let key = Digest::of(key.as_bytes()).hex();
    let folder = std::path::absolute(target)?.join(format!("glibc-{}", &key[..16]));
    if folder.is_dir() {
        return Ok(folder);
    }
    let scratch = Scratch::folder(&folder)?;
    shell.change_dir(scratch.path());
    for (library, file, _) in LIBRARIES {
        let (names, versions) = stub(&stubs[library]);
        shell.write_file("stub.s", names)?;
        shell.write_file("stub.map", versions)?;
        let soname = format!("-Wl,-soname,{library},--version-script,stub.map");
        let compile = cmd!(shell, "g++ -shared -nostdlib {soname} -o {file} stub.s");
        compile.quiet().run()?;
    }
    shell.write_file("added.c", ADDED)?;
    let options = ["-O2", "-fPIC", "-ffunction-sections", "-x", "c"];
    let compile = cmd!(shell, "g++ {options...} -c -o added.o added.c");
    compile.quiet().run()?;
    let stubs = LIBRARIES.map(|it| it.1);
    // Those that only some programs need come after what may need them.
    let script =
        format!("GROUP ( {} added.o \"{}\" AS_NEEDED ( {} ) )\n", stubs[0], rest.display(), stubs[1..].join(" "),);
    shell.write_file("libc.so", script)?;
    scratch.publish(&folder)?;
    Ok(folder)
}

/// This machine's file of that name.
fn of_machine(shell: &Shell, library: &str) -> Result<PathBuf> {
    let ask = cmd!(shell, "g++ -print-file-name={library}");
    let path = PathBuf::from(ask.quiet().read()?);
    ensure!(path.is_absolute(), "g++ finds no {library}: is glibc's development package installed?");
    Ok(path)
}

/// Each name at its newest allowed version, and whether it has a newer one.
fn offered(all: Vec<Symbol>) -> impl Iterator<Item = (Symbol, bool)> {
    let mut names: BTreeMap<String, (Option<(Version, Symbol)>, bool)> = BTreeMap::new();
    for symbol in all.into_iter().filter(|it| it.name != STATIC) {
        let number = symbol.version.strip_prefix("GLIBC_");
        let Some(version) = number.and_then(Version::parse) else {
            continue;
        };
        let (newest, newer) = names.entry(symbol.name.clone()).or_default();
        if version > Version(NEWEST.to_vec()) {
            *newer = true;
        } else if newest.as_ref().is_none_or(|it| it.0 < version) {
            *newest = Some((version, symbol));
        }
    }
    names.into_values().filter_map(|(newest, newer)| Some((newest?.1, newer)))
}

/// The library that had a name of `library` before 2.34.
fn owner(library: &'static str, name: &str, moved: bool) -> &'static str {
    let before = LIBRARIES.iter().find(|(.., starts)| starts.iter().any(|it| name.starts_with(it)));
    before.filter(|_| moved).map_or(library, |it| it.0)
}

/// A stub in assembler, and its version script.
fn stub(symbols: &[Symbol]) -> (String, String) {
    let (mut text, mut versions) = (String::new(), BTreeMap::<&str, String>::new());
    for it in symbols {
        let name = &it.name;
        let kind = match it.data {
            Some(size) => format!("object; .size {name}, {size}"),
            None => "function".into(),
        };
        text += &format!(".globl {name}; .type {name}, %{kind}\n{name}:\n");
        *versions.entry(&it.version).or_default() += &format!(" {name};");
    }
    let versions = versions.iter().map(|(version, names)| format!("{version} {{{names} }};\n"));
    (text, versions.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask_wheel::platform::Floors;

    #[test]
    fn the_newest_name_that_is_allowed_in_the_library_that_had_it() {
        let symbol = |name: &str, version: &str| Symbol { name: name.into(), version: version.into(), data: None };
        let all = [
            ("pthread_cond_wait", "GLIBC_2.2.5"),
            ("pthread_cond_wait", "GLIBC_2.3.2"),
            ("dlsym", "GLIBC_2.34"),
            ("dlsym", "GLIBC_2.2.5"),
            ("gettid", "GLIBC_2.30"),
            ("internal", "GLIBC_PRIVATE"),
            ("pthread_atfork", "GLIBC_2.2.5"),
        ];
        let all = all.map(|(name, version)| symbol(name, version)).into();
        let found: Vec<_> =
            offered(all).map(|(it, moved)| (owner("libc.so.6", &it.name, moved), it.version, it.name)).collect();
        let expected = [("libdl.so.2", "GLIBC_2.2.5", "dlsym"), ("libc.so.6", "GLIBC_2.3.2", "pthread_cond_wait")];
        assert_eq!(found, expected.map(|(owner, version, name)| (owner, version.into(), name.into())));
    }

    /// A program with threads, a constructor, waits by another clock, and what 2.28 lacks.
    #[test]
    fn a_program_of_the_old_interface_runs_here() {
        let work = tempfile::tempdir().unwrap();
        let folder = ensure(work.path()).unwrap();
        assert_eq!(ensure(work.path()).unwrap(), folder, "it is there");
        let shell = Shell::new().unwrap();
        shell.change_dir(work.path());
        let program = include_str!("old_glibc_tests.cpp");
        shell.write_file("program.cpp", program).unwrap();
        let link = "-Wl,--allow-shlib-undefined";
        cmd!(shell, "g++ -pthread -L{folder} {link} -o program program.cpp").run().unwrap();
        let floors = Floors::read(&work.path().join("program")).unwrap();
        assert!(floors.newest["GLIBC"] <= Version(NEWEST.to_vec()), "{floors}");
        assert_eq!(cmd!(shell, "./program argument").read().unwrap(), "2 argument 12 1 1");
    }
}
