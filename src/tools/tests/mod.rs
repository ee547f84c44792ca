pub(in crate::tools) mod adding;
mod aliases;
mod amended;
mod appends;
mod artifacts;
mod bounds;
mod changes;
mod commands;
mod continued;
mod documents;
mod edit_corpus;
mod encodings;
mod exactness;
mod facts;
mod habits;
mod large_files;
mod links;
mod memory;
#[cfg(target_os = "linux")]
mod network;
mod patches;
mod paths_corpus;
mod pictures;
mod planning;
mod random_trees;
mod read_file;
mod reads;
mod requests;
mod search_properties;
mod searches;
mod secrets;
mod seen;
mod sessions;
#[cfg(target_os = "linux")]
mod swap;
mod text;
mod trees;
#[cfg(target_os = "linux")]
mod visible;

use super::sandbox::SandboxPolicy;
use super::{CommandSettings, HttpAccess, PathAccess, Router, SessionServices, ToolSettings, ToolSources, Toolset};
use crate::policy::redact::Redactor;
use crate::policy::{Explanation, Permit};
use crate::ports::{Plan, ProgressSender, RunContext, ToolRouter};
use crate::protocol::{Action, CallArguments, CallId, ErrorCode, ToolCall, ToolError, ToolResult, ToolStatus};
use crate::sys::http::fetch::Fetcher;
use crate::sys::process::{EnvironmentSelection, Helper, Shell};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A workspace of its own, with the tools for it.
pub(crate) struct Bench {
    _directory: TempDir,
    pub(super) root: PathBuf,
    pub(crate) settings: ToolSettings,
    pub(super) sources: ToolSources,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir(root.join("ws")).unwrap();
        let settings = settings(root.join("ws"), root.join("home/user"));
        Self { _directory: directory, root, settings, sources: ToolSources::default() }
    }

    pub(crate) fn toolset(&self) -> Toolset {
        Toolset::new(self.settings.clone(), self.sources.clone())
    }

    pub(super) fn router(&self) -> Router {
        Router::new(self.toolset())
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.settings.workspace.join(name)
    }

    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(super) fn plan(&self, tool: &str, arguments: Value) -> Result<Plan, ToolError> {
        block_on(self.router().plan(call(tool, arguments)))
    }

    pub(super) fn run(&self, plan: Plan) -> ToolResult {
        let permit = Permit::for_test(plan.actions.clone());
        block_on(self.router().run(plan, permit, context()))
    }

    pub(super) fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        match self.plan(tool, arguments) {
            Ok(plan) => self.run(plan),
            Err(error) => ToolResult::from_error(CallId::new("c"), tool, error),
        }
    }

    #[track_caller]
    pub(super) fn output(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result.status, ToolStatus::Succeeded, "{result:?}");
        result.output_text
    }

    #[track_caller]
    pub(super) fn error(&self, tool: &str, arguments: Value) -> (ErrorCode, String) {
        let result = self.call(tool, arguments);
        let error = result.error.unwrap_or_else(|| panic!("no error: {}", result.output_text));
        (error.code, error.message)
    }
}

pub(super) fn settings(workspace: PathBuf, home: PathBuf) -> ToolSettings {
    ToolSettings {
        workspace,
        home: Some(home),
        max_file_size_bytes: 10 * 1024 * 1024,
        max_output_bytes: 100 * 1024,
        paths: PathAccess {
            may_read: Arc::new(|_| true),
            may_read_entry: None,
            may_write: Arc::new(|_| true),
            may_delete: Arc::new(|_| true),
            may_open: Arc::new(|_| true),
            may_show: Arc::new(|_| true),
            may_follow: Arc::new(|_| true),
            relative_paths: true,
            follow_links: true,
        },
        http: HttpAccess {
            may_fetch: Arc::new(|url, _| Explanation::unreadable(format!("{url} is not approved"))),
            may_connect: Arc::new(|url, address| Err(format!("no connection to {address} for {url}"))),
            fetcher: Fetcher::default(),
        },
        session: SessionServices {
            since: std::time::SystemTime::now() + std::time::Duration::from_secs(3600),
            ..SessionServices::detached()
        },
        command: CommandSettings {
            shell: Shell::Bash,
            environment: EnvironmentSelection::Core,
            secret_names: Vec::new(),
            helper: Helper::default(),
            sandbox: SandboxPolicy::unsandboxed(),
            git_is_read_only: false,
            commit_target: None,
        },
        grants: Arc::new(|_| true),
        may_use: Arc::new(|_| Ok(())),
        text: crate::protocol::TextTools::default(),
        // Files that a test writes first are older than its session.
        redactor: Arc::new(Redactor::new(Vec::new(), [], || [7; 32])),
    }
}

pub(super) fn call(tool: &str, arguments: Value) -> ToolCall {
    let Value::Object(arguments) = arguments else { panic!("not an object") };
    ToolCall { tool_call_id: CallId::new("c"), tool_name: tool.to_owned(), arguments: CallArguments::Object(arguments) }
}

pub(super) fn context() -> RunContext {
    let kill = CancellationToken::new();
    RunContext {
        tool_call_id: None,
        output: mpsc::channel(16).0,
        progress: ProgressSender::default(),
        interrupt: kill.child_token(),
        kill,
        background: CancellationToken::new(),
        max_bytes: usize::MAX,
    }
}

pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn a_plan_does_not_run_with_a_permit_for_another_plan() {
    let bench = Bench::new();
    bench.write("a", "a");
    let plan = bench.plan("WriteFile", json!({"path": "a", "content": "new"})).unwrap();
    let other = bench.plan("WriteFile", json!({"path": "b", "content": "new"})).unwrap();
    let result = block_on(bench.router().run(plan, Permit::for_test(other.actions), context()));
    assert_eq!((result.status, result.error.unwrap().code), (ToolStatus::Denied, ErrorCode::PolicyDenied));
    assert_eq!(bench.read("a"), b"a");
}

#[test]
fn the_error_for_an_unknown_tool_lists_the_known_tools() {
    let (code, message) = Bench::new().error("Frobnicate", json!({}));
    assert_eq!(code, ErrorCode::ToolNotFound);
    assert!(message.contains("`Frobnicate`") && message.contains("ReadFile, ListDirectory, Glob, Grep, Stat"), "{message}");
}

#[test]
fn the_error_for_an_unknown_tool_lists_only_granted_tools() {
    let mut bench = Bench::new();
    bench.settings.grants = Arc::new(|capability: &str| capability == "File.Read");
    let denied = || ToolError::new(ErrorCode::PolicyDenied, "it is disabled");
    bench.settings.may_use = Arc::new(move |name: &str| if name == "Grep" { Err(denied()) } else { Ok(()) });
    let (_, message) = bench.error("Frobnicate", json!({}));
    assert!(message.contains("ReadFile") && message.contains("Glob"), "{message}");
    for name in ["Grep", "WriteFile", "RunCommand", "HttpRequest"] {
        assert!(!message.contains(name), "{name}: {message}");
    }
    let (_, message) = bench.error("RunComand", json!({}));
    assert!(!message.contains("RunCommand"), "a tool that is not granted is not suggested: {message}");
}

#[test]
fn errors_name_the_wrong_arguments() {
    let bench = Bench::new();
    bench.write("f", "x");
    let cases = [
        ("ReadFile", json!({}), "`path`"),
        ("ReadFile", json!({"pathh": "f"}), "`pathh` is not an argument of this tool; did you mean `path`?"),
        ("ReadFile", json!({"path": "f", "zzz": 1}), "expected `path`"),
        ("ReadFile", json!({"path": "f", "offset": "x"}), "`offset`"),
        ("ReadFile", json!({"path": "f", "limit": 0}), "`limit`"),
        ("ReadFile", json!({"path": "f", "encoding": "klingon"}), "`klingon`"),
        ("ReadFile", json!({"path": 7}), "`path`"),
        ("EditFile", json!({"path": "f", "edits": [{"oldText": "x"}]}), "`edits[0]`"),
        ("EditFile", json!({"path": "f", "edits": [{"oldText": "x", "newText": "y", "replaceAl": 1}]}), "`edits[0].replaceAl`"),
        ("EditFile", json!({"path": "f", "edits": [{"oldText": "x", "newText": 7}]}), "`edits[0].newText`"),
        ("EditFile", json!({"path": "f", "edits": []}), "`edits` is empty"),
        ("RunCommand", json!({"command": " "}), "`command` is empty"),
        ("RunCommand", json!({"command": "true", "timeout": 120_000}), "1 to 600 seconds"),
        ("RunCommand", json!({"command": "true", "cwd": "nowhere"}), "`cwd`"),
        ("Grep", json!({"pattern": "("}), "`pattern`"),
        ("Glob", json!({"pattern": "a/{b"}), "`pattern`"),
        ("Glob", json!({"pattern": "*/../../x"}), "`..` after a wildcard"),
        ("Glob", json!({"pattern": "{..,src}/*"}), "`..` after a wildcard"),
        ("Glob", json!({"pattern": "*\u{0}"}), "NUL"),
    ];
    for (tool, arguments, part) in cases {
        let (code, message) = bench.error(tool, arguments);
        assert_eq!(code, ErrorCode::InvalidRequest, "{message}");
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn arguments_that_are_not_json_are_rejected_with_the_reason() {
    let bench = Bench::new();
    let call = ToolCall {
        tool_call_id: CallId::new("c"),
        tool_name: "ReadFile".into(),
        arguments: CallArguments::Malformed("{\"path\": \"a".into()),
    };
    let error = block_on(bench.router().plan(call)).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidRequest);
    assert!(error.message.contains("EOF while parsing"), "{error}");
}

#[test]
fn common_alias_names_are_accepted() {
    let bench = Bench::new();
    bench.write("f", "one");
    assert_eq!(bench.output("read_file", json!({"file_path": "f", "offset": null})), "one");
    let edit = json!({"file_path": "f", "edits": [{"old_string": "one", "new_string": "two", "replace_all": false}]});
    bench.output("edit", edit);
    assert_eq!(bench.read("f"), b"two");
    assert!(bench.output("bash", json!({"cmd": "echo hi", "description": "says hi"})).contains("hi"));
    assert!(bench.output("ls", json!({})).contains('f'));
}

#[test]
fn edits_are_accepted_in_every_unambiguous_shape() {
    let edit = json!({"oldText": "one", "newText": "two"});
    let shapes = [
        json!({"path": "f", "oldText": "one", "newText": "two"}),
        json!({"path": "f", "old_string": "one", "new_string": "two", "replace_all": "false"}),
        json!({"path": "f", "old_str": "one", "new_str": "two", "edits": null}),
        json!({"path": "f", "oldText": "one", "newText": "two", "edits": []}),
        json!({"path": "f", "edits": edit}),
        json!({"path": "f", "edits": json!([edit]).to_string()}),
        json!({"path": "f", "edits": [edit.to_string()]}),
        json!({"path": "f", "edits": [{"old_text": "one", "new_text": "two", "replaceAll": null}]}),
    ];
    for shape in shapes {
        let bench = Bench::new();
        bench.write("f", "one\n");
        bench.output("EditFile", shape.clone());
        assert_eq!(bench.read("f"), b"two\n", "{shape}");
    }
    let bench = Bench::new();
    bench.write("f", "one one\n");
    bench.output("EditFile", json!({"path": "f", "oldText": "one", "newText": "two", "replaceAll": "True"}));
    assert_eq!(bench.read("f"), b"two two\n");
}

#[test]
fn ambiguous_edits_are_rejected() {
    let cases = [
        (json!({"path": "f", "oldText": "one", "newText": "x", "edits": [{"oldText": "a", "newText": "b"}]}), "next to `edits`"),
        (json!({"path": "f", "replaceAll": true, "edits": [{"oldText": "a", "newText": "b"}]}), "`replaceAll` next to"),
        (json!({"path": "f", "oldText": "one", "old_string": "one", "newText": "x"}), "`oldText` is set twice"),
        (json!({"path": "f", "oldText": "one"}), "missing field `newText`"),
        (json!({"path": "f", "edits": "[{\"oldText\": \"one"}), "`edits` is a string that is not valid JSON"),
        (json!({"path": "f", "edits": "one"}), "`edits` is a string that is not valid JSON"),
    ];
    for (arguments, part) in cases {
        let bench = Bench::new();
        bench.write("f", "one\n");
        let (code, message) = bench.error("EditFile", arguments);
        assert_eq!(code, ErrorCode::InvalidRequest);
        assert!(message.contains(part), "{message}");
        assert_eq!(bench.read("f"), b"one\n");
    }
}

#[test]
fn numbers_and_booleans_are_accepted_as_strings() {
    let bench = Bench::new();
    bench.write("f", "1\n2\n3\n");
    assert!(bench.output("ReadFile", json!({"path": "f", "offset": " 2 ", "limit": "1"})).starts_with("2\n["));
    assert!(bench.output("ReadFile", json!({"path": "f", "offset": 2.0, "limit": 1})).starts_with("2\n["));
    assert!(bench.output("Grep", json!({"pattern": "2.", "literal": "false", "context": "0"})).starts_with("no line"));
    for (name, value) in [("limit", json!("ten")), ("limit", json!("1.5")), ("limit", json!(-1)), ("offset", json!(true))] {
        let (_, message) = bench.error("ReadFile", json!({"path": "f", name: value}));
        assert!(message.contains(&format!("`{name}`")), "{message}");
    }
    let (_, message) = bench.error("Grep", json!({"pattern": "2", "literal": "maybe"}));
    assert!(message.contains("`literal`"), "{message}");
}

#[test]
fn schemas_are_plain_and_contain_no_aliases() {
    let definitions = Bench::new().router().definitions();
    let names = definitions.iter().map(|definition| definition.tool_name.as_str());
    let names: Vec<_> = names.filter(|name| *name != "CountWords").collect();
    const SESSIONS: [&str; 6] = ["CliSession", "CliWrite", "CliRead", "CliStop", "CliGetPlatform", "CliEnv"];
    let reads = ["ReadFile", "ListDirectory", "Glob", "Grep", "Stat", "TextInspect", "HashFile", "DiskUsage", "UploadArtifact"];
    let writes = ["WriteFile", "EditFile", "ApplyPatch", "AppendFile", "TextPatch", "CreateDirectory", "Copy", "Move", "Delete"];
    let last = ["OpenPath", "RevealInOs", "HttpRequest", "AskUser", "ProposePlan", "UpdateSteps"];
    assert_eq!(names, [&reads[..], &writes, &["RunCommand"], &SESSIONS, &last].concat());
    let edit = &definitions.iter().find(|definition| definition.tool_name == "EditFile").unwrap().input_schema;
    let item = &edit["properties"]["edits"]["items"];
    assert_eq!(edit["type"], "object");
    assert_eq!(edit.get("additionalProperties"), None, "a request contains only what a model needs");
    assert_eq!(edit["required"], json!(["path", "edits"]));
    assert_eq!(item["properties"]["replaceAll"]["type"], "boolean");
    assert_eq!(item["required"], json!(["oldText", "newText"]));
    let text = serde_json::to_string(&definitions).unwrap();
    for absent in ["$ref", "$defs", "$schema", "null", "file_path", "uint", "minimum", "maximum"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
}

#[test]
fn actions_are_determined_without_disk_access() {
    let tools = Toolset::new(settings("/no/such/ws".into(), "/home/me".into()), ToolSources::default());
    let actions = |tool: &str, arguments| tools.actions_for(tool, &call(tool, arguments).arguments).unwrap();
    let path = |action: &Action| match action {
        Action::Read { target } | Action::Write { target } | Action::Delete { target } => target.real.clone(),
        Action::Exec { cwd, .. } => cwd.real.clone(),
        Action::Fetch { url, .. } => panic!("no path: {url}"),
        Action::Search { query, .. } => panic!("no path: {query}"),
        Action::Named { .. } | Action::Custom { .. } | Action::Open { .. } | Action::Upload { .. } | Action::Invoke { .. } => {
            panic!("{action:?} has no path")
        }
    };
    let cases = [
        ("ReadFile", json!({"path": "../x"}), "File.Read", "/no/such/x"),
        ("WriteFile", json!({"path": "~/.bashrc", "content": ""}), "File.Write", "/home/me/.bashrc"),
        ("EditFile", json!({"path": "a/./b", "edits": []}), "File.Write", "/no/such/ws/a/b"),
        ("Glob", json!({"pattern": "src/../../*/x"}), "File.Read", "/no/such"),
        ("Glob", json!({"pattern": "/etc/*"}), "File.Read", "/etc"),
        ("Grep", json!({"pattern": "x"}), "File.Read", "/no/such/ws"),
        ("RunCommand", json!({"command": "ls", "cwd": "/"}), "Shell.Exec", "/"),
    ];
    for (tool, arguments, capability, real) in cases {
        let actions = actions(tool, arguments);
        assert_eq!((actions[0].capability(), path(&actions[0]).as_path()), (capability, Path::new(real)), "{tool}");
    }
}
