//! Tests of the arguments and results of `ReadFile` under each of its names, up to and beyond its limits.

use super::*;

const MEGABYTE: usize = 1024 * 1024;

#[test]
fn each_read_tool_has_its_own_limit_and_names_the_next_offset() {
    let bench = Bench::new();
    let cases = [
        ("ReadFile", "path", MEGABYTE),
        ("view", "path", MEGABYTE),
        ("TextRead", "filePath", MEGABYTE),
        ("read_file", "path", 100 * 1024),
    ];
    for (tool, path, most) in cases {
        for (bytes, cut) in [(most - 1, false), (most, false), (most + 1, true)] {
            bench.write("line", "x".repeat(bytes));
            let text = bench.output(tool, json!({path: "line"}));
            assert_eq!(text.to_lowercase().contains(&format!("cut at {most} bytes")), cut, "{tool} {bytes}");
            assert_eq!(text.matches('x').count(), bytes.min(most), "{tool} {bytes}");
            bench.write(
                "lines",
                format!("{}{}", "123456789abcdef\n".repeat(most / 16), "z".repeat((bytes + 1).saturating_sub(most))),
            );
            let text = bench.output(tool, json!({path: "lines"}));
            let over = bytes + 1 > most;
            assert_eq!(text.to_lowercase().contains(&format!("cut at {most} bytes")), over, "{tool} {bytes}");
            assert!(!over || text.ends_with(&format!("{}]", most / 16 + 1)), "{tool}: {}", &text[text.len() - 100..]);
        }
    }
}

#[test]
fn the_size_limit_of_the_policy_applies_only_to_whole_files() {
    let mut bench = Bench::new();
    bench.settings.max_file_size_bytes = 1_000;
    for (bytes, fits) in [(999, true), (1_000, true), (1_001, false)] {
        bench.write("f", "x".repeat(bytes));
        for (tool, first) in [("ReadFile", "offset"), ("read_file", "start_line"), ("TextRead", "startLine")] {
            let result = bench.call(tool, json!({"path": "f"}));
            let code = result.error.map(|error| (error.code, error.message.contains(&format!("`{first}` (first line)"))));
            assert_eq!(code, (!fits).then_some((ErrorCode::FileTooLarge, true)), "{tool} {bytes}");
            assert_eq!(bench.output(tool, json!({"path": "f", first: 1})), "x".repeat(bytes));
        }
    }
}

#[test]
fn line_ranges_are_given_by_first_and_last_line() {
    let bench = Bench::new();
    bench.write("f", "1\n2\n3\n4\n5");
    let four = |arguments: Value| {
        let mut arguments = arguments;
        arguments["path"] = json!("f");
        let result = bench.call("read_file", arguments);
        result.error.map_or(result.output_text, |error| error.message)
    };
    assert_eq!(four(json!({"start_line": 2, "end_line": 3})), "2\n3\n[lines 2 to 3; more follow from `start_line` 4]");
    assert_eq!(four(json!({"start_line": 4, "end_line": 5})), "4\n5");
    assert_eq!(four(json!({"start_line": 4, "end_line": 6})), "4\n5");
    assert_eq!(four(json!({"end_line": 1})), "1\n[lines 1 to 1; more follow from `start_line` 2]");
    assert_eq!(four(json!({"start_line": 5})), "5");
    assert_eq!(four(json!({"offset": 4, "limit": 1})), "4\n[lines 4 to 4; more follow from `start_line` 5]");
    assert_eq!(four(json!({"start_line": 6})), "`start_line` 6 is past the end of `f`, which has 5 lines");
    assert_eq!(four(json!({"start_line": 3, "end_line": 2})), "`end_line` 2 is before `start_line` 3; both lines are included");
    assert_eq!(four(json!({"start_line": 0})), "`start_line` is 0; lines and columns are counted from 1");
    assert_eq!(four(json!({"end_line": 0})), "`end_line` is 0; lines and columns are counted from 1");
    assert!(four(json!({"start_line": -1})).starts_with("`start_line` is -1; expected a whole number"));
    assert!(four(json!({"end_line": 2, "limit": 2})).contains("`limit` and `end_line` are both set"));
    assert_eq!(
        bench.output("ReadFile", json!({"path": "f", "start_line": 2, "end_line": 2})),
        "2\n[lines 2 to 2; more follow from `offset` 3]"
    );
    assert_eq!(bench.output("TextRead", json!({"filePath": "f", "startLine": 5})), "5");
    assert_eq!(bench.output("TextRead", json!({"path": "f", "offset": 5, "endLine": 5})), "5");
    assert!(bench.error("ReadFile", json!({"path": "f", "column": 0})).1.contains("counted from 1"));
}

#[test]
fn read_file_replaces_invalid_utf_8() {
    let bench = Bench::new();
    bench.write("f", b"caf\xE9");
    assert_eq!(bench.output("read_file", json!({"path": "f"})), "caf\u{FFFD}");
    assert_eq!(bench.output("read_file", json!({"path": "f", "encoding": "latin1"})), "café");
    assert_eq!(bench.output("ReadFile", json!({"path": "f"})), "café");
}

#[test]
fn a_line_of_many_megabytes_can_be_read_in_parts() {
    let mut bench = Bench::new();
    bench.settings.max_file_size_bytes = 1_000;
    let line = (0..625_000).map(|index| format!("{index:07},")).collect::<Vec<_>>().concat();
    bench.write("long.json", &line);
    let text = bench.output("ReadFile", json!({"path": "long.json", "offset": 1}));
    assert!(text.ends_with(
        "[columns 1 to 1048576 of line 1; the line is longer. Cut at 1048576 bytes, continue with `offset` 1 and `column` 1048577]"
    ));
    let text = bench.output("ReadFile", json!({"path": "long.json", "column": 1_048_577}));
    assert!(text.starts_with("0131072,0131073,") && text.ends_with("`column` 2097153]"), "{}", &text[text.len() - 100..]);
    assert_eq!(bench.output("ReadFile", json!({"path": "long.json", "column": 4_999_993})), "0624999,");
    let (_, message) = bench.error("ReadFile", json!({"path": "long.json", "column": 5_000_002}));
    assert_eq!(message, "`column` 5000002 is past the end of line 1 of `long.json`, which has 5000000 characters");
}

#[test]
fn notebooks_are_read_as_cells_or_raw() {
    let bench = Bench::new();
    let notebook =
        "{\"cells\": [{\"cell_type\": \"code\", \"source\": [\"a = 1\\n\", \"b = 2\"], \"outputs\": []}],\n \"metadata\": {}}\n";
    bench.write("n.ipynb", notebook);
    let cells = "[notebook, 1 cell; `raw` returns its JSON, which is what EditFile changes]\n\n[cell 1: code]\na = 1\nb = 2\n";
    assert_eq!(bench.output("ReadFile", json!({"path": "n.ipynb"})), cells);
    assert_eq!(bench.output("ReadFile", json!({"path": "n.ipynb", "offset": 5})), "b = 2\n");
    assert_eq!(bench.output("ReadFile", json!({"path": "n.ipynb", "raw": true})), notebook);
    bench.write("n.ipynb", "{\"cells\": [");
    let text = bench.output("ReadFile", json!({"path": "n.ipynb"}));
    assert!(text.starts_with("{\"cells\": [\n[cannot be parsed as a notebook"), "{text}");
}

#[test]
fn binary_files_are_described_by_type() {
    let bench = Bench::new();
    bench.write("a", b"PK\x03\x04\0\0\0\0");
    bench.write("b", b"\0\x01\x02");
    assert!(
        bench
            .output("ReadFile", json!({"path": "a"}))
            .starts_with("Binary file, 8 bytes\n[zip, application/zip; with RunCommand: unzip -l")
    );
    assert_eq!(bench.output("ReadFile", json!({"path": "b"})), "Binary file, 3 bytes");
}
