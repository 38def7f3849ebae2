//! A table, for people (HTML, Markdown, a terminal) and for other programs (CSV). Texts of files may
//! hold anything; here they become texts that do nothing where they are shown.

use std::borrow::Cow;

use maud::{Markup, html};

use super::numbers::NOT_MEASURED;
use crate::readable::{LINE, aligned, steers};

/// Rows of text under a heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The table's name, fit for a file's name.
    pub name: &'static str,
    /// How many of its columns say what a row is of.
    pub keys: usize,
    /// Names of its columns.
    pub heading: Vec<String>,
    /// Rows of the table, each as long as the heading; an empty field is a number that does not exist.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Comma-separated values with a heading (RFC 4180). A text that a spreadsheet would take for a formula begins with an apostrophe.
    ///
    /// # Errors
    /// Errors of the library.
    pub fn csv(&self) -> csv::Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.heading)?;
        for row in &self.rows {
            // A column of numbers has nothing but numbers in it.
            let field = |text: &String| if text == NOT_MEASURED { String::new() } else { inert(text).into_owned() };
            writer.write_record(row.iter().map(field))?;
        }
        writer.into_inner().map_err(|error| error.into_error().into())
    }

    /// A table of the page, in a box that scrolls where the table is wider than the page. A line break in a field is one on the page.
    pub fn html(&self, is_of_words: bool) -> Markup {
        html! {
            div.wide {
                table class=[is_of_words.then_some("words")] {
                    thead { tr { @for name in &self.heading { th { (name) } } } }
                    tbody {
                        @for row in &self.rows {
                            tr {
                                @for field in row {
                                    td { @for (number, line) in field.split('\n').enumerate() { @if number > 0 { br; } (line) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Lines of at most [`LINE`] letters: columns that have no room follow below, each time beside those that say what a row is of.
    pub fn terminal(&self) -> String {
        let rows = || [&self.heading].into_iter().chain(&self.rows);
        let columns = self.heading.len();
        let width = |column: usize| rows().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max().unwrap_or(0) + 2;
        let own: usize = (0..self.keys).map(width).sum();
        let (mut text, mut from) = (String::new(), self.keys);
        while from < columns {
            let (mut to, mut used) = (from + 1, own + width(from));
            while to < columns && used + width(to) <= LINE {
                used += width(to);
                to += 1;
            }
            let part = |row: &Vec<String>| row[..self.keys].iter().chain(&row[from..to]).cloned().collect();
            text += &aligned(&rows().map(part).collect::<Vec<_>>(), "  ");
            from = to;
        }
        text
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
            let table = Table { name: "t", keys: 1, heading: vec!["a".into(), "b".into()], rows: vec![vec![text.to_owned(), "1".into()]] };
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

    #[test]
    fn wide_tables_go_on_below() {
        let rows: Vec<Vec<String>> = (0..3).map(|row| (0..30).map(|column| format!("{column}-{row}-words")).collect()).collect();
        let table = Table { name: "t", keys: 2, heading: rows[0].clone(), rows: rows[1..].to_vec() };
        let text = table.terminal();
        assert!(text.lines().all(|line| line.chars().count() <= LINE), "{text}");
        assert!(rows.iter().flatten().all(|word| text.contains(word.as_str())) && text.matches("1-2-words").count() > 4, "{text}");
    }
}
