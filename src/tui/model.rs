//! State of the UI, independent of how it is drawn.

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

/// Time, in milliseconds, for which a notice is shown above the composer.
pub(crate) const TOAST_MS: u64 = 6000;

/// Action for the owner of the model to carry out.
#[derive(Debug)]
pub(crate) enum UiEffect {
    Send(Command),
    SendToHost(HostCommand),
    Ask(Query),
    Trust(super::interface::TrustQuestion, TrustAnswer),
    Held(super::interface::LockQuestion, LockAnswer),
    /// Copies text to all available clipboards.
    Copy(Clip),
    /// Opens content in the user's editor, which takes over the screen until it exits.
    Show(super::interface::EditorTarget),
    /// Turns the terminal's mouse reporting on or off.
    Mouse(bool),
    /// Turns on an optional terminal mode.
    Push(TerminalMode),
    /// Turns synchronised updates on or off.
    Synchronise(bool),
    /// Writes bytes that do not draw cells to the terminal.
    Write(Vec<u8>),
    Suspend,
    /// Runs an external command for the task with this ID. The command takes over the screen until it exits.
    RunTask(String, super::interface::TaskProgram),
    /// Opens text in the user's editor. The result is delivered as `Msg::Edited`.
    EditFile(EditorText),
    Exit(ExitReason),
}

pub(crate) struct UiModel {
    pub options: UiOptions,
    pub composer: Composer,
    /// State of the draft apart from its text.
    pub draft: DraftState,
    pub transcript: Transcript,
    pub dialogs: DialogStack,
    pub task: TaskView,
    pub servers: ServerOverview,
    pub tasks: ListedTasks,
    pub memory: MemoryProposals,
    pub agents: AgentOverview,
    /// Notice shown above the composer, and the time in milliseconds at which it disappears.
    pub toast: Option<(String, u64)>,
    /// Key bindings in effect.
    pub keymap: Keymap,
    /// Completion menu of the composer.
    pub menu: Menu,
    pub reviews: Reviews,
    pub keys: KeyboardState,
    /// Lists and viewers that are open over the conversation.
    pub layers: LayerStack,
    /// State of browse mode, in which the transcript has keyboard focus, or `None` if it is off.
    pub browse: Option<Browse>,
    /// Requests and input that are waiting for the session.
    pub startup: Startup,
    /// Facts about the session.
    pub info: SessionInfo,
    pub screen: Screen,
}

/// State of the keyboard input. All times are in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct KeyboardState {
    /// Problems found in the user's key file.
    pub problems: Vec<String>,
    /// Time of the last key press or paste outside of dialogs.
    pub last_key: Option<u64>,
    /// Time of the last text key or paste outside of dialogs.
    pub last_text: Option<u64>,
    /// Time at which a dialog was last answered.
    pub answered: Option<u64>,
    /// Time of the last key press that sent or ran the draft.
    pub sent: Option<u64>,
    /// Answer key that was pressed a second time in an empty draft, and the time of that press.
    pub echo: Option<(char, u64)>,
    /// Time at which a pending approval prompt lost keyboard focus.
    pub left_prompt: Option<u64>,
    /// Whether the last key press was Escape in an empty draft.
    pub escaped: bool,
    /// Time of the first of the two Escape presses that open the list of rewind points.
    pub rested_escape: Option<u64>,
    /// Key that was pressed to quit, the time of the press, and whether quitting would have stopped any work.
    pub quit_pending: Option<(&'static str, u64, bool)>,
    /// Time at which an `r` in the draft triggers a retry, unless the user types more text.
    pub retry_at: Option<u64>,
    /// Key in the draft (`r` or `c`) while the session cannot be saved, and the time at which it takes effect.
    pub saving_at: Option<(char, u64)>,
    /// Time at which the user was last told that the API key is missing.
    pub no_key_shown: Option<u64>,
    /// Whether the terminal reports shift+enter and ctrl+enter as distinct from Enter.
    pub kitty: bool,
}

impl KeyboardState {
    /// Records that a dialog was answered. The answer key then does not count as typed text, so the next dialog can
    /// receive keyboard focus immediately.
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

    /// Applies the theme determined by the user's choice or the terminal's background, and redraws the transcript.
    pub(crate) fn choose_theme(&mut self) {
        self.retheme();
        self.transcript.forget_layout();
        self.screen.dirty = true;
    }

    /// Applies the chosen theme without laying out the transcript again.
    pub(crate) fn retheme(&mut self) {
        self.screen.theme = theme(&self.options, self.screen.background);
    }

    /// Returns the draft if there is no session that could save it, or else an empty string.
    pub(crate) fn unkept(&self) -> String {
        if self.info.model_access.is_none() { self.composer.text() } else { String::new() }
    }

    /// Returns the maximum number of tokens per request, which is the size of the model's context window or a lower
    /// limit set by the policy.
    pub(crate) fn context_limit(&self) -> Option<u64> {
        let layers = self.info.policy.layers.iter().filter_map(|layer| layer.max_input_tokens);
        Some(layers.fold(self.info.header.context_tokens?, u64::min)).filter(|limit| *limit > 0)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.task.activity != Activity::Idle
    }

    /// Returns whether the task is waiting for the user. While it is, its timer is paused.
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

    /// Restarts the activity's timer after a dialog, so that it does not include the time spent on the dialog.
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

    /// Shows a notice above the composer for a duration of [`TOAST_MS`].
    pub(crate) fn show_toast(&mut self, words: impl Into<String>, now: u64) {
        let words = words.into();
        let named = self.keymap.translate_keys(Focus::Composer, &words).into_owned();
        self.toast = Some((named, now + TOAST_MS));
        self.screen.dirty = true;
    }

    /// Returns whether a list or viewer is shown in place of the composer.
    pub(crate) fn has_layer(&self) -> bool {
        self.layers.replace_composer()
    }

    /// Returns the facts about the screen that layers depend on.
    pub(crate) fn surroundings(&self) -> LayerContext {
        LayerContext { is_wide: self.screen.size.width >= picker::WIDE, has_questions: !self.dialogs.is_empty() }
    }

    /// Returns the layers and the context needed to draw them.
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

    /// Returns whether the last key press answered a dialog or sent the draft, so the next dialog may receive keyboard
    /// focus immediately.
    fn has_finished_typing(&self) -> bool {
        let last = self.keys.answered.max(self.keys.sent);
        last.is_some_and(|at| self.keys.last_key.is_none_or(|key| key <= at))
    }

    /// Returns whether a dialog may open automatically, which requires that the draft is empty and nothing else has
    /// keyboard focus.
    pub(crate) fn has_room_for_question(&self) -> bool {
        let reads = self.layers.covers_questions() || self.draft.search.is_some() || self.browse.is_some() || self.has_layer();
        !self.is_too_small() && !reads && self.composer.is_empty()
    }

    /// Returns the transcript and the context needed to draw its rows.
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

    /// Returns the next time, in milliseconds, at which a timer changes the screen, or `None` if no timer is running.
    /// `now` must be the time of the last frame, so that no timer is missed.
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

    /// Returns the time, in milliseconds, at which the displayed number of seconds changes next, if it does.
    fn next_second(&self, now: u64) -> Option<u64> {
        match &self.task.activity {
            Activity::Retrying(retry) => retry.next_second(now),
            _ => Some(now + 1000 - now.saturating_sub(self.task.since) % 1000),
        }
    }
}

/// Returns the theme chosen by name or, if there is none, the default theme for the terminal's background.
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
