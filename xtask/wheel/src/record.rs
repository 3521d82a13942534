//! RECORD: one CSV row per file, with hash and size.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result, bail};

use xtask_support::hash::Digest;

/// What RECORD says of one file, `sha256=…` and the size; `None` for RECORD's own row.
pub type Fingerprint = Option<(String, u64)>;

/// One row as we write it: the path inside the wheel, and the file's fingerprint.
pub type Row = (String, Fingerprint);

/// A row for a file with these contents.
pub fn row(path: &str, bytes: &[u8]) -> Row {
    let hash = format!("sha256={}", Digest::of(bytes).base64());
    (path.to_owned(), Some((hash, bytes.len() as u64)))
}

/// Reads a RECORD into a map; a path that occurs twice is an error.
pub fn parse(text: &str) -> Result<BTreeMap<String, Fingerprint>> {
    let mut rows = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() {
            continue;
        }
        let at = format!("RECORD, line {}", number + 1);
        let (path, hash, size) = fields(line).with_context(|| format!("{at}: not three fields"))?;
        let fingerprint = match hash {
            "" => None,
            it if !it.starts_with("sha256=") => {
                bail!("{at}: {path} has the hash {it}, and only sha256 is read here")
            }
            it => {
                let bytes = size.parse();
                let bytes = bytes.with_context(|| format!("{at}: the size {size:?}"))?;
                Some((it.to_owned(), bytes))
            }
        };
        if rows.insert(path.clone(), fingerprint).is_some() {
            bail!("RECORD lists {path} twice");
        }
    }
    Ok(rows)
}

/// Writes rows in the order given.
pub fn format(rows: &[Row]) -> String {
    let mut text = String::new();
    for (path, fingerprint) in rows {
        let path = quote(path);
        let _ = match fingerprint {
            Some((hash, size)) => writeln!(text, "{path},{hash},{size}"),
            None => writeln!(text, "{path},,"),
        };
    }
    text
}

fn quote(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// The path, the hash and the size in a line of CSV; none if it has not three fields. A quoted path may hold commas and
/// doubled quotes, not line ends.
fn fields(line: &str) -> Option<(String, &str, &str)> {
    let mut fields = line.rsplitn(3, ',');
    let [size, hash] = [fields.next()?, fields.next()?].map(|it| it.trim_matches('"'));
    let path = fields.next()?;
    let Some(quoted) = path.strip_prefix('"') else {
        return (!path.contains(',')).then(|| (path.to_owned(), hash, size));
    };
    let doubled = quoted.strip_suffix('"')?;
    let is_one = !doubled.replace("\"\"", "").contains('"');
    is_one.then(|| (doubled.replace("\"\"", "\""), hash, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_commas_and_quotes_survive() {
        let rows =
            [row("torch/a,b.py", b"x"), row("torch/say \"hi\".py", b""), ("torch-1.dist-info/RECORD".into(), None)];
        let text = format(&rows);
        insta::assert_snapshot!(text);
        let read = parse(&text).unwrap();
        assert_eq!(read.len(), rows.len());
        for (path, fingerprint) in rows {
            assert_eq!(read[&path], fingerprint);
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, complaint) in [
            ("a,sha256=x,1\na,sha256=x,1\n", "twice"),
            ("a,md5=x,1\n", "only sha256"),
            ("a,sha256=x\n", "not three fields"),
            ("a,b,sha256=x,1\n", "not three fields"),
            ("\"a,sha256=x,1\n", "line 1"),
            ("\"a\"b,sha256=x,1\n", "line 1"),
            ("a,sha256=x,many\n", "the size"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(complaint), "{error}");
        }
    }
}
