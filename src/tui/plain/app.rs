//! Core of line mode, which turns messages and input lines into output lines and effects. It does not access the
//! terminal.
//!
//! Line mode uses the same model as the full-screen UI, so all commands and messages are the same; only their
//! presentation differs. For example, the user answers a dialog with a word, which must be typed after the dialog was
//! printed.

mod history;
mod lists;
mod status_lines;

use super::event_printer::{self, EventPrinter};
use super::lines::LineInput;
use super::question::{self, TypedAnswer};
use super::writer::LineWriter;
use crate::protocol::{Branch, Command, EventKind, HostCommand, RewindTarget};
use crate::text;
use crate::tui::approval::{Body, ChoiceAction, Dialog, Pager, is_awaited};
use crate::tui::interface::ExitReason;
use crate::tui::layers::{ChangesView, Help, ModelPicker, TextViewer};
use crate::tui::model::{Activity, UiEffect, UiModel};
use crate::tui::status;
use crate::tui::update::{self, Msg, update};
use std::io::{self, Write};

/// Window, in milliseconds, within which a second ctrl+c quits.
const QUIT_MS: u64 = 3000;

/// State of the current dialog. The text is the key that identifies the dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PromptState {
    /// The dialog has been printed, but incoming input may still have been typed before that.
    Written(String),
    /// The dialog accepts answers, because all incoming input was typed after the dialog was printed.
    Open(String),
}

pub(crate) struct LineApp<W> {
    pub model: UiModel,
    pub paper: LineWriter<W>,
    teller: EventPrinter,
    asked: Option<PromptState>,
    /// Lines that were rejected as answers. They are saved with the draft but are not part of the next message.
    kept: Vec<String>,
    /// Whether a fence must be requested. `fences` is the number of fences that have been requested but have not
    /// arrived.
    wants_fence: bool,
    fences: usize,
    /// Number of transcript entries that have been printed.
    told: usize,
    /// Number of pending dialogs at the time of the last announcement.
    known: usize,
    /// Prompts that the terminal echoed as the user typed them, so they must not be printed again.
    typed: Vec<String>,
    interrupted: Option<u64>,
    /// Whether the input is a pipe, so that a prompt for the next message is useless.
    pub is_piped: bool,
    /// Whether the end of the input has been reached.
    closed: bool,
    compacting: bool,
    /// Time at which saving started to fail, if the failure has been announced.
    unsaved: Option<u64>,
    /// Branches in the most recently printed list, from which the user chooses by number.
    branches: Vec<Branch>,
}

impl<W: Write> LineApp<W> {
    pub(crate) fn new(mut model: UiModel, paper: LineWriter<W>) -> Self {
        model.screen.in_lines = true;
        Self {
            model,
            paper,
            teller: EventPrinter::default(),
            asked: None,
            kept: Vec::new(),
            wants_fence: false,
            fences: 0,
            told: 0,
            known: 0,
            typed: Vec::new(),
            interrupted: None,
            is_piped: false,
            closed: false,
            compacting: false,
            unsaved: None,
            branches: Vec::new(),
        }
    }

    /// Returns whether a fence must be requested to separate earlier input from later input, and resets that flag.
    pub(crate) fn take_fence(&mut self) -> bool {
        let wanted = std::mem::take(&mut self.wants_fence);
        self.fences += usize::from(wanted);
        wanted
    }

    pub(crate) fn on_message(&mut self, msg: Msg, now: u64) -> io::Result<Vec<UiEffect>> {
        let changes = matches!(&msg, Msg::Event(event) if matches!(event.kind, EventKind::ChangedFiles(_)));
        let (mut started, mut retries) = (false, false);
        match &msg {
            Msg::Event(event) => {
                self.teller.print(&event.kind, &mut self.paper)?;
                if let (EventKind::ChangedFiles(changed), true) = (&event.kind, self.model.info.awaits_changes) {
                    event_printer::changes(changed, &mut self.paper)?;
                }
                retries = matches!(event.kind, EventKind::LlmRetry { .. });
            }
            Msg::Start(_) => started = true,
            _ => {}
        }
        let effects = update(&mut self.model, msg, now);
        if changes {
            self.model.layers.close::<ChangesView>();
        }
        if started {
            self.print_past()?;
        }
        let compacting = matches!(self.model.task.activity, Activity::Compacting { .. });
        if retries || compacting && !self.compacting {
            self.print_activity(now)?;
        }
        if retries {
            self.paper.write_text("Type /retry to send it now; ctrl+c stops the task.")?;
        }
        self.compacting = compacting;
        self.print_pending(now)?;
        Ok(effects)
    }

    pub(crate) fn on_line(&mut self, heard: LineInput, now: u64) -> io::Result<Vec<UiEffect>> {
        let mut effects = Vec::new();
        match heard {
            LineInput::Line(line) => {
                let was_asked = self.paper.end_prompt();
                self.line(&line, was_asked.is_some(), now, &mut effects)?;
                let saves = |effect: &UiEffect| matches!(effect, UiEffect::Send(Command::SaveDraft { .. }));
                if !self.kept.is_empty() && effects.iter().any(saves) {
                    // The rejected lines are saved together with the current draft.
                    effects.push(UiEffect::Send(Command::SaveDraft { text: self.unsent() }));
                }
            }
            LineInput::Pasted(text) => {
                self.paper.end_prompt();
                if matches!(self.asked, Some(PromptState::Open(_))) {
                    self.keep_apart(&text::clean(&text), &mut effects);
                    self.paper.write_text(
                        "Pasted lines cannot answer an approval or a question. They are in the draft now: /send sends it, /drop discards it.",
                    )?;
                } else {
                    self.send(&text, now, &mut effects);
                }
            }
            LineInput::Fence(rest) => {
                self.fences = self.fences.saturating_sub(1);
                if !rest.trim().is_empty() {
                    self.keep(&rest, &mut effects)?;
                    let rest = text::reveal_line(&rest);
                    self.paper.write_text(&format!(
                        "Typed before the approval or question appeared; saved for your next message: {rest}"
                    ))?;
                }
                if let (Some(PromptState::Written(key)), 0) = (&self.asked, self.fences) {
                    self.asked = Some(PromptState::Open(key.clone()));
                }
            }
            LineInput::Closed(rest) => {
                if !rest.trim().is_empty() {
                    self.keep(&rest, &mut effects)?;
                }
                self.closed = true;
            }
        }
        self.print_pending(now)?;
        Ok(effects)
    }

    /// Handles ctrl+c by stopping the task. A second ctrl+c within [`QUIT_MS`] quits.
    pub(crate) fn interrupt(&mut self, now: u64) -> io::Result<Vec<UiEffect>> {
        self.paper.end_prompt();
        let mut effects = Vec::new();
        if self.interrupted.is_some_and(|at| now.saturating_sub(at) <= QUIT_MS) {
            self.leave(&mut effects);
            return Ok(effects);
        }
        self.interrupted = Some(now);
        self.paper.write("")?;
        let works = self.model.is_running() || self.model.dialogs.approvals() > 0;
        let stops_review = !works && update::review::stop(&mut self.model, &mut effects);
        if works {
            effects.push(UiEffect::Send(Command::Cancel));
            self.model.set_activity(Activity::Stopping, now);
            self.paper.write_text("Stopping. Press ctrl+c again to quit.")?;
        } else if stops_review {
            self.paper.write_text("Stopping the review. Press ctrl+c again to quit.")?;
        } else {
            self.paper.write_text("Press ctrl+c again to quit.")?;
        }
        self.print_pending(now)?;
        Ok(effects)
    }

    /// Returns whether the input has ended and nothing more can happen, because no work is left or a dialog is waiting
    /// for an answer.
    pub(crate) fn is_done(&self) -> bool {
        let task = &self.model.task;
        let idle =
            !self.model.is_running() && task.waiting.is_empty() && task.sent.is_empty() && self.model.reviews.running.is_none();
        let asks = !self.model.dialogs.is_empty();
        if self.model.info.model_access.is_none() {
            // Before a session exists, the end of input leaves the dialog without an answer.
            return self.closed && asks;
        }
        self.closed && self.model.startup.waiting_prompt.is_none() && (idle || asks)
    }

    /// Quits, saving unsent text as the draft.
    pub(crate) fn leave(&mut self, effects: &mut Vec<UiEffect>) {
        let draft = self.unsent();
        if !draft.trim().is_empty() {
            effects.push(UiEffect::Send(Command::SaveDraft { text: draft }));
        }
        effects.push(UiEffect::Send(Command::Quit));
        effects.push(UiEffect::Exit(ExitReason::Quit));
    }

    /// Prints the current activity, and the last line printed by a running command.
    pub(crate) fn print_progress(&mut self, now: u64) -> io::Result<()> {
        self.print_activity(now)?;
        if let Some(last) = self.teller.last_printed() {
            let last = format!("Last line printed: {last}");
            self.paper.write_text(&last)?;
        }
        self.print_pending(now)
    }

    /// Returns whether to print progress lines, because work is running that is not waiting for the user.
    pub(crate) fn is_working(&self) -> bool {
        let works = self.model.is_running() && !self.model.is_waiting_for_user() || self.model.reviews.running.is_some();
        works && self.asked.is_none()
    }

    fn print_activity(&mut self, now: u64) -> io::Result<()> {
        let activity = status::activity(&self.model, now).map(|(_, words, _)| words);
        match activity.or_else(|| update::review::status_row(&self.model, now)) {
            Some(words) => self.paper.write_text(&format!("In progress: {words}")),
            None => Ok(()),
        }
    }

    fn line(&mut self, line: &str, asked: bool, now: u64, effects: &mut Vec<UiEffect>) -> io::Result<()> {
        let line = text::clean(line);
        self.interrupted = None;
        // A form field accepts lines that begin with any character, including `/`.
        if matches!(self.asked, Some(PromptState::Open(_))) && update::is_filling(&self.model) {
            return self.fill(&line);
        }
        if line.trim_start().starts_with('/') {
            return self.command(line.trim(), now, effects);
        }
        if let Some(PromptState::Open(_)) = self.asked {
            return self.answer(&line, now, effects);
        }
        if line.trim().is_empty() && self.model.composer.is_empty() {
            return Ok(());
        }
        if asked && self.paper.echoes() {
            self.typed.push(line.clone().into_owned());
        }
        self.send(&line, now, effects);
        Ok(())
    }

    /// Appends a line to the draft and submits the draft, as Enter does in the composer.
    fn send(&mut self, line: &str, now: u64, effects: &mut Vec<UiEffect>) {
        self.model.composer.insert(line);
        update::submit(&mut self.model, false, now, effects);
    }

    /// Saves a rejected line separately, together with the draft text that precedes it.
    fn keep_apart(&mut self, line: &str, effects: &mut Vec<UiEffect>) {
        let whole = self.model.composer.text() + line;
        self.model.composer.set("");
        self.kept.push(whole);
        effects.push(UiEffect::Send(Command::SaveDraft { text: self.unsent() }));
    }

    /// Returns the rejected lines followed by the draft.
    fn unsent(&self) -> String {
        let draft = self.model.composer.text();
        let draft = Some(draft).filter(|draft| !draft.is_empty());
        self.kept.iter().cloned().chain(draft).collect::<Vec<_>>().join("\n")
    }

    fn keep(&mut self, text: &str, effects: &mut Vec<UiEffect>) -> io::Result<()> {
        self.model.composer.insert(&text::clean(text));
        effects.push(UiEffect::Send(Command::SaveDraft { text: self.unsent() }));
        Ok(())
    }

    fn answer(&mut self, line: &str, now: u64, effects: &mut Vec<UiEffect>) -> io::Result<()> {
        self.return_from_details(line, now);
        let Some(panel) = self.model.dialogs.open() else { return Ok(()) };
        let (choice, reason) = match question::reply(panel, line) {
            TypedAnswer::Choice(choice, reason) => (choice, reason),
            TypedAnswer::Later => {
                self.asked = None;
                if update::leave_rewind(&mut self.model, now) {
                    return Ok(());
                }
                self.model.dialogs.dismiss();
                self.known = self.model.dialogs.len();
                return self.paper.write_text("Postponed. Type /answer to return to it.");
            }
            TypedAnswer::Back => {
                self.asked = None;
                self.model.dialogs.close_always(Some(now));
                return Ok(());
            }
            TypedAnswer::NoReason => {
                return self.paper.write_text("Add a reason, for example: deny because it is the wrong file");
            }
            TypedAnswer::Off(why) => return self.paper.write_text(&format!("Not available: {why}")),
            TypedAnswer::Other if line.trim().is_empty() => return self.paper.write_text("An empty line is not an answer."),
            TypedAnswer::Other => {
                let expected = question::expected_answers(panel);
                self.keep_apart(line.trim(), effects);
                self.paper.write_text(&format!("Not a valid answer; nothing was decided. Expected one of: {expected}."))?;
                return self.paper.write_text("Your line is in the draft now: /send sends it as a message, /drop discards it.");
            }
        };
        let Some(act) = panel.choices.get(choice).map(|choice| choice.act) else { return Ok(()) };
        self.asked = None;
        match act {
            ChoiceAction::Always => drop(self.model.dialogs.open_always(Some(now))),
            ChoiceAction::Look => self.model.dialogs.open_pager(Some(now)),
            ChoiceAction::ShowNew => update::show_new(&mut self.model, now, effects),
            ChoiceAction::Back => drop(self.model.dialogs.close_always(Some(now))),
            ChoiceAction::Asking(pick) => update::pick_asking(&mut self.model, pick, now, effects),
            ChoiceAction::Widen | ChoiceAction::End | ChoiceAction::Diff => self.model.dialogs.turn_always(act, Some(now)),
            act => update::answer(&mut self.model, act, reason, now, effects),
        }
        Ok(())
    }

    /// Closes the details of an approval if the line denies the approval. Other answers need the approval itself, which
    /// may have changed since it was printed.
    fn return_from_details(&mut self, line: &str, now: u64) {
        let dialogs = &self.model.dialogs;
        let reads = dialogs.open().is_some_and(|panel| panel.kind.is::<Pager>());
        let denies = |panel: &Dialog| match question::reply(panel, line) {
            TypedAnswer::Choice(at, _) => {
                let act = panel.choices.get(at).map(|choice| choice.act);
                matches!(act, Some(ChoiceAction::Deny | ChoiceAction::DenyWithWords))
            }
            _ => false,
        };
        if reads && dialogs.current().is_some_and(denies) {
            self.model.dialogs.close_always(Some(now));
        }
    }

    fn command(&mut self, line: &str, now: u64, effects: &mut Vec<UiEffect>) -> io::Result<()> {
        let (word, rest) = line.split_once(char::is_whitespace).map_or((line, ""), |(word, rest)| (word, rest.trim()));
        match (word, rest) {
            ("/status", "") => return self.status(now),
            ("/answer", "") => return self.ask_again(),
            ("/draft", "") => {
                let draft = self.unsent();
                let words = if draft.trim().is_empty() { "The draft is empty." } else { "Draft:" };
                self.paper.write_text(words)?;
                return if draft.trim().is_empty() { Ok(()) } else { self.paper.write(&draft) };
            }
            ("/send", "") if self.unsent().trim().is_empty() => return self.paper.write_text("The draft is empty."),
            ("/send", "") => {
                let all = self.unsent();
                self.kept.clear();
                self.model.composer.set(&all);
                self.send("", now, effects);
                return Ok(());
            }
            ("/drop", "") => {
                self.model.composer.set("");
                self.kept.clear();
                effects.push(UiEffect::Send(Command::SaveDraft { text: String::new() }));
                return self.paper.write_text("Draft discarded.");
            }
            ("/retry", "") if matches!(self.model.task.activity, Activity::Retrying(_)) => {
                effects.push(UiEffect::Send(Command::RetryNow));
                return Ok(());
            }
            ("/retry", "") => return self.paper.write_text("No request is waiting to be retried."),
            ("/unsaved", "") if self.model.info.saving.stopped.is_some() => {
                effects.push(UiEffect::SendToHost(HostCommand::GoOnUnsaved));
                return self.paper.write_text("Continuing unsaved: a crash loses everything that is not saved.");
            }
            ("/unsaved", "") if self.model.info.saving.lost => {
                return self.paper.write_text("Another process owns this session now; nothing can be sent from here.");
            }
            ("/unsaved", "") => return self.paper.write_text("The whole session is saved."),
            ("/rewind", number) if !number.is_empty() => return self.rewind(number, now, effects),
            ("/tree", number) if !number.is_empty() => return lists::branch(self, number, now, effects),
            ("/model" | "/models", "") => self.teller.expect_models(),
            ("/help", words) => return self.help(words),
            ("/keys" | "/keymap" | "/keybindings", words) => return self.keys(words),
            ("/setup" | "/auth" | "/login", "") => return self.setup(effects),
            ("/mcp", words) if !self.model.servers.statuses.is_empty() && update::asks_for_list(&self.model, words) => {
                return self.servers();
            }
            _ => {}
        }
        // The command runs without the draft, which is restored afterwards.
        let draft = self.model.composer.text();
        self.model.composer.set(line);
        update::submit(&mut self.model, false, now, effects);
        if self.model.composer.text() == line {
            self.model.composer.set("");
        }
        if self.model.composer.is_empty() && !draft.is_empty() {
            self.model.composer.set(&draft);
            effects.push(UiEffect::Send(Command::SaveDraft { text: draft }));
        }
        Ok(())
    }

    /// Switches to the first-run setup, unless that would interrupt a task or discard a dialog.
    fn setup(&mut self, effects: &mut Vec<UiEffect>) -> io::Result<()> {
        if self.model.is_running() || !self.model.dialogs.is_empty() {
            return self
                .paper
                .write_text("Finish the running task or answer the waiting approval or question first, then type /setup.");
        }
        effects.extend([UiEffect::Send(Command::Quit), UiEffect::Exit(ExitReason::Setup)]);
        Ok(())
    }

    fn ask_again(&mut self) -> io::Result<()> {
        if self.model.dialogs.is_empty() {
            return self.paper.write_text("No approval or question is waiting.");
        }
        self.asked = None;
        self.model.dialogs.open_current(None);
        Ok(())
    }

    fn rewind(&mut self, number: &str, now: u64, effects: &mut Vec<UiEffect>) -> io::Result<()> {
        let task = number.trim_start_matches('#').parse().ok().and_then(|number| self.teller.point(number));
        let Some(task_id) = task.cloned() else {
            return self.paper.write_text(&format!("No prompt {number} in the list; type /rewind to show it."));
        };
        update::plan_rewind(&mut self.model, RewindTarget::Before { task_id, step_id: None }, now, effects);
        Ok(())
    }

    /// Prints new entries and the current dialog, then shows the input prompt.
    fn print_pending(&mut self, now: u64) -> io::Result<()> {
        self.print_entries()?;
        if let Some((words, _)) = self.model.toast.take() {
            self.paper.write_text(&format!("Note: {words}"))?;
        }
        if let Some(help) = self.model.layers.close::<Help>() {
            self.help(&help.words)?;
        }
        if let Some(mut reading) = self.model.layers.close::<TextViewer>() {
            self.paper.write_text(&reading.title.clone())?;
            let rows: Vec<String> = reading.view(u16::MAX, usize::MAX).map(str::to_owned).collect();
            rows.iter().try_for_each(|row| self.paper.write(row))?;
        }
        // Lists are printed when they arrive, so their layers close. The user chooses by name.
        self.model.layers.close::<ModelPicker>();
        lists::print_lists(self)?;
        self.print_save_state()?;
        self.question(now)?;
        self.prompt()?;
        self.paper.flush()
    }

    /// Prints the current dialog if it has not been printed yet.
    fn question(&mut self, now: u64) -> io::Result<()> {
        let count = self.model.dialogs.len();
        let new = count > std::mem::replace(&mut self.known, count);
        if count == 0 {
            self.asked = None;
            return Ok(());
        }
        if !self.model.dialogs.is_open() {
            if !self.model.dialogs.waits_for_idle() {
                self.asked = None;
                return if new {
                    self.paper.write_text(&format!("{}; type /answer to read it.", waiting(count)))
                } else {
                    Ok(())
                };
            }
            self.model.dialogs.open_current(Some(now));
        }
        let place = (self.model.dialogs.position_number(), count);
        self.print_renewed(now)?;
        let Some(panel) = self.model.dialogs.open().filter(|panel| !is_awaited(panel)) else { return Ok(()) };
        let key = question::key(panel);
        if let Some(PromptState::Written(asked) | PromptState::Open(asked)) = &self.asked
            && *asked == key
        {
            return if new { self.paper.write_text(&format!("{} now.", waiting(count))) } else { Ok(()) };
        }
        for sentence in question::sentences(panel, place) {
            self.paper.write_text(&sentence)?;
        }
        self.paper.flush()?;
        self.asked = Some(PromptState::Written(key));
        self.wants_fence = true;
        Ok(())
    }

    /// Prints the notice that a proposal was updated, then shows the updated proposal. The full-screen UI waits for a
    /// key before it does so.
    fn print_renewed(&mut self, now: u64) -> io::Result<()> {
        let renewed =
            self.model.dialogs.open().filter(|panel| panel.choices.iter().any(|choice| choice.act == ChoiceAction::ShowNew));
        if let Some(Body::Words { text }) = renewed.map(|panel| &panel.body) {
            for sentence in text.clone().lines() {
                self.paper.write_text(sentence)?;
            }
            self.model.dialogs.show_new(Some(now));
        }
        Ok(())
    }

    fn prompt(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        match (&self.asked, self.model.dialogs.open()) {
            (Some(PromptState::Open(_)), Some(panel)) => {
                let prompt = question::prompt(panel);
                self.paper.ask(&prompt)
            }
            (Some(PromptState::Written(_)), _) => Ok(()),
            _ if self.model.info.model_access.is_none() || self.model.is_running() || !self.model.task.sent.is_empty() => Ok(()),
            _ if !self.model.composer.is_empty() => {
                let draft = text::reveal_line(&self.model.composer.text());
                self.paper.ask(&format!("You (draft: {}):", text::truncate(&draft, 40)))
            }
            _ if self.is_piped => Ok(()),
            _ => self.paper.ask("You:"),
        }
    }
}

fn waiting(count: usize) -> String {
    if count == 1 {
        "1 approval or question is waiting".to_owned()
    } else {
        format!("{count} approvals or questions are waiting")
    }
}
