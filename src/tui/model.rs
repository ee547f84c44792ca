//! All that the screen shows, and nothing about how.

use super::approval::Panels;
use super::changes::Changes;
use super::composer::Composer;
use super::front::{Ended, Ground, Header, ModelAccess, Options, ThemeChoice, TrustAnswer};
use super::glyphs::{ASCII, Glyphs, UNICODE};
use super::guard;
use super::models::ModelPicker;
use super::reading::Reading;
use super::theme::Theme;
use super::transcript::{Look, Transcript};
use crate::protocol::{
    Artifact, Budget, BudgetScope, BudgetUnit, CallId, Command, FailureKind, ModelFacts, PolicyLayer, RunningCommand, SessionId,
    ToolUses, Usage, Waiting,
};
use ratatui::layout::Size;

/// Below this the screen says so, and no question is asked on it.
pub const SMALLEST: (u16, u16) = (40, 12);

/// What the running task is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    Idle,
    Thinking,
    Answering,
    /// The model writes the arguments of a call.
    Calling {
        tool: String,
        bytes: u64,
    },
    /// Calls run, the newest last.
    Running {
        calls: Vec<(CallId, String)>,
    },
    Retrying(Box<Retry>),
    /// A summary is made of what was said before.
    Compacting {
        messages: u64,
    },
    Stopping,
}

/// A request that failed and is sent again after a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// When it is sent.
    pub at: u64,
    pub attempt: u32,
    pub max_attempts: u32,
    pub kind: FailureKind,
    /// Made harmless, in one line.
    pub message: String,
    /// What the attempt used that failed, where that is known.
    pub wasted: Option<String>,
    /// The time of day it is sent at, where that is far.
    pub clock: Option<String>,
}

impl Retry {
    /// In seconds, the one that has begun counted whole.
    pub fn left(&self, now: u64) -> u64 {
        self.at.saturating_sub(now).div_ceil(1000)
    }

    /// When that is one less; never once it has come.
    fn next_second(&self, now: u64) -> Option<u64> {
        let left = self.left(now);
        (left > 0).then(|| self.at.saturating_sub((left - 1) * 1000))
    }
}

/// A message that waited, taken back to be changed. Until the session has said so it may have been taken by the model.
#[derive(Debug)]
pub struct TakenBack {
    pub id: u64,
    pub text: String,
    pub steer: bool,
    pub race: Race,
}

/// What was heard since it was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Race {
    /// Nothing yet.
    Open,
    /// It waits no longer: taken back, or taken.
    Gone,
    /// The same words were said to the model: these, or others like them.
    Said,
    /// It is the person's.
    Won,
}

/// The task and what it cost so far.
#[derive(Debug)]
pub struct Task {
    /// Whether one has begun and not ended.
    pub goes_on: bool,
    /// So many messages are being summed up, whatever the request for it does at the moment.
    pub summing_up: Option<u64>,
    pub activity: Activity,
    /// When the activity began.
    pub since: u64,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    /// Of some of it the provider said nothing.
    pub is_estimated: bool,
    /// Messages for the next step and for after the task, as the session has them.
    pub waiting: Vec<Waiting>,
    /// What left them when they changed last.
    pub left_queue: Vec<String>,
    /// What of them stands in the draft now.
    pub taken_back: Vec<TakenBack>,
    /// A task of before that goes on only with `/continue`, in the words that say so.
    pub paused: Option<&'static str>,
    /// Sent, and the session has not taken it up yet.
    pub sent: Vec<String>,
}

/// Numbers of the session for the status row.
#[derive(Debug, Default)]
pub struct Tally {
    pub context_tokens: u64,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    /// Of some of it a provider said nothing.
    pub is_estimated: bool,
    pub budgets: Vec<Budget>,
    /// The person wants to see them.
    pub budgets_asked: bool,
}

impl Tally {
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
}

/// So long before its end a policy says so.
const ENDS_SOON: i64 = 60 * 60;

impl Policy {
    /// When it ends, if that is soon or past.
    pub fn end(&self, now: u64) -> Option<(jiff::Timestamp, Ending)> {
        let (time, came) = self.clock?;
        let end = self.layers.iter().filter_map(|layer| layer.expires_at).min()?;
        let passed = i64::try_from(now.saturating_sub(came) / 1000).unwrap_or(i64::MAX);
        let left = end.as_second().saturating_sub(time.as_second().saturating_add(passed));
        match left {
            ..=0 => Some((end, Ending::Over)),
            1..=ENDS_SOON => Some((end, Ending::Soon)),
            _ => None,
        }
    }
}

/// How it stands with the end of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Soon,
    Over,
}

/// What is to be done outside the model.
#[derive(Debug)]
pub enum Effect {
    Send(Command),
    Trust(super::front::Trust, TrustAnswer),
    PushKitty,
    Suspend,
    Exit(Ended),
}

pub struct Model {
    pub options: Options,
    pub theme: Theme,
    /// The terminal's background, once it has told.
    pub ground: Option<(u8, u8, u8)>,
    pub glyphs: Glyphs,
    pub size: Size,
    pub header: Header,
    /// Whether everything was loaded, and whether the model can be reached.
    pub access: Option<ModelAccess>,
    pub composer: Composer,
    pub transcript: Transcript,
    pub panels: Panels,
    pub task: Task,
    pub tally: Tally,
    pub policy: Policy,
    /// Sessions and commands that run on while the agent works.
    pub commands: Vec<RunningCommand>,
    /// What the tools did so far.
    pub tool_uses: ToolUses,
    /// The session, once there is something in it to go on with.
    pub session: Option<SessionId>,
    /// What was said last, for the main screen.
    pub last_answer: Option<String>,
    /// A sentence above the composer, until a time.
    pub said: Option<(String, u64)>,
    /// The first row shown of the help, while it is open.
    pub help: Option<usize>,
    /// A long text that is read in place of the transcript.
    pub reading: Option<Reading>,
    /// What the session kept whole, as it was listed last.
    pub artifacts: Vec<Artifact>,
    /// What changed, while that is looked at; a key other than its own does not reach the composer.
    pub changes: Option<Changes>,
    /// The session was asked for it.
    pub changes_asked: bool,
    /// Another model is chosen; a key other than its own does not reach the composer.
    pub picker: Option<ModelPicker>,
    /// What is known of the model.
    pub facts: Option<ModelFacts>,
    pub search: Option<Search>,
    pub keys: Keys,
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
    /// An empty draft met ctrl+c then.
    pub quit_asked: Option<u64>,
    /// When the `r` in the draft counts as a wish to ask again, unless more is typed.
    pub retry_at: Option<u64>,
    pub kitty: bool,
}

impl Model {
    pub fn new(options: Options, prompt: Option<String>, size: Size) -> Self {
        Self {
            theme: theme(&options, None),
            ground: None,
            glyphs: if options.ascii { ASCII } else { UNICODE },
            size,
            header: Header::default(),
            access: None,
            composer: Composer::new(options.history.clone(), options.kept_as.clone()),
            transcript: Transcript::default(),
            panels: Panels::default(),
            task: Task {
                goes_on: false,
                summing_up: None,
                activity: Activity::Idle,
                since: 0,
                usage: Usage::default(),
                cost_usd: None,
                is_estimated: false,
                waiting: Vec::new(),
                left_queue: Vec::new(),
                taken_back: Vec::new(),
                paused: None,
                sent: Vec::new(),
            },
            tally: Tally::default(),
            policy: Policy::default(),
            commands: Vec::new(),
            tool_uses: ToolUses::default(),
            session: None,
            last_answer: None,
            said: None,
            help: None,
            reading: None,
            artifacts: Vec::new(),
            changes: None,
            changes_asked: false,
            picker: None,
            facts: None,
            search: None,
            keys: Keys::default(),
            waiting_prompt: prompt,
            save_draft_at: None,
            dirty: true,
            options,
        }
    }

    /// The theme by the choice and by the terminal's background.
    pub fn choose_theme(&mut self) {
        self.theme = theme(&self.options, self.ground);
        self.transcript.forget_layout();
        self.dirty = true;
    }

    pub fn is_running(&self) -> bool {
        self.task.activity != Activity::Idle
    }

    /// Whether the task goes on only when the person has answered: then there is nothing to count.
    pub fn waits_for_person(&self) -> bool {
        match self.task.activity {
            Activity::Thinking | Activity::Answering | Activity::Calling { .. } => self.panels.approvals() > 0,
            Activity::Idle
            | Activity::Running { .. }
            | Activity::Retrying(_)
            | Activity::Compacting { .. }
            | Activity::Stopping => false,
        }
    }

    /// The time of a question is not the model's time: what follows counts from here.
    pub fn person_had_the_turn(&mut self, now: u64) {
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
    pub fn say(&mut self, words: impl Into<String>, now: u64) {
        self.said = Some((words.into(), now + 6000));
        self.dirty = true;
    }

    pub fn is_too_small(&self) -> bool {
        self.size.width < SMALLEST.0 || self.size.height < SMALLEST.1
    }

    pub fn may_take_focus(&self, now: u64) -> bool {
        !self.is_too_small()
            && self.search.is_none()
            && self.changes.is_none()
            && self.picker.is_none()
            && guard::may_take_focus(self.composer.is_empty(), self.keys.last_key, now)
    }

    /// The transcript and what its rows are made with.
    pub fn transcript_look(&mut self, now: u64) -> (&mut Transcript, Look<'_>) {
        let look = Look { width: self.size.width, fold: self.transcript.fold(), theme: &self.theme, glyphs: &self.glyphs, now };
        (&mut self.transcript, look)
    }

    /// The next moment at which time alone changes something; none while nothing goes on.
    pub fn deadline(&self, now: u64) -> Option<u64> {
        let guard = self.panels.open().and_then(|panel| panel.guard.deadline(now).filter(|_| panel.words.is_none()));
        let said = self.said.as_ref().map(|(_, until)| *until);
        let elapsed = (self.is_running() && !self.waits_for_person()).then(|| self.next_second(now)).flatten();
        let reads = self.changes.is_some() || self.picker.is_some();
        let focus = (self.panels.waits_for_idle() && self.composer.is_empty() && !reads)
            .then(|| self.keys.last_key.map_or(now, |at| at + guard::IDLE_MS));
        [guard, said, elapsed, focus, self.save_draft_at, self.keys.retry_at].into_iter().flatten().min()
    }

    /// When the seconds shown go on.
    fn next_second(&self, now: u64) -> Option<u64> {
        match &self.task.activity {
            Activity::Retrying(retry) => retry.next_second(now),
            _ => Some(now + 1000 - now.saturating_sub(self.task.since) % 1000),
        }
    }
}

fn theme(options: &Options, ground: Option<(u8, u8, u8)>) -> Theme {
    let named = match &options.theme {
        ThemeChoice::Auto => None,
        ThemeChoice::Named(name) => Theme::by_name(name),
    };
    let ground = ground.or(match options.ground {
        Ground::Dark => None,
        Ground::Light => Some((255, 255, 255)),
    });
    named.map_or_else(|| Theme::choose(ground, options.colours), |theme| theme.with_colours(options.colours))
}
