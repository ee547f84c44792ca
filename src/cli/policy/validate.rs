//! `aye policy validate`: reports all errors in a policy, as well as likely mistakes.

use super::origin::format_location as shown_place;
use super::paint::{OutputStyle, OutputTone};
use super::test::check_tool_exists;
use crate::cli::policy::test::is_of_project;
use crate::host::console::{print_json, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::policy_error::number_line;
use crate::host::policy_layers::{MANAGED, policy_bytes};
use crate::policy::{Bundle, BundleError, quote_entry, warnings};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Errors and warnings found in one file.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub file: PathBuf,
    pub mistakes: Vec<Remark>,
    pub warnings: Vec<Remark>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Remark {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

pub(crate) fn run(app: &AppContext, common: &Common, file: Option<&Path>, json: bool) -> Result<Exit, CliError> {
    let mut reports = Vec::new();
    for file in file.map_or_else(|| layer_files(app, common), |file| vec![(file.to_owned(), true)]) {
        let (file, named) = file;
        match policy_bytes(&file)? {
            Some(bytes) => reports.push(report(&file, &bytes, jiff::Timestamp::now())),
            None if named => return Err(CliError::usage(format!("policy file `{}` does not exist", file.display()))),
            None => {}
        }
    }
    if json {
        print_json(&reports);
    } else {
        print_text(&text(&reports, &OutputStyle::for_stdout(common.color)));
    }
    Ok(if reports.iter().all(|report| report.mistakes.is_empty()) { Exit::Completed } else { Exit::Usage })
}

/// Returns the policy files of all layers, each with whether it must exist.
fn layer_files(app: &AppContext, common: &Common) -> Vec<(PathBuf, bool)> {
    let own = common.policy.clone().map_or_else(|| (app.directories.config.join("policy.toml"), false), |file| (file, true));
    vec![(PathBuf::from(MANAGED), false), own, (app.workspace.join(".aye/policy.toml"), false)]
}

pub(crate) fn report(file: &Path, bytes: &[u8], now: jiff::Timestamp) -> Report {
    let name = file.display().to_string();
    let remark = |error: &BundleError, text: &str| Remark {
        line: error.line,
        message: error.message.clone(),
        source: error.line.and_then(|line| quote_entry(text, line).into_iter().next()),
    };
    let mut report = Report { file: file.to_owned(), mistakes: Vec::new(), warnings: Vec::new() };
    let Ok(text) = std::str::from_utf8(bytes) else {
        let error = Bundle::parse_bytes(bytes, &name).err();
        report.mistakes.extend(error.map(|error| remark(&error, &String::from_utf8_lossy(bytes))));
        return report;
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    report.mistakes = Bundle::mistakes(text, &name).iter().map(|error| remark(error, text)).collect();
    if let (true, Ok(bundle)) = (report.mistakes.is_empty(), Bundle::parse(text, &name)) {
        let at = |line: usize, message: String| Remark {
            line: Some(line),
            message,
            source: quote_entry(text, line).into_iter().next(),
        };
        report
            .mistakes
            .extend(bundle.tests.iter().filter_map(|test| Some(at(test.tool_line, check_tool_exists(test, &bundle).err()?))));
        let found = warnings(&bundle, is_of_project(file), now);
        report.warnings.extend(found.into_iter().map(|warning| at(warning.line, warning.message)));
    }
    report
}

pub(crate) fn text(reports: &[Report], paint: &OutputStyle) -> String {
    let mut out = String::new();
    for report in reports {
        let said = report.mistakes.iter().map(|remark| (OutputTone::Bad, "error:", remark));
        for (tone, label, remark) in said.chain(report.warnings.iter().map(|remark| (OutputTone::Careful, "warning:", remark))) {
            let place = remark.line.map_or_else(|| report.file.display().to_string(), |line| shown_place(&report.file, line));
            let mut rows = paint.wrap_sentence(&format!("{place}: {}", remark.message), label.len() + 1).into_iter();
            let first = rows.next().unwrap_or_default();
            out.extend([paint.tone(tone, label), format!(" {first}\n")]);
            out.extend(rows.map(|row| format!("{}{row}\n", " ".repeat(label.len() + 1))));
            let source = remark.source.as_ref().filter(|source| !source.trim().is_empty()).zip(remark.line);
            out.extend(source.map(|(source, line)| paint.tone(OutputTone::Quiet, &number_line(line, source)) + "\n"));
        }
        let count = |count: usize, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
        let name = report.file.display();
        let (tone, summary) = match (report.mistakes.len(), report.warnings.len()) {
            (0, 0) => (OutputTone::Good, format!("{name}: valid")),
            (0, warnings) => (OutputTone::Good, format!("{name}: valid, with {}", count(warnings, "warning"))),
            (mistakes, _) => {
                (OutputTone::Bad, format!("{name}: {}; nothing runs under an invalid policy", count(mistakes, "error")))
            }
        };
        out.push_str(&paint.tone(tone, &crate::text::reveal(&summary)));
        out.push('\n');
    }
    if reports.is_empty() {
        out.push_str("no policy file; the built-in policy applies (run `aye policy init` to create one)\n");
    }
    out
}
