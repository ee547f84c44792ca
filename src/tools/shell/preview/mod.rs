//! Previews: commands run in a private copy-on-write view, so that their effects are known before they are applied.

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
