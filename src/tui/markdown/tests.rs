use proptest::prelude::*;
use ratatui::text::Line;

use super::*;
use crate::text;
use crate::tui::highlight;
use crate::tui::tests::snapshot::{check, picture};
use crate::tui::theme::Token;

fn whole(source: &str) -> MarkdownDocument {
    let mut document = MarkdownDocument::new();
    document.push(source);
    document.finish();
    document
}

fn draw(document: &mut MarkdownDocument, width: u16) -> Vec<Line<'static>> {
    let height = document.height(width);
    let rows: Vec<_> = document.rows(width, 0..height, &Theme::dark()).into_iter().map(|row| row.line).collect();
    assert_eq!(rows.len(), height, "as many rows as the height says");
    rows
}

fn shown(source: &str, width: u16) -> String {
    picture(draw(&mut whole(source), width), width)
}

fn words(line: &Line<'_>) -> String {
    line.spans.iter().map(|span| span.content.as_ref()).collect()
}

const ANSWER: &str = "\
## Plan
The tokenizer re-allocates on **every** token, so
```rust
pub struct Token<'a> {
    pub text: &'a str, // a comment that is long enough to run over the edge of the narrow screen
}
```

Some *emphasis*, ~~struck~~, `code` and a [link](https://example.org/page), <https://example.org>.

1. first
2. second, which is long enough that it has to be wrapped on a narrow screen at least
   - nested
     - deeper
   ```sh
   cargo test
   ```
3. third

- [x] done
- [ ] open

* loose one

* loose two

> quoted words that are
> long enough to wrap when the screen is narrow
>
> > twice

| Step | Before | After |
|:-----|-------:|:-----:|
| lex 1 MB | 48.2 ms | 12.0 ms |
| 解析 👨‍👩‍👧 | 1 ms | ❤️ |

---
<details>raw html</details>

A [reference] too.

[reference]: https://example.org/ref

    indented code
";

#[test]
fn drawn_markdown_matches_the_snapshots() {
    for width in [100, 60, 40] {
        check(&format!("markdown_{width}"), &shown(ANSWER, width));
    }
}

#[test]
fn an_unclosed_fence_is_code() {
    let mut document = MarkdownDocument::new();
    document.push("text\n\n```rust\nlet x = 1;\n\n\nlet *y* = 2;");
    assert_eq!(picture(draw(&mut document, 40), 40), "text\n\n   1  let x = 1;\n   2\n   3\n   4  let *y* = 2;\n");
    document.push("\n``");
    assert_eq!(document.height(40), 6, "what may become the closing fence is not shown as code");
    document.push("`\nafter");
    assert_eq!(picture(draw(&mut document, 40), 40).lines().last(), Some("after"));
}

#[test]
fn list_numbers_continue_across_blank_lines_and_code() {
    let source = "1. one\n\n1. two\n\n   still two\n\n   ```\n   a\n\n   b\n   ```\n\n1. three\n\nend\n\n7. seven\n8. eight\n";
    let expected = "\
1. one

2. two

   still two

      1  a
      2
      3  b

3. three

end

7. seven
8. eight
";
    assert_eq!(shown(source, 40), expected);
}

#[test]
fn line_numbers_of_long_code_continue_across_blocks() {
    let code = (1..=200).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n");
    let text = shown(&format!("```\n{code}\n```\n"), 40);
    let expected: Vec<_> = (1..=200).map(|number| format!("{number:>4}  line {number}")).collect();
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_table_longer_than_one_block_has_a_single_header() {
    let row = format!("| {} | b |\n", "a".repeat(50));
    let count = 600;
    let text = shown(&format!("| one | two |\n|---|---|\n{}", row.repeat(count)), 80);
    assert_eq!(text.lines().count(), count + 2);
    assert_eq!(text.matches("one").count(), 1);
}

#[test]
fn a_table_that_does_not_fit_becomes_records() {
    let table = "| Step | What it does |\n|---|---|\n| lex | reads **every** token of the whole input and keeps its place for the message it may have to give |\n| parse | builds the tree |\n";
    for width in [100, 84, 40] {
        check(&format!("table_{width}"), &shown(table, width));
    }
}

#[test]
fn entities_cannot_produce_forbidden_characters() {
    let text = shown("a &#27;[2J &#x202e;b `c&#8203;d` &#x9b;x [l](<http://e/&#27;x>)", 80);
    for letter in ['\u{1b}', '\u{202e}', '\u{9b}'] {
        assert!(!text.contains(letter), "{text}");
    }
    assert!(text.contains("<U+202E>b"), "{text}");
}

#[test]
fn code_is_highlighted_once_the_colours_are_available() {
    let theme = Theme::dark();
    let mut document = whole("- item\n  ```rust\n  let inner = 1;\n  ```\n\n```rust\nlet outer = 1;\n```\n");
    let height = document.height(60);
    document.rows(60, 0..height, &theme);
    highlight::wait_until_idle();
    let keyword = theme.syntax(crate::tui::theme::Syntax::Keyword, Token::Text).fg;
    let rows: Vec<_> = document.rows(60, 0..height, &theme).into_iter().map(|row| row.line).collect();
    for name in ["inner", "outer"] {
        let line = rows.iter().find(|line| words(line).contains(name)).expect(name);
        let span = line.spans.iter().find(|span| span.content == "let").expect("the keyword by itself");
        assert_eq!(span.style.fg, keyword, "{name}");
    }
}

#[test]
fn rows_do_not_depend_on_the_requested_range() {
    let mut document = whole(ANSWER);
    let all: Vec<String> = draw(&mut document, 50).iter().map(words).collect();
    for start in 0..all.len() {
        let some: Vec<String> = document.rows(50, start..start + 3, &Theme::dark()).iter().map(Row::cells).collect();
        assert_eq!(some, all[start..(start + 3).min(all.len())], "from {start}");
    }
}

/// Generates Markdown in which every kind of block starts and ends.
fn markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ]{0,30}",
        "[ \\t]{0,5}(-|\\*|1\\.|2\\)|>|#|##|```|```rs|~~~|\\|)",
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("| a | b |\n|---|:-:|\n| 1 | 2 |\n".to_owned()),
        Just("**b** _i_ `c` [l](u) <b> &#27; ~~s~~ \\* ![i](u)".to_owned()),
        Just("你好，世界 👨‍👩‍👧‍👦 ❤️ 🇩🇪 é\u{301} \u{200b}\u{202e} ｶﾞ".to_owned()),
        Just("\u{1b}[31mred\u{1b}[0m \u{1b}]0;t\u{7}\r\n".to_owned()),
        Just("\t- [x] ".to_owned()),
        Just("---\n".to_owned()),
        "\\PC{0,8}",
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Splits text into chunks of `size` characters.
fn chunks(text: &str, size: usize) -> impl Iterator<Item = String> {
    let letters: Vec<char> = text.chars().collect();
    let chunks: Vec<String> = letters.chunks(size.max(1)).map(|chunk| chunk.iter().collect()).collect();
    chunks.into_iter()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn streamed_chunks_produce_the_same_rows_as_the_whole_text(source in markdown(), size in 1..9_usize, width in 1..90_u16) {
        let mut piecewise = MarkdownDocument::new();
        for chunk in chunks(&source, size) {
            piecewise.push(&chunk);
            piecewise.height(width);
        }
        piecewise.finish();
        let mut at_once = whole(&source);
        prop_assert_eq!(piecewise.text(), at_once.text());
        let rows = |document: &mut MarkdownDocument| draw(document, width).iter().map(words).collect::<Vec<_>>();
        prop_assert_eq!(rows(&mut piecewise), rows(&mut at_once));
    }

    #[test]
    fn no_row_exceeds_the_width_or_contains_control_characters(source in markdown(), size in 1..40_usize, width in 1..90_u16) {
        let mut document = MarkdownDocument::new();
        for chunk in chunks(&source, size) {
            document.push(&chunk);
            for row in draw(&mut document, width) {
                let row = words(&row);
                prop_assert!(text::width(&row) <= usize::from(width), "{row:?} in {width}");
                prop_assert!(!row.contains(char::is_control), "{row:?}");
            }
        }
    }
}

#[test]
fn a_fence_after_a_quote_and_a_tab_contains_no_tab_and_fits() {
    let mut document = MarkdownDocument::new();
    for chunk in chunks(">\t```", 1) {
        document.push(&chunk);
        for row in draw(&mut document, 5) {
            let row = words(&row);
            assert!(text::width(&row) <= 5 && !row.contains(char::is_control), "{row:?}");
        }
    }
}

#[test]
fn very_long_lines_are_split_the_same_way_whether_streamed_or_whole() {
    let long = format!("{}\n\n```\n{}\n```\n", "some words ".repeat(8000), "x".repeat(50_000));
    let mut piecewise = MarkdownDocument::new();
    for chunk in chunks(&long, 777) {
        piecewise.push(&chunk);
        piecewise.height(80);
    }
    piecewise.finish();
    let mut at_once = whole(&long);
    assert_eq!(draw(&mut piecewise, 80), draw(&mut at_once, 80));
}

#[test]
fn inline_code_keeps_its_backticks_without_colours() {
    let mut document = MarkdownDocument::colourless();
    document.push("Run `cargo test` in ``a`b``, or `` ` ``.\n\n- `x` first\n");
    document.finish();
    let shown = picture(draw(&mut document, 60), 60);
    for words in ["Run `cargo test` in ``a`b``, or `` ` ``.", "• `x` first"] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
    assert!(
        document
            .rows(60, 0..3, &Theme::choose(None, crate::tui::theme::ColourDepth::None))
            .iter()
            .all(|row| { row.line.spans.iter().all(|span| span.style.add_modifier.is_empty()) }),
        "no line stands under a sign"
    );
}
