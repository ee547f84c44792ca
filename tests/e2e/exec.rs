//! `aye exec`: events, plain text, exit codes, and requests to the model.

use crate::support::{Answer, Gate, Project, Server, TIMEOUT, texts, wait_until};
use nix::sys::signal::Signal;
use serde_json::json;

const READ: &str = "ReadFile";

fn hello() -> Answer {
    Answer::text("Hello ").and("there.")
}

#[track_caller]
fn check_hello(project: &Project, server: &Server, model: &str) {
    let output = project.aye(&["exec", "--json", "-m", model, "say hello"]).exits(0);
    let events = output.events();
    events.in_order(&[
        "session_started",
        "step_started",
        "llm_request_started",
        "text_chunk",
        "llm_request_completed",
        "step_completed",
        "task_completed",
        "session_completed",
    ]);
    assert_eq!(events.text(), "Hello there.");
    assert_eq!(events.only("task_completed")["text"], "Hello there.");
    assert_eq!(events.only("task_completed")["stepCount"], 1);
    let completed = events.only("llm_request_completed");
    assert_eq!(completed["inputTokens"], 1200);
    assert_eq!(completed["outputTokens"], 20);
    assert_eq!(completed["stopReason"], "end_turn");
    for event in &events.0 {
        assert_eq!(event["sessionId"], events.0[0]["sessionId"], "one session: {event}");
        assert!(event["timestamp"].is_string() && event["workspaceId"].is_string(), "{event}");
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].messages().contains("say hello"));
    assert_eq!(requests[0].body["stream"], true);
}

#[test]
fn a_prompt_is_answered_over_anthropic_messages() {
    let server = Server::new([hello()]);
    let project = Project::with(&server);
    check_hello(&project, &server, "anthropic/scripted");
    assert_eq!(server.request(0).path, "/v1/messages");
    assert_eq!(server.request(0).header("x-api-key"), Some("sk-ant-scripted"));
}

#[test]
fn a_prompt_is_answered_over_chat_completions() {
    let server = Server::new([hello()]);
    let project = Project::with_chat(&server);
    check_hello(&project, &server, "openai-chat/scripted");
    assert_eq!(server.request(0).path, "/v1/chat/completions");
    assert_eq!(server.request(0).header("authorization"), Some("Bearer sk-scripted"));
}

#[test]
fn a_prompt_is_answered_over_the_responses_api() {
    let server = Server::new([hello()]);
    let project = Project::with_chat(&server);
    check_hello(&project, &server, "openai/scripted");
    assert_eq!(server.request(0).path, "/v1/responses");
    assert_eq!(server.request(0).header("authorization"), Some("Bearer sk-scripted"));
}

#[test]
fn calls_received_over_the_responses_api_run_and_return_results() {
    let call = Answer::text("Reading.").and_call("call_of_this_file", READ, json!({"path": "a.txt"}));
    let server = Server::new([call, Answer::text("Read.")]);
    let project = Project::with_chat(&server).file("a.txt", "alpha\n");
    let events = project.aye(&["exec", "--json", "-m", "openai/scripted", "read it"]).exits(0).events();
    assert_eq!(events.only("task_completed")["text"], "Read.");
    let second = server.request(1);
    let results = second.tool_results();
    assert!(matches!(&results[..], [(id, text)] if id == "call_of_this_file" && text.contains("alpha")), "{results:?}");
    assert_eq!(second.body["store"], false);
    let kinds: Vec<_> = second.body["input"].as_array().unwrap().iter().map(|item| item["type"].clone()).collect();
    assert_eq!(kinds, ["message", "message", "function_call", "function_call_output"]);
    let (first, second) = (server.request(0).body, second.body);
    assert_eq!((&first["instructions"], &first["tools"]), (&second["instructions"], &second["tools"]), "the prefix stays");
    assert_eq!(first["input"][0], second["input"][0], "the prefix stays");
    assert_eq!(first["prompt_cache_key"], second["prompt_cache_key"]);
}

#[test]
fn a_gateway_without_the_responses_api_is_reported_with_the_setting_to_change() {
    let server = Server::new([Answer::error(404, "not_found_error", "no such path")]);
    let output = Project::with_chat(&server).aye(&["exec", "-m", "openai/scripted", "hello"]);
    assert!(output.stderr.contains("providers.openai.api = \"openai-chat\""), "{}", output.stderr);
}

#[test]
fn plain_output_is_only_the_final_text() {
    let server = Server::new([hello()]);
    let output = Project::with(&server).aye(&["exec", "say hello"]).exits(0);
    assert_eq!(output.stdout.trim_end(), "Hello there.");
}

#[test]
fn json_output_is_the_event_that_ended_the_task() {
    let server = Server::new([hello()]);
    let event = Project::with(&server).aye(&["exec", "--output-format", "json", "say hello"]).exits(0).json();
    assert_eq!((&event["eventType"], &event["payload"]["text"]), (&json!("task_completed"), &json!("Hello there.")));
}

#[test]
fn the_p_option_runs_exec() {
    let server = Server::new([hello()]);
    let output = Project::with(&server).aye(&["-p", "say hello"]).exits(0);
    assert_eq!(output.stdout.trim_end(), "Hello there.");
}

#[test]
fn a_prompt_on_stdin_is_sent_unchanged() {
    let server = Server::new([hello()]);
    Project::with(&server).aye_with_input(&["exec", "-"], "two lines\n  and \"quotes\"\n").exits(0);
    let messages = &server.request(0).body["messages"];
    let content = &messages[0]["content"];
    let text = content.as_str().or_else(|| content[0]["text"].as_str()).unwrap();
    assert_eq!(text.trim_end(), "two lines\n  and \"quotes\"");
}

#[test]
fn common_flags_are_accepted_before_or_after_the_subcommand() {
    let server = Server::new([hello(), hello()]);
    let project = Project::with(&server);
    project.aye(&["-m", "anthropic/first", "exec", "hi"]).exits(0);
    project.aye(&["exec", "-m", "anthropic/second", "hi"]).exits(0);
    let models: Vec<_> = server.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, [json!("first"), json!("second")]);
}

#[test]
fn parallel_reads_return_results_in_call_order() {
    let calls = ["c", "a", "b"].iter().fold(Answer::text("Reading."), |answer, name| {
        answer.and_call(&format!("call_{name}"), READ, json!({"path": format!("{name}.txt")}))
    });
    let server = Server::new([calls, Answer::text("Read.")]);
    let project = Project::with(&server).file("a.txt", "alpha\n").file("b.txt", "beta\n").file("c.txt", "gamma\n");
    let events = project.aye(&["exec", "--json", "read them"]).exits(0).events();
    let results = server.request(1).tool_results();
    let expected = [("call_c", "gamma"), ("call_a", "alpha"), ("call_b", "beta")];
    assert_eq!(results.len(), 3);
    for ((id, text), (expected_id, expected_text)) in results.iter().zip(expected) {
        assert_eq!(id, expected_id);
        assert!(text.contains(expected_text), "{id}: {text}");
    }
    let last = server.request(1).body["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["content"].as_array().unwrap().len(), 3, "all results stand in one message: {last}");
    assert_eq!(events.all("tool_requested").len(), 3);
    assert_eq!(events.all("tool_completed").len(), 3);
}

#[test]
fn parallel_calls_over_chat_completions_keep_their_ids() {
    let calls =
        Answer::empty().and_call("call_1", READ, json!({"path": "a.txt"})).and_call("call_2", READ, json!({"path": "b.txt"}));
    let server = Server::new([calls, Answer::text("Read.")]);
    let project = Project::with_chat(&server).file("a.txt", "alpha\n").file("b.txt", "beta\n");
    project.aye(&["exec", "-m", "openai-chat/scripted", "read them"]).exits(0);
    let ids: Vec<_> = server.request(1).tool_results().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["call_1", "call_2"]);
}

#[test]
fn a_twenty_step_tool_loop_ends_with_the_answer() {
    let step = |number: usize| Answer::call(&format!("call_{number}"), READ, json!({"path": format!("n{number}.txt")}));
    let server = Server::new((0..20).map(step).chain([Answer::text("All steps are done.")]));
    let project = (0..20)
        .fold(Project::with(&server), |project, number| project.file(&format!("n{number}.txt"), &format!("note {number}\n")));
    let events = project.aye(&["exec", "--json", "--max-steps", "50", "loop"]).exits(0).events();
    assert_eq!(events.only("task_completed")["stepCount"], 21);
    assert_eq!(events.all("tool_completed").len(), 20);
    assert_eq!(server.requests().len(), 21);
    assert_eq!(server.request(20).tool_results().len(), 20, "the whole thread goes with each request");
}

#[test]
fn the_step_limit_is_announced_and_exits_with_4() {
    let step = |number: usize| Answer::call(&format!("call_{number}"), READ, json!({"path": "a.txt", "offset": number}));
    let server = Server::new((1..20).map(step));
    let project = Project::with(&server).file("a.txt", &"line\n".repeat(30));
    let events = project.aye(&["exec", "--json", "--max-steps", "5", "loop"]).exits(4).events();
    let warning = events.only("step_limit_approaching");
    assert_eq!((&warning["stepCount"], &warning["maxSteps"]), (&json!(4), &json!(5)), "at four fifths");
    assert_eq!(events.only("task_failed")["kind"], "max_steps_exceeded");
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn a_response_cut_by_max_tokens_is_continued() {
    let server = Server::new([Answer::text("The first half, ").stopped_by_max_tokens(), Answer::text("the second half.")]);
    let events = Project::with(&server).aye(&["exec", "--json", "tell me"]).exits(0).events();
    assert_eq!(events.text(), "The first half, the second half.");
    assert!(server.request(1).messages().contains("The first half, "), "the model sees what it said");
    assert_eq!(events.all("llm_retry").len(), 0);
}

#[test]
fn an_edit_without_an_approver_is_denied_and_exits_with_3() {
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "alpha", "newText": "omega"}]});
    let server = Server::new([Answer::call("call_1", "EditFile", edit), Answer::text("I could not.")]);
    let project = Project::with(&server).file("a.txt", "alpha\n");
    let events = project.aye(&["exec", "--json", "edit it"]).exits(3).events();
    assert_eq!(project.read("a.txt"), "alpha\n");
    let completed = events.only("tool_completed");
    assert_eq!((&completed["status"], &completed["error"]["code"]), (&json!("denied"), &json!("NO_APPROVER")));
    assert!(server.request(1).tool_results()[0].1.contains(texts::NO_ONE_TO_ASK), "{:?}", server.request(1).tool_results());
    assert_eq!(events.only("task_completed")["text"], "I could not.");
}

#[test]
fn an_edit_allowed_by_the_policy_is_applied() {
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "alpha", "newText": "omega"}]});
    let server = Server::new([Answer::call("call_1", "EditFile", edit), Answer::text("Done.")]);
    let project = Project::with(&server).allowing_everything().file("a.txt", "alpha\r\nbeta");
    let events = project.aye(&["exec", "--json", "edit it"]).exits(0).events();
    assert_eq!(project.read("a.txt"), "omega\r\nbeta", "what the edit does not touch stays");
    events.in_order(&["llm_request_completed", "tool_requested", "tool_completed", "step_completed"]);
    let (requested, completed) = (events.only("tool_requested"), events.only("tool_completed"));
    assert_eq!((&requested["toolCallId"], &requested["toolName"]), (&json!("call_1"), &json!("EditFile")));
    assert_eq!(requested["capability"], "File.Write");
    assert_eq!((&completed["toolCallId"], &completed["status"]), (&json!("call_1"), &json!("succeeded")));
}

#[test]
fn auto_edit_mode_allows_edits_and_plan_mode_denies_them() {
    for (mode, content) in [("auto-edit", "new\n"), ("plan", "old\n")] {
        let write = json!({"path": "a.txt", "content": "new\n"});
        let server = Server::new([Answer::call("call_1", "WriteFile", write), Answer::text("Done.")]);
        let project = Project::with(&server).file("a.txt", "old\n");
        project.aye(&["exec", "--mode", mode, "--json", "write it"]);
        assert_eq!(project.read("a.txt"), content, "{mode}");
        assert_eq!(server.requests().len(), 2, "{mode}");
    }
}

#[test]
fn command_output_and_exit_code_are_sent_to_the_model() {
    let server = Server::new([
        Answer::call("call_1", "RunCommand", json!({"command": "echo out; echo err >&2; exit 3"})),
        Answer::text("It failed."),
    ]);
    let project = Project::with(&server).allowing_everything();
    project.aye(&["exec", "--trust", "--json", "run it"]).exits(0);
    let (_, text) = &server.request(1).tool_results()[0];
    for word in ["out", "err", "3"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn a_second_task_includes_the_first_in_its_context() {
    let server = Server::new([Answer::text("Blue it is."), Answer::text("You said blue.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "remember blue"]).exits(0);
    project.aye(&["exec", "-c", "what did I say?"]).exits(0);
    let messages = server.request(1).messages();
    for words in ["remember blue", "Blue it is.", "what did I say?"] {
        assert!(messages.contains(words), "{words} is missing in {messages}");
    }
}

#[test]
fn a_signal_sets_the_exit_code_and_the_conversation_is_saved() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let gate = Gate::default();
        let server = Server::new([Answer::text("I begin").and_wait(&gate).and(" and go on."), Answer::text("Again.")]);
        let project = Project::with(&server);
        let running = project.start(&["exec", "--json", "a long task"]);
        server.request(0);
        running.signal(signal);
        let events = running.finish().exits(code).events();
        gate.open();
        // SIGINT cancels the task. SIGTERM pauses the session, which the events and the list of sessions show.
        let listed = project.aye(&["sessions", "list", "--json"]).exits(0).json();
        if signal == Signal::SIGTERM {
            events.only("session_paused");
            assert!(events.all("session_completed").is_empty(), "{signal}");
            assert_eq!(listed[0]["open"], "paused", "{listed}");
        } else {
            events.in_order(&["task_cancelled", "session_completed"]);
            assert_eq!(listed[0]["open"], serde_json::Value::Null, "{listed}");
        }
        let output = project.aye(&["exec", "-c", "go on"]).exits(0);
        // Only a task that was not cancelled can be continued, so only then is its abandonment reported.
        let notice = "the unfinished task \"a long task\" was abandoned, because a new prompt was given";
        assert_eq!(output.stderr.contains(notice), signal == Signal::SIGTERM, "{signal}: {}", output.stderr);
        assert!(server.request(1).messages().contains("a long task"), "{signal}");
    }
}

#[test]
fn a_closed_stdout_does_not_cause_a_panic() {
    let server = Server::new([hello()]);
    let project = Project::with(&server);
    let line =
        format!("'{}' exec --json hi | head -c 1 > /dev/null; echo \"${{PIPESTATUS[0]}}\" > code", env!("CARGO_BIN_EXE_aye"));
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", &line]).current_dir(project.path("")).env_clear().envs(project.environment());
    let output = shell.output().unwrap();
    assert!(wait_until(TIMEOUT, || project.exists("code")));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert_eq!(project.read("code"), "1\n", "who reads no more did not get all of it");
}

#[test]
fn tools_disabled_by_the_policy_are_not_offered_and_unknown_names_are_reported() {
    let server = Server::new([Answer::call("call_1", "Bash", json!({"command": "ls"})), hello()]);
    let policy = "schema_version = 1\n[tools]\ndisabled = [\"RunCommand\",\n\"ReedFile\", \"Mcp.x/*\"]\n\
        [capabilities.\"File.Read\"]\n[capabilities.\"Shell.Exec\"]\nsandbox = \"off\"\n";
    let project = Project::with(&server).policy(policy);
    let output = project.aye(&["exec", "--json", "-m", "anthropic/scripted", "look"]);
    let output = output.says(&["the policy disables the unknown tool `ReedFile`", "user:4"]);
    let completed = output.events().only("tool_completed").clone();
    assert_eq!(completed["status"], "denied", "{completed}");
    assert!(
        completed["error"]["message"].as_str().unwrap().contains("the tool `RunCommand` is disabled (rule: user:3)"),
        "{completed}"
    );
    let offered: Vec<_> = server.request(0).body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert!(offered.contains(&json!(READ)) && !offered.contains(&json!("RunCommand")), "{offered:?}");
}

#[test]
fn two_thousand_calls_of_one_response_return_in_call_order() {
    const CALLS: usize = 2_000;
    let call = |answer: Answer, number: usize| {
        answer.and_call(&format!("call_{number}"), READ, json!({"path": format!("{}.txt", number % 10)}))
    };
    let server = Server::new([(0..CALLS).fold(Answer::empty(), call), hello()]);
    let project = (0..10).fold(Project::with(&server), |project, number| project.file(&format!("{number}.txt"), "line\n"));
    let events = project.aye(&["exec", "--json", "read all of it"]).exits(0).events();
    assert_eq!(events.all("tool_completed").iter().filter(|call| call["status"] == "succeeded").count(), CALLS);
    let results: Vec<_> = server.request(1).tool_results().into_iter().map(|(id, _)| id).collect();
    assert!(results.into_iter().eq((0..CALLS).map(|number| format!("call_{number}"))));
}

#[test]
fn calls_of_one_response_that_touch_the_same_path_run_in_call_order() {
    let patch = "*** Begin Patch\n*** Update File: copied\n@@\n-one\n+two\n*** End Patch\n";
    let calls = Answer::text("All at once.")
        .and_call("c1", "WriteFile", json!({"path": "new", "content": "one\n"}))
        .and_call("c2", "Move", json!({"source": "new", "destination": "moved"}))
        .and_call("c3", "Copy", json!({"source": "moved", "destination": "copied"}))
        .and_call("c4", "ApplyPatch", json!({"patch": patch}))
        .and_call("c5", "Delete", json!({"path": "moved"}))
        .and_call("c6", "EditFile", json!({"path": "copied", "edits": [{"oldText": "two", "newText": "three"}]}))
        .and_call("c7", "RunCommand", json!({"command": "cat copied > printed"}))
        .and_call("c8", "WriteFile", json!({"path": "copied", "content": "four\n"}))
        .and_call("c9", "ReadFile", json!({"path": "copied"}))
        .and_call("c10", "Glob", json!({"pattern": "*"}));
    let server = Server::new([calls, Answer::text("Done.")]);
    let open = "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"File.Write\"]\n[capabilities.\"File.Delete\"]\n\
                [capabilities.\"Shell.Exec\"]\nsandbox = \"off\"\n";
    let project = Project::with(&server).policy(open);
    project.aye(&["exec", "--trust", "go"]).exits(0);
    let results = server.request(1).tool_results();
    let failed: Vec<_> =
        results.iter().filter(|(_, text)| text.contains("FILE_NOT_FOUND") || text.contains("CONFLICT")).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!((project.read("copied"), project.read("printed")), ("four\n".to_owned(), "three\n".to_owned()));
    assert!(!project.exists("new") && !project.exists("moved"));
    assert!(results[8].1.contains("four"), "{:?}", results[8]);
    assert!(results[9].1.contains("copied") && !results[9].1.contains("moved"), "{:?}", results[9]);
}

#[test]
fn a_response_continued_after_the_output_limit_is_printed_as_one() {
    let answers = || [Answer::text("Once upon ").stopped_by_max_tokens(), Answer::text("a time.")];
    let server = Server::new(answers());
    let project = Project::with(&server);
    assert!(project.aye(&["exec", "tell it"]).exits(0).stdout.contains("Once upon a time."));
    for answer in answers() {
        server.push(answer);
    }
    let events = project.aye(&["exec", "--json", "tell it"]).exits(0).events();
    assert_eq!(events.only("task_completed")["text"], "Once upon a time.");
    assert!(project.aye(&["exec", "-c"]).exits(0).stdout.contains("Once upon a time."), "told again");
}
