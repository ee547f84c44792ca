//! The state of a session, as recorded in its journal: the only code that knows the meaning of a record.
//!
//! [`SessionState::apply`] takes the records one by one and returns the changes that each of them made. All code that
//! shows, summarizes or resumes a session is a view: it reads the state, or it consumes the changes in order.

mod authority;
mod call_change;
mod calls;
mod change;
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

pub use authority::without_authority;
pub use call_change::CallChange;
#[cfg(test)]
pub use calls::CallDenial;
pub use calls::{CallStage, OpenCall};
pub use change::{Applied, Change, Payer};
pub use model_choice::ModelChoice;
pub use records::{begins_step, plans_call};
pub use response::Parts;
pub use rewinds::RewindEffect;
pub use state::SessionState;
pub use status::SessionStatus;
pub use tally::{Spent, Tally, TallyCounter, TallyEntry, Totals};
pub use task::TaskProgress;
