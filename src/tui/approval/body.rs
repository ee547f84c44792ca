//! Dialog body, drawn between the head and the choices.

use super::command::{CommandBody, Row};
use super::diff_layout::LARGE_LINES;
use super::effect_list::NotePlace;
use super::note::{CHANGED, Note, Verb, hanging, hanging_indent};
use super::title::{DialogTitle, HeadSuffix};
use crate::protocol::{Approval, DiscardedEffect, Effects, FileDiffs, Risk, group_digits};
use crate::text;
use crate::tui::diff::{Diff, Shape};
use crate::tui::format::format_count;
use crate::tui::glyphs::Glyphs;
use crate::tui::theme::{Theme, Token};
use ratatui::text::Line;
use std::cell::RefCell;
use std::ops::Range;

/// Width in cells reserved next to the title for the dialog's position (`1 of 3`) and the spaces around it.
const PLACE_CELLS: usize = 11;
/// Width in cells reserved for the countdown, such as `denied in 30 min`, and the spaces around it.
const TIME_CELLS: usize = 19;

pub(crate) enum Body {
    /// Diff with notes above and below it. `name` and `above` precede the diff; `name` is drawn only if the head has no
    /// room for it.
    Edit {
        name: DialogTitle,
        diff: Diff,
        above: Vec<Note>,
        /// Paragraphs shown after the diff.
        below: Vec<Note>,
        extent: ChangeSize,
        verb: Verb,
        /// Facts that the head shows on its right, before the line counts.
        facts: String,
    },
    Command {
        command: Box<CommandBody>,
        laid: RefCell<Option<(u16, Vec<Row>)>>,
    },
    Words {
        text: String,
    },
}

/// Size class of a change, which determines how much of the change must be shown before it can be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeSize {
    Readable,
    /// Change too long to review: only its file names and line counts have to be shown.
    Large,
}

/// Returns the number of cells in the head that the title cannot use, because they show the dialog's position and, if
/// it is not low, the risk.
fn head_suffix(approval: &Approval) -> HeadSuffix {
    let time = if approval.timeout_ms.is_some() { TIME_CELLS } else { 0 };
    let risk = match (approval.critical, approval.risk_level) {
        (true, _) => "critical",
        (false, Risk::Low) => return HeadSuffix { wide: PLACE_CELLS + time, narrow: time },
        (false, risk) => risk.as_str(),
    };
    HeadSuffix { wide: PLACE_CELLS + risk.len() + " risk".len() + 3 + time, narrow: risk.len() + 2 + time }
}

/// Heading of aye's own part of a plan's prompt. Its token cannot occur in the text of a plan.
const EFFECT_HEADING: &str = "Effect of approving this plan";
/// Verb on the approval choice for a file change.
const APPLY: Verb = Verb { long: "apply it", short: "apply" };
/// Approval verb of a call that is neither a command nor a change.
const ALLOW: Verb = Verb { long: "allow it", short: "allow" };

impl Body {
    /// Builds the body of the prompt for a command that has not run yet.
    pub(super) fn for_command(approval: &Approval, title: String) -> Self {
        let Some(command) = &approval.command else { return Self::from_text(String::new()) };
        let command = CommandBody {
            title: DialogTitle { words: title, beside: head_suffix(approval) },
            titled: super::title::titled_part(approval),
            line: text::reveal_rows(&command.line),
            notes: approval.proposal.own_notes().iter().map(|note| text::reveal_rows(note)).collect(),
            is_unheld: command.is_unheld(),
            sandbox: (command.is_unheld() || command.has_own_sandbox)
                .then(|| format!("sandbox {}", text::reveal_rows(&command.sandbox))),
            parts: approval.parts.clone(),
            marked: None,
            opens: super::title::opens(approval),
        };
        Self::Command { command: Box::new(command), laid: RefCell::new(None) }
    }

    /// Builds the body of a plan: its text, and the actions that approving it allows, which replace the lists in the
    /// text.
    pub(super) fn for_plan(approval: &Approval) -> Self {
        let Some(plan) = &approval.plan else { return Self::from_text(String::new()) };
        let text = text::reveal_rows(plan.text_without_lists().trim_end());
        let effect = text::reveal_rows(&plan.effect_of_approval());
        let mut above: Vec<Note> = document_notes(&text).collect();
        // The title of the prompt contains the first heading.
        if let [first, ..] = &above[..]
            && first.token == Token::Heading
            && approval.action_summary.ends_with(&format!(": {}", first.text.trim_start_matches('#').trim()))
        {
            above.remove(0);
        }
        while above.first().is_some_and(|note| note.text.is_empty()) {
            above.remove(0);
        }
        let is_title = |line: &str| line.ends_with(':') && !line.starts_with(' ');
        above.push(Note::new(String::new(), Token::Text));
        above.push(Note::new(EFFECT_HEADING.to_owned(), Token::Accent));
        let token = |line: &str| if is_title(line) { Token::Heading } else { Token::Text };
        above.extend(effect.split('\n').map(|line| Note::new(line.to_owned(), token(line))));
        Self::named_notes(approval, above)
    }

    /// Builds the body of the prompt for a file change: the proposal's notes and its diff.
    pub(super) fn for_edit(approval: &Approval) -> Self {
        let proposal = &approval.proposal;
        let diff = Diff::new(&proposal.diff, proposal.paths.first().map(std::path::PathBuf::as_path));
        let name = DialogTitle { words: text::reveal_name(&approval.action_summary), beside: head_suffix(approval) };
        Self::edit(name, diff, proposal_notes(approval))
    }

    /// Builds the body of any other call: its summary, unless the title contains all of it, its paths and its notes.
    pub(super) fn for_tool(approval: &Approval) -> Self {
        let proposal = &approval.proposal;
        let summary = text::reveal_rows(&proposal.summary);
        let summary = Some(summary).filter(|summary| *summary != super::title::summary(approval));
        let paths = proposal.paths.iter().map(|path| format!("  {}", text::reveal_name(&path.to_string_lossy())));
        let lines = summary.iter().flat_map(|summary| summary.split('\n').map(str::to_owned)).chain(paths);
        let mut above: Vec<Note> = lines.map(|line| Note::new(line, Token::Text)).collect();
        above.extend(proposal_notes(approval));
        Self::named_notes(approval, above)
    }

    /// Builds a body of paragraphs that begins with the summary of the call, if the head has no space for it.
    fn named_notes(approval: &Approval, above: Vec<Note>) -> Self {
        let name = DialogTitle { words: super::title::summary(approval), beside: head_suffix(approval) };
        let (diff, facts, extent) = (Diff::new(&[], None), String::new(), ChangeSize::Readable);
        Self::Edit { name, diff, above, below: Vec::new(), extent, verb: ALLOW, facts }
    }

    /// Builds the body of the prompt for a previewed command's effects: the changes that the diff does not show, the
    /// diff itself, and the size of the output.
    pub(super) fn for_effects(approval: &Approval) -> Self {
        let Some(effects) = &approval.effects else { return Self::from_text(String::new()) };
        let diff = Diff::new(&approval.proposal.diff, None);
        let lines = diff.lines();
        let extent = if lines > LARGE_LINES { ChangeSize::Large } else { ChangeSize::Readable };
        let above = rows_above_effects(approval, effects, &diff, &[]);
        let below = super::effects::notes_below(approval, effects, &[]);
        let name = DialogTitle { words: String::new(), beside: head_suffix(approval) };
        let (verb, facts) = (super::effects::verb(effects), super::effects::facts(effects));
        Self::Edit { name, diff, above, below, extent, verb, facts }
    }

    /// Marks the effects that the user has left out in the rows above the diff.
    pub(crate) fn mark_discarded(&mut self, approval: &Approval, discarded: &[DiscardedEffect]) {
        if let (Self::Edit { above, below, diff, .. }, Some(effects)) = (self, &approval.effects) {
            *above = rows_above_effects(approval, effects, diff, discarded);
            *below = super::effects::notes_below(approval, effects, discarded);
        }
    }

    /// Returns the first row of a paragraph above or below the diff.
    pub(crate) fn row_of_note(&self, width: u16, place: NotePlace) -> usize {
        let rows = |notes: &[Note], at: usize| wrapped_count(&notes[..at.min(notes.len())], width);
        match (self, place) {
            (Self::Edit { name, above, .. }, NotePlace::Above(at)) => name.rows(width).len() + rows(above, at),
            (Self::Edit { diff, below, .. }, NotePlace::Below(at)) => {
                self.rows_above_diff(width) + diff.height(width) + rows(below, at)
            }
            (Self::Command { .. } | Self::Words { .. }, _) => 0,
        }
    }

    fn edit(name: DialogTitle, diff: Diff, notes: Vec<Note>) -> Self {
        let name = DialogTitle { words: without_changes(&name.words, &diff).to_owned(), ..name };
        let (mut above, lines) = (notes, diff.lines());
        if lines <= LARGE_LINES {
            // A file that is created or deleted as a whole has no other hunks.
            let is_whole = diff.hunks() == 1 && (diff.added() == 0 || diff.removed() == 0);
            let facts = if is_whole { String::new() } else { format_count(diff.hunks(), "hunk") };
            return Self::Edit { name, diff, above, below: Vec::new(), extent: ChangeSize::Readable, verb: APPLY, facts };
        }
        let files = diff.files();
        let all = format!("{} in {}, too long to review here", format_count(lines, "line"), format_count(files.len(), "file"));
        above.push(Note::new(all, Token::Warn));
        above.extend(files.iter().map(|(path, added, removed)| {
            let name = path.map_or_else(|| "a file".into(), |path| text::reveal_name(&path.to_string_lossy()));
            Note::new(format!("  {name}  {}", format_changes(*added, *removed)), Token::Warn)
        }));
        let facts = format_count(diff.hunks(), "hunk");
        Self::Edit { name, diff, above, below: Vec::new(), extent: ChangeSize::Large, verb: APPLY, facts }
    }

    /// Returns how many rows, counted from the first, must have been shown before the call can be approved.
    pub(crate) fn required_rows(&self, width: u16) -> usize {
        match self {
            Self::Edit { name, above, extent: ChangeSize::Large, .. } => name.rows(width).len() + wrapped_count(above, width),
            Self::Edit { .. } | Self::Command { .. } | Self::Words { .. } => self.rows(width),
        }
    }

    pub(crate) fn diff(name: String, diff: &FileDiffs) -> Self {
        Self::edit(DialogTitle { words: name, beside: HeadSuffix::default() }, Diff::new(diff, None), Vec::new())
    }

    /// Builds a body that consists of paragraphs followed by a diff.
    pub(crate) fn diff_below(notes: Vec<Note>, diff: &FileDiffs) -> Self {
        let name = DialogTitle { words: String::new(), beside: HeadSuffix::default() };
        Self::edit(name, Diff::new(diff, None), notes)
    }

    /// Builds a body that consists of paragraphs without a diff. All of them must be shown before approval.
    pub(crate) fn notes(above: Vec<Note>, verb: Verb, facts: String) -> Self {
        let (name, diff) = (DialogTitle { words: String::new(), beside: HeadSuffix::default() }, Diff::new(&[], None));
        Self::Edit { name, diff, above, below: Vec::new(), extent: ChangeSize::Readable, verb, facts }
    }

    /// Builds a body that consists of paragraphs followed by a sample diff, which will not be applied.
    pub(crate) fn sample(above: Vec<Note>, diff: &FileDiffs) -> Self {
        let (name, diff) = (DialogTitle { words: String::new(), beside: HeadSuffix::default() }, Diff::new(diff, None));
        let extent = ChangeSize::Readable;
        Self::Edit { name, diff, above, below: Vec::new(), extent, verb: APPLY, facts: String::new() }
    }

    pub(crate) fn from_text(text: String) -> Self {
        Self::Words { text: text::reveal_rows(&text) }
    }

    pub(crate) fn verb(&self) -> Verb {
        match self {
            Self::Edit { verb, .. } => *verb,
            Self::Command { .. } => Verb { long: "run it", short: "run" },
            Self::Words { .. } => ALLOW,
        }
    }

    pub(crate) fn facts(&self) -> Option<String> {
        match self {
            Self::Edit { facts, diff, .. } if diff.lines() == 0 => Some(facts.clone()),
            Self::Edit { facts, .. } if facts.is_empty() => self.line_counts(),
            Self::Edit { facts, .. } => Some(format!("{facts} · {}", self.line_counts().unwrap_or_default())),
            Self::Command { .. } | Self::Words { .. } => None,
        }
    }

    /// Returns the counts of added and removed lines as text, such as `+6 −5` or, if no line is added, `−5`. Returns
    /// `None` if the body has no diff.
    pub(crate) fn line_counts(&self) -> Option<String> {
        match self {
            Self::Edit { diff, .. } => Some(format_changes(diff.added(), diff.removed())),
            Self::Command { .. } | Self::Words { .. } => None,
        }
    }

    /// Returns a title without the line counts at its end, which the head shows at the right.
    pub(super) fn without_line_counts<'a>(&self, title: &'a str) -> &'a str {
        self.changes().map_or(title, |diff| without_changes(title, diff))
    }

    /// Returns the diff, or `None` if the body has no diff.
    pub(crate) fn changes(&self) -> Option<&Diff> {
        match self {
            Self::Edit { diff, .. } => Some(diff),
            Self::Command { .. } | Self::Words { .. } => None,
        }
    }

    /// Replaces the diff. The caller must already have set the new diff's layout.
    pub(crate) fn set_diff(&mut self, new: Diff) {
        if let Self::Edit { diff, .. } = self {
            *diff = new;
        }
    }

    /// Sets the title. The body shows it if the head has no room for it.
    pub(super) fn set_title(&mut self, title: &str) {
        match self {
            Self::Edit { name, .. } => title.clone_into(&mut name.words),
            Self::Command { command, .. } => title.clone_into(&mut command.title.words),
            Self::Words { .. } => {}
        }
    }

    /// Returns the title as several rows for the head, or no rows if it takes one row.
    pub(super) fn head_rows(&self, width: u16) -> Vec<String> {
        match self {
            Self::Edit { name, .. } => name.head_rows(width),
            Self::Command { command, .. } => command.title.head_rows(width),
            Self::Words { .. } => Vec::new(),
        }
    }

    /// Returns the number of body rows above the diff.
    pub(crate) fn rows_above_diff(&self, width: u16) -> usize {
        match self {
            Self::Edit { name, above, .. } => name.rows(width).len() + wrapped_count(above, width),
            Self::Command { .. } | Self::Words { .. } => 0,
        }
    }

    pub(crate) fn set_shape(&self, shape: Shape) {
        if let Some(diff) = self.changes() {
            diff.set_shape(shape);
        }
    }

    /// Returns whether any row of the diff is truncated at this panel width.
    pub(crate) fn is_cut(&self, width: u16) -> bool {
        self.changes().is_some_and(|diff| diff.is_cut(width))
    }

    pub(crate) fn rows(&self, width: u16) -> usize {
        match self {
            Self::Edit { name, diff, above, below, .. } => {
                name.rows(width).len() + wrapped_count(above, width) + diff.height(width) + wrapped_count(below, width)
            }
            Self::Command { .. } => self.with_rows(width, <[Row]>::len),
            Self::Words { text } => text.split('\n').map(|line| hanging(line, width).1.len()).sum(),
        }
    }

    /// Returns how many of the body rows in `range` show removed lines.
    pub(crate) fn count_removed(&self, width: u16, range: Range<usize>) -> usize {
        match self {
            Self::Edit { name, diff, above, .. } => {
                let above = name.rows(width).len() + wrapped_count(above, width);
                diff.count_removed(width, range.start.saturating_sub(above)..range.end.saturating_sub(above))
            }
            Self::Command { .. } | Self::Words { .. } => 0,
        }
    }

    pub(crate) fn lines(&self, width: u16, range: Range<usize>, theme: &Theme, glyphs: &Glyphs) -> Vec<Line<'static>> {
        match self {
            Self::Edit { name, diff, above: notes, below, .. } => {
                let names = name.rows(width);
                let above = names.len() + wrapped_count(notes, width);
                let lines = |note: &Note| {
                    let style = theme.style(note.token);
                    let rows = note.rows(width).into_iter();
                    rows.map(move |row| Line::styled(row.replace('−', glyphs.minus), style)).collect::<Vec<_>>()
                };
                let names = names.into_iter().map(|name| Line::styled(name, theme.style(Token::Text)));
                let mut rows: Vec<_> = names.chain(notes.iter().flat_map(lines)).skip(range.start).take(range.len()).collect();
                let at = |row: usize| row.saturating_sub(above);
                rows.extend(diff.rows(width, at(range.start)..at(range.end), theme));
                let hidden = range.start.saturating_sub(above + diff.height(width));
                rows.extend(below.iter().flat_map(lines).skip(hidden).take(range.len().saturating_sub(rows.len())));
                rows
            }
            Self::Command { .. } => self.with_rows(width, |rows| {
                let end = range.end.min(rows.len());
                rows[range.start.min(end)..end].iter().map(|row| row.line(theme, glyphs)).collect()
            }),
            Self::Words { text } => text
                .split('\n')
                .flat_map(|line| hanging_indent(line, width))
                .skip(range.start)
                .take(range.len())
                .map(|line| Line::styled(line, theme.style(Token::Text)))
                .collect(),
        }
    }

    fn with_rows<T>(&self, width: u16, read: impl FnOnce(&[Row]) -> T) -> T {
        match self {
            Self::Command { command, laid } => {
                let mut laid = laid.borrow_mut();
                if laid.as_ref().is_none_or(|(at, _)| *at != width) {
                    *laid = Some((width, command.rows(width)));
                }
                read(laid.as_ref().map_or(&[], |(_, rows)| rows))
            }
            Self::Edit { .. } | Self::Words { .. } => read(&[]),
        }
    }
}

/// Formats the numbers of added and removed lines. A number that is zero is omitted, unless both are.
fn format_changes(added: usize, removed: usize) -> String {
    let [more, less] = [added, removed].map(|count| group_digits(count as u64));
    match (added, removed) {
        (1.., 0) => format!("+{more}"),
        (0, 1..) => format!("−{less}"),
        _ => format!("+{more} −{less}"),
    }
}

/// Returns a title without the numbers of added and removed lines at its end.
fn without_changes<'a>(title: &'a str, diff: &Diff) -> &'a str {
    let (added, removed) = (diff.added(), diff.removed());
    let mut endings = vec![format!(" +{added} −{removed}")];
    match (added, removed) {
        (_, 0) => endings.push(format!(" +{added}")),
        (0, _) => endings.push(format!(" −{removed}")),
        _ => {}
    }
    endings.iter().find_map(|ending| title.strip_suffix(ending.as_str())).unwrap_or(title).trim_end()
}

/// Returns the paragraphs of a Markdown document. Headings are highlighted, without their `#` characters.
fn document_notes(text: &str) -> impl Iterator<Item = Note> {
    let mut is_code = false;
    text.split('\n').map(move |line| {
        is_code ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        let is_heading = !is_code && heading.len() < line.len() && heading.starts_with(' ');
        if is_heading {
            Note::new(heading.trim_start().to_owned(), Token::Heading)
        } else {
            Note::new(line.to_owned(), Token::Text)
        }
    })
}

/// Returns the proposal's own notes, preceded by a warning if the proposal was updated after a change on disk.
fn proposal_notes(approval: &Approval) -> Vec<Note> {
    let renewed = approval.amendable.renewed.then(|| Note::new(CHANGED.to_owned(), Token::Warn));
    // The notes of a call to a server are its arguments.
    let token = if super::title::is_server_call(approval) { Token::Text } else { Token::Warn };
    // The title says the same about a new file.
    let is_told = |note: &&String| *note == "creates the file" && approval.action_summary.starts_with("Create ");
    let own = approval.proposal.own_notes().iter().filter(|note| !is_told(note));
    let own = own.map(|note| Note::new(text::reveal_rows(note), token));
    renewed.into_iter().chain(own).collect()
}

/// Returns the rows that the prompt for a command's effects shows above the diff.
fn rows_above_effects(approval: &Approval, effects: &Effects, diff: &Diff, discarded: &[DiscardedEffect]) -> Vec<Note> {
    let mut above = super::effects::notes_above(approval, effects, discarded);
    if diff.lines() > LARGE_LINES {
        above.push(Note::new(format!("{}-line diff, too long to review here", group_digits(diff.lines() as u64)), Token::Warn));
    }
    above
}

fn wrapped_count(notes: &[Note], width: u16) -> usize {
    notes.iter().map(|note| note.rows(width).len()).sum()
}
