//! Shared path cases, run through the binary with their policy, which covers tools and policy together.

use crate::support::{Project, shared};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Path prefixes of the cases that stand for paths in a temporary directory.
const VIRTUAL: &[&str] = &["/ws-evil", "/ws.bak", "/wsx", "/ws", "/WS", "/outside", "/home/user", "/real", "/link-ws", "/x.txt"];

/// Case on disk, with the state before the call.
struct Scene<'a> {
    case: &'a Value,
    project: Project,
    root: PathBuf,
    workspace: String,
}

impl<'a> Scene<'a> {
    fn new(case: &'a Value) -> Self {
        let project = Project::empty();
        let root = project.directory("virtual");
        fs::create_dir_all(root.join("home/user")).unwrap();
        let home = root.join("home/user").display().to_string();
        let mut scene = Self { case, project: project.env("HOME", &home), root, workspace: String::new() };
        scene.workspace = scene.rooted(case["root"].as_str().unwrap());
        case["setup"].as_array().unwrap().iter().for_each(|step| scene.set_up(step));
        fs::create_dir_all(&scene.workspace).unwrap();
        scene
    }

    fn rooted(&self, path: &str) -> String {
        let stands = |name: &&&str| path.strip_prefix(**name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        match VIRTUAL.iter().find(stands) {
            Some(_) => format!("{}{path}", self.root.display()),
            None => path.to_owned(),
        }
    }

    fn set_up(&self, step: &Value) {
        let path = PathBuf::from(self.rooted(step["path"].as_str().unwrap()));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let target = || self.rooted(step["target"].as_str().unwrap());
        match step["op"].as_str().unwrap() {
            "dir" => fs::create_dir_all(&path).unwrap(),
            "file" => fs::write(&path, step["text"].as_str().unwrap()).unwrap(),
            "symlink" => symlink(target(), &path).unwrap(),
            "hardlink" => fs::hard_link(target(), &path).unwrap(),
            "fifo" => nix::unistd::mkfifo(&path, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap(),
            "socket" => drop(UnixListener::bind(&path).unwrap()),
            "chmod" => {
                let mode = u32::from_str_radix(step["mode"].as_str().unwrap(), 8).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
            other => panic!("unknown step {other}"),
        }
    }

    fn listed(&self, name: &str) -> Vec<String> {
        self.case[name].as_array().into_iter().flatten().map(|path| self.rooted(path.as_str().unwrap())).collect()
    }

    /// Returns all files of the temporary directory outside the workspace, with their contents.
    fn outside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let workspace = fs::canonicalize(&self.workspace).unwrap();
        let mut found = BTreeMap::new();
        let mut pending = vec![self.root.clone()];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).unwrap().flatten() {
                let (path, kind) = (entry.path(), entry.file_type().unwrap());
                if path == workspace {
                    continue;
                }
                let content = if kind.is_file() { fs::read(&path).unwrap() } else { format!("{kind:?}").into_bytes() };
                if kind.is_dir() {
                    pending.push(path.clone());
                }
                found.insert(path, content);
            }
        }
        found
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let policy = shared!("corpora/reference.toml").display().to_string();
        let words = ["-C", &self.workspace, "tool", "call", tool, "--args", "-", "--json", "--yes", "--policy", &policy];
        self.project.aye_with_input(&words, &arguments.to_string()).json()
    }
}

fn call_of(tool: &str, arg: &str, destination: &str) -> (&'static str, Value) {
    match tool {
        "read_file" => ("ReadFile", json!({"path": arg})),
        "write_file" => ("WriteFile", json!({"path": arg, "content": "written"})),
        "edit_file" => ("EditFile", json!({"path": arg, "edits": [{"oldText": "x", "newText": "y"}]})),
        "list_dir" => ("ListDirectory", json!({"path": arg})),
        "glob" => ("Glob", json!({"pattern": arg})),
        "grep" => ("Grep", json!({"pattern": ".", "path": arg})),
        "shell_cwd" => ("RunCommand", json!({"command": "pwd", "cwd": arg})),
        "delete" => ("Delete", json!({"path": arg, "recursive": true})),
        "mkdir" => ("CreateDirectory", json!({"path": arg})),
        "move" => ("Move", json!({"source": arg, "destination": destination})),
        "copy" => ("Copy", json!({"source": arg, "destination": destination})),
        other => panic!("unknown tool {other}"),
    }
}

/// Returns the content of a regular file. Reading other kinds of files could block.
fn content(path: &str) -> Option<Vec<u8>> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file).and_then(|_| fs::read(path).ok())
}

fn check(case: &Value, tool: &str) -> Result<(), String> {
    let scene = Scene::new(case);
    let arg = scene.rooted(case["arg"].as_str().unwrap());
    let destination = scene.rooted(case["arg2"].as_str().unwrap_or_default());
    let (name, arguments) = call_of(tool, &arg, &destination);
    let place = Path::new(&scene.workspace).join(&arg);
    // File modes do not restrict a user who may read everything.
    if case["class"] == "permission" && fs::metadata(&place).is_ok() {
        return Ok(());
    }
    let (kept, outside) =
        (scene.listed("unchanged").into_iter().map(|path| (content(&path), path)).collect::<Vec<_>>(), scene.outside());
    let result = scene.call(name, &arguments);
    let output = format!("{} {}", result["outputText"].as_str().unwrap_or_default(), result["error"]["message"]);

    let went_on = result["status"] == "succeeded" || result["error"]["code"] == "FILE_NOT_FOUND";
    let mut expected = vec![case["expected"].as_str().unwrap()];
    expected.extend(case["also_ok"].as_array().into_iter().flatten().filter_map(Value::as_str));
    let may_go_on = expected.contains(&"inside");
    let may_be_refused = expected.iter().any(|answer| *answer != "inside");
    if (went_on && !may_go_on) || (!went_on && !may_be_refused) {
        return Err(format!("expected {expected:?}: {result}"));
    }
    if tool == "write_file" && result["status"] == "succeeded" && fs::read(&place).unwrap_or_default() != b"written" {
        return Err(format!("it says it was written, and `{arg}` does not hold it"));
    }
    if scene.outside() != outside {
        return Err("something outside the workspace changed".to_owned());
    }
    if let Some((_, path)) = kept.iter().find(|(before, path)| content(path) != *before) {
        return Err(format!("`{path}` changed"));
    }
    let name_of = |path: &String| path.rsplit('/').next().unwrap().to_owned();
    if let Some(name) = scene.listed("must_not_list").iter().map(name_of).find(|name| output.contains(name)) {
        return Err(format!("`{name}` is listed: {output}"));
    }
    Ok(())
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn tool_calls_never_leave_the_workspace() {
    let text = fs::read_to_string(shared!("corpora/paths.jsonl")).unwrap();
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut failures: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut checked = 0;
    for case in &cases {
        // Names that are equal only on macOS are protected on this system too.
        let here = matches!(case["platform"].as_str(), Some("posix" | "linux" | "macos"));
        // A race would have to occur between two steps of one process, and a missing argument is not valid UTF-8.
        if !here || case.get("arg").is_none() || case.get("race").is_some() {
            continue;
        }
        checked += 1;
        if let Err(failure) = check(case, case["tool"].as_str().unwrap()) {
            let class = case["class"].as_str().unwrap();
            failures.entry(class).or_default().push(format!("{} ({}): {failure}", case["id"], case["why"]));
        }
    }
    assert!(checked > 0, "no case is for this platform");
    let told: Vec<String> = failures
        .iter()
        .map(|(class, failures)| format!("{class}: {} failed\n  {}", failures.len(), failures.join("\n  ")))
        .collect();
    assert!(failures.is_empty(), "{}", told.join("\n"));
}
