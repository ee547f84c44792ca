//! Stopping: first gently, then by force.

use super::{CallState, Effect, Machine, Moment, Phase};
use crate::ports::{Durability, TaskEnd};
use crate::protocol::ErrorCode;

impl Machine {
    /// The model is stopped and nothing new is started; what runs finishes.
    pub(super) fn cancel(&mut self, at: Moment) {
        let Some(task) = &mut self.task else { return };
        task.cancelling = true;
        match &mut task.phase {
            Phase::Requesting(stream) => {
                let shown = stream.shown;
                self.out.push(Effect::StopModel);
                if shown {
                    self.discard_answer("stopped by you");
                }
                self.end(TaskEnd::Cancelled);
            }
            Phase::Retrying { .. } | Phase::Paused => self.end(TaskEnd::Cancelled),
            Phase::Working(calls) => {
                let mut calls = std::mem::take(calls);
                for call in &mut calls {
                    match call.state {
                        CallState::Deferred | CallState::Asking(_) => {
                            call.refuse(ErrorCode::Cancelled, "the task was stopped before this call ran");
                            self.report(call, 0);
                        }
                        CallState::Unknown => {
                            super::calls::outcome_unknown(call);
                            self.report(call, 0);
                        }
                        CallState::Planning | CallState::Running | CallState::Done(_) => {}
                    }
                }
                if let Some(task) = &mut self.task {
                    task.phase = Phase::Working(calls);
                }
                self.commit(Durability::Process);
                self.advance(at);
            }
        }
    }

    /// As `cancel`, and running commands are killed.
    pub(super) fn kill(&mut self, at: Moment) {
        self.out.push(Effect::KillTools);
        self.cancel(at);
    }
}
