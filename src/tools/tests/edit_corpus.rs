//! Shared cases of search and replace. Required edits must succeed, while optional ones may also be rejected, but must
//! be correct if they succeed.

use super::*;

struct Count {
    right: usize,
    refused: usize,
    wrong: Vec<String>,
}

fn judge(case: &Value, count: &mut Count) {
    let bench = Bench::new();
    let before = case["before"].as_str();
    if let Some(text) = before {
        bench.write("f", text);
    }
    let edit = json!({"oldText": case["old_text"], "newText": case["new_text"], "replaceAll": case["replace_all"]});
    let result = bench.call("EditFile", json!({"path": "f", "edits": [edit]}));
    let after = fs::read(bench.path("f")).ok();
    let untouched = after.as_deref() == before.map(str::as_bytes);
    let kinds: Vec<&str> = [&case["error"]]
        .into_iter()
        .chain(case["error_any"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    let wanted: Vec<&str> = [&case["expected"]]
        .into_iter()
        .chain(case["expected_any"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    let done = after.as_deref().is_some_and(|after| wanted.iter().any(|wanted| wanted.as_bytes() == after));
    let name = format!("{}: {:?}", case["id"].as_str().unwrap(), result.error.as_ref().map(|error| &error.message));
    match result.error {
        None if done => count.right += 1,
        Some(error) if untouched && !kinds.is_empty() => {
            let word = |kind: &&str| match *kind {
                "not_found" => "not found",
                "not_unique" => "not unique",
                "no_change" => "no change",
                _ => "is empty",
            };
            if kinds.iter().any(|kind| error.message.contains(word(kind))) { count.right += 1 } else { count.wrong.push(name) }
        }
        Some(_) if untouched && case["tier"] == "tolerant" => {
            eprintln!("refused: {name}");
            count.refused += 1;
        }
        _ => count.wrong.push(format!(
            "{name} {:?}",
            after.map(|after| String::from_utf8_lossy(&after).chars().take(300).collect::<String>())
        )),
    }
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn the_edit_corpus_is_applied_or_rejected_as_expected() {
    let folder = shared!("fixtures/search_replace");
    for (file, tier, may_refuse) in
        [("handmade", "must", 0), ("handmade", "tolerant", 0), ("commits", "must", 0), ("commits", "tolerant", 0)]
    {
        let text = fs::read_to_string(folder.join(file).with_extension("jsonl")).unwrap();
        let mut count = Count { right: 0, refused: 0, wrong: Vec::new() };
        let cases = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        cases.filter(|case| case["tier"] == tier).for_each(|case| judge(&case, &mut count));
        eprintln!("{file} {tier}: {} right, {} refused, {} wrong", count.right, count.refused, count.wrong.len());
        assert!(count.right > 0 && count.wrong.is_empty(), "{}", count.wrong.join("\n"));
        assert!(count.refused <= may_refuse, "{file} {tier}: {} refused", count.refused);
    }
}
