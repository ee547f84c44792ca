//! All that the screen shows, and nothing about how.

use super::approval::DialogStack;
use super::attachments::Attachments;
use super::browse::Browse;
use super::changes::Changes;
use super::clipboard::Clip;
use super::composer::Composer;
use super::glyphs::{ASCII, Glyphs, UNICODE};
use super::help::Help;
use super::interface::{Background, ExitReason, Header, LockAnswer, ModelAccess, Options, ThemeChoice, TrustAnswer};
use super::keymap::{Focus, Keymap};
use super::menu::Menu;
use super::models::ModelPicker;
use super::notifications::Notifications;
use super::picker::Picker;
use super::rewind::Rewind;
use super::servers::Servers;
use super::sessions::Sessions;
pub use super::task::{Activity, RetractState, RetractedMessage, Retry, Task};
use super::terminal::{TerminalCapabilities, TerminalMode};
use super::text_viewer::TextViewer;
use super::theme::{self, Theme};
use super::transcript::{RenderContext, Transcript};
use super::tree::Tree;
use super::typeahead_guard;
use super::update::mouse::Pointer;
use super::update::save_errors::SaveState;
use super::update::user_shell::UserCommand;
use super::update::worktree::Worktree;
use crate::protocol::{
    ApprovalId, Artifact, Budget, BudgetScope, BudgetUnit, Command, ModelFacts, PolicyLayer, Query, RunningCommand, SessionId,
    ToolUses, Usage,
};
use ratatui::layout::Size;

/// Below this the screen says so, and no question is asked on it.
pub const SMALLEST: (u16, u16) = (40, 12);

/// What of a resumed session is not shown yet.
#[derive(Debug, Default)]
pub struct HistoryCursor {
    /// Where in the journal it ends; nothing where all is shown.
    pub before: Option<i64>,
    /// It was asked for, and has not come.
    pub is_asked: bool,
}

/// Numbers of the session for the status row.
#[derive(Debug, Default)]
pub struct SessionTotals {
    pub context_tokens: u64,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    /// Of some of it a provider said nothing.
    pub is_estimated: bool,
    pub budgets: Vec<Budget>,
    /// The person wants to see them.
    pub budgets_asked: bool,
}

impl SessionTotals {
    pub fn spend(&mut self, cost_usd: Option<f64>) {
        if let Some(cost) = cost_usd {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
    }

    /// What the session may still cost, and what all of it may.
    pub fn money_left(&self) -> Option<(f64, f64)> {
        let of_session = |budget: &&Budget| budget.scope == BudgetScope::Session && budget.unit == BudgetUnit::CostUsd;
        let budget = self.budgets.iter().find(of_session)?;
        let used = self.cost_usd.unwrap_or(0.0).max(budget.used);
        Some(((budget.limit - used).max(0.0), budget.limit))
    }
}

/// A prompt sent before is looked for.
#[derive(Debug)]
pub struct Search {
    pub query: String,
    /// Which one of those that match, counted from the newest.
    pub nth: usize,
    pub found: bool,
    /// What stood in the composer before.
    pub draft: String,
}

/// Which policy decides.
#[derive(Debug, Default)]
pub struct Policy {
    pub layers: Vec<PolicyLayer>,
    /// Why a changed file is not taken, until it is mended.
    pub broken: Option<String>,
    /// The time of day of the last event, and when it came.
    pub clock: Option<(jiff::Timestamp, u64)>,
    /// Its end was said.
    pub over: bool,
}

/// How long the strip shows a sentence.
pub const TOAST_MS: u64 = 6000;
/// So long before its end a policy says so.
const ENDS_NEAR_MS: i64 = 60 * 60 * 1000;
/// And so long before it in the colour of a warning.
const ENDS_SOON_MS: i64 = 10 * 60 * 1000;

impl Policy {
    /// When it ends, if that is soon or past.
    pub fn end(&self, now: u64) -> Option<(jiff::Timestamp, ExpiryStage)> {
        let (end, left, came) = self.left()?;
        let passed = i64::try_from(now.saturating_sub(came)).unwrap_or(i64::MAX);
        let left = left.saturating_sub(passed);
        let all = [(0, ExpiryStage::Over), (ENDS_SOON_MS, ExpiryStage::Soon), (ENDS_NEAR_MS, ExpiryStage::Near)];
        all.into_iter().find(|(most, _)| left <= *most).map(|(_, ending)| (end, ending))
    }

    /// Its end, the milliseconds that were left at the last event, and when that came.
    fn left(&self) -> Option<(jiff::Timestamp, i64, u64)> {
        let (time, came) = self.clock?;
        let end = self.layers.iter().filter_map(|layer| layer.expires_at).min()?;
        Some((end, end.as_millisecond().saturating_sub(time.as_millisecond()), came))
    }

    /// When it comes nearer to its end in what is said of it.
    pub fn next_change(&self, now: u64) -> Option<u64> {
        let (_, left, came) = self.left()?;
        let at = |before: i64| Some(came.saturating_add(u64::try_from(left.saturating_sub(before)).ok()?));
        [ENDS_NEAR_MS, ENDS_SOON_MS, 0].into_iter().filter_map(at).find(|at| *at > now)
    }
}

/// How it stands with the end of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpiryStage {
    Near,
    Soon,
    Over,
}

/// A text that is to be changed in an editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditFile {
    pub what: Editable,
    /// `src/main.rs`
    pub name: String,
    pub text: String,
}

/// Whose text that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Editable {
    Draft,
    /// A file of a question, by its place among them.
    Proposed {
        approval_id: ApprovalId,
        file: usize,
    },
}

/// What is to be done outside the model.
#[derive(Debug)]
pub enum Effect {
    Send(Command),
    Ask(Query),
    Trust(super::interface::TrustQuestion, TrustAnswer),
    Held(super::interface::LockQuestion, LockAnswer),
    /// To every clipboard there is.
    Copy(Clip),
    /// The person's editor with this, in the place of the screen.
    Show(super::interface::EditorTarget),
    /// Whether the terminal is to send what the mouse does.
    Mouse(bool),
    /// Something the terminal knows is switched on.
    Push(TerminalMode),
    /// Whether frames are marked.
    Synchronise(bool),
    /// Bytes for the terminal that are no cells.
    Write(Vec<u8>),
    Suspend,
    /// Opens it in the person's editor; answered by `Msg::Edited`.
    EditFile(EditFile),
    Exit(ExitReason),
}

pub struct Model {
    pub options: Options,
    pub theme: Theme,
    /// The terminal's background, once it has told.
    pub background: Option<(u8, u8, u8)>,
    /// What else it told.
    pub terminal: TerminalCapabilities,
    pub attention: Notifications,
    pub glyphs: Glyphs,
    pub size: Size,
    pub header: Header,
    /// Whether everything was loaded, and whether the model can be reached.
    pub model_access: Option<ModelAccess>,
    pub composer: Composer,
    pub transcript: Transcript,
    pub dialogs: DialogStack,
    pub task: Task,
    pub tally: SessionTotals,
    /// Older parts of the session.
    pub older: HistoryCursor,
    pub policy: Policy,
    /// Sessions and commands that run on while the agent works.
    pub commands: Vec<RunningCommand>,
    pub servers: Servers,
    /// What the tools did so far.
    pub tool_uses: ToolUses,
    /// The session, once there is something in it to go on with.
    pub session: Option<SessionId>,
    /// What was said last, for the main screen.
    pub last_answer: Option<String>,
    /// A sentence above the composer, until a time.
    pub toast: Option<(String, u64)>,
    /// Which key does what.
    pub keymap: Keymap,
    /// What of the person's keys does not hold.
    pub key_problems: Vec<String>,
    /// The help, while it is open: it has the keyboard, whatever is below.
    pub help: Option<Help>,
    /// A long text that is read in place of the transcript.
    pub reading: Option<TextViewer>,
    /// What the session kept whole, as it was listed last.
    pub artifacts: Vec<Artifact>,
    /// What changed, while that is looked at; a key other than its own does not reach the composer.
    pub changes: Option<Changes>,
    /// The session was asked for it.
    pub changes_asked: bool,
    /// Another model is chosen; a key other than its own does not reach the composer.
    pub picker: Option<ModelPicker>,
    /// Another session is chosen, a command is looked for: these have the keyboard in the same way.
    pub sessions: Option<Sessions>,
    /// The screen is only there to choose one: no start comes.
    pub is_session_chooser: bool,
    pub palette: Option<Picker>,
    pub tree: Option<Tree>,
    /// What the word under the cursor could become.
    pub menu: Menu,
    /// Images that were put into a draft.
    pub attached: Attachments,
    /// Going back: the list of prompts has the keyboard in the same way.
    pub rewind: Rewind,
    /// What the process before left in flight is still being told.
    pub recovering: bool,
    pub saving: SaveState,
    pub worktree: Worktree,
    /// It opens as soon as there is a session to ask.
    pub wants_picker: bool,
    /// It is told in lines, without the keys of the screen.
    pub in_lines: bool,
    /// The person asked for the first questions, which have not come yet.
    pub wants_setup: bool,
    /// The command of the person's own that runs.
    pub user_command: Option<UserCommand>,
    /// What is known of the model.
    pub facts: Option<ModelFacts>,
    pub search: Option<Search>,
    /// The transcript has the keyboard.
    pub browse: Option<Browse>,
    pub pointer: Pointer,
    pub keys: Keys,
    /// To be opened in an editor.
    pub to_edit: Option<EditFile>,
    /// Sent as soon as the start is over.
    pub waiting_prompt: Option<String>,
    /// When the draft is to be saved.
    pub save_draft_at: Option<u64>,
    /// Something on the screen is not as it should be.
    pub dirty: bool,
}

/// What is remembered of the keyboard.
#[derive(Debug, Default)]
pub struct Keys {
    /// The last key or paste that did not go to a question.
    pub last_key: Option<u64>,
    /// The last of them that was text.
    pub last_text: Option<u64>,
    pub last_escape: Option<u64>,
    /// When the last approval was answered here.
    pub answered: Option<u64>,
    /// The letter of an answer that was pressed once more in an empty draft, and when.
    pub echo: Option<(char, u64)>,
    /// When a prompt that still waits lost the focus.
    pub left_prompt: Option<u64>,
    /// The last key was an Escape on an empty draft.
    pub escaped: bool,
    /// The first of two Escapes that open the list of prompts to go back to.
    pub rested_escape: Option<u64>,
    /// The key that asked to quit, when, and whether that would have ended anything.
    pub quit_asked: Option<(&'static str, u64, bool)>,
    /// When the `r` in the draft counts as a wish to ask again, unless more is typed.
    pub retry_at: Option<u64>,
    /// The same of the `r` or `c` while nothing can be saved.
    pub saving_at: Option<(char, u64)>,
    /// It was said that there is no key.
    pub no_key_said: Option<u64>,
    /// Enter with shift or ctrl is told from Enter.
    pub kitty: bool,
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
            help: None,
            reading: None,
            artifacts: Vec::new(),
            changes: None,
            changes_asked: false,
            picker: None,
            sessions: None,
            is_session_chooser: false,
            palette: None,
            tree: None,
            menu: Menu::default(),
            attached: Attachments::default(),
            rewind: Rewind::default(),
            recovering: false,
            saving: SaveState::default(),
            worktree: Worktree::default(),
            wants_picker: false,
            in_lines: false,
            wants_setup: false,
            user_command: None,
            facts: None,
            search: None,
            browse: None,
            pointer: Pointer::new(options.mouse),
            keys: Keys::default(),
            to_edit: None,
            waiting_prompt: prompt,
            save_draft_at: None,
            dirty: true,
            options,
        }
    }

    /// The theme by the choice and by the terminal's background.
    pub fn choose_theme(&mut self) {
        self.retheme();
        self.transcript.forget_layout();
        self.dirty = true;
    }

    /// The same, and what was laid out is kept.
    pub fn retheme(&mut self) {
        self.theme = theme(&self.options, self.background);
    }

    /// The draft, as long as there is no session that keeps it.
    pub fn unkept(&self) -> String {
        if self.model_access.is_none() { self.composer.text() } else { String::new() }
    }

    pub fn is_running(&self) -> bool {
        self.task.activity != Activity::Idle
    }

    /// Whether the task goes on only when the person has answered: then there is nothing to count.
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

    /// The time of a question is not the model's time: what follows counts from here.
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

    /// Says a sentence for some seconds.
    pub fn show_toast(&mut self, words: impl Into<String>, now: u64) {
        let words = words.into();
        let named = self.keymap.sentence(Focus::Composer, &words).into_owned();
        self.toast = Some((named, now + TOAST_MS));
        self.dirty = true;
    }

    /// The list to choose from that has the keyboard.
    pub fn list_mut(&mut self) -> Option<&mut Picker> {
        let models = self.picker.as_mut().map(|picker| &mut picker.picker);
        let sessions = self.sessions.as_mut().map(|sessions| &mut sessions.picker);
        let tree = self.tree.as_mut().map(|tree| &mut tree.picker);
        let others = sessions.or(self.palette.as_mut()).or(tree).or(self.servers.list.as_mut());
        models.or(others).or_else(|| self.rewind.list.as_mut().map(|list| &mut list.picker))
    }

    pub fn has_list(&self) -> bool {
        self.picker.is_some()
            || self.sessions.is_some()
            || self.palette.is_some()
            || self.tree.is_some()
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

    /// Whether the last key was an answer: then what is asked next takes the focus at once.
    fn follows_answer(&self) -> bool {
        self.keys.answered.is_some_and(|at| self.keys.last_key.is_none_or(|key| key <= at))
    }

    /// Whether nothing else has the keyboard, and no draft stands where a question would.
    fn has_room_for_question(&self) -> bool {
        let reads =
            self.help.is_some() || self.search.is_some() || self.browse.is_some() || self.changes.is_some() || self.has_list();
        !self.is_too_small() && !reads && self.composer.is_empty()
    }

    /// The transcript and what its rows are made with.
    pub fn transcript_look(&mut self, now: u64) -> (&mut Transcript, RenderContext<'_>) {
        let whole_rows = self.options.reduce_motion;
        let unfolds = self.keymap.called(Focus::Composer, "ctrl+o");
        let look = RenderContext { unfolds, whole_rows, ..self.transcript.look(self.size.width, &self.theme, &self.glyphs, now) };
        (&mut self.transcript, look)
    }

    /// The next moment after this one at which time alone changes something; none while nothing goes on. Asked from the time of what
    /// is on the screen, it is never missed.
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

    /// When the seconds shown go on.
    fn next_second(&self, now: u64) -> Option<u64> {
        match &self.task.activity {
            Activity::Retrying(retry) => retry.next_second(now),
            _ => Some(now + 1000 - now.saturating_sub(self.task.since) % 1000),
        }
    }
}

/// The theme that is chosen, or the one for this ground.
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
