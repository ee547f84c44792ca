//! The state of a session, as recorded in its journal: the only code that knows the meaning of a record.
//!
//! [`SessionState::apply`] takes the records one by one and returns the changes that each of them made. All code that
//! shows, summarizes or resumes a session is a view: it reads the state, or it consumes the changes in order.

mod authority;
mod calls;
mod change;
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
#[cfg(test)]
pub use calls::CallDenial;
pub use calls::{CallStage, OpenCall};
pub use change::{Applied, CallChange, Change, Payer, RewindEffect};
pub use response::Parts;
pub use rewinds::Prompt;
pub use state::{ModelChoice, SessionState};
pub use status::SessionStatus;
pub use tally::{Spent, Tally, TallyCounter, TallyEntry, Totals};
pub use task::TaskProgress;
