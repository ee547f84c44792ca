//! Tests of session heads and digests.

use super::chain::ChainScan;
use super::head::Head;
use super::layout;
use crate::ports::Record;
use crate::protocol::SessionId;
use jiff::Timestamp;

const ID: &str = "0123456789abcdef0123456789abcdef";

fn scan(records: &[Record], at: u64) -> ChainScan {
    let mut scan = ChainScan::new(at);
    for (second, record) in (1..).zip(records) {
        scan.add(Timestamp::from_second(second).unwrap(), record);
    }
    scan
}

#[test]
fn a_history_prefix_has_the_digest_of_the_shorter_history() {
    let records = [Record::CompactionUndone, Record::Continued, Record::CompactionGivenUp];
    for count in 0..=records.len() {
        let start = scan(&records[..count], 0).digest();
        assert_eq!(scan(&records, count as u64).start(), Some(start.as_str()), "{count}");
    }
    assert_eq!(scan(&records, 4).start(), None, "a start is not longer than its history");
    let other = [Record::CompactionUndone, Record::CompactionGivenUp, Record::Continued];
    assert_ne!(scan(&records, 2).start(), scan(&other, 2).start());
    assert_eq!(scan(&records, 1).start(), scan(&other, 1).start());
}

#[test]
fn object_names_contain_only_valid_parts() {
    assert_eq!(layout::session_of(&format!("{ID}.json")), Some(SessionId::new(ID)));
    for name in ["", ".json", "../x.json", "0123.json", ID, &format!("{ID}.json.json"), &format!("{ID}#1")] {
        assert_eq!(layout::session_of(name), None, "{name}");
    }
    let digest = "a".repeat(64);
    assert!(layout::is_digest(&digest));
    for text in ["", "../", &digest[1..], &format!("{digest}a"), &digest.to_uppercase(), &format!("/{}", &digest[1..])] {
        assert!(!layout::is_digest(text), "{text}");
    }
    assert_eq!(layout::artifact(&digest), format!("artifacts/aa/{digest}"));
}

#[test]
fn text_from_other_machines_is_limited_to_a_short_line() {
    let digest = "a".repeat(64);
    let head = serde_json::json!({
        "format": 1, "sessionId": ID, "title": format!("one\n\u{1b}[31mtwo{}", "x".repeat(1000)), "workspace": "/w", "version": "1",
        "updated": "2026-01-01T00:00:00Z", "records": 1, "chain": digest, "history": {"digest": digest, "bytes": 3},
        "owner": {"id": "m", "host": "evil\u{7}\nhost", "since": "2026-01-01T00:00:00Z", "busy": false},
    });
    let head = Head::parse(head.to_string().as_bytes(), &SessionId::new(ID), "s3://x").unwrap();
    let texts = [head.title.unwrap(), head.owner.unwrap().machine.host];
    for text in texts {
        assert!(text.chars().count() <= 200 && !text.contains(|letter: char| letter.is_control()), "{text:?}");
    }
}
