//! What the records of a session come to: what was said, which task is the last, where it stands.

use super::checkpoint::TaskState;
use crate::ports::{Record, TaskEnd};
use crate::protocol::{Message, MessageId, RewindTarget, Rewound, StepId, TaskId, Usage, Waiting};

/// The records of a session, looked at one after the other.
#[derive(Debug, Default)]
pub struct Fold {
    /// All that was said, in its order, also what a summary stands for now.
    pub said: Vec<Message>,
    pub task: Option<TaskState>,
    /// The last step that was completed.
    pub step_cursor: Option<StepId>,
    /// Whether a pause or a crash is why nothing goes on.
    pub paused: bool,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    pub estimated: bool,
    pub queue: Vec<Waiting>,
    pub policy_bundle_version: Option<String>,
    /// Of a session that was imported: whose it was there.
    pub tenant_id: Option<String>,
    pub user_id: Option<String>,
    /// The step that is under way, and which of its task it is.
    step: Option<(StepId, u32)>,
    /// What was said before each rewind that can still be taken back, where it changed that.
    rewound: Vec<Option<Vec<Message>>>,
}

impl Fold {
    pub fn add(&mut self, record: &Record) {
        match record {
            Record::TaskStarted { prompt, max_steps } => {
                self.rewound.clear();
                self.paused = false;
                self.step = None;
                self.task = Some(TaskState {
                    task_id: TaskId::new(prompt.task_id.as_str()),
                    prompt: prompt.text(),
                    status: "running".to_owned(),
                    step_count: 0,
                    max_steps: *max_steps,
                });
                self.say(prompt);
            }
            Record::StepStarted { step_id, step_count, .. } => {
                // A step that is followed by the next one was completed; one that is begun anew was not.
                if let Some((before, _)) = self.step.take().filter(|(_, count)| count < step_count) {
                    self.step_cursor = Some(before);
                }
                self.step = Some((step_id.clone(), *step_count));
                self.completed(step_count.saturating_sub(1));
            }
            Record::Answer { message, usage, cost_usd, estimated, .. } => {
                if !message.content.is_empty() {
                    self.say(message);
                }
                self.count(*usage, *cost_usd, *estimated);
            }
            Record::Wasted { usage, cost_usd, estimated }
            | Record::Sampled { usage, cost_usd, estimated, .. }
            | Record::Compacted { usage, cost_usd, estimated, .. } => {
                self.count(*usage, *cost_usd, *estimated);
            }
            Record::Steered { message } => self.say(message),
            Record::StepCompleted { step_id, step_count, message, .. } => {
                self.say(message);
                self.step_cursor = Some(step_id.clone());
                self.step = None;
                self.completed(*step_count);
            }
            Record::ApprovalRequested { .. } => self.stands("waiting"),
            Record::Decided { .. } => self.stands("running"),
            Record::Continued => {
                self.paused = false;
                // A task that had ended is taken up with all its steps.
                if self.task.as_ref().is_some_and(|task| matches!(task.status.as_str(), "failed" | "cancelled")) {
                    self.completed(0);
                }
                self.stands("running");
            }
            Record::Paused { .. } => {
                self.paused = true;
                self.stands("paused");
            }
            Record::TaskEnded { end, step_count, .. } => {
                self.paused = false;
                self.completed(*step_count);
                self.stands(match end {
                    TaskEnd::Completed => "completed",
                    TaskEnd::Failed { .. } => "failed",
                    TaskEnd::Cancelled => "cancelled",
                });
                // The last answer of a task that is done is a step without calls.
                if let Some((step, _)) = self.step.take().filter(|(_, count)| count <= step_count) {
                    self.step_cursor = Some(step);
                }
            }
            Record::Imported { tenant_id, user_id, policy_bundle_version, step_count, step_cursor } => {
                self.tenant_id.clone_from(tenant_id);
                self.user_id.clone_from(user_id);
                self.policy_bundle_version.clone_from(policy_bundle_version);
                if step_cursor.is_some() {
                    self.step_cursor.clone_from(step_cursor);
                }
                self.completed(*step_count);
            }
            Record::Rewound { from, rewound, .. } => self.rewind(from.as_ref(), rewound),
            Record::Queue { prompts } => self.queue.clone_from(prompts),
            Record::PolicyInForce { layers, .. } => {
                self.policy_bundle_version = layers.iter().rev().find_map(|layer| layer.bundle_version.clone());
            }
            _ => {}
        }
    }

    /// What was taken back was not said, until that is taken back too.
    fn rewind(&mut self, from: Option<&MessageId>, rewound: &Rewound) {
        if rewound.target == RewindTarget::Redo {
            if (rewound.scope.conversation() || rewound.restored > 0)
                && let Some(Some(said)) = self.rewound.pop()
            {
                self.said = said;
            }
            return;
        }
        if from.is_none() && rewound.restored == 0 {
            return;
        }
        self.rewound.push(rewound.scope.conversation().then(|| self.said.clone()));
        if let Some(place) = from.and_then(|from| self.said.iter().position(|said| said.message_id == *from)) {
            self.said.truncate(place);
        }
        let gone = |task: &TaskState| !self.said.iter().any(|said| said.task_id == task.task_id);
        if self.task.as_ref().is_some_and(gone) {
            self.task = None;
        }
    }

    /// Written twice, it was said once.
    fn say(&mut self, message: &Message) {
        if !self.said.iter().rev().take(3).any(|said| said.message_id == message.message_id) {
            self.said.push(message.clone());
        }
    }

    /// So many steps of the task are completed.
    fn completed(&mut self, steps: u32) {
        if let Some(task) = &mut self.task {
            task.step_count = steps;
        }
    }

    fn stands(&mut self, status: &str) {
        if let Some(task) = &mut self.task {
            status.clone_into(&mut task.status);
        }
    }

    fn count(&mut self, usage: Usage, cost_usd: Option<f64>, estimated: bool) {
        self.usage += usage;
        self.estimated |= estimated;
        if let Some(cost) = cost_usd {
            self.cost_usd = Some(self.cost_usd.unwrap_or_default() + cost);
        }
    }
}
