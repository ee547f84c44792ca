//! Tests that notes about omitted output are exact: whoever follows them receives every line once, even if there is
//! little space.

use super::*;
use proptest::prelude::*;
use std::fmt::Write as _;

/// Makes a call with one limit on output while it runs, and another limit once its step is over.
fn called(bench: &Bench, tool: &str, arguments: &Value, (running, over): (usize, usize)) -> String {
    let plan = bench.plan(tool, arguments.clone()).unwrap();
    let permit = Permit::for_test(plan.actions.clone());
    let context = RunContext { max_bytes: running, ..context() };
    let result = block_on(bench.router().run(plan, permit, context));
    assert_eq!(result.status, ToolStatus::Succeeded, "{tool} {arguments}: {result:?}");
    result.truncate_to(over).text_for_model()
}

/// Returns the output without its final note, and the arguments with which to continue it.
fn hint(output: &str) -> (String, Vec<(&'static str, u64)>) {
    let Some((body, note)) = output.rsplit_once("\n[").filter(|(_, note)| note.ends_with(']')) else {
        return (output.to_owned(), Vec::new());
    };
    let named = |name: &'static str| {
        let (_, after) = note.rsplit_once(&format!("`{name}` "))?;
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        Some((name, digits.parse().ok()?))
    };
    let next: Vec<_> = ["offset", "column"].into_iter().filter_map(named).collect();
    if next.is_empty() { (output.to_owned(), next) } else { (body.to_owned(), next) }
}

/// Follows all notes, and returns each chunk of output found that way.
fn followed(bench: &Bench, tool: &str, first: &Value, rooms: &[(usize, usize)]) -> Vec<String> {
    let (mut arguments, mut pieces) = (first.clone(), Vec::new());
    for turn in 0.. {
        assert!(turn < 5_000, "{tool} {arguments} makes no progress: {:?}", pieces.last());
        let output = called(bench, tool, &arguments, rooms[turn % rooms.len()]);
        let (body, next) = hint(&output);
        let within = next.iter().any(|(name, _)| *name == "column");
        pieces.push(if within || next.is_empty() { body } else { body + "\n" });
        if next.is_empty() {
            break;
        }
        arguments.as_object_mut().unwrap().remove("column");
        for (name, value) in next {
            arguments[name] = value.into();
        }
    }
    pieces
}

fn rooms() -> impl Strategy<Value = Vec<(usize, usize)>> {
    prop::collection::vec((prop_oneof![40..400_usize, 400..5_000_usize], prop_oneof![40..400_usize, 400..5_000_usize]), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_can_be_read_page_by_page_to_its_end(
        lines in prop::collection::vec(prop_oneof![5 => "[a-zäö ]{0,40}", 1 => "[a-z ]{600,900}"], 1..60),
        ended in any::<bool>(),
        limit in prop::option::of(1..30_u64),
        rooms in rooms(),
    ) {
        let bench = Bench::new();
        let text = lines.join("\n") + if ended { "\n" } else { "" };
        prop_assume!(!text.is_empty());
        bench.write("f.txt", &text);
        let mut first = json!({"path": "f.txt"});
        if let Some(limit) = limit {
            first["limit"] = limit.into();
        }
        let read = followed(&bench, "ReadFile", &first, &rooms).concat();
        prop_assert_eq!(read.trim_end_matches('\n'), text.trim_end_matches('\n'));
    }

    #[test]
    fn a_file_with_secrets_can_be_read_page_by_page_to_its_end(
        parts in prop::collection::vec((prop::collection::vec("[a-z]{1,20}", 1..6), any::<bool>()), 1..6),
        rooms in prop::collection::vec((200..5_000_usize, 200..5_000_usize), 1..4),
    ) {
        let bench = Bench::new();
        let mut text = String::new();
        let mut wanted = Vec::new();
        for (index, (lines, key)) in parts.iter().enumerate() {
            for (number, line) in lines.iter().enumerate() {
                let _ = writeln!(text, "{index}.{number} {line}");
                wanted.push(format!("{index}.{number} {line}"));
            }
            if *key {
                let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n".repeat(4);
                let _ = write!(text, "-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\n");
            }
        }
        bench.write("f.txt", &text);
        let read = followed(&bench, "ReadFile", &json!({"path": "f.txt"}), &rooms).concat();
        prop_assert!(!read.contains("MIIEv"), "{}", read);
        let seen: Vec<&str> = read.lines().filter(|line| line.starts_with(|letter: char| letter.is_ascii_digit())).collect();
        prop_assert_eq!(seen, wanted, "{}", read);
    }

    #[test]
    fn lists_can_be_read_page_by_page_to_their_end(
        files in prop::collection::btree_set("[a-d]{1,3}/[a-d]{1,12}", 1..40),
        matches in prop::collection::vec(0..4_usize, 1..6),
        most in prop::option::of(1..30_u32),
        around in 0..3_u32,
        // An item larger than the limit is cut; here each item fits.
        rooms in prop::collection::vec((200..5_000_usize, 200..5_000_usize), 1..4),
    ) {
        let bench = Bench::new();
        for (file, matches) in files.iter().zip(matches.iter().cycle()) {
            bench.write(file, format!("x\n{}", "needle here\ny\n".repeat(*matches)));
        }
        let with = |mut arguments: Value| {
            if let Some(most) = most {
                arguments["maxResults"] = most.into();
            }
            arguments
        };
        let calls = [
            ("Glob", json!({"pattern": "**/*"})),
            ("ListDirectory", json!({"recursive": true, "details": true})),
            ("Grep", json!({"pattern": "needle"})),
            ("Grep", json!({"pattern": "needle", "context": around})),
            ("Grep", json!({"pattern": "needle", "output": "count"})),
            ("Grep", json!({"pattern": "needle", "output": "files"})),
        ];
        for (tool, arguments) in calls {
            let all = called(&bench, tool, &arguments, (usize::MAX, usize::MAX));
            if hint(&all).1.is_empty() {
                let read = followed(&bench, tool, &with(arguments.clone()), &rooms).concat();
                // Between pages, nothing shows that lines are not adjacent.
                let plain = |text: &str| text.lines().filter(|line| *line != "--").map(str::to_owned).collect::<Vec<_>>();
                let mut wanted = plain(&all);
                let mut seen = plain(&read);
                if around > 0 {
                    // A line in the context of two matches is shown with both if they are on two pages.
                    wanted.dedup();
                    seen.dedup();
                    let matches = |lines: &[String]| lines.iter().filter(|line| line.contains(':')).cloned().collect::<Vec<_>>();
                    prop_assert_eq!(matches(&seen), matches(&wanted), "{} {}", tool, arguments);
                    continue;
                }
                prop_assert_eq!(seen, wanted, "{} {}", tool, arguments);
            }
        }
    }

    #[test]
    fn output_byte_counts_are_correct_after_repeated_truncation(
        lines in 1..3_000_usize,
        errors in 0..1_000_usize,
        rooms in rooms(),
    ) {
        let bench = Bench::new();
        let command = format!("seq 1 {lines}; seq 1 {errors} >&2");
        let printed = |count: usize| (1..=count).map(|number| number.to_string().len() + 1).sum::<usize>();
        for room in rooms {
            let output = called(&bench, "RunCommand", &json!({"command": command}), room);
            let numbers: Vec<usize> = output.lines().filter_map(|line| line.parse().ok()).collect();
            let shown: usize = numbers.iter().map(|number| number.to_string().len() + 1).sum();
            let missing: usize = output
                .match_indices("[... truncated ")
                .filter_map(|(at, mark)| output[at + mark.len()..].split_once(' ')?.0.parse::<usize>().ok())
                .sum();
            // A number may be cut in two, and the titles of both outputs may be omitted.
            let (all, told) = (printed(lines) + printed(errors), shown + missing);
            prop_assert!(told.abs_diff(all) <= 80, "{} of {}: {}", told, all, output);
            prop_assert!(missing == 0 || output.contains("truncated"));
        }
    }
}

#[test]
fn a_page_past_the_end_is_an_error_with_the_actual_count() {
    let bench = Bench::new();
    bench.write("a", "needle\n");
    for (tool, mut arguments, there) in [
        ("Grep", json!({"pattern": "needle", "offset": 2}), "there are 1 matches"),
        ("Grep", json!({"pattern": "needle", "output": "files", "offset": 7}), "there are 1 files"),
        ("Glob", json!({"pattern": "*", "offset": 2}), "there are 1 files"),
        ("ListDirectory", json!({"offset": 2}), "there are 1 entries"),
    ] {
        let (code, message) = bench.error(tool, arguments.clone());
        assert!(code == ErrorCode::InvalidRequest && message.contains(there), "{tool}: {message}");
        arguments["offset"] = 10_001.into();
        let (code, message) = bench.error(tool, arguments);
        assert!(code == ErrorCode::InvalidRequest && message.contains("offset"), "{tool}: {message}");
    }
}
