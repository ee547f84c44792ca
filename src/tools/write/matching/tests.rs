use super::*;

/// Checks an edit. `expected` is the resulting text, or one of `several`, `nowhere` and `indentation`.
#[track_caller]
fn check(text: &str, old: &str, new: &str, expected: &str) {
    check_all(text, old, new, Occurrences::TheOnly, expected);
}

#[track_caller]
fn check_all(text: &str, old: &str, new: &str, which: Occurrences, expected: &str) {
    let (result, how) = match find(text, old, new, which, &[]) {
        Ok(found) => {
            let mut result = text.to_owned();
            for place in found.places.iter().rev() {
                result.replace_range(place.range.clone(), &place.new);
            }
            (result, found.how)
        }
        Err(MatchFailure::Several { how, .. }) => ("several".to_owned(), how),
        Err(MatchFailure::Nowhere) => ("nowhere".to_owned(), None),
        Err(MatchFailure::Indentation(_)) => ("indentation".to_owned(), None),
        Err(MatchFailure::Elided) => ("elided".to_owned(), None),
    };
    assert_eq!(result, expected, "{text:?}, {old:?} to {new:?}, {how:?}");
}

#[test]
fn exact_matches_take_precedence_over_fuzzy_ones() {
    check("a  b\na b\n", "a b", "x", "a  b\nx\n");
    check("x “a” y\nx \"a\" y\n", "\"a\"", "b", "x “a” y\nx b y\n");
    check("1\tone\none\n", "1\tone", "1\ttwo", "1\ttwo\none\n");
    check("&lt; <\n", "&lt;", "&gt;", "&gt; <\n");
    check("```\na\n```\na\n", "```\na\n```", "b", "b\na\n");
}

#[test]
fn overlapping_matches_are_ambiguous_unless_the_result_is_the_same() {
    check("aaa", "aa", "b", "several");
    check("a\n\n\nb\n", "\n\n", "\n", "a\n\nb\n");
    check("}\n}\n}\n", "}\n}\n", "]\n", "several");
    check_all("aaaa", "aa", "b", Occurrences::All, "bb");
}

#[test]
fn trailing_whitespace_is_ignored() {
    check("a  \nb\t\nc\n", "a\nb\n", "x\ny\n", "x\ny\nc\n");
    // A line in both texts stays as it is in the file, and so does the text after the passage.
    check("a  \nb\t\nc\n", "a\nb", "a\ny", "a  \ny\t\nc\n");
    check("f(  \n  1)\n", "f(\n  1", "f(\n  2", "f(  \n  2)\n");
    check("let x = 1;\n", "let x = 1;  \n", "let x = 2;\n", "let x = 2;\n");
    check("let x = 1;\n", "let x = 1;  ", "let x = 2;", "let x = 2;\n");
    // The trailing spaces state that the line ends there.
    check("let x = 10;\n", "let x = 1  ", "let x = 2", "nowhere");
    check("a \nb\na  \nb\n", "a\nb\n", "c\n", "several");
    // The start of the next line is not dropped.
    check("a  \n    b\n", "a\n    ", "c\n    ", "c\n    b\n");
    check("a  \nb\n", "a\n    ", "c\n    ", "c\nb\n");
    check("a\n   \nb\n", "   \t", "x", "nowhere");
}

#[test]
fn omitted_indentation_is_restored() {
    check("  if a:\n      b\n", "if a:\n    b\n", "if c:\n    d\n    e\n\n    f\n", "  if c:\n      d\n      e\n\n      f\n");
    check("\tif a {\n\t\tb\n\t}\n", "if a {\n\tb\n}", "if a {\n\tb\n\tc\n}", "\tif a {\n\t\tb\n\t\tc\n\t}\n");
    check("a\n  b\n", "    b\n", "    b\n    c\n", "a\n  b\n  c\n");
    // Tabs for spaces, and the reverse.
    check(
        "\tif a {\n\t\tb\n\t}\n",
        "    if a {\n        b\n    }\n",
        "    if a {\n        b\n            c\n    }\n",
        "\tif a {\n\t\tb\n\t\t\tc\n\t}\n",
    );
    check("    a\n        b\n", "\ta\n\t\tb\n", "\ta\n\t\tc\n\t\t\td\n", "    a\n        c\n            d\n");
    // Only the first line lacks the indentation, as if copied from the middle of the line.
    check("    a  \n    b\n", "a\n    b\n", "a\n    c\n", "    a  \n    c\n");
}

#[test]
fn the_indentation_of_new_lines_is_not_guessed() {
    // All indentation is lost, so that the position of the new line is unknown.
    check("if a:\n    b\n    if c:\n        d\n", "if a:\nb\nif c:\nd\n", "if a:\nb\nif c:\nd\ne\n", "indentation");
    // Two steps of two, or one of four further out.
    check("  a\n    b\n  if x {\n  }\n", "    if x {\n    }\n", "    if x {\n        y\n    }\n", "indentation");
    // A line further out than the dropped indentation.
    check("a\n    b\n    c\n", "        b\n        c\n", "        b\n  x\n        c\n", "indentation");
    check("if x:\n    run()\nelse:\n        run()\n", "  run()\n", "stop()\n", "several");
}

#[test]
fn lookalike_characters_match_each_other() {
    check("say “hi” – it’s…\u{A0}ok\n", "say \"hi\" - it's... ok", "bye", "bye\n");
    check("say \"hi\"\n", "say “hi”", "say “bye”", "say “bye”\n");
    check("caf\u{e9} = 1\n", "cafe\u{301} = 1", "x", "x\n");
    check("  “a”\n  b\n", "\"a\"\nb\n", "\"c\"\nb\n", "  \"c\"\n  b\n");
    check("‘a’ 'a'\n“a”\n‘b’\n", "'b'", "c", "‘a’ 'a'\n“a”\nc\n");
    // Half of a character is not a match.
    check("wait…\n", "wait..", "x", "nowhere");
    check("résumé\n", "resume", "x", "nowhere");
}

#[test]
fn passages_with_line_numbers_or_code_fences_match_the_file() {
    check(
        "alpha\nbeta\n\ngamma\n",
        "     2\tbeta\n     3\t\n     4\tgamma\n",
        "     2\tBETA\n     3\t\n     4\tgamma\n",
        "alpha\nBETA\n\ngamma\n",
    );
    check("alpha\nbeta\n", "2→beta", "BETA", "alpha\nBETA\n");
    check("alpha\n  beta\n", "2|  beta", "2|  BETA\n3|  c", "alpha\n  BETA\n  c\n");
    check("alpha\n  beta\n", "  2 |   beta\n", "  2 |   BETA\n", "alpha\n  BETA\n");
    check("alpha\nbeta\n", "L2: beta\n", "L2: BETA\n", "alpha\nBETA\n");
    // A prefix that looks like a line number is part of the line.
    check("2: foo\n", "1: foo", "1: bar", "nowhere");
    check("beta max\n", "2\tbeta", "2\tx", "nowhere");
    check("beta\ngamma\n", "1\tbeta\n7\tgamma\n", "x\n", "nowhere");
    // A new line that is a number is not the number of an empty one.
    check("alpha\nbeta\n", "2\tbeta\n", "2\tbeta\n42\n", "alpha\nbeta\n42\n");
    check("alpha\nbeta\n", "```rust\nbeta\n```\n", "```rust\nBETA\n```\n", "alpha\nBETA\n");
    check("alpha\n  beta\n", "```\nbeta\n```", "gamma", "alpha\n  gamma\n");
    check("```ts\nfoo()\n```\n", "```js\nfoo()\n```\n", "```js\nbar()\n```\n", "nowhere");
    check("beta\nb\nbeta\n", "```\nbeta\n```", "x", "several");
}

#[test]
fn escapes_are_resolved_only_if_unambiguous() {
    check("a = 1\n\tb = \"2\"\n", "a = 1\\n\\tb = \\\"2\\\"", "a = 3\\n\\tb = \\\"4\\\"", "a = 3\n\tb = \"4\"\n");
    check("say(\"a\")\n", "say(\\\"a\\\")", "say(\\\"b\\n\\\")", "say(\"b\\n\")\n");
    check("print(\"a\\n\")\n", "print(\\\"a\\n\\\")", "print(\\\"b\\n\\\")", "print(\"b\\n\")\n");
    check("a\nb\n", "a\\nb", "a\\nc = \"x\\ny\"", "nowhere");
    check("a\nb\n", "a\\nb", "c\n\\n\nd", "nowhere");
    check("a < b\n", "a &lt; b", "a &gt; b", "a > b\n");
}

#[test]
fn surrounding_blank_lines_and_a_missing_final_newline_are_ignored() {
    check("a\nb\nc\n", "\nb\n\n", "\nB\n\n", "a\nB\nc\n");
    check("a\nb\nc\n", "\n\nb\n\n", "B", "a\nB\nc\n");
    check("a\nxb\n", "\n\nb", "\n\nc", "nowhere");
    check("a\nlast", "last\n", "LAST\n", "a\nLAST");
    check("a\nlast more", "last\n", "LAST\n", "nowhere");
    check("last\na\nb", "last \na\nb \n", "x\n", "x");
    check("a\rb\rc", "a\nb", "x\ny", "x\ry\rc");
}

#[test]
fn spacing_inside_lines_is_ignored_as_a_last_resort() {
    check("call(a,b);\n", "call(a, b);", "call(a, c);", "call(a, c);\n");
    check("x  =  1\n", "x = 1", "x = 2", "x = 2\n");
    check("  if (a){\n    b( c );\n", "if (a) {\n  b(c);\n", "if (d) {\n  b(c);\n", "  if (d) {\n    b( c );\n");
    check("elseif\n", "else if", "x", "nowhere");
    check("a - -b\n", "a--b", "x", "nowhere");
    check("a  b\na   b\n", "a b", "x", "several");
}

#[test]
fn text_elided_by_dots_is_kept() {
    check("f() {\n  a\n  b\n}\nend x\n", "f() {\n...\nend x\n", "g() {\n...\nend y\n", "g() {\n  a\n  b\n}\nend y\n");
    check("f() {\n  a\n}\n", "f() {\n  // ... existing code ...\n", "g() {\n  // ... existing code ...\n", "g() {\n  a\n}\n");
    check("f() {\n  a\n}\nf() {\n", "f() {\n...\n", "g() {\n...\n", "nowhere");
    check("f() {\n  a\n  b\n}\nend\n", "f() {\n...\nend\n", "g() {\nend\n", "elided");
    check(
        "def f():\n    ...\ndef g():\n    return 2\n",
        "def f():\n    ...\n    return 2\n",
        "def h():\n    ...\n    return 3\n",
        "nowhere",
    );
    check("end\nf() {\n", "f() {\n...\nend\n", "g() {\n...\nend\n", "nowhere");
}

#[test]
fn letters_and_words_must_always_match() {
    for (text, old) in [
        ("SELECT id;\n", "select id;"),
        ("fn a() {\n  one();\n  two();\n}\n", "fn a() {\n  uno();\n  two();\n}\n"),
        ("x = 1  # fast\n", "x = 1  # slow\n"),
        ("a\n", "a\nb\n"),
        ("a\nb\nc\n", "a\nc\n"),
        ("a\n\nb\n", "a\nb\n"),
        ("a\nb\n", "a\n\nb\n"),
        ("foo = 1\n", "foo = 1;\n"),
        ("a.b\n", "a. b c\n"),
    ] {
        check(text, old, "new\n", "nowhere");
    }
}

#[test]
fn replace_all_changes_all_equal_fuzzy_matches() {
    check_all("  a\n    a\n", "\ta\n", "\tb\n", Occurrences::All, "  b\n    b\n");
    check_all("a  \nb\na\nb\n", "a\nb\n", "c\n", Occurrences::All, "a  \nb\nc\n");
    check_all(
        "say “a”\nsay \"a\" \nsay «a»\nsay “a”.\n",
        "say “a” ",
        "x",
        Occurrences::All,
        "x\nsay \"a\" \nsay «a»\nsay “a”.\n",
    );
    check_all("a,b\na ,b\n", "a, b", "c", Occurrences::All, "several");
}

#[test]
fn redacted_text_never_matches() {
    let text = "key = “abc”  \nend\n";
    let hidden = 6..13;
    let find = |old: &str| find(text, old, "x", Occurrences::TheOnly, std::slice::from_ref(&hidden));
    assert_eq!(find("abc"), Err(MatchFailure::Nowhere));
    assert_eq!(find("\"abc"), Err(MatchFailure::Nowhere));
    assert!(find("key = \"abc\"\nend").is_ok_and(|found| found.how.is_some()));
}

/// Bounded work finishes immediately.
#[test]
fn pathological_passages_are_handled_in_bounded_time() {
    let lines = " a\n".repeat(30_000);
    let several = find(&lines, &"a\n".repeat(1_000), "c\n", Occurrences::TheOnly, &[]);
    assert!(matches!(several, Err(MatchFailure::Several { .. })));
    assert_eq!(find(&lines, &("a\n".repeat(15_000) + "b\n"), "c\n", Occurrences::TheOnly, &[]), Err(MatchFailure::Nowhere));
    let hidden: Vec<std::ops::Range<usize>> = (0..10_000).map(|at| at * 3 + 1..at * 3 + 2).collect();
    let all = find(&lines, "a", "b", Occurrences::All, &hidden).unwrap();
    assert_eq!(all.places.len(), 30_000);
}

#[test]
fn new_text_with_the_indentation_of_the_file_is_unchanged() {
    // Every kept line has the indentation of the file.
    check("\t\tone()\n\t\ttwo()\n\tend\n", "one()\ntwo()\n", "\t\tone()\n\t\tthree()\n", "\t\tone()\n\t\tthree()\n\tend\n");
    check("f(\n\ta,\n)\n", "f(\na,\n)\n", "f(\n\ta,\n\tb,\n)\n", "f(\n\ta,\n\tb,\n)\n");
    // Wrapped lines are indented further.
    check("    a()\n    b()\n", "a()\nb()\n", "if x:\n    a()\n    b()\n", "    if x:\n        a()\n        b()\n");
    // The intended indentation is unknown.
    check("    one()\n    end\n", "one()\nend\n", "    two()\n    three()\n", "indentation");
}

#[test]
fn a_space_after_a_line_number_is_ignored_unless_the_file_contains_one() {
    for sign in [":", "|"] {
        let old = format!("1{sign}     one()\n2{sign} \n");
        check("    one()\n\nend\n", &old, "    two()\n\n", "    two()\n\nend\n");
        check("    one()\n\nend\n", &old, &format!("1{sign}     two()\n2{sign} \n"), "    two()\n\nend\n");
    }
    check("    one()\nend\n", "1:    one()\n", "1:    two()\n", "    two()\nend\n");
}

#[test]
fn deleting_the_last_lines_adds_no_final_newline() {
    check("one\ntwo\nthree", "two\nthree\n", "", "one");
    check("one", "one\n", "", "");
}
