//! What people call a program: its script or module, not its interpreter.

/// By the program's words, as `/proc/PID/cmdline` has them.
pub(super) fn name(words: &[u8]) -> String {
    let words = String::from_utf8_lossy(words);
    let mut words = words.split('\0');
    let own = base(words.next().unwrap_or_default());
    if !own.starts_with("python") {
        return own.to_owned();
    }
    while let Some(word) = words.next() {
        match word {
            "-m" => return words.next().unwrap_or(own).to_owned(),
            "-c" | "-" | "" => break,
            // Options with a word of their own.
            "-W" | "-X" => drop(words.next()),
            word if word.starts_with('-') => {}
            script => return base(script).to_owned(),
        }
    }
    own.to_owned()
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn a_script_is_named_and_its_interpreter_where_there_is_none() {
        for (words, expected) in [
            ("python\0/home/me/train.py\0--steps\x005\0", "train.py"),
            (
                "/usr/bin/python3.11\0-u\0-W\0ignore\0train.py\0",
                "train.py",
            ),
            ("python3\0-m\0my.module\0x\0", "my.module"),
            ("python3\0-c\0import torch\0", "python3"),
            ("python3\0", "python3"),
            ("./serve\0--port\x001\0", "serve"),
            ("", ""),
        ] {
            assert_eq!(name(words.as_bytes()), expected, "{words:?}");
        }
    }
}
