use super::apply::{HunkMismatch, apply};
use super::choose::AmbiguousHunks;
use super::parse::{FileOperation, PatchHunk, PatchLineKind, parse};
use crate::tools::document::line_breaks::Breaks;
use proptest::prelude::*;
use similar::{ChangeTag, TextDiff};

fn text() -> impl Strategy<Value = String> {
    // Few different lines, so that many are equal; some differ only in whitespace or quotes.
    let line = prop::sample::select(&["a", "b", " a", "a ", "", "}", "fn f() {", "\u{201C}q\u{201D}", "\"q\"", "\tx"][..]);
    (prop::collection::vec(line, 0..14), any::<bool>()).prop_map(|(lines, ended)| {
        let text = lines.join("\n");
        if ended && !lines.is_empty() { text + "\n" } else { text }
    })
}

/// Returns the patch for one file, with this many lines of context.
fn made(old: &str, new: &str, radius: usize) -> String {
    let mut patch = "*** Begin Patch\n*** Update File: f\n".to_owned();
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let diff = TextDiff::configure().diff_slices(&old, &new);
    for group in diff.grouped_ops(radius) {
        patch.push_str("@@\n");
        let mut at_end = false;
        for op in &group {
            at_end = op.old_range().end == old.len();
            for change in diff.iter_changes(op) {
                patch.push(match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                });
                patch.push_str(change.value());
                if !change.value().ends_with('\n') {
                    patch.push_str("\n\\ No newline at end of file\n");
                }
            }
        }
        if at_end {
            patch.push_str("*** End of File\n");
        }
    }
    patch + "*** End Patch\n"
}

fn hunks(patch: &str) -> Vec<PatchHunk> {
    match parse(patch).unwrap().remove(0).what {
        FileOperation::Update { hunks, .. } => hunks,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_patch_with_full_context_produces_exactly_the_new_text(old in text(), new in text()) {
        prop_assume!(old != new);
        let patch = made(&old, &new, 100);
        let applied = apply(&old, &hunks(&patch), &[]).unwrap_or_else(|misfit| panic!("{misfit:?}\n{patch}"));
        prop_assert_eq!(applied.text, new, "{}", patch);
    }

    #[test]
    fn a_patch_with_partial_context_produces_the_new_text_or_is_rejected(old in text(), new in text(), radius in 0usize..4) {
        prop_assume!(old != new);
        let patch = made(&old, &new, radius);
        // Only context determines where lines are added.
        if let Ok(applied) = apply(&old, &hunks(&patch), &[]) {
            let placed = hunks(&patch).iter().all(|hunk| hunk.old().next().is_some());
            prop_assert!(!placed || applied.text == new, "{}\n{:?}\n{:?}", patch, applied.text, new);
        }
    }

    #[test]
    fn a_patch_applied_to_another_text_changes_only_the_lines_in_the_patch(old in text(), new in text(), other in text()) {
        prop_assume!(old != new);
        let hunks = hunks(&made(&old, &new, 3));
        if let Ok(applied) = apply(&other, &hunks, &[]) {
            // Every removed line was named, up to whitespace and quotes, and every added line.
            let named = |kind: PatchLineKind, line: &str| hunks.iter().flat_map(|hunk| &hunk.lines).any(|one| {
                one.kind == kind && super::find::MatchLevel::Typography.normalize(&one.text) == super::find::MatchLevel::Typography.normalize(line)
            });
            let (before, after): (Vec<&str>, Vec<&str>) = (other.lines().collect(), applied.text.lines().collect());
            for change in TextDiff::configure().diff_slices(&before, &after).iter_all_changes() {
                let kind = match change.tag() {
                    ChangeTag::Delete => PatchLineKind::Removed,
                    ChangeTag::Insert => PatchLineKind::Added,
                    ChangeTag::Equal => continue,
                };
                // A diff may report a moved line as removed and added.
                prop_assert!(named(kind, change.value()) || named(PatchLineKind::Context, change.value()) || named(PatchLineKind::Removed, change.value()) || named(PatchLineKind::Added, change.value()), "{:?} {:?}", hunks, change);
            }
        }
    }

    #[test]
    fn corrupted_patches_do_not_panic(
        old in text(),
        new in text(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..6, "[-+ @*\\\\a\r\n]{0,3}"), 1..6),
    ) {
        prop_assume!(old != new);
        let mut patch: Vec<char> = made(&old, &new, 2).chars().collect();
        for (at, length, put) in cuts {
            let at = at.index(patch.len().max(1)).min(patch.len());
            let end = (at + length).min(patch.len());
            patch.splice(at..end, put.chars());
        }
        let patch: String = patch.into_iter().collect();
        match parse(&patch) {
            Ok(sections) => for section in sections {
                if let FileOperation::Update { hunks, .. } = section.what {
                    let _ = apply(&old, &hunks, &[]);
                }
            },
            Err(error) => prop_assert!(error.line >= 1 && !error.message.is_empty()),
        }
    }

    #[test]
    fn parsing_arbitrary_text_does_not_panic(patch in "(\\*\\*\\* (Begin|End) Patch\n|\\*\\*\\* (Add|Update|Delete) File: ?[a-z]?\n|@@[ a-z@0-9,+-]*\n|[-+ ]?[a-z ]*\n|\\*\\*\\* End of File\n|```\n|<<'EOF'\nEOF\n){0,12}") {
        let _ = parse(&patch);
    }
}

#[test]
fn text_around_a_patch_is_ignored() {
    let body = "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch\n";
    let wraps = [
        body.to_owned(),
        format!("```\n{body}```\n"),
        format!("```diff\n{body}```"),
        format!("apply_patch <<'EOF'\n{body}EOF\n"),
        format!("<<EOF\n{body}EOF"),
        format!("Here it is:\n\n{body}\nDone."),
        body.replace('\n', "\r\n"),
        body.replace("*** End Patch\n", ""),
        format!("```\n{}```\n", body.replace("*** End Patch\n", "")),
        format!("<<'EOF'\n{}EOF\n", body.replace("*** End Patch\n", "")),
        body.replace("*** Begin Patch\n", ""),
        format!("\u{feff}{body}"),
        body.replace("*** Begin", "  *** begin"),
        body.replace("+x\n", "@@ -0,0 +1 @@\n+x\n*** End of File\n"),
    ];
    for wrapped in wraps {
        let sections = parse(&wrapped).unwrap_or_else(|error| panic!("{error}: {wrapped:?}"));
        assert_eq!(sections.len(), 1, "{wrapped:?}");
        assert_eq!(sections[0].what, FileOperation::Add { content: "x\n".to_owned() }, "{wrapped:?}");
    }
}

#[test]
fn patch_errors_name_their_line() {
    let cases = [
        ("", 1, "`*** Begin Patch` is missing"),
        ("*** Begin Patch\n*** End Patch", 2, "add at least one"),
        ("*** Begin Patch\n*** Frobnicate File: x\n*** End Patch", 2, "is not a header"),
        ("*** Begin Patch\n*** Add File:\n+x\n*** End Patch", 2, "the path is missing"),
        ("*** Begin Patch\n*** Add File: f\nx\n*** End Patch", 3, "does not start with `+`"),
        ("*** Begin Patch\n*** Delete File: f\n-x\n*** End Patch", 3, "is not a header"),
        ("*** Begin Patch\n*** Update File: f\n@@\n-x\n+y", 5, "ends in the middle of a line"),
        ("*** Begin Patch\n*** Add File: f\n+x\n*** End Patch\n*** Add File: g\n+x", 5, "follows `*** End Patch`"),
    ];
    for (patch, line, part) in cases {
        let error = parse(patch).unwrap_err();
        assert!(error.line == line && error.message.contains(part), "{patch:?}: {error}");
    }
}

#[test]
fn an_indented_marker_followed_by_patch_lines_is_a_context_line() {
    let patch = "*** Begin Patch\n*** Update File: notes.md\n@@\n *** Update File: example\n-one\n+two\n *** End Patch\n three\n*** End Patch\n";
    let found = hunks(patch);
    assert_eq!(found[0].old().collect::<Vec<_>>(), ["*** Update File: example", "one", "*** End Patch", "three"]);
}

/// Bounded work finishes immediately, while unbounded work would take hours.
#[test]
fn pathological_patches_are_handled_in_bounded_time() {
    let update = |body: &str| format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch\n");
    let many = 12_000;
    let text: String = (0..many).map(|line| format!("l{line}\n")).collect::<Vec<_>>().concat();
    let backwards: String = (0..many).rev().map(|line| format!("@@\n-l{line}\n+m{line}\n")).collect::<Vec<_>>().concat();
    let done = apply(&text, &hunks(&update(&backwards)), &[]).unwrap();
    assert_eq!(done.text, text.replace('l', "m"));

    let headed = apply(&"h\n x\n".repeat(15_000), &hunks(&update("@@ h\n- x\n+y\n")), &[]);
    assert!(matches!(headed, Err(HunkMismatch::Unclear(AmbiguousHunks::Several { .. }))));
    let same = apply(&"a\n".repeat(20_000), &hunks(&update(&"@@\n-a\n+b\n".repeat(3_000))), &[]);
    assert!(matches!(same, Err(HunkMismatch::Unclear(AmbiguousHunks::Several { .. }))));
    let nearly = update(&format!("@@\n{}-b\n+c\n", "-a\n".repeat(20_000)));
    assert!(apply(&("a\n".repeat(40_000) + "b\nb\n"), &hunks(&nearly), &[]).is_ok());
    let blank = update(&format!("@@\n-x\n+z\n{}", "\n".repeat(15_000)));
    assert!(apply(&format!("x\n{}y\n", "\n".repeat(20_000)), &hunks(&blank), &[]).is_ok());

    let before = format!("{}{}", "x\n".repeat(20_000), update(&format!("@@\n{}", "\ta\n".repeat(20_000))));
    assert_eq!(parse(&before).unwrap().len(), 1);
}

#[test]
fn the_block_of_a_hunk_header_is_determined_by_indentation() {
    let text = "a:\n  x\nb:\n\n  y\n    x\n  x\n}\n  x\nc\n  x\n";
    let patch = "*** Begin Patch\n*** Update File: f\n@@ b:\n-    x\n+z\n*** End Patch\n";
    assert_eq!(apply(text, &hunks(patch), &[]).unwrap().text, text.replace("    x", "z"));
    let patch = "*** Begin Patch\n*** Update File: f\n@@ b:\n   y\n     x\n-  x\n+z\n*** End Patch\n";
    assert!(apply(text, &hunks(patch), &[]).unwrap().text.contains("    x\nz\n}"));
}

/// Generates text in which each line has one of these endings. The last line may have none.
fn with_endings(endings: &'static [&'static str]) -> impl Strategy<Value = Vec<(String, &'static str)>> {
    let line = prop::sample::select(&["a", "b", " a", "", "}", "fn f() {", "\tx", "ü"][..]);
    let ended = (line.prop_map(str::to_owned), prop::sample::select(endings));
    (prop::collection::vec(ended, 1..12), any::<bool>()).prop_map(|(mut lines, ended)| {
        if let Some(last) = lines.last_mut().filter(|last| !ended && !last.0.is_empty()) {
            last.1 = "";
        }
        lines
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn patched_files_with_lone_cr_endings_keep_their_endings(
        lines in prop_oneof![with_endings(&["\r"]), with_endings(&["\r", "\n"]), with_endings(&["\r", "\r\n", "\n"])],
        at in any::<prop::sample::Index>(),
        cut in 0usize..3,
        put in prop::collection::vec("[xyz]{1,3}", 0..3),
    ) {
        // An empty line with LF would turn the CR before it into a CRLF.
        prop_assume!(lines.windows(2).all(|pair| !(pair[0].1 == "\r" && pair[1] == (String::new(), "\n"))));
        let joined = |lines: &[(String, &str)]| lines.iter().flat_map(|(body, ending)| [body.as_str(), ending]).collect::<String>();
        let at = at.index(lines.len());
        let end = (at + cut).min(lines.len());
        prop_assume!(end > at || !put.is_empty());
        let (old, new) = (&lines[at..end], &put);
        let mut patch = "*** Begin Patch\n*** Update File: f\n@@\n".to_owned();
        let mut push = |sign: char, line: &str| patch.extend([sign.to_string(), line.to_owned(), "\n".to_owned()]);
        lines[..at].iter().for_each(|line| push(' ', &line.0));
        for line in old {
            push('-', &line.0);
        }
        for line in new {
            push('+', line);
        }
        lines[end..].iter().for_each(|line| push(' ', &line.0));
        patch.push_str("*** End Patch\n");
        let text = joined(&lines);
        let applied = apply(&text, &hunks(&patch), &[]).unwrap_or_else(|misfit| panic!("{misfit:?}\n{text:?}\n{patch}"));
        // Lines before and after the change keep their bytes; an unterminated last line may be followed by a new one.
        let head = joined(&lines[..at]);
        prop_assert!(applied.text.starts_with(&head), "{:?} {:?}\n{}", text, applied.text, patch);
        if end < lines.len() {
            prop_assert!(applied.text.ends_with(&joined(&lines[end..])), "{:?} {:?}\n{}", text, applied.text, patch);
        }
        // New lines have a line ending of the file.
        let own = |ending: &str| lines.iter().any(|line| line.1 == ending);
        let breaks = Breaks::Cr;
        for line in breaks.lines(&applied.text) {
            let ending = breaks.ending(line);
            let joins = ending == "\r\n" && own("\r") && own("\n");
            prop_assert!(ending.is_empty() || own(ending) || joins || lines.iter().all(|line| line.1.is_empty()), "{:?} {:?}", text, applied.text);
        }
        let bodies: Vec<&str> = breaks.lines(&applied.text).into_iter().map(|line| breaks.body(line)).collect();
        let wanted: Vec<&str> = lines[..at].iter().map(|line| line.0.as_str()).chain(put.iter().map(String::as_str))
            .chain(lines[end..].iter().map(|line| line.0.as_str())).collect();
        prop_assert_eq!(bodies, wanted);
    }
}

#[test]
fn lines_with_lone_cr_endings_are_matched_separately() {
    let update = |body: &str| hunks(&format!("*** Begin Patch\n*** Update File: f\n@@\n{body}*** End Patch\n"));
    for (text, body, after) in [
        ("one\rtwo\rthree\r", " one\n-two\n+2\n", "one\r2\rthree\r"),
        ("one\rtwo", "-two\n+2\n+3\n", "one\r2\r3"),
        ("one\rtwo\r", "+three\n*** End of File\n", "one\rtwo\rthree\r"),
        ("one\r\ntwo\rthree\n", " two\n-three\n+3\n", "one\r\ntwo\r3\n"),
        // A CR within a line of the patch is one of the file.
        ("one\rtwo\rthree\r", "-one\rtwo\n+1\n", "1\rthree\r"),
        // Within a line of a file with LF endings, it is an ordinary character.
        ("10 %\r20 %\nb\nb\n", " 10 %\r20 %\n-b\n+c\n", "10 %\r20 %\nc\nb\n"),
        ("a\rb\nb\n", "-b\n+c\n", "a\rb\nc\n"),
    ] {
        let applied = apply(text, &update(body), &[]).unwrap_or_else(|misfit| panic!("{misfit:?}: {text:?} {body:?}"));
        assert_eq!(applied.text, after, "{text:?} {body:?}");
    }
    let misfit = apply("one\rtwo\rone\r", &update("-one\n+1\n"), &[]).unwrap_err();
    assert_eq!(misfit, HunkMismatch::Unclear(AmbiguousHunks::Several { hunk: 0, starts: vec![0, 2] }));
    let patch = "*** Begin Patch\r*** Update File: f\r@@\r-two\r+2\r*** End Patch\r";
    assert_eq!(apply("one\rtwo\r", &hunks(patch), &[]).unwrap().text, "one\r2\r");
}
