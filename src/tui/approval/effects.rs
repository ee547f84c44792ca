//! Rows around a previewed command's diff: the command, changes that have no diff, skipped changes, and the output.

use super::Dialog;
use super::effect_list::{EffectList, NotePlace};
use super::note::{Note, Verb};
use crate::protocol::{Approval, DiscardedEffect, Effects, group_digits};
use crate::text;
use crate::tui::format::format_count;
use crate::tui::theme::Token;
use crate::tui::transcript::take_exit;

/// Number of lines shown from each end of a long output. `?` shows all lines.
const EXCERPT: usize = 8;
/// Maximum number of characters shown of the last output line.
const LAST_LINE: usize = 500;
/// Exit status of a successful command, for which no row is shown.
const SUCCESS: &str = "exit 0";

/// Returns the place of the note about a listed path that the diff does not show.
pub(crate) fn note_place(approval: &Approval, path: &str, discarded: &[DiscardedEffect]) -> NotePlace {
    let Some(effects) = &approval.effects else { return NotePlace::Above(0) };
    EffectList::new(approval, effects).place_of(path, notes_before_list(approval, effects).len(), discarded)
}

/// Returns the leading rows: the command line, then the conflict or failure, if any.
fn lead(approval: &Approval, effects: &Effects) -> Vec<Note> {
    let command = approval.command.as_ref();
    let line = |line: &str| Note::on_one_row(format!("$ {}", first_line(line)), Token::Code);
    let mut notes: Vec<Note> = command.map(|command| line(&command.line)).into_iter().collect();
    if let Some(conflict) = &effects.conflict {
        // The head says that nothing was written, and the choices say what to do.
        let conflict = conflict.split("; nothing was written").next().unwrap_or_default();
        let directory = command.map(|command| format!("`{}/", command.cwd)).unwrap_or_default();
        let conflict = if directory.is_empty() { conflict.to_owned() } else { conflict.replace(&directory, "`") };
        notes.push(Note::new(text::reveal_rows(&conflict), Token::Warn));
    } else if effects.ended != SUCCESS {
        notes.push(Note::new(text::reveal_line(&effects.ended), Token::Warn));
    }
    notes
}

/// Returns the first line of a command, and an ellipsis if there are more. `?` shows all of them.
pub(super) fn first_line(line: &str) -> String {
    match line.trim_end().split_once('\n') {
        Some((first, _)) => format!("{} …", text::reveal_name(first)),
        None => text::reveal_name(line),
    }
}

/// Returns the rows above the list of changes: the command, and warnings.
fn notes_before_list(approval: &Approval, effects: &Effects) -> Vec<Note> {
    let mut notes = lead(approval, effects);
    if effects.more_files > 0 {
        let more = effects.more_files;
        notes.push(Note::new(
            format!("{} more paths are not listed, so the changes cannot be applied; split up the command", group_digits(more)),
            Token::Danger,
        ));
    }
    if !effects.denied.is_empty() {
        let denied: Vec<String> = effects.denied.iter().map(|denied| text::reveal_line(&denied.to_string())).collect();
        notes.push(Note::new(format!("the sandbox blocked {}", denied.join(", ")), Token::Warn));
    }
    notes.extend(approval.proposal.own_notes().iter().map(|note| Note::new(text::reveal_rows(note), Token::Warn)));
    notes
}

/// Returns the rows above the diff: the command, warnings, and the changes that the diff does not show. Paths that the
/// user left out are marked.
pub(crate) fn notes_above(approval: &Approval, effects: &Effects, discarded: &[DiscardedEffect]) -> Vec<Note> {
    if effects.conflict.is_some() {
        return lead(approval, effects);
    }
    let before = notes_before_list(approval, effects).into_iter();
    before.chain(EffectList::new(approval, effects).above(discarded)).collect()
}

/// Returns the rows below the diff: a long list of changes that the diff does not show, and the size of the output, or
/// an excerpt if there is no diff.
pub(crate) fn notes_below(approval: &Approval, effects: &Effects, discarded: &[DiscardedEffect]) -> Vec<Note> {
    if effects.conflict.is_some() {
        return Vec::new();
    }
    if approval.proposal.diff.hunks().next().is_none() {
        return output_notes(&effects.output);
    }
    let listed = EffectList::new(approval, effects).below(discarded).into_iter();
    listed.chain(output_row(&effects.output)).collect()
}

/// Returns the row with the size and the last line of an output.
fn output_row(output: &str) -> Option<Note> {
    let mut output = text::clean(output).into_owned();
    take_exit(&mut output);
    let output = output.trim();
    let lines = format_count(output.lines().count(), "line");
    let row = |last: &str| {
        // A row has no space for more characters.
        let start: String = last.chars().take(LAST_LINE).collect();
        let last = text::clean_line(&start);
        Note::on_one_row(format!("output: {lines}, the last: {last}"), Token::Muted).with_ending(" · ? show all")
    };
    output.lines().next_back().map(row)
}

/// Returns the rows below the diff for line mode, which has no page for the output.
pub(crate) fn lines_below(panel: &Dialog) -> Vec<String> {
    let Some(approval) = panel.asked_approval() else { return Vec::new() };
    let Some(effects) = approval.effects.as_deref().filter(|effects| effects.conflict.is_none()) else { return Vec::new() };
    let listed = EffectList::new(approval, effects).below(&[]).into_iter();
    listed.chain(output_notes(&effects.output)).map(|note| note.text).collect()
}

/// Returns the verb on the approval choice for these effects.
pub(crate) fn verb(effects: &Effects) -> Verb {
    if effects.is_empty() {
        Verb { long: "give its output to the model", short: "use output" }
    } else {
        Verb { long: "apply these changes", short: "apply" }
    }
}

/// Returns the fact shown on the right of the dialog's head, or an empty string.
pub(crate) fn facts(effects: &Effects) -> String {
    if effects.conflict.is_some() { "nothing written".to_owned() } else { String::new() }
}

/// Returns whether the output contains anything other than the exit status.
pub(crate) fn has_output(output: &str) -> bool {
    let mut output = output.to_owned();
    take_exit(&mut output);
    !output.trim().is_empty()
}

fn output_notes(output: &str) -> Vec<Note> {
    let mut output = text::clean(output).into_owned();
    // The exit status is already shown above.
    take_exit(&mut output);
    let rows: Vec<&str> = output.trim_end().split('\n').collect();
    if output.trim().is_empty() {
        return vec![Note::new("no output".to_owned(), Token::Muted)];
    }
    let row = |row: &&str| Note::new(format!("  {row}"), Token::Muted);
    let mut notes = vec![Note::new("output".to_owned(), Token::Text)];
    if rows.len() <= 2 * EXCERPT + 1 {
        notes.extend(rows.iter().map(row));
        return notes;
    }
    let left = rows.len() - 2 * EXCERPT;
    notes.extend(rows[..EXCERPT].iter().map(row));
    notes.push(Note::new(format!("  … {} more lines · ? show all", group_digits(left as u64)), Token::Faint));
    notes.extend(rows[rows.len() - EXCERPT..].iter().map(row));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_the_output_takes_one_row() {
        let row = output_row(&format!("one\n{}\tb", "a".repeat(100_000))).unwrap();
        let rows = row.rows(60);
        assert!(rows.len() == 1 && rows[0].ends_with(" · ? show all") && !rows[0].contains('\t'), "{rows:?}");
        assert!(row.text.len() < 1000);
    }

    #[test]
    fn command_output_cannot_hide_text_with_control_characters() {
        let notes = output_notes("a\u{1b}[2Kb\n\u{202e}c");
        let text: String = notes.iter().map(|note| note.text.as_str()).collect();
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    }
}
