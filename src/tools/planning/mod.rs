//! Tools that organize the work on a task by means of questions to the user, plans and steps. They have no effect
//! outside the session.

pub(super) mod ask_user;
mod plan_document;
pub(super) mod propose_plan;
pub(super) mod update_steps;
