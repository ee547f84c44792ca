//! Pages that open in front of a dialog, for example to show matching rules or project files. They require no decision.

use super::choices::WHY;
use super::dialog_kind::DialogKind;
use super::effects::has_output;
use super::{Body, Choice, ChoiceAction, Dialog, DialogAnswer, choice};
use crate::protocol::{Approval, FileDiffs, PreviewOffer, RuleOrigin, format_seconds};
use crate::text;
use crate::tui::interface::ProjectFile;
use crate::tui::typeahead_guard::Confirm;
use std::fmt::Write as _;
use std::ops::Range;

/// Pages to read, and the index of the open one.
#[derive(Debug)]
pub(crate) struct Pager {
    pages: Vec<DialogPage>,
    at: usize,
    /// Rows on the last page that name hidden keys, which work only in the full-screen UI.
    key_rows: Range<usize>,
}

#[derive(Debug, Clone)]
struct DialogPage {
    title: String,
    about: String,
    text: String,
    /// Diff that is shown instead of the text.
    diff: Option<FileDiffs>,
    /// File that the page shows, if it can be opened in an editor.
    file: Option<String>,
}

impl Pager {
    /// Creates the details page of an approval: facts common to all calls, hidden keys, and the reasons behind the
    /// verdict that was in force when the approval was requested.
    pub(crate) fn rules(approval: &Approval, choices: &[Choice]) -> Self {
        let mut text = String::new();
        for line in constants(approval) {
            let _ = writeln!(text, "{line}");
        }
        let first_key = text.matches('\n').count();
        for line in other_keys(choices) {
            let _ = writeln!(text, "{line}");
        }
        let key_rows = first_key..text.matches('\n').count();
        if !text.is_empty() {
            text.push('\n');
        }
        let mut told: Vec<&str> = Vec::new();
        for (at, part) in approval.parts.iter().enumerate() {
            let critical = if part.critical { ", critical" } else { "" };
            let (verdict, risk) = (part.verdict.as_str(), part.risk.as_str());
            let _ = write!(text, "{:>2}  {}\n    {verdict} · {risk} risk{critical} · ", at + 1, text::reveal_name(&part.text));
            let _ = writeln!(text, "{}\n    decided by {}\n", text::reveal_line(&part.reason), rule_origin(&part.rule));
            told.push(&part.rule);
        }
        if approval.parts.is_empty() {
            let risk = approval.risk_level.as_str();
            let _ = writeln!(
                text,
                "ask · {risk} risk · {}\ndecided by {}\n",
                text::reveal_line(&approval.reason),
                rule_origin(&approval.rule)
            );
        } else if !told.contains(&approval.rule.as_str()) {
            let _ = writeln!(
                text,
                "whole command: {}\ndecided by {}\n",
                text::reveal_line(&approval.reason),
                rule_origin(&approval.rule)
            );
        }
        for RuleOrigin { rule, place, source, first } in &approval.origins {
            let _ = writeln!(text, "{}\n{}", text::reveal_line(rule), text::reveal_line(place));
            for (at, row) in source.iter().enumerate() {
                let _ = writeln!(text, "  {:>4}  {row}", first + at);
            }
            text.push('\n');
        }
        let about = String::new();
        let (title, text) = ("Details and rules".to_owned(), text.trim_end().to_owned());
        let rules = DialogPage { title, about, text, diff: None, file: None };
        let printed = approval.effects.iter().filter(|effects| has_output(&effects.output)).map(|effects| DialogPage {
            title: "Output".to_owned(),
            about: "from the preview run; the model sees it if you approve".to_owned(),
            text: effects.output.trim_end().to_owned(),
            diff: None,
            file: None,
        });
        let groups = approval.effects.iter().flat_map(|effects| &effects.groups).map(|group| DialogPage {
            title: format!("New files in {}", text::reveal_name(&group.folder)),
            about: format!("{} files, {}; all new", group.files.len(), crate::protocol::size(group.bytes)),
            text: group.files.iter().map(|file| text::reveal_name(file)).collect::<Vec<_>>().join("\n"),
            diff: None,
            file: None,
        });
        Self { pages: printed.chain(groups).chain([rules]).collect(), at: 0, key_rows }
    }

    /// Creates the pages for the given project files, one per file.
    pub(crate) fn files(files: &[ProjectFile]) -> Self {
        let pages = files.iter().map(|file| {
            let mut text = file.text.clone();
            if text.trim().is_empty() {
                "(empty)".clone_into(&mut text);
            }
            if file.is_cut {
                text.push_str("\n\n(truncated here; open the file to see the rest)");
            }
            DialogPage {
                title: text::reveal_name(&file.name),
                about: "just read from the project; not in effect yet".to_owned(),
                text,
                diff: None,
                file: None,
            }
        });
        Self { pages: pages.collect(), at: 0, key_rows: 0..0 }
    }

    /// Creates a page that shows the diff of the proposed changes.
    pub(crate) fn diff(diff: FileDiffs) -> Self {
        let about = "from the current files to the result".to_owned();
        let title = "Proposed changes".to_owned();
        Self::of_page(DialogPage { title, about, text: String::new(), diff: Some(diff), file: None })
    }

    /// Creates the page about the rule that decided one part of a command, with the rule's file, line and text. Returns
    /// `None` if the command has no such part.
    pub(crate) fn for_rule(approval: &Approval, part: usize) -> Option<Self> {
        let decided = approval.parts.get(part)?;
        let title = format!("Rule for part {}", part + 1);
        let mut text = format!(
            "{}\n{} · {}\n\n",
            text::reveal_name(&decided.text),
            decided.verdict.as_str(),
            text::reveal_line(&decided.reason)
        );
        let Some(RuleOrigin { rule, place, source, first }) = origin(approval, &decided.rule) else {
            let _ = write!(text, "decided by {}, which is not in any of your policy files", rule_origin(&decided.rule));
            let about = "`aye policy show` prints the policy in effect".to_owned();
            return Some(Self::of_page(DialogPage { title, about, text, diff: None, file: None }));
        };
        let _ = writeln!(text, "{}\n{}", text::reveal_line(rule), text::reveal_line(place));
        for (at, row) in source.iter().enumerate() {
            let _ = writeln!(text, "  {:>4}  {row}", first + at);
        }
        let about = "the content when aye asked; read-only here".to_owned();
        let file = place.rsplit_once(':').map(|(file, _)| file.to_owned());
        Some(Self::of_page(DialogPage { title, about, text: text.trim_end().to_owned(), diff: None, file }))
    }

    fn of_page(page: DialogPage) -> Self {
        Self { pages: vec![page], at: 0, key_rows: 0..0 }
    }

    /// Returns whether a row of the open page names a hidden key.
    pub(crate) fn is_key_row(&self, row: usize) -> bool {
        self.at + 1 == self.pages.len() && self.key_rows.contains(&row)
    }

    /// Returns the open page's file, to be opened in an editor.
    pub(crate) fn file(&self) -> Option<&str> {
        self.pages.get(self.at)?.file.as_deref()
    }

    pub(crate) fn panel(self) -> Option<Dialog> {
        let page = self.pages.get(self.at)?.clone();
        let title = match self.pages.len() {
            1 => page.title,
            count => format!("{} · {} of {count}", page.title, self.at + 1),
        };
        let choices = self.choices();
        let body = match &page.diff {
            Some(diff) => Body::diff(String::new(), diff),
            None => Body::from_text(page.text),
        };
        Some(Dialog::new(Box::new(self), title, page.about, choices, body).in_full_height())
    }

    fn choices(&self) -> Vec<Choice> {
        let back = choice('b', Confirm::Letter, ChoiceAction::Back, "back to the approval".to_owned(), "back");
        // The key that opens the pages closes them, too.
        let toggle = choice('?', Confirm::Immediate, ChoiceAction::Back, String::new(), "back");
        let mut choices = vec![back, Choice { listed: false, is_shown: false, ..toggle }];
        if let Some(next) = self.pages.get((self.at + 1) % self.pages.len()).filter(|_| self.pages.len() > 1) {
            choices.insert(0, choice('o', Confirm::Letter, ChoiceAction::Look, format!("open {}", next.title), "next"));
        }
        if self.file().is_some() {
            choices.insert(
                0,
                choice('e', Confirm::Letter, ChoiceAction::OpenFile, "open the file in your editor".to_owned(), "editor"),
            );
        }
        choices
    }
}

impl DialogKind for Pager {
    fn answer(&mut self, _act: ChoiceAction, _reason: Option<String>) -> Option<DialogAnswer> {
        None
    }

    /// Turns to the next page, wrapping around at the end.
    fn turn(mut self: Box<Self>, _act: ChoiceAction) -> Option<Dialog> {
        self.at = (self.at + 1) % self.pages.len().max(1);
        self.panel()
    }

    fn is_in_front(&self) -> bool {
        true
    }
}

/// Returns the facts common to all commands in the session, and the reasons why some choices are unavailable.
fn constants(approval: &Approval) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(command), Some(effects)) = (&approval.command, &approval.effects) {
        // The prompt shows only one row of the command.
        lines.push(format!("command      {}", text::reveal_rows(&command.line).replace('\n', "\n             ")));
        let ended = text::reveal_line(&effects.ended);
        let opens: Vec<String> = approval.opens.iter().map(|opened| text::reveal_line(&opened.to_string())).collect();
        let access =
            if opens.is_empty() { "without network access".to_owned() } else { format!("with access to {}", opens.join(", ")) };
        lines.push(format!("result       {ended}; ran in a copy {access}; your files are unchanged"));
    }
    if let Some(command) = &approval.command {
        lines.push(format!("directory    {}", text::reveal_line(&command.cwd)));
        lines.push(match command.timeout_seconds {
            0 => "time limit   none".to_owned(),
            seconds => format!("time limit   {}", format_seconds(seconds)),
        });
        lines.extend(approval.proposal.shared_notes().iter().map(|note| {
            let note = text::reveal_line(note);
            let (head, rest) = note.split_once(' ').unwrap_or((&note, ""));
            format!("{head:<12} {rest}")
        }));
        lines.push(format!("sandbox      {}", text::reveal_line(&command.sandbox)));
    } else {
        lines.extend(approval.proposal.shared_notes().iter().map(|note| text::reveal_rows(note)));
    }
    if let PreviewOffer::Impossible { reason } = &approval.preview {
        lines.push(format!("preview      unavailable: {}", text::reveal_line(reason)));
    }
    if !approval.always.never.is_empty() && approval.always.offers.is_empty() {
        lines.push(format!("always       unavailable: {}", super::choices::join_reasons(&approval.always.never)));
    }
    lines
}

/// Returns the available keys that the dialog does not show, such as `N  deny and say why`.
fn other_keys(choices: &[Choice]) -> Vec<String> {
    // Whether the dialog shows this choice depends on its width.
    let is_hidden = |choice: &&Choice| !choice.is_shown || choice.key.letter == WHY;
    let other = choices.iter().filter(is_hidden).filter(|choice| choice.enabled && choice.act != ChoiceAction::Look);
    let words = |choice: &Choice| if choice.words.is_empty() { choice.short.to_string() } else { choice.words.clone() };
    other.map(|choice| format!("key {}        {}", choice.key.letter, words(choice))).collect()
}

fn rule_origin(rule: &str) -> String {
    match rule {
        "built-in" => "the built-in policy".to_owned(),
        "session" => "your approval in this session".to_owned(),
        "default" => "the default (ask when no rule matches)".to_owned(),
        other => text::reveal_line(other),
    }
}

/// Returns where a rule is defined, if it comes from a file.
fn origin<'a>(approval: &'a Approval, rule: &str) -> Option<&'a RuleOrigin> {
    approval.origins.iter().find(|origin| origin.rule == rule)
}
