use super::*;
use crossterm::event::{KeyCode, KeyModifiers};

fn say(input: &UiInput) -> String {
    match input {
        UiInput::Key(key) => {
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
        UiInput::Paste(text) => format!("paste({text})"),
        UiInput::Mouse(mouse) => format!("{:?} {} {}", mouse.kind, mouse.column, mouse.row),
        other => format!("{other:?}"),
    }
}

/// Returns the inputs decoded from the given reads, the last of which is followed by a pause.
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
fn keys_and_reports_are_decoded_in_order_regardless_of_read_boundaries() {
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
        (b"a\x1b[48;30;100;600;1000tb", &["a", "Size(100, 30)", "b"]),
        (b"\x1b[48;30;100t\x1b[48;0;100;0;0t\x1b[48;60000;60000;0;0t\x1b[48t\x1b[8;30;100t", &["Size(100, 30)"]),
        (b"\x1b[200~y\n\x1b[0n\x1b[201~z", &["paste(y\n\x1b[0n)", "z"]),
        (b"\x1b[200~one\r\ntwo\rthree\x1b[201~", &["paste(one\ntwo\nthree)"]),
        (b"\x1b[I\x1b[O", &["FocusIn", "FocusOut"]),
        (b"\x1b[<64;10;10M\x1b[<65;10;10M", &["ScrollUp 9 9", "ScrollDown 9 9"]),
        (b"\x1b[<0;1;2M\x1b[<32;3;2M\x1b[<0;3;2m", &["Down(Left) 0 1", "Drag(Left) 2 1", "Up(Left) 2 1"]),
        (b"\x1b[<35;3;2Mx", &["x"]),
        (b"\x1b[?0u", &["Answer(Kitty)"]),
        (b"\x1b]11;rgb:ffff/8080/0000\x1b\\", &["Background(255, 128, 0)"]),
        (b"\x1b]11;rgb:ffff/ffff/ffff\x07x", &["Background(255, 255, 255)", "x"]),
        ("é你👋".as_bytes(), &["é", "你", "👋"]),
        (b"\xff\xc3x", &["x"]),
        (b"\x1b[?64;1;2cx", &["Answer(Attributes)", "x"]),
        (b"\x1b[?1049;2$yx", &["Answer(Mode(1049, Off))", "x"]),
        (b"\x1b[?2026;0$y\x1b[?2027;3$y", &["Answer(Mode(2026, Unknown))", "Answer(Mode(2027, AlwaysOn))"]),
        (b"\x1b[?997;1n\x1b[?997;2n", &["Answer(Scheme { light: false })", "Answer(Scheme { light: true })"]),
        (b"\x1bP>|kitty(0.40)\x1b\\\x1b[>4;1m", &["Answer(Name(\"kitty(0.40)\"))", "Answer(ModifyOtherKeys)"]),
        (b"\x1bP1+r524742=382f382f38\x1b\\x\x1bP0+r5463\x1b\\", &["Answer(TrueColour)", "x"]),
        (
            b"\x1b]11;rgb:f/8/0\x07\x1b]11;#ff8000\x07\x1b]11;rgba:ffff/8080/0000/ffff\x07",
            &["Background(255, 136, 0)", "Background(255, 128, 0)", "Background(255, 128, 0)"],
        ),
        // Reports that aye did not request, in every form.
        (b"\x1b[=1;2cx\x1b[>41;354;0cy\x1b[4;480;640tz\x1b[12;40Ra", &["x", "y", "z", "a"]),
        (b"\x1b_Gi=1;OK\x1b\\x\x1b]52;c;eHh4\x07y\x1b^z\x1b\\", &["x", "y"]),
        (b"\x1b[;Ax\x1b[;5Ay\x1b[!pz\x1b[?6;1;1ca", &["x", "y", "z", "Answer(Attributes)", "a"]),
        (b"\x1b]11;rgb:ff\x1b[Ax\x1bP1+r\ry", &["up", "x", "enter", "y"]),
        (b"\x1b[1;5\rx\x1b[1\xc3\xa9", &["enter", "x", "\u{e9}"]),
        // Keys in the encodings of various terminals.
        (b"\x1b[27;5;106~\x1b[27;2;13~\x1b[27;5;13~", &["ctrl+j", "shift+enter", "ctrl+enter"]),
        (b"\x1bO5A\x1bO2P\x1bOMx\x1bOy", &["ctrl+up", "shift+f(1)", "enter", "x", "9"]),
        (b"\x1b[[A\x1b[1~\x1b[4~", &["f(1)", "home", "end"]),
        (b"\x1b[97:65;2:1u\x1b[97;1:2u\x1b[97;1:3u\x1b[7u\x1b[121;9ux", &["A", "a", "x"]),
        // Mouse reports in every encoding.
        (b"\x1b[<64;3;4M\x1b[M\x60\xff\xffx", &["ScrollUp 2 3", "ScrollUp 222 222", "x"]),
        (b"\x1b[96;10;10M\x1b[97;1;1My", &["ScrollUp 9 9", "ScrollDown 0 0", "y"]),
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
fn a_truncated_sequence_is_not_a_key() {
    assert_eq!(read(&[b"\x1b[1;5"]), Vec::<String>::new());
}

#[test]
fn an_escape_before_a_fence_stays_an_escape() {
    assert_eq!(read(&[b"\x1b\x1b[0n"]), ["esc", "Fence"]);
}

#[test]
fn a_long_paste_is_complete_when_read_in_chunks() {
    let text = "line of text\n".repeat(50_000);
    let bytes = [b"\x1b[200~", text.as_bytes(), b"\x1b[201~"].concat();
    let pieces: Vec<_> = bytes.chunks(1021).collect();
    assert_eq!(read(&pieces), [format!("paste({text})")]);
}

/// Returns the inputs decoded from the given reads, each of which is followed by a pause.
fn read_with_silence(reads: &[&[u8]]) -> Vec<String> {
    let mut sequences = Sequences::default();
    let mut out = Vec::new();
    for bytes in reads {
        let mut found = |piece| out.extend(decode(piece).map(|input| say(&input)));
        sequences.push(bytes, &mut found);
        if sequences.wait() == super::sequences::Wait::Key {
            sequences.flush(&mut found);
        }
    }
    sequences.flush(|piece| out.extend(decode(piece).map(|input| say(&input))));
    out
}

#[test]
fn terminal_responses_split_across_reads_are_not_text() {
    for (reads, expected) in [
        (&[&b"\x1b"[..], b"[?62;22c"][..], &["esc", "Answer(Attributes)"][..]),
        (&[b"\x1b[", b"?62;22c"], &["Answer(Attributes)"]),
        (&[b"\x1b[?6", b"2;22cx"], &["Answer(Attributes)", "x"]),
        (&[b"\x1b", b"]11;rgb:ffff/ffff/ffff\x07"], &["esc", "Background(255, 255, 255)"]),
        (&[b"\x1b]11;rgb:ff", b"ff/ffff/ffff\x1b", b"\\x"], &["Background(255, 255, 255)", "x"]),
        (&[b"\x1b", b"[<64;10;10M"], &["esc", "ScrollUp 9 9"]),
        (&[b"\xe4\xbd", b"\xa0"], &["你"]),
        // A user types one key at a time.
        (&[b"\x1b", b"[", b"?", b"1"], &["esc", "[", "?", "1"]),
    ] {
        assert_eq!(read_with_silence(reads), expected, "{reads:?}");
    }
}

mod random {
    use super::*;
    use crate::tui::tests::fixtures::model;
    use crate::tui::update::{Msg, update};
    use proptest::prelude::*;

    /// Generates reports from the terminal, none of which is a key.
    fn answer() -> impl Strategy<Value = Vec<u8>> {
        let known: [&[u8]; 27] = [
            b"\x1b[?62;22c",
            b"\x1b[0n",
            b"\x1b[?2026;2$y",
            b"\x1b[?2027;0$y",
            b"\x1b[?2031;2$y",
            b"\x1b[?997;2n",
            b"\x1b[?1u",
            b"\x1b[>4;0m",
            b"\x1b[>0;276;0c",
            b"\x1b[=1;2c",
            b"\x1b[12;40R",
            b"\x1b[48;24;80;480;640t",
            b"\x1b]11;rgb:1414/1616/1b1b\x1b\\",
            b"\x1b]10;rgb:ffff/ffff/ffff\x07",
            b"\x1b]52;c;aGVsbG8=\x07",
            b"\x1bP>|xterm(390)\x1b\\",
            b"\x1bP1+r524742=38\x1b\\",
            b"\x1bP0+r524742\x1b\\",
            b"\x1bP1$r0m\x1b\\",
            b"\x1b_Gi=31;OK\x1b\\",
            b"\x1b[I",
            b"\x1b[O",
            b"\x1b[<35;10;20M",
            b"\x1b[<0;10;20m",
            b"\x1b[M !!",
            b"\x1b[97;1:3u",
            b"\x1b[57441;2u",
        ];
        let unknown = ("[?>=]", "[0-9;]{0,12}", "[ -/]{0,2}", "[c-z]").prop_map(|(a, b, c, d)| format!("\x1b[{a}{b}{c}{d}"));
        prop_oneof![8 => prop::sample::select(known.to_vec()).prop_map(<[u8]>::to_vec), 1 => unknown.prop_map(String::into_bytes)]
    }

    fn cut(bytes: &[u8], places: &[prop::sample::Index]) -> Vec<Vec<u8>> {
        let mut cuts: Vec<usize> = places.iter().map(|place| place.index(bytes.len() + 1)).chain([0, bytes.len()]).collect();
        cuts.sort_unstable();
        cuts.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn text_typed_between_terminal_responses_reaches_the_draft_in_order(
            parts in prop::collection::vec((answer(), "[a-z 你é.,;0-9]{0,5}"), 1..8),
            places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let mut bytes = Vec::new();
            let mut typed = String::new();
            for (answer, text) in &parts {
                bytes.extend(answer);
                bytes.extend(text.as_bytes());
                typed.push_str(text);
            }
            let mut model = model(80, 24);
            let mut sequences = Sequences::default();
            let mut now = 1000;
            for read in cut(&bytes, &places) {
                sequences.push(&read, |piece| {
                    now += 50;
                    if let Some(input) = decode(piece) {
                        let _ = update(&mut model, Msg::Input(input), now);
                    }
                });
            }
            prop_assert_eq!(model.composer.text(), typed, "{}", bytes.escape_ascii());
        }

        #[test]
        fn arbitrary_bytes_leave_no_control_characters_in_the_draft(bytes in prop::collection::vec(any::<u8>(), 0..400), places in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
            let mut model = model(80, 24);
            let mut sequences = Sequences::default();
            for read in cut(&bytes, &places) {
                sequences.push(&read, |piece| {
                    if let Some(input) = decode(piece) {
                        let _ = update(&mut model, Msg::Input(input), 1000);
                    }
                });
            }
            sequences.flush(|piece| drop(decode(piece)));
            let has_control = model.composer.text().contains(|letter: char| letter.is_control() && letter != '\n' && letter != '\t');
            prop_assert!(!has_control, "{:?}", model.composer.text());
        }

        #[test]
        fn malformed_escape_sequences_do_not_panic(
            start in prop_oneof![Just("\x1b["), Just("\x1bO"), Just("\x1b]"), Just("\x1bP"), Just("\x1b_")],
            body in "[0-9;:<=>?!$ A-Za-z~]{0,10}",
        ) {
            let mut sequences = Sequences::default();
            sequences.push(format!("{start}{body}\x07").as_bytes(), |piece| drop(decode(piece)));
            sequences.flush(|piece| drop(decode(piece)));
        }
    }
}
