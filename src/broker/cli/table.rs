//! Rows of text under headings, each column as wide as its widest cell.

/// A table in the making.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(headings: &[&str]) -> Table {
        Table { rows: vec![headings.iter().map(|it| (*it).to_owned()).collect()] }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// On standard output; nothing without a row.
    pub fn print(&self) {
        if self.rows.len() == 1 {
            return;
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            println!("  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
    }
}
