//! Changes of a previewed command that its diff does not show. A short list is above the diff; a long one is below it,
//! with one row for its riskiest changes and one for the number of the others above the diff.

use super::diff_layout::LARGE_LINES;
use super::note::Note;
use crate::protocol::{
    Approval, CountedEffects, CreatedFiles, DiscardedEffect, EffectKind, Effects, FileEffect, group_digits, size,
};
use crate::text;
use crate::tui::format::format_count;
use crate::tui::theme::Token;
use std::collections::HashSet;

/// Maximum number of paragraphs of a list above the diff.
const SHORT: usize = 3;
/// Width, in cells, of the column that names the kind of change.
const VERB: usize = 9;
/// Label shown in place of the kind of change for a path that the user has left out.
const DISCARD: &str = "discard";
/// Heading of a list below the diff.
const HEADING: &str = "Changes that the diff does not show";
/// End of the row above the diff that counts the changes below it.
const BELOW: &str = " · listed below";

/// Place of a paragraph: its index above or below the diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotePlace {
    Above(usize),
    Below(usize),
}

/// Changes that the diff does not show.
pub(super) struct EffectList<'a> {
    /// Changed paths, and the one that names the diff of a single file.
    files: Vec<&'a FileEffect>,
    named: Option<&'a FileEffect>,
    effects: &'a Effects,
    is_below: bool,
}

impl<'a> EffectList<'a> {
    pub(super) fn new(approval: &Approval, effects: &'a Effects) -> Self {
        let diff = &approval.proposal.diff;
        let lines: usize = diff.hunks().map(|hunk| hunk.lines.len()).sum();
        let mut files = files_not_in_diff(approval, effects, lines);
        let others = effects.groups.len() + effects.counted.len() + effects.refused.len();
        // Approving a diff that is too long to be reviewed requires only the rows above it.
        let has_readable_diff = (1..=LARGE_LINES).contains(&lines);
        let only = diff.iter().next().filter(|_| diff.len() == 1).and_then(|file| file.name.as_deref());
        let named = files.iter().position(|file| has_readable_diff && only == Some(&file.path));
        let is_below = has_readable_diff && files.len() + others - usize::from(named.is_some()) > SHORT;
        let named = named.filter(|_| is_below).map(|at| files.remove(at));
        Self { files, named, effects, is_below }
    }

    /// Returns the rows of the list above the diff, or the summary rows if the list is below it.
    pub(super) fn above(&self, discarded: &[DiscardedEffect]) -> Vec<Note> {
        if !self.is_below {
            return self.rows(discarded);
        }
        let named = self.named.map(|effect| file(effect, is_discarded(&effect.path, discarded)));
        self.risky_row(discarded).into_iter().chain([self.count_row()]).chain(named).collect()
    }

    /// Returns the rows of the list below the diff.
    pub(super) fn below(&self, discarded: &[DiscardedEffect]) -> Vec<Note> {
        if !self.is_below {
            return Vec::new();
        }
        [Note::new(HEADING.to_owned(), Token::Heading)].into_iter().chain(self.rows(discarded)).collect()
    }

    fn rows(&self, discarded: &[DiscardedEffect]) -> Vec<Note> {
        let files = self.files.iter().map(|effect| file(effect, is_discarded(&effect.path, discarded)));
        let groups = self.effects.groups.iter().map(|folder| group(folder, is_discarded(&folder.folder, discarded)));
        let counted = self.effects.counted.iter().map(ignored_note);
        let refused = self.effects.refused.iter().map(|refused| {
            let (path, reason) = (text::reveal_name(&refused.path), text::reveal_line(&refused.reason));
            Note::new(format!("{:VERB$}{path}: {reason}", "SKIPPED"), Token::Danger)
        });
        files.chain(groups).chain(counted).chain(refused).collect()
    }

    /// Returns the place of a listed path, after this number of paragraphs above the list.
    pub(super) fn place_of(&self, path: &str, lead: usize, discarded: &[DiscardedEffect]) -> NotePlace {
        let listed = self.files.iter().map(|file| file.path.as_str());
        let at = listed.chain(self.effects.groups.iter().map(|group| group.folder.as_str())).position(|listed| listed == path);
        match at {
            Some(at) if self.is_below => NotePlace::Below(1 + at),
            Some(at) => NotePlace::Above(lead + at),
            // The row that names the diff follows the summary rows.
            None if self.named.is_some_and(|named| named.path == path) => {
                NotePlace::Above(lead + usize::from(self.risky_row(discarded).is_some()) + 1)
            }
            None => NotePlace::Above(lead),
        }
    }

    /// Returns the row with the deleted paths, and with those that have a warning, except those that the user left out.
    fn risky_row(&self, discarded: &[DiscardedEffect]) -> Option<Note> {
        let name = |effect: &&FileEffect| match &effect.kind {
            EffectKind::DirectoryDeleted { files } => {
                Some(format!("{}/ with {}", text::reveal_name(&effect.path), files_of(*files)))
            }
            EffectKind::Deleted { .. } => Some(text::reveal_name(&effect.path)),
            _ => None,
        };
        let kept = self.files.iter().copied().filter(|effect| !is_discarded(&effect.path, discarded));
        let mut deleted: Vec<&FileEffect> = kept.clone().filter(|effect| name(effect).is_some()).collect();
        deleted.sort_by_key(|effect| !matches!(effect.kind, EffectKind::DirectoryDeleted { .. }));
        let deleted: Vec<String> = deleted.iter().filter_map(name).collect();
        let noted = kept.filter(|effect| !effect.notes.is_empty());
        let noted =
            noted.map(|effect| format!("{}: {}", text::reveal_name(&effect.path), text::reveal_line(&effect.notes.join(", "))));
        let verb = if deleted.is_empty() { "warning" } else { "deleted" };
        let parts: Vec<String> = [deleted.join(", ")].into_iter().filter(|names| !names.is_empty()).chain(noted).collect();
        (!parts.is_empty()).then(|| Note::on_one_row(format!("{verb:VERB$}{}", parts.join(" · ")), Token::Warn))
    }

    /// Returns the row with the number of the other changes.
    fn count_row(&self) -> Note {
        let Effects { groups, counted, refused, .. } = self.effects;
        let count = |is: fn(&EffectKind) -> bool| self.files.iter().filter(|effect| is(&effect.kind)).count();
        let grouped: usize = groups.iter().map(|group| group.files.len()).sum();
        let created = |kind: &EffectKind| matches!(kind, EffectKind::Created { .. } | EffectKind::DirectoryCreated);
        let is_mode = |kind: &EffectKind| matches!(kind, EffectKind::ModeChanged { .. });
        let counts = [
            (refused.len(), "skipped"),
            (count(|kind| matches!(kind, EffectKind::Linked { .. })), "linked"),
            (count(is_mode), "with another mode"),
            (count(|kind| matches!(kind, EffectKind::Renamed { .. })), "renamed"),
            (count(|kind| matches!(kind, EffectKind::Changed { .. })), "changed"),
            (count(created) + grouped, "created"),
        ];
        let counts = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", group_digits(count as u64)));
        let folders = counted.iter().map(|counted| format!("{}/", text::reveal_name(counted.path.trim_end_matches('/'))));
        let words: Vec<String> = counts.chain(folders).collect();
        let token = if refused.is_empty() { Token::Text } else { Token::Warn };
        Note::on_one_row(format!("{:VERB$}{}", "also", words.join(", ")), token).with_ending(BELOW)
    }
}

/// Returns whether there is only one change and the title therefore names it.
pub(super) fn is_in_title(effects: &Effects) -> bool {
    effects.conflict.is_none() && matches!((effects.files.as_slice(), effects.paths()), ([_], 1))
}

fn is_discarded(path: &str, discarded: &[DiscardedEffect]) -> bool {
    discarded.iter().any(|one| one.path == path && one.hunks.is_empty())
}

/// Returns the files whose change or name the diff does not show. A diff that is too long to be reviewed lists all of
/// them, and a diff of a single file does not name it.
fn files_not_in_diff<'a>(approval: &Approval, effects: &'a Effects, lines: usize) -> Vec<&'a FileEffect> {
    let diff = &approval.proposal.diff;
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
        // A deletion is listed even if the diff shows its text.
        let is_deleted = matches!(effect.kind, EffectKind::Deleted { .. }) && !is_in_title(effects);
        is_plain_text(effect) && !is_deleted && shown.contains(path) && !ambiguous.contains(path)
    };
    effects.files.iter().filter(|effect| !is_in_diff(effect)).collect()
}

/// Returns whether the file's text diff shows everything that the command changed.
fn is_plain_text(effect: &FileEffect) -> bool {
    let is_text = matches!(
        effect.kind,
        EffectKind::Created { binary: false, .. }
            | EffectKind::Changed { binary: false, .. }
            | EffectKind::Deleted { binary: false, .. }
    );
    is_text && effect.notes.is_empty()
}

fn files_of(count: u64) -> String {
    format_count(usize::try_from(count).unwrap_or(usize::MAX), "file")
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
        EffectKind::DirectoryDeleted { files } => ("deleted", format!("{path}/  with {}", files_of(*files))),
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

/// Returns the row that summarizes the new files in a folder. The pager lists the files.
fn group(group: &CreatedFiles, is_discarded: bool) -> Note {
    let folder = text::reveal_name(group.folder.trim_end_matches('/'));
    let ignored = if group.ignored { " · ignored by git" } else { "" };
    let files = format_count(group.files.len(), "new file");
    let (verb, token) = if is_discarded { (DISCARD, Token::Faint) } else { ("created", Token::Text) };
    Note::new(format!("{verb:VERB$}{folder}/  {files}, {}{ignored} · ? list", size(group.bytes)), token)
}

fn ignored_note(counted: &CountedEffects) -> Note {
    let CountedEffects { path, created, changed, deleted, bytes, direct } = counted;
    let count = |count: u64, what: &str| (count > 0).then(|| format!("{} {what}", group_digits(count)));
    let counts = [count(*created, "created"), count(*changed, "changed"), count(*deleted, "deleted")];
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    let path = text::reveal_name(path.trim_end_matches('/'));
    let why = if *direct { "written directly, cannot be undone" } else { "ignored by git, not shown" };
    Note::new(format!("{:VERB$}{path}/  {}, {} · {why}", "in", counts.join(", "), size(*bytes)), Token::Text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::FileDiffs;
    use crate::tui::approval::Dialog;
    use crate::tui::approval::effects::{note_place, notes_above, notes_below};
    use crate::tui::tests::fixtures::effects_approval;

    /// Returns an approval whose effects change two text files, with `lines` diff lines in total.
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
        let place = EffectList::new(&large, large.effects.as_deref().unwrap()).place_of("b.rs", 2, &[]);
        assert_eq!((place, notes[3].text.as_str()), (NotePlace::Above(3), "changed  b.rs"));
        // The whole list must be shown before the changes can be applied.
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

    fn texts(notes: Vec<Note>) -> Vec<String> {
        notes.into_iter().map(|note| note.text).collect()
    }

    #[test]
    fn a_long_list_is_below_the_diff_and_its_riskiest_changes_are_named_above() {
        let approval = effects_approval("a");
        let effects = approval.effects.as_deref().unwrap();
        let above = texts(notes_above(&approval, effects, &[]));
        assert_eq!(
            above[1..],
            [
                "the sandbox blocked example.com:443",
                "deleted  docs/ with 12 files, old.rs · tool: set-uid bit dropped",
                "also     1 skipped, 1 linked, 1 with another mode, 1 renamed, 122 created",
                "changed  src/main.rs",
            ]
        );
        let below = texts(notes_below(&approval, effects, &[]));
        assert_eq!(below[0], HEADING);
        for path in effects.listed_paths().skip(1) {
            let NotePlace::Below(at) = EffectList::new(&approval, effects).place_of(path, 2, &[]) else { panic!("{path}") };
            assert!(below[at].contains(path.trim_end_matches('/')), "{path}: {below:?}");
        }
        assert!(below.iter().any(|row| row.starts_with("SKIPPED  .git/hooks/pre-commit: ")), "{below:?}");
    }

    #[test]
    fn a_path_that_is_left_out_is_marked_below_the_diff() {
        let approval = effects_approval("a");
        let discarded = [DiscardedEffect { path: "old.rs".to_owned(), hunks: Vec::new() }];
        let below = texts(notes_below(&approval, approval.effects.as_deref().unwrap(), &discarded));
        assert!(below.contains(&"discard  old.rs  940 bytes".to_owned()), "{below:?}");
        let above = texts(notes_above(&approval, approval.effects.as_deref().unwrap(), &discarded));
        assert_eq!(above[2], "deleted  docs/ with 12 files · tool: set-uid bit dropped");
    }

    #[test]
    fn the_row_that_names_the_diff_is_found_after_the_summary_rows() {
        let approval = effects_approval("a");
        let effects = approval.effects.as_deref().unwrap();
        let leave_out = |path: &str| DiscardedEffect { path: path.to_owned(), hunks: Vec::new() };
        for discarded in [Vec::new(), Vec::from(["docs", "old.rs", "tool"].map(leave_out))] {
            let above = texts(notes_above(&approval, effects, &discarded));
            let place = note_place(&approval, "src/main.rs", &discarded);
            let NotePlace::Above(at) = place else { panic!("{place:?}") };
            assert_eq!(above[at], "changed  src/main.rs", "{above:?}");
        }
    }

    #[test]
    fn a_list_without_a_diff_stays_above() {
        let mut approval = effects_approval("a");
        approval.proposal.diff = FileDiffs::default();
        let effects = approval.effects.as_deref().unwrap();
        let above = texts(notes_above(&approval, effects, &[]));
        assert!(above.contains(&"renamed  src/a.rs → src/b.rs, and changed".to_owned()), "{above:?}");
        assert!(!texts(notes_below(&approval, effects, &[])).contains(&HEADING.to_owned()));
    }
}
