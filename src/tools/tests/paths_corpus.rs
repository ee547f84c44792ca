//! Shared cases of path confinement that are up to the tools, because they depend on where an operation actually takes
//! place.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

/// Names that stand for paths in a temporary directory.
const VIRTUAL: &[&str] = &["/ws-evil", "/ws.bak", "/wsx", "/ws", "/WS", "/outside", "/home/user", "/real", "/link-ws", "/x.txt"];

fn rooted(root: &Path, path: &str) -> String {
    let stands = |name: &&&str| path.strip_prefix(**name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    match VIRTUAL.iter().find(stands) {
        Some(_) => format!("{}{path}", root.display()),
        None => path.to_owned(),
    }
}

fn set_up(root: &Path, step: &Value) {
    let path = PathBuf::from(rooted(root, step["path"].as_str().unwrap()));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let target = || rooted(root, step["target"].as_str().unwrap());
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

/// Returns the calls for a case: one for each tool of its kind, all of which are confined to the same directories.
fn calls(case: &Value, arg: &str, destination: &str) -> Vec<(&'static str, Value)> {
    match case["tool"].as_str().unwrap() {
        "read_file" => {
            ["ReadFile", "read_file", "TextRead", "HashFile", "TextInspect"].map(|tool| (tool, json!({"path": arg}))).into()
        }
        "write_file" => vec![
            ("WriteFile", json!({"path": arg, "content": "written"})),
            ("AppendFile", json!({"path": arg, "content": "written"})),
            ("write_file", json!({"path": arg, "content": "written", "append": true})),
            ("ApplyPatch", json!({"patch": format!("*** Begin Patch\n*** Add File: {arg}\n+written\n*** End Patch\n")})),
        ],
        "edit_file" => vec![
            ("EditFile", json!({"path": arg, "edits": [{"oldText": "x", "newText": "y"}]})),
            ("TextPatch", json!({"path": arg, "operation": "insertBefore", "startLine": 1, "content": "y"})),
        ],
        "list_dir" => ["ListDirectory", "list_files", "DiskUsage"].map(|tool| (tool, json!({"path": arg}))).into(),
        "glob" => vec![("Glob", json!({"pattern": arg}))],
        "grep" => ["Grep", "grep", "TextSearch"].map(|tool| (tool, json!({"pattern": ".", "path": arg}))).into(),
        "shell_cwd" => ["RunCommand", "CliRun", "shell"].map(|tool| (tool, json!({"command": "true", "cwd": arg}))).into(),
        "delete" => vec![("Delete", json!({"path": arg, "recursive": true}))],
        "mkdir" => vec![("CreateDirectory", json!({"path": arg}))],
        "move" => vec![("Move", json!({"source": arg, "destination": destination}))],
        "copy" => vec![("Copy", json!({"source": arg, "destination": destination}))],
        other => panic!("unknown tool {other}"),
    }
}

fn real(action: &Action) -> &Path {
    match action {
        Action::Read { target } | Action::Write { target } | Action::Delete { target } => &target.real,
        Action::Exec { cwd, .. } => &cwd.real,
        Action::Fetch { url, .. } => panic!("no path: {url}"),
        Action::Search { query, .. } => panic!("no path: {query}"),
        Action::Named { .. } | Action::Custom { .. } | Action::Open { .. } | Action::Upload { .. } | Action::Invoke { .. } => {
            panic!("{action:?} has no path")
        }
    }
}

fn check(case: &Value) -> Result<(), String> {
    (0..calls(case, "", "").len()).try_for_each(|index| check_one(case, index))
}

/// Runs a case and checks where the operation took place, or that the tools themselves rejected it.
fn check_one(case: &Value, index: usize) -> Result<(), String> {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let workspace = PathBuf::from(rooted(&root, case["root"].as_str().unwrap()));
    for step in case["setup"].as_array().unwrap() {
        set_up(&root, step);
    }
    fs::create_dir_all(&workspace).unwrap();
    let workspace = workspace.canonicalize().unwrap();
    let arg = rooted(&root, case["arg"].as_str().unwrap_or_default());
    let destination = rooted(&root, case["arg2"].as_str().unwrap_or_default());
    let (tool, arguments) = calls(case, &arg, &destination).swap_remove(index);
    let bench = Bench {
        settings: settings(workspace.clone(), root.join("home/user")),
        _directory: directory,
        root: root.clone(),
        sources: ToolSources::default(),
    };

    let list = |name: &str| case[name].as_array().cloned().unwrap_or_default();
    let paths = |name: &str| -> Vec<_> { list(name).iter().map(|path| rooted(&root, path.as_str().unwrap())).collect() };
    let kept: Vec<_> = paths("unchanged").into_iter().map(|path| (fs::read(&path).ok(), path)).collect();
    let start = Instant::now();
    let (place, output) = match bench.plan(tool, arguments) {
        Err(error) => ("blocked", error.message),
        Ok(plan) => {
            let inside = plan.actions.iter().all(|action| real(action).starts_with(&workspace));
            for race in list("race") {
                let path = PathBuf::from(rooted(&root, race["path"].as_str().unwrap()));
                fs::rename(&path, root.join("moved-away")).unwrap();
                symlink(rooted(&root, race["target"].as_str().unwrap()), &path).unwrap();
            }
            let raced = !list("race").is_empty();
            let result = if inside { bench.run(plan).text_for_model() } else { String::new() };
            let refused = ["INVALID_REQUEST", "PERMISSION_DENIED", "CONFLICT"].iter().any(|code| result.starts_with(code));
            match (inside, refused) {
                (false, _) => ("outside", result),
                (true, true) if raced => ("outside", result),
                (true, true) => ("blocked", result),
                (true, false) => ("inside", result),
            }
        }
    };
    let took = start.elapsed();
    let expected: Vec<_> = std::iter::once(&case["expected"]).chain(case["also_ok"].as_array().into_iter().flatten()).collect();
    // The policy decides about protected paths inside the workspace.
    let class = case["class"].as_str().unwrap();
    let policy_decides = (class.starts_with("protected_metadata") || class == "root_operation") && place == "inside";
    // Root can enter any directory.
    let root_may = case["class"] == "permission" && nix::unistd::geteuid().is_root();
    if !expected.iter().any(|answer| *answer == place) && !policy_decides && !root_may {
        return Err(format!("{tool}: {place}, not {expected:?}: {output}"));
    }
    for (before, path) in kept {
        if !policy_decides && fs::read(&path).ok() != before {
            return Err(format!("`{path}` changed"));
        }
    }
    for hidden in paths("must_not_list") {
        let name = hidden.rsplit('/').next().unwrap();
        if output.contains(name) {
            return Err(format!("`{name}` is listed: {output}"));
        }
    }
    if took > Duration::from_secs(10) {
        return Err(format!("took {took:?}"));
    }
    Ok(())
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn no_path_leaves_the_workspace_undetected() {
    let text = fs::read_to_string(shared!("corpora/paths.jsonl")).unwrap();
    let mut failures = Vec::new();
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let here = matches!(case["platform"].as_str(), Some("posix" | "linux"));
        if here
            && case.get("arg").is_some()
            && let Err(failure) = check(&case)
        {
            failures.push(format!("{} ({}): {failure}", case["id"], case["why"]));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
