//! Cost of a journal: commits early and late in a long session, the size of the database relative to its text, and the
//! resume of a long session.
//!
//! `cargo bench --profile dist --bench journal --features fuzzing` prints one row per figure: the measured value and
//! its limit.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed measurement ends the run")]

mod start;
#[expect(dead_code, unused_imports, reason = "tests use the rest of it")]
#[path = "../tests/support/mod.rs"]
mod support;

use aye::fuzzing::journal::Measure;
use start::until_prompt;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use support::{Project, Server};

const MODEL: &str = "anthropic/scripted";
const STEPS: u32 = 10_000;
/// Number of steps whose commits are measured, both early and late in the session.
const SAMPLED: u32 = 100;
const RUNS: usize = 7;
const SMALL: usize = 200;
const LARGE: usize = 50_000;
/// Number of steps that fill a database with some hundred megabytes of text.
const LARGE_STEPS: u32 = 2_000;

fn main() {
    println!("{:<52} {:>10} {:>10}", "figure (median)", "measured", "limit");
    let server = Server::new([]);
    let project = Project::with(&server);
    let data = project.directory("data");
    let sync = synced(&data);
    row("fsync of 4 KB on this disk", sync, f64::NAN, "ms");
    let id = small(&project, sync);
    resume(&project, &id);
    large();
}

fn row(figure: &str, measured: f64, limit: f64, unit: &str) {
    let mark = if measured > limit { "  over" } else { "" };
    println!("{figure:<52} {measured:>7.2} {unit:<2} {limit:>7.2} {unit}{mark}");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn ms(times: Vec<Duration>) -> f64 {
    median(times.into_iter().map(|time| time.as_secs_f64() * 1000.0).collect())
}

fn synced(directory: &Path) -> f64 {
    let path = directory.join("probe");
    let mut file = std::fs::File::create(&path).unwrap();
    let times = (0..200).map(|_| {
        file.write_all(&[7; 4096]).unwrap();
        let began = Instant::now();
        file.sync_data().unwrap();
        began.elapsed()
    });
    let median = ms(times.collect());
    std::fs::remove_file(path).unwrap();
    median
}

fn database(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).unwrap().flatten();
    files.filter(|file| file.file_name().to_string_lossy().starts_with("aye.db")).map(|file| file.metadata().unwrap().len()).sum()
}

/// Creates a long session of small steps; returns its ID.
fn small(project: &Project, sync: f64) -> String {
    let data = project.directory("data");
    let mut measure = Measure::new(&data, &project.path(""), "measured", SMALL).unwrap();
    measure.steps(10).unwrap();
    measure.sync(true);
    let early = ms(measure.steps(SAMPLED).unwrap());
    measure.sync(false);
    let early_alone = ms(measure.steps(SAMPLED).unwrap());
    measure.steps(STEPS - 3 * SAMPLED).unwrap();
    let late_alone = ms(measure.steps(SAMPLED).unwrap());
    measure.sync(true);
    let late = ms(measure.steps(SAMPLED).unwrap());
    row("commit at step 10, beyond the fsync", early - sync, 1.0, "ms");
    row("commit at step 10,000, beyond the fsync", late - sync, 1.0, "ms");
    row("step 10,000 : step 10, synced", late / early, 1.2, "x");
    row("commit at step 10, not synced", early_alone, 1.0, "ms");
    row("commit at step 10,000, not synced", late_alone, 1.0, "ms");
    row("step 10,000 : step 10, not synced", late_alone / early_alone, 1.2, "x");
    let id = measure.id();
    let said = measure.end().unwrap();
    row("database : text, results of 200 bytes", database(&data) as f64 / said as f64, 1.3, "x");
    id
}

fn large() {
    let directory = tempfile::tempdir().unwrap();
    let mut measure = Measure::new(directory.path(), Path::new("/src/greeter"), "measured", LARGE).unwrap();
    let times = measure.steps(LARGE_STEPS).unwrap();
    row("commit of 50 KB and more, not synced", ms(times), f64::NAN, "ms");
    let said = measure.end().unwrap();
    row("database : text, results of 50 KB", database(directory.path()) as f64 / said as f64, 1.3, "x");
    salvage(directory.path());
}

/// Measures the recovery of the store after its first page and one in the middle are overwritten with zeros.
fn salvage(directory: &Path) {
    let path = directory.join("aye.db");
    let mut content = std::fs::read(&path).unwrap();
    let middle = content.len() / 2 / 4096 * 4096;
    content[..4096].fill(0);
    content[middle..middle + 4096].fill(0);
    std::fs::write(&path, &content).unwrap();
    let began = Instant::now();
    let said = aye::fuzzing::journal::open(directory).unwrap();
    let megabytes = content.len() as f64 / f64::from(1 << 20);
    row(&format!("recovery of {megabytes:.0} MB"), began.elapsed().as_secs_f64(), 2.0 * (megabytes / 64.0).max(1.0), "s");
    println!("  {}", said.join("; "));
}

/// Measures the time from spawn until a typed character is on the screen, both without a session and with the long one.
fn resume(project: &Project, id: &str) {
    let server = Server::new([]);
    let empty = Project::with(&server);
    let new = ms((0..RUNS).map(|_| until_prompt(&empty, &["-m", MODEL])).collect());
    let again = format!("--resume={id}");
    let long = ms((0..RUNS).map(|_| until_prompt(project, &["-m", MODEL, &again])).collect());
    row("start to prompt, no session", new, f64::NAN, "ms");
    row("start to prompt, session of 10,000 steps", long, f64::NAN, "ms");
    row("10,000 steps : nothing", long / new, 1.5, "x");
}
