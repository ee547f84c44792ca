//! May this happen? Pure: bundle and action in, verdict, rule, reason and risk out. No disk, no clock, no environment.

pub mod permit;

pub use permit::{Denial, Grant, Permit, Question, Verdict};
