//! Tests verdicts that depend only on the text of a URL, using the shared corpus. Cases that need a resolver are tested
//! with the code that sends requests.

use super::*;

#[derive(Deserialize)]
struct Case {
    id: String,
    url: String,
    expected: String,
    needs_resolver: bool,
    #[serde(default)]
    allowed_hosts: Vec<String>,
    #[serde(default)]
    also_ok: Vec<String>,
    why: String,
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn the_url_corpus_gets_the_labelled_verdicts() {
    let text = std::fs::read_to_string(shared!("corpora/urls.jsonl")).unwrap();
    let mut wrong = Vec::new();
    let cases = text.lines().map(|line| serde_json::from_str::<Case>(line).unwrap());
    for case in cases.filter(|case| !case.needs_resolver) {
        let list =
            if case.allowed_hosts.is_empty() { String::new() } else { format!("allowed_domains = {:?}\n", case.allowed_hosts) };
        let told = explain(&user(&format!("{list}{OPEN}")), "GET", &case.url);
        let label = match told.verdict {
            VerdictKind::Allow => "allow",
            VerdictKind::Ask => "ask",
            VerdictKind::Deny => "block",
        };
        if label != case.expected && !case.also_ok.iter().any(|also| also == label) {
            wrong.push(format!("{} {:?}: {label} ({}), not {} ({})", case.id, case.url, told.reason, case.expected, case.why));
        }
        let asked = explain(&user(&format!("{list}{ASKS}")), "GET", &case.url);
        assert_eq!(asked.verdict == VerdictKind::Deny, told.verdict == VerdictKind::Deny, "{}", case.id);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
