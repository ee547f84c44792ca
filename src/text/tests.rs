use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::width::grapheme_width;
use super::*;
use unicode_segmentation::UnicodeSegmentation;

const GRAPHEMES: &[(&str, usize)] = &[
    ("a", 1),
    ("é", 1),
    ("e\u{301}", 1),
    ("你", 2),
    ("가", 2),
    ("Ａ", 2),
    ("❤", 1),
    ("❤\u{fe0f}", 2),
    ("👋", 2),
    ("👋🏽", 2),
    ("👨‍👩‍👧‍👦", 2),
    ("🇩🇪", 2),
    ("🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", 2),
    ("1\u{fe0f}\u{20e3}", 2),
    ("⚠\u{fe0e}", 1),
    ("⚠\u{fe0f}", 2),
    ("🇩", 1),
    ("👩\u{200d}💻", 2),
    ("\u{1112}\u{1161}\u{11ab}", 2),
    ("한", 2),
    ("ｶﾞ", 3),
    ("│", 1),
    ("\n", 0),
    ("\u{1b}", 0),
];

#[test]
fn grapheme_widths_match_the_screen_buffer() {
    for (grapheme, cells) in GRAPHEMES {
        assert_eq!(grapheme_width(grapheme), *cells, "{grapheme:?}");
        let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 1));
        let (end, _) = buffer.set_stringn(0, 0, grapheme, 20, Style::new());
        assert_eq!(usize::from(end), *cells, "{grapheme:?} on the screen");
    }
}

#[test]
fn graphemes_with_terminal_dependent_width_are_classified() {
    for (graphemes, expected) in [
        (&["a", " ", "你", "한", "カ", "，", "Ａ", "✓", "❯", "ש", "é", "д"][..], WidthDoubt::None),
        (&["e\u{301}"], WidthDoubt::Letter),
        (&["│", "─", "…", "·", "▲", "→", "“"], WidthDoubt::Sign),
        (
            &[
                "❤",
                "❤\u{fe0f}",
                "⚠",
                "☀",
                "👋",
                "👋🏽",
                "🇩🇪",
                "🇩",
                "👩\u{200d}💻",
                "1\u{fe0f}\u{20e3}",
                "क\u{94d}ष",
                "\u{1112}\u{1161}",
            ],
            WidthDoubt::Picture,
        ),
    ] {
        for grapheme in graphemes {
            assert_eq!(width_doubt(grapheme), expected, "{grapheme:?}");
        }
    }
}

#[test]
fn truncated_text_fits_and_ends_with_an_ellipsis() {
    for (text, cells, expected) in [
        ("hello", 5, "hello"),
        ("hello", 4, "hel…"),
        ("hello", 1, "…"),
        ("hello", 0, ""),
        ("", 0, ""),
        ("你好世界", 8, "你好世界"),
        ("你好世界", 6, "你好…"),
        ("你好世界", 2, "…"),
        ("a👨‍👩‍👧b", 3, "a…"),
        ("a👨‍👩‍👧b", 4, "a👨‍👩‍👧b"),
    ] {
        assert_eq!(truncate(text, cells), expected, "{text} in {cells}");
    }
}

#[test]
fn tabs_expand_to_the_next_tab_stop() {
    for (text, expected) in [("\ta", "    a"), ("ab\tc", "ab  c"), ("你\tc\n\td", "你  c\n    d"), ("abcd\te", "abcd    e")] {
        assert_eq!(expand_tabs(text), expected);
    }
}

fn rows<'t>(text: &'t str, ranges: &[std::ops::Range<usize>]) -> Vec<&'t str> {
    ranges.iter().map(|range| &text[range.clone()]).collect()
}

#[test]
fn rows_wrap_at_spaces_and_between_wide_characters() {
    for (text, width, expected) in [
        ("", 10, &[""][..]),
        ("one two three", 8, &["one two", "three"]),
        ("one two", 7, &["one two"]),
        ("one  two", 5, &["one", "two"]),
        ("  indented text", 10, &["  indented", "text"]),
        ("one\n\ntwo", 10, &["one", "", "two"]),
        ("one\n", 10, &["one", ""]),
        ("abcdefghij", 4, &["abcd", "efgh", "ij"]),
        ("a abcdefgh", 4, &["a", "abcd", "efgh"]),
        ("see 你好世界", 8, &["see 你好", "世界"]),
        ("你好，世界", 4, &["你", "好，", "世界"]),
        ("a👨‍👩‍👧b", 2, &["a", "👨‍👩‍👧", "b"]),
        ("trailing   ", 8, &["trailing"]),
    ] {
        assert_eq!(rows(text, &wrap(text, width)), expected, "{text:?} in {width}");
    }
}

#[test]
fn unbreakable_pieces_are_not_split_if_they_fit_in_a_row() {
    for (text, width, piece, expected) in [
        ("ago · aye --resume=7f3a", 20, "aye --resume=7f3a", &["ago ·", "aye --resume=7f3a"][..]),
        ("ago · aye --resume=7f3a", 10, "aye --resume=7f3a", &["ago · aye", "--resume=7", "f3a"]),
        ("a 你 好 c", 6, "你 好", &["a", "你 好", "c"]),
        ("one two three", 30, "two three", &["one two three"]),
    ] {
        let start = text.find(piece).unwrap();
        let whole = start..start + piece.len();
        let found = wrap_keeping(text, width, std::slice::from_ref(&whole));
        assert_eq!(rows(text, &found), expected, "{text:?} in {width}");
    }
}

#[test]
fn wrapped_code_keeps_every_character() {
    for (text, width, expected) in [
        ("", 10, &[""][..]),
        ("let x = 1;", 10, &["let x = 1;"]),
        ("let value = 1;", 10, &["let value", " = 1;"]),
        ("a bcdefghijk", 10, &["a bcdefghi", "jk"]),
        ("          ", 4, &["    ", "    ", "  "]),
        ("你好世界", 5, &["你好", "世界"]),
        ("a👨‍👩‍👧b", 2, &["a", "👨‍👩‍👧", "b"]),
    ] {
        assert_eq!(rows(text, &wrap_exact(text, width)), expected, "{text:?} in {width}");
    }
}

#[test]
fn unprintable_characters_are_removed_or_made_visible() {
    for (text, cleaned, revealed) in [
        ("plain\n\ttext", "plain\n\ttext", "plain\n\ttext"),
        ("\u{1b}[31mred\u{1b}[0m", "red", "␛[31mred␛[0m"),
        ("a\u{1b}]0;t\u{7}b", "ab", "a␛]0;t␇b"),
        ("a\u{1b}]8;;u\u{1b}\\b", "ab", "a␛]8;;u␛\\b"),
        ("a\u{1b}Pq\u{1b}\\b", "ab", "a␛Pq␛\\b"),
        ("a\u{1b}(Bb\u{1b}cd", "abd", "a␛(Bb␛cd"),
        ("a\u{1b}[31", "a", "a␛[31"),
        ("a\u{1b}]0;no end\nb", "a0;no end\nb", "a␛]0;no end\nb"),
        ("a\u{1b}\u{1b}[1mb", "ab", "a␛␛[1mb"),
        ("a\u{1b}你", "a␛你", "a␛你"),
        ("a\u{1b}[1你", "a你", "a␛[1你"),
        ("a\r\nb\rc\r", "a\nb␍c␍", "a\nb␍c␍"),
        ("a\u{0}\u{7}\u{8}\u{b}\u{7f}", "a␀␇␈␋␡", "a␀␇␈␋␡"),
        ("a\u{9b}2Jb", "a<U+009B>2Jb", "a<U+009B>2Jb"),
        ("x\u{202e}y\u{2066}z\u{200f}", "x<U+202E>y<U+2066>z<U+200F>", "x<U+202E>y<U+2066>z<U+200F>"),
        ("git\u{200b} \u{feff}\u{2060}", "git<U+200B> <U+FEFF><U+2060>", "git<U+200B> <U+FEFF><U+2060>"),
        ("pass\u{200d}word", "pass<U+200D>word", "pass<U+200D>word"),
        ("می\u{200c}خواهم", "می\u{200c}خواهم", "می\u{200c}خواهم"),
        ("👨\u{200d}👩 ❤\u{fe0f}\u{200d}🔥", "👨\u{200d}👩 ❤\u{fe0f}\u{200d}🔥", "👨\u{200d}👩 ❤\u{fe0f}\u{200d}🔥"),
        ("a\u{fe0f}b\u{fe01}", "a<U+FE0F>b<U+FE01>", "a<U+FE0F>b<U+FE01>"),
        ("a\u{e0100}葛\u{e0100}\u{e0101}", "a<U+E0100>葛\u{e0100}<U+E0101>", "a<U+E0100>葛\u{e0100}<U+E0101>"),
        ("hi\u{e0072}\u{e006d}", "hi<U+E0072><U+E006D>", "hi<U+E0072><U+E006D>"),
        ("🏴\u{e0067}x", "🏴<U+E0067>x", "🏴<U+E0067>x"),
        (
            "1\u{fe0f}\u{20e3} 1\u{fe0f} #\u{fe0e}a",
            "1\u{fe0f}\u{20e3} 1<U+FE0F> #<U+FE0E>a",
            "1\u{fe0f}\u{20e3} 1<U+FE0F> #<U+FE0E>a",
        ),
        ("\u{338}ls\n\u{301}b\t\u{301}", "<U+0338>ls\n<U+0301>b\t<U+0301>", "<U+0338>ls\n<U+0301>b\t<U+0301>"),
        ("\u{202e}\u{301}", "<U+202E><U+0301>", "<U+202E><U+0301>"),
        (
            "a\u{11a8}b 한 \u{1112}\u{1161}\u{11ab}",
            "a<U+11A8>b 한 \u{1112}\u{1161}\u{11ab}",
            "a<U+11A8>b 한 \u{1112}\u{1161}\u{11ab}",
        ),
        ("a\u{1107f}\u{2d7f}\u{16fe4}", "a<U+1107F><U+2D7F><U+16FE4>", "a<U+1107F><U+2D7F><U+16FE4>"),
        ("a\u{a0}b\u{2800}c\u{3000}", "a\u{a0}b\u{2800}c\u{3000}", "a<U+00A0>b<U+2800>c<U+3000>"),
        ("café e\u{301} 你好 ✓ שלום", "café e\u{301} 你好 ✓ שלום", "café e\u{301} 你好 ✓ שלום"),
    ] {
        assert_eq!(clean(text), cleaned, "{text:?}");
        assert_eq!(reveal(text), revealed, "{text:?}");
    }
}

#[test]
fn different_names_are_displayed_differently() {
    let names = ["a b", "a  b", " a b", "a b ", "a\nb", "a\tb", "a\u{a0}b", "a\u{200b} b", "a  b  "];
    let shown: Vec<String> = names.iter().map(|name| reveal_name(name)).collect();
    assert_eq!(shown, ["a b", "a  b", "␠a b", "a b␠", "a␊b", "a␉b", "a<U+00A0>b", "a<U+200B> b", "a  b␠␠"]);
    assert_eq!((reveal_name(""), reveal_name("  ")), (String::new(), "␠␠".to_owned()));
}

#[test]
fn unterminated_sequences_are_shown_and_their_excess_is_counted() {
    let text = format!("a\u{1b}]{}\nb", "x".repeat(5000));
    let kept = format!("a{}<+904 characters>\nb", "x".repeat(4096));
    assert_eq!(clean(&text), kept);
    assert_eq!(clean(text.trim_end_matches("\nb")), kept.trim_end_matches("\nb"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    /// Tests that every grapheme occupies at least one cell, so nothing that the user approves is invisible.
    #[test]
    fn every_revealed_grapheme_is_visible(text in prop::collection::vec(prop_oneof![
        any::<char>(),
        prop::sample::select(vec!['a', '\t', '\n', '\u{301}', '\u{11a8}', '\u{1161}', '\u{1112}', '\u{fe0f}', '\u{20e3}', '1', '❤', '\u{200d}', '한']),
    ], 0..12)) {
        let text: String = text.into_iter().collect();
        for grapheme in reveal(&text).graphemes(true) {
            prop_assert!(matches!(grapheme, "\n" | "\t") || grapheme_width(grapheme) > 0, "{grapheme:?} in {text:?}");
        }
    }
}

#[test]
fn excess_combining_marks_are_replaced_by_a_count() {
    let flood = format!("Z{}z", "\u{301}".repeat(200));
    let kept = format!("Z{}<+192 marks>z", "\u{301}".repeat(8));
    assert_eq!(clean(&flood), kept);
}

fn followed(chunks: &[&str]) -> String {
    let mut cleaner = Cleaner::new();
    let mut out = String::new();
    for chunk in chunks {
        cleaner.push(chunk, &mut out);
    }
    cleaner.finish(&mut out);
    out
}

#[test]
fn progress_output_shows_its_last_state_and_other_overwrites_are_visible() {
    for (text, expected) in [
        ("10%\r20%\r100% done\n", "100% done\n"),
        ("Building 1/3\rBuilding 2/3\r\u{1b}[KFinished\n", "Finished\n"),
        ("⠋ Installing\r⠙ Installing\r✓ Installing done\n", "✓ Installing done\n"),
        ("|\u{8}/\u{8}-\u{8}\\\u{8} ok\n", " ok\n"),
        ("safe text\rrm -rf /   ", "safe text␍rm -rf /   "),
        ("safe text\r         \rrm", "safe text␍rm"),
        ("password\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}xxxxxxxx", "password␈␈␈␈␈␈␈␈xxxxxxxx"),
        ("N\u{8}NA\u{8}A _\u{8}u\n", "NA u\n"),
        ("🏴\u{e0067}\u{e007f}\u{8}👋\n", "👋\n"),
        ("_\u{8}\u{301}\n", "<U+0301>\n"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("one\r\r\ntwo", "one\ntwo"),
        ("kept\r", "kept"),
        ("\u{8}\u{8}a", "a"),
        ("", ""),
    ] {
        assert_eq!(followed(&[text]), expected, "{text:?}");
    }
}

#[test]
fn the_unfinished_line_is_available() {
    let mut cleaner = Cleaner::new();
    let mut out = String::new();
    cleaner.push("done\nPassword: ", &mut out);
    assert_eq!((out.as_str(), cleaner.open_line().as_str()), ("done\n", "Password: "));
    cleaner.push("\rPassword again: \r", &mut out);
    assert_eq!(cleaner.open_line(), "Password again: ");
}

#[test]
fn an_endless_line_is_buffered_up_to_a_limit() {
    let mut cleaner = Cleaner::new();
    let mut out = String::new();
    for _ in 0..100 {
        cleaner.push(&"x".repeat(10_000), &mut out);
    }
    assert!(cleaner.open_line().len() <= 64 * 1024);
    cleaner.finish(&mut out);
    assert_eq!(out.len(), 1_000_000);
}

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\u{1b}"),
        Just("\u{1b}["),
        Just("\u{1b}]0;"),
        Just("\u{1b}P"),
        Just("\u{1b}\\"),
        Just("\u{7}"),
        Just("31m"),
        Just("\r"),
        Just("\r\n"),
        Just("\n"),
        Just("\u{8}"),
        Just("\u{200d}"),
        Just("👨"),
        Just("❤\u{fe0f}"),
        Just("🏴\u{e0067}\u{e0062}"),
        Just("\u{e007f}"),
        Just("\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}"),
        Just("\u{202e}"),
        Just("\u{9b}"),
        Just("word "),
        Just("你好"),
    ];
    prop_oneof![prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat()), any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn displayed_text_never_controls_the_terminal(text in hostile()) {
        for shown in [clean(&text).into_owned(), reveal(&text).into_owned(), followed(&[&text])] {
            prop_assert!(!shown.contains(|letter: char| letter.is_control() && !matches!(letter, '\n' | '\t')), "{shown:?}");
            let turns = |letter| matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}');
            prop_assert!(!shown.contains(turns), "{shown:?}");
            prop_assert_eq!(clean(&shown), shown.as_str(), "clean text stays as it is");
        }
    }

    #[test]
    fn filtering_does_not_depend_on_chunk_boundaries(text in hostile(), size in 1..5_usize) {
        let letters: Vec<char> = text.chars().collect();
        let chunks: Vec<String> = letters.chunks(size).map(|chunk| chunk.iter().collect()).collect();
        let parts: Vec<&str> = chunks.iter().map(String::as_str).collect();
        prop_assert_eq!(followed(&parts), followed(&[&text]));
        let (mut filter, mut out) = (Filter::default(), String::new());
        for chunk in &chunks {
            filter.push(chunk, &mut out);
        }
        filter.finish(&mut out);
        prop_assert_eq!(out, clean(&text));
    }

    #[test]
    fn wrapped_rows_fit_and_drop_only_whitespace(text in "[a-z 你👋é\n]{0,80}", cells in 2..30_usize) {
        for (ranges, keeps_spaces) in [(wrap(&text, cells), false), (wrap_exact(&text.replace('\n', "n"), cells), true)] {
            let text = if keeps_spaces { text.replace('\n', "n") } else { text.clone() };
            let rows = rows(&text, &ranges);
            for row in &rows {
                prop_assert!(width(row) <= cells, "{row:?} in {cells}");
            }
            if keeps_spaces {
                prop_assert_eq!(rows.concat(), text);
            } else {
                prop_assert_eq!(rows.concat().replace(' ', ""), text.replace([' ', '\n'], ""));
            }
        }
    }

    #[test]
    fn graphemes_are_never_split_and_their_widths_add_up(
        parts in prop::collection::vec(prop::sample::select(GRAPHEMES[..GRAPHEMES.len() - 2].to_vec()), 0..30),
        spaces in prop::collection::vec(any::<bool>(), 30),
        cells in 2..20_usize,
    ) {
        let text: String = parts.iter().zip(spaces).map(|((part, _), space)| if space { format!("{part} ") } else { (*part).to_owned() }).collect();
        let borders: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).collect();
        prop_assert_eq!(width(&text), text.graphemes(true).map(grapheme_width).sum::<usize>());
        for range in wrap(&text, cells).into_iter().chain(wrap_exact(&text, cells)) {
            prop_assert!(borders.contains(&range.start) && borders.contains(&range.end), "{range:?} of {text:?}");
            let row = &text[range];
            prop_assert!(width(row) <= cells || row.graphemes(true).count() == 1, "{row:?} in {cells}");
        }
        for cut in [truncate(&text, cells), truncate_middle(&text, cells)] {
            let kept = cut.split('…').all(|part| part.is_empty() || text.contains(part));
            let whole = cut.graphemes(true).all(|grapheme| grapheme == "…" || text.graphemes(true).any(|other| other == grapheme));
            prop_assert!(kept && whole && width(&cut) <= cells, "{cut:?} of {text:?} in {cells}");
        }
    }

    #[test]
    fn truncated_text_fits_the_width(text in "\\PC{0,30}", cells in 0..20_usize) {
        prop_assert!(width(&truncate(&text, cells)) <= cells);
    }
}

/// Returns the strings listed under a key of a test case.
fn strings(case: &serde_json::Value, key: &str) -> Vec<String> {
    let list = case[key].as_array().into_iter().flatten();
    list.filter_map(|entry| entry.as_str().map(str::to_owned)).collect()
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn the_terminal_corpus_is_displayed_as_expected() {
    let corpus = std::fs::read_to_string(shared!("corpora/terminal.jsonl")).unwrap();
    let mut faults = Vec::new();
    for line in corpus.lines() {
        let case: serde_json::Value = serde_json::from_str(line).expect("a case a line");
        let Some(text) = case["text"].as_str() else { continue };
        let decided_on = ["approval_command", "diff", "file_name", "mcp_tool_name", "url"]
            .contains(&case["context"].as_str().unwrap_or_default());
        let other = if decided_on { reveal(text).into_owned() } else { followed(&[text]) };
        for shown in [clean(text).into_owned(), other] {
            let missing = strings(&case, "must_show").into_iter().filter(|piece| !shown.contains(piece.as_str()));
            faults.extend(missing.map(|piece| format!("{}: `{piece}` is not in {shown:?}", case["id"])));
            let emitted = strings(&case, "must_not_emit").into_iter().filter(|piece| shown.contains(piece.as_str()));
            faults.extend(emitted.map(|piece| format!("{}: {piece:?} is in {shown:?}", case["id"])));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn text_truncated_in_the_middle_fits_and_keeps_both_ends() {
    assert_eq!(truncate_middle("abc", 3), "abc");
    assert_eq!(truncate_middle("src/deep/down/main.rs", 11), "src/d…in.rs");
    for text in ["src/deep/down/main.rs", "你好你好你好你好", "a👋b👋c👋d👋"] {
        for cells in 0..20 {
            assert!(width(&truncate_middle(text, cells)) <= cells, "{text} {cells}");
        }
    }
}
