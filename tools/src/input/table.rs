//! Tables of lifetimes: `id,lower,upper,size`, half-open, as planners exchange them.
//!
//! The first line names the columns, in any order; columns of other names are passed over. Memory is the blocks and
//! their ids; a line has a limit.

use std::fmt;
use std::io::{self, BufRead, Read as _, Write};

use pinbuddy_plan::Block;

/// The longest line, in bytes.
const LONGEST_LINE: u64 = 4096;

const COLUMNS: [&str; 4] = ["id", "lower", "upper", "size"];

/// Blocks, each with the id that it came with.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// As they were written.
    pub ids: Vec<String>,
    /// Their lifetimes and sizes.
    pub blocks: Vec<Block>,
}

/// A table that cannot be used.
#[derive(Debug)]
pub struct Error {
    line: u64,
    what: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for Error {}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    ///
    /// The first line that is none.
    pub fn read(mut from: impl BufRead) -> Result<Self, Error> {
        let (mut table, mut line, mut text) = (Self::default(), 0, String::new());
        let mut places = None;
        loop {
            line += 1;
            let wrong = |what: String| Error { line, what };
            text.clear();
            let read = from.by_ref().take(LONGEST_LINE).read_line(&mut text);
            match read {
                Ok(0) => break,
                Ok(_) if text.len() as u64 == LONGEST_LINE => {
                    let what = format!("expected at most {LONGEST_LINE} bytes, found more");
                    return Err(wrong(what));
                }
                Ok(_) => {}
                Err(why) => {
                    let what = "expected more of the table, found that it cannot be read";
                    return Err(wrong(format!("{what}: {why}")));
                }
            }
            let row_text = text.trim_end_matches(['\n', '\r']);
            let fields = row_text.split(',').map(str::trim);
            let Some(places) = places else {
                places = Some(columns(fields).map_err(wrong)?);
                continue;
            };
            if let Some((id, block)) = row(fields, places).map_err(wrong)? {
                table.ids.push(id);
                table.blocks.push(block);
            }
        }
        let none = "expected the names of the columns, id,lower,upper,size; found an empty file";
        let (line, what) = (1, none.to_owned());
        places.map(|_| table).ok_or(Error { line, what })
    }

    /// Writes it with a column for offsets, one for each block.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub fn write(&self, offsets: &[u64], to: &mut impl Write) -> io::Result<()> {
        writeln!(to, "id,lower,upper,size,offset")?;
        for ((id, block), offset) in self.ids.iter().zip(&self.blocks).zip(offsets) {
            let Block { lower, upper, size } = block;
            writeln!(to, "{id},{lower},{upper},{size},{offset}")?;
        }
        Ok(())
    }
}

/// Where each of [`COLUMNS`] is.
fn columns<'t>(fields: impl Iterator<Item = &'t str>) -> Result<[usize; 4], String> {
    let names: Vec<&str> = fields.collect();
    let mut places = [0; 4];
    for (place, column) in places.iter_mut().zip(COLUMNS) {
        let found = names.iter().position(|name| *name == column);
        *place = found
            .ok_or_else(|| format!("expected the columns id,lower,upper,size by their names, found no {column}"))?;
    }
    Ok(places)
}

/// A block; none for an empty line.
fn row<'t>(fields: impl Iterator<Item = &'t str>, places: [usize; 4]) -> Result<Option<(String, Block)>, String> {
    let fields: Vec<&str> = fields.collect();
    if fields == [""] {
        return Ok(None);
    }
    let field = |at: usize| {
        let column = COLUMNS[at];
        let text = fields.get(places[at]).copied();
        text.ok_or_else(|| format!("expected a column {column}, found {} columns", fields.len()))
    };
    let number = |at: usize| {
        let (text, column) = (field(at)?, COLUMNS[at]);
        text.parse::<u64>().map_err(|_| {
            let shown: String = text.chars().take(40).flat_map(char::escape_debug).collect();
            format!("expected {column} to be a whole number, found {shown:?}")
        })
    };
    let (lower, upper, size) = (number(1)?, number(2)?, number(3)?);
    Ok(Some((field(0)?.to_owned(), Block { lower, upper, size })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_their_names() {
        let text = "size,id,note,lower,upper\r\n 5, a, x,0 ,3\r\n\r\n6,b,,1,2";
        let table = Table::read(text.as_bytes()).unwrap();
        assert_eq!(table.ids, ["a", "b"]);
        let mut written = Vec::new();
        table.write(&[7, 8], &mut written).unwrap();
        let expected = "id,lower,upper,size,offset\na,0,3,5,7\nb,1,2,6,8\n";
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }

    #[test]
    fn what_is_no_table_is_refused_with_its_line() {
        let long = format!("id,lower,upper,size\n{}", "1".repeat(5000));
        let texts = [
            &b""[..],
            b"1,2,3,4\n",
            b"id,lower,upper,size\n1,2,3\n",
            b"id,lower,upper,size\n1,2,-3,4\n",
            long.as_bytes(),
            b"id,lower,upper,size\n\xff\n",
        ];
        let said = texts.map(|it| Table::read(it).unwrap_err().to_string());
        insta::assert_snapshot!(said.join("\n"), @r#"
        line 1: expected the names of the columns, id,lower,upper,size; found an empty file
        line 1: expected the columns id,lower,upper,size by their names, found no id
        line 2: expected a column size, found 3 columns
        line 2: expected upper to be a whole number, found "-3"
        line 2: expected at most 4096 bytes, found more
        line 2: expected more of the table, found that it cannot be read: stream did not contain valid UTF-8
        "#);
    }
}
