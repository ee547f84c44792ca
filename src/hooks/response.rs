//! Hook responses: the exit code and the output.

use crate::protocol::{HookDecision, HookEvent, cut_position_before};
use serde_json::{Map, Value};

/// Maximum size of the reason, context or message returned by a hook, in bytes.
const MAX_TEXT_BYTES: usize = 10_000;
/// Exit code with which a hook blocks.
const BLOCKS: i32 = 2;

/// Response returned by a hook.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct HookResponse {
    /// Decision about a call that has not run yet. For other events, `Deny` means `block`, whose effect depends on the
    /// event.
    pub decision: HookDecision,
    pub reason: Option<String>,
    /// Text to send to the model.
    pub context: Option<String>,
    /// Text to show to the user.
    pub message: Option<String>,
    /// The call's input as rewritten by the hook, if it did so.
    pub updated_input: Option<Map<String, Value>>,
}

/// Parses the response of a hook that exited with the given code.
///
/// # Errors
/// Returns the reason why the hook failed or its output is not a valid response.
pub(crate) fn read_response(event: HookEvent, code: i32, stdout: &str, stderr: &str) -> Result<HookResponse, String> {
    match code {
        0 if stdout.trim_start().starts_with('{') => read_json(event, stdout),
        0 => {
            let is_context = matches!(event, HookEvent::UserPromptSubmit | HookEvent::SessionStart);
            let context = text(stdout).filter(|_| is_context);
            Ok(HookResponse { context, ..HookResponse::default() })
        }
        BLOCKS => Ok(HookResponse {
            decision: HookDecision::Deny,
            reason: Some(text(stderr).unwrap_or_else(|| "no reason given".to_owned())),
            ..HookResponse::default()
        }),
        code => {
            let why = text(stderr).or_else(|| text(stdout));
            let why = why.as_deref().and_then(|why| why.lines().next()).map(|why| format!(": {why}")).unwrap_or_default();
            Err(format!("exit code {code}{why}"))
        }
    }
}

/// Trims text and truncates it to the size limit. Returns `None` if the text is blank.
fn text(text: &str) -> Option<String> {
    let text = text.trim();
    let end = cut_position_before(text, MAX_TEXT_BYTES);
    let cut = if end < text.len() { "…" } else { "" };
    (!text.is_empty()).then(|| format!("{}{cut}", &text[..end]))
}

/// Returns the output without a first line that says that the hook continues in the background, since aye waits for it.
fn without_async_line(stdout: &str) -> &str {
    let (first, rest) = stdout.trim().split_once('\n').unwrap_or((stdout.trim(), ""));
    match serde_json::from_str::<Map<String, Value>>(first) {
        Ok(line) if line.get("async") == Some(&Value::Bool(true)) => rest.trim(),
        Ok(_) | Err(_) => stdout.trim(),
    }
}

fn read_json(event: HookEvent, stdout: &str) -> Result<HookResponse, String> {
    let stdout = without_async_line(stdout);
    if !stdout.starts_with('{') {
        return Ok(HookResponse::default());
    }
    let output: Map<String, Value> =
        serde_json::from_str(stdout).map_err(|error| format!("the output is not valid JSON ({error})"))?;
    let mut response = HookResponse { message: string(&output, "systemMessage")?, ..HookResponse::default() };
    let reason = string(&output, "reason")?;
    match string(&output, "decision")?.as_deref() {
        // A hook is not permitted to allow a call.
        None | Some("approve" | "allow") => {}
        Some("block" | "deny") => response.decision = HookDecision::Deny,
        Some("ask") if event == HookEvent::PreToolUse => response.decision = HookDecision::Ask,
        Some(other) => return Err(unknown("decision", other)),
    }
    response.reason.clone_from(&reason);
    match output.get("hookSpecificOutput") {
        None | Some(Value::Null) => {}
        Some(Value::Object(specific)) => read_specific(event, specific, &mut response)?,
        Some(_) => return Err("`hookSpecificOutput` is not an object".to_owned()),
    }
    match output.get("continue") {
        None | Some(Value::Null | Value::Bool(true)) => {}
        Some(Value::Bool(false)) => {
            // At the end of a task, there is nothing left to stop.
            response.decision = if event == HookEvent::Stop { HookDecision::None } else { HookDecision::Deny };
            response.reason = string(&output, "stopReason")?.or(response.reason);
        }
        Some(_) => return Err("`continue` is not `true` or `false`".to_owned()),
    }
    if response.decision == HookDecision::Deny && response.reason.is_none() {
        response.reason = Some("no reason given".to_owned());
    }
    Ok(response)
}

fn read_specific(event: HookEvent, specific: &Map<String, Value>, response: &mut HookResponse) -> Result<(), String> {
    if let Some(name) = string(specific, "hookEventName")?.filter(|name| name != event.as_str()) {
        return Err(format!("`hookEventName` is `{}`, but the event is {}", name.escape_debug(), event.as_str()));
    }
    response.context = string(specific, "additionalContext")?;
    if event != HookEvent::PreToolUse {
        return Ok(());
    }
    let decision = match string(specific, "permissionDecision")?.as_deref() {
        // In both cases, the policy decides.
        None | Some("allow" | "defer") => HookDecision::None,
        Some("ask") => HookDecision::Ask,
        Some("deny") => HookDecision::Deny,
        Some(other) => return Err(unknown("permissionDecision", other)),
    };
    response.decision = response.decision.max(decision);
    response.reason = string(specific, "permissionDecisionReason")?.or(response.reason.take());
    response.updated_input = match specific.get("updatedInput") {
        None | Some(Value::Null) => None,
        Some(Value::Object(input)) => Some(input.clone()),
        Some(_) => return Err("`updatedInput` is not an object".to_owned()),
    };
    Ok(())
}

fn unknown(key: &str, value: &str) -> String {
    format!("`{key}` is `{}`, which aye does not know", value.chars().take(40).collect::<String>().escape_debug())
}

/// Returns the text stored under a key, or `None` if the key is missing or its value is null or blank.
fn string(output: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match output.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(value)) => Ok(text(value)),
        Some(_) => Err(format!("`{key}` is not a string")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn before(code: i32, stdout: &str, stderr: &str) -> Result<HookResponse, String> {
        read_response(HookEvent::PreToolUse, code, stdout, stderr)
    }

    fn specific(inner: &str) -> String {
        format!(r#"{{"hookSpecificOutput": {{"hookEventName": "PreToolUse", {inner}}}}}"#)
    }

    #[test]
    fn an_exit_code_passes_blocks_or_fails_the_hook() {
        assert_eq!(before(0, "any text", ""), Ok(HookResponse::default()));
        let blocked = before(2, r#"{"decision": "approve"}"#, " no rm here\n").unwrap();
        assert_eq!((blocked.decision, blocked.reason.as_deref()), (HookDecision::Deny, Some("no rm here")));
        assert_eq!(before(2, "", "").unwrap().reason.as_deref(), Some("no reason given"));
        assert_eq!(before(1, "", "oops\nmore"), Err("exit code 1: oops".to_owned()));
        assert_eq!(before(127, "", ""), Err("exit code 127".to_owned()));
    }

    #[test]
    fn allow_approve_defer_and_async_have_no_effect() {
        for output in [
            specific(r#""permissionDecision": "allow", "permissionDecisionReason": "fine""#).as_str(),
            specific(r#""permissionDecision": "defer""#).as_str(),
            r#"{"decision": "approve"}"#,
            r#"{"async": true, "asyncTimeout": 9}"#,
            "{\"async\":true}\nsome log\n",
        ] {
            assert_eq!(before(0, output, "").unwrap().decision, HookDecision::None, "{output}");
        }
    }

    #[test]
    fn deny_ask_and_block_tighten_the_verdict_and_the_strictest_applies() {
        for (output, decision, reason) in [
            (specific(r#""permissionDecision": "deny", "permissionDecisionReason": "r""#), HookDecision::Deny, Some("r")),
            (specific(r#""permissionDecision": "ask""#), HookDecision::Ask, None),
            (r#"{"decision": "block", "reason": "r"}"#.to_owned(), HookDecision::Deny, Some("r")),
            (r#"{"continue": false, "stopReason": "s", "reason": "r"}"#.to_owned(), HookDecision::Deny, Some("s")),
            (r#"{"continue": false}"#.to_owned(), HookDecision::Deny, Some("no reason given")),
            (
                r#"{"decision": "block", "reason": "r", "hookSpecificOutput": {"permissionDecision": "allow"}}"#.to_owned(),
                HookDecision::Deny,
                Some("r"),
            ),
        ] {
            let response = before(0, &output, "").unwrap();
            assert_eq!((response.decision, response.reason.as_deref()), (decision, reason), "{output}");
        }
    }

    #[test]
    fn output_that_follows_an_async_line_is_read() {
        let output = format!("{{\"async\": true}}\n{}", specific(r#""permissionDecision": "deny""#));
        assert_eq!(before(0, &output, "").unwrap().decision, HookDecision::Deny);
    }

    #[test]
    fn updated_input_context_and_message_are_read_from_the_output() {
        let output = r#"{"systemMessage": "m", "hookSpecificOutput": {"hookEventName": "PreToolUse",
            "updatedInput": {"command": "ls"}, "additionalContext": " c "}}"#;
        let response = before(0, output, "").unwrap();
        assert_eq!(response.message.as_deref(), Some("m"));
        assert_eq!(response.context.as_deref(), Some("c"));
        assert_eq!(response.updated_input.unwrap().get("command"), Some(&"ls".into()));
        let after = read_response(HookEvent::PostToolUse, 0, r#"{"hookSpecificOutput": {"updatedInput": 1}}"#, "");
        assert_eq!(after, Ok(HookResponse::default()), "only a call that has not run has an input to change");
    }

    #[test]
    fn output_of_the_wrong_shape_is_a_failure() {
        for output in [
            "{",
            r#"{"decision": 1}"#,
            r#"{"decision": "perhaps"}"#,
            r#"{"continue": "no"}"#,
            r#"{"hookSpecificOutput": []}"#,
            r#"{"hookSpecificOutput": {"hookEventName": "Stop"}}"#,
            r#"{"hookSpecificOutput": {"permissionDecision": "later"}}"#,
            r#"{"hookSpecificOutput": {"updatedInput": "ls"}}"#,
            r"{} {}",
        ] {
            assert!(before(0, output, "").is_err(), "{output}");
        }
    }

    #[test]
    fn plain_output_is_context_for_a_prompt_and_a_session() {
        for (event, context) in
            [(HookEvent::UserPromptSubmit, Some("hi")), (HookEvent::SessionStart, Some("hi")), (HookEvent::Stop, None)]
        {
            assert_eq!(read_response(event, 0, " hi \n", "").unwrap().context.as_deref(), context, "{event:?}");
        }
        let long = read_response(HookEvent::SessionStart, 0, &"ä".repeat(20_000), "").unwrap().context.unwrap();
        assert!(long.len() <= MAX_TEXT_BYTES + 3 && long.ends_with('…'));
    }

    proptest! {
        #[test]
        fn hook_output_never_loosens_a_verdict(code in 0..5_i32, out in ".{0,200}", errors in ".{0,50}") {
            if let Ok(response) = before(code, &out, &errors) {
                prop_assert!(response.decision >= HookDecision::None);
                prop_assert!(code == 0 || code == 2 && response.decision == HookDecision::Deny);
            } else {
                prop_assert!(code != 2);
            }
        }
    }
}
