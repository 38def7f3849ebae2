//! The report as one HTML page: no script, nothing to load, readable on a screen, light or dark, and on paper.

mod claims;
mod fits;
mod run;
mod table;
mod theory;
mod trials;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::claims::Finding;
use super::figures::Figure;
use super::fits::Fitted;
use super::smoothness::Smooth;
use super::studies::StudyResults;
use crate::readable::some;

const STYLE: &str = include_str!("style.css");

/// A study with what was made of it.
pub struct Section<'a> {
    /// The study.
    pub study: &'a StudyResults,
    /// Its fits.
    pub fits: &'a [Fitted],
    /// What it says of the paper's claims.
    pub claims: Vec<Finding>,
    /// What was measured along its training.
    pub smoothness: Vec<Smooth>,
    /// Its figures, with their SVG documents.
    pub figures: Vec<(Figure, String)>,
    /// Its warnings.
    pub warnings: Vec<String>,
}

/// The page. `compared` are figures over several studies, `files` names of what lies beside the page.
pub fn page(sections: &[Section], compared: &[(Figure, String)], files: &[String]) -> String {
    let title = match sections {
        [one] => one.study.name(),
        many => format!("{} studies compared", many.len()),
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Steps-to-result: " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Batch size, sparsity and steps-to-result" }
                p {
                    "How many training steps a network needs to reach a goal, at each batch size and sparsity, when the metaparameters are "
                    "searched anew for every cell; after Lee, Ajanthan, Torr and Jaggi, "
                    cite { "Understanding the Effects of Data Parallelism and Sparsity on Neural Network Training" }
                    " (ICLR 2021)."
                }
                @if sections.len() > 1 {
                    ul {
                        @for Section { study, .. } in sections {
                            li { a href={ "#" (study.slug) } { (study.name()) } }
                        }
                    }
                }
                @for (figure, svg) in compared { (drawn(figure, svg)) }
                @for section in sections { (self::section(section)) }
                h2 { "Configuration" }
                p { "To run a study again, give this to dps-train." }
                @for Section { study, .. } in sections {
                    details open[sections.len() == 1] {
                        summary { (study.name()) }
                        pre { (study.results.configuration) }
                    }
                }
                h2 { "Beside this page" }
                p.faint {
                    @for (number, name) in files.iter().enumerate() {
                        @if number > 0 { ", " }
                        a href=(name) { code { (name) } }
                    }
                }
            }
        }
    };
    // Texts of a result file may have control characters, for which HTML has no meaning.
    page.into_string().replace(|letter: char| letter.is_control() && !letter.is_whitespace(), "")
}

fn section(section: &Section) -> Markup {
    let Section { study, fits, claims, smoothness, figures, warnings } = section;
    let alone = study.measures_alone();
    html! {
        h2 id=(study.slug) { (study.name()) }
        p {
            @if warnings.is_empty() { "No warnings." } @else {
                a href={ "#" (study.slug) "-warnings" } { (some(warnings.len(), "warning")) } " below."
            }
        }
        h3 { "What was run" }
        (run::run(study))
        @if !alone {
            h3 { "Steps-to-result K*" }
            (run::steps_to_result(study))
        }
        @for (figure, svg) in figures { (drawn(figure, svg)) }
        @if !alone {
            h3 { "Trials" }
            (trials::trials(study))
            h3 { "Fits" }
            (fits::fits(study, fits))
        }
        @if !claims.is_empty() {
            h3 { "What it says of the paper's claims" }
            (claims::claims(claims))
        }
        @if !smoothness.is_empty() {
            h3 { "What the theory predicts" }
            (theory::theory(study, smoothness))
        }
        h3 id={ (study.slug) "-warnings" } { "Warnings" }
        @if !warnings.is_empty() {
            ul.warnings {
                @for warning in warnings { li { (warning) } }
            }
        } @else if alone {
            p { "None: every configured cell has a result." }
        } @else {
            p {
                "None: every configured cell has a result, no best point lies within 5 % of its search range's ends, and no cell was decided by "
                "few trials."
            }
        }
    }
}

fn drawn(figure: &Figure, svg: &str) -> Markup {
    html! {
        h3 { (figure.heading) }
        figure {
            div.wide { (PreEscaped(svg)) }
            figcaption { (figure.caption) }
        }
    }
}
