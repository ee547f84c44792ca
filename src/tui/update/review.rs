//! Reviews of changes: `/review`, which runs independently of the session's task, and `/findings`, which shows the
//! results.

use super::draft::take_draft;
use super::notes::{note, note_problem};
use super::readiness::is_ready;
use super::{findings, overview};
use crate::protocol::{Query, Review, ReviewQuery, ReviewSubject, ReviewUpdate, Usage};
use crate::text;
use crate::tui::format::{format_estimate, tokens};
use crate::tui::layers::Topic;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::reviews::RunningReview;
use crate::tui::transcript::NoteTone;

const FORMS: &str = "use `/review`, `/review --staged`, `/review --base BRANCH` or `/review --commit SHA`";

/// Handles `/review`, which starts a review, and `/review stop`.
pub(crate) fn review(model: &mut UiModel, words: &str, now: u64, effects: &mut Vec<UiEffect>) {
    if words == "stop" {
        take_draft(model, now, effects);
        if !stop(model, effects) && model.reviews.running.is_none() {
            model.show_toast("no review is running", now);
        }
        return;
    }
    let subject = match ReviewSubject::parse(words) {
        Ok(subject) => subject,
        Err(problem) => {
            let words = text::clean_line(&problem.hint(FORMS).one_line());
            return model.show_toast(words, now);
        }
    };
    if model.reviews.running.is_some() {
        return model.show_toast("a review is running; wait until it ends, or stop it with `/review stop`", now);
    }
    if !is_ready(model, now) {
        return;
    }
    take_draft(model, now, effects);
    model.transcript.follow_end();
    model.reviews.running = Some(RunningReview::new(now));
    let header = &model.info.header;
    let name = Some(header.model.clone()).filter(|name| !name.is_empty());
    effects.push(UiEffect::Ask(Query::Review(ReviewQuery::Start { subject, model: name, effort: header.effort })));
}

/// Stops the running review. Returns `false` if no review is running or it is already being stopped.
pub(crate) fn stop(model: &mut UiModel, effects: &mut Vec<UiEffect>) -> bool {
    let Some(running) = model.reviews.running.as_mut().filter(|running| !running.is_stopping) else { return false };
    running.is_stopping = true;
    model.screen.dirty = true;
    effects.push(UiEffect::Ask(Query::Review(ReviewQuery::Stop)));
    true
}

/// Applies an update about the progress or end of a review.
pub(crate) fn apply(model: &mut UiModel, told: ReviewUpdate) {
    match told {
        ReviewUpdate::Started(changes) => {
            let changes = text::clean_line(&changes);
            if model.screen.in_lines {
                note(model, &format!("reviewing {changes}"), NoteTone::Plain);
            }
            if let Some(running) = &mut model.reviews.running {
                running.changes = Some(changes);
            }
        }
        ReviewUpdate::Step(step) => {
            if let Some(running) = &mut model.reviews.running {
                running.step = Some(text::reveal_line(&step));
            }
        }
        ReviewUpdate::Ended(review) => on_ended(model, *review),
        ReviewUpdate::Stopped => {
            let used = model.reviews.running.take().and_then(|running| used(model, &running));
            let words = with_usage(model, "review stopped", used);
            note(model, &words, NoteTone::Plain);
        }
        ReviewUpdate::Failed(problem) => {
            model.reviews.running = None;
            note_problem(model, &problem, NoteTone::Failure);
        }
    }
}

/// Adds the usage of a review request to the totals of the review and the session, but not to those of the task.
pub(crate) fn on_usage(
    model: &mut UiModel,
    usage: Usage,
    (cost_usd, session_cost_usd): (Option<f64>, Option<f64>),
    estimated: bool,
) {
    if let Some(running) = &mut model.reviews.running {
        running.usage += usage;
        running.is_estimated |= estimated;
        if let Some(cost) = cost_usd {
            *running.cost_usd.get_or_insert(0.0) += cost;
        }
    }
    let tally = &mut model.info.tally;
    tally.usage += usage;
    tally.is_estimated |= estimated;
    match session_cost_usd {
        Some(cost) => tally.cost_usd = Some(cost),
        None => tally.spend(cost_usd),
    }
}

/// Reports a review's result. Opens the list of findings unless something else has keyboard focus.
fn on_ended(model: &mut UiModel, review: Review) {
    let used = model.reviews.running.take().and_then(|running| used(model, &running));
    if review.changes.diffs.is_empty() {
        return note(model, &review.changes.no_changes_note(), NoteTone::Plain);
    }
    let title = review.changes.title.clone();
    if review.findings.is_empty() {
        let dropped = review.dropped_note().map(|note| format!("; {note}")).unwrap_or_default();
        let summary = if review.summary.is_empty() { String::new() } else { format!("\n{}", review.summary) };
        model.reviews.last = None;
        let words = with_usage(model, &format!("review of {title}: no findings{dropped}"), used) + &summary;
        return note(model, &words, NoteTone::Plain);
    }
    let said = with_usage(model, &format!("review of {title}: {}", review.summary()), used);
    let way = if model.screen.in_lines { "" } else { "; /findings lists them" };
    note(model, &format!("{said}{way}"), if review.is_severe() { NoteTone::Warning } else { NoteTone::Plain });
    model.reviews.last = Some(review);
    // The list must not receive keys meant for the draft, and must not cover a task.
    if model.screen.in_lines || model.has_room_for_question() && model.dialogs.is_empty() && !model.is_running() {
        overview::open(model, Topic::Findings);
    }
}

/// Appends a review's usage, if any, to the text.
fn with_usage(model: &UiModel, words: &str, used: Option<String>) -> String {
    let between = if model.screen.in_lines { ", ".to_owned() } else { format!(" {} ", model.screen.glyphs.dot) };
    used.map_or_else(|| words.to_owned(), |used| format!("{words}{between}{used}"))
}

/// Returns the tokens and cost used by a review, or `None` if it has used no tokens.
fn used(model: &UiModel, running: &RunningReview) -> Option<String> {
    let RunningReview { usage, cost_usd, is_estimated, .. } = running;
    if usage.input_tokens + usage.output_tokens == 0 {
        return None;
    }
    let glyphs = &model.screen.glyphs;
    let count = if model.screen.in_lines {
        format!("{} tokens in, {} out", tokens(usage.input_tokens), tokens(usage.output_tokens))
    } else {
        let (sent, got) = (tokens(usage.input_tokens), tokens(usage.output_tokens));
        format!("{} {sent} {} {got} tokens", glyphs.usage.sent, glyphs.usage.received)
    };
    let cost = cost_usd.map(|cost| format!(", {}", format_estimate(cost, *is_estimated))).unwrap_or_default();
    Some(count + &cost)
}

/// Returns the text of the row above the composer, or `None` if no review is running.
pub(crate) fn status_row(model: &UiModel, now: u64) -> Option<String> {
    let running = model.reviews.running.as_ref()?;
    let what = match &running.changes {
        _ if running.is_stopping => "Stopping the review".to_owned(),
        None => "Reading the changes to review".to_owned(),
        Some(changes) => format!("Reviewing {changes}"),
    };
    let elapsed = format!("{} s", now.saturating_sub(running.since) / 1000);
    let parts = [Some(what), Some(elapsed), used(model, running), running.step.clone()];
    let between = format!(" {} ", model.screen.glyphs.dot);
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(&between))
}

/// Returns hints for how to stop the running review, longest first. Empty if it cannot be stopped at the moment.
pub(crate) fn stop_hint(model: &UiModel) -> &'static [&'static str] {
    let is_stopping = model.reviews.running.as_ref().is_some_and(|running| running.is_stopping);
    let is_elsewhere = model.dialogs.is_open() || model.has_layer();
    match model.is_running() {
        _ if is_stopping || is_elsewhere => &[],
        true => &["/review stop"],
        false => &["esc stop"],
    }
}

/// Handles `/findings`, which lists the findings, shows the one with the given number, or drafts a prompt to fix it.
pub(crate) fn show_findings(model: &mut UiModel, words: &str, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(review) = &model.reviews.last else {
        take_draft(model, now, effects);
        let words =
            if model.reviews.running.is_some() { "the review is still running" } else { "no review yet; /review starts one" };
        return model.show_toast(words, now);
    };
    let (fixes, number) = words.strip_prefix("fix ").map_or((false, words), |number| (true, number));
    let at = number.trim().trim_start_matches('#').parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let at = at.filter(|at| *at < review.findings.len());
    match (words, at) {
        ("", _) => {
            take_draft(model, now, effects);
            overview::open(model, Topic::Findings);
        }
        (_, None) => {
            let count = review.findings.len();
            model.show_toast(format!("enter a number from 1 to {count}: `/findings 1`, `/findings fix 1`"), now);
        }
        (_, Some(at)) => {
            take_draft(model, now, effects);
            if fixes { findings::draft_fix(model, at, now) } else { findings::open(model, at) }
        }
    }
}
