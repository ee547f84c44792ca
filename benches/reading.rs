//! Cost of reading 20 lines far inside a large file: the time and the peak memory of the process.
//!
//! `cargo bench --profile dist --bench reading` prints one row per figure: the measured value and its limit.

#![expect(clippy::unwrap_used, reason = "a failed measurement ends the run")]

use nix::sys::resource::{UsageWho, getrusage};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const FILE_BYTES: u64 = 1 << 30;
const FIRST_LINE: u64 = 5_000_000;
const LINES: u64 = 20;
/// Length of a line, in bytes.
const LINE_BYTES: usize = 200;
const RUNS: usize = 5;
/// Maximum time in milliseconds, not counting process startup.
const MAX_MS: u128 = 1_000;
const MAX_MB: i64 = 64;

fn main() {
    let directory = tempfile::tempdir_in(Path::new(env!("CARGO_BIN_EXE_aye")).parent().unwrap()).unwrap();
    let base = fs::canonicalize(directory.path()).unwrap();
    let workspace = base.join("workspace");
    fs::create_dir(&workspace).unwrap();
    fs::write(workspace.join("small"), "one\n").unwrap();
    write_lines(&workspace.join("large"), "utf-8");
    println!("{:<56} {:>10} {:>10}", "figure", "measured", "limit");
    let start = quickest(|| read(&base, r#"{"path": "small"}"#, "one"));
    println!("{:<56} {:>7} ms {:>10}", "a small file, the start of the process included", start, "");
    let memory_before = peak_mb();
    let range = format!(r#""offset": {FIRST_LINE}, "limit": {LINES}"#);
    let far = quickest(|| read(&base, &format!(r#"{{"path": "large", {range}}}"#), &format!("line {FIRST_LINE} ")));
    println!("{:<56} {:>7} ms {:>7} ms", "20 lines at line 5,000,000 of 1 GB, beyond that", far.saturating_sub(start), MAX_MS);
    println!("{:<56} {:>7} MB {:>7} MB", "peak memory, beyond that of the small file", peak_mb() - memory_before, MAX_MB);
    write_lines(&workspace.join("large"), "utf-16");
    let wide = quickest(|| {
        let arguments = format!(r#"{{"path": "large", "offset": {}, "limit": {LINES}}}"#, FIRST_LINE / 2);
        read(&base, &arguments, &format!("line {} ", FIRST_LINE / 2));
    });
    println!("{:<56} {:>7} ms {:>7} ms", "the same at line 2,500,000 in UTF-16", wide.saturating_sub(start), 2 * MAX_MS);
}

fn write_lines(path: &Path, encoding: &str) {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    let (mut written, mut number) = (0, 1_u64);
    if encoding == "utf-16" {
        file.write_all(&[0xFF, 0xFE]).unwrap();
    }
    while written < FILE_BYTES {
        let mut line = format!("line {number} -- {}", "some words that stand in a log -- ".repeat(6));
        line.truncate(LINE_BYTES - 1);
        line.push('\n');
        if encoding == "utf-16" {
            let wide: Vec<u8> = line.encode_utf16().flat_map(u16::to_le_bytes).collect();
            file.write_all(&wide).unwrap();
            written += wide.len() as u64;
        } else {
            file.write_all(line.as_bytes()).unwrap();
            written += line.len() as u64;
        }
        number += 1;
    }
    file.flush().unwrap();
}

/// Returns the duration of the fastest run, in milliseconds.
fn quickest(mut run: impl FnMut()) -> u128 {
    let time = |()| {
        let begun = Instant::now();
        run();
        begun.elapsed().as_millis()
    };
    std::iter::repeat_n((), RUNS).map(time).min().unwrap()
}

fn read(base: &Path, arguments: &str, begins: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_aye"))
        .args(["tool", "call", "ReadFile", "--args", arguments, "--json"])
        .current_dir(base.join("workspace"))
        .env("AYE_CONFIG_DIR", base.join("config"))
        .env("AYE_DATA_DIR", base.join("data"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains(&format!("\"outputText\":\"{begins}")), "{told:.500}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the largest peak memory of all finished child processes, in MiB.
fn peak_mb() -> i64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() / 1024
}
