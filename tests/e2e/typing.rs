//! Measurements with the built program: answers typed at human speed, and sentences typed while prompts appear. They
//! take a long time and run on request: `cargo test --test e2e typing:: -- --ignored --nocapture`.
//!
//! `AYE_TYPED_ANSWERS` and `AYE_TYPED_SENTENCES` set the number of answers and sentences, and `AYE_TYPED_TERMINALS`
//! sets the number of simultaneous terminals.

use crate::support::{Answer, Project, Server, Terminal, texts};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Number of answers or sentences typed in one session.
const PER_SESSION: u64 = 20;
/// Maximum time until an answer takes effect.
const EFFECT: Duration = Duration::from_secs(4);
const SENTENCES: [&str; 8] = [
    "yes please also add a test for y and n",
    "a few more: 1 2 3 and then p",
    "no, keep the name as it is",
    "explain why you need a new file",
    "n is the count, y the height, a the area",
    "also fix the bug in case 1 y",
    "always write the tests first",
    "remove it again and run everything",
];

/// Generator of reproducible pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    /// Returns a number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn pause(ms: u64) {
    thread::sleep(Duration::from_millis(ms));
}

/// Returns a server whose model writes one file after another, each after a delay below `delay_ms` milliseconds.
fn writer(delay_ms: u64) -> Server {
    Server::with_responder(move |request| {
        let number = request.tool_results().len() as u64;
        pause(if delay_ms == 0 { 0 } else { (number * 7919 + 311) % delay_ms });
        Answer::call(&format!("call_{number}"), "WriteFile", json!({"path": file(number), "content": "x\n"}))
    })
}

fn file(number: u64) -> String {
    format!("file-{number:03}.txt")
}

/// Runs the sessions in several terminals at the same time.
fn in_terminals(count: u64, session: impl Fn(u64, u64) + Sync) {
    let (next, sessions) = (AtomicU64::new(0), count.div_ceil(PER_SESSION));
    thread::scope(|scope| {
        for _ in 0..setting("AYE_TYPED_TERMINALS", 4) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= sessions {
                        return;
                    }
                    session(number, PER_SESSION.min(count - number * PER_SESSION));
                }
            });
        }
    });
}

/// Types one intended `y` at human speed: usually one key after a pause for reading, sometimes at once, sometimes
/// twice. After a typed message, waits first, because nobody reacts faster to a change on the screen. Returns the
/// number of keys.
fn type_yes(terminal: &mut Terminal, numbers: &mut Numbers, follows_message: bool) -> u64 {
    if follows_message {
        pause(250);
    }
    match numbers.below(100) {
        0..70 => pause(300 + numbers.below(900)),
        70..88 => pause(numbers.below(250)),
        _ => {
            pause(numbers.below(700));
            terminal.send("y");
            pause(70 + numbers.below(150));
            terminal.send("y");
            return 2;
        }
    }
    terminal.send("y");
    1
}

#[test]
#[ignore = "takes several minutes"]
fn intended_answers_are_never_lost() {
    let count = setting("AYE_TYPED_ANSWERS", 1000);
    let (keys, lost, worst_ms) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    in_terminals(count, |session, answers| {
        let (server, mut numbers) = (writer(0), Numbers(0x9E37_79B9_7F4A_7C15 + session));
        let project = Project::with(&server);
        let mut terminal = project.open(&[]);
        terminal.prompt("write the files");
        for number in 0..answers {
            let name = file(number);
            terminal.wait_that("the prompt appears", |screen| screen.contains(&name) && Terminal::asks(screen));
            keys.fetch_add(type_yes(&mut terminal, &mut numbers, number == 0), Ordering::Relaxed);
            let (pressed, mut confirmed) = (Instant::now(), false);
            while !project.exists(&name) {
                let is_marked = terminal.screen().contains(texts::ENTER_CONFIRM);
                if is_marked && !confirmed && pressed.elapsed() > Duration::from_millis(900) {
                    // The screen asks for Enter, and the user presses it.
                    terminal.send("\r");
                    keys.fetch_add(1, Ordering::Relaxed);
                    confirmed = true;
                }
                if pressed.elapsed() > EFFECT {
                    lost.fetch_add(1, Ordering::Relaxed);
                    eprintln!("lost: answer {number} of session {session}\n{}", terminal.screen());
                    terminal.review(&name);
                    terminal.decide('y');
                    terminal.wait_that("the next prompt", |screen| screen.contains(&file(number + 1)));
                    break;
                }
                pause(15);
            }
            worst_ms.fetch_max(pressed.elapsed().as_millis() as u64, Ordering::Relaxed);
        }
        terminal.kill();
    });
    let (keys, lost) = (keys.into_inner(), lost.into_inner());
    let each = keys as f64 / count as f64;
    println!("{count} answers: {lost} lost, {each:.2} keys each, at most {} ms", worst_ms.into_inner());
    assert_eq!(lost, 0);
    assert!(each <= 1.2, "{each} keys each");
}

/// Types a sentence at human speed, with longer pauses between some words.
fn type_sentence(terminal: &mut Terminal, sentence: &str, numbers: &mut Numbers) {
    for letter in sentence.chars() {
        terminal.send(letter.encode_utf8(&mut [0; 4]));
        pause(match (letter, numbers.below(100)) {
            (' ', 0..4) => 1100 + numbers.below(1200),
            (' ', 4..12) => 360 + numbers.below(500),
            _ => 35 + numbers.below(110),
        });
    }
}

#[test]
#[ignore = "takes hours in full"]
fn typed_sentences_decide_nothing() {
    let count = setting("AYE_TYPED_SENTENCES", 10_000);
    let (accidents, during) = (AtomicU64::new(0), AtomicU64::new(0));
    in_terminals(count, |session, sentences| {
        let (server, mut numbers) = (writer(1500), Numbers(0x2545_F491_4F6C_DD1D + session));
        let project = Project::with(&server);
        let mut terminal = project.open(&[]);
        terminal.prompt("write the files");
        for number in 0..sentences {
            let (name, sentence) = (file(number), SENTENCES[numbers.below(SENTENCES.len() as u64) as usize]);
            let requests = number as usize + 1;
            let was_early = terminal.screen().contains(&name);
            type_sentence(&mut terminal, sentence, &mut numbers);
            if !was_early && terminal.screen().contains(&name) {
                during.fetch_add(1, Ordering::Relaxed);
            }
            terminal.wait_that("the prompt appears", |screen| screen.contains(&name) && Terminal::asks(screen));
            if project.exists(&name) || server.requests().len() > requests {
                accidents.fetch_add(1, Ordering::Relaxed);
                eprintln!("decided by `{sentence}` in session {session}\n{}", terminal.screen());
            }
            terminal.review(&name);
            terminal.send("n");
            let decided = Instant::now();
            while server.requests().len() <= requests && decided.elapsed() < EFFECT {
                pause(15);
            }
            assert!(server.requests().len() > requests, "not denied\n{}", terminal.screen());
        }
        terminal.kill();
    });
    let (accidents, during) = (accidents.into_inner(), during.into_inner());
    println!("{count} sentences, {during} of them while the prompt appeared: {accidents} decided something");
    assert_eq!(accidents, 0);
}
