//! Frame times: scrolling through 10,000 entries, a streaming response of 1 MiB, a resize, a search.
//!
//! `cargo bench --profile dist --bench screen --features fuzzing` prints the median, the 99th percentile and the
//! longest frame, and the largest CPU time of a frame. If the CPU time is well below the longest frame, the machine was
//! busy with other work. A frame covers everything between an input and the bytes for the terminal; the limit for a
//! scrolling frame is 8 ms.

#![expect(clippy::unwrap_used, reason = "a failed measurement ends the run")]

use aye::fuzzing::screen::BenchScreen;
use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

const ENTRIES: usize = 10_000;
const LIMIT_MS: f64 = 8.0;
const CHUNK: usize = 30;

fn main() {
    println!("{:<56} {:>10} {:>10} {:>10} {:>10}", "frames", "median ms", "99 % ms", "longest ms", "most CPU");
    for count in [10, ENTRIES] {
        scrolling(count);
    }
    for bytes in [128 << 10, 1 << 20] {
        streaming(bytes);
    }
}

/// Creates a session with responses, code, tables, and commands with output.
fn session(entries: usize) -> BenchScreen {
    let mut screen = BenchScreen::new(120, 40);
    let answer = "## Plan\nThe tokenizer re-allocates on **every** token, so\n\n- reuse the buffer\n- measure `lex` again\n\n\
                  ```rust\npub struct Token<'a> {\n    pub text: &'a str,\n}\n```\n\n| Step | Before |\n|---|---|\n| lex | 48 ms |\n\n";
    let output = (0..40).map(|n| format!("\x1b[32mtest\x1b[0m number_{n} ... ok\n")).collect::<Vec<_>>().concat();
    for number in 0..entries / 2 {
        screen.text(answer);
        screen.command(number, &output);
    }
    screen
}

fn scrolling(entries: usize) {
    let mut screen = session(entries);
    screen.frame().unwrap();
    row(&format!("{entries} entries, up by 3 rows"), &frames(2_000, &mut screen, |screen| screen.scroll(-3)));
    row(&format!("{entries} entries, up by a page"), &frames(500, &mut screen, |screen| screen.scroll(-36)));
    screen.to_start();
    row(&format!("{entries} entries, from the start, down by 3 rows"), &frames(2_000, &mut screen, |screen| screen.scroll(3)));
    let mut to_start = true;
    let ends = frames(200, &mut screen, |screen| {
        to_start = !to_start;
        if to_start { screen.to_start() } else { screen.to_end() }
    });
    row(&format!("{entries} entries, from end to end"), &ends);
    screen.scroll(-500);
    let mut width = 120;
    let resizes = frames(100, &mut screen, |screen| {
        width = if width == 120 { 60 } else { 120 };
        screen.resize(width, 40);
    });
    row(&format!("{entries} entries, resized"), &resizes);
    let unfolds = frames(50, &mut screen, BenchScreen::unfold_all);
    row(&format!("{entries} entries, all folded or unfolded"), &unfolds);
    row(&format!("{entries} entries, all unfolded, up by 3 rows"), &frames(2_000, &mut screen, |screen| screen.scroll(-3)));
    let begun = Instant::now();
    let count = screen.find("number_17");
    println!("{:<56} {:>10.2}   {count} found", format!("{entries} entries, one search"), ms(begun.elapsed()));
}

/// Measures a streaming response, with about one frame for every 64 words.
fn streaming(bytes: usize) {
    let words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"];
    let mut screen = BenchScreen::new(120, 40);
    let (mut sent, mut number, mut drawn) = (0, 0, Vec::new());
    let begun = Instant::now();
    while sent < bytes {
        let mut chunk = String::with_capacity(CHUNK + 8);
        while chunk.len() < CHUNK {
            chunk.push_str(words[number % words.len()]);
            chunk.push_str(match number % 90 {
                80 => "\n\n```rust\nlet x = 1; // ",
                86 => "\n```\n\n",
                n if n % 13 == 12 => ".\n\n",
                _ => " ",
            });
            number += 1;
        }
        sent += chunk.len();
        screen.text(&chunk);
        if number % 64 < 6 {
            drawn.push(timed(|| screen.frame().unwrap()));
        }
    }
    let whole = begun.elapsed();
    row(&format!("a streaming response of {} KiB", bytes >> 10), &drawn);
    println!("{:<56} {:>10.1}   {:.1} ns a byte", "  total", ms(whole), whole.as_nanos() as f64 / bytes as f64);
}

/// Wall time and CPU time of one frame.
struct Frame {
    clock: Duration,
    processor: Duration,
}

fn timed(frame: impl FnOnce()) -> Frame {
    let (clock, processor) = (Instant::now(), of_this_thread());
    frame();
    Frame { clock: clock.elapsed(), processor: of_this_thread().saturating_sub(processor) }
}

fn of_this_thread() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

fn frames(count: usize, screen: &mut BenchScreen, mut input: impl FnMut(&mut BenchScreen)) -> Vec<Frame> {
    let frame = |_| {
        timed(|| {
            input(screen);
            screen.frame().unwrap();
        })
    };
    (0..count).map(frame).collect()
}

fn row(name: &str, frames: &[Frame]) {
    let mut clocks: Vec<Duration> = frames.iter().map(|frame| frame.clock).collect();
    clocks.sort_unstable();
    let at = |share: f64| ms(clocks[((clocks.len() - 1) as f64 * share) as usize]);
    let processor = frames.iter().map(|frame| ms(frame.processor)).fold(0.0, f64::max);
    let over = if processor > LIMIT_MS { "   over 8 ms" } else { "" };
    println!("{name:<56} {:>10.2} {:>10.2} {:>10.2} {processor:>10.2}{over}", at(0.5), at(0.99), at(1.0));
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
