//! Selection and editing of a change's hunks, and selection of a command's effects.

use super::diff_layout::MIN_BESIDE;
use super::hunk::{new_text, old_text, with_new_text};
use super::{ChoiceAction, Dialog};
use crate::protocol::{Amendment, Approval, DiscardedEffect, EffectPart, FileDiff, FileDiffs, Hunk, HunkChoice};
use crate::text;
use crate::tui::diff::{Diff, Shape};
use crate::tui::glyphs::Glyphs;
use crate::tui::typeahead_guard::ALONE_MS;
use std::ops::Range;

/// User's decisions about every hunk of a change, or about every effect of a command.
#[derive(Debug, Clone)]
pub(crate) struct Hunks {
    offers: Vec<Hunk>,
    /// Proposed change. It has one hunk per offer, unless the offers are effects.
    diff: FileDiffs,
    choices: Vec<HunkChoice>,
    /// Index of the current hunk.
    at: usize,
    /// Effects of a command, if the user selects effects instead of hunks. There is one offer per effect.
    effects: Option<EffectParts>,
}

/// Individually selectable effects of a command, and the digest that identifies all its effects.
#[derive(Debug, Clone)]
struct EffectParts {
    digest: String,
    parts: Vec<EffectPart>,
}

/// Hunks that the user can select or edit, and the recent keys that changed the selection.
#[derive(Debug)]
pub(crate) struct HunkSelection {
    pub hunks: Hunks,
    /// Recent hunk keys, which are undone if they turn out to be the start of typed text.
    recent: Option<RecentMarks>,
}

/// Hunk keys pressed in quick succession, and the state of the hunks before them.
#[derive(Debug)]
struct RecentMarks {
    at: u64,
    before: Hunks,
}

impl HunkSelection {
    pub(crate) fn new(hunks: Hunks) -> Self {
        Self { hunks, recent: None }
    }

    /// Forgets the recent hunk keys, so they can no longer be undone.
    pub(crate) fn forget_recent(&mut self) {
        self.recent = None;
    }
}

impl RecentMarks {
    fn is_fresh(&self, now: u64) -> bool {
        now.saturating_sub(self.at) < ALONE_MS
    }
}

/// Action of a hunk key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HunkMark {
    Turn,
    /// Selects or leaves out every hunk in the current hunk's file.
    TurnFile,
    Next,
    Before,
    NextFile,
    FileBefore,
}

impl HunkMark {
    pub(crate) fn from_key(letter: char) -> Option<Self> {
        match letter {
            ' ' => Some(Self::Turn),
            ']' => Some(Self::Next),
            '[' => Some(Self::Before),
            'f' => Some(Self::TurnFile),
            '}' => Some(Self::NextFile),
            '{' => Some(Self::FileBefore),
            _ => None,
        }
    }
}

impl Hunks {
    /// Returns the individually selectable effects of a command, or `None` if they cannot be selected individually.
    pub(crate) fn for_effects(approval: &Approval) -> Option<Self> {
        let effects = approval.effects.as_ref()?;
        let parts = approval.amendable.effects.clone();
        let can_be_split = parts.len() > 1 && effects.approval_obstacle().is_none();
        let parts = EffectParts { digest: effects.digest.clone(), parts };
        can_be_split.then(|| Self::for_parts(parts, &approval.proposal.diff))
    }

    /// Returns the hunks of a change, or `None` if no hunk can be left out or edited.
    pub(crate) fn for_edit(approval: &Approval) -> Option<Self> {
        let diff = &approval.proposal.diff;
        let offers = approval.amendable.hunks.clone();
        if offers.is_empty() || diff.hunks().count() != offers.len() {
            return None;
        }
        let choices = vec![HunkChoice::Taken; offers.len()];
        Some(Self { offers, diff: diff.clone(), choices, at: 0, effects: None })
    }

    fn for_parts(effects: EffectParts, diff: &FileDiffs) -> Self {
        let offer = |part: &EffectPart| Hunk { file: None, first: 0, end: 0, name: part.name.clone(), fixed: None };
        let offers: Vec<Hunk> = effects.parts.iter().map(offer).collect();
        let choices = vec![HunkChoice::Taken; offers.len()];
        Self { offers, diff: diff.clone(), choices, at: 0, effects: Some(effects) }
    }

    /// Returns whether individual hunks or effects can be left out.
    pub(crate) fn can_be_split(&self) -> bool {
        self.offers.len() > 1 && self.offers.iter().any(|offer| offer.fixed.is_none())
    }

    pub(crate) fn len(&self) -> usize {
        self.offers.len()
    }

    /// Returns the index of the file that the current hunk belongs to, or `None` if that file cannot be edited.
    pub(crate) fn file(&self) -> Option<usize> {
        self.offers[self.at].file
    }

    /// Returns whether the user has left out or edited any hunk outside of `file`.
    pub(crate) fn changes_others(&self, file: usize) -> bool {
        self.offers.iter().zip(&self.choices).any(|(offer, choice)| offer.file != Some(file) && *choice != HunkChoice::Taken)
    }

    /// Returns, for each hunk of the diff, whether the user has left it out.
    pub(crate) fn left_out(&self) -> Vec<bool> {
        let left = self.choices.iter().map(|choice| *choice == HunkChoice::Left);
        let Some(effects) = &self.effects else { return left.collect() };
        let mut hunks = vec![false; self.diff.hunks().count()];
        for part in effects.parts.iter().zip(left).filter(|(_, left)| *left).map(|(part, _)| part) {
            if let Some(hunks) = hunks.get_mut(part.first..part.end) {
                hunks.fill(true);
            }
        }
        hunks
    }

    /// Returns the command effects that the user has left out.
    pub(crate) fn discarded_effects(&self) -> Vec<DiscardedEffect> {
        let mut discarded: Vec<DiscardedEffect> = Vec::new();
        let parts = self.effects.iter().flat_map(|effects| &effects.parts);
        for (part, _) in parts.clone().zip(&self.choices).filter(|(_, choice)| **choice == HunkChoice::Left) {
            match discarded.last_mut().filter(|last| last.path == part.path) {
                Some(last) => last.hunks.extend(part.hunk),
                None => discarded.push(DiscardedEffect { path: part.path.clone(), hunks: part.hunk.into_iter().collect() }),
            }
        }
        for effect in &mut discarded {
            if effect.hunks.len() == parts.clone().filter(|part| part.path == effect.path).count() {
                effect.hunks.clear();
            }
        }
        discarded
    }

    /// Returns the change as amended by the user, or `None` if it equals the proposal.
    pub(crate) fn amendment(&self) -> Option<Amendment> {
        let all = self.choices.iter().all(|choice| *choice == HunkChoice::Taken);
        if let Some(effects) = self.effects.as_ref().filter(|_| !all) {
            return Some(Amendment::Effects { digest: effects.digest.clone(), discarded: self.discarded_effects() });
        }
        (!all).then(|| Amendment::Hunks { hunks: self.choices.clone() })
    }

    fn taken_hunks(&self) -> Vec<usize> {
        (0..self.choices.len()).filter(|at| self.choices[*at] != HunkChoice::Left).collect()
    }

    fn edited_count(&self) -> usize {
        self.choices.iter().filter(|choice| matches!(choice, HunkChoice::Edited { .. })).count()
    }

    /// Returns the label of the approval choice or, if nothing is selected, the reason why the change cannot be
    /// approved.
    fn approval_label(&self, verb: &str) -> Result<String, String> {
        let (count, taken) = (self.len(), self.taken_hunks());
        if self.effects.is_some() {
            return match taken.len() {
                0 => Err("nothing is selected: space selects a change, n discards all".to_owned()),
                all if all == count => Ok(verb.to_owned()),
                some => Ok(format!("apply {some} of {count} changes")),
            };
        }
        let edited = match self.edited_count() {
            0 => "",
            _ if count == 1 => ", as you edited it",
            _ => ", with your edits",
        };
        match taken.as_slice() {
            [] => Err("no hunk is selected: space selects a hunk, n denies".to_owned()),
            all if all.len() == count && count > 1 && self.can_be_split() => {
                let all = if count == 2 { "both hunks".to_owned() } else { format!("all {count} hunks") };
                Ok(format!("apply {all}{edited}, once"))
            }
            all if all.len() == count => Ok(format!("{verb}{edited}, once")),
            [one] => Ok(format!("apply hunk {} of {count}{edited}, once", one + 1)),
            some if some.len() <= 4 => {
                let numbers: Vec<String> = some.iter().map(|at| (at + 1).to_string()).collect();
                Ok(format!("apply hunks {} of {count}{edited}, once", numbers.join(", ")))
            }
            some => Ok(format!("apply {} of {count} hunks{edited}, once", some.len())),
        }
    }

    /// Applies a hunk key. Returns `false` if the key does not apply here, or an error with the reason why a hunk
    /// cannot be left out.
    fn mark(&mut self, mark: HunkMark) -> Result<bool, String> {
        if !self.can_be_split() {
            return Ok(false);
        }
        let count = self.len();
        let files = self.files();
        let file = files.iter().position(|(_, parts)| parts.contains(&self.at)).unwrap_or(0);
        match mark {
            HunkMark::TurnFile | HunkMark::NextFile | HunkMark::FileBefore if files.len() < 2 => return Ok(false),
            HunkMark::Next => self.at = (self.at + 1) % count,
            HunkMark::Before => self.at = (self.at + count - 1) % count,
            HunkMark::NextFile => self.at = files[(file + 1) % files.len()].1.start,
            HunkMark::FileBefore => self.at = files[(file + files.len() - 1) % files.len()].1.start,
            HunkMark::Turn => self.turn(self.at..self.at + 1)?,
            HunkMark::TurnFile => self.turn(files[file].1.clone())?,
        }
        Ok(true)
    }

    /// Leaves out the given hunks, or selects them again if all of them are already left out. Fails with the reason if
    /// one of them cannot be left out.
    fn turn(&mut self, parts: Range<usize>) -> Result<(), String> {
        if let Some(why) = self.offers[parts.clone()].iter().find_map(|offer| offer.fixed.clone()) {
            return Err(why);
        }
        let parts = &mut self.choices[parts];
        let choice = if parts.iter().all(|choice| *choice == HunkChoice::Left) { HunkChoice::Taken } else { HunkChoice::Left };
        parts.fill(choice);
        Ok(())
    }

    /// Returns each file's name and the index range of its hunks, in order.
    fn files(&self) -> Vec<(String, Range<usize>)> {
        let names: Vec<String> = if let Some(effects) = &self.effects {
            effects.parts.iter().map(|part| part.path.clone()).collect()
        } else {
            let of_file = |file: &FileDiff| vec![file.name.clone().unwrap_or_default(); file.hunks.len()];
            self.diff.iter().flat_map(of_file).collect()
        };
        let mut files: Vec<(String, Range<usize>)> = Vec::new();
        for (at, name) in names.into_iter().take(self.len()).enumerate() {
            match files.last_mut().filter(|(last, _)| *last == name) {
                Some((_, parts)) => parts.end = at + 1,
                None => files.push((name, at..at + 1)),
            }
        }
        files
    }

    /// Returns the current hunk's text for editing, or the reason why it cannot be edited in a field.
    pub(crate) fn text(&self) -> Result<String, String> {
        if let Some(why) = &self.offers[self.at].fixed {
            return Err(format!("this hunk cannot be edited here: {why}"));
        }
        if self.effects.is_none() && self.offers[self.at].file.is_none() {
            return Err("this hunk cannot be edited: the file is deleted as a whole, or left as it is".to_owned());
        }
        let text = match &self.choices[self.at] {
            HunkChoice::Edited { text } => text.clone(),
            HunkChoice::Taken | HunkChoice::Left => self.proposed_text(),
        };
        let is_cut = text.lines().any(|line| line.contains("[… ") && line.contains(" bytes …]"));
        let hidden = text.lines().any(|line| text::reveal(line) != line);
        if is_cut || hidden {
            let why = if is_cut { "a line is too long to edit here" } else { "some characters cannot be shown here" };
            return Err(format!("{why}; E opens the whole file"));
        }
        Ok(text)
    }

    /// Replaces the new side of the current hunk's changed lines with `text`.
    pub(crate) fn replace_text(&mut self, text: &str) {
        let proposed = self.proposed_text();
        let mut text = text.to_owned();
        // The end of the file stays as proposed. All other lines end with a line break.
        let open = !proposed.is_empty() && !proposed.ends_with('\n');
        if !text.is_empty() && !text.ends_with('\n') && !open {
            text.push('\n');
        }
        let same = text == proposed;
        self.choices[self.at] = if same { HunkChoice::Taken } else { HunkChoice::Edited { text } };
    }

    /// Returns the heading shown above the field in which the hunk is edited.
    pub(crate) fn field_head(&self) -> String {
        format!("{}: the text that will be written if you approve", self.name(self.at))
    }

    /// Returns the new side of the current hunk's changed lines, as proposed.
    fn proposed_text(&self) -> String {
        self.diff.hunks().nth(self.at).map(new_text).unwrap_or_default()
    }

    /// Returns the proposed diff with the user's edits applied.
    fn edited_diff(&self) -> FileDiffs {
        let mut diff = self.diff.clone();
        for (hunk, choice) in diff.hunks_mut().zip(&self.choices) {
            if let HunkChoice::Edited { text } = choice {
                *hunk = with_new_text(hunk, text);
            }
        }
        diff
    }

    /// Returns a file's text with the user's decisions about its hunks applied. `proposed` is the text with all hunks
    /// applied unedited.
    pub(crate) fn file_text(&self, file: usize, proposed: &str) -> String {
        let lines: Vec<&str> = proposed.split_inclusive('\n').collect();
        let mut text = String::with_capacity(proposed.len());
        let mut done = 0;
        let all = self.offers.iter().zip(self.diff.hunks()).zip(&self.choices);
        for ((offer, hunk), choice) in all.filter(|((offer, _), _)| offer.file == Some(file)) {
            if offer.end > lines.len() || offer.first < done || offer.fixed.is_some() {
                continue;
            }
            let instead = match choice {
                HunkChoice::Taken => continue,
                HunkChoice::Left => old_text(hunk),
                HunkChoice::Edited { text } => text.clone(),
            };
            text.push_str(&lines[done..offer.first].concat());
            text.push_str(&instead);
            done = offer.end;
        }
        text.push_str(&lines[done..].concat());
        text
    }

    /// Returns the display name of a hunk, such as `hunk 2 main()`, or the path of an effect that has no hunks.
    fn name(&self, at: usize) -> String {
        let part = self.effects.as_ref().map(|effects| &effects.parts[at]);
        let name = self.offers[at].name.as_deref().map(|name| format!(" {}", text::reveal_line(name))).unwrap_or_default();
        match part {
            Some(EffectPart { hunk: None, path, .. }) => text::reveal_name(path),
            Some(EffectPart { hunk: Some(hunk), .. }) => format!("hunk {}{name}", hunk + 1),
            None => format!("hunk {}{name}", at + 1),
        }
    }

    fn sign(&self, at: usize, glyphs: &Glyphs) -> &'static str {
        if self.choices[at] == HunkChoice::Left { glyphs.checkbox.unchecked } else { glyphs.checkbox.checked }
    }

    /// Returns the label of the tab for a file or, if `file` is `None`, for a single hunk.
    fn tab(&self, file: Option<&str>, parts: &Range<usize>, glyphs: &Glyphs) -> String {
        let is_current = parts.contains(&self.at);
        let lead = if is_current { glyphs.fold.folded } else { " " };
        let edited = |at: usize| if matches!(self.choices[at], HunkChoice::Edited { .. }) { " edited" } else { "" };
        let Some(file) = file else {
            return format!("{lead}{} {}{}", self.sign(parts.start, glyphs), self.name(parts.start), edited(parts.start));
        };
        let file = text::reveal_name(file);
        let left = self.choices[parts.clone()].iter().filter(|choice| **choice == HunkChoice::Left).count();
        let sign = if left == parts.len() { glyphs.checkbox.unchecked } else { glyphs.checkbox.checked };
        let detail = match (is_current, parts.len()) {
            (_, 1) => edited(parts.start).to_owned(),
            (true, _) => format!(" {} {}{}", self.sign(self.at, glyphs), self.name(self.at), edited(self.at)),
            (false, count) if left > 0 && left < count => format!(" {} of {count}", count - left),
            (false, _) => String::new(),
        };
        format!("{lead}{sign} {file}{detail}")
    }

    /// Returns the labels of the tabs, each with whether it is the current one: `☑ src/main.rs   ☐ src/lib.rs`, or `☑
    /// hunk 1 greet()   ☐ hunk 2 main()` if there is a single file. Includes as many neighbours of the current tab as
    /// fit into `room` cells.
    pub(crate) fn row(&self, room: usize, glyphs: &Glyphs) -> Vec<(String, bool)> {
        let files = self.files();
        let tabs: Vec<(Option<&str>, Range<usize>)> = match files.as_slice() {
            [_] => (0..self.len()).map(|at| (None, at..at + 1)).collect(),
            files => files.iter().map(|(name, parts)| (Some(name.as_str()), parts.clone())).collect(),
        };
        let current = tabs.iter().position(|(_, parts)| parts.contains(&self.at)).unwrap_or(0);
        let one = |at: usize| text::truncate(&self.tab(tabs[at].0, &tabs[at].1, glyphs), room.max(8)).into_owned();
        let (mut first, mut end) = (current, current + 1);
        let mut wide = text::width(&one(current));
        loop {
            let before = first.checked_sub(1).map(|at| text::width(&one(at)) + 2).filter(|more| wide + more <= room);
            if let Some(more) = before {
                (first, wide) = (first - 1, wide + more);
            }
            let after = (end < tabs.len()).then(|| text::width(&one(end)) + 2).filter(|more| wide + more <= room);
            if let Some(more) = after {
                (end, wide) = (end + 1, wide + more);
            }
            if before.is_none() && after.is_none() {
                break;
            }
        }
        (first..end).map(|at| (one(at), at == current)).collect()
    }

    /// Returns the current hunk's position, such as `hunk 1 of 2`, or `None` if there are several files.
    pub(crate) fn facts(&self) -> Option<String> {
        (self.files().len() < 2).then(|| format!("hunk {} of {}", self.at + 1, self.len()))
    }

    /// Returns the key hints for selecting files and hunks.
    pub(crate) fn hints(&self) -> &'static [&'static str] {
        match self.files().len() {
            1 => &["[ ] hunk", "space toggle"],
            count if count == self.len() => &["[ ] file", "space toggle"],
            _ => &["[ ] hunk", "{ } file", "space toggle", "f toggle file"],
        }
    }

    /// Makes a visible hunk the current one. Keeps the current hunk if its first row is visible. Otherwise chooses the
    /// first hunk that begins within `rows` or, if none does, the hunk at the first row.
    fn select_visible(&mut self, diff: &Diff, width: u16, rows: Range<usize>) {
        let current = self.hunk_index(self.at).ok();
        let start = |hunk: usize| diff.row_of(width, hunk);
        if current.is_some_and(|hunk| rows.contains(&start(hunk))) {
            return;
        }
        let Some(first) = diff.hunk_at(width, rows.start) else { return };
        let next =
            Some(first + 1).filter(|hunk| *hunk < diff.hunks() && start(first) < rows.start && rows.contains(&start(*hunk)));
        let hunk = next.unwrap_or(first);
        let is_of = |at: &usize| match self.effects.as_ref().map(|effects| &effects.parts[*at]) {
            Some(part) => (part.first..part.end).contains(&hunk),
            None => *at == hunk,
        };
        if let Some(at) = (0..self.len()).find(is_of) {
            self.at = at;
        }
    }

    /// Returns the index in the diff of a selectable change's first hunk, or its path as an error if it has no hunks.
    fn hunk_index(&self, at: usize) -> Result<usize, &str> {
        match self.effects.as_ref().map(|effects| &effects.parts[at]) {
            Some(part) if part.first == part.end => Err(&part.path),
            Some(part) => Ok(part.first),
            None => Ok(at),
        }
    }
}

impl Dialog {
    /// Applies a hunk key and updates the dialog. Returns `false` if the key does not apply here, or an error with the
    /// reason why it had no effect.
    pub(crate) fn mark_hunk(&mut self, mark: HunkMark) -> Result<bool, String> {
        let Some(hunks) = self.hunks_mut() else { return Ok(false) };
        let before = hunks.choices.clone();
        let marked = hunks.mark(mark)?;
        if marked {
            let at = hunks.at;
            self.show_edits(&before);
            self.show_hunks();
            if mark != HunkMark::Turn {
                self.scroll_to_part(at);
            }
        }
        Ok(marked)
    }

    /// Makes a visible hunk the current one after scrolling.
    pub(crate) fn select_visible_hunk(&mut self) {
        let (width, top, shown) = (self.view.width, self.view.top, self.view.shown);
        let above = self.body.rows_above_diff(width);
        let is_visible = |diff: &&Diff| diff.hunks() > 0 && top + shown > above && top < above + diff.height(width);
        let Some(diff) = self.body.changes().filter(is_visible) else { return };
        let rows = top.saturating_sub(above)..top + shown - above;
        if let Some(selection) = self.kind.selection_mut()
            && selection.hunks.can_be_split()
        {
            selection.hunks.select_visible(diff, width, rows);
        }
    }

    /// Returns the visible rows at which a hunk begins, each with its selection symbol and whether the hunk is the
    /// current one.
    pub(crate) fn hunk_marks(&self, width: u16, rows: Range<usize>) -> Vec<(usize, &'static str, bool)> {
        let above = self.body.rows_above_diff(width);
        let (Some(hunks), Some(diff)) = (self.hunks(), self.body.changes()) else { return Vec::new() };
        let first = diff.hunk_at(width, rows.start.saturating_sub(above)).unwrap_or(0);
        if !hunks.can_be_split() {
            return Vec::new();
        }
        let parts = (0..hunks.len()).filter_map(|at| Some((at, hunks.hunk_index(at).ok()?)));
        let starts = parts.skip_while(|(_, hunk)| *hunk < first).map(|(at, hunk)| (at, above + diff.row_of(width, hunk)));
        let visible = starts.skip_while(|(_, row)| *row < rows.start).take_while(|(_, row)| *row < rows.end);
        // The signs are one cell wide. ASCII screens replace them.
        let sign = |at: usize| if hunks.choices[at] == HunkChoice::Left { "☐" } else { "☑" };
        visible.map(|(at, row)| (row, sign(at), at == hunks.at)).collect()
    }

    /// Scrolls to the first hunk of a selectable change, or to its row above the diff if it has no hunks.
    fn scroll_to_part(&mut self, at: usize) {
        let place = self.hunks().map(|hunks| hunks.hunk_index(at).map_err(str::to_owned));
        let discarded = self.hunks().map(Hunks::discarded_effects).unwrap_or_default();
        match (place, self.asked_approval()) {
            (Some(Err(path)), Some(approval)) => {
                let note = super::effects::note_place(approval, &path, &discarded);
                self.scroll_to_row(self.body.row_of_note(self.view.width, note));
            }
            (Some(Ok(hunk)), _) => self.scroll_to_hunk(hunk),
            _ => {}
        }
    }

    fn scroll_to_hunk(&mut self, hunk: usize) {
        let Some(diff) = self.body.changes() else { return };
        self.scroll_to_row(self.body.rows_above_diff(self.view.width) + diff.row_of(self.view.width, hunk));
    }

    fn scroll_to_row(&mut self, row: usize) {
        let last = self.body.rows(self.view.width).saturating_sub(self.view.shown);
        // Scrolling does not skip rows above that were not shown.
        self.view.top = row.min(last);
    }

    /// Replaces the current hunk's new text and rebuilds the diff.
    pub(crate) fn replace_hunk(&mut self, text: &str) {
        let Some(hunks) = self.hunks_mut() else { return };
        hunks.replace_text(text);
        let at = hunks.at;
        let saw_all = self.unseen() == 0;
        let from = self.row_of_hunk(at);
        self.rebuild_diff();
        // The edited hunk counts as shown. The rows below it count only if they were shown before.
        self.view.seen = if saw_all { self.body.rows(self.view.width) } else { self.view.seen.min(from) };
        self.view.saw_all = saw_all;
        self.show_hunks();
    }

    /// Rebuilds the diff if edits were dropped or restored since `before`, which contains the earlier decisions. Rows
    /// from the first affected hunk onwards must then be shown again.
    fn show_edits(&mut self, before: &[HunkChoice]) {
        let edited = |choice: &HunkChoice| matches!(choice, HunkChoice::Edited { .. });
        let differs = |(old, new): (&HunkChoice, &HunkChoice)| old != new && (edited(old) || edited(new));
        let first = self.hunks().and_then(|hunks| before.iter().zip(&hunks.choices).position(differs));
        let Some(first) = first else { return };
        let from = self.row_of_hunk(first);
        self.rebuild_diff();
        self.view.seen = self.view.seen.min(from);
        self.view.saw_all = false;
    }

    /// Replaces the displayed diff with one that contains the user's edits.
    fn rebuild_diff(&mut self) {
        let Some(diff) = self.hunks().map(Hunks::edited_diff) else { return };
        let path = self.asked_approval().and_then(|approval| approval.proposal.paths.first().cloned());
        let diff = Diff::new(&diff, path.as_deref());
        diff.set_shape(self.shape(self.view.width + crate::tui::metrics::GUTTER));
        self.body.set_diff(diff);
    }

    /// Returns the body row at which a hunk begins.
    fn row_of_hunk(&self, hunk: usize) -> usize {
        let width = self.view.width;
        self.body.rows_above_diff(width) + self.body.changes().map_or(0, |diff| diff.row_of(width, hunk))
    }

    /// Restores an earlier state of the hunks.
    pub(crate) fn restore_hunks(&mut self, before: Hunks) {
        if let Some(hunks) = self.hunks_mut() {
            let choices = std::mem::replace(hunks, before).choices;
            self.show_edits(&choices);
        }
        self.show_hunks();
    }

    /// Records a hunk key and the state before it. Keys pressed in quick succession share the state before the first of
    /// them.
    pub(crate) fn record_mark(&mut self, before: Hunks, now: u64) {
        let Some(selection) = self.kind.selection_mut() else { return };
        match selection.recent.as_mut().filter(|recent| recent.is_fresh(now)) {
            Some(recent) => recent.at = now,
            None => selection.recent = Some(RecentMarks { at: now, before }),
        }
    }

    /// Undoes the recent hunk keys because they turned out to be the start of typed text.
    pub(crate) fn undo_recent_marks(&mut self, now: u64) {
        let recent = self.kind.selection_mut().and_then(|selection| selection.recent.take());
        if let Some(recent) = recent.filter(|recent| recent.is_fresh(now)) {
            self.restore_hunks(recent.before);
        }
    }

    /// Updates the head, choices and diff to reflect which hunks are selected.
    pub(crate) fn show_hunks(&mut self) {
        let Some(hunks) = self.kind.selection().map(|selection| &selection.hunks) else { return };
        if let Some(diff) = self.body.changes() {
            diff.set_left(hunks.left_out());
        }
        let verb = self.body.verb();
        let (is_of_effects, yes) = (hunks.effects.is_some(), hunks.approval_label(verb.long));
        let approval = self.kind.prompt().map(|prompt| &prompt.approval);
        if let Some(approval) = approval.filter(|_| is_of_effects) {
            self.body.mark_discarded(approval, &hunks.discarded_effects());
        }
        let changed = hunks.amendment().is_some();
        if hunks.can_be_split() {
            let counts = self.body.line_counts().unwrap_or_default();
            self.facts = hunks.facts().map_or(counts.clone(), |facts| format!("{facts} · {counts}"));
        }
        for choice in &mut self.choices {
            match choice.act {
                ChoiceAction::Approve => {
                    choice.enabled = yes.is_ok();
                    choice.short = match &yes {
                        Ok(words) if changed => words.trim_end_matches(", once").to_owned().into(),
                        Ok(_) if is_of_effects => verb.short.into(),
                        Ok(_) => "yes".into(),
                        Err(_) if is_of_effects => "nothing selected".into(),
                        Err(_) => "no hunk selected".into(),
                    };
                    choice.words = yes.clone().unwrap_or_else(|why| why);
                }
                ChoiceAction::Always if changed && choice.enabled => {
                    choice.enabled = false;
                    "a rule can be saved only for the whole change, unedited".clone_into(&mut choice.words);
                }
                ChoiceAction::Always if !changed => {
                    if let Some(approval) = approval {
                        *choice = super::Choice { is_shown: choice.is_shown, ..super::choices::always(approval) };
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the diff layout to use at this panel width, in cells.
    pub(crate) fn shape(&self, width: u16) -> Shape {
        self.kind.layout().shape(width)
    }

    /// Switches between side-by-side and unified layout. Returns `false` if there is no diff or the panel is too
    /// narrow.
    pub(crate) fn turn_view(&mut self, width: u16) -> bool {
        if width < MIN_BESIDE || self.body.changes().is_none() {
            return false;
        }
        let (hunk, beside) = (self.top_hunk(), self.shape(width).beside);
        if let Some(layout) = self.kind.layout_mut() {
            layout.beside = Some(!beside);
        }
        self.relayout(width, hunk);
        true
    }

    /// Switches between wrapped and truncated lines.
    pub(crate) fn turn_wrap(&mut self, width: u16) {
        let hunk = self.top_hunk();
        if let Some(layout) = self.kind.layout_mut() {
            layout.wraps = !layout.wraps;
        }
        self.relayout(width, hunk);
    }

    fn top_hunk(&self) -> Option<usize> {
        let above = self.body.rows_above_diff(self.view.width);
        self.body.changes().filter(|_| self.view.top > above)?.hunk_at(self.view.width, self.view.top - above)
    }

    fn relayout(&mut self, width: u16, hunk: Option<usize>) {
        let saw_all = self.view.saw_all;
        self.body.set_shape(self.shape(width));
        // A new layout has other rows, so the dialog must be shown again unless all of it was shown.
        self.view.seen = if saw_all { self.body.rows(self.view.width) } else { 0 };
        self.view.top = 0;
        if let Some(hunk) = hunk {
            self.scroll_to_hunk(hunk);
        }
        if !saw_all {
            self.view.top = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -9,2 +9,3 @@ fn x\n y\n-z\n\\ No newline at end of file\n+z\n+end\n\\ No newline at end of file\n";

    fn hunks() -> Hunks {
        let offer = |first, end| Hunk { file: Some(0), first, end, name: None, fixed: None };
        Hunks {
            choices: vec![HunkChoice::Taken; 2],
            offers: vec![offer(1, 2), offer(9, 11)],
            diff: FileDiffs::read(DIFF),
            at: 0,
            effects: None,
        }
    }

    #[test]
    fn the_start_of_a_hunk_changes_when_one_side_becomes_empty_or_nonempty() {
        let hunk = |header: &str, lines: &str| FileDiffs::read(&format!("{header}\n{lines}")).hunks().next().unwrap().clone();
        let gone = hunk("@@ -3 +2,0 @@", "-c\n");
        assert_eq!(with_new_text(&gone, "d\n"), hunk("@@ -3 +3 @@", "-c\n+d\n"));
        assert_eq!(with_new_text(&with_new_text(&gone, "d\n"), ""), gone);
        let first = hunk("@@ -0,0 +1 @@", "+a\n");
        assert_eq!(with_new_text(&first, ""), hunk("@@ -0,0 +0,0 @@", ""));
    }

    #[test]
    fn edited_hunk_text_appears_in_the_diff() {
        let mut hunks = hunks();
        assert_eq!(hunks.text().unwrap(), "B\n");
        hunks.replace_text("one\ntwo");
        let shown = |hunks: &Hunks| hunks.edited_diff().to_string();
        assert!(shown(&hunks).contains("@@ -1,3 +1,4 @@\n a\n-b\n+one\n+two\n c\n"), "{}", shown(&hunks));
        hunks.at = 1;
        assert_eq!(hunks.text().unwrap(), "z\nend");
        hunks.replace_text("");
        assert!(shown(&hunks).contains("@@ -9,2 +9 @@ fn x\n y\n-z\n\\ No newline"), "{}", shown(&hunks));
        hunks.replace_text("z\nend");
        assert_eq!(hunks.choices[1], HunkChoice::Taken);
    }

    #[test]
    fn the_resulting_file_reflects_the_hunk_choices() {
        let mut hunks = hunks();
        let proposed = "a\nB\nc\n4\n5\n6\n7\n8\ny\nz\nend";
        hunks.mark(HunkMark::Turn).unwrap();
        assert_eq!(hunks.file_text(0, proposed), proposed.replace('B', "b"));
        hunks.mark(HunkMark::Next).unwrap();
        hunks.mark(HunkMark::Turn).unwrap();
        assert_eq!(hunks.file_text(0, proposed), "a\nb\nc\n4\n5\n6\n7\n8\ny\nz");
        assert!(hunks.approval_label("apply it").is_err());
    }
}
