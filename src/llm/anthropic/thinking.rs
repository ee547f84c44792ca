//! Thinking in the Messages API: the effort setting and thinking blocks.

use crate::llm::quirks::{Field, Quirks};
use crate::llm::thread::Fragment;
use crate::ports::ModelRequest;
use crate::protocol::{Effort, Part, Role};
use serde_json::Value;

/// Smallest thinking budget that the API accepts, in tokens.
const MIN_BUDGET: u64 = 1024;
const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";

/// Item types used by another provider's API.
const FOREIGN: [&str; 4] = ["reasoning", "message", "function_call_output", "item_reference"];

/// Returns whether a block was created by this API, which rejects foreign blocks and unsigned thinking.
pub(super) fn is_from_api(block: &Value) -> bool {
    match block.get("type").and_then(Value::as_str) {
        Some("thinking") => block.get("signature").and_then(Value::as_str).is_some_and(|signature| !signature.is_empty()),
        Some(kind) => !FOREIGN.contains(&kind) && !kind.starts_with("reasoning.") && !kind.ends_with("_call"),
        None => false,
    }
}

/// Returns whether the model expects a thinking budget in tokens. Newer models do not.
fn uses_budget(model: &str, quirks: &Quirks) -> bool {
    let old = ["claude-3", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2", "claude-opus-4-5", "claude-sonnet-4-0"];
    let older = ["claude-sonnet-4-2", "claude-sonnet-4-5", "claude-haiku-4", "claude-sonnet-4@", "claude-opus-4@"];
    let name = model.to_ascii_lowercase();
    let old = !name.contains("claude") || old.iter().chain(&older).any(|part| name.contains(part));
    // If the server rejected one setting, use the other one.
    old == quirks.sends(Field::Adaptive)
}

/// Returns the header that enables thinking between tool calls, if the model uses a thinking budget and thinking is on.
pub(in crate::llm) fn beta(model: &str, request: &ModelRequest, quirks: &Quirks) -> Option<(&'static str, String)> {
    let thinks = request.effort.is_some_and(|effort| effort != Effort::Off) && quirks.sends(Field::Thinking);
    (thinks && uses_budget(model, quirks)).then(|| ("anthropic-beta", INTERLEAVED.to_owned()))
}

pub(super) fn write(
    out: &mut Vec<u8>,
    model: &str,
    effort: Option<Effort>,
    most_output: u64,
    quirks: &Quirks,
    fragments: &[Fragment],
) {
    let Some(effort) = effort.filter(|_| quirks.sends(Field::Thinking)) else { return };
    if effort == Effort::Off {
        // Lowest setting of this model, which rejects `disabled`.
        let least = if model.to_ascii_lowercase().contains("claude-sonnet-5-5") { "between_tools" } else { "disabled" };
        out.extend_from_slice(format!(r#","thinking":{{"type":"{least}"}}"#).as_bytes());
        return;
    }
    if uses_budget(model, quirks) {
        let wanted = match effort {
            Effort::Off | Effort::Minimal => MIN_BUDGET,
            Effort::Low => 4_096,
            Effort::Medium => 12_288,
            Effort::High => 32_768,
            Effort::Xhigh => 49_152,
            Effort::Max => 98_304,
        };
        // Leave space for the response itself.
        let budget = wanted.min(most_output / 4 * 3);
        if budget >= MIN_BUDGET && may_think(fragments) {
            out.extend_from_slice(format!(r#","thinking":{{"type":"enabled","budget_tokens":{budget}}}"#).as_bytes());
        }
        return;
    }
    out.extend_from_slice(br#","thinking":{"type":"adaptive","display":"summarized"}"#);
    if quirks.sends(Field::Effort) {
        // The API has no `minimal` effort.
        let effort = effort.max(Effort::Low).as_str();
        out.extend_from_slice(format!(r#","output_config":{{"effort":"{effort}"}}"#).as_bytes());
    }
}

/// Returns whether thinking can be enabled. The API rejects it partway through a step that began without thinking.
fn may_think(fragments: &[Fragment]) -> bool {
    let told = fragments.iter().rev().filter(|fragment| !fragment.json.is_empty());
    let answer = told.map(Fragment::message).find(|message| message.role != Role::Tool);
    let Some(answer) = answer.filter(|message| message.role == Role::Assistant) else { return true };
    matches!(answer.content.first(), Some(Part::Reasoning { opaque: Some(block), .. }) if is_from_api(block))
}
