//! Time from spawn until the prompt is ready.

use crate::support::Project;
use std::time::{Duration, Instant};

/// Measures the time from spawn until a typed character is on the screen.
pub fn until_prompt(project: &Project, arguments: &[&str]) -> Duration {
    let began = Instant::now();
    let mut terminal = project.open(arguments);
    terminal.wait_for("Ask, or describe a change");
    terminal.send("Z");
    terminal.wait_that("the letter", |screen| screen.contains('Z'));
    let took = began.elapsed();
    terminal.kill();
    took
}
