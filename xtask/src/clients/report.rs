//! The outcome of one run of a client: its report, exit and warnings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct Ran {
    /// `exit code 0`, `signal 11`, `stopped after 300 s`.
    pub exit: String,
    pub seconds: f64,
    /// The lines of standard error, deduplicated, without parts that vary from run to run.
    pub warnings: BTreeSet<String>,
    /// The exception that ended the program.
    pub exception: Option<String>,
    /// The last lines of standard error, unchanged, for messages.
    #[serde(skip)]
    pub last_words: String,
    /// None if the program did not finish.
    pub report: Option<Report>,
}

/// What `tests/clients/client.py` prints.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    pub results: BTreeMap<String, Value>,
    /// Statistics that have to be equal.
    pub statistics: BTreeMap<String, i64>,
    /// The names of all statistics.
    pub names: Vec<String>,
    /// Peak of pinned bytes.
    pub peak_pinned: u64,
    /// Peak of bytes in use, as counted by the allocator: stock rounds up.
    pub peak_active: u64,
    /// How often memory was pinned.
    pub pins: u64,
}

impl Ran {
    /// Whether it ended normally.
    pub fn succeeded(&self) -> bool {
        self.exit == SUCCESS && self.report.is_some()
    }
}

/// The end of a successful program.
pub const SUCCESS: &str = "exit code 0";

/// The last line of standard output, if it is a report.
pub fn read(output: &str) -> Option<Report> {
    serde_json::from_str(output.trim_end().lines().last()?).ok()
}

/// What Python says above an exception that ended a thread or a child, or that it went past. Which of these notice that a
/// program ends, and in which order, is a race.
const BESIDE_THE_PROGRAM: [&str; 3] = ["Exception in thread ", "Exception ignored in", "Process "];

/// The exception that ended the program itself, of all that Python said: the last one of its main thread.
pub fn exception(text: &str) -> Option<String> {
    let (mut found, mut above, mut is_below_a_traceback) = (None, "", false);
    for line in text.lines().filter(|it| !it.trim().is_empty()) {
        if line == "Traceback (most recent call last):" {
            is_below_a_traceback = !BESIDE_THE_PROGRAM.iter().any(|it| above.starts_with(it));
        } else if is_below_a_traceback && let Some(name) = exception_of(line) {
            found = Some(name.to_owned());
            is_below_a_traceback = false;
        }
        above = line;
    }
    found
}

/// `torch.AcceleratorError` of `torch.AcceleratorError: CUDA error: out of memory`.
fn exception_of(line: &str) -> Option<&str> {
    let name = line.split(':').next()?;
    let is_name =
        |it: &str| !it.is_empty() && it.chars().all(|it| it.is_alphanumeric() || it == '_');
    name.split('.').all(is_name).then_some(name)
}

/// The stack trace that torch prints below a warning of its C++ code.
const BELOW_A_WARNING: [&str; 5] = [
    "frame #",
    "<omitting python frames>",
    "Exception raised from ",
    "Search for `cuda",
    " (function ",
];

/// The lines of standard error, made comparable: numbers and addresses are removed, and folders replaced by names.
pub fn warnings(text: &str, environments: &Path, places: &[(&Path, &str)]) -> BTreeSet<String> {
    // Progress bars overwrite their own line.
    let lines = text.split(['\n', '\r']).map(str::trim_end);
    let below = |line: &str| BELOW_A_WARNING.iter().any(|it| line.starts_with(it));
    let lines = lines.filter(|it| !it.is_empty() && !below(it));
    let named = |line: &str| {
        let mut line = without_environments(line, environments);
        for (folder, name) in places {
            line = line.replace(&folder.display().to_string(), name);
        }
        line
    };
    lines.map(|line| plain(&named(line))).collect()
}

/// Removes the environment's name, since environments link to each other.
fn without_environments(line: &str, folder: &Path) -> String {
    let folder = format!("{}/", folder.display());
    let mut parts = line.split(&folder);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("ENVIRONMENT");
        text.push_str(part.find('/').map_or("", |at| &part[at..]));
    }
    text
}

fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("/tmp/") {
            text.push_str("/tmp/#");
            rest.find(|it: char| it.is_whitespace() || "'\",:;)".contains(it))
        } else if starts_with_uuid(rest) {
            text.push('#');
            Some(UUID)
        } else if let Some(address) = rest.strip_prefix("0x") {
            text.push('#');
            let end = address.find(|it: char| !it.is_ascii_hexdigit());
            end.map(|it| it + 2)
        } else if first.is_ascii_digit() {
            text.push('#');
            rest.find(|it: char| !it.is_ascii_digit())
        } else {
            text.push(first);
            Some(first.len_utf8())
        };
        rest = &rest[length.unwrap_or(rest.len())..];
    }
    text
}

/// The length of `4b5a7f3e-07c5-4c5b-9a55-0d1e6a2b8c9f`.
const UUID: usize = 36;

fn starts_with_uuid(text: &str) -> bool {
    let digit = |at: usize, it: u8| match at {
        8 | 13 | 18 | 23 => it == b'-',
        _ => it.is_ascii_hexdigit(),
    };
    let first = text.as_bytes().get(..UUID);
    first.is_some_and(|it| it.iter().enumerate().all(|(at, &it)| digit(at, it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_the_last_line() {
        let line = r#"{"results": {"data": "ab"}, "statistics": {"active_requests.freed": 3}, "names": ["a"],
                       "peak_pinned": 8, "peak_active": 4, "pins": 2}"#;
        let line = line.replace('\n', " ");
        let report = read(&format!("said before\n{line}\n")).unwrap();
        assert_eq!((report.peak_pinned, report.pins), (8, 2));
        assert!(read("").is_none() && read("Traceback").is_none());
        assert!(read(&line.replace("peak_active", "peak_activ")).is_none());
    }

    /// A DataLoader's thread finds that the workers' pipes are closed after the program failed, or before Python says so.
    #[test]
    fn the_programs_exception_is_its_main_threads_whoever_else_notices() {
        let main = "Traceback (most recent call last):\n  File \"loader.py\", line 36, in program\n    \
                    for batch in loader:\ntorch.AcceleratorError: Caught AcceleratorError in pin memory thread.\n\
                    Original Traceback (most recent call last):\n  File \"x.py\"\n\
                    RuntimeError: CUDA error: out of memory\n\n";
        let thread = "Exception in thread Thread-1 (_pin_memory_loop):\nTraceback (most recent call last):\n  \
                      File \"y.py\"\nConnectionResetError: [Errno 104] Connection reset by peer\n";
        let worker = "Process ForkProcess-2:\nTraceback (most recent call last):\n  File \"z.py\"\nEOFError\n";
        for text in [
            main.to_owned(),
            format!("{main}{thread}"),
            format!("{thread}{worker}\n{main}"),
        ] {
            let found = exception(&text);
            assert_eq!(found.as_deref(), Some("torch.AcceleratorError"), "{text}");
        }
        assert_eq!(exception(&format!("{thread}{worker}")), None);
        assert_eq!(exception("terminate called\nError: x\n"), None);
        let chained = format!(
            "{main}During handling of the above exception, another exception occurred:\n\n\
             Traceback (most recent call last):\n  File \"x.py\"\nKeyboardInterrupt\n"
        );
        assert_eq!(exception(&chained).as_deref(), Some("KeyboardInterrupt"));
    }

    #[test]
    fn what_differs_from_run_to_run_is_not_compared() {
        let places = [(Path::new("/out/x"), "WORK")];
        let text = "[W1122 20:17:55.1 a.cpp:7] Warning: x (function f)\n\
                    /venv/stock/lib/a.py:3: FutureWarning: at 0x7fab01, pid 17, in /tmp/tmpab_3/f'\n\
                    \n  0%|  | 0/3\r 33%|  | 1/3\n/out/x/y of Größe 3\n\
                    id ab5a7f3e-07c5-4c5b-9a55-0d1e6a2b8c9f, not ab5a7f3e-07c5\n\
                    frame #0: c10::Error::Error\n\
                    [W1122 20:18:01.22 a.cpp:7] Warning: x (function f)\n";
        let found: Vec<_> = warnings(text, Path::new("/venv"), &places)
            .into_iter()
            .collect();
        let expected = [
            " #%|  | #/#",
            "ENVIRONMENT/lib/a.py:#: FutureWarning: at #, pid #, in /tmp/#'",
            "  #%|  | #/#",
            "WORK/y of Größe #",
            "id #, not ab#a#f#e-#c#",
            "[W# #:#:#.# a.cpp:#] Warning: x (function f)",
        ];
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
