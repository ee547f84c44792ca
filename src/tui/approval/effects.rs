//! Rows around the diff of a previewed command: the command, changes without a diff, omitted changes and output.

use super::Dialog;
use super::diff_layout::LARGE_LINES;
use super::note::{Note, Verb};
use crate::protocol::{Approval, CountedEffects, CreatedFiles, DiscardedEffect, EffectKind, Effects, FileEffect, size};
use crate::text;
use crate::tui::format::format_count;
use crate::tui::theme::Token;
use crate::tui::transcript::take_exit;
use std::collections::HashSet;

/// Number of lines of a long output shown from its start, and from its end; `?` shows all of it.
const EXCERPT: usize = 8;
/// Maximum number of characters read from the last line of an output.
const LAST_LINE: usize = 500;
/// Width of the column with the change of a path, in cells.
const VERB: usize = 9;
/// Status of a command that succeeded, which needs no row.
const SUCCESS: &str = "exit 0";
/// Word shown instead of the kind of change for a path that the user left out.
const DISCARD: &str = "discard";

/// Returns the index of the note about a listed path that the diff does not show.
pub(crate) fn note_index(approval: &Approval, path: &str) -> usize {
    let Some(effects) = &approval.effects else { return 0 };
    let listed = listed_files(approval, effects).into_iter().map(|file| file.path.as_str());
    let at = listed.chain(effects.groups.iter().map(|group| group.folder.as_str())).position(|listed| listed == path);
    lead(approval, effects).len() + at.unwrap_or(0)
}

/// Returns whether the title names the only change.
pub(super) fn is_in_title(effects: &Effects) -> bool {
    effects.conflict.is_none() && matches!((effects.files.as_slice(), effects.paths()), ([_], 1))
}

/// Returns the files that are listed above the diff: those whose change or name the diff does not show. A diff that is
/// too long to be reviewed lists all of them, and a diff of a single file does not name it.
fn listed_files<'a>(approval: &Approval, effects: &'a Effects) -> Vec<&'a FileEffect> {
    let diff = &approval.proposal.diff;
    let lines: usize = diff.hunks().map(|hunk| hunk.lines.len()).sum();
    let has_names = lines <= LARGE_LINES && (diff.len() > 1 || is_in_title(effects));
    let mut shown: HashSet<&str> = HashSet::new();
    let mut ambiguous: HashSet<&str> = HashSet::new();
    for name in diff.iter().filter(|file| has_names && !file.hunks.is_empty()).filter_map(|file| file.name.as_deref()) {
        if !shown.insert(name) {
            ambiguous.insert(name);
        }
    }
    let mut paths: HashSet<&str> = HashSet::new();
    ambiguous.extend(effects.files.iter().map(|effect| effect.path.as_str()).filter(|path| !paths.insert(*path)));
    let is_in_diff = |effect: &FileEffect| {
        let path = effect.path.as_str();
        is_plain_text(effect) && shown.contains(path) && !ambiguous.contains(path)
    };
    effects.files.iter().filter(|effect| !is_in_diff(effect)).collect()
}

/// Returns whether the text of one file is all of the effect.
fn is_plain_text(effect: &FileEffect) -> bool {
    let is_text = matches!(
        effect.kind,
        EffectKind::Created { binary: false, .. }
            | EffectKind::Changed { binary: false, .. }
            | EffectKind::Deleted { binary: false, .. }
    );
    is_text && effect.notes.is_empty()
}

/// Returns the first rows: the command, and how it ended if it failed.
fn lead(approval: &Approval, effects: &Effects) -> Vec<Note> {
    let command = approval.command.as_ref();
    let line = |line: &str| Note::on_one_row(format!("$ {}", text::reveal_name(line)), Token::Code);
    let mut notes: Vec<Note> = command.map(|command| line(&command.line)).into_iter().collect();
    if let Some(conflict) = &effects.conflict {
        notes.push(Note::new(text::reveal_rows(conflict), Token::Warn));
    } else if effects.ended != SUCCESS {
        notes.push(Note::new(text::reveal_line(&effects.ended), Token::Warn));
    }
    notes
}

/// Returns the rows above the diff: the command, the changes that the diff does not show, and warnings. Paths that the
/// user left out are marked.
pub(crate) fn notes_above(approval: &Approval, effects: &Effects, discarded: &[DiscardedEffect]) -> Vec<Note> {
    let is_discarded = |path: &str| discarded.iter().any(|one| one.path == path && one.hunks.is_empty());
    let mut notes = lead(approval, effects);
    if effects.conflict.is_some() {
        return notes;
    }
    let listed = listed_files(approval, effects).into_iter();
    notes.extend(listed.map(|effect| file(effect, is_discarded(&effect.path))));
    notes.extend(effects.groups.iter().map(|folder| group(folder, is_discarded(&folder.folder))));
    if effects.more_files > 0 {
        let more = effects.more_files;
        notes.push(Note::new(
            format!("{more} more paths are not listed, so the changes cannot be applied; split up the command"),
            Token::Danger,
        ));
    }
    notes.extend(effects.counted.iter().map(ignored_note));
    for refused in &effects.refused {
        let words = format!("{:VERB$}{}: {}", "SKIPPED", text::reveal_name(&refused.path), text::reveal_line(&refused.reason));
        notes.push(Note::new(words, Token::Danger));
    }
    if !effects.denied.is_empty() {
        let denied: Vec<String> = effects.denied.iter().map(|denied| text::reveal_line(&denied.to_string())).collect();
        notes.push(Note::new(format!("the sandbox blocked {}", denied.join(", ")), Token::Warn));
    }
    notes.extend(approval.proposal.own_notes().iter().map(|note| Note::new(text::reveal_rows(note), Token::Warn)));
    notes
}

/// Returns the rows below the diff: the size of the output, or an excerpt if there is no diff.
pub(crate) fn notes_below(effects: &Effects, has_diff: bool) -> Vec<Note> {
    if effects.conflict.is_some() {
        return Vec::new();
    }
    if !has_diff {
        return output_notes(&effects.output);
    }
    let mut output = text::clean(&effects.output).into_owned();
    take_exit(&mut output);
    let output = output.trim();
    let lines = format_count(output.lines().count(), "line");
    let row = |last: &str| {
        // A row has no space for more.
        let start: String = last.chars().take(LAST_LINE).collect();
        let last = text::clean_line(&start);
        Note::on_one_row(format!("output: {lines}, the last: {last}"), Token::Muted).with_ending(" · ? show all")
    };
    output.lines().next_back().map(row).into_iter().collect()
}

/// Returns the rows of the output, for line mode, which has no page for it.
pub(crate) fn output_excerpt(panel: &Dialog) -> Vec<String> {
    let effects = panel.asked_approval().and_then(|approval| approval.effects.as_ref());
    let notes = effects.map(|effects| notes_below(effects, false)).unwrap_or_default();
    notes.into_iter().map(|note| note.text).collect()
}

/// Returns the approval verb for these effects.
pub(crate) fn verb(effects: &Effects) -> Verb {
    if effects.is_empty() {
        Verb { long: "continue with its output", short: "continue" }
    } else {
        Verb { long: "apply these changes", short: "apply" }
    }
}

/// Returns the fact at the right of the head, if the title does not say it.
pub(crate) fn facts(effects: &Effects) -> String {
    if effects.conflict.is_some() { "nothing written".to_owned() } else { String::new() }
}

fn file(effect: &FileEffect, is_discarded: bool) -> Note {
    let path = text::reveal_name(&effect.path);
    let binary = |is: bool| if is { ", binary" } else { "" };
    let (verb, rest) = match &effect.kind {
        EffectKind::Created { bytes, binary: is } => ("created", format!("{path}  {}{}", size(*bytes), binary(*is))),
        EffectKind::Changed { bytes_before, bytes_after, binary: true } => {
            ("changed", format!("{path}  {} → {}, binary", size(*bytes_before), size(*bytes_after)))
        }
        EffectKind::Changed { binary: false, .. } => ("changed", path),
        EffectKind::Deleted { bytes, binary: is } => ("deleted", format!("{path}  {}{}", size(*bytes), binary(*is))),
        EffectKind::Renamed { from, changed } => {
            ("renamed", format!("{} → {path}{}", text::reveal_name(from), if *changed { ", and changed" } else { "" }))
        }
        EffectKind::ModeChanged { from, to } if from == to => ("touched", path),
        EffectKind::ModeChanged { from, to } => ("mode", format!("{path}  {from:04o} → {to:04o}")),
        EffectKind::DirectoryCreated => ("created", format!("{path}/")),
        EffectKind::DirectoryDeleted { files } => {
            ("deleted", format!("{path}/  with {}", format_count(usize::try_from(*files).unwrap_or(usize::MAX), "file")))
        }
        EffectKind::Linked { to } => ("link", format!("{path} → {}", text::reveal_name(to))),
    };
    let notes = effect.notes.iter().flat_map(|note| [" · ".to_owned(), text::reveal_line(note)]).collect::<String>();
    if is_discarded {
        return Note::new(format!("{DISCARD:VERB$}{rest}{notes}"), Token::Faint);
    }
    let token = match (&effect.kind, effect.notes.is_empty()) {
        (EffectKind::Deleted { .. } | EffectKind::DirectoryDeleted { .. }, _) | (_, false) => Token::Warn,
        (_, true) => Token::Text,
    };
    Note::new(format!("{verb:VERB$}{rest}{notes}"), token)
}

/// Returns the row for the new files in a folder; the pager lists them.
fn group(group: &CreatedFiles, is_discarded: bool) -> Note {
    let folder = text::reveal_name(group.folder.trim_end_matches('/'));
    let ignored = if group.ignored { " · ignored by git" } else { "" };
    let files = format_count(group.files.len(), "new file");
    let (verb, token) = if is_discarded { (DISCARD, Token::Faint) } else { ("created", Token::Text) };
    Note::new(format!("{verb:VERB$}{folder}/  {files}, {}{ignored} · ? list", size(group.bytes)), token)
}

fn ignored_note(counted: &CountedEffects) -> Note {
    let CountedEffects { path, created, changed, deleted, bytes, direct } = counted;
    let count = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let counts = [count(*created, "created"), count(*changed, "changed"), count(*deleted, "deleted")];
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    let path = text::reveal_name(path.trim_end_matches('/'));
    let why = if *direct { "written directly, cannot be undone" } else { "ignored by git, not shown" };
    Note::new(format!("{:VERB$}{path}/  {}, {} · {why}", "in", counts.join(", "), size(*bytes)), Token::Text)
}

/// Returns whether an output contains anything but the exit status.
pub(crate) fn has_output(output: &str) -> bool {
    let mut output = output.to_owned();
    take_exit(&mut output);
    !output.trim().is_empty()
}

fn output_notes(output: &str) -> Vec<Note> {
    let mut output = text::clean(output).into_owned();
    // The exit status is shown above already.
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
    notes.push(Note::new(format!("  … {left} more lines · ? show all"), Token::Faint));
    notes.extend(rows[rows.len() - EXCERPT..].iter().map(row));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::FileDiffs;
    use crate::tui::tests::fixtures::effects_approval;

    /// Returns the effects on two text files, with this number of changed lines.
    fn two_files(lines: usize) -> Approval {
        let mut approval = effects_approval("a");
        let file = |path: &str, notes: &[&str]| FileEffect {
            path: path.to_owned(),
            kind: EffectKind::Changed { bytes_before: 1, bytes_after: 2, binary: false },
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
        };
        let diff =
            |path: &str, lines: usize| format!("--- a/{path}\n+++ b/{path}\n@@ -0,0 +1,{lines} @@\n{}", "+x\n".repeat(lines));
        approval.proposal.diff = FileDiffs::read(&format!("{}{}", diff("a.rs", lines - 1), diff("b.rs", 1)));
        let effects = approval.effects.as_mut().unwrap();
        (effects.files, effects.groups) = (vec![file("a.rs", &[]), file("b.rs", &[])], Vec::new());
        approval
    }

    fn names_above(approval: &Approval) -> Vec<String> {
        let notes = notes_above(approval, approval.effects.as_deref().unwrap(), &[]);
        notes.into_iter().map(|note| note.text).filter(|text| text.starts_with("changed")).collect()
    }

    #[test]
    fn a_diff_that_is_too_long_to_review_lists_all_files() {
        assert!(names_above(&two_files(2000)).is_empty(), "the diff names them");
        let large = two_files(2001);
        assert_eq!(names_above(&large), ["changed  a.rs", "changed  b.rs"]);
        let notes = notes_above(&large, large.effects.as_deref().unwrap(), &[]);
        assert_eq!(notes[note_index(&large, "b.rs")].text, "changed  b.rs");
        // All of the list must be shown before the changes can be applied.
        assert!(Dialog::approval(large).body.required_rows(80) >= notes.len());
    }

    #[test]
    fn files_that_the_diff_does_not_identify_are_listed() {
        let mut approval = two_files(10);
        approval.effects.as_mut().unwrap().files[1].path = "a.rs".to_owned();
        assert_eq!(names_above(&approval).len(), 2, "two effects with one name");
        let mut approval = two_files(10);
        approval.proposal.diff = approval.proposal.diff.iter().take(1).cloned().collect();
        assert_eq!(names_above(&approval).len(), 2, "the diff of one file has no name");
        approval.effects.as_mut().unwrap().files.truncate(1);
        assert!(names_above(&approval).is_empty(), "the title names it");
    }

    #[test]
    fn the_last_line_of_the_output_takes_one_row() {
        let mut effects = *effects_approval("a").effects.unwrap();
        effects.output = format!("one\n{}\tb", "a".repeat(100_000));
        let notes = notes_below(&effects, true);
        let rows = notes[0].rows(60);
        assert!(rows.len() == 1 && rows[0].ends_with(" · ? show all") && !rows[0].contains('\t'), "{rows:?}");
        assert!(notes[0].text.len() < 1000);
    }

    #[test]
    fn command_output_cannot_hide_text_with_control_characters() {
        let notes = output_notes("a\u{1b}[2Kb\n\u{202e}c");
        let text: String = notes.iter().map(|note| note.text.as_str()).collect();
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    }
}
