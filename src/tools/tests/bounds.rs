//! Tests of limits not tested elsewhere (one below, exactly at, and one above each limit), and of properties that every
//! tool has.

use super::*;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

/// Returns a call with this path for every tool that takes a single path.
fn with_path(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("ReadFile", json!({"path": path})),
        ("Stat", json!({"path": path})),
        ("HashFile", json!({"path": path})),
        ("DiskUsage", json!({"path": path})),
        ("TextInspect", json!({"path": path})),
        ("ListDirectory", json!({"path": path})),
        ("Grep", json!({"pattern": "x", "path": path})),
        ("WriteFile", json!({"path": path, "content": "x"})),
        ("EditFile", json!({"path": path, "edits": [{"oldText": "x", "newText": "y"}]})),
        ("TextPatch", json!({"path": path, "operation": "delete", "startLine": 1})),
        ("CreateDirectory", json!({"path": path})),
        ("Delete", json!({"path": path, "recursive": true})),
        ("DeleteFile", json!({"path": path})),
        ("Move", json!({"source": path, "destination": "free"})),
        ("Move", json!({"source": "f", "destination": path})),
        ("Copy", json!({"source": path, "destination": "free"})),
        ("Copy", json!({"source": "f", "destination": path})),
        ("RunCommand", json!({"command": "true", "cwd": path})),
        ("CliRun", json!({"command": "true", "workingDirectory": path})),
        ("shell", json!({"command": "true", "working_directory": path})),
    ]
}

#[test]
fn name_and_path_lengths_have_the_limits_of_the_system() {
    let bench = Bench::new();
    bench.write("f", "x\n");
    let whole = |bytes: usize| {
        let mut path = String::from("d");
        while path.len() < bytes - bench.settings.workspace.as_os_str().len() - 1 {
            path.push_str(if path.len() % 200 == 199 { "/" } else { "d" });
        }
        path
    };
    let cases = [
        ("a name", "n".repeat(254), true),
        ("a name", "n".repeat(255), true),
        ("a name", "n".repeat(256), false),
        ("a path", whole(4094), true),
        ("a path", whole(4095), true),
        ("a path", whole(4096), false),
    ];
    for (what, path, taken) in cases {
        for (tool, arguments) in with_path(&path) {
            let planned = bench.plan(tool, arguments);
            let too_long = planned.err().filter(|error| error.message.contains("too long"));
            assert_eq!(too_long.is_none(), taken, "{what} of {} bytes: {tool}", path.len());
            assert!(
                too_long.is_none_or(|error| error.code == ErrorCode::InvalidRequest && error.message.contains("use a shorter"))
            );
        }
    }
    for length in [254, 255] {
        let name = "n".repeat(length);
        bench.output("WriteFile", json!({"path": name, "content": "x\n"}));
        bench.output("TextPatch", json!({"path": name, "operation": "replace", "startLine": 1, "content": "y"}));
        assert_eq!(bench.read(&name), b"y\n");
    }
    let deep = whole(4095);
    bench.output("WriteFile", json!({"path": deep, "content": "x\n"}));
    assert_eq!(bench.output("ReadFile", json!({"path": deep})), "x\n");
}

#[test]
fn tools_reject_invalid_paths() {
    let bench = Bench::new();
    bench.write("f", "x\n");
    for path in ["", "\0", "a\0b", "f\0", "~nobody/x"] {
        for (tool, arguments) in with_path(path) {
            let error = bench.plan(tool, arguments.clone()).map(|_| ()).expect_err(tool);
            assert_eq!(error.code, ErrorCode::InvalidRequest, "{tool} {path:?}: {error}");
        }
    }
    // A final slash means a directory, and nothing is below a file.
    for path in ["f/", "f/.", "f/x", "f/../f"] {
        for (tool, arguments) in with_path(path) {
            let result = bench.call(tool, arguments);
            let refused = result.status != ToolStatus::Succeeded || (tool == "Delete" && result.output_text.is_empty());
            assert!(refused, "{tool} {path}: {result:?}");
        }
    }
    assert_eq!(bench.read("f"), b"x\n");
}

#[test]
fn at_most_forty_links_are_followed() {
    for (links, taken) in [(39, true), (40, true), (41, false)] {
        let bench = Bench::new();
        bench.write("l0", "end\n");
        for link in 1..=links {
            symlink(format!("l{}", link - 1), bench.path(&format!("l{link}"))).unwrap();
        }
        for tool in ["ReadFile", "HashFile", "TextInspect"] {
            let result = bench.call(tool, json!({"path": format!("l{links}")}));
            assert_eq!(result.status == ToolStatus::Succeeded, taken, "{tool} {links}: {result:?}");
        }
    }
}

#[test]
fn files_up_to_the_size_limit_are_read_and_changed() {
    for (bytes, taken) in [(999, true), (1000, true), (1001, false)] {
        let bench = Bench::new();
        let bench = Bench { settings: ToolSettings { max_file_size_bytes: 1000, ..bench.settings.clone() }, ..bench };
        bench.write("f", format!("{}\n", "x".repeat(bytes - 1)));
        let cases = [
            ("ReadFile", json!({"path": "f"})),
            ("TextInspect", json!({"path": "f"})),
            ("TextPatch", json!({"path": "f", "operation": "insertBefore", "startLine": 2, "content": "y"})),
        ];
        for (tool, arguments) in cases {
            let result = bench.call(tool, arguments);
            assert_eq!(result.status == ToolStatus::Succeeded, taken, "{tool} {bytes}: {result:?}");
            assert!(result.error.is_none_or(|error| error.code == ErrorCode::FileTooLarge));
        }
    }
}

#[test]
fn directories_are_deleted_only_with_recursive() {
    let bench = Bench::new();
    bench.write("d/f", "x");
    fs::create_dir(bench.path("empty")).unwrap();
    for path in ["d", "empty"] {
        for arguments in [json!({"path": path}), json!({"path": path, "recursive": false})] {
            let (code, message) = bench.error("Delete", arguments);
            assert_eq!((code, message.contains("set `recursive`")), (ErrorCode::InvalidRequest, true), "{message}");
            assert!(bench.path(path).exists());
        }
        bench.output("Delete", json!({"path": path, "recursive": true}));
        assert!(!bench.path(path).exists());
    }
    bench.write("f", "x");
    bench.output("Delete", json!({"path": "f"}));
    bench.write("f", "x");
    bench.output("Delete", json!({"path": "f", "recursive": true}));
}

#[test]
fn existing_files_and_directories_are_never_replaced() {
    let bench = Bench::new();
    bench.write("f", "f");
    bench.write("g", "g");
    bench.write("d/x", "x");
    assert!(bench.output("CreateDirectory", json!({"path": "d"})).contains("already exists"));
    assert!(bench.output("CreateDirectory", json!({"path": "d/"})).contains("already exists"));
    assert_eq!(bench.error("CreateDirectory", json!({"path": "f"})).0, ErrorCode::InvalidRequest);
    bench.output("CreateDirectory", json!({"path": "new/below/it"}));
    assert!(bench.path("new/below/it").is_dir());
    for tool in ["Move", "Copy"] {
        for (source, destination) in [("f", "g"), ("f", "d"), ("d", "f"), ("d", "new"), ("f", "f"), ("d", "d/below")] {
            let (code, message) = bench.error(tool, json!({"source": source, "destination": destination}));
            assert_eq!(code, ErrorCode::InvalidRequest, "{tool} {source} {destination}: {message}");
        }
    }
    assert_eq!((bench.read("f"), bench.read("g"), bench.read("d/x")), (b"f".to_vec(), b"g".to_vec(), b"x".to_vec()));
}

#[test]
fn parent_directories_are_created_unless_disabled() {
    let bench = Bench::new();
    let write = |path: &str, make: Option<bool>| {
        bench.call("WriteFile", json!({"path": path, "content": "x", "createDirectories": make}))
    };
    let refused = write("a/b/f", Some(false)).error.unwrap();
    assert_eq!((refused.code, refused.message.contains("set `createDirectories`")), (ErrorCode::FileNotFound, true), "{refused}");
    assert!(!bench.path("a").exists());
    for (path, make) in [("here", Some(false)), ("a/b/f", Some(true)), ("c/d/f", None), ("a/b/g", Some(false))] {
        assert_eq!(write(path, make).status, ToolStatus::Succeeded, "{path}");
    }
}

#[test]
fn commands_read_only_the_given_stdin() {
    let bench = Bench::new();
    for (tool, stdin, printed) in [
        ("RunCommand", json!("a\nb"), "a\nb"),
        ("CliRun", json!("a"), "a"),
        ("shell", json!("a"), "a"),
        ("RunCommand", json!(""), ""),
        ("RunCommand", json!(null), ""),
    ] {
        let told = bench.output(tool, json!({"command": "cat; echo .", "stdin": stdin}));
        assert!(told.starts_with(&format!("Exit code: 0\n--- stdout ---\n{printed}.\n")), "{told}");
    }
}

#[test]
fn request_timeouts_have_a_default_and_limits() {
    let bench = Bench::new();
    let seconds = |timeout: Value| bench.plan("HttpRequest", json!({"url": "http://example.com/", "timeout": timeout}));
    assert_eq!(seconds(json!(null)).unwrap().timeout_seconds, 30);
    for (timeout, taken) in [(0, false), (1, true), (300, true), (601, false)] {
        assert_eq!(seconds(json!(timeout)).is_ok(), taken, "{timeout}");
    }
}

/// Returns every schema that is sent to providers, for each name of each tool.
fn schemas() -> Vec<(String, Value)> {
    let router = Bench::new().router();
    let names: Vec<&'static str> = crate::tools::registry::all_names();
    names.into_iter().map(|name| (name.to_owned(), router.definition(name).unwrap().input_schema)).collect()
}

/// Arguments whose meaning is clear from their names or from the description of their tool.
const PLAIN: &[&str] = &[
    "path",
    "file_path",
    "filePath",
    "pattern",
    "content",
    "createDirectories",
    "create_directories",
    "query",
    "url",
    "body",
    "headers",
    "command",
    "cwd",
    "workingDirectory",
    "working_directory",
    "stdin",
    "background",
    "text",
    "status",
    "todos",
    "plan",
    "step",
    "patch",
    "edits",
    "oldText",
    "newText",
    "replaceAll",
    "operation",
    "operations",
    "recursive",
    "hidden",
    "noIgnore",
    "ignoreCase",
    "ignore_case",
    "word",
    "before",
    "after",
    "lineNumbers",
    "line_numbers",
    "maxResults",
    "max_results",
    "offset",
];

fn check_schema(at: &str, schema: &Value) {
    let object = schema.as_object().unwrap_or_else(|| panic!("{at} is not an object"));
    for word in ["$ref", "$defs", "$schema", "anyOf", "oneOf", "allOf", "not", "definitions", "title", "format", "nullable"] {
        assert!(!object.contains_key(word), "{at}: some providers do not support {word}");
    }
    let kind = schema["type"].as_str().unwrap_or_else(|| panic!("{at} has no plain type: {schema}"));
    if let Some(values) = schema.get("enum") {
        assert!(values.as_array().unwrap().iter().all(Value::is_string), "{at}: {values}");
    }
    if kind == "array" {
        check_schema(&format!("{at}[]"), &schema["items"]);
    }
    if kind != "object" {
        return;
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        assert!(object.contains_key("additionalProperties"), "{at} does not describe its content");
        return;
    };
    assert_eq!(schema["additionalProperties"], json!(false), "{at}");
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        assert!(properties.contains_key(name.as_str().unwrap()), "{at} requires {name}, which is not defined");
    }
    for (name, inner) in properties {
        let at = format!("{at}.{name}");
        let is_plain = PLAIN.contains(&name.as_str());
        let described = inner["description"].as_str();
        assert!(described.is_some() || is_plain, "{at} has no description");
        assert!(described.is_none_or(|text| text.len() > 5 && text.ends_with('.')), "{at}: {described:?}");
        check_schema(&at, inner);
    }
}

#[test]
fn every_schema_is_accepted_by_all_providers() {
    let schemas = schemas();
    assert!(schemas.len() > 60, "{}", schemas.len());
    for (name, schema) in &schemas {
        assert_eq!(schema["type"], "object", "{name}");
        check_schema(name, schema);
    }
}

#[test]
fn exactly_the_required_arguments_are_required() {
    // Without its `command`, the call is treated as EditFile, which requires other arguments.
    for (name, schema) in schemas().into_iter().filter(|(name, _)| !name.starts_with("str_replace")) {
        let bench = Bench::new();
        let required: Vec<String> =
            schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap().to_owned()).collect();
        let missing = |arguments: Value| {
            bench.plan(&name, arguments).err().filter(|error| error.message.contains("missing field")).map(|error| error.message)
        };
        match required.first() {
            None => assert_eq!(missing(json!({})), None, "{name}"),
            Some(first) => assert!(missing(json!({})).is_some_and(|message| message.contains(&format!("`{first}`"))), "{name}"),
        }
    }
}

/// Phrases by which an error tells the model what to do next.
const NEXT: &[&str] = &[
    "give",
    "omit",
    "specify",
    "remove",
    "use ",
    "set ",
    "read ",
    "try again",
    "ask the user",
    "call ",
    "choose",
    "leave",
    "look",
    "list ",
    "name ",
    "make ",
    "write ",
    "add ",
    "send ",
    "expected",
    "did you mean",
    "must be",
    "put it",
    "find it",
    "at most",
    "at least",
    "take",
    "Stat",
    "with `",
    "for example",
    "start one",
    "available tools:",
    "fix",
    "start ",
    "change it",
    "need",
    "search ",
    "continue",
    "keep ",
    "known IDs:",
    "sections:",
];

#[test]
fn every_error_has_a_hint() {
    let bench = Bench::new();
    bench.write("f", "one\ntwo\none\n");
    bench.write("g", "x");
    bench.write("d/f", "x");
    bench.write("binary", [0_u8, 1, 2, 3]);
    bench.write("large", vec![b'x'; 2000]);
    bench.write("secret", "PASSWORD=Xk29fjQ81ms0Zp\n");
    symlink("circle", bench.path("circle")).unwrap();
    let _socket = UnixListener::bind(bench.path("socket")).unwrap();
    let bench = Bench { settings: ToolSettings { max_file_size_bytes: 1000, ..bench.settings.clone() }, ..bench };
    let mut calls: Vec<(&str, Value)> =
        ["", "a\0", "none", "nono/x", "f/x", "d/", "circle", "socket", "~who/x", "binary", "large", "secret"]
            .into_iter()
            .flat_map(with_path)
            .collect();
    let name = "n".repeat(256);
    calls.extend(with_path(&name));
    calls.extend([
        ("Frob", json!({})),
        ("ReadFile", json!({})),
        ("ReadFile", json!({"path": 7})),
        ("ReadFile", json!({"pth": "f"})),
        ("ReadFile", json!({"path": "f", "file": "f"})),
        ("ReadFile", json!({"path": "f", "limit": 0})),
        ("ReadFile", json!({"path": "f", "offset": 99})),
        ("ReadFile", json!({"path": "f", "encoding": "x"})),
        ("HashFile", json!({"path": "f", "algorithm": "x"})),
        ("DiskUsage", json!({"depth": 21})),
        ("TextInspect", json!({"path": "f", "mode": "x"})),
        ("TextInspect", json!({"path": "f", "section": "x"})),
        ("TextPatch", json!({"path": "f", "operation": "delete", "startLine": 9})),
        ("TextPatch", json!({"path": "f", "operation": "x", "startLine": 1})),
        ("EditFile", json!({"path": "f", "edits": []})),
        ("EditFile", json!({"path": "f", "edits": [{"oldText": "one", "newText": "x"}]})),
        ("EditFile", json!({"path": "f", "edits": [{"oldText": "zzz", "newText": "x"}]})),
        ("EditFile", json!({"path": "f", "edits": [{"oldText": "", "newText": "x"}]})),
        ("EditFile", json!({"path": "f", "edits": "x"})),
        ("WriteFile", json!({"path": "new/f", "content": "x", "createDirectories": false})),
        ("Delete", json!({"path": "d"})),
        ("DeleteFile", json!({"path": "d"})),
        ("Move", json!({"source": "f", "destination": "g"})),
        ("Move", json!({"source": "d", "destination": "d/x"})),
        ("Copy", json!({"source": "f", "destination": "d"})),
        ("CreateDirectory", json!({"path": "f"})),
        ("Grep", json!({"pattern": ""})),
        ("Grep", json!({"pattern": "x", "context": 21})),
        ("Glob", json!({"pattern": ""})),
        ("RunCommand", json!({"command": ""})),
        ("RunCommand", json!({"command": "a\0"})),
        ("RunCommand", json!({"command": "x", "timeout": 0})),
        ("RunCommand", json!({"command": "x", "background": true, "timeout": 5})),
        ("CliRun", json!({"command": "x", "timeout": 601})),
        ("CliRead", json!({"id": "s9"})),
        ("CliStop", json!({"id": "s9"})),
        ("CliWrite", json!({"id": "s9", "text": "x"})),
        ("HttpRequest", json!({"url": "ftp://example.com/"})),
        ("HttpRequest", json!({"url": "http://example.com/", "timeout": 0})),
    ]);
    let mut silent = Vec::new();
    for (tool, arguments) in calls {
        let Some(error) = bench.call(tool, arguments.clone()).error else { continue };
        let plain = error.message.to_lowercase();
        if !NEXT.iter().any(|word| plain.contains(&word.to_lowercase())) {
            silent.push(format!("{tool} {:.60}: {error}", arguments.to_string()));
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

/// Normalizes text so that spellings of an argument's name, such as `start_line` and `startLine`, compare equal.
fn plain(text: &str) -> String {
    text.replace('_', "").to_lowercase()
}

/// Returns a valid call for each tool, to which arguments can be added.
fn plain_call(tool: &str) -> Value {
    match tool {
        "Grep" | "grep" | "Glob" => json!({"pattern": "x"}),
        "TextPatch" => json!({"path": "f", "operation": "delete", "startLine": 1}),
        "RunCommand" | "CliRun" | "shell" | "CliSession" => json!({"command": "true"}),
        "HttpRequest" => json!({"url": "http://example.com/"}),
        "TextInspect" => json!({"path": "f", "query": "x"}),
        _ => json!({"path": "f"}),
    }
}

#[test]
fn tools_reject_numbers_outside_their_schema() {
    let bench = Bench::new();
    bench.write("f", "x\n");
    let mut looked = Vec::new();
    for name in crate::tools::registry::all_names() {
        let own = bench.router().full_name(name).unwrap_or_else(|| name.to_owned());
        // These tools need a running session.
        if own == "CliRead" || own == "CliWrite" {
            continue;
        }
        let schema = bench.router().definition(name).unwrap().input_schema;
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            let bound = |bound: &str| schema[bound].as_u64();
            let outside = [bound("minimum").and_then(|least| least.checked_sub(1)), bound("maximum").map(|most| most + 1)];
            for number in outside.into_iter().flatten() {
                let mut arguments = plain_call(if name == "grep" { name } else { &own });
                // Arguments with the same meaning cannot be combined.
                if field == "start_line" || field == "startLine" {
                    arguments.as_object_mut().unwrap().remove("startLine");
                }
                arguments[field.as_str()] = number.into();
                let (code, message) = bench.error(name, arguments.clone());
                assert!(
                    code == ErrorCode::InvalidRequest && plain(&message).contains(&plain(&format!("`{field}`"))),
                    "{name} {arguments}: {message}"
                );
                looked.push(format!("{own}.{field}"));
            }
        }
    }
    for field in [
        "ReadFile.offset",
        "ReadFile.limit",
        "Grep.maxResults",
        "Grep.offset",
        "Glob.maxResults",
        "ListDirectory.depth",
        "RunCommand.timeout",
    ] {
        assert!(looked.iter().any(|one| one == field), "{field}: {looked:?}");
    }
}
