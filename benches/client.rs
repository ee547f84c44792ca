//! Cost of aye itself, measured with the built binary and a scripted model: startup, idle time, streams, steps.
//!
//! `cargo bench --profile dist` prints one row per figure: the measured value and its limit.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed measurement ends the run")]

#[expect(dead_code, unused_imports, reason = "tests use the rest of it")]
#[path = "../tests/support/mod.rs"]
mod support;

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::json;
use std::time::{Duration, Instant};
use support::{Answer, Project, Server};

const MODEL: &str = "anthropic/scripted";
const RUNS: usize = 5;
const STEPS: usize = 100;
const DELTA_BYTES: usize = 32;

fn main() {
    println!("{:<44} {:>10} {:>10}", "figure (median)", "measured", "limit");
    start();
    idle();
    steps();
    stream(128, 0.2);
    stream(1024, 1.0);
}

fn row(figure: &str, measured: f64, limit: f64, unit: &str) {
    let mark = if measured > limit { "  over" } else { "" };
    println!("{figure:<44} {measured:>7.2} {unit:<2} {limit:>7.2} {unit}{mark}");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the user and system CPU time of all finished child processes, in seconds.
fn children_cpu() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("usage of children");
    [usage.user_time(), usage.system_time()].iter().map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6).sum()
}

/// Measures the time from spawn until a typed character is on the screen.
fn start() {
    let server = Server::new([]);
    let project = Project::with(&server);
    let times = (0..=RUNS)
        .map(|_| {
            let began = Instant::now();
            let mut terminal = project.open(&["-m", MODEL]);
            terminal.wait_for("Ask, or describe a change");
            terminal.send("Z");
            terminal.wait_that("the letter", |screen| screen.contains('Z'));
            let took = began.elapsed().as_secs_f64() * 1000.0;
            terminal.kill();
            took
        })
        .skip(1)
        .collect();
    row("prompt takes a key after spawn", median(times), 30.0, "ms");
}

/// Measures memory and CPU time while idle.
fn idle() {
    let server = Server::new([]);
    let project = Project::with(&server);
    let mut terminal = project.open(&["-m", MODEL]);
    terminal.wait_for("Ask, or describe a change");
    std::thread::sleep(Duration::from_secs(2));
    let pid = terminal.pid();
    let before = ticks(pid);
    std::thread::sleep(Duration::from_secs(5));
    row("idle memory (PSS)", pss_mb(pid), 25.0, "MB");
    row("idle CPU time in 5 s", (ticks(pid) - before) as f64 * 10.0, 0.0, "ms");
    terminal.kill();
}

fn pss_mb(pid: u32) -> f64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find(|line| line.starts_with("Pss:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}

/// Returns the CPU time that a process has used, in clock ticks. A second has 100 ticks.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Measures a loop of file reads: the wall time of a step, including disk sync, and the growth of its CPU time.
fn steps() {
    let read = |step: usize| Answer::call(&format!("call_{step}"), "ReadFile", json!({"path": "note.txt"}));
    let measure = |count: usize| {
        let server = Server::new((0..count).map(read).chain([Answer::text("done")]));
        let project = Project::with(&server).file("note.txt", "one line\n");
        let began = Instant::now();
        project.aye(&["exec", "-m", MODEL, "--max-steps", "5000", "loop"]).exits(0);
        began.elapsed().as_secs_f64() * 1000.0
    };
    let short = median((0..RUNS).map(|_| measure(STEPS)).collect());
    let long = measure(STEPS * 10);
    row("a step of the tool loop (100 steps)", short / STEPS as f64, 5.0, "ms");
    row("the same over 1,000 steps, the server included", long / (STEPS * 10) as f64, 5.0, "ms");
    let processor = |count: usize| {
        let server = Server::new((0..count).map(read).chain([Answer::text("done")]));
        let project = Project::with(&server).file("note.txt", "one line\n").config("[context]\ncompact_at_percent = 0\n");
        let before = children_cpu();
        project.aye(&["exec", "-m", MODEL, "--max-steps", "5000", "loop"]).exits(0);
        (children_cpu() - before) * 1000.0
    };
    // All three values include the cost of startup, which cancels out.
    let (few, more, many) = (processor(STEPS), processor(STEPS * 2), processor(STEPS * 50));
    let early = (more - few) / STEPS as f64;
    row("CPU time of a step, at step 100", early, 3.0, "ms");
    row("the same, over 5,000 steps", (many - few) / (STEPS * 49) as f64, (early * 1.3).min(3.0), "ms");
}

/// Measures the display of a long response.
fn stream(kib: usize, limit_s: f64) {
    let paragraph =
        "The **parser** reads each `token` and keeps a small stack of open blocks, so that only what changed is drawn.\n\n";
    let mut text = paragraph.repeat(kib * 1024 / paragraph.len());
    text.push_str("the-very-end");
    let pieces: Vec<&str> = text.as_bytes().chunks(DELTA_BYTES).map(|piece| std::str::from_utf8(piece).expect("ASCII")).collect();
    let times = (0..RUNS)
        .map(|_| {
            let answer = pieces.iter().fold(Answer::empty(), |answer, piece| answer.and(piece));
            let server = Server::new([answer]);
            let project = Project::with(&server);
            let before = children_cpu();
            let mut terminal = project.open(&["-m", MODEL]);
            terminal.prompt("tell me");
            terminal.wait_for("the-very-end");
            terminal.quit();
            children_cpu() - before
        })
        .collect();
    row(&format!("CPU time for a response of {kib} KiB"), median(times), limit_s, "s");
}
