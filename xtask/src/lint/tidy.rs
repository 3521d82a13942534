//! The shape of sources: a head comment, a length limit, no stray blanks, no names of single machines or
//! registries.

use super::File;

/// The most lines of a source file. Exceptions are listed below, with reasons.
const LONGEST: usize = 400;
const LONGER: [(&str, &str); 1] = [("tests/cuda-sim/src/bindings.rs", "made by bindgen")];
const SOURCES: [&str; 7] = ["rs", "cpp", "h", "c", "py", "sh", "yml"];
/// Generated files, and parts of upstream's text.
const NOT_OURS: [&str; 5] = ["snap", "svg", "json", "patch", "lock"];
/// Hosts of package registries, in two halves, or this file would name them.
const HOSTS: [(&str, &str); 6] = [
    ("pypi.", "org"),
    ("python", "hosted.org"),
    ("crates.", "io"),
    ("registry.", "npmjs"),
    ("deb.", "debian.org"),
    ("download.pytorch.", "org"),
];
/// Folders of one machine, in two halves.
const FOLDERS: [(&str, &str); 2] = [("/wo", "rk/"), ("/ro", "ot/")];

/// All complaints, one per line.
pub fn check(files: &[File]) -> Vec<String> {
    let mut complaints: Vec<String> = files.iter().flat_map(check_file).collect();
    for (path, _) in LONGER {
        let length = files.iter().find(|it| it.path == path).map(length);
        if length.is_some_and(|it| it <= LONGEST) {
            complaints.push(format!(
                "{path} is no longer too long: take it out of LONGER"
            ));
        }
    }
    complaints
}

fn length(file: &File) -> usize {
    file.text.as_ref().map_or(0, |it| it.lines().count())
}

fn check_file(file: &File) -> Vec<String> {
    let (path, Some(text)) = (&file.path, &file.text) else {
        return Vec::new();
    };
    let kind = path.rsplit_once('.').map_or("", |(_, kind)| kind);
    if NOT_OURS.contains(&kind) {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    let source = SOURCES.contains(&kind) || file.is_script();
    if source && !text.trim().is_empty() && !has_head(path, text) {
        complaints.push(format!(
            "{path}:1: no comment at its head that says what it is for"
        ));
    }
    let listed = LONGER.iter().any(|(name, _)| name == path);
    if source && length(file) > LONGEST && !listed {
        let lines = length(file);
        complaints.push(format!("{path}: {lines} lines, more than {LONGEST}"));
    }
    for (number, line) in text.lines().enumerate() {
        complaints.extend(check_line(line).map(|what| format!("{path}:{}: {what}", number + 1)));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        complaints.push(format!("{path}: the last line does not end"));
    }
    complaints
}

fn check_line(line: &str) -> Option<String> {
    if line.ends_with([' ', '\t', '\r']) {
        return Some("blanks at the end of the line".to_owned());
    }
    if line.contains('\t') {
        return Some("a tab".to_owned());
    }
    let hosts = HOSTS.iter().map(|(a, b)| format!("{a}{b}"));
    if let Some(host) = hosts.into_iter().find(|it| line.contains(it)) {
        return Some(format!("{host}: a registry is the client's to know"));
    }
    let folders = FOLDERS.iter().map(|(a, b)| format!("{a}{b}"));
    let in_it = |folder: &String| {
        let after = line.split_once(folder.as_str()).map(|(_, after)| after);
        after.is_some_and(|it| it.starts_with(|c: char| c.is_alphanumeric() || c == '.'))
    };
    let folder = folders.into_iter().find(in_it)?;
    Some(format!("{folder}: a folder of one machine"))
}

/// The first line, or the second after `#!`; a C++ file may leave it to its header.
fn has_head(path: &str, text: &str) -> bool {
    let mut lines = text.lines().skip_while(|it| it.starts_with("#!"));
    let first = lines.next().unwrap_or_default();
    let (stem, kind) = path.rsplit_once('.').unwrap_or((path, "sh"));
    let name = stem.rsplit('/').next().unwrap_or_default();
    match kind {
        "rs" => first.starts_with("//!"),
        "cpp" | "c" | "h" => {
            first.starts_with("//")
                || first.starts_with("/*")
                || first == format!("#include \"{name}.h\"")
        }
        "py" => first.starts_with("\"\"\"") || first.starts_with("# "),
        _ => first.starts_with("# "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        let (path, text) = (path.to_owned(), Some(text.to_owned()));
        File { path, text }
    }

    #[test]
    fn what_is_complained_of() {
        let folder = FOLDERS.map(|(a, b)| format!("{a}{b}"));
        let files = [
            file("a.rs", "use std;\n"),
            file("b.cpp", "#include \"a.h\"\n"),
            file("c.sh", "#!/usr/bin/env bash\nset -e \n"),
            file("d.py", &format!("# d\n\tx = \"{}x\"\n", folder[0])),
            file("e.py", &format!("# e\nx = \"{}x\"\n", folder[0])),
            file("f.h", &("// f\n".repeat(401) + "//")),
            file("README.md", &format!("{}{}\n", HOSTS[0].0, HOSTS[0].1)),
        ];
        let host = format!("{}{}", HOSTS[0].0, HOSTS[0].1);
        let said = check(&files).join("\n");
        insta::assert_snapshot!(said.replace(&host, "HOST").replace(&folder[0], "FOLDER"));
    }

    #[test]
    fn what_is_fine() {
        let files = [
            file("a.rs", "//! A.\n"),
            file("tests/b.cpp", "#include \"b.h\"\n"),
            file(".ci/run", "#!/usr/bin/env bash\n# It.\n"),
            file("__init__.py", ""),
            file("x.patch", "-\t \n"),
            file(
                "check.py",
                &format!(
                    "# c\nassert \"{}{}\" not in x\n",
                    FOLDERS[1].0, FOLDERS[1].1
                ),
            ),
        ];
        assert_eq!(check(&files), [""; 0]);
    }
}
