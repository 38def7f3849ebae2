//! The report: every figure, every table and the page, written into one folder.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::answer::answer;
use super::page::{TITLE, page};
use super::section::{Answer, Control, ControlRow, Drawn, Section};
use super::summary::summary;
use super::tables::tables;
use super::values::values;
use super::warnings::{Warning, warnings};
use crate::analysis::chart::{FORMATS, Style, Width};
use crate::analysis::claims::{claims, holm};
use crate::analysis::figures::{self, Figure};
use crate::analysis::statistics::{
    Beside, ConfirmedCell, Fitted, cell_beside, comparable, confirmed_beside, confirmed_cells, confirmed_fits, critical, fits, smoothness,
    times,
};
use crate::analysis::studies::{StudyResults, gather};
use crate::optimizer::OptimizerName;
use crate::records::CellKey;
use crate::results::{self, Results, WorkloadSummary};
use crate::storage::{folder, open_regular, read_regular};
use crate::{Error, Result};

/// File of a report's folder that names the files of the report, a line each, below a heading.
pub const LIST: &str = "dps-report.txt";

/// The page of a report's folder.
const PAGE: &str = "index.html";

/// First line of the list.
const HEADING: &str = "Files of this report; dps-report replaces or removes them when it writes another report here:";

/// File of a report's folder that the page of `--claims` may take the place of: the table of what that page says, and more.
const CLAIMS: &str = "claims.md";

/// The end of the names of figures for a column of a paper.
const COLUMN: &str = "column";

/// Bytes of a page that have its title.
const HEAD: u64 = 4096;

/// Longest list of an earlier report that is read, in bytes.
const LONGEST_LIST: u64 = 1 << 20;

/// How a report is made.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// Style of the figures.
    pub style: Style,
    /// Goal errors at which steps-to-result is asked for besides the studies' own.
    pub goals: Vec<f64>,
    /// Seconds after which a browser loads the page again, for as long as a study is not complete.
    pub refresh: Option<u32>,
    /// Files that are not written over: what the report is made of.
    pub kept: Vec<PathBuf>,
    /// The page of `--claims`, which is written beside the report, or as its `claims.md`.
    pub claims: Option<PathBuf>,
    /// SHA-256 of the result files, hexadecimal, by the names that the page calls them by.
    pub digests: BTreeMap<String, String>,
}

/// What was written, and what its reader should know first.
#[derive(Debug, Clone)]
pub struct Report {
    /// The page.
    pub page: PathBuf,
    /// The studies the files were put together to.
    pub studies: Vec<StudyResults>,
    /// What the studies say of the paper's claims, as a page in Markdown.
    pub summary: String,
    /// The answer of each study in three sentences; none of a study without fits.
    pub answers: Vec<Vec<String>>,
    /// The command that mends the weakest point of each study, if there is one.
    pub next: Vec<Option<String>>,
    /// One sentence a kind of problem, with the study's name where there are several.
    pub warnings: Vec<String>,
}

/// Writes the page `index.html`, every figure in all [`FORMATS`] and every table as CSV and Markdown into `folder`. `files` are results with
/// the names the page calls them by; those of one study become one. Files of an earlier report in `folder` that this one does not write are
/// removed: [`LIST`] names them.
///
/// # Errors
/// [`Error::Results`] where a file cannot be written or removed.
pub fn report(files: Vec<(String, Results)>, folder: &Path, options: &Options) -> Result<Report> {
    let studies: Vec<(StudyResults, Vec<Fitted>)> = gather(files)
        .into_iter()
        .map(|study| {
            let fits = fits(&study);
            (study, fits)
        })
        .collect();
    refuse_foreign(&folder.join(PAGE))?;
    let kept = options.kept.iter().filter_map(|path| place(path)).collect();
    let mut written = Written { folder, style: options.style, names: Vec::new(), kept, claims: options.claims.as_deref() };
    let compared = written.figures("", figures::compared(&studies))?;
    let mut sections = Vec::new();
    for (study, fits) in &studies {
        let figures = written.figures(&study.slug, figures::figures(study, fits))?;
        // The study's own fits come first.
        let others = studies.iter().filter(|(other, _)| !std::ptr::eq(other, study) && comparable(study, other));
        let fits_beside: Vec<&Fitted> = fits.iter().chain(others.flat_map(|(_, fits)| fits)).collect();
        let smoothness = smoothness(study, &fits_beside);
        let sgd = studies.iter().find(|(other, _)| is_sgd_beside(other, study)).map(|(other, _)| other);
        let claims = claims(study, fits, sgd);
        let confirmed = confirmed_cells(study);
        let confirmed_fits = confirmed_fits(&confirmed);
        let control = control(study, &confirmed, studies.iter().map(|(other, _)| other));
        let (critical, times) = (critical(study, fits, &confirmed_fits, &smoothness), times(study));
        let warnings = warnings(study, fits);
        let mut section = Section {
            study,
            fits,
            confirmed,
            confirmed_fits,
            control,
            claims,
            smoothness,
            critical,
            times,
            figures,
            warnings,
            answer: Answer::default(),
        };
        section.answer = answer(&section, &options.digests);
        sections.push(section);
    }
    holm(sections.iter_mut().flat_map(|section| &mut section.claims));
    for table in tables(&sections, &options.goals) {
        let csv = table.csv().map_err(|problem| written.failed(table.name, &problem))?;
        written.file(format!("{}.csv", table.name), &csv)?;
        written.file(format!("{}.md", table.name), table.markdown().as_bytes())?;
    }
    let refresh = options.refresh.filter(|_| studies.iter().any(|(study, _)| !study.results.complete));
    let page = page(&sections, &compared, &written.names, &options.goals, refresh);
    written.file(PAGE.to_owned(), page.as_bytes())?;
    written.replace_list()?;
    let (several, summary) = (sections.len() > 1, summary(&sections));
    let named = |study: &StudyResults, sentences: &[String]| {
        let name = if several { format!("{}: ", study.name()) } else { String::new() };
        sentences.iter().map(|sentence| format!("{name}{sentence}")).collect::<Vec<_>>()
    };
    let texts = |section: &Section| section.warnings.iter().map(Warning::to_string).collect::<Vec<_>>();
    let warnings = sections.iter().flat_map(|section| named(section.study, &texts(section))).collect();
    let answers = sections.iter().map(|section| section.answer.sentences.clone()).collect();
    let next = sections.iter().map(|section| section.answer.next.clone()).collect();
    Ok(Report { page: folder.join(PAGE), summary, answers, next, warnings, studies: studies.into_iter().map(|(study, _)| study).collect() })
}

/// A study beside the one of the report that it is a control of, where cells of both are confirmed.
fn control<'a>(
    study: &StudyResults,
    confirmed: &[ConfirmedCell],
    studies: impl Iterator<Item = &'a StudyResults> + Clone,
) -> Option<Control<'a>> {
    let original = study.original(studies)?;
    let others = confirmed_cells(original);
    let mut rows = Vec::new();
    for cell in confirmed {
        let CellKey { batch_size, sparsity } = cell.key;
        let [steps, steps_over_dense] = [sparsity, 0.0].map(|sparsity| cell_beside(cell, &others, CellKey { batch_size, sparsity }));
        rows.push(ControlRow {
            batch_size: Some(batch_size),
            sparsity,
            steps,
            steps_over_dense,
            critical: None,
            critical_over_dense: None,
        });
    }
    let [curves, over_dense] = [confirmed_beside(confirmed, &others, |sparsity| sparsity), confirmed_beside(confirmed, &others, |_| 0.0)];
    for both in curves.iter().filter(|both| both.fits.is_ok()) {
        let dense = over_dense.iter().find(|dense| dense.sparsity == both.sparsity);
        rows.push(ControlRow {
            batch_size: None,
            sparsity: both.sparsity,
            steps: both.steps(),
            steps_over_dense: dense.and_then(Beside::steps),
            critical: both.critical(),
            critical_over_dense: dense.and_then(Beside::critical),
        });
    }
    rows.iter().any(|row| row.steps.is_some()).then_some(Control { original, rows })
}

/// Whether a study is of SGD, another of Momentum or Nesterov, and they differ by their optimizers and search spaces alone in what decides K*.
fn is_sgd_beside(study: &StudyResults, other: &StudyResults) -> bool {
    let workload = |study: &StudyResults| WorkloadSummary { optimizer: String::new(), ..study.results.workload.clone() };
    let configured =
        |study: &StudyResults| study.configuration.as_ref().ok().map(|study| (study.trials(), study.pruning.clone(), study.data.clone()));
    let is_of = |study: &StudyResults, optimizer: OptimizerName| study.results.workload.optimizer == optimizer.name();
    is_of(study, OptimizerName::Sgd)
        && [OptimizerName::Momentum, OptimizerName::Nesterov].into_iter().any(|optimizer| is_of(other, optimizer))
        && workload(study) == workload(other)
        && configured(study) == configured(other)
}

/// Refuses a page that no report wrote, so that a folder of something else is not written over.
fn refuse_foreign(page: &Path) -> Result<()> {
    let mut head = Vec::new();
    let Ok(file) = open_regular(page, OpenOptions::new().read(true)) else { return Ok(()) };
    let is_ours = file.take(HEAD).read_to_end(&mut head).is_ok() && String::from_utf8_lossy(&head).contains(TITLE);
    if is_ours || head.is_empty() {
        return Ok(());
    }
    let problem = "expected no page, or one of an earlier report, found another page; choose another --output".to_owned();
    Err(Error::Results { path: page.to_owned(), problem })
}

/// The names in the list of an earlier report; none where there is no such list. A name that no report writes is passed over.
fn listed(list: &Path) -> Vec<String> {
    let is_ours = |name: &&str| {
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        plain
            && ["csv", "html", "md", "pdf", "png", "svg"]
                .iter()
                .any(|kind| name.strip_suffix(kind).is_some_and(|stem| stem.len() > 1 && stem.ends_with('.')))
    };
    let text = read_regular(list, LONGEST_LIST).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let mut lines = text.lines();
    if lines.next() != Some(HEADING) {
        return Vec::new();
    }
    lines.filter(is_ours).map(str::to_owned).collect()
}

/// A file's place by one name, whether there is a file or not; none where its folder is not there.
fn place(path: &Path) -> Option<PathBuf> {
    Some(fs::canonicalize(folder(path)).ok()?.join(path.file_name()?))
}

/// The folder, and the names of what has been written into it.
struct Written<'a> {
    folder: &'a Path,
    style: Style,
    names: Vec<String>,
    /// Places of files that are not written over.
    kept: Vec<PathBuf>,
    /// The page of `--claims`.
    claims: Option<&'a Path>,
}

impl Written<'_> {
    fn file(&mut self, name: String, bytes: &[u8]) -> Result<()> {
        if !self.is_claims_page(&name)? {
            results::publish(&self.folder.join(&name), bytes)?;
        }
        self.names.push(name);
        Ok(())
    }

    /// Whether a file of the report is the page of `--claims` in its place. Refuses a file that is not to be written over.
    fn is_claims_page(&self, name: &str) -> Result<bool> {
        let path = self.folder.join(name);
        let place = place(&path);
        // The place of the page of `--claims` is looked up only here: a page in a new report's folder has no place before the folder exists.
        let is_claims_page = place.is_some() && place == self.claims.and_then(self::place);
        if is_claims_page && name != CLAIMS || place.is_some_and(|place| self.kept.contains(&place)) {
            let problem = "expected to write this file of the report, found that it is one that the report is made of, or the page of --claims; choose \
                           another --output";
            return Err(Error::Results { path, problem: problem.to_owned() });
        }
        Ok(is_claims_page)
    }

    /// Removes the files of an earlier report that were not written again, and lists those that were.
    fn replace_list(&self) -> Result<()> {
        self.is_claims_page(LIST)?;
        let list = self.folder.join(LIST);
        for name in listed(&list).iter().filter(|name| !self.names.contains(name)) {
            let path = self.folder.join(name);
            match fs::remove_file(&path) {
                Err(cause) if cause.kind() != ErrorKind::NotFound => {
                    let problem =
                        format!("this file of an earlier report cannot be removed ({cause}); remove it, or choose another --output");
                    return Err(Error::Results { path, problem });
                }
                _ => {}
            }
        }
        results::publish(&list, format!("{HEADING}\n{}\n", self.names.join("\n")).as_bytes())
    }

    /// Each figure in all formats, and what it draws as CSV.
    fn figures(&mut self, prefix: &str, figures: Vec<Figure>) -> Result<Vec<Drawn>> {
        let mut drawn: Vec<Drawn> = Vec::new();
        for figure in figures {
            let mut name = if prefix.is_empty() { figure.name.to_string() } else { format!("{prefix}-{}", figure.name) };
            let same = drawn.iter().filter(|other| other.figure.name == figure.name).count();
            if same > 0 {
                name += &format!("-{}", same + 1);
            }
            let [svg, narrow] = [Width::Wide, Width::Narrow].map(|width| figure.chart.svg(self.style, width));
            // A paper has columns too.
            let column = (self.style == Style::Paper).then(|| (format!("{name}-{COLUMN}"), &narrow));
            for (name, svg) in [(name.clone(), &svg)].into_iter().chain(column) {
                for format in FORMATS {
                    let bytes = (format.make)(svg).map_err(|problem| self.failed(&name, &problem))?;
                    self.file(format!("{name}.{}", format.name), &bytes)?;
                }
            }
            let csv = values(&figure.chart).csv().map_err(|problem| self.failed(&name, &problem))?;
            self.file(format!("{name}.csv"), &csv)?;
            drawn.push(Drawn { figure, name, svg, narrow });
        }
        Ok(drawn)
    }

    fn failed(&self, name: &str, problem: &str) -> Error {
        Error::Results { path: self.folder.join(name), problem: format!("it cannot be made ({problem})") }
    }
}
