//! A printed table with a column for each allocator.

use std::fmt;

/// Formatted cells; a row may be shorter.
#[derive(Debug, Default)]
pub struct Matrix {
    title: String,
    columns: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
}

impl Matrix {
    /// A table without rows.
    pub fn new(title: impl Into<String>, columns: impl IntoIterator<Item = &'static str>) -> Self {
        Self {
            title: title.into(),
            columns: columns.into_iter().map(str::to_owned).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; `None` is an empty cell.
    pub fn row(
        &mut self,
        name: impl Into<String>,
        cells: impl IntoIterator<Item = Option<f64>>,
        digits: usize,
    ) {
        let cells = cells
            .into_iter()
            .map(|cell| cell.map_or_else(|| "-".to_owned(), |it| format!("{it:.digits$}")));
        self.rows.push((name.into(), cells.collect()));
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.rows.iter().map(|(name, _)| name.chars().count());
        let first = names.chain([self.title.chars().count()]).max().unwrap_or(0);
        write!(f, "{:<first$}", self.title)?;
        for column in &self.columns {
            write!(f, "{:>width$}", column, width = width(column))?;
        }
        for (name, cells) in &self.rows {
            write!(f, "\n{name:<first$}")?;
            for (column, cell) in self.columns.iter().zip(cells) {
                write!(f, "{cell:>width$}", width = width(column))?;
            }
        }
        writeln!(f)
    }
}

fn width(column: &str) -> usize {
    column.chars().count().max(8) + 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_up() {
        let mut matrix = Matrix::new("ns a pair", ["stock", "buddy-181094"]);
        matrix.row("8 MiB", [Some(72.26), Some(130.0)], 1);
        matrix.row("a crowd of 1000000", [Some(1234.5), None], 1);
        insta::assert_snapshot!(matrix.to_string(), @"
        ns a pair               stock   buddy-181094
        8 MiB                    72.3          130.0
        a crowd of 1000000     1234.5              -
        ");
    }
}
