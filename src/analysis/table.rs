//! A table for other programs, as CSV or Markdown.

/// Rows of text under a heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name, fit for a file's name.
    pub name: &'static str,
    /// Names of its columns.
    pub heading: Vec<String>,
    /// Its rows, each as long as the heading; an empty field is a number that does not exist.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Comma-separated values with a heading (RFC 4180).
    ///
    /// # Errors
    /// The library's words.
    pub fn csv(&self) -> Result<Vec<u8>, String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.heading).map_err(|error| error.to_string())?;
        for row in &self.rows {
            writer.write_record(row).map_err(|error| error.to_string())?;
        }
        writer.into_inner().map_err(|error| error.to_string())
    }

    /// A Markdown table.
    pub fn markdown(&self) -> String {
        let line = |fields: &mut dyn Iterator<Item = String>| format!("| {} |\n", fields.collect::<Vec<_>>().join(" | "));
        let mut text = line(&mut self.heading.iter().map(|name| name.replace('_', " ")));
        text += &line(&mut self.heading.iter().map(|_| "---".to_owned()));
        text.extend(self.rows.iter().map(|row| line(&mut row.iter().map(|text| escaped(text)))));
        text
    }
}

/// A text in a line of Markdown.
pub fn escaped(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('\\', "\\\\").replace('|', "\\|");
    escaped.split_whitespace().collect::<Vec<_>>().join(" ")
}
