//! Commands of the user that concern several sub-machines: rewinds, the policy and the model.

use super::rewind::RewindEffect;
use super::{Call, CallState, Machine, Moment, Phase, Unfinished};
use crate::ports::{FilesRewound, TaskEnd};
use crate::protocol::{RewindScope, RewindTarget, TaskStatus};
use std::path::PathBuf;

impl Machine {
    pub(super) fn plan_rewind(&mut self, target: &RewindTarget, scope: RewindScope) {
        match self.rewinds.plan(target, scope, &self.thread) {
            Ok(effect) => self.out.push(effect),
            Err(why) => self.notice(why),
        }
    }

    pub(super) fn rewind(&mut self, target: &RewindTarget, scope: RewindScope, overwrite: Vec<PathBuf>, at: Moment) {
        if self.rewinds.is_running() {
            return self.notice("files are being put back already");
        }
        let aim = match self.rewinds.resolve(target, scope, &self.thread) {
            Ok(aim) => aim,
            Err(why) => return self.notice(why),
        };
        if !self.stand_still(at) {
            return self.notice("a task is running; stop it first, then go back");
        }
        // What was left open has its results by now.
        let aim = self.rewinds.resolve(target, scope, &self.thread).unwrap_or(aim);
        let (begins_next, step) = (self.queue.is_empty(), self.rewind_step());
        let mut done = None;
        self.with_outputs(|machine, out| done = machine.rewinds.begin(aim, overwrite, (begins_next, step), out));
        if let Some(number) = done {
            self.files_rewound(number, Ok(FilesRewound::default()), at);
        }
    }

    fn rewind_step(&self) -> u64 {
        u64::from(self.counters.steps).max(1)
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

    pub(super) fn files_rewound(&mut self, number: u32, outcome: Result<FilesRewound, String>, at: Moment) {
        let Some((begins_next, then)) = self.rewound(number, outcome) else { return };
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

    /// Finishes a rewind. Returns whether what waits begins next, and what follows where a process before this one began it.
    pub(super) fn rewound(&mut self, number: u32, outcome: Result<FilesRewound, String>) -> Option<(bool, Option<Unfinished>)> {
        let mut after = None;
        self.with_outputs(|machine, out| after = machine.rewinds.finish(number, outcome, &mut machine.thread, out));
        let after = after?;
        self.adopt_rewind(after.effect);
        Some((after.begins_next, after.then))
    }

    /// Adapts the rest of the session to a rewind.
    pub(super) fn adopt_rewind(&mut self, effect: RewindEffect) {
        if effect.forgets_task {
            (self.ended, self.blocked) = (None, None);
        }
        if effect.changes_thread {
            self.room.counting.counted = 0;
        }
    }

    /// Does the rest of a rewind that the process before this one began. Whether there was one.
    pub(super) fn finish_rewind(&mut self, unfinished: Unfinished) -> bool {
        let (begins_next, step) = (self.queue.is_empty(), self.rewind_step());
        let Some(effect) = self.rewinds.resume(begins_next, unfinished, step) else { return false };
        if !begins_next {
            self.emit(self.queue.event());
        }
        self.out.push(effect);
        true
    }
}
