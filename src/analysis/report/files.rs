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
    ConfirmedCell, Fitted, cell_beside, comparable, confirmed_beside, confirmed_cells, confirmed_fits, critical, fits, smoothness, times,
};
use crate::analysis::studies::{StudyResults, gather};
use crate::optimizer::OptimizerName;
use crate::records::CellKey;
use crate::results::{self, Results, WorkloadSummary};
use crate::storage::{folder, make_folder, open_regular, read_regular};
use crate::{Error, Result};

/// File of a report's folder that names the files of the report, a line each, below a heading.
pub const LIST: &str = "dps-report.txt";

/// The page of a report's folder.
const PAGE: &str = "index.html";

/// First line of the list.
const HEADING: &str = "Files of this report; dps-report replaces or removes them when it writes another report here:";

/// File of a report's folder that the page of `--claims` may take the place of: the table of what that page says, and more.
const CLAIMS: &str = "claims.md";

/// The first line of the page of `--claims`.
const CLAIMS_HEAD: &str = "<!-- claims: written by dps-report -->";

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
    /// Seconds after which a browser loads the page again, for as long as a study is not complete or a program works on one.
    pub refresh: Option<u32>,
    /// Whether a program works on one of the studies.
    pub under_way: bool,
    /// Files that are not written over: what the report is made of.
    pub kept: Vec<PathBuf>,
    /// The page of `--claims`, which is written beside the report, or as its `claims.md`.
    pub claims: Option<PathBuf>,
    /// SHA-256 of the result files, hexadecimal, by the names that the page calls them by.
    pub digests: BTreeMap<String, String>,
}

/// A report that was written, and warnings that its reader should see first.
#[derive(Debug, Clone)]
pub struct Report {
    /// The page.
    pub page: PathBuf,
    /// The studies the files were put together to.
    pub studies: Vec<StudyResults>,
    /// The studies' verdicts on the paper's claims, as a page in Markdown.
    pub summary: String,
    /// The answer of each study.
    pub answers: Vec<Answer>,
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
    let gathered = gather(files);
    let fitted: Vec<Vec<Fitted>> = gathered.iter().map(fits).collect();
    let studies: Vec<(StudyResults, Vec<Fitted>)> = gathered.into_iter().zip(fitted).collect();
    refuse_foreign(&folder.join(PAGE), &|head| head.contains(TITLE), "page", "--output")?;
    let mut written = Written { folder, style: options.style, files: Vec::new() };
    let compared = written.figures("", figures::compared(&studies))?;
    let mut sections = Vec::new();
    for (study, fits) in &studies {
        // The study's own fits come first.
        let others = studies.iter().filter(|(other, _)| !std::ptr::eq(other, study) && comparable(study, other));
        let fits_beside: Vec<&Fitted> = fits.iter().chain(others.flat_map(|(_, fits)| fits)).collect();
        let smoothness = smoothness(study, &fits_beside);
        let sgd = studies.iter().find(|(other, _)| is_sgd_beside(other, study)).map(|(other, _)| other);
        let confirmed = confirmed_cells(study);
        let confirmed_fits = confirmed_fits(&confirmed);
        let mut section = Section {
            study,
            fits,
            control: control(study, &confirmed, studies.iter().map(|(other, _)| other)),
            claims: claims(study, fits, sgd),
            critical: critical(study, fits, &confirmed_fits, &smoothness),
            times: times(study),
            figures: written.figures(&study.slug, figures::figures(study, fits))?,
            warnings: warnings(study, fits),
            answer: Answer::default(),
            confirmed,
            confirmed_fits,
            smoothness,
        };
        section.answer = answer(&section, &options.digests);
        sections.push(section);
    }
    holm(sections.iter_mut().flat_map(|section| &mut section.claims));
    for table in tables(&sections, &options.goals, &options.digests) {
        let csv = table.csv().map_err(|problem| written.failed(table.name, &problem.to_string()))?;
        written.files.push((format!("{}.csv", table.name), csv));
        written.files.push((format!("{}.md", table.name), table.markdown().into_bytes()));
    }
    let refresh = options.refresh.filter(|_| options.under_way || studies.iter().any(|(study, _)| !study.results.complete));
    let names: Vec<String> = written.files.iter().map(|(name, _)| name.clone()).collect();
    let page = page(&sections, &compared, &names, &options.goals, refresh);
    written.files.push((PAGE.to_owned(), page.into_bytes()));
    written.publish(options)?;
    let (several, summary) = (sections.len() > 1, summary(&sections));
    let named = |study: &StudyResults, sentences: &[String]| {
        let name = if several { format!("{}: ", study.name()) } else { String::new() };
        sentences.iter().map(|sentence| format!("{name}{sentence}")).collect::<Vec<_>>()
    };
    let texts = |section: &Section| section.warnings.iter().map(Warning::to_string).collect::<Vec<_>>();
    let warnings = sections.iter().flat_map(|section| named(section.study, &texts(section))).collect();
    let answers = sections.iter().map(|section| section.answer.clone()).collect();
    Ok(Report { page: folder.join(PAGE), summary, answers, warnings, studies: studies.into_iter().map(|(study, _)| study).collect() })
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
        let steps = [sparsity, 0.0].map(|sparsity| cell_beside(cell, &others, CellKey { batch_size, sparsity }));
        rows.push(ControlRow { batch_size: Some(batch_size), sparsity, steps, critical: [None; 2] });
    }
    let [curves, over_dense] = [confirmed_beside(confirmed, &others, |sparsity| sparsity), confirmed_beside(confirmed, &others, |_| 0.0)];
    for both in curves.iter().filter(|both| both.fits.is_ok()) {
        let sparsity = both.sparsity;
        let beside = [Some(both), over_dense.iter().find(|dense| dense.sparsity == sparsity)];
        let (steps, critical) = (beside.map(|beside| beside?.steps()), beside.map(|beside| beside?.critical()));
        rows.push(ControlRow { batch_size: None, sparsity, steps, critical });
    }
    rows.iter().any(|row| row.steps[0].is_some()).then_some(Control { original, rows })
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

/// Refuses a file that is not ours by its first bytes, and a link or device, so that nothing else is written over: `what` it is, and the option that
/// names another.
fn refuse_foreign(path: &Path, is_ours: &dyn Fn(&str) -> bool, what: &str, option: &str) -> Result<()> {
    let mut head = Vec::new();
    let problem = match open_regular(path, OpenOptions::new().read(true)) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(()),
        Ok(file) if (&file).take(HEAD).read_to_end(&mut head).is_ok() && (head.is_empty() || is_ours(&String::from_utf8_lossy(&head))) => {
            return Ok(());
        }
        Err(cause) if cause.kind() == ErrorKind::NotADirectory => {
            format!("expected a folder for it, found a file that is called like the folder; choose another {option}")
        }
        _ => format!("expected no {what}, or one of an earlier report, found another {what}; choose another {option}, or move it away"),
    };
    Err(Error::Results { path: path.to_owned(), problem })
}

/// The page of `--claims`: what studies say of the paper's claims, below the line by which a later report knows the page.
pub fn claims_page(summary: &str) -> String {
    format!("{CLAIMS_HEAD}\n\n{summary}")
}

/// Refuses to write the page of `--claims` over a file that no report into `folder` wrote.
///
/// # Errors
/// [`Error::Results`] naming the file.
pub fn refuse_foreign_claims(page: &Path, folder: &Path) -> Result<()> {
    let is_table = place(page).is_some_and(|page| Some(page) == place(&folder.join(CLAIMS)))
        && listed(&folder.join(LIST)).iter().any(|name| name == CLAIMS);
    if is_table { Ok(()) } else { refuse_foreign(page, &|head| head.starts_with(CLAIMS_HEAD), "file", "--claims") }
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

/// The folder, and what is to be written into it once all of it is made.
struct Written<'a> {
    folder: &'a Path,
    style: Style,
    files: Vec<(String, Vec<u8>)>,
}

impl Written<'_> {
    /// Writes the files, then removes those of an earlier report that this one has not. Files that no report wrote are refused before anything is
    /// written; the list names all files before the first is written, so that a report that was cut short is one of the earlier reports.
    fn publish(&self, options: &Options) -> Result<()> {
        // Files have no place before their folder exists.
        make_folder(self.folder).map_err(|cause| Error::Results {
            path: self.folder.to_owned(),
            problem: format!("the folder cannot be made ({cause}); choose another --output"),
        })?;
        let list = self.folder.join(LIST);
        let before = listed(&list);
        let kept: Vec<PathBuf> = options.kept.iter().filter_map(|path| place(path)).collect();
        let claims = options.claims.as_deref().and_then(place);
        let is_claims_page = |path: &Path| claims.is_some() && claims == place(path);
        let names = || self.files.iter().map(|(name, _)| name.as_str());
        for name in names().chain([LIST]) {
            let path = self.folder.join(name);
            let refuse = |problem: &str| Err(Error::Results { path: path.clone(), problem: problem.to_owned() });
            if is_claims_page(&path) && name != CLAIMS || place(&path).is_some_and(|place| kept.contains(&place)) {
                return refuse(
                    "expected to write this file of the report, found that it is one that the report is made of, or the page of --claims; choose \
                     another --output",
                );
            }
            let is_new = name != LIST && name != PAGE && !before.iter().any(|known| known == name);
            if is_new && !is_claims_page(&path) && fs::symlink_metadata(&path).is_ok() {
                return refuse(
                    "expected to write this file of the report, found one that no report wrote; choose another --output, or move it away",
                );
            }
        }
        let write_list = |names: Vec<&str>| results::publish(&list, format!("{HEADING}\n{}\n", names.join("\n")).as_bytes());
        let gone: Vec<&str> = before.iter().map(String::as_str).filter(|name| names().all(|other| other != *name)).collect();
        write_list(names().chain(gone.iter().copied()).collect())?;
        for (name, bytes) in &self.files {
            let path = self.folder.join(name);
            if !is_claims_page(&path) {
                results::publish(&path, bytes)?;
            }
        }
        for name in &gone {
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
        write_list(names().collect())
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
                    self.files.push((format!("{name}.{}", format.name), bytes));
                }
            }
            let csv = values(&figure.chart).csv().map_err(|problem| self.failed(&name, &problem.to_string()))?;
            self.files.push((format!("{name}.csv"), csv));
            drawn.push(Drawn { figure, name, svg, narrow });
        }
        Ok(drawn)
    }

    fn failed(&self, name: &str, problem: &str) -> Error {
        Error::Results { path: self.folder.join(name), problem: format!("it cannot be made ({problem})") }
    }
}
