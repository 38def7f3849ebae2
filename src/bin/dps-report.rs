//! Tables, fits and figures of result files, as one page.

use std::io::Write;
use std::process::ExitCode;

use dps::arguments::Report;
use dps::{analysis, results};

/// The exit code of `--strict` where there are warnings.
const WARNED: u8 = 8;

fn main() -> ExitCode {
    let arguments = match Report::read(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
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
fn report(arguments: &Report) -> dps::Result<usize> {
    let mut files = Vec::new();
    for path in &arguments.results {
        // The page may be given away: it names files, not folders.
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push((name, results::read(path)?));
    }
    let report = analysis::report(files, &arguments.output)?;
    // A reader of standard output that has gone (`| head`) is no failure.
    let mut output = std::io::stdout();
    for study in &report.studies {
        let _ = writeln!(output, "{}", analysis::table(&study.results));
    }
    for warning in &report.warnings {
        eprintln!("Warning: {warning}");
    }
    if let Some(folder) = &arguments.shallue {
        let cells = analysis::shallue(&report.studies, folder)?;
        let _ = writeln!(output, "Export: {} ({cells} cell{})", folder.display(), if cells == 1 { "" } else { "s" });
    }
    let _ = writeln!(output, "Report: {}", report.page.display());
    Ok(report.warnings.len())
}
