//! Output shared by `aye skills` and `aye agents`: errors in files, unused files, and suggestions for misspelt names.

use crate::host::console::{print_json, print_text, warn_all};
use crate::host::exit::Exit;
use crate::protocol::format_count;
use crate::skills::{BrokenFile, HiddenFile, SkillReport};
use crate::text::{clean_line, reveal_line};
use strsim::damerau_levenshtein;

/// Warns about files that are not used. `kind` is `skill` or `agent`.
pub(super) fn warn_unused(kind: &str, hidden: &[HiddenFile], broken: &[BrokenFile], limits: &[String]) {
    let hidden = hidden.iter().map(|hidden| {
        let (file, used_file) = (clean_line(&hidden.file), clean_line(&hidden.used_file));
        format!("`{file}` is not used: the {kind} in `{used_file}` has the same name")
    });
    let article = if kind.starts_with('a') { "an" } else { "a" };
    let broken = broken.iter().flat_map(|broken| {
        let file = reveal_line(&broken.file);
        broken.faults.iter().map(move |fault| format!("ignored {article} {kind}: {}", fault.with_file(&file)))
    });
    let told: Vec<String> = hidden.chain(broken).chain(limits.iter().cloned()).collect();
    warn_all(&told);
}

/// Prints the errors and warnings of each file, and their total number. The returned exit code indicates failure only
/// if there are errors. `kind` is `skill` or `agent`.
pub(super) fn print_reports(kind: &str, reports: &[SkillReport], json: bool) -> Exit {
    let errors = reports.iter().map(|report| report.errors.len()).sum::<usize>();
    let exit = if errors > 0 { Exit::Failed } else { Exit::Completed };
    if json {
        print_json(&reports);
        return exit;
    }
    let mut text = String::new();
    for report in reports {
        let file = reveal_line(&report.file);
        let lines = |level: &'static str| move |message: String| format!("{level}: {}\n", clean_line(&message));
        text.extend(report.errors.iter().map(|fault| fault.with_file(&file)).map(lines("error")));
        text.extend(report.warnings.iter().map(|fault| fault.with_file(&file)).map(lines("warning")));
    }
    let warnings = reports.iter().map(|report| report.warnings.len()).sum::<usize>();
    let count = |number: usize, one: &str, many: &str| format_count(number as u64, one, many);
    let (files, errors) = (count(reports.len(), kind, &format!("{kind}s")), count(errors, "error", "errors"));
    print_text(&format!("{text}{files}: {errors}, {}\n", count(warnings, "warning", "warnings")));
    exit
}

/// Returns the known name most similar to a misspelt name, if any is similar enough.
pub(super) fn nearest_name<'a>(known: impl Iterator<Item = &'a str>, name: &str) -> Option<&'a str> {
    let near = known.map(|known| (damerau_levenshtein(known, name), known)).min();
    near.filter(|(distance, known)| *distance <= 1 + known.len() / 4).map(|(_, known)| known)
}
