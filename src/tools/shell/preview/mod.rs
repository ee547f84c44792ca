//! A command run in a view of its own: what it did is known before any of it is kept.

mod build_output;
mod effects;
mod end;
mod keep;
mod offer;
mod recover;
#[cfg(test)]
mod tests;
mod trial;
mod view;

pub(in crate::tools) use keep::{Settled, commit};
pub(in crate::tools) use offer::{layer, offer};
pub use recover::Recovered;
pub(in crate::tools) use recover::{Resumed, recover};
pub(in crate::tools) use trial::{Kept, Trial, run};
