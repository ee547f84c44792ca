//! Going back to before a prompt or a step, and forth again: what was said is cut here, files are put back by the tools.
//!
//! A rewind is in the journal twice, when it begins and when it is done; one that was not done when the process ended is done on
//! resume. The journal keeps what was said, and the thread before the cut is kept in memory as long as it can be brought back: until
//! the next prompt. What was used up stays counted.

use super::super::thread::Thread;
use super::ran::Ran;
use super::restore::Unfinished;
use super::{Call, CallState, Effect, Machine, Moment, Phase};
use crate::ports::{Durability, FileRewind, FilesRewound, Record, Since, TaskEnd};
use crate::protocol::{
    EventKind, Message, MessageId, Part, RewindPlan, RewindPoint, RewindScope, RewindTarget, Rewound, TaskId, TaskStatus, counted,
};
use jiff::Timestamp;
use std::path::PathBuf;

/// Of one task; others are not named.
const COMMANDS: usize = 50;
/// Paths that a sentence names.
const MAX_NAMED: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Rewinds {
    /// The prompts of the conversation, the oldest first.
    points: Vec<Point>,
    /// Rewinds that can be taken back, the latest last.
    done: Vec<Done>,
    count: u32,
    under_way: Option<UnderWay>,
    /// What the model is told with the next prompt.
    note: Option<String>,
}

#[derive(Debug, Clone)]
struct Point {
    task_id: TaskId,
    number: u32,
    prompt: String,
    message_id: MessageId,
    timestamp: Timestamp,
    /// The first one it may have, as counted over the session.
    first_step: u64,
    steps: u32,
    commands: Vec<String>,
    /// What they did that no file tells of.
    lasting: Vec<String>,
    /// Its files were put back while what was said stayed.
    files_undone: bool,
}

#[derive(Debug)]
struct Done {
    number: u32,
    scope: RewindScope,
    thread: Thread,
    points: Vec<Point>,
    note: Option<String>,
    messages: u64,
}

#[derive(Debug)]
pub(super) struct UnderWay {
    number: u32,
    aim: Aim,
    overwrite: Vec<PathBuf>,
    /// Nothing waited when it began: what is said meanwhile is begun after it.
    begins_next: bool,
    /// What follows where a process before this one began it.
    then: Option<Unfinished>,
}

/// Where a rewind leads, all of it looked up.
#[derive(Debug)]
struct Aim {
    target: RewindTarget,
    scope: RewindScope,
    since: Since,
    from: Option<MessageId>,
    point: Option<Point>,
    /// For the composer.
    prompt: Option<String>,
    messages: u64,
    cannot: Vec<String>,
}

impl Machine {
    pub(super) fn is_rewinding(&self) -> bool {
        self.rewinds.under_way.is_some()
    }

    /// A prompt begins a task: one can go back to before it, and no further forth.
    pub(super) fn note_point(&mut self, prompt: &Message) {
        self.rewinds.done.clear();
        self.rewinds.under_way = None;
        self.rewinds.points.push(Point {
            task_id: prompt.task_id.clone(),
            number: self.counters.tasks,
            prompt: prompt.typed().to_owned(),
            message_id: prompt.message_id.clone(),
            timestamp: prompt.timestamp,
            first_step: u64::from(self.counters.steps) + 1,
            steps: 0,
            commands: Vec::new(),
            lasting: Vec::new(),
            files_undone: false,
        });
    }

    pub(super) fn note_step(&mut self) {
        if let Some(point) = self.rewinds.points.last_mut() {
            point.steps += 1;
        }
    }

    pub(super) fn note_ran(&mut self, call: &Call) {
        self.note_what_ran(call.ran.clone());
    }

    pub(super) fn note_what_ran(&mut self, Ran { command, lasting }: Ran) {
        let Some(point) = self.rewinds.points.last_mut() else { return };
        for (one, list) in [(command, &mut point.commands), (lasting, &mut point.lasting)] {
            if let Some(one) = one.filter(|one| list.len() < COMMANDS && !list.contains(one)) {
                list.push(one);
            }
        }
    }

    pub(super) fn list_rewind_points(&mut self) {
        let points = self.rewinds.points.iter().map(Point::told).collect();
        self.out.push(Effect::TellRewindPoints { points, can_redo: !self.rewinds.done.is_empty() });
    }

    pub(super) fn plan_rewind(&mut self, target: &RewindTarget, scope: RewindScope) {
        match self.aim(target, scope) {
            Ok(aim) => {
                let plan = RewindPlan {
                    target: aim.target,
                    scope: aim.scope,
                    point: aim.point.as_ref().map(Point::told),
                    files: Vec::new(),
                    diff: String::new(),
                    cannot: aim.cannot,
                    messages: aim.messages,
                };
                let since = aim.scope.files().then_some(aim.since);
                self.out.push(Effect::PlanRewind { plan, since });
            }
            Err(why) => self.notice(why),
        }
    }

    pub(super) fn rewind(&mut self, target: &RewindTarget, scope: RewindScope, overwrite: Vec<PathBuf>, at: Moment) {
        if self.is_rewinding() {
            return self.notice("files are being put back already");
        }
        let aim = match self.aim(target, scope) {
            Ok(aim) => aim,
            Err(why) => return self.notice(why),
        };
        if !self.stand_still(at) {
            return self.notice("a task is running; stop it first, then go back");
        }
        // What was left open has its results by now.
        let aim = self.aim(target, scope).unwrap_or(aim);
        let number = self.rewinds.count + 1;
        self.note(Record::RewindStarted {
            rewind_id: FileRewind::id_of(number).to_string(),
            target: aim.target.clone(),
            scope: aim.scope,
            overwrite: overwrite.clone(),
        });
        self.commit(Durability::Power);
        self.rewinds.count = number;
        let begins_next = self.queue.is_empty();
        self.rewinds.under_way = Some(UnderWay { number, aim, overwrite, begins_next, then: None });
        self.put_files_back(at);
    }

    /// Ends a task that only waits for the person. Whether nothing runs now.
    fn stand_still(&mut self, at: Moment) -> bool {
        if self.opening.is_some() || self.is_compacting() {
            return false;
        }
        let Some(task) = &self.task else { return true };
        let waits = match &task.phase {
            Phase::Paused => true,
            Phase::Working(calls) => {
                // A question, or a call that a crash left open, waits for nobody else.
                let waits = |call: &Call| matches!(call.state, CallState::Unknown | CallState::Asking(_));
                let still = |call: &Call| waits(call) || matches!(call.state, CallState::Deferred | CallState::Done(_));
                calls.iter().any(waits) && calls.iter().all(still)
            }
            Phase::Requesting(_) | Phase::Retrying { .. } | Phase::Compacting => false,
        };
        if waits {
            if matches!(task.phase, Phase::Working(_)) {
                self.close_calls(at);
                self.enter(TaskStatus::ExecutingTools);
                self.enter(TaskStatus::TaskRunning);
            }
            self.end(TaskEnd::Cancelled);
        }
        waits
    }

    fn put_files_back(&mut self, at: Moment) {
        let Some(UnderWay { number, aim, overwrite, .. }) = &self.rewinds.under_way else { return };
        if aim.scope.files() {
            let step = u64::from(self.counters.steps).max(1);
            let rewind = FileRewind { number: *number, since: aim.since, step, overwrite: overwrite.clone() };
            self.out.push(Effect::Rewind(rewind));
        } else {
            let number = *number;
            self.files_rewound(number, Ok(FilesRewound::default()), at);
        }
    }

    pub(super) fn files_rewound(&mut self, number: u32, outcome: Result<FilesRewound, String>, at: Moment) {
        let Some(UnderWay { begins_next, then, .. }) = self.rewound(number, outcome) else { return };
        match then {
            Some(unfinished) => self.take_up_nothing(unfinished, at),
            None if begins_next && !self.queue.is_empty() => self.start_next(at),
            None => {}
        }
        // Somebody may wait for a task that was asked for while files were put back.
        if begins_next && then.is_some() && !self.is_busy() && !self.queue.is_empty() {
            self.start_next(at);
        }
    }

    /// It is done: saved, told, and what was said is cut.
    pub(super) fn rewound(&mut self, number: u32, outcome: Result<FilesRewound, String>) -> Option<UnderWay> {
        let under_way = self.rewinds.under_way.take_if(|one| one.number == number)?;
        let aim = &under_way.aim;
        let rewound = match outcome {
            Ok(files) => {
                let redo = aim.target == RewindTarget::Redo;
                let message = told(aim, &files, redo);
                let (target, scope) = (aim.target.clone(), aim.scope);
                let prompt = aim.prompt.clone().filter(|_| aim.from.is_some());
                let FilesRewound { restored, kept } = files;
                Rewound { target, scope, restored, kept, messages: aim.messages, message, prompt }
            }
            // Nothing was done to files, so what was said stays too.
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
        let rewind_id = FileRewind::id_of(number).to_string();
        self.note(Record::Rewound { rewind_id, from: from.clone(), rewound: rewound.clone() });
        self.commit(Durability::Power);
        self.apply(number, from.as_ref(), &rewound);
        self.emit(EventKind::Rewound(rewound));
        Some(under_way)
    }

    /// What a rewind makes of the conversation, also as a journal tells it.
    fn apply(&mut self, number: u32, from: Option<&MessageId>, rewound: &Rewound) {
        let (ended, blocked) = (self.ended.take(), self.blocked.take());
        if rewound.target == RewindTarget::Redo {
            if (rewound.scope.conversation() || rewound.restored > 0)
                && let Some(done) = self.rewinds.done.pop()
            {
                (self.rewinds.points, self.rewinds.note) = (done.points, done.note);
                if done.scope.conversation() {
                    self.thread = done.thread;
                    self.room.counting.counted = 0;
                }
            }
            return;
        }
        if from.is_none() && rewound.restored == 0 {
            (self.ended, self.blocked) = (ended, blocked);
            return;
        }
        if !rewound.scope.conversation() {
            (self.ended, self.blocked) = (ended, blocked);
        }
        let note = self.rewinds.note.take();
        self.rewinds.done.push(Done {
            number,
            scope: rewound.scope,
            thread: self.thread.clone(),
            points: self.rewinds.points.clone(),
            note: note.clone(),
            messages: rewound.messages,
        });
        let RewindTarget::Before { task_id, step_id } = &rewound.target else { return };
        let place = self.rewinds.points.iter().position(|point| point.task_id == *task_id);
        let place = place.unwrap_or(self.rewinds.points.len());
        self.rewinds.note = note;
        if let Some(from) = from {
            self.thread.cut_off(from);
            self.room.counting.counted = 0;
            self.rewinds.points.truncate(place + usize::from(step_id.is_some()));
            if let (Some(step), Some(point)) = (step_id, self.rewinds.points.get_mut(place)) {
                point.steps = u32::try_from(step.number().saturating_sub(point.first_step)).unwrap_or(point.steps);
            }
        }
        match rewound.scope {
            RewindScope::Both => {}
            RewindScope::Files => {
                self.rewinds.points.iter_mut().skip(place).for_each(|point| point.files_undone = true);
                let files = counted(rewound.restored, "file", "files");
                self.rewinds.note = Some(format!(
                    "[The person put {files} back to what they were before an earlier part of this conversation. Read a file again \
                     before you rely on what you know of it.]"
                ));
            }
            RewindScope::Conversation => {
                self.rewinds.note = Some(
                    "[The person took back what was said after this. What was done to files then is still there: read a file before \
                     you rely on what you know of it.]"
                        .to_owned(),
                );
            }
        }
    }

    /// The prompt with the note in it, for the thread.
    pub(super) fn told_of_rewind(&mut self, mut prompt: Message) -> Message {
        if let Some(note) = self.rewinds.note.take() {
            // The first part stays what was typed.
            let place = prompt.content.len().min(1);
            prompt.content.insert(place, Part::Text { text: format!("\n\n{note}") });
            prompt.token_count = super::estimate(&prompt.content);
        }
        prompt
    }

    pub(super) fn fold_rewind_started(&mut self, id: &str, target: &RewindTarget, scope: RewindScope, overwrite: Vec<PathBuf>) {
        // It began where no task ran.
        self.task = None;
        let number = FileRewind::number_of(&TaskId::new(id)).unwrap_or(self.rewinds.count + 1);
        self.rewinds.count = self.rewinds.count.max(number);
        let aim = self.aim(target, scope).ok();
        self.rewinds.under_way = aim.map(|aim| UnderWay { number, aim, overwrite, begins_next: true, then: None });
    }

    pub(super) fn fold_rewound(&mut self, id: &str, from: Option<&MessageId>, rewound: &Rewound) {
        self.task = None;
        self.rewinds.under_way = None;
        let number = FileRewind::number_of(&TaskId::new(id)).unwrap_or(self.rewinds.count);
        self.rewinds.count = self.rewinds.count.max(number);
        self.apply(number, from, rewound);
    }

    /// Does the rest of a rewind that the process before this one began. Whether there was one.
    pub(super) fn finish_rewind(&mut self, unfinished: Unfinished) -> bool {
        let begins_next = self.queue.is_empty();
        let Some(under_way) = &mut self.rewinds.under_way else { return false };
        (under_way.begins_next, under_way.then) = (begins_next, Some(unfinished));
        let (number, files, aim) = (under_way.number, under_way.aim.scope.files(), &under_way.aim);
        let overwrite = under_way.overwrite.clone();
        let since = aim.since;
        if !self.queue.is_empty() {
            self.emit(self.queue.event());
        }
        // Without files there is nothing to wait for, but the person hears of it the same way.
        let since = if files { since } else { Since::Rewind(u32::MAX) };
        let step = u64::from(self.counters.steps).max(1);
        self.out.push(Effect::Rewind(FileRewind { number, since, step, overwrite }));
        true
    }

    /// Looks up where this leads.
    fn aim(&self, target: &RewindTarget, scope: RewindScope) -> Result<Aim, String> {
        let points = &self.rewinds.points;
        let nothing = || "nothing to go back to: nothing was said here yet".to_owned();
        let (task_id, step_id) = match target {
            RewindTarget::Redo => {
                let done = self.rewinds.done.last();
                let done = done.ok_or("nothing to redo: a rewind can be taken back until the next prompt")?;
                return Ok(Aim {
                    target: RewindTarget::Redo,
                    scope: done.scope,
                    since: Since::Rewind(done.number),
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
        let place = place.ok_or_else(|| format!("there is no prompt `{task_id}` in this conversation any more"))?;
        let point = &points[place];
        let mut from = match &step_id {
            None => Some(point.message_id.clone()),
            Some(step) => {
                let of_task = step.number() >= point.first_step;
                let answer = self.thread.answer_of(step).filter(|_| of_task);
                Some(answer.ok_or_else(|| format!("there is no step `{step}` in this conversation any more"))?)
            }
        };
        let messages = from.as_ref().and_then(|from| self.thread.clone().cut_off(from)).unwrap_or(0);
        if !scope.conversation() {
            from = None;
        }
        let since = Since::Step(step_id.as_ref().map_or(point.first_step, crate::protocol::StepId::number));
        let later = &points[place..];
        let mut cannot: Vec<String> = later.iter().flat_map(|point| point.lasting.iter().cloned()).collect();
        if scope.files() && later.iter().any(|point| !point.commands.is_empty()) {
            cannot.push("what commands changed outside the workspace, or where git ignores it, stays".to_owned());
        }
        Ok(Aim {
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
    fn told(&self) -> RewindPoint {
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

/// In a sentence, for the person.
fn told(aim: &Aim, files: &FilesRewound, redo: bool) -> String {
    let mut parts = Vec::new();
    if aim.scope.files() {
        let done = counted(files.restored, "file", "files");
        parts.push(if files.restored == 0 { "no file had to be put back".to_owned() } else { format!("{done} put back") });
    }
    if aim.scope.conversation() {
        let messages = counted(aim.messages, "message", "messages");
        parts.push(format!("{messages} {}", if redo { "are there again" } else { "taken back" }));
    }
    if !files.kept.is_empty() {
        let names: Vec<_> = files.kept.iter().take(MAX_NAMED).map(|one| one.path.display().to_string()).collect();
        let more = files.kept.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let stay = if files.kept.len() == 1 { "stays as it is" } else { "stay as they are" };
        parts.push(format!("{}{more} {stay}", names.join(", ")));
    }
    let what = match (&aim.point, &aim.target) {
        (Some(point), RewindTarget::Before { step_id: Some(_), .. }) => format!("back in prompt {}", point.number),
        (Some(point), _) => format!("back before prompt {}", point.number),
        (None, _) => "forth again".to_owned(),
    };
    format!("{what}: {}", parts.join(", "))
}
