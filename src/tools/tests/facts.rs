//! Tests of the tools that report file metadata: `Stat`, `HashFile` and `DiskUsage`.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn stat_reports_kind_size_mode_times_and_lines() {
    let bench = Bench::new();
    bench.write("f", "one\r\ntwo");
    fs::set_permissions(bench.path("f"), fs::Permissions::from_mode(0o640)).unwrap();
    let told = bench.output("Stat", json!({"path": "f"}));
    for part in ["kind: file", "size: 8 bytes", "mode: 0640 (rw-r-----)", "owner: ", "group: "] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(told.contains("content: UTF-8, 2 lines, CRLF, no trailing newline"), "{told}");
    let modified = told.lines().find_map(|line| line.strip_prefix("modified: ")).unwrap();
    assert!(modified.parse::<jiff::Timestamp>().is_ok() && modified.ends_with('Z'), "{modified}");
    bench.write("empty", "");
    bench.write("binary", [0_u8, 1, 2, 0]);
    assert!(bench.output("stat", json!({"path": "empty"})).contains("content: empty"));
    assert!(bench.output("stat", json!({"path": "binary"})).contains("content: binary"));
    assert!(bench.output("stat", json!({"path": "."})).contains("kind: directory"));
    assert!(bench.output("stat", json!({"path": "/"})).contains("kind: directory"));
    let (code, message) = bench.error("Stat", json!({"path": "emty"}));
    assert_eq!((code, message.contains("did you mean `empty`?")), (ErrorCode::FileNotFound, true), "{message}");
}

#[test]
fn lines_are_counted_up_to_one_megabyte() {
    let bench = Bench::new();
    for (bytes, counted) in [((1 << 20) - 1, true), (1 << 20, true), ((1 << 20) + 1, false)] {
        bench.write("f", vec![b'x'; bytes]);
        let told = bench.output("Stat", json!({"path": "f"}));
        assert_eq!(told.contains("content: UTF-8, 1 line"), counted, "{bytes}: {told}");
    }
}

#[test]
fn stat_reports_a_link_and_its_target() {
    let bench = Bench::new();
    bench.write("f", "x\n");
    symlink("f", bench.path("to-f")).unwrap();
    symlink("nowhere", bench.path("dangling")).unwrap();
    symlink("circle", bench.path("circle")).unwrap();
    let told = bench.output("Stat", json!({"path": "to-f"}));
    assert!(told.contains("kind: symbolic link") && told.contains("target: f\n"), "{told}");
    assert!(told.contains("It points to:") && told.contains("kind: file"), "{told}");
    assert!(bench.output("Stat", json!({"path": "dangling"})).contains("points to: nowhere, which does not exist"));
    assert!(bench.output("Stat", json!({"path": "circle"})).contains("points to: a path that cannot be read"));
    let plan = bench.plan("Stat", json!({"path": "to-f"})).unwrap();
    assert_eq!(plan.actions.len(), 2, "the symlink and its target are both judged");
}

#[test]
fn stat_does_not_describe_unreadable_link_targets() {
    let mut bench = Bench::new();
    fs::write(bench.root.join("secret"), "12345").unwrap();
    symlink(bench.root.join("secret"), bench.path("link")).unwrap();
    let hidden = bench.root.join("secret");
    bench.settings.paths.may_read = Arc::new(move |path| path != hidden);
    let told = bench.output("Stat", json!({"path": "link"}));
    assert!(!told.contains("5 bytes") && told.contains("a path that cannot be read"), "{told}");
}

#[test]
fn hashes_match_those_of_other_programs() {
    let bench = Bench::new();
    bench.write("f", "abc");
    for (algorithm, hex) in [
        ("sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("SHA-256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("md5", "900150983cd24fb0d6963f7d28e17f72"),
        ("sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        ("blake3", "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"),
    ] {
        let told = bench.output("HashFile", json!({"path": "f", "algorithm": algorithm}));
        assert!(told.contains(hex) && told.ends_with("f (3 bytes)"), "{told}");
    }
    assert!(bench.output("hash_file", json!({"path": "f"})).starts_with("sha256 ba7816bf"));
    let (code, message) = bench.error("HashFile", json!({"path": "f", "algorithm": "crc32"}));
    assert_eq!((code, message.contains("one of `sha256`")), (ErrorCode::InvalidRequest, true));
    assert_eq!(bench.error("HashFile", json!({"path": "."})).0, ErrorCode::InvalidRequest);
    assert_eq!(bench.error("HashFile", json!({"path": "none"})).0, ErrorCode::FileNotFound);
}

#[test]
fn files_over_the_read_limit_can_be_hashed() {
    let bench = Bench::new();
    bench.write("f", vec![b'a'; 3_000_000]);
    let bench = Bench { settings: ToolSettings { max_file_size_bytes: 1000, ..bench.settings.clone() }, ..bench };
    let told = bench.output("HashFile", json!({"path": "f", "algorithm": "blake3"}));
    assert!(told.contains(blake3::hash(&vec![b'a'; 3_000_000]).to_hex().as_str()), "{told}");
}

#[test]
fn files_with_secrets_are_not_hashed() {
    let bench = Bench::new();
    bench.write(".env", "PASSWORD=Xk29fjQ81ms0Zp\n");
    let (code, message) = bench.error("HashFile", json!({"path": ".env"}));
    assert_eq!((code, message.contains("ask the user")), (ErrorCode::PermissionDenied, true), "{message}");
}

#[test]
fn a_cancelled_hash_or_disk_usage_call_is_reported_as_cancelled() {
    let bench = Bench::new();
    bench.write("f", "abc");
    for tool in ["HashFile", "DiskUsage"] {
        let path = if tool == "HashFile" { "f" } else { "." };
        let plan = bench.plan(tool, json!({"path": path})).unwrap();
        let permit = Permit::for_test(plan.actions.clone());
        let context = context();
        context.kill.cancel();
        let result = block_on(bench.router().run(plan, permit, context));
        assert_eq!(result.error.unwrap().code, ErrorCode::Cancelled);
    }
}

#[test]
fn disk_usage_includes_ignored_files_and_counts_hard_links_once() {
    let bench = Bench::new();
    bench.write(".gitignore", "target/\n");
    bench.write("target/big", vec![0; 5000]);
    bench.write("src/a", vec![0; 300]);
    bench.write("src/deep/b", vec![0; 200]);
    fs::hard_link(bench.path("src/a"), bench.path("src/again")).unwrap();
    fs::create_dir(bench.root.join("out")).unwrap();
    fs::write(bench.root.join("out/huge"), vec![0; 100_000]).unwrap();
    symlink(bench.root.join("out"), bench.path("link")).unwrap();
    let told = bench.output("DiskUsage", json!({}));
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].starts_with(".: 5.4 KB (5508 bytes) in 5 files, 3 directories, 1 symlink"), "{told}");
    assert_eq!(lines[1], "4.9 KB (5000 bytes)  target/ (1 file)");
    assert_eq!(lines[2], "500 bytes  src/ (3 files)");
    assert!(!told.contains("deep") && told.contains("1 of the files are additional hard links"), "{told}");
    assert!(bench.output("disk_usage", json!({"path": "src", "depth": 2})).contains("200 bytes  deep/b"));
    assert_eq!(bench.output("DiskUsage", json!({"depth": 0})).lines().next(), Some(lines[0]));
    assert!(bench.output("du", json!({"path": "src/a"})).starts_with("src/a: 300 bytes in one file"));
}

#[test]
fn unreadable_files_are_not_counted() {
    let mut bench = Bench::new();
    bench.write("a", vec![0; 10]);
    bench.write("hidden/b", vec![0; 1000]);
    let hidden = bench.path("hidden");
    bench.settings.paths.may_read = Arc::new(move |path| !path.starts_with(&hidden));
    let told = bench.output("DiskUsage", json!({}));
    assert!(told.starts_with(".: 10 bytes in 1 file, 0 directories") && !told.contains("hidden/"), "{told}");
}

#[test]
fn disk_usage_shows_up_to_one_hundred_entries() {
    for (entries, cut) in [(99, false), (100, false), (101, true)] {
        let bench = Bench::new();
        for entry in 0..entries {
            bench.write(&format!("f{entry:03}"), "x");
        }
        let told = bench.output("DiskUsage", json!({}));
        assert_eq!(told.contains("[the 100 largest of 101 entries shown"), cut, "{told}");
        assert_eq!(told.lines().filter(|line| line.contains("  f")).count(), entries.min(100));
    }
    let bench = Bench::new();
    for (depth, taken) in [(19, true), (20, true), (21, false)] {
        assert_eq!(bench.call("DiskUsage", json!({"depth": depth})).status == ToolStatus::Succeeded, taken);
    }
}

#[test]
fn a_secret_deep_inside_a_large_file_prevents_hashing() {
    let bench = Bench::new();
    let lines = "a line that says nothing of any interest to anybody\n".repeat(200_000);
    bench.write("plain", &lines);
    assert!(bench.output("HashFile", json!({"path": "plain"})).starts_with("sha256 "));
    bench.write("secret", format!("{lines}token = ghp_{}\n{lines}", "x9Y8z7W6v5U4t3S2r1Q0p9O8n7M6l5K4j3I2"));
    assert_eq!(bench.error("HashFile", json!({"path": "secret"})).0, ErrorCode::PermissionDenied);
}
