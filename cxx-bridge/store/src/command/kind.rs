//! What the name of an option says of its value.
//!
//! Pure. Names are judged by their words, which `_`, `-` and `.` separate: `num_key_value_heads` is no key, and `--export` no port.

/// See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It says nothing of memory.
    Seed,
    /// It is nobody's business.
    Secret,
    /// The same, unless it is a number: of a `token` there may be 4096.
    PerhapsSecret,
    /// A model.
    Model,
    /// A path to read.
    Path,
    /// A path to write.
    Output,
    /// None of these.
    Plain,
}

/// Options that say nothing of memory, beside those whose name has `seed` in it or ends in `port`. Not `rank`, which may be LoRA's.
const DROPPED: [&str; 7] =
    ["local_rank", "global_rank", "world_rank", "node_rank", "master_addr", "rdzv_endpoint", "rdzv_id"];

/// Words that name a secret wherever they stand.
const SECRET: [&str; 10] = [
    "apikey",
    "apikeys",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "secret",
    "secrets",
];

/// Words that do so behind one of these, and may do so at the end of a name.
const KEYS: [&str; 4] = ["key", "keys", "token", "tokens"];
const BEFORE_KEYS: [&str; 4] = ["api", "access", "auth", "secret"];

/// How words end in names of options for paths.
const FOR_PATHS: [&str; 4] = ["dir", "path", "file", "folder"];

/// Words in names of options for results, also with an `s` or one of [`FOR_PATHS`] behind them.
const FOR_OUTPUTS: [&str; 9] = ["out", "output", "save", "log", "result", "metric", "report", "export", "dump"];

impl Kind {
    /// Of an option with this name, which has no dashes in front.
    pub(super) fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase().replace('-', "_");
        let words: Vec<&str> = name.split(['_', '.']).collect();
        let last = words.last().copied().unwrap_or_default();
        let behind_dots = name.rsplit('.').next().unwrap_or(&name);
        if name.contains("seed") || last == "port" || DROPPED.contains(&behind_dots) {
            return Self::Seed;
        }
        let is_key = |pair: &[&str]| BEFORE_KEYS.contains(&pair[0]) && KEYS.contains(&pair[1]);
        if words.iter().any(|it| SECRET.contains(it)) || words.windows(2).any(is_key) {
            return Self::Secret;
        }
        // `tokens` alone are those of a text.
        if matches!(last, "key" | "keys" | "token") {
            return Self::PerhapsSecret;
        }
        if words.iter().any(|it| is_for_outputs(it)) {
            return Self::Output;
        }
        if name.contains("model") && !name.ends_with("dir") {
            return Self::Model;
        }
        let is_for_paths = |word: &&str| FOR_PATHS.iter().any(|it| word.ends_with(it));
        match words.iter().any(is_for_paths) {
            true => Self::Path,
            false => Self::Plain,
        }
    }
}

fn is_for_outputs(word: &str) -> bool {
    let bare = FOR_PATHS.iter().find_map(|it| word.strip_suffix(it));
    let bare = bare.unwrap_or(word);
    let bare = bare.strip_suffix('s').unwrap_or(bare);
    FOR_OUTPUTS.contains(&bare)
}
