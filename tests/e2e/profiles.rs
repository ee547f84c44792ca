//! `--profile`: named groups of settings in `config.toml`.

use crate::support::{Answer, Project, Server};
use serde_json::json;

const CONFIG: &str = "[model]\ndefault = \"anthropic/big\"\n[profiles.fast]\nmodel = \"anthropic/small\"\neffort = \"high\"\n\
    [profiles.ci]\nmode = \"auto-edit\"\npolicy = \"ci.toml\"\nmax_steps = 2\n\
    [profiles.poor]\nmax_budget_usd = 0.000001\n";

fn model(server: &Server, number: usize) -> String {
    server.request(number).body["model"].as_str().unwrap().to_owned()
}

#[test]
fn a_profile_sets_the_model_and_an_option_overrides_it() {
    let server = Server::with_responder(|_| Answer::text("Done."));
    let project = Project::with(&server).config(CONFIG);
    project.aye(&["exec", "hi"]).exits(0);
    project.aye(&["exec", "--profile", "fast", "hi"]).exits(0);
    project.aye(&["--profile=fast", "-m", "anthropic/other", "exec", "hi"]).exits(0);
    project.aye(&["exec", "hi"]).exits(0);
    project.aye(&["exec", "-c", "--profile", "fast", "again"]).exits(0);
    let models: Vec<String> = (0..5).map(|number| model(&server, number)).collect();
    assert_eq!(models, ["big", "small", "other", "big", "small"], "also in a session that is continued");
}

#[test]
fn a_profile_sets_mode_policy_and_limits() {
    let write = |path: &str| Answer::call(path, "WriteFile", json!({"path": path, "content": "x"}));
    let server = Server::new([write("a"), write("b"), Answer::text("Never.")]);
    let project = Project::with(&server).config(CONFIG);
    let policy = "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"File.Write\"]\nblocked_paths = [\"**/b\"]\n\
        requires_approval = true\n";
    std::fs::write(project.directory("config").join("ci.toml"), policy).unwrap();
    let output = project.aye(&["exec", "--json", "--profile", "ci", "write"]).exits(4);
    assert!(project.exists("a") && !project.exists("b"), "the mode allows edits, and the policy blocks one path");
    assert_eq!(output.events().only("session_started")["mode"], "auto-edit");
    assert_eq!(output.events().only("task_failed")["kind"], "max_steps_exceeded");
    project.aye(&["exec", "--profile", "poor", "hi"]).exits(4).says(&["budget"]);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn an_unknown_profile_error_lists_the_others_and_a_missing_policy_names_its_file() {
    let project = Project::empty().config(CONFIG);
    project.aye(&["exec", "--profile", "fsat", "hi"]).exits(2).says(&[
        "error: unknown profile `fsat`",
        "hint: did you mean `fast`?",
        "are `ci`, `fast`, `poor`",
    ]);
    project.aye(&["exec", "--profile", "ci", "hi"]).exits(2).says(&["ci.toml"]);
    let project = Project::empty().config("[profiles.x]\nmodle = \"a/b\"\n");
    project.aye(&["exec", "--profile", "x", "hi"]).exits(2).says(&["unknown key `profiles.x.modle`", "`profiles.x.model`"]);
    Project::empty().aye(&["--profile", "x", "config", "show"]).exits(2).says(&["unknown profile `x`", "has no profiles"]);
}

#[test]
fn the_name_of_a_profile_is_not_sent_as_a_prompt() {
    let server = Server::with_responder(|_| Answer::text("Done."));
    let project = Project::with(&server).config(CONFIG);
    project.aye(&["-p", "fast"]).exits(2).says(&["it is the name of a profile", "hint: use `--profile fast`"]);
    assert_eq!(server.requests().len(), 0);
    project.aye(&["-p", "--", "fast"]).exits(0);
    project.aye(&["-p", "--profile", "fast", "poor"]).exits(0);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn profile_settings_are_shown_with_their_origin() {
    let project = Project::empty().config(CONFIG);
    let shown = project.aye(&["config", "show", "--profile", "fast"]).exits(0).stdout;
    assert!(shown.contains("model.effort = \"high\"  # profile fast, "), "{shown}");
    assert!(shown.contains("profiles.ci.max_steps = 2"), "{shown}");
}

#[test]
fn projects_cannot_define_profiles_and_nested_aye_processes_cannot_select_one() {
    let project = Project::empty().file(".aye/config.toml", "[profiles.ci]\nmode = \"auto\"\n");
    project.aye(&["exec", "--trust", "--profile", "ci", "hi"]).exits(2).says(&["unknown profile `ci`"]);
    let shown = project.aye(&["config", "show", "--trust"]).exits(0).stdout;
    assert!(shown.contains("a project cannot define profiles"), "{shown}");
    let inside = Project::empty().config(CONFIG).env("AYE", "1");
    inside.aye(&["exec", "--profile", "ci", "hi"]).exits(2).says(&["`--profile` was refused", "AYE=1"]);
}

#[test]
fn the_configuration_schema_is_printed_as_json_and_the_keys_as_text() {
    let project = Project::empty();
    let schema = project.aye(&["config", "schema"]).exits(0).json();
    let profile = &schema["properties"]["profiles"]["additionalProperties"]["properties"];
    assert_eq!(profile["mode"]["enum"], json!(["plan", "ask", "auto-edit", "auto"]));
    assert_eq!(schema["additionalProperties"], false);
    let keys = project.aye(&["config", "keys"]).exits(0).stdout;
    assert!(keys.contains("profiles.NAME.max_steps\n    an integer from 1"), "{keys}");
}
