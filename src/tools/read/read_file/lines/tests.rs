use super::*;
use encoding_rs::ISO_2022_JP;

fn redactor() -> Redactor {
    Redactor::new(Vec::new(), [], || [7; 32])
}

fn part(text: &[u8], first: u64, count: u64, column: u64, max_bytes: usize) -> LineSelection {
    read_range(text, UTF_8, Range { first, count, column }, max_bytes, &redactor()).unwrap()
}

#[test]
fn long_lines_can_be_read_in_parts_to_the_end() {
    let line: String = (0..60_000).map(|index| char::from_u32(0x100 + index % 500).unwrap()).collect();
    let text = format!("one\n{line}\nthree\n");
    let (mut got, mut column) = (String::new(), 1);
    loop {
        let taken = part(text.as_bytes(), 2, 1, column, 10_000);
        got.push_str(&taken.text);
        assert!(taken.text.len() <= 10_000);
        match taken.rest {
            RemainingText::LongLine { column: next } => column = next,
            RemainingText::Lines => break,
            rest => panic!("{rest:?}"),
        }
    }
    assert_eq!(got, format!("{line}\n"));
}

#[test]
fn a_column_past_the_line_end_reports_the_length_of_the_line() {
    for (text, columns) in [("abc\ndef", 3), ("abc", 3), ("abc\r\n", 3), ("\nx", 0)] {
        assert_eq!(part(text.as_bytes(), 1, 1, 9, 100).rest, RemainingText::ShortLine { columns }, "{text:?}");
    }
    assert_eq!(part(b"abc\ndef", 1, 9, 3, 100).text, "c\ndef");
    assert_eq!(part(b"abc\ndef", 1, 9, 4, 100).text, "\ndef");
}

#[test]
fn the_byte_limit_is_inclusive() {
    for (bytes, rest) in
        [(99, RemainingText::Nothing), (100, RemainingText::Nothing), (101, RemainingText::LongLine { column: 101 })]
    {
        assert_eq!(part("x".repeat(bytes).as_bytes(), 1, 9, 1, 100).rest, rest, "{bytes}");
    }
    let lines = "123456789\n".repeat(10);
    assert_eq!(part(lines.as_bytes(), 1, u64::MAX, 1, 100).rest, RemainingText::Nothing);
    let cut = part(format!("{lines}x").as_bytes(), 1, u64::MAX, 1, 100);
    assert_eq!((cut.rest, cut.seen, cut.text), (RemainingText::Bound, 10, lines.clone()));
    let crlf = lines.replace('\n', "\r\n");
    let whole = part(crlf.as_bytes(), 1, u64::MAX, 1, 100);
    assert_eq!((whole.rest, whole.text), (RemainingText::Nothing, lines));
}

#[test]
fn secrets_are_not_split_across_parts() {
    let token = "ghp_R8vQ2mZx7LkPw3TnYb6HcJd9FsGa4Ue1Xo5i";
    let line = format!("{{\"a\": \"{}\", \"t\": \"{token}\"}}", "x".repeat(200));
    let at = line.find(token).unwrap();
    for inside in 1..token.len() {
        let after = part(line.as_bytes(), 1, 1, (at + inside + 1) as u64, 1_000);
        assert!(!after.text.contains(&token[token.len() - 4..]), "{inside}: {}", after.text);
        let before = part(line.as_bytes(), 1, 1, 1, at + inside);
        assert!(!before.text.contains(&token[..1.max(inside.min(4))]), "{inside}: {}", before.text);
    }
}

#[test]
fn encodings_without_ascii_compatibility_are_read_by_line() {
    let (bytes, _, _) = ISO_2022_JP.encode("x");
    assert_eq!(bytes.as_ref(), b"x");
    let text = b"a\n\x1b$B%F%9%H\x1b(B\nc\n";
    let taken = read_range(text.as_slice(), ISO_2022_JP, Range { first: 2, count: 1, column: 1 }, 100, &redactor()).unwrap();
    assert_eq!((taken.text.as_str(), taken.rest), ("テスト\n", RemainingText::Lines));
}
