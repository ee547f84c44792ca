//! Findings of the last review: their list, the view of a single finding, and the prompt that asks the model to fix it.

use super::draft::on_draft_changed;
use super::notes::note;
use crate::protocol::Finding;
use crate::text;
use crate::tui::layers::{FindingView, Overview, Topic, description};
use crate::tui::model::UiModel;
use crate::tui::picker::Row;
use crate::tui::transcript::NoteTone;
use std::fmt::Write as _;

/// Opens the view of the finding at index `at`. Line mode prints the finding and its diff instead.
pub(crate) fn open(model: &mut UiModel, at: usize) {
    let Some(review) = &model.reviews.last else { return };
    if model.screen.in_lines {
        let Some(finding) = review.findings.get(at) else { return };
        let mut text = finding_line(finding, at) + "\n" + &description(finding);
        for diff in review.changes.diffs.iter().filter(|diff| finding.is_in(diff)) {
            let _ = write!(text, "\n{diff}");
        }
        return note(model, &text, NoteTone::Plain);
    }
    let view = FindingView::new(review, at);
    // Highlights the same finding in the list below the view.
    if let Some(overview) = model.layers.find_mut::<Overview>().filter(|overview| overview.topic == Topic::Findings) {
        overview.highlight(&at.to_string());
    }
    match view {
        Some(view) => model.layers.open(view),
        None => drop(model.layers.close::<FindingView>()),
    }
    model.screen.dirty = true;
}

/// Inserts a prompt to fix a finding at the start of the draft, and closes the finding and the list.
pub(crate) fn draft_fix(model: &mut UiModel, at: usize, now: u64) {
    let Some(finding) = model.reviews.last.as_ref().and_then(|review| review.findings.get(at)) else { return };
    let (place, severity) = (text::reveal_line(&finding.location()), finding.severity.as_str());
    let task = format!("Fix this {severity} finding of a review in {place}: {}", description(finding));
    let draft = model.composer.text();
    let whole = if draft.trim().is_empty() { task } else { format!("{task}\n\n{draft}") };
    model.layers.close::<FindingView>();
    model.layers.close::<Overview>();
    model.composer.set(&whole);
    on_draft_changed(model, now);
    model.show_toast(
        if model.screen.in_lines {
            "the task is in the draft: /send sends it, /drop discards it"
        } else {
            "the task is in the draft: edit it, then press enter to send it"
        },
        now,
    );
}

/// Returns one list row per finding. A row's key is the index of its finding.
pub(crate) fn rows(model: &UiModel) -> Vec<Row> {
    let row = |(at, finding): (usize, &Finding)| {
        let place = text::reveal_line(&finding.location());
        let (severity, confidence) = (finding.severity.as_str(), finding.confidence.as_str());
        Row {
            key: at.to_string(),
            cells: vec![severity.to_owned(), confidence.to_owned(), place.clone(), text::clean_line(&finding.title)],
            mark: "",
            lacks: None,
            detail: format!("{place}\n{}", description(finding)),
        }
    };
    let findings = model.reviews.last.iter().flat_map(|review| &review.findings);
    findings.enumerate().map(row).collect()
}

/// Returns the notices shown below the list: the review's summary, the number of dropped findings, and the files
/// missing from the diff.
pub(crate) fn notices(model: &UiModel) -> Vec<String> {
    let Some(review) = &model.reviews.last else { return Vec::new() };
    let left_out = review.changes.left_out_names().map(|names| format!("not in the diff: {names}"));
    let summary = Some(review.summary.clone()).filter(|summary| !summary.is_empty());
    let all = [summary, review.dropped_note(), left_out].into_iter().flatten();
    all.map(|notice| text::clean_line(&notice)).collect()
}

/// Returns a description of the reviewed changes for the list's title.
pub(crate) fn subject_text(model: &UiModel) -> String {
    model.reviews.last.as_ref().map(|review| text::clean_line(&review.changes.title)).unwrap_or_default()
}

/// Returns the list of findings as text for line mode.
pub(crate) fn to_text(model: &UiModel) -> String {
    let Some(review) = &model.reviews.last else { return String::new() };
    let head =
        format!("findings in {}; /findings NUMBER shows the diff, /findings fix NUMBER drafts a task", review.changes.title);
    let findings = review.findings.iter().enumerate().map(|(at, finding)| {
        let words = text::clean(&finding.explanation).into_owned();
        let rest = words.lines().fold(String::new(), |rest, line| rest + "\n    " + line);
        finding_line(finding, at) + ": " + &text::clean_line(&finding.title) + &rest
    });
    [head].into_iter().chain(findings).chain(notices(model)).collect::<Vec<_>>().join("\n")
}

/// Returns a finding's number, location, severity and confidence as one line.
fn finding_line(finding: &Finding, at: usize) -> String {
    let (place, severity) = (text::reveal_line(&finding.location()), finding.severity.as_str());
    format!("{}. {place}: {severity}, confidence {}", at + 1, finding.confidence.as_str())
}
