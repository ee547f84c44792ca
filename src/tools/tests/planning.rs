//! Tests of steps, questions and plans: valid and invalid arguments, and the actions that a plan describes.

use super::*;
use crate::protocol::{Amendment, PlanSubject};

fn steps(count: usize, text: &str) -> Value {
    json!({"steps": vec![json!({"text": text, "status": "pending"}); count]})
}

#[test]
fn steps_are_listed_one_per_line_for_every_argument_format() {
    let bench = Bench::new();
    let list = json!({"steps": [{"text": " Read\nit ", "status": "done"}, {"text": "Test", "status": "in_progress"}]});
    assert_eq!(bench.output("UpdateSteps", list), "[x] Read it\n[>] Test");
    let todos = json!({"todos": [{"content": "A", "status": "completed"}, {"content": "B", "status": "pending"}]});
    assert_eq!(bench.output("TodoWrite", todos), "[x] A\n[ ] B");
    let todos = json!({"todos": [{"content": "A", "status": "in_progress", "activeForm": "Doing A", "id": "1"}]});
    assert_eq!(bench.output("TodoWrite", todos), "[>] A");
    let plan = json!({"plan": [{"step": "A", "status": "in_progress"}]});
    assert_eq!(bench.output("update_plan", plan), "[>] A");
    assert_eq!(bench.output("UpdateSteps", json!({"steps": []})), "[the list is empty]");
}

#[test]
fn step_lists_are_limited() {
    let bench = Bench::new();
    bench.output("UpdateSteps", steps(30, &"x".repeat(200)));
    for (arguments, part) in [
        (steps(31, "x"), "the limit is 30"),
        (steps(1, &"x".repeat(201)), "the limit is 200"),
        (steps(1, " \u{7} "), "`steps[0].text` is empty"),
        (json!({"steps": [{"text": "x", "status": "later"}]}), "`steps[0].status`"),
    ] {
        let (code, message) = bench.error("UpdateSteps", arguments);
        assert_eq!(code, ErrorCode::InvalidRequest);
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn questions_are_validated_and_not_asked_without_a_user() {
    let bench = Bench::new();
    let option = |label: &str| json!({"label": label});
    let question = |options: Vec<Value>| json!({"question": "Which?", "options": options});
    let two = || question(vec![option("a"), option("b")]);
    let told = bench.output("AskUser", json!({"questions": [two(), two()]}));
    assert_eq!(told.matches("Which?").count(), 1, "no other question follows: {told}");
    assert!(told.contains("no user can answer here"), "{told}");
    let other = json!([{"question": "Which?", "header": "H", "multiSelect": true, "options": [option("a"), option("b")]}]);
    for tool in ["AskUserQuestion", "request_user_input"] {
        assert!(bench.output(tool, json!({"questions": other})).contains("no user can answer here"), "{tool}");
    }
    for (questions, part) in [
        (json!([]), "ask 1 to 4"),
        (json!([two(), two(), two(), two(), two()]), "ask 1 to 4"),
        (json!([question(vec![option("a")])]), "offer 2 to 4"),
        (json!([question(vec![option("a"), option("A")])]), "differs from the other labels"),
        (json!([question(vec![option("a"), option(" ")])]), "`questions[0].options[1].label` is empty"),
        (json!([{"question": "x".repeat(501), "options": [option("a"), option("b")]}]), "the limit is 500"),
    ] {
        let (code, message) = bench.error("AskUser", json!({"questions": questions}));
        assert_eq!(code, ErrorCode::InvalidRequest);
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn plan_lines_that_a_plan_cannot_allow_have_a_reason() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("src")).unwrap();
    let files = ["src/a.rs", "/", "src", "src/*.rs", "new/"];
    let arguments = json!({"plan": "# Greet", "files": files, "commands": ["cargo test"], "hosts": ["docs.rs", "*.rs", "a/b"]});
    let plan = bench.plan("ProposePlan", arguments).unwrap();
    assert!(plan.actions.is_empty() && !plan.changes, "it has no effect of its own");
    let proposed = plan.task_plan.unwrap();
    assert!(proposed.plan.text.starts_with("# Greet\n\n## Files to change\n\n- src/a.rs\n"), "{}", proposed.plan.text);
    let refused = |subject: PlanSubject| {
        let line = proposed.plan.lines.iter().find(|line| line.subject == subject).unwrap();
        line.action.clone().err()
    };
    let file = |path: &str| refused(PlanSubject::File(path.to_owned()));
    assert_eq!(file("src/a.rs"), None);
    assert_eq!((file("/"), file("src")), (None, None), "the policy says that they are too wide");
    assert!(file("src/*.rs").unwrap().contains("pattern") && file("new/").unwrap().contains("directory"));
    assert_eq!(refused(PlanSubject::Command("cargo test".to_owned())), None);
    let obstacle = |at: usize| proposed.plan.lines[at].obstacle.as_deref();
    assert!(obstacle(files.len()).is_some_and(|why| why.contains("cannot run in a copy")), "nothing is set up for copies");
    assert_eq!(obstacle(0), None);
    assert_eq!(refused(PlanSubject::Host("docs.rs".to_owned())), None);
    assert!(refused(PlanSubject::Host("*.rs".to_owned())).unwrap().contains("pattern"));
    assert!(refused(PlanSubject::Host("a/b".to_owned())).unwrap().contains("not a host name"));
}

#[test]
fn an_edited_plan_is_a_new_document_with_new_lines() {
    let bench = Bench::new();
    let plan = bench.plan("ProposePlan", json!({"plan": "Greet", "files": ["a"]})).unwrap();
    let before = plan.task_plan.clone().unwrap();
    let text = "Greet\n\n- keep it short\n\n## Files to change\n\n- `b`\n- b\n\n## Other\n\n- c\n".to_owned();
    let edit = |text: String| Amendment::File { file: 0, text };
    let edited = block_on(bench.router().amend(plan, edit(text.clone()))).unwrap();
    let after = edited.task_plan.clone().unwrap();
    assert_ne!(before.plan.digest, after.plan.digest);
    let subjects: Vec<_> = after.plan.lines.iter().map(|line| line.subject.clone()).collect();
    assert_eq!(subjects, [PlanSubject::File("b".to_owned())]);
    assert!(edited.amends.offer.edited && edited.amends.told.as_ref().is_some_and(|told| told.contains("keep it short")));
    let error = block_on(bench.router().amend(edited, edit(" \n".to_owned()))).unwrap_err();
    assert!(error.message.contains("the plan is empty"), "{error}");
}

#[test]
fn invalid_plans_are_errors_with_a_hint() {
    let bench = Bench::new();
    let many: Vec<String> = (0..101).map(|number| format!("f{number}")).collect();
    for (arguments, part) in [
        (json!({"plan": " "}), "`plan` is empty"),
        (json!({"plan": "x", "commands": ["ls\nrm x"]}), "`commands[0]` must be one line"),
        (json!({"plan": "x", "files": [" "]}), "`files[0]` must be one line"),
        (json!({"plan": "x", "files": many}), "the limit is 100"),
        (json!({"plan": "x".repeat(65_537)}), "shorten it"),
    ] {
        let (code, message) = bench.error("ProposePlan", arguments);
        assert_eq!(code, ErrorCode::InvalidRequest);
        assert!(message.contains(part), "{message}");
    }
}
