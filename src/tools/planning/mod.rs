//! Tools for the work on a task itself: questions to the user, plans, and the steps. They have no effects outside the session.

pub(super) mod ask_user;
mod plan_document;
pub(super) mod propose_plan;
pub(super) mod update_steps;
