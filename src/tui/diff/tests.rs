use proptest::prelude::*;
use ratatui::style::{Modifier, Style};

use super::*;
use crate::protocol::FileDiffs;
use crate::text;
use crate::tui::highlight;
use crate::tui::tests::snapshot::{check, picture};
use crate::tui::theme::{ColourDepth, Syntax, Token};

const GREET: &str = "\
diff --git a/src/main.rs b/src/main.rs
index 83db48f..bf269f4 100644
--- a/src/main.rs
+++ b/src/main.rs
@@ -8,9 +8,11 @@ use std::fmt;
 }
 
-fn greet(name: &str) -> String {
-    let mut out = String::new();
-    out.push_str(\"Hello, \");
-    out.push_str(name);
-    out
+fn greet(name: &str) -> Result<String, GreetError> {
+    let name = name.trim();
+    if name.is_empty() {
+        return Err(GreetError::Empty);
+    }
+    Ok(format!(\"Hello, {name}! 你好 👋\"))
 }
 
@@ -30,3 +32,3 @@ fn main() {
 \tlet a = 1;\t// tab
-    let b = 2;  
+    let b = 3;
\\ No newline at end of file
";

const MANY: &str = "\
diff --git a/a.txt b/a.txt
new file mode 100755
--- /dev/null
+++ b/a.txt
@@ -0,0 +1,2 @@
+--- looks like a head
+invoice\u{202e}fdp.exe \u{1b}[2J
diff --git a/b.md b/b.md
deleted file mode 100644
--- a/b.md
+++ /dev/null
@@ -1 +0,0 @@
-++ also looks like one
diff --git a/c.png b/c.png
Binary files a/c.png and b/c.png differ
";

fn draw(diff: &Diff, width: u16) -> Vec<Line<'static>> {
    let height = diff.height(width);
    let rows = diff.rows(width, 0..height, &Theme::dark());
    assert_eq!(rows.len(), height, "as many rows as the height says");
    rows
}

fn words(line: &Line<'_>) -> String {
    line.spans.iter().map(|span| span.content.as_ref()).collect()
}

#[test]
fn drawn_diffs_match_the_snapshots() {
    for width in [100, 60, 40] {
        let diff = Diff::new(&FileDiffs::read(GREET), None);
        check(&format!("diff_{width}"), &picture(draw(&diff, width), width));
    }
    check("diff_files_60", &picture(draw(&Diff::new(&FileDiffs::read(MANY), None), 60), 60));
}

#[test]
fn added_and_removed_lines_and_hunks_are_counted() {
    for (unified, added, removed, hunks) in [(GREET, 7, 6, 2), (MANY, 2, 1, 2), ("", 0, 0, 0), ("no diff at all", 0, 0, 0)] {
        let diff = Diff::new(&FileDiffs::read(unified), None);
        assert_eq!((diff.added(), diff.removed(), diff.hunks()), (added, removed, hunks), "{unified}");
    }
}

#[test]
fn removed_lines_are_counted_per_row_range() {
    let diff = Diff::new(&FileDiffs::read(GREET), None);
    assert_eq!(diff.count_removed(60, 0..diff.height(60)), 6);
    assert_eq!(diff.count_removed(60, 2..4), 2);
    assert_eq!(diff.count_removed(60, 0..2), 0);
}

#[test]
fn changed_lines_are_tinted_to_the_edge_and_have_a_sign() {
    let theme = Theme::dark();
    for width in [100_u16, 60, 30, 12] {
        let diff = Diff::new(&FileDiffs::read(GREET), None);
        for row in diff.rows(width, 0..diff.height(width), &theme) {
            let tints = [Token::Added, Token::Removed].map(|token| theme.style(token).bg);
            let word_tints = [Token::AddedWord, Token::RemovedWord].map(|token| theme.style(token).bg);
            let Some(kind) = tints.iter().position(|tint| row.spans.iter().any(|span| span.style.bg == *tint)) else { continue };
            assert_eq!(text::width(&words(&row)), usize::from(width), "{row:?}");
            assert!(row.spans.iter().all(|span| [tints[kind], word_tints[kind]].contains(&span.style.bg)), "{row:?}");
            assert!(words(&row).contains(["+", "−"][kind]), "{row:?}");
        }
    }
}

/// Returns the words that are drawn in the stronger tint, in order.
fn emphasis(unified: &str) -> Vec<String> {
    let theme = Theme::dark();
    let strong: Vec<Style> = [Token::AddedWord, Token::RemovedWord].map(|token| theme.style(token)).to_vec();
    let diff = Diff::new(&FileDiffs::read(unified), None);
    let rows = diff.rows(100, 0..diff.height(100), &theme);
    let spans = rows.iter().flat_map(|row| &row.spans).filter(|span| strong.contains(&span.style));
    spans.map(|span| span.content.to_string()).collect()
}

#[test]
fn changed_words_are_highlighted() {
    for (removed, added, expected) in [
        (&["    let b = 2;"][..], &["    let b = 3;"][..], &["2", "3"][..]),
        (&["fn f(a: u8)"], &["fn f(a: u8, b: u8)"], &[", b: u8"]),
        (&["entirely", "let x = 1;"], &["let x = 10;"], &["1", "10"]),
        (&["nothing in common"], &["xyz"], &[]),
        (&["你好 世界"], &["你好 地球"], &["世界", "地球"]),
    ] {
        let (old, new) = (removed.join("\n-"), added.join("\n+"));
        let unified = format!("@@ -1,{} +1,{} @@\n-{old}\n+{new}\n", removed.len(), added.len());
        assert_eq!(emphasis(&unified), expected, "{unified}");
    }
}

#[test]
fn without_colours_changed_words_are_underlined() {
    let theme = Theme::choose(None, ColourDepth::None);
    let diff = Diff::new(&FileDiffs::read("@@ -1 +1 @@\n-a b\n+a c\n"), None);
    let rows = diff.rows(20, 0..2, &theme);
    assert!(rows[1].spans.iter().any(|span| span.content == "c" && span.style == theme.style(Token::AddedWord)));
    assert!(words(&rows[0]).contains("−a b") && words(&rows[1]).contains("+a c"));
}

#[test]
fn syntax_colours_keep_the_diff_tint() {
    let theme = Theme::dark();
    let diff = Diff::new(&FileDiffs::read("@@ -1 +1 @@\n-fn a() {}\n+// gone\n"), Some(Path::new("x.rs")));
    diff.rows(40, 0..2, &theme);
    highlight::wait_until_idle();
    let rows = diff.rows(40, 0..2, &theme);
    let style = |row: usize, part: &str| rows[row].spans.iter().find(|span| span.content.contains(part)).map(|span| span.style);
    assert_eq!(style(0, "fn"), Some(theme.syntax(Syntax::Keyword, Token::Removed)));
    assert_eq!(style(1, "gone"), Some(theme.syntax(Syntax::Comment, Token::Added)));
}

#[test]
fn character_markers_are_reversed_and_lookalike_text_is_not() {
    let diff = Diff::new(&FileDiffs::read("@@ -0,0 +1 @@\n+a\u{202e}b <U+202E>\u{7}\n"), None);
    let rows = diff.rows(60, 0..1, &Theme::choose(None, ColourDepth::None));
    let reversed = rows[0].spans.iter().filter(|span| span.style.add_modifier.contains(Modifier::REVERSED));
    assert_eq!(reversed.map(|span| span.content.as_ref()).collect::<Vec<_>>(), ["<U+202E>", "␇"]);
}

#[test]
fn crlf_is_noted_once_if_all_lines_have_it_and_marked_per_line_otherwise() {
    let all = picture(draw(&Diff::new(&FileDiffs::read("@@ -1 +1 @@\r\n-a\r\n+b\r\n"), None), 40), 40);
    assert_eq!(all, " 1 −a\n 1 +b\nevery line here ends in CRLF\n");
    let some = picture(draw(&Diff::new(&FileDiffs::read("@@ -1 +1 @@\n-a\n+a\r\n"), None), 40), 40);
    assert_eq!(some, " 1 −a\n 1 +a␍\n");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_character_of_every_line_is_shown(lines in prop::collection::vec("[ +-][\\PC\\t\u{1b}\u{202e}\u{200b}]{0,60}", 1..12), width in 1..70_u16) {
        let count = |sides: [char; 2]| lines.iter().filter(|line| line.starts_with(sides)).count();
        let unified = format!("@@ -1,{} +1,{} @@\n{}\n", count([' ', '-']), count([' ', '+']), lines.join("\n"));
        let diff = Diff::new(&FileDiffs::read(&unified), None);
        let rows: Vec<String> = draw(&diff, width).iter().map(words).collect();
        for row in &rows {
            prop_assert!(text::width(row) <= usize::from(width), "{row:?} in {width}");
            prop_assert!(!row.contains(char::is_control), "{row:?}");
        }
        if width >= 12 {
            let body = |row: &String| row.chars().skip(4).filter(|letter| !" →·".contains(*letter)).collect::<String>();
            let seen: String = rows.iter().map(body).collect();
            let meant = |line: &String| text::reveal(&line[1..]).chars().filter(|letter| !" →·\t".contains(*letter)).collect::<String>();
            prop_assert_eq!(seen, lines.iter().map(meant).collect::<String>());
        }
    }

    #[test]
    fn arbitrary_text_is_drawn_as_a_diff_within_the_width(text in "((diff|---|\\+\\+\\+|@@ -1,2 \\+1 @@|@@ -9 \\+9,99 @@|\\\\ No|-|\\+| |)\\PC{0,10}\r?\n){0,20}", width in 1..50_u16) {
        let diff = Diff::new(&FileDiffs::read(&text), Some(Path::new("a.rs")));
        for row in draw(&diff, width) {
            prop_assert!(text::width(&words(&row)) <= usize::from(width));
        }
    }
}

#[test]
fn created_and_deleted_files_are_unified_next_to_files_that_are_side_by_side() {
    let diff = Diff::new(&FileDiffs::read(&format!("{MANY}{GREET}")), None);
    diff.set_shape(Shape { beside: true, wraps: true });
    let rows: Vec<String> = draw(&diff, 120).iter().map(ToString::to_string).collect();
    let row = |words: &str| rows.iter().find(|row| row.contains(words)).unwrap();
    assert!(
        !row("--- looks like a head").contains(BETWEEN_SIGN) && !row("++ also looks like one").contains(BETWEEN_SIGN),
        "{rows:?}"
    );
    assert!(row("fn greet(name: &str) -> Result").contains(BETWEEN_SIGN), "{rows:?}");
}
