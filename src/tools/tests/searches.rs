//! Tests of the arguments of `Grep`, `Glob` and `ListDirectory` under each of their names, and of their limits.

use super::*;
use std::os::unix::fs::symlink;

fn project() -> Bench {
    let bench = Bench::new();
    bench.write("src/main.rs", "fn main() {\n    let value = 1;\n    value\n}\n");
    bench.write("src/lib.rs", "pub fn value() {}\n// Value, values\n");
    bench.write("web/app.ts", "const value = 1\n");
    bench.write("web/app.min.js", "const value=1\n");
    bench.write("docs/a.md", "no such word\n");
    bench.write(".hidden/x.rs", "value\n");
    bench.write("target/out.rs", "value\n");
    bench.write(".gitignore", "target/\n");
    bench
}

#[test]
fn grep_returns_files_counts_or_lines() {
    let bench = project();
    let grep = |arguments: Value| bench.output("Grep", arguments);
    let all = ".hidden/x.rs\nsrc/lib.rs\nsrc/main.rs\nweb/app.min.js\nweb/app.ts";
    assert_eq!(grep(json!({"pattern": "value", "output": "files"})), all);
    assert_eq!(grep(json!({"pattern": "value", "output_mode": "files_with_matches"})), all);
    assert_eq!(grep(json!({"pattern": "value", "output": "filesWithoutMatch"})), ".gitignore\ndocs/a.md");
    assert_eq!(grep(json!({"pattern": "value", "output": "count", "path": "src"})), "src/lib.rs:2\nsrc/main.rs:2");
    assert_eq!(
        grep(json!({"pattern": "value", "path": "src/lib.rs", "-n": false})),
        "src/lib.rs:pub fn value() {}\nsrc/lib.rs:// Value, values"
    );
    assert_eq!(grep(json!({"pattern": "value", "path": "src/lib.rs", "output": "files"})), "src/lib.rs");
    let (_, message) = bench.error("Grep", json!({"pattern": "x", "output": "everything"}));
    assert!(message.contains("`everything`") && message.contains("filesWithoutMatch"), "{message}");
}

#[test]
fn grep_accepts_globs_and_file_types() {
    let bench = project();
    let files = |more: Value| {
        let mut arguments = json!({"pattern": "value", "output": "files"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        bench.output("Grep", arguments)
    };
    assert_eq!(files(json!({"glob": "*.rs"})), ".hidden/x.rs\nsrc/lib.rs\nsrc/main.rs");
    assert_eq!(files(json!({"glob": ["*.ts", "*.js", "!*.min.js"]})), "web/app.ts");
    assert_eq!(files(json!({"include": "*.{ts,js}, !*.min.*"})), "web/app.ts");
    assert_eq!(files(json!({"glob": "!web"})), ".hidden/x.rs\nsrc/lib.rs\nsrc/main.rs");
    assert_eq!(files(json!({"glob": "./src/*.rs"})), "src/lib.rs\nsrc/main.rs");
    assert_eq!(files(json!({"glob": "src/"})), "src/lib.rs\nsrc/main.rs");
    assert_eq!(files(json!({"type": "rust", "hidden": false})), "src/lib.rs\nsrc/main.rs");
    assert_eq!(files(json!({"type": ["ts", "js"]})), "web/app.min.js\nweb/app.ts");
    assert_eq!(files(json!({"type": "rust", "noIgnore": true, "glob": "target/**"})), "target/out.rs");
    assert!(files(json!({"glob": "*.zig"})).contains("no file there matches `glob` and `type`"));
    let (_, message) = bench.error("Grep", json!({"pattern": "x", "type": "rs"}));
    assert!(message.contains("did you mean `rust`"), "{message}");
    let (_, message) = bench.error("Grep", json!({"pattern": "x", "type": "pyton"}));
    assert!(message.contains("`python`"), "{message}");
    let (_, message) = bench.error("Grep", json!({"pattern": "x", "glob": "{a"}));
    assert!(message.contains("`glob`"), "{message}");
}

#[test]
fn grep_matches_whole_words_and_multiple_lines() {
    let bench = project();
    let grep = |arguments: Value| bench.output("Grep", arguments);
    assert_eq!(grep(json!({"pattern": "value", "word": true, "glob": "lib.rs"})), "src/lib.rs:1:pub fn value() {}");
    assert_eq!(
        grep(json!({"pattern": "\\{\\s+let", "multiline": true})),
        "src/main.rs:1:fn main() {\nsrc/main.rs:2:    let value = 1;"
    );
    assert!(grep(json!({"pattern": "main.*let", "multiline": true})).starts_with("no line matches"));
    assert!(grep(json!({"pattern": "main.*let", "multiline": true, "dotAll": true})).starts_with("src/main.rs:1:fn main"));
    assert!(grep(json!({"pattern": "(?s)main.*let", "multiline": true})).starts_with("src/main.rs:1:fn main"));
    bench.write("crlf.txt", "one;\r\ntwo\r\n");
    assert_eq!(grep(json!({"pattern": "one;$", "glob": "*.txt"})), "crlf.txt:1:one;");
    assert_eq!(grep(json!({"pattern": "^two$", "multiline": true, "glob": "*.txt"})), "crlf.txt:2:two");
    assert_eq!(grep(json!({"pattern": "one;\\s+two", "multiline": true, "glob": "*.txt"})), "crlf.txt:1:one;\ncrlf.txt:2:two");
    let long = "x\n".repeat(150);
    bench.write("long.txt", format!("start\n{long}end\n"));
    let found = grep(json!({"pattern": "start[x\\n]+end", "multiline": true, "glob": "long.txt"}));
    assert!(found.ends_with("[... 52 more lines of this match]"), "{found}");
}

#[test]
fn grep_shows_context_lines() {
    let bench = Bench::new();
    bench.write("f", "1\n2\nhit\n4\nhit\n6\n7\n8\nhit\n");
    let grep = |arguments: Value| bench.output("Grep", arguments);
    assert_eq!(grep(json!({"pattern": "hit", "-B": 1})), "f-2-2\nf:3:hit\nf-4-4\nf:5:hit\n--\nf-8-8\nf:9:hit");
    assert_eq!(grep(json!({"pattern": "hit", "-A": 1})), "f:3:hit\nf-4-4\nf:5:hit\nf-6-6\n--\nf:9:hit");
    assert_eq!(grep(json!({"pattern": "6", "context": 1, "after": 0})), "f-5-hit\nf:6:6");
    let (_, message) = bench.error("Grep", json!({"pattern": "6", "-A": 21}));
    assert!(message.contains("`after` is 21"), "{message}");
}

#[test]
fn invalid_patterns_are_errors_with_the_reason() {
    let bench = project();
    for (pattern, part) in [
        ("(?=x)", "look-ahead is not supported"),
        ("(?<!x)y", "look-behind is not supported"),
        ("(a)\\1", "a back-reference is not supported"),
        ("(", "set `literal`"),
        ("a{2,1}", "set `literal`"),
    ] {
        let (code, message) = bench.error("Grep", json!({"pattern": pattern}));
        assert_eq!(code, ErrorCode::InvalidRequest);
        assert!(message.contains(part) && message.contains("literal"), "{message}");
    }
    let (_, message) = bench.error("Grep", json!({"pattern": "x", "dotAll": true}));
    assert!(message.contains("`multiline`"), "{message}");
    let (_, message) = bench.error("Grep", json!({"pattern": "x", "maxResults": 0}));
    assert!(message.contains("`maxResults` is 0"), "{message}");
}

/// Creates a bench with `count` matches in two files.
fn matches(count: usize) -> Bench {
    let bench = Bench::new();
    bench.write("a", "x\n".repeat(count / 2));
    bench.write("b", "x\n".repeat(count - count / 2));
    bench
}

#[test]
fn grep_returns_200_matches_and_its_lower_case_alias_100() {
    // Name, arguments, and maximum number.
    let cases = [
        ("Grep", json!({"pattern": "x"}), 200),
        ("TextSearch", json!({"query": "x"}), 200),
        ("Grep", json!({"pattern": "x", "maxResults": 200}), 200),
        ("Grep", json!({"pattern": "x", "head_limit": 7}), 7),
        ("grep", json!({"pattern": "x"}), 100),
        ("grep", json!({"pattern": "x", "path": ".", "max_results": 10}), 10),
        ("grep", json!({"pattern": "x", "max_results": 200}), 200),
    ];
    for (name, arguments, most) in cases {
        for count in [most - 1, most] {
            let found = matches(count).output(name, arguments.clone());
            assert_eq!(found.lines().count(), count, "{name} {arguments}");
            assert!(found.lines().all(|line| line.ends_with(":x")), "{found}");
        }
        let found = matches(most + 1).output(name, arguments.clone());
        let (lines, note) = found.rsplit_once('\n').unwrap();
        assert_eq!(lines.lines().count(), most, "{name} {arguments}");
        assert!(note.starts_with(&format!("[{most} of {} matches shown; narrow", most + 1)), "{note}");
    }
}

#[test]
fn file_and_count_lists_are_limited() {
    for output in ["files", "count", "filesWithoutMatch"] {
        for count in [199, 200, 201] {
            let bench = Bench::new();
            let text = if output == "filesWithoutMatch" { "y\n" } else { "x\n" };
            (0..count).for_each(|file| bench.write(&format!("f{file:03}"), text));
            let found = bench.output("Grep", json!({"pattern": "x", "output": output}));
            assert_eq!(found.lines().count(), count, "{found}");
            assert_eq!(found.contains("[200 of 201 files shown"), count == 201, "{found}");
        }
    }
}

#[test]
fn long_lines_are_cut_to_one_kilobyte_or_around_the_match() {
    let bench = Bench::new();
    for (bytes, cut) in [(1023, false), (1024, false), (1025, true)] {
        bench.write("f", format!("{}\n", "y".repeat(bytes)));
        let found = bench.output("Grep", json!({"pattern": "y", "path": "f"}));
        assert_eq!(found.contains(&format!("[... line of {bytes} bytes]")), cut, "{found}");
    }
    bench.write("f", format!("{}needle{}\n", "y".repeat(5000), "z".repeat(5000)));
    let found = bench.output("Grep", json!({"pattern": "needle", "path": "f"}));
    assert!(
        found.contains("yneedlez") && found.contains("[... from byte 4744]") && found.contains("[... line of 10006 bytes]"),
        "{found}"
    );
    assert!(found.len() < 1200, "{}", found.len());
}

#[test]
fn large_numbers_of_matches_are_not_counted_exactly() {
    let bench = Bench::new();
    (0..4).for_each(|file| bench.write(&format!("f{file}"), "x\n".repeat(60_000)));
    let found = bench.output("Grep", json!({"pattern": "x"}));
    assert!(found.contains("f0:200:x\n[200 of more than 100000 matches shown"), "{}", found.lines().last().unwrap());
    let found = bench.output("Grep", json!({"pattern": "x", "output": "count"}));
    assert_eq!(found, "f0:60000\nf1:60000\nf2:60000\nf3:60000");
}

#[test]
fn a_killed_search_of_one_file_ends() {
    let bench = Bench::new();
    bench.write("f", "x\n".repeat(2_000_000));
    let plan = bench.plan("Grep", json!({"pattern": "no such text", "path": "f"})).unwrap();
    let context = context();
    context.kill.cancel();
    let permit = Permit::for_test(plan.actions.clone());
    let result = block_on(bench.router().run(plan, permit, context));
    assert_eq!(result.error.unwrap().code, ErrorCode::Cancelled);
}

#[test]
fn glob_has_options_and_a_result_limit() {
    let bench = project();
    let glob = |arguments: Value| bench.output("Glob", arguments);
    assert_eq!(glob(json!({"pattern": "**/*.RS", "ignoreCase": true, "hidden": false})), "src/lib.rs\nsrc/main.rs");
    assert_eq!(glob(json!({"pattern": "*", "directories": true})), ".gitignore\n.hidden/\ndocs/\nsrc/\nweb/");
    assert_eq!(glob(json!({"pattern": "**/out.rs", "noIgnore": true})), "target/out.rs");
    assert_eq!(glob(json!({"glob": "**/{app,lib}.{ts,rs}"})), "src/lib.rs\nweb/app.ts");
    assert!(glob(json!({"pattern": "main.rs"})).contains("`**/` before a name"));
    let old = std::time::SystemTime::UNIX_EPOCH;
    fs::File::options().append(true).open(bench.path("src/lib.rs")).unwrap().set_modified(old).unwrap();
    assert_eq!(glob(json!({"pattern": "src/*.rs", "sort": "modified"})), "src/main.rs\nsrc/lib.rs");
    for count in [999, 1000, 1001] {
        let bench = Bench::new();
        (0..count).for_each(|file| bench.write(&format!("f{file:04}"), ""));
        for (tool, arguments, note) in [
            ("Glob", json!({"pattern": "*"}), "[1000 of 1001 files shown"),
            ("ListDirectory", json!({}), "[1000 of 1001 entries shown"),
            ("list_directory", json!({"path": ".", "recursive": true}), "[1000 of 1001 entries shown"),
            ("list_files", json!({"max_results": 1000}), "[1000 of 1001 entries shown"),
        ] {
            let found = bench.output(tool, arguments);
            assert_eq!(found.lines().count(), count, "{tool}");
            assert_eq!(found.contains(note), count == 1001, "{tool}");
        }
    }
}

#[test]
fn the_list_files_alias_has_its_own_limit_and_omits_hidden_files() {
    for count in [199, 200, 201] {
        let bench = Bench::new();
        (0..count).for_each(|file| bench.write(&format!("f{file:03}"), ""));
        bench.write(".hidden", "");
        for recursive in [false, true] {
            let found = bench.output("list_files", json!({"path": ".", "recursive": recursive}));
            assert_eq!(found.lines().count(), count, "{found}");
            assert_eq!(found.contains("[200 of 201 entries shown"), count == 201, "{found}");
            assert!(!found.contains(".hidden"), "{found}");
            let found = bench.output("list_files", json!({"recursive": recursive, "include_hidden": true, "max_results": 10}));
            assert!(found.starts_with(".hidden\n") && found.contains(&format!("[10 of {} entries shown", count + 1)), "{found}");
        }
    }
    let bench = project();
    assert_eq!(bench.output("list_files", json!({})), "docs/\nsrc/\ntarget/\nweb/");
    assert_eq!(
        bench.output("list_files", json!({"path": "src", "pattern": "*.rs"})),
        "src/lib.rs\nsrc/main.rs".replace("src/", "")
    );
    assert_eq!(bench.output("list_files", json!({"pattern": "**/*.ts"})), "web/app.ts");
    assert_eq!(bench.output("list_files", json!({"recursive": true, "pattern": "*.rs"})), "src/lib.rs\nsrc/main.rs");
}

#[test]
fn directory_listings_have_the_requested_depth_and_detail() {
    let bench = project();
    fs::create_dir_all(bench.path("deep/one/two")).unwrap();
    bench.write("deep/one/f", "123");
    symlink("nowhere", bench.path("deep/link")).unwrap();
    let list = |arguments: Value| bench.output("ListDirectory", arguments);
    assert_eq!(list(json!({"path": "deep/", "depth": 2})), "link -> nowhere\none/\none/f\none/two/");
    assert_eq!(list(json!({"path": "deep//", "depth": 1})), "link -> nowhere\none/");
    assert_eq!(
        list(json!({"path": "deep", "recursive": true, "details": true})),
        "link -> nowhere\none/\none/f (3 bytes)\none/two/"
    );
    assert_eq!(list(json!({"path": "web", "glob": "!*.js"})), "app.ts");
    assert_eq!(list(json!({"hidden": false})), "deep/\ndocs/\nsrc/\ntarget/\nweb/");
    assert!(list(json!({"recursive": true, "noIgnore": true})).contains("target/out.rs"));
    assert_eq!(list(json!({"path": "web", "glob": "*.py"})), "(`web` has no matching entry)");
    assert_eq!(
        list(json!({"path": "deep", "maxResults": 1})),
        "link -> nowhere\n[1 of 2 entries shown; list a subdirectory, raise `maxResults` (at most 1000), search with Glob, or continue \
         with `offset` 2]"
    );
    let (_, message) = bench.error("ListDirectory", json!({"depth": 0}));
    assert!(message.contains("`depth` is 0"), "{message}");
    let (code, message) = bench.error("ListDirectory", json!({"path": "web/app.ts"}));
    assert!(code == ErrorCode::InvalidRequest && message.contains("ReadFile"), "{message}");
    let (_, message) = bench.error("ListDirectory", json!({"path": ""}));
    assert!(message.contains("the path is empty"), "{message}");
    let (code, message) = bench.error("ListDirectory", json!({"path": "wib"}));
    assert!(code == ErrorCode::FileNotFound && message.contains("`web`"), "{message}");
}

#[test]
fn match_counts_in_large_files_exclude_private_key_lines() {
    const KEY: &str = "Cn9uq2kE2vmN3KkWPB6sZLneiwvs6bvNEcNTr7qSXyDCFN4IFPYAwF8ylQEFKHIX";
    let bench = Bench::new();
    let filler = "some text\n".repeat(150_000);
    let key = format!("-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----\n");
    bench.write("large", format!("word\n{filler}word\n{key}word\n"));
    bench.write("plain", format!("word\n{filler}word\n{KEY}\nword\n"));
    for path in [".", "large"] {
        let found = bench.output("Grep", json!({"pattern": "^word|^Cn9u", "output": "count", "path": path}));
        assert_eq!(found.lines().next(), Some("large:3"), "{found}");
    }
    let found = bench.output("Grep", json!({"pattern": "^word|^Cn9u", "output": "count", "path": "plain"}));
    assert_eq!(found, "plain:4");
    assert_eq!(bench.output("Grep", json!({"pattern": "^Cn9u", "output": "files"})), "plain");
}

#[test]
fn no_grep_output_mode_reveals_secrets() {
    const TOKEN: &str = "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";
    const KEY: &str = "Cn9uq2kE2vmN3KkWPB6sZLneiwvs6bvNEcNTr7qSXyDCFN4IFPYAwF8ylQEFKHIX";
    let bench = Bench::new();
    bench.write("f", format!("start\ntoken = {TOKEN}\n-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----\nend\n"));
    let wide: Vec<u8> = format!("\u{FEFF}a\ntoken = {TOKEN}\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
    bench.write("wide", wide);
    // Read in pieces.
    bench.write(
        "large",
        format!("{}-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----\nend\n", "some text\n".repeat(200_000)),
    );
    for pattern in [&TOKEN[..9], "_Joz[0-9]", &KEY[..5], "^Cn9u", "(?i)cn9U"] {
        for output in ["content", "files", "count"] {
            for multiline in [false, true] {
                let arguments = json!({"pattern": pattern, "output": output, "multiline": multiline});
                let found = bench.output("Grep", arguments.clone());
                assert!(found.starts_with("no line matches"), "{arguments}: {found}");
            }
        }
        let found = bench.output("Grep", json!({"pattern": pattern, "output": "filesWithoutMatch"}));
        assert_eq!(found, "f\nlarge\nwide", "{pattern}");
    }
    for pattern in ["start\\ntoken = ghp_J", "KEY-----\\nCn9"] {
        for output in ["content", "files", "count"] {
            let found = bench.output("Grep", json!({"pattern": pattern, "output": output, "multiline": true}));
            assert!(found.starts_with("no line matches"), "{pattern} {output}: {found}");
        }
    }
    let found = bench.output("Grep", json!({"pattern": ".", "path": "f", "context": 2}));
    assert!(!found.contains(TOKEN) && !found.contains(&KEY[..8]) && found.contains("f:6:end"), "{found}");
    assert_eq!(bench.output("Grep", json!({"pattern": "^token", "output": "files"})), "f\nwide");
}
