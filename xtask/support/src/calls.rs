//! Command lines of `cargo xtask` in scripts, workflows and documents.

/// The start of such a command line.
pub const COMMAND: &str = "cargo xtask ";
/// Stands in for a shell variable or a workflow expression.
const VALUE: &str = "2.15.0";

/// The arguments of each `cargo xtask` in a line, split as a shell would; variables become [`VALUE`].
pub fn commands(line: &str) -> impl Iterator<Item = Vec<String>> {
    line.split(COMMAND).skip(1).map(|rest| {
        let mut rest = rest.to_owned();
        while let Some(start) = rest.find("${{") {
            let Some(end) = rest[start..].find("}}") else {
                break;
            };
            rest.replace_range(start..start + end + 2, VALUE);
        }
        let end = rest
            .find(['|', '>', '&', ';', ')', '`', '#'])
            .unwrap_or(rest.len());
        let words = rest[..end].split_whitespace();
        // A list of arguments, `"${more[@]}"`, may be empty.
        let words = words.filter(|it| !it.contains("[@]") && *it != "\"$@\"");
        let plain = |word: &str| match word.find('$') {
            Some(_) => VALUE.to_owned(),
            None => word.trim_matches(['"', '\'']).to_owned(),
        };
        words.map(plain).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_taken_apart_as_a_shell_does() {
        let line = "out=$(cargo xtask venv --torch \"$version\" --stock) && cargo xtask test --quick | tee x";
        let found: Vec<_> = commands(line).collect();
        assert_eq!(found[0], ["venv", "--torch", VALUE, "--stock"]);
        assert_eq!(found[1], ["test", "--quick"]);
        let line = "run: cargo xtask bench --json ${{ env.FILE }} \"${more[@]}\"";
        let found: Vec<_> = commands(line).collect();
        assert_eq!(found, [["bench", "--json", VALUE]]);
    }
}
