//! Tests of `SuggestMemory`: a proposal is added to the inbox, and nothing else changes.

use super::*;
use crate::ports::{MemoryInbox, MemorySuggestion, SuggestionOutcome};
use crate::protocol::MemoryTarget;
use std::sync::Mutex;

#[derive(Default)]
struct Inbox(Mutex<Vec<MemorySuggestion>>);

impl MemoryInbox for Inbox {
    fn check(&self, text: &str) -> Result<String, String> {
        if text.contains('\n') { Err("the text has several lines".to_owned()) } else { Ok(text.trim().to_owned()) }
    }

    fn suggest(&self, suggestion: &MemorySuggestion) -> Result<SuggestionOutcome, String> {
        let mut all = self.0.lock().unwrap();
        match all.len() {
            0 => {
                all.push(suggestion.clone());
                Ok(SuggestionOutcome::Added)
            }
            _ => Err("the inbox is full".to_owned()),
        }
    }
}

#[test]
fn suggestions_are_stored_in_the_inbox_and_errors_have_a_reason() {
    let inbox = Arc::new(Inbox::default());
    let mut bench = Bench::new();
    let (code, _) = bench.error("SuggestMemory", json!({"text": "use nextest"}));
    assert_eq!(code, ErrorCode::InvalidRequest, "disabled");
    bench.settings.session.memory = Some(inbox.clone());
    let (code, message) = bench.error("SuggestMemory", json!({"text": "use\nnextest"}));
    assert!(code == ErrorCode::InvalidRequest && message.contains("several lines"), "{message}");
    let arguments = json!({"text": " use nextest ", "target": "project", "reason": "said twice"});
    assert!(bench.output("SuggestMemory", arguments).contains("The user decides later"));
    let reason = Some("said twice".to_owned());
    assert_eq!(
        *inbox.0.lock().unwrap(),
        [MemorySuggestion { text: "use nextest".to_owned(), target: MemoryTarget::Project, reason }]
    );
    let (code, message) = bench.error("suggest_memory", json!({"text": "use tabs"}));
    assert!(code == ErrorCode::ToolExecutionFailed && message.contains("the inbox is full"), "{message}");
    assert!(bench.error("SuggestMemory", json!({"text": "x", "target": "everyone"})).1.contains("everyone"));
}
