//! Session state as recorded in the journal. Only this module interprets records.
//!
//! [`SessionState::apply`] processes one record at a time and returns the change that the record makes. Code that
//! shows, summarizes or resumes a session is a view of this module: it either reads the state or consumes the changes
//! in order.

mod authority;
mod call_change;
mod calls;
mod change;
mod goal;
mod last_task;
mod model_choice;
mod records;
mod response;
mod rewinds;
mod state;
mod status;
mod tally;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use authority::without_authority;
pub(crate) use call_change::CallChange;
pub(crate) use calls::{CallStage, OpenCall};
pub(crate) use change::{AppliedRecord, Change, Payer};
pub(crate) use goal::{GoalProgress, GoalStage};
pub(crate) use last_task::{denied_calls, last_task_records};
pub(crate) use model_choice::ModelChoice;
pub(crate) use records::{plans_call, starts_step};
pub(crate) use response::ResponseParts;
pub(crate) use rewinds::PromptRewind;
pub(crate) use state::{Mandate, SessionState};
pub(crate) use status::SessionActivity;
pub(crate) use tally::{Expense, Tally, TallyCounter, TallyEntry, Totals};
pub(crate) use task::{TaskProgress, TaskStage};
