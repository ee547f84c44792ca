//! `aye usage`: token use and costs of the stored sessions.

use crate::support::{Answer, Project, Server};
use serde_json::{Value, json};

/// Model that costs two dollars per million input tokens and ten dollars per million output tokens. A scripted response
/// costs $0.0026.
const PRICED: &str = "anthropic/claude-sonnet-5";

fn usage(project: &Project, options: &[&str]) -> Value {
    let arguments: Vec<&str> = ["usage", "--json"].iter().chain(options).copied().collect();
    project.aye(&arguments).exits(0).json()
}

#[test]
fn usage_is_counted_by_model_project_and_day() {
    let server = Server::new([
        Answer::call("c1", "ReadFile", json!({"path": "a.txt"})),
        Answer::text("One."),
        Answer::text("Two."),
        Answer::text("Three."),
    ]);
    let project = Project::with(&server).file("a.txt", "a\n");
    project.aye(&["exec", "-m", PRICED, "first"]).exits(0);
    project.aye(&["exec", "-m", PRICED, "second"]).exits(0);
    project.aye(&["exec", "-m", "anthropic/scripted", "third"]).exits(0);
    let report = usage(&project, &[]);
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{report}");
    assert_eq!((&rows[0]["name"], &rows[0]["tasks"], &rows[0]["requests"]), (&json!(PRICED), &json!(2), &json!(3)));
    let cost = rows[0]["costUsd"].as_f64().unwrap();
    assert!((cost - 3.0 * 0.0026).abs() < 1e-9 && rows[0]["costIsComplete"] == true, "{report}");
    assert!(rows[1]["costUsd"].is_null() && rows[1]["costIsComplete"] == false, "{report}");
    assert_eq!((&report["total"]["tasks"], &report["total"]["inputTokens"]), (&json!(3), &json!(4 * 1200)));
    for by in ["project", "day"] {
        let report = usage(&project, &["--by", by, "--project"]);
        assert_eq!((report["rows"].as_array().unwrap().len(), &report["rows"][0]["requests"]), (1, &json!(4)), "{report}");
    }
    let text = project.aye(&["usage"]).exits(0).stdout;
    for expected in ["model", PRICED, "total", "price was unknown"] {
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn usage_shared_by_a_fork_and_its_parent_counts_once() {
    let server = Server::new([Answer::text("One."), Answer::text("Two.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "first"]).exits(0);
    let sessions = project.aye(&["sessions", "list", "--json"]).exits(0).json();
    let id = sessions[0]["sessionId"].as_str().unwrap().to_owned();
    project.aye(&["sessions", "fork", &id]).exits(0);
    assert_eq!(usage(&project, &[])["total"]["requests"], 1);
    project.aye(&["exec", "-c", "second"]).exits(0);
    assert_eq!(usage(&project, &[])["total"]["requests"], 2);
}

#[test]
fn tasks_in_copies_count_for_their_workspace() {
    let server = Server::new([Answer::text("One."), Answer::text("Two.")]);
    let project = Project::outside_tmp_with(&server).file("a.txt", "a\n");
    project.aye(&["exec", "-m", PRICED, "first"]).exits(0);
    project.aye(&["task", "start", "-m", PRICED, "second"]).exits(0);
    let report = usage(&project, &["--by", "project", "--project"]);
    assert_eq!((report["rows"].as_array().unwrap().len(), &report["rows"][0]["tasks"]), (1, &json!(2)), "{report}");
    let cost = report["total"]["costUsd"].as_f64().unwrap();
    assert!((cost - 2.0 * 0.0026).abs() < 1e-9, "{report}");
    std::fs::create_dir(project.path("other")).unwrap();
    let elsewhere = project.aye(&["-C", "other", "usage", "--json", "--project"]).exits(0).json();
    assert_eq!(elsewhere["total"]["tasks"], 0, "{elsewhere}");
}

#[test]
fn applied_patches_are_not_counted_as_model_requests() {
    let server =
        Server::new([Answer::call("c1", "WriteFile", json!({"path": "new.txt", "content": "x\n"})), Answer::text("Written.")]);
    let project = Project::outside_tmp_with(&server).allowing_everything();
    project.aye(&["task", "start", "-m", PRICED, "write it"]).exits(0);
    let tasks = project.aye(&["tasks", "--json"]).exits(0).json();
    project.aye(&["task", "keep", "--yes", tasks[0]["id"].as_str().unwrap()]).exits(0);
    let report = usage(&project, &[]);
    let names: Vec<&str> = report["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert!(names.iter().all(|name| [PRICED, "no model"].contains(name)), "{report}");
    assert_eq!((&report["total"]["tasks"], &report["total"]["requests"]), (&json!(1), &json!(2)), "{report}");
}

#[test]
fn approvals_by_the_user_are_counted() {
    let server =
        Server::new([Answer::call("c1", "WriteFile", json!({"path": "new.txt", "content": "x\n"})), Answer::text("Finished.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&["write it"]);
    terminal.review("new.txt");
    terminal.decide('y');
    terminal.wait_for("Finished.");
    terminal.quit();
    let report = usage(&project, &["--by", "project"]);
    assert_eq!((&report["total"]["approved"], &report["total"]["denied"]), (&json!(1), &json!(0)), "{report}");
}

#[test]
fn a_period_without_usage_is_empty_and_an_invalid_one_is_an_error() {
    let server = Server::new([Answer::text("One.")]);
    let project = Project::with(&server);
    assert!(project.aye(&["usage"]).exits(0).stdout.contains("no usage in this period"));
    project.aye(&["exec", "first"]).exits(0);
    assert_eq!(usage(&project, &["--since", "2999-01-01"])["rows"], json!([]));
    let error = project.aye(&["usage", "--since", "yesterday"]).exits(2).stderr;
    assert!(error.contains("`30d`") && error.contains("2026-11-01"), "{error}");
}
