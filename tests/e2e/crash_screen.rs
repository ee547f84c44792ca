//! Screen sessions killed at their effects: open approvals, queued messages, the draft, decisions.
#![cfg(target_os = "linux")]

use crate::support::story::Tally;
use crate::support::trace::{Fault, Point, follow_running};
use crate::support::{Answer, Gate, Project, Server, TIMEOUT, Terminal, texts};
use nix::sys::signal::Signal;
use serde_json::json;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(40);
/// Approximate number of effects of the whole scenario, as counted by the tracer.
const EFFECTS: usize = 130;

/// State of the screen before the kill.
#[derive(Debug, Default)]
struct Seen {
    asked: bool,
    queued: bool,
    draft: bool,
    decided: bool,
}

/// Performs user actions until the kill: a prompt, a queued message, an approval, a draft. Returns the last visible
/// state.
fn work(terminal: &mut Terminal, runs: &dyn Fn() -> bool, server: &Server, gate: &Gate) -> Seen {
    let mut seen = Seen::default();
    // Waits until the screen meets the condition or the process has exited.
    let sees = |terminal: &mut Terminal, condition: &dyn Fn(&str) -> bool| {
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            let gone = !runs();
            if terminal.look(LOOK, condition).is_ok() {
                return true;
            }
            if gone {
                return false;
            }
        }
        panic!("it neither comes nor ends\n{}", terminal.screen());
    };
    let say = |terminal: &mut Terminal, text: &str| {
        terminal.type_text(text, 1);
        sees(terminal, &|screen| screen.contains(text)) && {
            terminal.enter();
            true
        }
    };
    if !say(terminal, "the first") {
        return seen;
    }
    seen.asked = sees(terminal, &|screen| screen.contains("Busy now"));
    if !seen.asked || !say(terminal, "the second") {
        return seen;
    }
    seen.queued = sees(terminal, &|screen| screen.contains("1 queued: the second"));
    gate.open();
    if !seen.queued || !sees(terminal, &Terminal::asks) {
        return seen;
    }
    assert_eq!(server.requests().len(), 1);
    terminal.type_text("half a thought", 1);
    seen.draft = sees(terminal, &|screen| screen.contains("half a thought"));
    // The draft is saved shortly after the last key.
    std::thread::sleep(Duration::from_millis(if runs() { 700 } else { 0 }));
    seen.draft &= runs();
    if !seen.draft {
        return seen;
    }
    terminal.send("\t");
    if sees(terminal, &|screen| !screen.contains(texts::TAB_TO_REVIEW) && Terminal::asks(screen) && !screen.contains('◔')) {
        terminal.send("y");
        seen.decided = sees(terminal, &|screen| screen.contains("Created made.txt") || screen.contains("Written."));
    }
    sees(terminal, &|screen| screen.contains("The second is done."));
    seen
}

fn killed_at(point: Point) -> Result<bool, String> {
    let gate = Gate::default();
    let write = json!({"path": "made.txt", "content": "made\n"});
    let server = {
        let gate = gate.clone();
        Server::with_responder(move |request| {
            let (told, results) = (request.messages(), request.tool_results());
            match (results.is_empty(), told.contains("the second")) {
                (true, false) => Answer::text("Busy now").and_wait(&gate).and_call("call_1", "WriteFile", write.clone()),
                (_, false) => Answer::text("Written."),
                (_, true) => Answer::text("The second is done."),
            }
        })
    };
    let project = Project::with(&server).env("AYE_LOG", "off");
    let mut terminal = project.open(&[]);
    terminal.wait_for("❯");
    let roots = [project.directory("data"), project.path("")];
    let follows = follow_running(terminal.pid(), &roots, point)?;
    let seen = work(&mut terminal, &|| !follows.is_finished(), &server, &gate);
    gate.open();
    let met = follows.is_finished();
    if !met {
        terminal.signal(Signal::SIGKILL);
    }
    // The tracer has also waited for the process.
    let effects = follows.join().unwrap();
    let outcome = taken_up(&project, &server, &seen);
    outcome.map_err(|why| format!("{why}\nit was seen: {seen:?}\n{:?}", effects.iter().rev().take(4).collect::<Vec<_>>()))?;
    Ok(met)
}

/// Checks the state at the next start and continues until the work is complete.
fn taken_up(project: &Project, server: &Server, seen: &Seen) -> Result<(), String> {
    if !seen.asked {
        // Nothing was acknowledged, so any state is valid.
        return Ok(());
    }
    let mut terminal = project.open(&["--resume"]);
    let shows = |terminal: &Terminal, words: &str| terminal.look(TIMEOUT, |screen| screen.contains(words)).map(drop);
    shows(&terminal, "the first").map_err(|screen| format!("the first prompt is gone\n{screen}"))?;
    if seen.draft && !seen.decided {
        shows(&terminal, "half a thought").map_err(|screen| format!("the draft is gone\n{screen}"))?;
    }
    if seen.queued && !seen.decided {
        let there = terminal.look(TIMEOUT, |screen| screen.contains("the second"));
        there.map_err(|screen| format!("what waited is gone\n{screen}"))?;
    }
    // Answers all prompts and continues the task.
    let deadline = Instant::now() + TIMEOUT;
    let (mut decided, mut continued) = (false, false);
    loop {
        let screen = terminal.screen();
        if screen.contains("The second is done.") || !seen.queued && screen.contains("Written.") {
            break;
        }
        if Instant::now() > deadline {
            return Err(format!("it does not come to its end\n{screen}"));
        }
        let unknown = screen.contains(texts::OUTCOME_UNKNOWN);
        if unknown && screen.contains(texts::TAB_TO_REVIEW) {
            terminal.send("\t");
            terminal.wait_until_gone(texts::TAB_TO_REVIEW);
        } else if unknown && screen.lines().any(|row| row.trim_start_matches([' ', '❯', '◔']).starts_with("t  ")) {
            terminal.decide('t');
        } else if Terminal::asks(&screen) {
            if std::mem::replace(&mut decided, true) && seen.decided {
                return Err(format!("what was decided is asked again\n{screen}"));
            }
            terminal.review("made.txt");
            terminal.decide('y');
        } else if screen.contains("/continue") && !continued {
            continued = true;
            // The restored draft is in the composer and is deleted first.
            terminal.send(&"\x7f".repeat(40));
            terminal.prompt("/continue");
        } else {
            std::thread::sleep(LOOK);
        }
    }
    let requests = server.requests();
    let last = requests.last().ok_or("nothing was asked")?;
    for prompt in ["the first", "the second"].iter().take(1 + usize::from(seen.queued)) {
        let times = last.messages().matches(prompt).count();
        if times != 1 {
            return Err(format!("`{prompt}` stands {times} times in what the model is told"));
        }
    }
    let results = last.tool_results();
    let told = results.first().map(|(_, text)| text.as_str()).unwrap_or_default();
    let made = std::fs::read_to_string(project.path("made.txt")).unwrap_or_default();
    if made == "made\n" || told.contains("OUTCOME_UNKNOWN") && made.is_empty() {
        Ok(())
    } else {
        Err(format!("made.txt is {made:?}, and the model was told {told}"))
    }
}

#[test]
fn displayed_content_is_restored_after_a_kill_at_any_effect() {
    let mut tally = Tally::new("a screen", 3, 5);
    let stories = tally.wanted.min(2 * EFFECTS);
    for story in 0..stories {
        let at = story * 2 * EFFECTS / stories + tally.below((2 * EFFECTS / stories) as u64);
        let fault = if at.is_multiple_of(2) { Fault::KilledBefore } else { Fault::KilledAfter };
        let point = Point { effect: 1 + at / 2, fault };
        match killed_at(point) {
            Err(why) if why.starts_with("nobody can be traced") => return println!("skipped: {why}"),
            outcome => tally.count(1, outcome.map(drop).map_err(|why| format!("{point:?}: {why}"))),
        }
    }
    tally.finish();
}
