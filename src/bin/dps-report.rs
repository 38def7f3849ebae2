//! Tables, fits and figures of result files, as one page.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use dps::{analysis, results};

/// The exit code of `--strict` where there are warnings.
const WARNED: u8 = 8;

/// Writes tables, fits and figures of studies, and one HTML page that holds them all.
#[derive(Parser)]
#[command(
    version,
    after_help = "Exit codes: 0 done; 2 wrong command line; 4 a result file cannot be read or written; 8 warnings, with --strict."
)]
struct Arguments {
    /// Result files that dps-train wrote; parts of one study are put together, several studies are compared
    #[arg(required = true, value_name = "RESULT.h5")]
    results: Vec<PathBuf>,

    /// Folder the report is written to; made where it is missing
    #[arg(short, long, value_name = "FOLDER", default_value = "report")]
    output: PathBuf,

    /// Exit with code 8 where any cell has a warning: no result, a best point at the edge of the search space, too few trials
    #[arg(long)]
    strict: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match report(&arguments) {
        Ok(warnings) if warnings > 0 && arguments.strict => ExitCode::from(WARNED),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dps-report: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// The number of warnings.
fn report(arguments: &Arguments) -> dps::Result<usize> {
    let mut files = Vec::new();
    for path in &arguments.results {
        // The page may be given away: it names files, not folders.
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push((name, results::read(path)?));
    }
    let report = analysis::report(files, &arguments.output)?;
    for study in &report.studies {
        println!("{}", analysis::table(&study.results));
    }
    for warning in &report.warnings {
        eprintln!("Warning: {warning}");
    }
    println!("Report: {}", report.page.display());
    Ok(report.warnings.len())
}
