//! State of the screen, independent of its drawing.

use super::agents::AgentOverview;
use super::approval::DialogStack;
use super::browse::Browse;
use super::clipboard::Clip;
use super::composer::Composer;
use super::draft_state::DraftState;
pub(crate) use super::draft_state::{Editable, EditorText};
use super::glyphs::{ASCII, UNICODE};
use super::interface::{Background, ExitReason, LockAnswer, ThemeChoice, TrustAnswer, UiOptions};
use super::keymap::{Focus, Keymap};
use super::layers::{Canvas, LayerContext, LayerStack};
use super::listed_tasks::ListedTasks;
use super::memory_proposals::MemoryProposals;
use super::menu::Menu;
use super::metrics::SMALLEST;
use super::notifications::Notifications;
use super::picker;
use super::pointer::Pointer;
use super::reviews::Reviews;
use super::screen::Screen;
use super::servers::ServerOverview;
use super::session_info::SessionInfo;
use super::startup::Startup;
pub(crate) use super::task::{Activity, RetractState, RetractedMessage, Retry, TaskView};
use super::terminal::{TerminalCapabilities, TerminalMode};
use super::theme::{self, Theme};
use super::transcript::{RenderContext, Transcript};
use super::typeahead_guard;
use crate::protocol::{Command, HostCommand, Query};
use ratatui::layout::Size;

/// Time in milliseconds for which a notice is shown above the composer.
pub(crate) const TOAST_MS: u64 = 6000;

/// Action for the owner of the model.
#[derive(Debug)]
pub(crate) enum UiEffect {
    Send(Command),
    SendToHost(HostCommand),
    Ask(Query),
    Trust(super::interface::TrustQuestion, TrustAnswer),
    Held(super::interface::LockQuestion, LockAnswer),
    /// Copies to all available clipboards.
    Copy(Clip),
    /// Opens content in the user's editor, which replaces the screen.
    Show(super::interface::EditorTarget),
    /// Turns mouse reporting in the terminal on or off.
    Mouse(bool),
    /// Turns on a terminal feature.
    Push(TerminalMode),
    /// Turns synchronized frames on or off.
    Synchronise(bool),
    /// Writes bytes to the terminal that are not cells.
    Write(Vec<u8>),
    Suspend,
    /// Runs a command about a task in a copy of the workspace, which replaces the screen.
    RunTask(String, super::interface::TaskProgram),
    /// Opens the user's editor; answered by `Msg::Edited`.
    EditFile(EditorText),
    Exit(ExitReason),
}

pub(crate) struct UiModel {
    pub options: UiOptions,
    pub composer: Composer,
    /// Work on the draft besides typing.
    pub draft: DraftState,
    pub transcript: Transcript,
    pub dialogs: DialogStack,
    pub task: TaskView,
    pub servers: ServerOverview,
    pub tasks: ListedTasks,
    pub memory: MemoryProposals,
    pub agents: AgentOverview,
    /// Notice above the composer, and the time at which it disappears.
    pub toast: Option<(String, u64)>,
    /// Key bindings.
    pub keymap: Keymap,
    /// Completion menu.
    pub menu: Menu,
    pub reviews: Reviews,
    pub keys: KeyboardState,
    /// Lists and viewers over the conversation.
    pub layers: LayerStack,
    /// Browse mode, in which the transcript has keyboard focus.
    pub browse: Option<Browse>,
    /// Startup state.
    pub startup: Startup,
    /// Facts about the session.
    pub info: SessionInfo,
    pub screen: Screen,
}

/// State of the keyboard.
#[derive(Debug, Default)]
pub(crate) struct KeyboardState {
    /// Invalid entries of the user's key file.
    pub problems: Vec<String>,
    /// Time of the last key or paste outside of dialogs.
    pub last_key: Option<u64>,
    /// Time of the last text key or paste outside of dialogs.
    pub last_text: Option<u64>,
    /// Time of the last answer to an approval on this screen.
    pub answered: Option<u64>,
    /// Time of the last key that sent or ran the draft.
    pub sent: Option<u64>,
    /// Answer key that was pressed again in an empty draft, and the time of the press.
    pub echo: Option<(char, u64)>,
    /// Time at which a pending prompt lost the focus.
    pub left_prompt: Option<u64>,
    /// Whether the last key was Escape on an empty draft.
    pub escaped: bool,
    /// Time of the first of two Escapes that together open the rewind list.
    pub rested_escape: Option<u64>,
    /// Key that requested to quit, its time, and whether quitting would have stopped running work.
    pub quit_pending: Option<(&'static str, u64, bool)>,
    /// Time at which an `r` in the draft starts a retry, unless more is typed.
    pub retry_at: Option<u64>,
    /// Same as `retry_at`, for `r` and `c` while the session cannot be saved.
    pub saving_at: Option<(char, u64)>,
    /// Time at which the missing API key was reported.
    pub no_key_shown: Option<u64>,
    /// Whether the terminal distinguishes shift+enter and ctrl+enter from Enter.
    pub kitty: bool,
}

impl KeyboardState {
    /// Records an answer, after which the last key is not text and the next dialog gets the focus immediately.
    pub(crate) fn on_answer(&mut self, now: u64) {
        self.answered = Some(now);
        self.last_text = None;
    }
}

impl UiModel {
    pub(crate) fn new(options: UiOptions, prompt: Option<String>, size: Size) -> Self {
        let (keymap, key_problems) = match &options.keys.text {
            None => Keymap::new(None),
            Some(Ok(text)) => Keymap::new(Some(text)),
            Some(Err(why)) => (Keymap::new(None).0, vec![format!("cannot be read: {why}; using the built-in keys")]),
        };
        Self {
            keymap,
            composer: Composer::new(options.history.clone(), options.vim),
            draft: DraftState::default(),
            transcript: Transcript::default(),
            dialogs: DialogStack::with_timing(options.pace),
            task: TaskView::default(),
            servers: ServerOverview::default(),
            tasks: ListedTasks::default(),
            memory: MemoryProposals::default(),
            agents: AgentOverview::default(),
            toast: None,
            menu: Menu::default(),
            reviews: Reviews::default(),
            keys: KeyboardState { problems: key_problems, ..KeyboardState::default() },
            info: SessionInfo::default(),
            screen: Screen {
                theme: theme(&options, None),
                background: None,
                terminal: TerminalCapabilities::new(options.terminal.emulator.clone()),
                attention: Notifications::default(),
                glyphs: if options.terminal.ascii { ASCII } else { UNICODE },
                size,
                pointer: Pointer::new(options.mouse),
                dirty: true,
                in_lines: false,
            },
            layers: LayerStack::default(),
            browse: None,
            startup: Startup { waiting_prompt: prompt, ..Startup::default() },
            options,
        }
    }

    /// Sets the theme for the user's choice and the terminal background.
    pub(crate) fn choose_theme(&mut self) {
        self.retheme();
        self.transcript.forget_layout();
        self.screen.dirty = true;
    }

    /// Sets the theme and preserves the layout.
    pub(crate) fn retheme(&mut self) {
        self.screen.theme = theme(&self.options, self.screen.background);
    }

    /// Returns the draft, unless a session saves it.
    pub(crate) fn unkept(&self) -> String {
        if self.info.model_access.is_none() { self.composer.text() } else { String::new() }
    }

    /// Returns the token limit of a request: the model's context window, or a lower limit of the
    /// policy.
    pub(crate) fn context_limit(&self) -> Option<u64> {
        let layers = self.info.policy.layers.iter().filter_map(|layer| layer.max_input_tokens);
        Some(layers.fold(self.info.header.context_tokens?, u64::min)).filter(|limit| *limit > 0)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.task.activity != Activity::Idle
    }

    /// Returns whether the task is waiting for the user, so that its timer is paused.
    pub(crate) fn is_waiting_for_user(&self) -> bool {
        match self.task.activity {
            Activity::Thinking | Activity::Answering | Activity::Calling { .. } => self.dialogs.approvals() > 0,
            Activity::Idle
            | Activity::Running { .. }
            | Activity::Retrying(_)
            | Activity::Compacting { .. }
            | Activity::Stopping => false,
        }
    }

    /// Restarts the activity timer, so that it excludes the time of a dialog.
    pub(crate) fn restart_activity_timer(&mut self, now: u64) {
        match self.task.activity {
            Activity::Thinking | Activity::Answering | Activity::Calling { .. } => self.set_activity(Activity::Thinking, now),
            Activity::Idle
            | Activity::Running { .. }
            | Activity::Retrying(_)
            | Activity::Compacting { .. }
            | Activity::Stopping => {}
        }
    }

    pub(crate) fn set_activity(&mut self, activity: Activity, now: u64) {
        self.task.activity = activity;
        self.task.since = now;
    }

    /// Shows a notice for a few seconds.
    pub(crate) fn show_toast(&mut self, words: impl Into<String>, now: u64) {
        let words = words.into();
        let named = self.keymap.translate_keys(Focus::Composer, &words).into_owned();
        self.toast = Some((named, now + TOAST_MS));
        self.screen.dirty = true;
    }

    /// Returns whether a list or viewer replaces the composer.
    pub(crate) fn has_layer(&self) -> bool {
        self.layers.replace_composer()
    }

    /// Returns the facts about the screen that layers need.
    pub(crate) fn surroundings(&self) -> LayerContext {
        LayerContext { is_wide: self.screen.size.width >= picker::WIDE, has_questions: !self.dialogs.is_empty() }
    }

    /// Returns the layers, and the context for drawing them.
    pub(crate) fn layers_and_canvas(&mut self) -> (&mut LayerStack, Canvas<'_>) {
        let canvas =
            Canvas { theme: &self.screen.theme, glyphs: &self.screen.glyphs, keymap: &self.keymap, key_file: &self.options.keys };
        (&mut self.layers, canvas)
    }

    pub(crate) fn is_too_small(&self) -> bool {
        self.screen.size.width < SMALLEST.0 || self.screen.size.height < SMALLEST.1
    }

    pub(crate) fn may_take_focus(&self, now: u64) -> bool {
        let is_idle = || typeahead_guard::may_take_focus(self.composer.is_empty(), self.keys.last_key, now);
        self.has_room_for_question() && (self.has_finished_typing() || is_idle())
    }

    /// Returns whether the last key was an answer or sent the draft, so that the next dialog gets the focus
    /// immediately.
    fn has_finished_typing(&self) -> bool {
        let last = self.keys.answered.max(self.keys.sent);
        last.is_some_and(|at| self.keys.last_key.is_none_or(|key| key <= at))
    }

    /// Returns whether the draft is empty and no panel has keyboard focus, so that a dialog may open.
    pub(crate) fn has_room_for_question(&self) -> bool {
        let reads = self.layers.covers_questions() || self.draft.search.is_some() || self.browse.is_some() || self.has_layer();
        !self.is_too_small() && !reads && self.composer.is_empty()
    }

    /// Returns the transcript and the context for drawing its rows.
    pub(crate) fn transcript_look(&mut self, now: u64) -> (&mut Transcript, RenderContext<'_>) {
        let whole_rows = self.options.reduce_motion;
        let unfolds = self.keymap.current_name(Focus::Composer, "ctrl+o");
        let look = RenderContext {
            unfolds,
            whole_rows,
            ..self.transcript.render_context(self.screen.size.width, &self.screen.theme, &self.screen.glyphs, now)
        };
        (&mut self.transcript, look)
    }

    /// Returns the next time at which a timer changes the screen; `None` if no timer is running. Computed from the time
    /// of the last frame, so that no timer is missed.
    pub(crate) fn deadline(&self, now: u64) -> Option<u64> {
        let guard = self.dialogs.deadline(now);
        let said = self.toast.as_ref().map(|(_, until)| *until);
        let elapsed = (self.is_running() && !self.is_waiting_for_user()).then(|| self.next_second(now)).flatten();
        let focus = (self.dialogs.waits_for_idle() && self.has_room_for_question()).then(|| {
            match self.keys.last_key.filter(|_| !self.has_finished_typing()) {
                Some(at) => at + typeahead_guard::IDLE_MS,
                None => now,
            }
        });
        let saving = self.keys.saving_at.map(|(_, at)| at);
        let edge = self.screen.pointer.deadline();
        let policy = self.info.policy.next_change(now);
        let review = self.reviews.running.as_ref().map(|running| now + 1000 - now.saturating_sub(running.since) % 1000);
        let all = [guard, said, elapsed, focus, self.draft.save_at, self.keys.retry_at, saving, edge, policy, review];
        all.into_iter().flatten().min()
    }

    /// Returns the time at which a visible number of seconds changes.
    fn next_second(&self, now: u64) -> Option<u64> {
        match &self.task.activity {
            Activity::Retrying(retry) => retry.next_second(now),
            _ => Some(now + 1000 - now.saturating_sub(self.task.since) % 1000),
        }
    }
}

/// Returns the chosen theme, or the default theme for this background.
fn theme(options: &UiOptions, ground: Option<(u8, u8, u8)>) -> Theme {
    let named = match &options.theme {
        ThemeChoice::Auto => None,
        ThemeChoice::Named(name) => theme::find(options.themes.as_deref(), name).ok(),
    };
    let ground = ground.or(match options.terminal.ground {
        Background::Dark => None,
        Background::Light => Some((255, 255, 255)),
    });
    named.map_or_else(|| Theme::choose(ground, options.terminal.colours), |theme| theme.with_colours(options.terminal.colours))
}
