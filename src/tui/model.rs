//! State of the screen, independent of its drawing.

use super::approval::DialogStack;
use super::attachments::Attachments;
use super::clipboard::Clip;
use super::composer::Composer;
use super::glyphs::{ASCII, Glyphs, UNICODE};
use super::interface::{Background, ExitReason, Header, LockAnswer, ModelAccess, Options, ThemeChoice, TrustAnswer};
use super::keymap::{Focus, Keymap};
use super::menu::Menu;
use super::metrics::SMALLEST;
use super::notifications::Notifications;
use super::overlays::Overlays;
use super::picker::Picker;
use super::pointer::Pointer;
use super::rewind::Rewind;
use super::save_state::SaveState;
use super::servers::Servers;
use super::startup::Startup;
use super::task::UserCommand;
pub use super::task::{Activity, RetractState, RetractedMessage, Retry, Task};
use super::terminal::{TerminalCapabilities, TerminalMode};
use super::theme::{self, Theme};
use super::transcript::{RenderContext, Transcript};
use super::typeahead_guard;
use super::worktree::Worktree;
use crate::protocol::{
    ApprovalId, Artifact, Budget, BudgetScope, BudgetUnit, Command, ModelFacts, PolicyLayer, Query, RunningCommand, SessionId,
    ToolUses, Usage,
};
use ratatui::layout::Size;

/// Part of a resumed session that is not shown yet.
#[derive(Debug, Default)]
pub struct HistoryCursor {
    /// Journal position where that part ends; `None` if everything is shown.
    pub before: Option<i64>,
    /// Whether the part was requested and has not arrived.
    pub is_asked: bool,
}

/// Figures of the session for the status row.
#[derive(Debug, Default)]
pub struct SessionTotals {
    pub context_tokens: u64,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    /// Whether a provider did not report part of the usage.
    pub is_estimated: bool,
    pub budgets: Vec<Budget>,
    /// Whether the user asked to see the budgets.
    pub budgets_asked: bool,
}

impl SessionTotals {
    pub fn spend(&mut self, cost_usd: Option<f64>) {
        if let Some(cost) = cost_usd {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
    }

    /// Returns the remaining budget of the session and the total budget, in US dollars.
    pub fn money_left(&self) -> Option<(f64, f64)> {
        let of_session = |budget: &&Budget| budget.scope == BudgetScope::Session && budget.unit == BudgetUnit::CostUsd;
        let budget = self.budgets.iter().find(of_session)?;
        let used = self.cost_usd.unwrap_or(0.0).max(budget.used);
        Some(((budget.limit - used).max(0.0), budget.limit))
    }
}

/// Policy in effect.
#[derive(Debug, Default)]
pub struct Policy {
    pub layers: Vec<PolicyLayer>,
    /// Reason why a changed file is not applied, until it is fixed.
    pub broken: Option<String>,
    /// Time of the last event, and when it arrived.
    pub clock: Option<(jiff::Timestamp, u64)>,
    /// Whether the expiry was reported.
    pub over: bool,
}

/// Time that a notice stays above the composer, in milliseconds.
pub const TOAST_MS: u64 = 6000;
/// Time before the expiry at which it is first shown, in milliseconds.
const ENDS_NEAR_MS: i64 = 60 * 60 * 1000;
/// Time before the expiry at which it becomes a warning, in milliseconds.
const ENDS_SOON_MS: i64 = 10 * 60 * 1000;

impl Policy {
    /// Returns the expiry, if it is near or past.
    pub fn end(&self, now: u64) -> Option<(jiff::Timestamp, ExpiryStage)> {
        let (end, left, came) = self.left()?;
        let passed = i64::try_from(now.saturating_sub(came)).unwrap_or(i64::MAX);
        let left = left.saturating_sub(passed);
        let all = [(0, ExpiryStage::Over), (ENDS_SOON_MS, ExpiryStage::Soon), (ENDS_NEAR_MS, ExpiryStage::Near)];
        all.into_iter().find(|(most, _)| left <= *most).map(|(_, ending)| (end, ending))
    }

    /// Returns the expiry, the milliseconds left at the last event, and when that arrived.
    fn left(&self) -> Option<(jiff::Timestamp, i64, u64)> {
        let (time, came) = self.clock?;
        let end = self.layers.iter().filter_map(|layer| layer.expires_at).min()?;
        Some((end, end.as_millisecond().saturating_sub(time.as_millisecond()), came))
    }

    /// Returns when the stage of the expiry changes next.
    pub fn next_change(&self, now: u64) -> Option<u64> {
        let (_, left, came) = self.left()?;
        let at = |before: i64| Some(came.saturating_add(u64::try_from(left.saturating_sub(before)).ok()?));
        [ENDS_NEAR_MS, ENDS_SOON_MS, 0].into_iter().filter_map(at).find(|at| *at > now)
    }
}

/// Stage of a policy's expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpiryStage {
    Near,
    Soon,
    Over,
}

/// Text to be edited in an editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditFile {
    pub what: Editable,
    /// Name: `src/main.rs`.
    pub name: String,
    pub text: String,
}

/// Origin of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Editable {
    Draft,
    /// A file of an approval, by its index.
    Proposed {
        approval_id: ApprovalId,
        file: usize,
    },
}

/// Action outside the model.
#[derive(Debug)]
pub enum Effect {
    Send(Command),
    Ask(Query),
    Trust(super::interface::TrustQuestion, TrustAnswer),
    Held(super::interface::LockQuestion, LockAnswer),
    /// Copies to all available clipboards.
    Copy(Clip),
    /// Shows something in the user's editor, which replaces the screen.
    Show(super::interface::EditorTarget),
    /// Turns mouse reports of the terminal on or off.
    Mouse(bool),
    /// Turns on a terminal feature.
    Push(TerminalMode),
    /// Turns synchronized frames on or off.
    Synchronise(bool),
    /// Writes bytes to the terminal that are not cells.
    Write(Vec<u8>),
    Suspend,
    /// Opens the user's editor; answered by `Msg::Edited`.
    EditFile(EditFile),
    Exit(ExitReason),
}

pub struct Model {
    pub options: Options,
    pub theme: Theme,
    /// Background colour of the terminal, once reported.
    pub background: Option<(u8, u8, u8)>,
    /// Other reported capabilities.
    pub terminal: TerminalCapabilities,
    pub attention: Notifications,
    pub glyphs: Glyphs,
    pub size: Size,
    pub header: Header,
    /// Access to the model, once everything is loaded.
    pub model_access: Option<ModelAccess>,
    pub composer: Composer,
    pub transcript: Transcript,
    pub dialogs: DialogStack,
    pub task: Task,
    pub tally: SessionTotals,
    /// Older parts of the session that are not shown yet.
    pub older: HistoryCursor,
    pub policy: Policy,
    /// Background sessions and commands.
    pub commands: Vec<RunningCommand>,
    pub servers: Servers,
    /// Tool usage so far.
    pub tool_uses: ToolUses,
    /// The session, once it has content that can be resumed.
    pub session: Option<SessionId>,
    /// The last response, for the main screen.
    pub last_answer: Option<String>,
    /// Notice above the composer, and when it disappears.
    pub toast: Option<(String, u64)>,
    /// Key bindings.
    pub keymap: Keymap,
    /// Invalid entries of the user's key file.
    pub key_problems: Vec<String>,
    /// Artifacts of the session, as listed last.
    pub artifacts: Vec<Artifact>,
    /// Completion menu.
    pub menu: Menu,
    /// Images that were attached to a draft.
    pub attached: Attachments,
    /// Rewind; its list of prompts has the keyboard while open.
    pub rewind: Rewind,
    pub saving: SaveState,
    pub worktree: Worktree,
    /// Whether it runs in line mode, without the keys of the screen.
    pub in_lines: bool,
    /// The user's own command that is running.
    pub user_command: Option<UserCommand>,
    /// Limits, prices and capabilities of the model.
    pub facts: Option<ModelFacts>,
    pub pointer: Pointer,
    pub keys: Keys,
    /// File to open in an editor.
    pub to_edit: Option<EditFile>,
    /// Time at which the draft is saved, in milliseconds.
    pub save_draft_at: Option<u64>,
    /// Whether the screen must be drawn again.
    pub dirty: bool,
    /// Overlays over the transcript that are open.
    pub overlays: Overlays,
    /// State of the start.
    pub startup: Startup,
}

/// State of the keyboard.
#[derive(Debug, Default)]
pub struct Keys {
    /// Time of the last key or paste that did not go to a dialog.
    pub last_key: Option<u64>,
    /// Time of the last of them that was text.
    pub last_text: Option<u64>,
    /// Time of the last answer to an approval on this screen.
    pub answered: Option<u64>,
    /// Answer key pressed again in an empty draft, and its time.
    pub echo: Option<(char, u64)>,
    /// Time at which a pending prompt lost the focus.
    pub left_prompt: Option<u64>,
    /// Whether the last key was Escape on an empty draft.
    pub escaped: bool,
    /// Time of the first of two Escapes that open the rewind list.
    pub rested_escape: Option<u64>,
    /// The key that asked to quit, its time, and whether quitting would have stopped anything.
    pub quit_asked: Option<(&'static str, u64, bool)>,
    /// Time at which the `r` in the draft becomes a retry, unless more is typed.
    pub retry_at: Option<u64>,
    /// The same for `r` and `c` while the session cannot be saved.
    pub saving_at: Option<(char, u64)>,
    /// Time at which the missing API key was reported.
    pub no_key_said: Option<u64>,
    /// Whether the terminal tells Enter with shift or ctrl from Enter.
    pub kitty: bool,
}

impl Keys {
    /// Records an answer: the last key was not text, and the next dialog takes the focus at once.
    pub fn answer_given(&mut self, now: u64) {
        self.answered = Some(now);
        self.last_text = None;
    }
}

impl Model {
    pub fn new(options: Options, prompt: Option<String>, size: Size) -> Self {
        let (keymap, key_problems) = match &options.keys.text {
            None => Keymap::new(None),
            Some(Ok(text)) => Keymap::new(Some(text)),
            Some(Err(why)) => (Keymap::new(None).0, vec![format!("cannot be read: {why}; using the built-in keys")]),
        };
        Self {
            keymap,
            key_problems,
            theme: theme(&options, None),
            background: None,
            terminal: TerminalCapabilities::new(options.emulator.clone()),
            attention: Notifications::default(),
            glyphs: if options.ascii { ASCII } else { UNICODE },
            size,
            header: Header::default(),
            model_access: None,
            composer: Composer::new(options.history.clone(), options.kept_as.clone(), options.vim),
            transcript: Transcript::default(),
            dialogs: DialogStack::paced(options.pace),
            task: Task::default(),
            tally: SessionTotals::default(),
            older: HistoryCursor::default(),
            policy: Policy::default(),
            commands: Vec::new(),
            servers: Servers::default(),
            tool_uses: ToolUses::default(),
            session: None,
            last_answer: None,
            toast: None,
            artifacts: Vec::new(),
            menu: Menu::default(),
            attached: Attachments::default(),
            rewind: Rewind::default(),
            saving: SaveState::default(),
            worktree: Worktree::default(),
            in_lines: false,
            user_command: None,
            facts: None,
            pointer: Pointer::new(options.mouse),
            keys: Keys::default(),
            to_edit: None,
            save_draft_at: None,
            overlays: Overlays::default(),
            startup: Startup { waiting_prompt: prompt, ..Startup::default() },
            dirty: true,
            options,
        }
    }

    /// Sets the theme by the user's choice and the terminal background.
    pub fn choose_theme(&mut self) {
        self.retheme();
        self.transcript.forget_layout();
        self.dirty = true;
    }

    /// Sets the theme and keeps the layout.
    pub fn retheme(&mut self) {
        self.theme = theme(&self.options, self.background);
    }

    /// Returns the draft, as long as no session saves it.
    pub fn unkept(&self) -> String {
        if self.model_access.is_none() { self.composer.text() } else { String::new() }
    }

    /// Returns the token limit of a request: the model's context window, reduced by the policy.
    pub fn context_limit(&self) -> Option<u64> {
        let layers = self.policy.layers.iter().filter_map(|layer| layer.max_input_tokens);
        Some(layers.fold(self.header.context_tokens?, u64::min)).filter(|limit| *limit > 0)
    }

    pub fn is_running(&self) -> bool {
        self.task.activity != Activity::Idle
    }

    /// Returns whether the task waits for the user, so that no time is counted.
    pub fn waits_for_person(&self) -> bool {
        match self.task.activity {
            Activity::Thinking | Activity::Answering | Activity::Calling { .. } => self.dialogs.approvals() > 0,
            Activity::Idle
            | Activity::Running { .. }
            | Activity::Retrying(_)
            | Activity::Compacting { .. }
            | Activity::Stopping => false,
        }
    }

    /// Restarts the activity timer, because the time of a dialog is not that of the model.
    pub fn restart_activity_timer(&mut self, now: u64) {
        match self.task.activity {
            Activity::Thinking | Activity::Answering | Activity::Calling { .. } => self.set_activity(Activity::Thinking, now),
            Activity::Idle
            | Activity::Running { .. }
            | Activity::Retrying(_)
            | Activity::Compacting { .. }
            | Activity::Stopping => {}
        }
    }

    pub fn set_activity(&mut self, activity: Activity, now: u64) {
        self.task.activity = activity;
        self.task.since = now;
    }

    /// Shows a notice for some seconds.
    pub fn show_toast(&mut self, words: impl Into<String>, now: u64) {
        let words = words.into();
        let named = self.keymap.sentence(Focus::Composer, &words).into_owned();
        self.toast = Some((named, now + TOAST_MS));
        self.dirty = true;
    }

    /// Returns the open list that has the keyboard.
    pub fn list_mut(&mut self) -> Option<&mut Picker> {
        let models = self.overlays.picker.as_mut().map(|picker| &mut picker.picker);
        let sessions = self.overlays.sessions.as_mut().map(|sessions| &mut sessions.picker);
        let tree = self.overlays.tree.as_mut().map(|tree| &mut tree.picker);
        let others = sessions.or(self.overlays.palette.as_mut()).or(tree).or(self.servers.list.as_mut());
        models.or(others).or_else(|| self.rewind.list.as_mut().map(|list| &mut list.picker))
    }

    pub fn has_list(&self) -> bool {
        self.overlays.picker.is_some()
            || self.overlays.sessions.is_some()
            || self.overlays.palette.is_some()
            || self.overlays.tree.is_some()
            || self.servers.list.is_some()
            || self.rewind.list.is_some()
    }

    pub fn is_too_small(&self) -> bool {
        self.size.width < SMALLEST.0 || self.size.height < SMALLEST.1
    }

    pub fn may_take_focus(&self, now: u64) -> bool {
        let is_idle = || typeahead_guard::may_take_focus(self.composer.is_empty(), self.keys.last_key, now);
        self.has_room_for_question() && (self.follows_answer() || is_idle())
    }

    /// Returns whether the last key was an answer, so that the next dialog takes the focus at once.
    fn follows_answer(&self) -> bool {
        self.keys.answered.is_some_and(|at| self.keys.last_key.is_none_or(|key| key <= at))
    }

    /// Returns whether nothing else has the keyboard and the draft is empty, so that a dialog may open.
    fn has_room_for_question(&self) -> bool {
        let reads = self.overlays.help.is_some()
            || self.overlays.search.is_some()
            || self.overlays.browse.is_some()
            || self.overlays.changes.is_some()
            || self.has_list();
        !self.is_too_small() && !reads && self.composer.is_empty()
    }

    /// Returns the transcript and the context for drawing its rows.
    pub fn transcript_look(&mut self, now: u64) -> (&mut Transcript, RenderContext<'_>) {
        let whole_rows = self.options.reduce_motion;
        let unfolds = self.keymap.called(Focus::Composer, "ctrl+o");
        let look = RenderContext { unfolds, whole_rows, ..self.transcript.look(self.size.width, &self.theme, &self.glyphs, now) };
        (&mut self.transcript, look)
    }

    /// Returns the next time at which time alone changes something, or `None` if nothing is running. Computed from the
    /// time of the last frame, it is never missed.
    pub fn deadline(&self, now: u64) -> Option<u64> {
        let guard = self.dialogs.deadline(now);
        let said = self.toast.as_ref().map(|(_, until)| *until);
        let elapsed = (self.is_running() && !self.waits_for_person()).then(|| self.next_second(now)).flatten();
        let focus = (self.dialogs.waits_for_idle() && self.has_room_for_question())
            .then(|| self.keys.last_key.map_or(now, |at| at + typeahead_guard::IDLE_MS));
        let saving = self.keys.saving_at.map(|(_, at)| at);
        let edge = self.pointer.deadline();
        let policy = self.policy.next_change(now);
        let all = [guard, said, elapsed, focus, self.save_draft_at, self.keys.retry_at, saving, edge, policy];
        all.into_iter().flatten().min()
    }

    /// Returns when a shown number of seconds changes.
    fn next_second(&self, now: u64) -> Option<u64> {
        match &self.task.activity {
            Activity::Retrying(retry) => retry.next_second(now),
            _ => Some(now + 1000 - now.saturating_sub(self.task.since) % 1000),
        }
    }
}

/// Returns the chosen theme, or the one for this background.
fn theme(options: &Options, ground: Option<(u8, u8, u8)>) -> Theme {
    let named = match &options.theme {
        ThemeChoice::Auto => None,
        ThemeChoice::Named(name) => theme::find(options.themes.as_deref(), name).ok(),
    };
    let ground = ground.or(match options.ground {
        Background::Dark => None,
        Background::Light => Some((255, 255, 255)),
    });
    named.map_or_else(|| Theme::choose(ground, options.colours), |theme| theme.with_colours(options.colours))
}
