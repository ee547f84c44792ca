//! Tests of built-in tools that are loaded on demand. For MCP tools, see `mcp::tests`.

use super::*;
use crate::ports::ToolRouter;
use crate::protocol::{Action, ToolDefinition, ToolStatus};
use crate::tools::tests::{Bench, block_on, call};
use serde_json::json;
use std::sync::Arc;

const FIRST: [&str; 9] =
    ["ReadFile", "ListDirectory", "Glob", "Grep", "WriteFile", "EditFile", "ApplyPatch", "RunCommand", FIND_TOOLS];

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.sources.on_demand = true;
    bench
}

fn definitions(bench: &Bench) -> Vec<ToolDefinition> {
    let mut all = bench.router().definitions();
    // The tool that exists only in tests.
    all.retain(|tool| tool.tool_name != "CountWords");
    all
}

fn names(bench: &Bench) -> Vec<String> {
    definitions(bench).into_iter().map(|tool| tool.tool_name).collect()
}

/// Returns the names of the tools that a query loads, which come after those offered before.
fn loaded_by(query: &str) -> Vec<String> {
    let bench = bench();
    bench.output(FIND_TOOLS, json!({"query": query}));
    names(&bench).split_off(FIRST.len())
}

#[test]
fn the_first_request_defines_the_common_tools_and_names_all_others() {
    let bench = bench();
    assert_eq!(names(&bench), FIRST);
    let definitions = definitions(&bench);
    let finder = definitions.last().unwrap();
    let all = Bench::new().router().definitions();
    let others: Vec<_> =
        all.iter().map(|tool| tool.tool_name.as_str()).filter(|name| !FIRST.contains(name) && *name != "CountWords").collect();
    assert_eq!(others.len(), 23);
    for name in others {
        assert!(finder.description.contains(name), "{name}: {}", finder.description);
    }
    assert_eq!(finder.input_schema["properties"].as_object().unwrap().len(), 1, "no `server` argument without servers");
    let sizes: Vec<_> = definitions.iter().map(|tool| (serde_json::to_string(tool).unwrap().len(), &tool.tool_name)).collect();
    println!("{sizes:?}");
    assert!(sizes.iter().map(|(bytes, _)| bytes).sum::<usize>() <= 7_700, "{sizes:?}");
}

#[test]
fn every_tool_can_be_loaded_by_name_and_is_listed_after_the_others() {
    for (names, _) in SELDOM_USED {
        // No search, agents or memory are configured here, so they are not offered.
        for name in names.iter().filter(|name| !["WebSearch", "Agent", "SuggestMemory"].contains(*name)) {
            let loaded = loaded_by(name);
            assert!(loaded.contains(&(*name).to_owned()), "{name}: {loaded:?}");
            assert_eq!(loaded.len(), if *name == "CliSession" { 4 } else { 1 }, "{loaded:?}");
        }
    }
    let bench = bench();
    for query in ["Move, Copy", "HttpRequest", "Copy"] {
        bench.output(FIND_TOOLS, json!({"query": query}));
    }
    let expected: Vec<_> = FIRST.into_iter().chain(["Copy", "Move", "HttpRequest"]).collect();
    assert_eq!(names(&bench), expected, "loaded tools come last, each once");
    let plan = block_on(bench.router().plan(call("find_tools", json!({"query": "Stat"})))).unwrap();
    assert!(plan.actions.is_empty() && !plan.changes, "the call needs no approval");
}

#[test]
fn tools_are_found_by_topic() {
    for (query, expected) in [
        ("fetch a web page", "HttpRequest"),
        ("download a URL", "HttpRequest"),
        ("interactive terminal session", "CliSession"),
        ("read the output of a background command", "CliRead"),
        ("stop the background process", "CliStop"),
        ("rename a file", "Move"),
        ("remove a directory", "Delete"),
        ("checksum", "HashFile"),
        ("how large is a directory", "DiskUsage"),
        ("environment variables", "CliEnv"),
        ("outline of a document", "TextInspect"),
        ("edit a markdown section", "TextPatch"),
        ("append to a log", "AppendFile"),
        ("mkdir", "CreateDirectory"),
        ("size and owner of a path", "Stat"),
        ("give the user a file as an artifact", "UploadArtifact"),
        ("open in the default program", "OpenPath"),
        ("show in the file manager", "RevealInOs"),
        ("platform", "CliGetPlatform"),
        ("track the steps of a task", "UpdateSteps"),
        ("ask the user a question", "AskUser"),
        ("propose a plan", "ProposePlan"),
    ] {
        let loaded = loaded_by(query);
        assert!(loaded.iter().any(|name| name == expected), "{query}: {loaded:?}");
        assert!(loaded.len() <= 6, "{query}: {loaded:?}");
    }
    let bench = bench();
    assert!(bench.output(FIND_TOOLS, json!({"query": "zebra"})).contains("no tool matches"));
    assert!(bench.error(FIND_TOOLS, json!({"query": "of the"})).1.contains("`query` has no words"));
    assert!(bench.error(FIND_TOOLS, json!({"query": "x", "server": "docs"})).1.contains("`server`"));
    assert_eq!(names(&bench), FIRST);
}

#[test]
fn unloaded_tools_can_be_called_by_name_and_errors_explain_how_to_load_them() {
    let bench = bench();
    bench.write("f", "x\n");
    assert!(bench.output("Stat", json!({"path": "f"})).contains("file"));
    assert!(bench.output("file_info", json!({"path": "f"})).contains("file"), "an alias works too");
    assert_eq!(names(&bench), FIRST, "the list is unchanged");
    let hint = format!("hint: load Stat with {FIND_TOOLS}");
    assert!(bench.error("Stat", json!({"where": "f"})).1.contains(&hint));
    assert!(!bench.error("ReadFile", json!({"where": "f"})).1.contains("hint"));
    bench.output(FIND_TOOLS, json!({"query": "Stat"}));
    assert!(!bench.error("Stat", json!({"where": "f"})).1.contains("hint"), "the schema is already known");
    let (_, message) = bench.error("Frobnicate", json!({}));
    assert!(message.contains("HttpRequest") && message.contains("ReadFile"), "{message}");
}

#[test]
fn tools_that_the_policy_disables_are_neither_named_nor_found() {
    let mut bench = bench();
    let except = |disabled: &'static str| {
        Arc::new(
            move |name: &str| if name == disabled { Err(ToolError::new(ErrorCode::PolicyDenied, "disabled")) } else { Ok(()) },
        )
    };
    bench.settings.may_use = except("HttpRequest");
    bench.settings.grants = Arc::new(|capability| capability != "File.Delete");
    let description = definitions(&bench).into_iter().find(|tool| tool.tool_name == FIND_TOOLS).unwrap().description;
    assert!(!description.contains("HttpRequest") && !description.contains("Delete") && description.contains("Copy"));
    assert!(!bench.output(FIND_TOOLS, json!({"query": "HttpRequest"})).contains("HttpRequest"));
    // If nothing can be loaded, all tools are offered.
    bench.settings.may_use = except(FIND_TOOLS);
    let all = names(&bench);
    assert!(all.iter().any(|name| name == "HttpRequest") && !all.iter().any(|name| name == FIND_TOOLS), "{all:?}");
}

#[test]
fn a_resumed_session_offers_loaded_and_used_tools_in_the_same_order() {
    let mut bench = bench();
    let found = bench.call(FIND_TOOLS, json!({"query": "HttpRequest, Copy"}));
    assert_eq!(found.status, ToolStatus::Succeeded);
    let used = bench.call("DiskUsage", json!({}));
    let failed = bench.call("Stat", json!({"path": "none"}));
    let action =
        Action::Invoke { server: "docs".to_owned(), tool: "search".to_owned(), fingerprint: String::new(), changed: false };
    let loaded = LoadedTools::default();
    loaded.note_result(&failed);
    loaded.note_result(&used);
    loaded.note_plan(&[action]);
    loaded.note_result(&found);
    assert_eq!(loaded.names(), ["DiskUsage", "Mcp.docs/search", "Copy", "HttpRequest"]);
    bench.sources.loaded = loaded;
    let expected: Vec<_> = FIRST.into_iter().chain(["DiskUsage", "Copy", "HttpRequest"]).collect();
    assert_eq!(names(&bench), expected);
}

#[test]
fn front_ends_list_all_tools_whether_loaded_or_not() {
    let bench = bench();
    let before = bench.router().available();
    assert!(before.iter().any(|name| name == "HttpRequest") && before.iter().any(|name| name == FIND_TOOLS), "{before:?}");
    bench.output(FIND_TOOLS, json!({"query": "HttpRequest"}));
    assert_eq!(bench.router().available(), before);
}
