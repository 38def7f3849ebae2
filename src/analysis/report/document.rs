//! A part of the report as a document: blocks one below the other, and how they look on the page, in Markdown and on a terminal.
//!
//! In texts two underscores stand around what is strong, and grave accents around code.

use maud::{Markup, PreEscaped, html};

use super::section::Drawn;
use super::table::{Table, escaped};
use crate::analysis::chart::FORMATS;
use crate::readable::{LINE, wrapped};

/// A block of a document.
pub enum Block<'a> {
    /// A heading: of level 2 a study's, of 3 a part's.
    Heading(u8, String),
    /// A paragraph.
    Text(String),
    /// A note that helps to read the block before it, or on a terminal the block after it.
    Note(String),
    /// A list.
    List(Vec<String>),
    /// Names with their values.
    Pairs(Vec<(&'static str, String)>),
    /// A table of numbers.
    Table(Table),
    /// A table of words.
    Words(Table),
    /// Blocks that the page folds: the name of their place, which may be empty, their heading, the blocks.
    Fold(String, String, Vec<Block<'a>>),
    /// A figure with its caption and its files.
    Figure(&'a Drawn),
    /// Links to figures.
    Links(Vec<&'a Drawn>),
}

/// A document as HTML.
pub fn html(blocks: &[Block]) -> Markup {
    html! { @for block in blocks { (block.html()) } }
}

/// A document in Markdown.
pub fn markdown(blocks: &[Block]) -> String {
    blocks.iter().map(Block::markdown).collect::<Vec<_>>().join("\n")
}

/// A document for a terminal.
pub fn terminal(blocks: &[Block]) -> String {
    let text: String = blocks.iter().map(Block::terminal).collect();
    text.strip_prefix('\n').unwrap_or(&text).to_owned()
}

impl Block<'_> {
    /// The block as HTML.
    pub fn html(&self) -> Markup {
        match self {
            Block::Heading(2, words) => html! { h2 { (words) } },
            Block::Heading(3, words) => html! { h3 { (words) } },
            Block::Heading(_, words) => html! { h4 { (words) } },
            Block::Text(text) => html! { p { (rich(text)) } },
            Block::Note(text) => html! { p.faint { (rich(text)) } },
            Block::List(items) => html! { ul { @for item in items { li { (rich(item)) } } } },
            Block::Pairs(pairs) => html! { dl { @for (name, value) in pairs { dt { (name) } dd { (value) } } } },
            Block::Table(table) => table.html(false),
            Block::Words(table) => table.html(true),
            Block::Fold(place, title, blocks) => html! {
                details { summary { (title) } div id=[(!place.is_empty()).then_some(place)] { (html(blocks)) } }
            },
            Block::Figure(Drawn { figure, name, svg, narrow }) => html! {
                figure id={ (name) "-figure" } {
                    div.drawn.large { (PreEscaped(svg)) }
                    div.drawn.small { (PreEscaped(narrow)) }
                    figcaption {
                        (figure.caption)
                        span.files {
                            @for kind in FORMATS.iter().map(|format| format.name).chain(["csv"]) { " " a href={ (name) "." (kind) } { (kind.to_uppercase()) } }
                            " " a href={ (figure.table) ".csv" } { "table (" (figure.table) ")" }
                        }
                    }
                }
            },
            Block::Links(figures) => html! {
                p.faint {
                    "Drawn in: "
                    @for (number, Drawn { figure, name, .. }) in figures.iter().enumerate() {
                        @if number > 0 { "; " }
                        a href={ "#" (name) "-figure" } { (figure.heading) }
                    }
                    "."
                }
            },
        }
    }

    fn markdown(&self) -> String {
        // Letters that mean something in Markdown; what is strong stays so.
        let line = |text: &str| text.split("__").map(|part| part.replace('*', "\\*")).collect::<Vec<_>>().join("**") + "\n";
        match self {
            Block::Heading(level, words) => {
                let letters = escaped(words)
                    .chars()
                    .flat_map(|letter| "*`[]".contains(letter).then_some('\\').into_iter().chain([letter]))
                    .collect::<String>();
                format!("{} {letters}\n", "#".repeat(usize::from(*level)))
            }
            Block::Text(text) | Block::Note(text) => line(text),
            Block::List(items) => items.iter().map(|item| format!("- {}", line(item))).collect(),
            Block::Fold(_, _, blocks) => markdown(blocks),
            Block::Pairs(pairs) => pairs.iter().map(|(name, value)| format!("- {name}: {}\n", escaped(value))).collect(),
            Block::Table(table) | Block::Words(table) => table.markdown(),
            Block::Figure(Drawn { figure, name, .. }) => format!("![{}]({name}.svg)\n\n{}\n", escaped(&figure.heading), figure.caption),
            Block::Links(_) => String::new(),
        }
    }

    fn terminal(&self) -> String {
        match self {
            Block::Heading(_, words) | Block::Text(words) => format!("\n{words}\n"),
            Block::Note(words) => wrapped(words, LINE - 2).iter().map(|line| format!("  {line}\n")).collect(),
            Block::List(items) => items.iter().map(|item| format!("  {item}\n")).collect(),
            Block::Fold(_, _, blocks) => terminal(blocks),
            Block::Pairs(pairs) => pairs.iter().map(|(name, value)| format!("  {name}: {value}\n")).collect(),
            Block::Table(table) | Block::Words(table) => table.terminal(),
            Block::Figure(_) | Block::Links(_) => String::new(),
        }
    }
}

/// A text with what is strong and what is code.
pub fn rich(text: &str) -> Markup {
    html! {
        @for (number, part) in text.split("__").enumerate() {
            @if number % 2 == 1 { b { (part) } } @else {
                @for (number, part) in part.split('`').enumerate() { @if number % 2 == 1 { code { (part) } } @else { (part) } }
            }
        }
    }
}
