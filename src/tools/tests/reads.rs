use super::*;
use std::os::unix::fs::symlink;

#[test]
fn files_are_decoded_by_encoding_and_content() {
    let bench = Bench::new();
    let cases: &[(&[u8], &str)] = &[
        (b"one\ntwo", "one\ntwo"),
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b"\xEF\xBB\xBFone", "one"),
        (b"\xFF\xFEo\0n\0e\0", "one"),
        (b"\xFE\xFF\0o\0n\0e", "one"),
        (b"caf\xE9", "café"),
        ("日本".as_bytes(), "日本"),
        (b"", "(`f` is empty)"),
        (b"\x7fELQ\0\0", "Binary file, 6 bytes"),
    ];
    for (bytes, text) in cases {
        bench.write("f", bytes);
        assert_eq!(bench.output("ReadFile", json!({"path": "f"})), *text);
    }
    bench.write("f", b"\x93\xfa\x96\x7b");
    assert_eq!(bench.output("ReadFile", json!({"path": "f", "encoding": "shift_jis"})), "日本");
}

#[test]
fn line_offsets_start_at_one() {
    let bench = Bench::new();
    bench.write("f", "1\n2\r\n3\n4");
    let read = |offset: u64, limit: u64| bench.output("ReadFile", json!({"path": "f", "offset": offset, "limit": limit}));
    assert_eq!(read(2, 2), "2\n3\n[lines 2 to 3; more follow from `offset` 4]");
    assert_eq!(read(4, 5), "4");
    assert_eq!(read(1, 1), "1\n[lines 1 to 1; more follow from `offset` 2]");
    let (code, message) = bench.error("ReadFile", json!({"path": "f", "offset": 5}));
    assert_eq!((code, message.as_str()), (ErrorCode::InvalidRequest, "`offset` 5 is past the end of `f`, which has 4 lines"));
}

#[test]
fn large_files_can_be_read_only_in_parts() {
    let bench = Bench::new();
    let file = fs::File::create(bench.path("big")).unwrap();
    file.set_len(2 << 30).unwrap();
    let (code, message) = bench.error("ReadFile", json!({"path": "big"}));
    assert_eq!(code, ErrorCode::FileTooLarge);
    assert!(message.contains("2147483648 bytes") && message.contains("`offset`"), "{message}");
    assert_eq!(bench.output("ReadFile", json!({"path": "big", "offset": 1})), "Binary file, 2147483648 bytes");

    let mut settings = bench.settings.clone();
    settings.max_file_size_bytes = 1000;
    let small = Bench { settings, ..bench };
    let lines: Vec<_> = (1..=500_000).map(|line| format!("line {line}")).collect();
    small.write("lines", lines.join("\n"));
    let part = small.output("ReadFile", json!({"path": "lines", "offset": 400_000, "limit": 2}));
    assert_eq!(part, "line 400000\nline 400001\n[lines 400000 to 400001; more follow from `offset` 400002]");
}

#[test]
fn one_read_returns_at_most_one_megabyte() {
    let bench = Bench::new();
    bench.write("lines", "0123456789abcde\n".repeat(100_000));
    let text = bench.output("ReadFile", json!({"path": "lines"}));
    assert!(
        text.ends_with("[lines 1 to 65536; cut at 1048576 bytes, continue with `offset` 65537]"),
        "{}",
        &text[text.len() - 100..]
    );
    bench.write("long", "é".repeat(1_000_000));
    let text = bench.output("ReadFile", json!({"path": "long"}));
    assert!(text.len() < 1_100_000 && text.contains("`offset` 1 and `column` 524289"), "{}", &text[text.len() - 100..]);
}

#[test]
fn read_errors_have_a_hint() {
    let bench = Bench::new();
    bench.write("src/main.rs", "x");
    let (code, message) = bench.error("ReadFile", json!({"path": "src/mian.rs"}));
    assert_eq!((code, message.as_str()), (ErrorCode::FileNotFound, "`src/mian.rs` does not exist; did you mean `src/main.rs`?"));
    let (code, message) = bench.error("ReadFile", json!({"path": "src"}));
    assert_eq!((code, message.contains("ListDirectory")), (ErrorCode::InvalidRequest, true));
}

#[test]
fn a_file_replaced_by_a_link_is_not_read() {
    let bench = Bench::new();
    bench.write("f", "x");
    fs::write(bench.root.join("secret"), "secret").unwrap();
    let plan = bench.plan("ReadFile", json!({"path": "f"})).unwrap();
    fs::remove_file(bench.path("f")).unwrap();
    symlink("../secret", bench.path("f")).unwrap();
    let result = bench.run(plan);
    assert_eq!(result.error.unwrap().code, ErrorCode::Conflict);
    assert!(!result.output_text.contains("secret"));
}

fn tree() -> Bench {
    let bench = Bench::new();
    for name in ["src/main.rs", "src/lib.rs", "src/deep/x.rs", "README.md", ".github/ci.yml", "target/out.rs", ".git/config"] {
        bench.write(name, "needle here\nother\nNeedle\n");
    }
    bench.write(".gitignore", "target/\n");
    bench.write("bin", b"needle\0");
    fs::create_dir(bench.root.join("outside")).unwrap();
    fs::write(bench.root.join("outside/secret.rs"), "needle").unwrap();
    symlink("../outside", bench.path("out")).unwrap();
    bench
}

#[test]
fn directory_entries_are_sorted() {
    let bench = tree();
    let text = bench.output("ListDirectory", json!({"path": "."}));
    assert_eq!(text, ".git/\n.github/\n.gitignore\nREADME.md\nbin\nout -> ../outside\nsrc/\ntarget/");
    let text = bench.output("ListDirectory", json!({"path": "src", "recursive": true}));
    assert_eq!(text, "deep/\ndeep/x.rs\nlib.rs\nmain.rs");
    assert!(bench.error("ListDirectory", json!({"path": "README.md"})).1.contains("ReadFile"));
    fs::create_dir(bench.path("none")).unwrap();
    assert_eq!(bench.output("ListDirectory", json!({"path": "none"})), "(`none` is empty)");
}

#[test]
fn glob_finds_files_that_are_not_ignored() {
    let bench = tree();
    let glob = |pattern: &str| bench.output("Glob", json!({"pattern": pattern}));
    assert_eq!(glob("**/*.rs"), "src/deep/x.rs\nsrc/lib.rs\nsrc/main.rs");
    assert_eq!(glob("src/*.rs"), "src/lib.rs\nsrc/main.rs");
    assert_eq!(glob("src/{lib,main}.rs"), "src/lib.rs\nsrc/main.rs");
    assert_eq!(glob("**/*.yml"), ".github/ci.yml");
    assert_eq!(glob("README.md"), "README.md");
    assert_eq!(glob(&format!("{}/src/l*", bench.settings.workspace.display())), "src/lib.rs");
    assert!(glob("*.nothing").contains("no file matches"));
    assert!(glob("nowhere/*").contains("does not exist"));
}

#[test]
fn grep_reports_matches_with_path_and_line() {
    let bench = tree();
    let grep = |arguments: Value| bench.output("Grep", arguments);
    assert_eq!(
        grep(json!({"pattern": "need.e", "glob": "*.rs"})),
        "src/deep/x.rs:1:needle here\nsrc/lib.rs:1:needle here\nsrc/main.rs:1:needle here"
    );
    assert_eq!(
        grep(json!({"pattern": "NEEDLE", "ignoreCase": true, "path": "src/lib.rs"})),
        "src/lib.rs:1:needle here\nsrc/lib.rs:3:Needle"
    );
    assert_eq!(
        grep(json!({"pattern": "other", "path": "src/deep", "context": 1})),
        "src/deep/x.rs-1-needle here\nsrc/deep/x.rs:2:other\nsrc/deep/x.rs-3-Needle"
    );
    assert!(grep(json!({"pattern": "need.e", "literal": true})).contains("no line matches"));
    assert!(!grep(json!({"pattern": "needle"})).contains("secret"));
}

#[test]
fn searches_omit_unreadable_files() {
    let bench = tree();
    let mut settings = bench.settings.clone();
    settings.paths.may_read = Arc::new(|path| !path.ends_with("main.rs"));
    let bench = Bench { settings, ..bench };
    for (tool, arguments) in [
        ("Grep", json!({"pattern": "needle"})),
        ("Glob", json!({"pattern": "**/*.rs"})),
        ("ListDirectory", json!({"path": "src"})),
        ("ListDirectory", json!({"path": ".", "recursive": true})),
    ] {
        let text = bench.output(tool, arguments);
        assert!(!text.contains("main.rs") && text.contains("lib.rs"), "{tool}: {text}");
    }
}

#[test]
fn searches_are_limited_and_report_omissions() {
    let bench = Bench::new();
    for index in 0..1_100 {
        bench.write(&format!("f{index:04}"), "x\n");
    }
    bench.write("long", "y".repeat(5_000));
    let text = bench.output("Glob", json!({"pattern": "f*"}));
    assert!(
        text.starts_with("f0000\n")
            && text.ends_with("f0999\n[1000 of 1100 files shown; use a narrower pattern, or continue with `offset` 1001]"),
        "glob"
    );
    let text = bench.output("ListDirectory", json!({}));
    assert!(
        text.ends_with("[1000 of 1101 entries shown; list a subdirectory, search with Glob, or continue with `offset` 1001]"),
        "list"
    );
    let text = bench.output("Grep", json!({"pattern": "x"}));
    assert!(text.starts_with("f0000:1:x\n") && text.contains("f0199:1:x\n[200 of 1100 matches shown"), "grep");
    for name in ["m/a", "m/b", "m/c"] {
        bench.write(name, "z\n".repeat(300));
    }
    for context in [0, 1] {
        let text = bench.output("Grep", json!({"pattern": "z", "context": context}));
        assert!(text.starts_with("m/a:1:z\n") && text.contains("m/a:200:z\n"), "many in one file, in order");
        assert!(!text.contains("m/b") && text.contains("[200 of 900 matches shown"), "{}", text.lines().last().unwrap());
    }
    let text = bench.output("Grep", json!({"pattern": "y"}));
    assert!(text.len() < 1_100 && text.contains("[... line of 5000 bytes]"), "{}", text.len());
}

#[test]
fn a_killed_search_ends() {
    let bench = tree();
    let plan = bench.plan("Grep", json!({"pattern": "needle"})).unwrap();
    let context = context();
    context.kill.cancel();
    let permit = Permit::for_test(plan.actions.clone());
    let result = block_on(bench.router().run(plan, permit, context));
    assert_eq!(result.error.unwrap().code, ErrorCode::Cancelled);
}

#[test]
fn searches_report_files_they_cannot_search() {
    let bench = Bench::new();
    bench.write("long", [vec![b'a'; 17 * 1024 * 1024], b" needle\n".to_vec()].concat());
    bench.write("short", "needle\n");
    bench.write("mixed", [b"early needle\n".to_vec(), vec![b'a'; 17 * 1024 * 1024]].concat());
    bench.write("binary", b"needle\n\0");
    let found = bench.output("Grep", json!({"pattern": "needle"}));
    let reason = "a line of more than 16 MB";
    let told = format!("mixed:1:early needle\nshort:1:needle\n[2 not read completely: `long`: {reason}; `mixed`: {reason}]");
    assert_eq!(found, told);
    let none = bench.output("Grep", json!({"pattern": "nothing", "glob": "long"}));
    assert!(none.starts_with("no line matches") && none.contains("`long`"), "{none}");
    for (path, part) in [("long", "a line of more than 16 MB"), ("binary", "is a binary file")] {
        let (code, message) = bench.error("Grep", json!({"pattern": "needle", "path": path}));
        assert_eq!(code, ErrorCode::InvalidRequest);
        assert!(message.contains(part) && message.contains("RunCommand"), "{message}");
    }
    for pattern in ["a\nb", "a\\nb"] {
        let (_, message) = bench.error("Grep", json!({"pattern": pattern}));
        assert!(message.contains("lines are searched one by one"), "{message}");
    }
}

#[test]
fn glob_descends_only_as_deep_as_the_pattern_can_match() {
    let bench = Bench::new();
    for name in ["a.txt", "one/b.txt", "one/two/c.txt", "one/two/three/d.txt"] {
        bench.write(name, "");
    }
    let cases = [
        ("*.txt", "a.txt"),
        ("*/*.txt", "one/b.txt"),
        ("one/*/c.txt", "one/two/c.txt"),
        ("{one/*,*}/c.txt", "one/two/c.txt"),
        ("**/d.txt", "one/two/three/d.txt"),
        ("./a.txt", "a.txt"),
        ("one", "`one` is a directory; list it with ListDirectory, or search below it with `/**`"),
    ];
    for (pattern, found) in cases {
        assert_eq!(bench.output("Glob", json!({"pattern": pattern})), found, "{pattern}");
    }
}

#[test]
fn unreadable_directories_are_reported() {
    use crate::tools::search::skipped::SkippedPlaces;
    let bench = Bench::new();
    let settings = bench.settings.clone();
    for name in ["a", "b", "c", "d"] {
        fs::create_dir(bench.path(name)).unwrap();
    }
    let denied = |name: &str, kind: std::io::ErrorKind| ignore::Error::WithDepth {
        depth: 1,
        err: Box::new(ignore::Error::WithPath {
            path: settings.workspace.join(name),
            err: Box::new(ignore::Error::Io(kind.into())),
        }),
    };
    let unread = SkippedPlaces::new();
    unread.add_error(&denied("gone", std::io::ErrorKind::NotFound));
    assert_eq!(unread.note(&settings), "");
    let unread = SkippedPlaces::new();
    for name in ["d", "c", "b", "a"] {
        unread.add_error(&denied(name, std::io::ErrorKind::PermissionDenied));
    }
    let why = "permission denied";
    assert_eq!(unread.note(&settings), format!("\n[4 not read completely: `a`: {why}; `b`: {why}; `c`: {why}; …]"));
}

#[cfg(unix)]
#[test]
fn ignore_files_that_are_devices_or_pipes_are_not_opened() {
    use std::os::unix::fs::symlink;
    let bench = Bench::new();
    let pipe = |name: &str| assert!(std::process::Command::new("mkfifo").arg(bench.path(name)).status().unwrap().success());
    bench.write("a/one", "hello");
    bench.write("b/two", "hello");
    bench.write("c/three", "hello");
    bench.write("c/.gitignore", "three");
    bench.write("d/.git", "gitdir: /nowhere\n");
    bench.write("d/four", "hello");
    bench.write("e/.git/info/x", "");
    bench.write("e/five", "hello");
    symlink("/dev/zero", bench.path("a/.ignore")).unwrap();
    pipe("b/.gitignore");
    pipe("e/.git/info/exclude");
    let answer = bench.output("Grep", json!({"pattern": "hello"}));
    assert!(answer.starts_with("d/four:1:hello\n[3 not read"), "{answer}");
    // The directory at which a search starts is searched anyway.
    assert!(bench.output("Grep", json!({"pattern": "hello", "path": "a"})).starts_with("a/one:1:hello\n[1 not"), "{answer}");
    assert!(bench.output("Glob", json!({"pattern": "b/**"})).contains("b/two"));
}

#[test]
fn edit_errors_reveal_no_content_of_unreadable_files() {
    let mut bench = Bench::new();
    bench.write("f", "secret line\n");
    bench.settings.paths.may_read = Arc::new(|_| false);
    for old in ["secret lino", "e"] {
        let edits = json!([{"oldText": old, "newText": "x"}]);
        let (_, message) = bench.error("EditFile", json!({"path": "f", "edits": edits}));
        assert!(message.starts_with("the edits do not match `f`"), "{message}");
        assert!(!message.contains("line"), "{message}");
    }
}
