//! The command line, wiring, exit codes; decides nothing.

pub mod cli;
pub mod exit;
pub mod logging;
