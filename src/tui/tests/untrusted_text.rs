//! Tests that untrusted text, wherever it is shown, never reaches the terminal as anything other than text.

use crate::protocol::*;
use crate::tui::display::Display;
use crate::tui::model::UiModel;
use crate::tui::tests::fixtures::*;
use crate::tui::update::{Msg, update};
use crate::tui::{input::UiInput, status, view};
use base64::Engine as _;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};
use std::cell::Cell;
use std::rc::Rc;

const SIZE: Size = Size { width: 100, height: 40 };

/// Returns the screen as text, and the bytes with which it is drawn.
fn shown(model: &mut UiModel, now: u64) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    let mut rows = String::new();
    let mut display = Display::new(&mut bytes, model.screen.size);
    let drawn = display.draw(|buffer| {
        let drawn = view::draw(model, buffer, now);
        rows = as_text(buffer);
        drawn
    });
    drawn.expect("a frame");
    (rows, bytes)
}

fn as_text(buffer: &Buffer) -> String {
    let Rect { width, height, .. } = buffer.area;
    let rows = (0..height).map(|y| {
        let mut row = String::new();
        let mut x = 0;
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            row.push_str(symbol);
            x += u16::try_from(crate::text::width(symbol)).expect("a few cells").max(1);
        }
        row.trim_end().to_owned()
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// Returns the control sequences and invisible characters in the bytes that did not originate in aye.
fn foreign(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    let mut found = Vec::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|letter: char| letter.is_control() || is_unseen(letter)) {
        rest = &rest[at..];
        let sequence = rest.strip_prefix("\x1b[").and_then(|after| {
            let end = after.find(|letter: char| letter.is_ascii_alphabetic())?;
            Some(&rest[..end + 3])
        });
        let is_ours = sequence.is_some_and(|sequence| {
            let body = &sequence[2..sequence.len() - 1];
            let numbers = body.bytes().all(|byte| byte.is_ascii_digit() || byte == b';');
            let modes = ["?2026h", "?2026l", "?25h", "?25l"].contains(&&sequence[2..]);
            modes || (numbers && matches!(sequence.as_bytes().last(), Some(b'H' | b'G' | b'K' | b'J' | b'm' | b'r' | b'S')))
        });
        match sequence {
            Some(sequence) if is_ours => rest = &rest[sequence.len()..],
            _ => {
                found.push(rest.chars().take(12).collect::<String>().escape_debug().to_string());
                rest = &rest[rest.chars().next().map_or(1, char::len_utf8)..];
            }
        }
    }
    found
}

/// Returns whether a character is invisible or changes the direction of text.
fn is_unseen(letter: char) -> bool {
    matches!(letter, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

type Make<'t> = Box<dyn Fn() -> UiModel + 't>;

/// Returns every place in the UI that shows untrusted text, as its name, whether the user makes a decision there, and a
/// screen that shows the text. Places whose name does not satisfy `only` are omitted.
fn places(text: &str, only: impl Fn(&str) -> bool) -> Vec<(&'static str, bool, UiModel)> {
    let own = |text: &str| text.to_owned();
    let one_line = text.replace(['\n', '\r'], " ");
    let with = |kinds: Vec<EventKind>| {
        let mut model = model(SIZE.width, SIZE.height);
        for (at, kind) in (0..).zip(kinds) {
            let _ = update(&mut model, Msg::Event(Box::new(event(kind))), at);
        }
        model
    };
    let diff = text.lines().map(|line| format!("+{line}\n")).collect::<Vec<_>>().concat();
    let diff = format!("--- a/x\n+++ b/x\n@@ -0,0 +1,{} @@\n{diff}", text.lines().count());
    let opened = |approval: Approval| {
        let mut model = with(vec![started("go"), requested("call-a", "Tool", "a call")]);
        let _ = update(&mut model, Msg::Event(Box::new(event(EventKind::ApprovalRequested(approval)))), 60_000);
        if !model.dialogs.is_open() {
            let _ = update(&mut model, Msg::Input(UiInput::Key(KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE))), 61_000);
        }
        model
    };
    let command = command_approval("a");
    let line = command.command.clone().map(|command| approval::CommandLine { line: own(text), ..command });
    let part = command.parts[0].clone();
    let edit = edit_approval("a");
    let output = |status| {
        let mut model = with(vec![
            started("go"),
            requested("a", "RunCommand", "$ run"),
            EventKind::ToolStarted { tool_call_id: call("a"), rule: own("built-in"), summary: None, effects: None, note: None },
            EventKind::ToolOutputChunk { tool_call_id: call("a"), text: own(text) },
            completed("a", status, text, None),
        ]);
        model.transcript.fold_all();
        model.transcript.fold_all();
        model
    };
    let titled = || {
        let mut titled = model(SIZE.width, SIZE.height);
        titled.info.header.branch = Some(own(&one_line));
        titled.info.header.model = own(&one_line);
        titled.options.cwd = format!("~/{one_line}");
        titled
    };
    let pasted = || {
        let mut pasted = model(SIZE.width, SIZE.height);
        let _ = update(&mut pasted, Msg::Input(UiInput::Paste(own(text))), 1000);
        pasted
    };
    let make: Vec<(&'static str, bool, Make<'_>)> = vec![
        ("model_text", false, Box::new(|| with(vec![started("go"), self::text(text), self::text("\n\nend of it")]))),
        ("thought", false, Box::new(|| with(vec![started("go"), EventKind::ReasoningChunk { text: own(text) }]))),
        ("prompt", false, Box::new(|| with(vec![started(text)]))),
        ("tool_output", false, Box::new(|| output(ToolStatus::Succeeded))),
        ("failed_output", false, Box::new(|| output(ToolStatus::Failed))),
        (
            "live_output",
            false,
            Box::new(|| {
                with(vec![
                    started("go"),
                    requested("a", "RunCommand", "$ run"),
                    EventKind::ToolStarted {
                        tool_call_id: call("a"),
                        rule: own("built-in"),
                        summary: Some(own(&one_line)),
                        effects: None,
                        note: None,
                    },
                    EventKind::ToolOutputChunk { tool_call_id: call("a"), text: own(text) },
                ])
            }),
        ),
        ("tool_name", false, Box::new(|| with(vec![started("go"), requested("a", text, "")]))),
        ("summary", false, Box::new(|| with(vec![started("go"), requested("a", "Tool", &one_line)]))),
        ("error", false, Box::new(|| with(vec![started("go"), EventKind::notice(own(text))]))),
        ("retry", false, Box::new(|| with(vec![started("go"), retry(FailureKind::Overloaded, 3000, text, None, None)]))),
        ("clipboard_paste", false, Box::new(pasted)),
        ("status", false, Box::new(titled)),
        (
            "approval_command",
            true,
            Box::new(|| {
                opened(Approval {
                    command: line.clone(),
                    parts: vec![CommandPart { text: own(text), reason: own(&one_line), ..part.clone() }],
                    description: Some(own(&one_line)),
                    ..command.clone()
                })
            }),
        ),
        (
            "diff",
            true,
            Box::new(|| {
                opened(Approval { proposal: Proposal { diff: FileDiffs::read(&diff), ..edit.proposal.clone() }, ..edit.clone() })
            }),
        ),
        (
            "file_name",
            true,
            Box::new(|| {
                opened(Approval {
                    action_summary: format!("Edit {one_line}"),
                    reason: own(&one_line),
                    proposal: Proposal {
                        summary: format!("Edit {one_line}"),
                        paths: vec![one_line.clone().into()],
                        ..edit.proposal.clone()
                    },
                    ..edit.clone()
                })
            }),
        ),
        (
            "note",
            true,
            Box::new(|| {
                let proposal =
                    Proposal { summary: own("POST https://example.org"), notes: vec![own(text)], ..Proposal::default() };
                opened(Approval { action_summary: own("POST https://example.org"), proposal, ..edit.clone() })
            }),
        ),
        ("mcp_tool_name", true, Box::new(|| opened(Approval { tool_name: own(text), title: own(&one_line), ..edit.clone() }))),
    ];
    make.into_iter().filter(|(name, ..)| only(name)).map(|(name, decides, make)| (name, decides, make())).collect()
}

fn cases() -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(shared!("corpora/terminal.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).expect("a case a line")).collect()
}

fn strings(case: &serde_json::Value, key: &str) -> Vec<String> {
    let list = case[key].as_array().into_iter().flatten();
    list.filter_map(|entry| entry.as_str().map(str::to_owned)).collect()
}

/// Returns the text of a test case. Invalid UTF-8 in its bytes is replaced.
fn text_of(case: &serde_json::Value) -> String {
    let bytes = case["text_b64"].as_str().map(|text| base64::engine::general_purpose::STANDARD.decode(text).expect("base64"));
    let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    text.unwrap_or_else(|| case["text"].as_str().unwrap_or_default().to_owned())
}

/// Returns the text on all pages of the open view.
fn pages(model: &mut UiModel, faults: &mut Vec<String>, name: &str) -> String {
    let mut all = String::new();
    for page in 0..40 {
        let now = 100_000 + page * 1000;
        let (rows, bytes) = shown(model, now);
        faults.extend(foreign(&bytes).iter().map(|found| format!("{name}: {found} reaches the terminal")));
        if all.ends_with(&rows) {
            break;
        }
        all.push_str(&rows);
        let _ = update(model, Msg::Input(UiInput::Key(KeyEvent::new(KeyCode::PageDown, KeyModifiers::NONE))), now + 500);
    }
    all
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn untrusted_text_never_controls_the_terminal() {
    let mut faults = Vec::new();
    for case in &cases() {
        let text = text_of(case);
        let (id, context) = (case["id"].as_str().unwrap_or_default(), case["context"].as_str().unwrap_or_default());
        // The longest cases repeat one character, so they are shown in full only where required.
        let limit = text.char_indices().nth(2000).map_or(text.len(), |(at, _)| at);
        let all = places(&text[..limit], |place| place != context).into_iter().chain(places(&text, |place| place == context));
        for (place, decides, mut model) in all {
            let name = format!("{id} in {place}");
            let shown = if decides {
                pages(&mut model, &mut faults, &name)
            } else {
                let (rows, bytes) = shown(&mut model, 100_000);
                faults.extend(foreign(&bytes).iter().map(|found| format!("{name}: {found} reaches the terminal")));
                rows
            };
            let title = status::title(&model);
            if title.contains(|letter: char| letter.is_control() || is_unseen(letter)) {
                faults.push(format!("{name}: the title is {title:?}"));
            }
            if place != context {
                continue;
            }
            let flat = |text: &str| text.split_whitespace().collect::<String>();
            let missing = strings(case, "must_show").into_iter().filter(|piece| !flat(&shown).contains(&flat(piece)));
            faults.extend(missing.map(|piece| format!("{name}: `{piece}` is not shown:\n{shown}")));
            let emitted = strings(case, "must_not_emit").into_iter().filter(|piece| shown.contains(piece.as_str()));
            faults.extend(emitted.map(|piece| format!("{name}: {piece:?} is shown")));
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.iter().take(20).cloned().collect::<Vec<_>>().join("\n"));
}

#[test]
fn every_character_of_text_under_approval_is_visible() {
    let flat = |text: &str| text.split_whitespace().collect::<String>();
    for text in [
        "{\"ping\":1}\x1b]0;a-key\x07\x1bPand-a-file\x1b\\ end",
        "touch fileA1\u{11a8}2",
        "\u{338}\u{301}ls",
        "if a(\u{338}b) { c(\u{20dd}) }",
        "echo fileA1\u{fe0f}2 *\u{fe0f}",
        "a\u{2800}b\u{a0}c\u{3000}d\u{2003}e",
        "cat \u{2d7f}\u{1107f}\u{16fe4}\u{1d159}x",
    ] {
        for (place, _, mut model) in places(text, |place| ["approval_command", "diff", "file_name", "note"].contains(&place)) {
            let shown = pages(&mut model, &mut Vec::new(), place);
            let revealed = flat(&crate::text::reveal(text));
            assert!(flat(&shown).contains(&revealed), "{revealed} in {place}:\n{shown}");
        }
    }
}

#[test]
fn tabs_in_text_under_approval_are_marked() {
    for (place, _, mut model) in
        places("rm -rf build\t/", |place| ["approval_command", "diff", "file_name", "note"].contains(&place))
    {
        let shown = pages(&mut model, &mut Vec::new(), place);
        assert!(shown.contains("rm -rf build→") || shown.contains("rm -rf build␉/"), "{place}:\n{shown}");
    }
    let together = places("rm -rf build\t/", |_| true).into_iter().filter_map(|(place, _, mut model)| {
        let shown = pages(&mut model, &mut Vec::new(), place);
        shown.contains("build/").then_some(place)
    });
    assert_eq!(together.collect::<Vec<_>>(), [""; 0], "what stands apart is drawn apart");
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn untrusted_text_streamed_in_any_chunks_does_not_affect_later_text() {
    for case in &cases() {
        let text = text_of(case);
        if text.chars().count() > 2000 {
            continue;
        }
        let mut model = model(SIZE.width, SIZE.height);
        tell(&mut model, started("go"), 0);
        for letter in text.chars() {
            tell(&mut model, self::text(&letter.to_string()), 0);
        }
        tell(&mut model, self::text("\n\nlater words"), 0);
        let (rows, bytes) = shown(&mut model, 0);
        assert_eq!(foreign(&bytes), Vec::<String>::new(), "{}", case["id"]);
        assert!(rows.contains("later words"), "{}: {rows}", case["id"]);
    }
}

#[test]
fn an_unchanged_frame_writes_nothing() {
    let mut model = model(SIZE.width, SIZE.height);
    tell(&mut model, started("go"), 0);
    tell(&mut model, text("# Words\n\n❤\u{fe0f} and 你好\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"), 0);
    let writes = Rc::new(Cell::new(0));
    let mut display = Display::new(Counted(Rc::clone(&writes)), SIZE);
    assert!(display.draw(|buffer| view::draw(&mut model, buffer, 10)).expect("a frame"));
    let before = writes.get();
    for _ in 0..3 {
        assert!(!display.draw(|buffer| view::draw(&mut model, buffer, 10)).expect("a frame"));
    }
    assert!(before > 0);
    assert_eq!(writes.get(), before);
}

/// Writer that only counts the bytes written to it.
struct Counted(Rc<Cell<usize>>);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.set(self.0.get() + 1);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
