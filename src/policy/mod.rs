//! May this happen? Pure: bundle and action in, verdict, rule, reason and risk out. No disk, no clock, no environment.

mod bundle;
pub mod permit;
mod shell;

pub use bundle::{Bundle, BundleError};
pub use permit::{Denial, Grant, Permit, Question, Verdict};
