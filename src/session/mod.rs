//! The state of a session, as its journal tells it: the only code that knows what a record means.
//!
//! [`SessionState::apply`] takes one record after the other and returns what each of them changed. Everything that shows, sums up or
//! resumes a session is a view: it reads the state, or it consumes the changes in their order.

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
