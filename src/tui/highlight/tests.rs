use super::grammars::{CompileQuota, Grammars};
use super::*;
use crate::tui::theme::Theme;
use std::time::{Duration, Instant};

/// Returns the highlighted pieces of the last line, each in the form `text:Kind`.
fn kinds(language: &str, code: &[&str]) -> String {
    let mut track = HighlightedBlock::new(language);
    track.want(code.len(), |range| code[range].iter().map(|line| (*line).to_owned()).collect());
    wait_until_idle();
    let lines = lock_ignoring_poison(&track.shared.lines);
    let last = code[code.len() - 1];
    let mut at = 0;
    let mut parts = Vec::new();
    for (end, syntax) in lines.last().expect("a coloured line") {
        let end = usize::from(*end);
        if let Some(syntax) = syntax {
            parts.push(format!("{}:{syntax:?}", last[at..end].trim()));
        }
        at = end;
    }
    parts.join(" ")
}

#[test]
fn code_is_highlighted_by_syntax() {
    for (language, code, expected) in [
        ("rust", &["let x = 1; // one"][..], &["let:Keyword", "1:Number", "// one:Comment"][..]),
        ("rs", &["fn main() {}"], &["fn:Keyword", "main:Function"]),
        ("python", &["def f(): return 'a'"], &["def:Keyword", "f:Function", "return:Keyword", "'a':String"]),
        ("ts", &["const a: number = 2"], &["const:Keyword", "2:Number"]),
        ("toml", &["a = \"b\""], &["\"b\":String"]),
        ("rust", &["/* open", "still"], &["still:Comment"]),
    ] {
        let found = kinds(language, code);
        for part in expected {
            assert!(found.contains(part), "{language} {code:?}: {found}, expected {part}");
        }
    }
}

#[test]
fn an_unknown_language_and_a_very_long_line_stay_plain() {
    let mut unknown = HighlightedBlock::new("no-such-language");
    unknown.want(1, |_| vec!["let x = 1".to_owned()]);
    let long = format!("let x = \"{}\";", "a".repeat(LINE));
    let mut track = HighlightedBlock::new("rust");
    track.want(2, |_| vec![long.clone(), "let y = 1;".to_owned()]);
    wait_until_idle();
    assert!(lock_ignoring_poison(&unknown.shared.lines).is_empty());
    let theme = Theme::dark();
    assert_eq!(track.ink(0, &long, Token::Text).line(&theme).spans.len(), 1);
    assert!(track.ink(1, "let y = 1;", Token::Text).line(&theme).spans.len() > 1);
}

#[test]
fn colours_never_change_the_text() {
    let line = "fn 你好(\"👨‍👩‍👧\") { /* é */ }";
    let mut track = HighlightedBlock::for_path(Path::new("src/main.rs"));
    assert_eq!(track.ink(0, line, Token::Added).text, line, "before the colours are there");
    track.want(1, |_| vec![line.to_owned()]);
    wait_until_idle();
    assert_eq!(track.ink(0, line, Token::Added).text, line);
    assert_eq!(track.ink(0, "let", Token::Added).text, "let", "a line that is not the one that was coloured");
}

#[test]
fn few_grammars_are_kept_compiled_and_highlighting_resumes_within_a_block() {
    let mut rust = HighlightedBlock::new("rust");
    rust.want(1, |_| vec!["/* open".to_owned()]);
    wait_until_idle();
    assert!(kinds("python", &["def f(): pass"]).contains("def:Keyword"));
    rust.want(2, |_| vec!["still */ let x = 1;".to_owned()]);
    wait_until_idle();
    let line = &lock_ignoring_poison(&rust.shared.lines)[1];
    assert_eq!(line.first(), Some(&(8, Some(Syntax::Comment))), "{line:?}");
    assert!(line.iter().any(|(_, syntax)| *syntax == Some(Syntax::Keyword)), "{line:?}");

    let mut grammars = Grammars::default();
    assert_eq!(grammars.name("no-such-language"), None);
    let (rust, python) = (grammars.name("rs").expect("rust"), grammars.name("py").expect("python"));
    assert!(!grammars.is_ready(&rust), "nothing is compiled for a name");
    let bash = grammars.name("sh").expect("bash");
    grammars.make_ready(&rust);
    grammars.make_ready(&python);
    grammars.make_ready(&rust);
    assert!(grammars.is_ready(&python) && grammars.is_ready(&rust), "two that take turns are both held");
    grammars.make_ready(&bash);
    assert!(grammars.is_ready(&bash) && grammars.is_ready(&rust) && !grammars.is_ready(&python), "the one used last of all goes");
    grammars.forget();
    assert!(!grammars.is_loaded() && !grammars.is_ready(&python));
}

#[test]
fn grammar_compilation_is_rate_limited_after_a_short_burst() {
    let begun = Instant::now();
    let at = |ms| begun + Duration::from_millis(ms);
    let mut allowance = CompileQuota::new();
    for taken in 0..3 {
        assert_eq!(allowance.take(at(taken)), Ok(()), "{taken}");
    }
    assert_eq!(allowance.take(at(100)), Err(Duration::from_millis(900)));
    assert_eq!(allowance.take(at(1000)), Ok(()));
    assert_eq!(allowance.take(at(1001)), Err(Duration::from_millis(999)));
    for taken in 0..3 {
        assert_eq!(allowance.take(at(60_000 + taken)), Ok(()), "after a while there are as many as ever: {taken}");
    }
    assert_eq!(allowance.take(at(60_010)), Err(Duration::from_millis(990)));
}
