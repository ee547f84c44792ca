use super::*;
use crate::protocol::{ErrorCode, MessageId, TaskId, ToolError};
use futures_util::StreamExt;
use std::collections::BTreeSet;

fn message(role: Role, content: Vec<Part>) -> Arc<Message> {
    Arc::new(Message {
        message_id: MessageId::new("m"),
        role,
        content,
        token_count: 1,
        task_id: TaskId::new("t"),
        step_id: None,
        timestamp: jiff::Timestamp::UNIX_EPOCH,
    })
}

fn prompt() -> Arc<Message> {
    message(Role::User, vec![Part::Text { text: "fix it".to_owned() }])
}

async fn answer(messages: &[Arc<Message>]) -> Completion {
    let demo = Demo::new(Pace::Instant).unwrap();
    let request = ModelRequest {
        system: "s".into(),
        messages: messages.to_vec(),
        tools: Arc::new([]),
        max_output_tokens: 1,
        images: None,
        effort: None,
    };
    let deltas: Vec<_> = demo.stream(request).map(Result::unwrap).collect().await;
    let said: String =
        deltas.iter().filter_map(|delta| if let Delta::Text(text) = delta { Some(text.as_str()) } else { None }).collect();
    let Some(Delta::Completed(completion)) = deltas.into_iter().last() else { panic!("no completion") };
    let Some(text) = completion.content.iter().find_map(|part| if let Part::Text { text } = part { Some(text) } else { None })
    else {
        panic!("no text")
    };
    assert_eq!(&said, text);
    completion
}

/// Plays the demo to its end, with `outcome` determining the outcome of each call. Returns the tools that were called
/// and the final text.
async fn play(outcome: impl Fn(&str) -> ToolStatus) -> (Vec<String>, String) {
    let mut messages = vec![prompt()];
    let mut tools = Vec::new();
    loop {
        let completion = answer(&messages).await;
        let said = message(Role::Assistant, completion.content);
        messages.push(Arc::clone(&said));
        let results: Vec<_> = said.tool_calls().map(|call| Part::ToolResult(result(call, outcome(&call.tool_name)))).collect();
        if results.is_empty() {
            return (tools, said.text());
        }
        tools.extend(said.tool_calls().map(|call| call.tool_name.clone()));
        messages.push(message(Role::Tool, results));
    }
}

fn result(call: &ToolCall, status: ToolStatus) -> ToolResult {
    let code = match status {
        ToolStatus::Succeeded => return ToolResult::success(call.tool_call_id.clone(), &call.tool_name, "done"),
        ToolStatus::Failed => ErrorCode::ToolExecutionFailed,
        ToolStatus::Denied => ErrorCode::UserDenied,
    };
    ToolResult::from_error(call.tool_call_id.clone(), &call.tool_name, ToolError::new(code, "no"))
}

#[tokio::test]
async fn if_everything_is_approved_the_fix_is_made_and_checked() {
    let (tools, end) = play(|_| ToolStatus::Succeeded).await;
    assert_eq!(tools, ["ListDirectory", "ReadFile", "Grep", "ReadFile", "EditFile", "RunCommand"]);
    assert!(end.contains("All five checks pass") && end.contains("```bash") && end.contains("aye --resume"), "{end}");
}

#[tokio::test]
async fn the_recording_mentions_a_denied_edit_and_continues() {
    let (tools, end) = play(|tool| if tool == "EditFile" { ToolStatus::Denied } else { ToolStatus::Failed }).await;
    assert_eq!(tools.last().map(String::as_str), Some("RunCommand"));
    assert!(end.contains("without the edit"), "{end}");
    let (_, end) = play(|tool| if tool == "ReadFile" { ToolStatus::Succeeded } else { ToolStatus::Denied }).await;
    assert!(end.contains("Nothing was changed and nothing was run"), "{end}");
}

#[tokio::test]
async fn a_prompt_after_the_end_reports_that_the_recording_is_over() {
    let mut messages = vec![prompt(), message(Role::Assistant, vec![Part::Text { text: "the end".to_owned() }]), prompt()];
    assert!(
        answer(&messages).await.content.iter().any(|part| matches!(part, Part::Text { text } if text.contains("recording ends")))
    );
    messages.truncate(1);
    assert!(answer(&messages).await.content.len() > 1);
}

#[test]
fn every_turn_is_reachable_and_every_next_turn_exists() {
    let demo = Demo::new(Pace::Recorded).unwrap();
    let turns = &demo.conversation.turns;
    let mut reached = BTreeSet::from([turns[0].name.clone(), OVER.to_owned()]);
    for turn in turns {
        assert_eq!(turn.calls.is_empty(), turn.next.is_none(), "{}", turn.name);
        for next in
            turn.next.iter().flat_map(|next| [Some(&next.succeeded), next.denied.as_ref(), next.failed.as_ref()]).flatten()
        {
            assert!(demo.conversation.turn(next).is_some(), "{next}");
            reached.insert(next.clone());
        }
    }
    assert_eq!(reached, turns.iter().map(|turn| turn.name.clone()).collect());
    assert!(!demo.first_prompt().is_empty());
}

#[test]
fn the_edit_fits_the_sample_project_and_makes_its_check_pass() {
    let directory = tempfile::tempdir().unwrap();
    for (path, bytes, _) in project() {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let check = || std::process::Command::new("bash").arg(directory.path().join("check.sh")).output().unwrap();
    assert_eq!(check().status.code(), Some(1));
    let demo = Demo::new(Pace::Instant).unwrap();
    let edit = &demo.conversation.turn("edit").unwrap().calls[0].arguments;
    let path = directory.path().join(edit["path"].as_str().unwrap());
    let (old, new) = (edit["edits"][0]["oldText"].as_str().unwrap(), edit["edits"][0]["newText"].as_str().unwrap());
    let before = std::fs::read_to_string(&path).unwrap();
    assert_eq!(before.matches(old).count(), 1);
    std::fs::write(&path, before.replace(old, new)).unwrap();
    let output = check();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.starts_with("ok")).count(), 5);
}

#[test]
fn recorded_usage_includes_the_tool_definitions() {
    let conversation: DemoRecording = toml::from_str(CONVERSATION).unwrap();
    let request = |tools: Vec<ToolDefinition>| ModelRequest {
        system: "s".into(),
        messages: Vec::new(),
        tools: tools.into(),
        max_output_tokens: 1,
        images: None,
        effort: None,
    };
    let tool = ToolDefinition {
        tool_name: "ReadFile".to_owned(),
        description: "d".repeat(4000),
        input_schema: serde_json::json!({"type": "object"}),
    };
    let turn = &conversation.turns[0];
    let (bare, with) = (usage(&request(Vec::new()), turn), usage(&request(vec![tool]), turn));
    assert!(with.input_tokens >= bare.input_tokens + 1000, "{bare:?} {with:?}");
}
