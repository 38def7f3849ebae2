//! A table for other programs, as CSV or Markdown. Texts of files may hold anything; here they become texts that do nothing where they are shown.

use std::borrow::Cow;

use crate::readable::steers;

/// Rows of text under a heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The table's name, fit for a file's name.
    pub name: &'static str,
    /// Names of its columns.
    pub heading: Vec<String>,
    /// Rows of the table, each as long as the heading; an empty field is a number that does not exist.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Comma-separated values with a heading (RFC 4180). A text that a spreadsheet would take for a formula begins with an apostrophe.
    ///
    /// # Errors
    /// The library's words.
    pub fn csv(&self) -> Result<Vec<u8>, String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.heading).map_err(|error| error.to_string())?;
        for row in &self.rows {
            writer.write_record(row.iter().map(|text| inert(text).into_owned())).map_err(|error| error.to_string())?;
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

/// A field of CSV: no letters that steer, and an apostrophe before a text that begins as formulas of spreadsheets do. Numbers stay as they are.
fn inert(text: &str) -> Cow<'_, str> {
    let plain = plain(text);
    let begins = plain.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    if begins && plain.parse::<f64>().is_err() { format!("'{plain}").into() } else { plain }
}

/// A text with spaces in place of tabs and ends of lines, and without other letters that steer.
fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return text.into();
    }
    text.chars().filter_map(|letter| if letter.is_whitespace() { Some(' ') } else { (!steers(letter)).then_some(letter) }).collect()
}

/// A text in a line of Markdown.
pub fn escaped(text: &str) -> String {
    let escaped = plain(text).replace('&', "&amp;").replace('<', "&lt;").replace('\\', "\\\\").replace('|', "\\|");
    escaped.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_files_do_nothing_where_they_are_shown() {
        let csv = |text: &str| {
            let table = Table { name: "t", heading: vec!["a".into(), "b".into()], rows: vec![vec![text.to_owned(), "1".into()]] };
            assert!(!table.markdown().contains(|letter| steers(letter) && letter != '\n'), "{}", table.markdown());
            String::from_utf8(table.csv().unwrap()).unwrap().strip_prefix("a,b\n").unwrap().strip_suffix(",1\n").unwrap().to_owned()
        };
        for number in ["-0.5", "+1e-3", "-inf", "-12", "0.1", ""] {
            assert_eq!(csv(number), number);
        }
        for formula in ["=cmd|' /C calc'!A0", "@SUM(A1)", "+1+1", "-2+3", "-", "＝1"] {
            assert_eq!(csv(formula), format!("'{formula}"));
        }
        assert_eq!((csv("\t=1"), csv("\r@x"), csv(" =1")), ("' =1".into(), "' @x".into(), "' =1".into()));
        assert_eq!(csv("\u{1b}[31m\u{202e}red\u{2069}\u{9b}"), "[31mred");
        assert_eq!(csv("a\nb,\"c\""), "\"a b,\"\"c\"\"\"");
    }
}
