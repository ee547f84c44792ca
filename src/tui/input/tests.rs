use super::*;
use crossterm::event::{KeyCode, KeyModifiers};

fn say(input: &Input) -> String {
    match input {
        Input::Key(key) => {
            let mut name = String::new();
            for (flag, word) in [(KeyModifiers::CONTROL, "ctrl+"), (KeyModifiers::ALT, "alt+"), (KeyModifiers::SHIFT, "shift+")] {
                if key.modifiers.contains(flag) {
                    name.push_str(word);
                }
            }
            match key.code {
                KeyCode::Char(c) => name + &c.to_string(),
                code => name + &format!("{code:?}").to_lowercase(),
            }
        }
        Input::Paste(text) => format!("paste({text})"),
        other => format!("{other:?}"),
    }
}

/// What the reads come to, the last one followed by silence.
fn read(reads: &[&[u8]]) -> Vec<String> {
    let mut sequences = Sequences::default();
    let mut out = Vec::new();
    let mut found = |piece| out.extend(decode(piece).map(|input| say(&input)));
    for bytes in reads {
        sequences.push(bytes, &mut found);
    }
    sequences.flush(&mut found);
    out
}

#[test]
fn keys_and_reports_come_in_the_order_of_the_bytes_however_they_are_cut() {
    let cases: &[(&[u8], &[&str])] = &[
        (b"ab\r", &["a", "b", "enter"]),
        (b"y\x1b[0nn", &["y", "Fence", "n"]),
        (b"\x1b[0n\x1b[0n", &["Fence", "Fence"]),
        (b"\x1b", &["esc"]),
        (b"\x1b\x1b", &["esc", "esc"]),
        (b"\x1bb", &["alt+b"]),
        (b"\x1b\r", &["alt+enter"]),
        (b"\x1b[A\x1bOB", &["up", "down"]),
        (b"\x1b[5~\x1b[1;5C", &["pageup", "ctrl+right"]),
        (b"\x0a\x03\x04", &["ctrl+j", "ctrl+c", "ctrl+d"]),
        (b"\x1b[13;2u\x1b[106;5u\x1b[27u", &["shift+enter", "ctrl+j", "esc"]),
        (b"\x1b[121;1:3u", &[]),
        (b"\x1b[200~y\n\x1b[0n\x1b[201~z", &["paste(y\n\x1b[0n)", "z"]),
        (b"\x1b[200~one\r\ntwo\rthree\x1b[201~", &["paste(one\ntwo\nthree)"]),
        (b"\x1b[I\x1b[O", &["FocusIn", "FocusOut"]),
        (b"\x1b[<64;10;10M\x1b[<65;10;10M", &["Wheel { up: true }", "Wheel { up: false }"]),
        (b"\x1b[?0u", &["KittyKeyboard"]),
        (b"\x1b]11;rgb:ffff/8080/0000\x1b\\", &["Background(255, 128, 0)"]),
        (b"\x1b]11;rgb:ffff/ffff/ffff\x07x", &["Background(255, 255, 255)", "x"]),
        ("é你👋".as_bytes(), &["é", "你", "👋"]),
        (b"\xff\xc3x", &["x"]),
        (b"\x1b[?64;1;2cx", &["x"]),
        (b"\x1b[?1049;2$yx", &["x"]),
        (b"\x1b[?9999zx\x1bP1$r0m\x1b\\y", &["x", "y"]),
        (b"\x1b[12\x1b[A", &["up"]),
        (b"Y", &["shift+Y"]),
    ];
    for (bytes, expected) in cases {
        assert_eq!(read(&[bytes]), *expected, "{}", bytes.escape_ascii());
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(read(&single), *expected, "{} byte by byte", bytes.escape_ascii());
    }
}

#[test]
fn a_sequence_that_was_cut_off_is_no_key() {
    assert_eq!(read(&[b"\x1b[1;5"]), Vec::<String>::new());
}

#[test]
fn an_escape_before_a_fence_stays_an_escape() {
    assert_eq!(read(&[b"\x1b\x1b[0n"]), ["esc", "Fence"]);
}

#[test]
fn a_long_paste_is_whole_in_any_pieces() {
    let text = "line of text\n".repeat(50_000);
    let bytes = [b"\x1b[200~", text.as_bytes(), b"\x1b[201~"].concat();
    let pieces: Vec<_> = bytes.chunks(1021).collect();
    assert_eq!(read(&pieces), [format!("paste({text})")]);
}
