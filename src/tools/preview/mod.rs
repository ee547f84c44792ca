//! A command run in a view of its own: what it did is known before any of it is kept.

mod effects;
mod keep;
mod offer;
mod recover;
#[cfg(test)]
mod tests;
mod trial;
mod view;

pub(super) use keep::{Settled, commit};
pub(super) use offer::offer;
pub use recover::Recovered;
pub(super) use recover::{Resumed, recover};
pub(super) use trial::{Kept, Trial, run};
