//! Rewinds to the state before a prompt or step, and their redo. This module truncates the conversation; the tools
//! restore the files.
//!
//! The journal records the start and the end of a rewind. If the end is missing, the rewind is completed when the
//! session is resumed. Removed messages remain in the journal, and the thread before the cut stays in memory as long
//! as a redo is possible, which is until the next prompt. The tokens used and their cost are not refunded.

use super::super::thread::Thread;
use super::io::Effect;
use super::options::ResumePolicy;
use super::outputs::Outputs;
use super::side_effects::SideEffects;
use crate::ports::{Durability, FileRewind, FileRewindResult, Record, RewindStart};
use crate::protocol::{
    EventKind, FileDiffs, Message, MessageId, Part, RewindPlan, RewindPoint, RewindScope, RewindTarget, Rewound, TaskId,
    format_count,
};
use jiff::Timestamp;
use std::path::PathBuf;

/// Maximum number of commands listed for a single task.
const COMMANDS: usize = 50;
/// Maximum number of paths named in a message.
const MAX_NAMED: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Rewinds {
    /// Prompts in the conversation, oldest first.
    points: Vec<Point>,
    /// Rewinds that can be undone by a redo, latest last.
    done: Vec<FinishedRewind>,
    count: u32,
    under_way: Option<RunningRewind>,
    /// Note for the model, sent with the next prompt.
    note: Option<String>,
}

#[derive(Debug, Clone)]
struct Point {
    task_id: TaskId,
    number: u32,
    prompt: String,
    message_id: MessageId,
    timestamp: Timestamp,
    /// Number of the prompt's first step within the session.
    first_step: u64,
    steps: u32,
    commands: Vec<String>,
    /// Effects of the prompt's calls that are not visible in files.
    lasting: Vec<String>,
    /// Whether the prompt's files were restored while the conversation was kept.
    files_undone: bool,
}

#[derive(Debug)]
struct FinishedRewind {
    number: u32,
    scope: RewindScope,
    thread: Thread,
    points: Vec<Point>,
    note: Option<String>,
    messages: u64,
}

#[derive(Debug)]
struct RunningRewind {
    number: u32,
    aim: ResolvedTarget,
    overwrite: Vec<PathBuf>,
    /// Whether the queue was empty when the rewind began, in which case messages sent since then start once it has
    /// completed.
    begins_next: bool,
    /// How to handle the open task, if the rewind was started by an earlier process.
    then: Option<ResumePolicy>,
}

/// Target of a rewind, resolved to a position in the conversation.
#[derive(Debug)]
pub(super) struct ResolvedTarget {
    target: RewindTarget,
    scope: RewindScope,
    since: RewindStart,
    from: Option<MessageId>,
    point: Option<Point>,
    /// Text of the prompt, for the user to edit.
    prompt: Option<String>,
    messages: u64,
    cannot: Vec<String>,
}

/// Input to the rewinds.
#[derive(Debug)]
pub(super) enum RewindInput<'a> {
    /// A prompt becomes a task. `number` and `first_step` are counted within the session.
    Prompted {
        prompt: &'a Message,
        number: u32,
        first_step: u64,
    },
    StepStarted,
    /// A call for the last prompt was started.
    CallStarted(SideEffects),
    /// The user requested the rewind points.
    PointsRequested,
    /// The user requested the effects that a rewind would have.
    PlanRequested {
        target: &'a RewindTarget,
        scope: RewindScope,
    },
    /// A rewind starts. `begins_next` says whether messages sent during the rewind start once it has completed.
    Started {
        target: Box<ResolvedTarget>,
        overwrite: Vec<PathBuf>,
        begins_next: bool,
        step: u64,
    },
    /// The files have been restored, or could not be.
    FilesRewound {
        number: u32,
        outcome: Result<FileRewindResult, String>,
    },
    /// The journal contains the start of a rewind.
    StartRestored {
        rewind_id: &'a str,
        target: &'a RewindTarget,
        scope: RewindScope,
        overwrite: &'a [PathBuf],
    },
    /// The journal contains the end of a rewind.
    EndRestored {
        rewind_id: &'a str,
        from: Option<&'a MessageId>,
        rewound: &'a Rewound,
    },
    /// The session was resumed, so a rewind that the previous process started must be completed.
    Resumed {
        begins_next: bool,
        then: ResumePolicy,
        step: u64,
    },
}

/// Output of the rewinds.
#[derive(Debug)]
pub(super) enum RewindOutput {
    /// There are no files to wait for, so the rewind with this number can be finished immediately.
    Ready(u32),
    /// A rewind was finished.
    Finished(AfterRewind),
}

/// Change that a rewind makes to the thread.
#[derive(Debug)]
pub(super) enum ThreadChange {
    /// The given message and all later ones are removed.
    CutFrom(MessageId),
    /// The current thread is replaced by an earlier one.
    Replaced(Thread),
}

/// Effects that a rewind has on the rest of the session state.
#[derive(Debug, Default)]
pub(super) struct RewindEffect {
    pub thread: Option<ThreadChange>,
    /// Whether the last task can no longer be continued, because its context was removed.
    pub forgets_task: bool,
}

/// Actions to take after a completed rewind.
#[derive(Debug)]
pub(super) struct AfterRewind {
    pub effect: RewindEffect,
    /// Whether the next queued message starts after the rewind.
    pub begins_next: bool,
    /// How to handle the open task, if the rewind was started by an earlier process.
    pub then: Option<ResumePolicy>,
}

/// Input handling.
impl Rewinds {
    /// Handles an input. `thread` is the conversation before the input.
    pub(crate) fn handle(&mut self, input: RewindInput<'_>, thread: &Thread, out: &mut Outputs) -> Option<RewindOutput> {
        match input {
            RewindInput::Prompted { prompt, number, first_step } => self.add_point(prompt, number, first_step),
            RewindInput::StepStarted => self.count_step(),
            RewindInput::CallStarted(side_effects) => self.add_side_effects(side_effects),
            RewindInput::PointsRequested => out.effect(self.list_points()),
            RewindInput::PlanRequested { target, scope } => match self.plan(target, scope, thread) {
                Ok(effect) => out.effect(effect),
                Err(why) => out.notice(why),
            },
            RewindInput::Started { target, overwrite, begins_next, step } => {
                return self.begin(*target, overwrite, (begins_next, step), out).map(RewindOutput::Ready);
            }
            RewindInput::FilesRewound { number, outcome } => {
                return self.finish(number, outcome, thread, out).map(RewindOutput::Finished);
            }
            RewindInput::StartRestored { rewind_id, target, scope, overwrite } => {
                self.restore_start(rewind_id, (target, scope), overwrite.to_vec(), thread);
            }
            RewindInput::EndRestored { rewind_id, from, rewound } => {
                let effect = self.restore_end(rewind_id, from, rewound, thread);
                return Some(RewindOutput::Finished(AfterRewind { effect, begins_next: false, then: None }));
            }
            RewindInput::Resumed { begins_next, then, step } => {
                if let Some(effect) = self.resume(begins_next, then, step) {
                    out.effect(effect);
                }
            }
        }
        None
    }
}

impl Rewinds {
    pub(crate) fn is_running(&self) -> bool {
        self.under_way.is_some()
    }

    /// Adds a prompt as a rewind point. Earlier rewinds can then no longer be undone. `number` and `first_step` are
    /// counted within the session.
    fn add_point(&mut self, prompt: &Message, number: u32, first_step: u64) {
        self.done.clear();
        self.under_way = None;
        self.points.push(Point {
            task_id: prompt.task_id.clone(),
            number,
            prompt: prompt.typed_text().to_owned(),
            message_id: prompt.message_id.clone(),
            timestamp: prompt.timestamp,
            first_step,
            steps: 0,
            commands: Vec::new(),
            lasting: Vec::new(),
            files_undone: false,
        });
    }

    fn count_step(&mut self) {
        if let Some(point) = self.points.last_mut() {
            point.steps += 1;
        }
    }

    /// Records the side effects of a call that was made for the last prompt.
    fn add_side_effects(&mut self, SideEffects { command, lasting }: SideEffects) {
        let Some(point) = self.points.last_mut() else { return };
        for (one, list) in [(command, &mut point.commands), (lasting, &mut point.lasting)] {
            if let Some(one) = one.filter(|one| list.len() < COMMANDS && !list.contains(one)) {
                list.push(one);
            }
        }
    }

    fn list_points(&self) -> Effect {
        let points = self.points.iter().map(Point::describe).collect();
        Effect::TellRewindPoints { points, can_redo: !self.done.is_empty() }
    }

    /// Plans a rewind. Returns an error with the reason if the rewind is impossible.
    fn plan(&self, target: &RewindTarget, scope: RewindScope, thread: &Thread) -> Result<Effect, String> {
        let aim = self.resolve(target, scope, thread)?;
        let plan = RewindPlan {
            target: aim.target,
            scope: aim.scope,
            point: aim.point.as_ref().map(Point::describe),
            files: Vec::new(),
            diff: FileDiffs::default(),
            cannot: aim.cannot,
            messages: aim.messages,
        };
        let since = aim.scope.files().then_some(aim.since);
        Ok(Effect::PlanRewind { plan, since })
    }

    /// Starts a rewind, recording it before anything is undone. Returns its number if there are no files to restore.
    fn begin(
        &mut self,
        aim: ResolvedTarget,
        overwrite: Vec<PathBuf>,
        (begins_next, step): (bool, u64),
        out: &mut Outputs,
    ) -> Option<u32> {
        let number = self.count + 1;
        out.record(Record::RewindStarted {
            rewind_id: FileRewind::task_id(number).to_string(),
            target: aim.target.clone(),
            scope: aim.scope,
            overwrite: overwrite.clone(),
        });
        out.commit(Durability::Power);
        self.count = number;
        let (files, since) = (aim.scope.files(), aim.since);
        self.under_way = Some(RunningRewind { number, aim, overwrite: overwrite.clone(), begins_next, then: None });
        if !files {
            return Some(number);
        }
        out.effect(Effect::Rewind(FileRewind { number, since, step, overwrite }));
        None
    }

    /// Finishes a rewind: records and reports it, and truncates the conversation.
    fn finish(
        &mut self,
        number: u32,
        outcome: Result<FileRewindResult, String>,
        thread: &Thread,
        out: &mut Outputs,
    ) -> Option<AfterRewind> {
        let under_way = self.under_way.take_if(|one| one.number == number)?;
        let aim = &under_way.aim;
        let rewound = match outcome {
            Ok(files) => {
                let redo = aim.target == RewindTarget::Redo;
                let message = report(aim, &files, redo);
                let (target, scope) = (aim.target.clone(), aim.scope);
                let prompt = aim.prompt.clone().filter(|_| aim.from.is_some());
                let FileRewindResult { restored, kept } = files;
                Rewound { target, scope, restored, kept, messages: aim.messages, message, prompt }
            }
            // No files were changed, so the conversation remains unchanged too.
            Err(why) => Rewound {
                target: aim.target.clone(),
                scope: RewindScope::Files,
                restored: 0,
                kept: Vec::new(),
                messages: 0,
                message: format!("nothing was undone: {why}"),
                prompt: None,
            },
        };
        let from = aim.from.clone().filter(|_| rewound.scope.conversation());
        let rewind_id = FileRewind::task_id(number).to_string();
        out.record(Record::Rewound { rewind_id, from: from.clone(), rewound: rewound.clone() });
        out.commit(Durability::Power);
        let effect = self.apply(number, from.as_ref(), &rewound, thread);
        out.event(EventKind::Rewound(rewound));
        Some(AfterRewind { effect, begins_next: under_way.begins_next, then: under_way.then })
    }

    /// Applies a rewind to the conversation. Also used to restore a journal.
    fn apply(&mut self, number: u32, from: Option<&MessageId>, rewound: &Rewound, thread: &Thread) -> RewindEffect {
        if rewound.target == RewindTarget::Redo {
            let mut effect = RewindEffect { thread: None, forgets_task: true };
            if (rewound.scope.conversation() || rewound.restored > 0)
                && let Some(done) = self.done.pop()
            {
                (self.points, self.note) = (done.points, done.note);
                if done.scope.conversation() {
                    effect.thread = Some(ThreadChange::Replaced(done.thread));
                }
            }
            return effect;
        }
        if from.is_none() && rewound.restored == 0 {
            return RewindEffect::default();
        }
        let mut effect = RewindEffect { thread: None, forgets_task: rewound.scope.conversation() };
        let note = self.note.take();
        self.done.push(FinishedRewind {
            number,
            scope: rewound.scope,
            thread: thread.clone(),
            points: self.points.clone(),
            note: note.clone(),
            messages: rewound.messages,
        });
        let RewindTarget::Before { task_id, step_id } = &rewound.target else { return effect };
        let place = self.points.iter().position(|point| point.task_id == *task_id);
        let place = place.unwrap_or(self.points.len());
        self.note = note;
        if let Some(from) = from {
            effect.thread = Some(ThreadChange::CutFrom(from.clone()));
            self.points.truncate(place + usize::from(step_id.is_some()));
            if let (Some(step), Some(point)) = (step_id, self.points.get_mut(place)) {
                point.steps = u32::try_from(step.number().saturating_sub(point.first_step)).unwrap_or(point.steps);
            }
        }
        self.note_scope(rewound, place);
        effect
    }

    /// Prepares a note for the model that says what was undone and what was kept. The note is sent with the next
    /// prompt.
    fn note_scope(&mut self, rewound: &Rewound, place: usize) {
        match rewound.scope {
            RewindScope::Both => {}
            RewindScope::Files => {
                self.points.iter_mut().skip(place).for_each(|point| point.files_undone = true);
                let files = format_count(rewound.restored, "file", "files");
                self.note = Some(format!(
                    "[The user restored {files} to an earlier state of this conversation. Read a file again before you rely on what \
                     you know about it.]"
                ));
            }
            RewindScope::Conversation => {
                self.note = Some(
                    "[The user removed the messages after this point. The file changes made there remain: read a file before you rely \
                     on what you know about it.]"
                        .to_owned(),
                );
            }
        }
    }

    /// Adds the note to a prompt as stored in the thread.
    pub(crate) fn with_note(&mut self, mut prompt: Message) -> Message {
        if let Some(note) = self.note.take() {
            // The typed text must remain the first part.
            let place = prompt.content.len().min(1);
            prompt.content.insert(place, Part::Text { text: format!("\n\n{note}") });
            prompt.token_count = super::super::context::estimate(&prompt.content);
        }
        prompt
    }

    /// Restores the start of a rewind from the journal.
    fn restore_start(
        &mut self,
        id: &str,
        (target, scope): (&RewindTarget, RewindScope),
        overwrite: Vec<PathBuf>,
        thread: &Thread,
    ) {
        let number = FileRewind::rewind_number(&TaskId::new(id)).unwrap_or(self.count + 1);
        self.count = self.count.max(number);
        let aim = self.resolve(target, scope, thread).ok();
        self.under_way = aim.map(|aim| RunningRewind { number, aim, overwrite, begins_next: true, then: None });
    }

    /// Restores the end of a rewind from the journal.
    fn restore_end(&mut self, id: &str, from: Option<&MessageId>, rewound: &Rewound, thread: &Thread) -> RewindEffect {
        self.under_way = None;
        let number = FileRewind::rewind_number(&TaskId::new(id)).unwrap_or(self.count);
        self.count = self.count.max(number);
        self.apply(number, from, rewound, thread)
    }

    /// Completes a rewind that an earlier process started. Returns `None` if there was none.
    fn resume(&mut self, begins_next: bool, then: ResumePolicy, step: u64) -> Option<Effect> {
        let under_way = self.under_way.as_mut()?;
        (under_way.begins_next, under_way.then) = (begins_next, Some(then));
        let (number, overwrite) = (under_way.number, under_way.overwrite.clone());
        // If there are no files to restore, the result is still reported in the same way.
        let since = if under_way.aim.scope.files() { under_way.aim.since } else { RewindStart::Rewind(u32::MAX) };
        Some(Effect::Rewind(FileRewind { number, since, step, overwrite }))
    }

    /// Resolves a rewind's target. Returns an error with the reason if the rewind is impossible.
    pub(crate) fn resolve(&self, target: &RewindTarget, scope: RewindScope, thread: &Thread) -> Result<ResolvedTarget, String> {
        let points = &self.points;
        let nothing = || "nothing to rewind to: this conversation has no messages yet".to_owned();
        let (task_id, step_id) = match target {
            RewindTarget::Redo => {
                let done = self.done.last();
                let done = done.ok_or("nothing to redo: a rewind can only be undone until the next prompt")?;
                return Ok(ResolvedTarget {
                    target: RewindTarget::Redo,
                    scope: done.scope,
                    since: RewindStart::Rewind(done.number),
                    from: None,
                    point: None,
                    prompt: None,
                    messages: done.messages,
                    cannot: Vec::new(),
                });
            }
            RewindTarget::Last => {
                let wanted = |point: &&Point| scope != RewindScope::Files || !point.files_undone;
                (points.iter().rev().find(wanted).ok_or_else(nothing)?.task_id.clone(), None)
            }
            RewindTarget::Before { task_id, step_id } => (task_id.clone(), step_id.clone()),
        };
        let place = points.iter().position(|point| point.task_id == task_id);
        let place = place.ok_or_else(|| format!("prompt `{task_id}` is no longer in this conversation"))?;
        let point = &points[place];
        let mut from = match &step_id {
            None => Some(point.message_id.clone()),
            Some(step) => {
                let of_task = step.number() >= point.first_step;
                let answer = thread.response_id(step).filter(|_| of_task);
                Some(answer.ok_or_else(|| format!("step `{step}` is no longer in this conversation"))?)
            }
        };
        let messages = from.as_ref().and_then(|from| thread.clone().truncate_from(from)).unwrap_or(0);
        if !scope.conversation() {
            from = None;
        }
        let since = RewindStart::Step(step_id.as_ref().map_or(point.first_step, crate::protocol::StepId::number));
        let later = &points[place..];
        let mut cannot: Vec<String> = later.iter().flat_map(|point| point.lasting.iter().cloned()).collect();
        if scope.files() && later.iter().any(|point| !point.commands.is_empty()) {
            cannot.push("changes by commands outside the workspace, or to files that git ignores, are not undone".to_owned());
        }
        Ok(ResolvedTarget {
            prompt: step_id.is_none().then(|| point.prompt.clone()),
            target: RewindTarget::Before { task_id, step_id },
            scope,
            since,
            messages: if scope.conversation() { messages } else { 0 },
            from,
            point: Some(point.clone()),
            cannot,
        })
    }
}

impl Point {
    fn describe(&self) -> RewindPoint {
        RewindPoint {
            task_id: self.task_id.clone(),
            number: self.number,
            prompt: self.prompt.clone(),
            timestamp: self.timestamp,
            steps: self.steps,
            files: 0,
            added: 0,
            removed: 0,
            commands: self.commands.clone(),
        }
    }
}

/// Returns the message that tells the user about a completed rewind or redo.
fn report(aim: &ResolvedTarget, files: &FileRewindResult, redo: bool) -> String {
    let mut parts = Vec::new();
    if aim.scope.files() {
        let done = format_count(files.restored, "file", "files");
        parts.push(if files.restored == 0 { "no file changed".to_owned() } else { format!("{done} changed") });
    }
    if aim.scope.conversation() {
        let messages = format_count(aim.messages, "message", "messages");
        parts.push(format!("{messages} {}", if redo { "restored" } else { "undone" }));
    }
    if !files.kept.is_empty() {
        let names: Vec<_> = files.kept.iter().take(MAX_NAMED).map(|one| one.path.display().to_string()).collect();
        let more = files.kept.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let stay = if files.kept.len() == 1 { "stays as it is" } else { "stay as they are" };
        parts.push(format!("{}{more} {stay}", names.join(", ")));
    }
    let what = match (&aim.point, &aim.target) {
        (Some(point), RewindTarget::Before { step_id: Some(_), .. }) => format!("rewound into prompt {}", point.number),
        (Some(point), _) => format!("rewound to before prompt {}", point.number),
        (None, _) => "rewind undone".to_owned(),
    };
    format!("{what}: {}", parts.join(", "))
}
