//! "Always allow" dialog, in which the user chooses a rule, its scope and its expiry. Nothing is saved until the user
//! confirms a scope.

use super::dialog_kind::{DialogKind, HintState};
use super::{Body, Choice, ChoiceAction, Dialog, DialogAnswer, Note, choice};
use crate::protocol::{
    ApprovalId, Decision, DiffHunk, DiffLine, DiffSide, FileDiffs, GrantChoice, GrantOption, GrantOptions, GrantRule, GrantScope,
    RuleInfo, RulePlace,
};
use crate::text;
use crate::tui::format::format_count;
use crate::tui::theme::Token;
use crate::tui::typeahead_guard::Confirm;
use std::borrow::Cow;

/// Explanation, always shown, of the kinds of rules that aye never offers.
const NEVER: &str = "never saved as a rule: deletions, network access, downloaded code, wrappers and interpreters \
                     (sh -c, python -c, sudo, env, …)";

/// State of the "always allow" dialog: the offered rules and the user's current selection.
#[derive(Debug)]
pub(crate) struct RuleChoice {
    approval_id: ApprovalId,
    always: GrantOptions,
    is_command: bool,
    offer: usize,
    /// Index of the selected expiry, or `None` if the rule never expires.
    end: Option<usize>,
    body: RuleView,
    /// Index of the first offer that the user wrote; the offers before it come from the policy.
    own: usize,
    /// Reason why the last rule that the user wrote was rejected, if it was.
    refused: Option<String>,
    /// Recent commands that an offer would have allowed, as the offer's index, the number of commands examined, and the
    /// commands that match.
    reach: Option<(usize, usize, Vec<String>)>,
}

/// Content shown between the dialog's head and its choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuleView {
    Rule,
    /// The rule as it would be written to the policy file, shown while the user edits it.
    Toml,
    Diff,
    Reach,
}

impl RuleChoice {
    pub(crate) fn new(approval_id: ApprovalId, always: GrantOptions, is_command: bool) -> Self {
        let own = always.offers.iter().position(|offer| offer.written).unwrap_or(always.offers.len());
        let (refused, reach) = (None, None);
        Self { approval_id, always, is_command, offer: 0, end: None, body: RuleView::Rule, own, refused, reach }
    }

    pub(crate) fn panel(self) -> Dialog {
        let (choices, body) = (self.choices(), self.body());
        let reason = "Nothing is saved until you press enter.".to_owned();
        // Users must be able to read what will be allowed, so the dialog takes the whole screen.
        Dialog::new(Box::new(self), "Always allow this".to_owned(), reason, choices, body).in_full_height()
    }

    /// Returns the dialog with another rule, expiry or view selected.
    fn with_selection(mut self, act: ChoiceAction) -> Dialog {
        match act {
            ChoiceAction::Widen => self.offer = (self.offer + 1) % self.always.offers.len().max(1),
            ChoiceAction::End => {
                let next = self.end.map_or(0, |end| end + 1);
                self.end = (next < self.always.ends.len()).then_some(next);
            }
            ChoiceAction::Diff => self.body = if self.body == RuleView::Diff { RuleView::Rule } else { RuleView::Diff },
            ChoiceAction::Reach => self.body = if self.body == RuleView::Reach { RuleView::Rule } else { RuleView::Reach },
            ChoiceAction::Write => (self.refused, self.body) = (None, RuleView::Rule),
            ChoiceAction::Approve
            | ChoiceAction::Preview
            | ChoiceAction::RunAgain
            | ChoiceAction::Always
            | ChoiceAction::Look
            | ChoiceAction::Back
            | ChoiceAction::ShowNew
            | ChoiceAction::OpenFile
            | ChoiceAction::Keep(_)
            | ChoiceAction::Edit
            | ChoiceAction::EditWhole
            | ChoiceAction::View
            | ChoiceAction::Wrap
            | ChoiceAction::First
            | ChoiceAction::Offline
            | ChoiceAction::ApproveClean
            | ChoiceAction::Unsandboxed
            | ChoiceAction::Deny
            | ChoiceAction::DenyWithWords
            | ChoiceAction::Resolve(_)
            | ChoiceAction::Trust(_)
            | ChoiceAction::Mode(_)
            | ChoiceAction::Goal(_)
            | ChoiceAction::Held(_)
            | ChoiceAction::Setup(_)
            | ChoiceAction::Forget(_)
            | ChoiceAction::Asking(_)
            | ChoiceAction::Rewind(_)
            | ChoiceAction::Fork => {}
        }
        self.panel()
    }

    /// Applies the policy's reply about a rule that the user wrote. Returns the updated state and whether the user is
    /// still writing the rule.
    pub(crate) fn apply(mut self, told: RuleInfo) -> (Self, bool) {
        match told {
            RuleInfo::Offered { offer, at } => {
                if at == self.always.offers.len() {
                    self.always.offers.push(offer);
                }
                (self.offer, self.refused, self.body) = (at, None, RuleView::Rule);
                (self, false)
            }
            RuleInfo::Refused { message } => {
                (self.refused, self.body) = (Some(message), RuleView::Rule);
                (self, true)
            }
            RuleInfo::Reaches { offer, of, lines } => {
                self.reach = Some((offer, of, lines));
                (self, true)
            }
        }
    }

    /// Returns the ID of the approval for which a rule is being chosen.
    pub(crate) fn approval_id(&self) -> ApprovalId {
        self.approval_id.clone()
    }

    /// Returns the selected rule as a line of text for editing.
    pub(crate) fn to_line(&self) -> String {
        self.offer().map(|offer| offer.rules.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")).unwrap_or_default()
    }

    /// Returns the approval ID and the index of the offer whose matching commands have yet to be requested: the next
    /// wider offer or, if there is none, the current one. Returns `None` if nothing has to be requested.
    pub(crate) fn wants_reach(&self) -> Option<(ApprovalId, usize)> {
        let target = self.reaches();
        let known = self.reach.as_ref().is_some_and(|(offer, ..)| *offer == target);
        (self.is_command && self.always.offers.len() > 1 && !known).then(|| (self.approval_id.clone(), target))
    }

    fn reaches(&self) -> usize {
        if self.offer + 1 < self.own { self.offer + 1 } else { self.offer }
    }

    fn remember(&self, scope: GrantScope) -> (ApprovalId, GrantChoice) {
        let until = self.end.and_then(|end| self.always.ends.get(end)).map(|(_, end)| *end);
        let until = until.filter(|_| scope != GrantScope::Session);
        (self.approval_id.clone(), GrantChoice { scope, offer: self.offer, until })
    }

    fn offer(&self) -> Option<&GrantOption> {
        self.always.offers.get(self.offer)
    }

    fn rule_place(&self, scope: GrantScope) -> Option<&RulePlace> {
        self.offer()?.places.iter().find(|place| place.scope == scope)
    }

    fn choices(&self) -> Vec<Choice> {
        let is_offered = |scope| self.offer().is_none_or(|offer| offer.refuses(scope).is_none());
        let mut choices = Vec::new();
        if is_offered(GrantScope::Session) {
            choices.push(choice(
                '1',
                Confirm::LetterThenEnter,
                ChoiceAction::Keep(GrantScope::Session),
                "until you quit".to_owned(),
                "until you quit",
            ));
        }
        choices.push(self.file_choice('2', GrantScope::Project, "in this project", "this project"));
        if is_offered(GrantScope::Everywhere) {
            choices.push(self.file_choice('3', GrantScope::Everywhere, "everywhere, for you", "everywhere"));
        }
        if self.always.offers.len() > 1 {
            let (words, short) = match self.always.offers.get(self.offer + 1) {
                None => ("back to the narrowest rule".to_owned(), "narrow"),
                Some(offer) if offer.written => (format!("your rule: {}", join_rules(&offer.rules)), "your rule"),
                Some(offer) => (format!("widen to {}", join_rules(&offer.rules)), "widen"),
            };
            choices.push(choice('w', Confirm::Letter, ChoiceAction::Widen, words, short));
        }
        if self.is_writable() {
            choices.push(choice('e', Confirm::Letter, ChoiceAction::Write, "edit the rule".to_owned(), "edit"));
        }
        // The choice is shown before the list arrives, so that no other choice moves under the user's finger.
        if self.is_command && self.always.offers.len() > 1 {
            let what = if self.reaches() == self.offer { "this rule" } else { "the wider rule" };
            let words = match &self.reach {
                _ if self.body == RuleView::Reach => "show the rule".to_owned(),
                Some((offer, of, lines)) if *offer == self.reaches() => {
                    let (of, more) = (format_count(*of, "command"), lines.len());
                    format!("of your last {of} (all projects), {what} would have allowed {more} more")
                }
                Some(_) | None => format!("list the recent commands (all projects) that {what} would have allowed"),
            };
            choices.push(choice('l', Confirm::Letter, ChoiceAction::Reach, words, "reach"));
        }
        if self.has_files() {
            let day = |end: &jiff::Timestamp| end.strftime("%Y-%m-%d").to_string();
            let words = match self.end.and_then(|end| self.always.ends.get(end)) {
                None => "set an expiry… (now: never expires)".to_owned(),
                Some((1, end)) => format!("change the expiry… (now: 1 day, until {})", day(end)),
                Some((days, end)) => format!("change the expiry… (now: {days} days, until {})", day(end)),
            };
            if !self.always.ends.is_empty() {
                choices.push(choice('x', Confirm::Letter, ChoiceAction::End, words, "expiry"));
            }
            let words = if self.body == RuleView::Rule { "show the changes to the files" } else { "show the rule" };
            choices.push(choice('d', Confirm::Letter, ChoiceAction::Diff, words.to_owned(), "diff"));
        }
        choices
    }

    /// Returns whether the user can edit the selected rule. Rules for tools and readable paths are not editable.
    fn is_writable(&self) -> bool {
        self.offer().is_some_and(|offer| {
            let is_fixed = |rule: &GrantRule| {
                matches!(
                    rule,
                    GrantRule::Tool { .. }
                        | GrantRule::ServerTool { .. }
                        | GrantRule::BackendTool { .. }
                        | GrantRule::Readable { .. }
                )
            };
            !offer.rules.iter().any(is_fixed)
        })
    }

    fn has_files(&self) -> bool {
        self.offer().is_some_and(|offer| offer.places.iter().any(|place| place.refused.is_none()))
    }

    fn file_choice(&self, letter: char, scope: GrantScope, words: &str, short: &'static str) -> Choice {
        let off = |why: &str| Choice {
            enabled: false,
            ..choice(
                letter,
                Confirm::LetterThenEnter,
                ChoiceAction::Keep(scope),
                format!("{words} · {}", text::reveal_line(why)),
                short,
            )
        };
        let Some(offer) = self.offer() else { return off("no rule is available") };
        if let Some(why) = &offer.memory_only {
            return off(why);
        }
        let Some(place) = self.rule_place(scope) else { return off("no rule can be saved in this run") };
        if let Some(why) = &place.refused {
            return off(why);
        }
        let mut whole = words.to_owned();
        if offer.asks_still.contains(&scope) {
            whole.push_str(" · still asks, because this system has no sandbox");
        }
        choice(letter, Confirm::LetterThenEnter, ChoiceAction::Keep(scope), whole, short)
    }

    /// Switches to the TOML view of the rule, because the user is about to edit the rule, and returns the new body.
    pub(super) fn begin_writing(&mut self) -> Body {
        self.body = RuleView::Toml;
        self.body()
    }

    fn body(&self) -> Body {
        let Some(offer) = self.offer() else { return Body::from_text(String::new()) };
        if self.body == RuleView::Diff {
            let places = offer.places.iter().filter(|place| place.refused.is_none());
            let mut diff: FileDiffs = places.flat_map(|place| place.diff.clone()).collect();
            if let Some(row) = self.end_row() {
                diff.hunks_mut().for_each(|hunk| add_end(hunk, &row));
            }
            return Body::diff_below(place_notes(offer), &diff);
        }
        if let (RuleView::Reach, Some((reached, of, lines))) = (self.body, &self.reach) {
            let rules = self.always.offers.get(*reached).map(|offer| join_rules(&offer.rules)).unwrap_or_default();
            let mut rows = vec![format!(
                "of your last {} (all projects), {rules} would have allowed these without asking",
                format_count(*of, "command")
            )];
            rows.extend(lines.iter().map(|command| format!("  $ {}", text::reveal_name(command))));
            if lines.is_empty() {
                rows.push("  none".to_owned());
            }
            return Body::from_text(rows.join("\n"));
        }
        let mut rows = Vec::new();
        if let Some(why) = &self.refused {
            rows.extend([format!("not accepted: {}", text::reveal_line(why)), String::new()]);
        }
        if self.body != RuleView::Toml {
            rows.push(describe_rules(&offer.rules));
            if offer.everywhere != offer.rules {
                rows.push(format!("everywhere: {}", describe_rules(&offer.everywhere)));
            }
            let end = self.end.and_then(|end| self.always.ends.get(end));
            rows.extend(end.map(|(_, end)| format!("a saved rule expires on {}", end.strftime("%Y-%m-%d"))));
            return Body::from_text(rows.join("\n"));
        }
        rows.extend(self.toml(&offer.rules));
        if offer.everywhere != offer.rules {
            rows.push(String::new());
            rows.push("everywhere, for you:".to_owned());
            rows.extend(self.toml(&offer.everywhere));
        }
        if self.is_command {
            rows.push(String::new());
            rows.push(NEVER.to_owned());
        }
        Body::from_text(rows.join("\n"))
    }

    /// Returns the rules as lines of TOML, including the selected expiry.
    fn toml(&self, rules: &[GrantRule]) -> Vec<String> {
        let mut rows = Vec::new();
        for (at, rule) in rules.iter().enumerate() {
            if at > 0 {
                rows.push(String::new());
            }
            rows.extend(rule.keys().into_iter().map(|key| format!("  {key}")));
            rows.extend(self.end_row().map(|row| format!("  {row}")));
        }
        rows
    }

    fn end_row(&self) -> Option<String> {
        let (_, end) = self.always.ends.get(self.end?)?;
        Some(format!("expires_at = {end}"))
    }
}

impl DialogKind for RuleChoice {
    fn answer(&mut self, act: ChoiceAction, _reason: Option<String>) -> Option<DialogAnswer> {
        let ChoiceAction::Keep(scope) = act else { return None };
        let (approval_id, remember) = self.remember(scope);
        Some(DialogAnswer::Decide(approval_id, Decision::ApprovedAlways { remember }))
    }

    fn turn(self: Box<Self>, act: ChoiceAction) -> Option<Dialog> {
        Some(self.with_selection(act))
    }

    fn is_in_front(&self) -> bool {
        true
    }

    fn lists_scopes(&self) -> bool {
        true
    }

    fn field_label(&self) -> Cow<'_, str> {
        "rule: ".into()
    }

    fn key_hints(&self, state: HintState) -> Option<Vec<&'static str>> {
        state.has_field.then(|| vec!["enter check the rule", "esc back"])
    }
}

/// Adds the expiry to every added rule, on a line after its reason. It is missing from the diff, which was created
/// before the user chose an expiry.
fn add_end(hunk: &mut DiffHunk, row: &str) {
    let is_reason = |line: &DiffLine| line.side == DiffSide::Added && line.text.starts_with("reason = ");
    for at in (0..hunk.lines.len()).rev().filter(|at| is_reason(&hunk.lines[*at])).collect::<Vec<_>>() {
        hunk.lines.insert(at + 1, DiffLine { side: DiffSide::Added, text: row.to_owned(), has_newline: true });
        hunk.new_count += 1;
    }
}

/// Returns the files in which the rule can be saved, one paragraph for each.
fn place_notes(offer: &GrantOption) -> Vec<Note> {
    let places = offer.places.iter().filter(|place| place.refused.is_none());
    let describe = |place: &RulePlace| {
        let scope = if place.scope == GrantScope::Project { "in this project" } else { "everywhere" };
        let note = place.note.as_ref().map(|note| format!(" · {}", text::reveal_line(note))).unwrap_or_default();
        format!("{scope}: {}:{}{note}", text::reveal_line(&place.file), place.line)
    };
    places.map(|place| Note::new(describe(place), Token::Text)).collect()
}

/// Describes, on one line, the calls that the rules would allow.
fn describe_rules(rules: &[GrantRule]) -> String {
    text::reveal_rows(&rules.iter().map(GrantRule::describe).collect::<Vec<_>>().join("; "))
}

fn join_rules(rules: &[GrantRule]) -> String {
    text::reveal_rows(&rules.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}
