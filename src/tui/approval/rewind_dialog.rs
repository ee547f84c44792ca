//! Rewind dialog, which lists the changes to undo, the changes that cannot be undone, and edits made outside aye.

use super::dialog_kind::{DialogKind, HintState};
use super::note::{Note, Verb};
use super::pager::Pager;
use super::{Body, Choice, ChoiceAction, Confirm, Dialog, DialogAnswer, choice};
use crate::protocol::{RewindChange, RewindFile, RewindPlan, RewindScope, RewindTarget};
use crate::text;
use crate::tui::format::format_count;
use crate::tui::theme::Token;
use std::path::PathBuf;

/// Width, in cells, of the column that names the kind of change.
const VERB: usize = 14;
/// Verb shown on the approval choice.
const GO_BACK: Verb = Verb { long: "rewind", short: "rewind" };

/// Rewind plan, and the conflicting paths that the user has selected.
#[derive(Debug)]
pub(crate) struct RewindChoice {
    pub plan: RewindPlan,
    /// Indexes, in the plan's list of files, of the conflicting paths to rewind anyway.
    taken: Vec<usize>,
    /// Index of the current conflict.
    at: usize,
}

/// Action of a key on the list of conflicting paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Turn,
    Next,
    Before,
}

impl Mark {
    pub(crate) fn from_key(letter: char) -> Option<Self> {
        match letter {
            ' ' => Some(Self::Turn),
            ']' => Some(Self::Next),
            '[' => Some(Self::Before),
            _ => None,
        }
    }
}

impl RewindChoice {
    fn new(plan: RewindPlan) -> Self {
        Self { plan, taken: Vec::new(), at: 0 }
    }

    /// Returns the indexes of the files in conflict because they were edited outside aye.
    fn conflicts(&self) -> Vec<usize> {
        let files = self.plan.files.iter().enumerate();
        files.filter(|(_, file)| file.conflict.is_some()).map(|(at, _)| at).collect()
    }

    /// Returns the conflicting paths that the user chose to rewind anyway.
    pub(crate) fn overwrite(&self) -> Vec<PathBuf> {
        self.taken.iter().filter_map(|at| self.plan.files.get(*at)).map(|file| file.path.clone()).collect()
    }

    pub(crate) fn marks(&self) -> bool {
        !self.conflicts().is_empty()
    }

    /// Applies a key to the list of conflicts. Returns `false` if the plan has no conflicts.
    fn mark(&mut self, mark: Mark) -> bool {
        let conflicts = self.conflicts();
        let Some(marked) = conflicts.get(self.at).copied() else { return false };
        match mark {
            Mark::Next => self.at = (self.at + 1) % conflicts.len(),
            Mark::Before => self.at = (self.at + conflicts.len() - 1) % conflicts.len(),
            Mark::Turn => match self.taken.iter().position(|taken| *taken == marked) {
                Some(at) => {
                    self.taken.remove(at);
                }
                None => self.taken.push(marked),
            },
        }
        true
    }

    fn body(&self) -> Body {
        Body::notes(self.notes(), GO_BACK, self.facts())
    }

    /// Returns the numbers of affected files, lines and messages, such as `2 files · +14 −9 · 4 messages`.
    fn facts(&self) -> String {
        let plan = &self.plan;
        let goes = || plan.files.iter().filter(|file| !file.kept && file.conflict.is_none());
        let (added, removed) = goes().fold((0, 0), |(added, removed), file| (added + file.added, removed + file.removed));
        let files = match goes().count() {
            0 => "no files".to_owned(),
            count => format!("{} · +{added} −{removed}", format_count(count, "file")),
        };
        format!("{files} · {}", format_messages(plan.messages))
    }

    fn notes(&self) -> Vec<Note> {
        let plan = &self.plan;
        let conflicts = self.conflicts();
        let mut notes = Vec::new();
        let mut put = |words: String, token| notes.push(Note::new(words, token));
        for file in plan.files.iter().filter(|file| file.conflict.is_none() && !file.kept) {
            put(describe_change(file), if file.change == RewindChange::Deleted { Token::Warn } else { Token::Text });
        }
        if plan.files.is_empty() {
            put("no files would change".to_owned(), Token::Text);
        }
        for file in plan.files.iter().filter(|file| file.conflict.is_none() && file.kept) {
            put(format!("{:VERB$}{}", "unchanged", path(file)), Token::Warn);
        }
        if !conflicts.is_empty() {
            let keys = if conflicts.len() > 1 { "space select, [ ] move" } else { "space select" };
            put(format!("edited outside aye since then; left as is ({keys}):"), Token::Warn);
        }
        for (nth, at) in conflicts.iter().enumerate() {
            let file = &plan.files[*at];
            let lead = if nth == self.at { '>' } else { ' ' };
            let (sign, token) = if self.taken.contains(at) { ('x', Token::Danger) } else { (' ', Token::Text) };
            let does = if self.taken.contains(at) { file.change.verb() } else { "left as is" };
            let why = text::reveal_line(file.conflict.as_deref().unwrap_or_default());
            put(format!("{lead} [{sign}] {}{}  {does}: {why}", path(file), line_counts(file)), token);
        }
        if !plan.cannot.is_empty() {
            put("not undone:".to_owned(), Token::Warn);
        }
        for why in &plan.cannot {
            put(format!("  {}", text::reveal_line(why)), Token::Warn);
        }
        notes
    }

    fn choices(&self) -> Vec<Choice> {
        let plan = &self.plan;
        let act = |letter, scope, words: String, short| {
            choice(letter, Confirm::LetterThenEnter, ChoiceAction::Rewind(scope), words, short)
        };
        let mut choices = Vec::new();
        if plan.target == RewindTarget::Redo {
            choices.push(act('1', plan.scope, format!("restore what was undone: {}", scope_text(plan.scope)), "restore"));
        } else {
            let said = format_messages(plan.messages);
            let both = act('1', RewindScope::Both, "conversation and files".to_owned(), "both");
            let talk = if plan.messages > 0 { format!("undo {said}, keep the files") } else { "no messages to undo".to_owned() };
            let talk = act('2', RewindScope::Conversation, format!("conversation only: {talk}"), "conversation");
            let talk = Choice { enabled: plan.messages > 0, ..talk };
            let files =
                if plan.files.is_empty() { "no files would change" } else { "keeps the conversation and tells the model" };
            let files = format!("files only: {files}");
            let files = Choice { enabled: !plan.files.is_empty(), ..act('3', RewindScope::Files, files, "files") };
            choices.extend([both, talk, files]);
            if let Some(point) = &plan.point {
                let words = format!("fork instead: copy the session up to before prompt {}; this one is unchanged", point.number);
                choices.push(choice('f', Confirm::LetterThenEnter, ChoiceAction::Fork, words, "fork"));
            }
        }
        if !plan.diff.is_empty() {
            choices.push(choice('d', Confirm::Letter, ChoiceAction::Look, "show the diff".to_owned(), "diff"));
        }
        choices
    }
}

impl RewindChoice {
    /// Returns the key hint for selecting the rewind scope.
    fn keys(&self) -> &'static str {
        match (&self.plan.target, &self.plan.point) {
            (RewindTarget::Redo, _) => "1, then enter",
            (_, Some(_)) => "1 2 3 f, then enter",
            (_, None) => "1 2 3, then enter",
        }
    }
}

impl DialogKind for RewindChoice {
    fn answer(&mut self, act: ChoiceAction, _reason: Option<String>) -> Option<DialogAnswer> {
        match act {
            ChoiceAction::Rewind(scope) => {
                Some(DialogAnswer::Rewind { target: self.plan.target.clone(), scope, overwrite: self.overwrite() })
            }
            ChoiceAction::Fork => self.plan.point.as_ref().map(|point| DialogAnswer::Fork { before: point.task_id.clone() }),
            _ => None,
        }
    }

    fn details(&self) -> Option<Dialog> {
        Pager::diff(self.plan.diff.clone()).panel()
    }

    fn key_hints(&self, state: HintState) -> Option<Vec<&'static str>> {
        let marks = self.marks().then_some("space select [ ] move");
        let scroll = state.scrolls.then_some("pgup pgdn scroll");
        let hints = marks.into_iter().chain(["esc back"]).chain(scroll).chain([self.keys()]);
        (!state.is_arming).then(|| hints.collect())
    }

    fn later_words(&self) -> &'static str {
        "close this; nothing is undone"
    }
}

pub(crate) fn rewind_dialog(plan: RewindPlan) -> Dialog {
    let title = match (&plan.target, &plan.point) {
        (RewindTarget::Redo, _) => "Redo: undo the last rewind".to_owned(),
        (_, Some(point)) => format!("Rewind to before prompt {}: {}", point.number, text::reveal_line(&point.prompt)),
        (_, None) => "Rewind".to_owned(),
    };
    let reason = match plan.target {
        RewindTarget::Redo => "Nothing is changed until you choose. /undo reverts it.",
        RewindTarget::Before { .. } | RewindTarget::Last => "Nothing is changed until you choose. /redo reverts it.",
    };
    let rewinding = RewindChoice::new(plan);
    let (body, choices, facts) = (rewinding.body(), rewinding.choices(), rewinding.facts());
    let panel = Dialog::new(Box::new(rewinding), title, reason.to_owned(), choices, body);
    Dialog { facts, ..panel }
}

/// Applies a key to the list of conflicting paths and updates the dialog. Returns `false` if there are no conflicts.
pub(crate) fn mark_conflict(panel: &mut Dialog, mark: Mark) -> bool {
    let Some(rewinding) = panel.kind.find_mut::<RewindChoice>() else { return false };
    if !rewinding.mark(mark) {
        return false;
    }
    panel.body = rewinding.body();
    true
}

fn scope_text(scope: RewindScope) -> &'static str {
    match scope {
        RewindScope::Both => "conversation and files",
        RewindScope::Conversation => "the conversation",
        RewindScope::Files => "files",
    }
}

fn format_messages(count: u64) -> String {
    format_count(usize::try_from(count).unwrap_or(usize::MAX), "message")
}

fn describe_change(file: &RewindFile) -> String {
    format!("{:VERB$}{}{}", file.change.verb(), path(file), line_counts(file))
}

fn path(file: &RewindFile) -> String {
    text::reveal_name(&file.path.to_string_lossy())
}

fn line_counts(file: &RewindFile) -> String {
    if file.added + file.removed > 0 { format!("  +{} −{}", file.added, file.removed) } else { String::new() }
}
