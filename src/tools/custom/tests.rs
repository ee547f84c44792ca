use super::*;
use crate::protocol::{Action, ErrorCode, FileDiffs, Proposal, ToolError};
use crate::tools::tests::Bench;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

fn parsed(text: &str) -> Result<CustomTool, ManifestError> {
    CustomTool::parse(text.as_bytes(), Source { file: PathBuf::from("/c/tools/x.toml"), owner: ToolOwner::User })
}

fn wrong(text: &str) -> String {
    parsed(text).map(|tool| format!("{tool:?}")).unwrap_err().to_string()
}

/// Creates a bench that contains these manifests and the programs that they run.
fn bench(manifests: &[(&str, &str)], programs: &[(&str, &str)]) -> Bench {
    let mut bench = Bench::new();
    let directory = bench.root.join("tools");
    fs::create_dir(&directory).unwrap();
    for (name, text) in programs {
        fs::write(directory.join(name), text).unwrap();
        fs::set_permissions(directory.join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    for (name, text) in manifests {
        let source = Source { file: directory.join(name), owner: ToolOwner::User };
        bench.sources.custom.push(Arc::new(CustomTool::parse(text.as_bytes(), source).unwrap()));
    }
    bench
}

const ECHO: &str = "name = \"echo_it\"\ndescription = \"Gives back what it gets.\"\ncommand = [\"./echo\"]\ntimeout = 20\n\
    [input_schema]\ntype = \"object\"\nrequired = [\"text\"]\nadditionalProperties = false\n\
    [input_schema.properties.text]\ntype = \"string\"\nmaxLength = 40\n[input_schema.properties.count]\ntype = \"integer\"\n";

#[test]
fn manifest_errors_name_the_line_and_the_expected_value() {
    let start = "name = \"x\"\ndescription = \"d\"\n";
    let cases = [
        ("name = \"x\"\n", "line 1", "description"),
        ("name = \"1x\"\ndescription = \"d\"\ncommand = [\"a\"]\n", "line 1", "not a valid tool name"),
        (&format!("name = \"{}\"\ndescription = \"d\"\ncommand = [\"a\"]\n", "x".repeat(65)), "line 1", "not a valid tool name"),
        ("description = \"d\"\nname = \"bash\"\ncommand = [\"a\"]\n", "line 2", "built-in tool RunCommand"),
        ("description = \"d\"\nname = \"readfile\"\ncommand = [\"a\"]\n", "line 2", "built-in tool ReadFile"),
        (start, "line 1", "missing `command` or `steps`"),
        (&format!("{start}command = []\n"), "line 3", "`command` is empty"),
        (&format!("{start}comand = [\"a\"]\n"), "line 3", "unknown field `comand`"),
        (&format!("{start}command = [\"a\"]\ntimeout = 0\n"), "line 4", "1 to 600 seconds"),
        (&format!("{start}command = [\"a\"]\ntimeout = 601\n"), "line 4", "1 to 600 seconds"),
        (&format!("{start}command = [\"a\"]\nnetwork = \"allow\"\n"), "line 4", "`deny` or `policy`"),
        (
            &format!("{start}command = [\"a\"]\n\n[input_schema]\ntype = \"strin\"\n"),
            "line 5",
            "`input_schema` is not a valid schema",
        ),
        (&format!("{start}command = [\"a\"]\n[input_schema]\ntype = \"string\"\n"), "line 4", "arguments are named"),
        (
            &format!("{start}command = [\"a\"]\n[input_schema]\ntype = \"object\"\n\"$ref\" = \"file:///etc/passwd\"\n"),
            "line 4",
            "only refer to itself",
        ),
        (&format!("{start}command = [\"a\", \"{{x}}\"]\narguments = \"argv\"\n"), "line 3", "not a property"),
        (&format!("{start}command = [\"a\"]\noutput_schema = {{ type = \"object\" }}\n"), "line 3", "output = \"json\""),
        (
            &format!("{start}command = [\"a\"]\neffects = \"reads\"\nsandbox = \"workspace-write\"\n"),
            "line 5",
            "runs the tool read-only",
        ),
        (&format!("{start}input_schema_file = \"../../etc/passwd\"\ncommand = [\"a\"]\n"), "line 3", "`input_schema`"),
        (&format!("{start}steps = []\n"), "line 3", "`steps` has 0 entries"),
        (&format!("{start}steps = [{{ tool = \"x\" }}]\n"), "line 3", "a step of itself"),
        (
            &format!("{start}steps = [{{ tool = \"Grep\", arguments = {{ pattern = \"{{input.y}}\" }} }}]\n"),
            "line 3",
            "{input.y}",
        ),
        (
            &format!("{start}steps = [{{ tool = \"y\", arguments = {{ a = \"{{steps[0].output}}\" }} }}]\n"),
            "line 3",
            "an earlier step",
        ),
        (&format!("{start}timeout = 5\nsteps = [{{ tool = \"Grep\" }}]\n"), "line 3", "each of the `steps` has its own"),
    ];
    for (text, line, part) in cases {
        let told = wrong(text);
        assert!(told.contains(line) && told.contains(part) && told.ends_with("the tool is not loaded"), "{text}\n{told}");
    }
    let told = CustomTool::parse(b"name = \"x\"\n\xff", Source { file: "/x".into(), owner: ToolOwner::User }).unwrap_err();
    assert_eq!((told.line, told.message.contains("UTF-8")), (Some(2), true));
}

#[test]
fn the_manifest_schema_accepts_everything_that_the_parser_accepts() {
    let schema = schema::ToolSchema::new(manifest_schema()).unwrap();
    let as_json = |text: &str| serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    assert_eq!(schema.check(&as_json(ECHO)), Ok(()));
    assert!(schema.check(&as_json("name = \"x\"\ndescription = \"d\"\n")).is_err());
    assert!(schema.check(&as_json("name = \"x\"\ndescription = \"d\"\ncommand = [\"a\"]\ntimeout = 601\n")).is_err());
}

#[test]
fn arguments_are_validated_before_anything_runs() {
    let bench = bench(&[("e.toml", ECHO)], &[("echo", "#!/bin/sh\ntouch ran\ncat\n")]);
    let cases = [
        (json!({}), "`text` is missing"),
        (json!({"text": 7}), "`text`"),
        (json!({"text": "a", "other": 1}), "`other` is not an argument of this tool"),
        (json!({"text": "a", "count": "x"}), "`count`"),
        (json!({"text": "x".repeat(41)}), "`text`"),
    ];
    for (arguments, part) in cases {
        let (code, message) = bench.error("echo_it", arguments);
        assert_eq!(code, ErrorCode::InvalidRequest, "{message}");
        assert!(message.contains(part) && message.contains("schema"), "{message}");
    }
    assert!(!bench.path("ran").exists());
    // The maximum length is 40 characters.
    let told = bench.output("echo_it", json!({"text": "x".repeat(40)}));
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), json!({"text": "x".repeat(40)}));
    assert!(bench.path("ran").exists(), "it runs in the workspace");
}

#[test]
fn argv_arguments_are_single_words_whatever_they_contain() {
    let manifest = "name = \"show\"\ndescription = \"d\"\narguments = \"argv\"\n\
        command = [\"./show\", \"--name={name}\", \"{count}\", \"{flag}\"]\n[input_schema]\ntype = \"object\"\n\
        properties = { name = { type = \"string\" }, count = { type = \"integer\" }, flag = { type = \"boolean\" } }\n";
    let program = "#!/bin/sh\nfor word; do printf '<%s>' \"$word\"; done\n";
    let bench = bench(&[("s.toml", manifest)], &[("show", program)]);
    let text = "a b'; touch x; $(touch x) `touch x` \n{count} {name}";
    assert_eq!(bench.output("show", json!({"name": text, "count": 3, "flag": true})), format!("<--name={text}><3><true>"));
    // A missing argument leaves no word, and no argument becomes an option.
    assert_eq!(bench.output("show", json!({"count": 3})), "<3>");
    let (_, message) = bench.error("show", json!({"count": -3}));
    assert!(message.contains("read it as an option"), "{message}");
    assert!(!bench.path("x").exists());
}

#[test]
fn a_program_that_changed_after_the_plan_does_not_run() {
    let bench = bench(&[("e.toml", ECHO)], &[("echo", "#!/bin/sh\necho one\n")]);
    let plan = bench.plan("echo_it", json!({"text": "a"})).unwrap();
    let before = plan.actions.clone();
    fs::write(bench.root.join("tools/echo"), "#!/bin/sh\ntouch evil\n").unwrap();
    let result = bench.run(plan);
    assert_eq!(result.error.unwrap().code, ErrorCode::Conflict);
    assert!(!bench.path("evil").exists());
    let after = bench.plan("echo_it", json!({"text": "a"})).unwrap().actions;
    let print = |actions: &[Action]| match actions {
        [Action::Custom { fingerprint, .. }] => fingerprint.clone(),
        other => panic!("{other:?}"),
    };
    assert_ne!(print(&before), print(&after), "another content is another tool");
}

#[test]
fn the_output_of_a_custom_tool_is_reported_and_validated() {
    let text = |name: &str, more: &str| format!("name = \"{name}\"\ndescription = \"d\"\ncommand = [\"./{name}\"]\n{more}");
    let shape = "output = \"json\"\noutput_schema = { type = \"object\", required = [\"n\"], properties = { n = { type = \"integer\" } } }\n";
    let all = [("good", shape), ("bad", shape), ("shape", shape), ("fails", ""), ("plain", ""), ("much", "output = \"json\"\n")];
    let manifests: Vec<(String, String)> = all.iter().map(|(name, more)| (format!("{name}.toml"), text(name, more))).collect();
    let manifests: Vec<(&str, &str)> = manifests.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let bench = bench(
        &manifests,
        &[
            ("good", "#!/bin/sh\necho '{\"n\": 1}'\necho noise >&2\n"),
            ("bad", "#!/bin/sh\necho 'n = 1'\n"),
            ("shape", "#!/bin/sh\necho '{\"n\": \"one\"}'\n"),
            ("fails", "#!/bin/sh\necho out\necho why >&2\nexit 3\n"),
            ("plain", "#!/bin/sh\necho out\necho aside >&2\n"),
            ("much", "#!/bin/sh\nhead -c 200000 /dev/zero | tr '\\0' 1\n"),
        ],
    );
    assert_eq!(bench.output("good", json!({})), "{\"n\": 1}");
    assert_eq!(bench.output("plain", json!({})), "out\n--- stderr ---\naside");
    for (name, part) in
        [("bad", "did not print a single JSON value"), ("shape", "`n`"), ("fails", "exit code 3"), ("much", "200000 bytes")]
    {
        let result = bench.call(name, json!({}));
        let error = result.error.unwrap();
        assert_eq!(error.code, ErrorCode::ToolExecutionFailed);
        assert!(error.message.contains(part), "{}", error.message);
        assert!(name != "fails" || result.output_text.contains("why"), "{}", result.output_text);
    }
}

#[test]
fn each_step_is_checked_for_its_own_actions_and_steps_run_in_order() {
    let chain = "name = \"find_it\"\ndescription = \"d\"\n\
        steps = [\n { tool = \"Grep\", arguments = { pattern = \"{input.pattern}\", path = \"src\" } },\n \
        { tool = \"echo_it\", arguments = { text = \"found: {steps[0].output}\" } },\n]\n\
        [input_schema]\ntype = \"object\"\nrequired = [\"pattern\"]\nproperties = { pattern = { type = \"string\" } }\n";
    let echo = ECHO.replace("maxLength = 40\n", "");
    let bench = bench(&[("e.toml", &echo), ("c.toml", chain)], &[("echo", "#!/bin/sh\ncat\n")]);
    bench.write("src/a.txt", "needle here {steps[0].output}\n");
    let plan = bench.plan("find_it", json!({"pattern": "needle"})).unwrap();
    assert!(matches!(plan.actions.as_slice(), [Action::Read { .. }, Action::Custom { .. }]), "{:?}", plan.actions);
    assert!(plan.summary.contains("1. ") && plan.summary.contains("2. echo_it"), "{}", plan.summary);
    let told: Value = serde_json::from_str(&bench.run(plan).output_text).unwrap();
    let text = told["text"].as_str().unwrap();
    // The output of a step is never read as a placeholder.
    assert!(text.starts_with("found: ") && text.contains("needle here {steps[0].output}"), "{text}");
    let (code, message) = bench.error("find_it", json!({"pattern": "("}));
    assert_eq!(code, ErrorCode::InvalidRequest);
    assert!(message.starts_with("step 1, Grep:"), "{message}");
}

#[test]
fn steps_whose_actions_are_unknown_in_advance_are_rejected() {
    let chain = |step: &str| {
        format!("name = \"c\"\ndescription = \"d\"\nsteps = [{{ tool = \"Grep\", arguments = {{ pattern = \"x\" }} }}, {step}]\n")
    };
    let argv = "name = \"words\"\ndescription = \"d\"\narguments = \"argv\"\ncommand = [\"./echo\", \"{text}\"]\n\
        input_schema = { type = \"object\", properties = { text = { type = \"string\" } } }\n";
    for step in [
        "{ tool = \"RunCommand\", arguments = { command = \"{steps[0].output}\" } }",
        "{ tool = \"ReadFile\", arguments = { path = \"{steps[0].output}\" } }",
        "{ tool = \"WriteFile\", arguments = { path = \"a\", content = \"{steps[0].output}\" } }",
        "{ tool = \"words\", arguments = { text = \"{steps[0].output}\" } }",
    ] {
        let text = chain(step);
        let bench = bench(&[("w.toml", argv), ("c.toml", &text)], &[("echo", "#!/bin/sh\ncat\n")]);
        let (code, message) = bench.error("c", json!({}));
        assert_eq!(code, ErrorCode::InvalidRequest);
        assert!(message.contains("cannot be checked"), "{step}: {message}");
    }
    // A disabled tool is not available as a step either.
    let text = "name = \"c\"\ndescription = \"d\"\nsteps = [{ tool = \"grep\", arguments = { pattern = \"x\" } }]\n";
    let mut bench = bench(&[("c.toml", text)], &[]);
    let denied = || ToolError::new(ErrorCode::PolicyDenied, "the tool `Grep` is disabled");
    bench.settings.may_use = Arc::new(move |name| if name == "Grep" { Err(denied()) } else { Ok(()) });
    assert_eq!(bench.error("c", json!({})).0, ErrorCode::PolicyDenied);
}

#[test]
fn text_tool_settings_apply_to_reading_steps() {
    let text = "name = \"c\"\ndescription = \"d\"\nsteps = [{ tool = \"TextRead\", arguments = { path = \"a.rs\" } }]\n";
    let mut bench = bench(&[("c.toml", text)], &[]);
    bench.write("a.rs", "fn a() {}\n");
    assert!(bench.output("c", json!({})).contains("fn a()"));
    bench.settings.text.allowed_extensions = vec!["md".to_owned()];
    let (code, message) = bench.error("c", json!({}));
    assert_eq!(code, ErrorCode::PermissionDenied);
    assert!(message.starts_with("step 1, TextRead:") && message.contains("allowed_extensions"), "{message}");
}

#[test]
fn changes_of_several_steps_are_merged_even_if_a_later_step_fails() {
    let proposal = |name: &str| {
        Some(Box::new(Proposal {
            summary: format!("changed {name}"),
            diff: FileDiffs::read(&format!("diff of {name}\n")),
            paths: vec![PathBuf::from(name), PathBuf::from("/both")],
            bytes: 1,
            notes: Vec::new(),
            ..Proposal::default()
        }))
    };
    let whole = pipeline::combine_proposals(proposal("/a"), proposal("/b")).unwrap();
    assert_eq!((whole.summary, whole.diff.to_string()), ("changed /a; changed /b".into(), "diff of /a\ndiff of /b\n".into()));
    assert_eq!((whole.paths, whole.bytes), (["/a", "/both", "/b"].map(PathBuf::from).to_vec(), 2));
    assert_eq!(pipeline::combine_proposals(proposal("/a"), None), proposal("/a"));
    assert_eq!(pipeline::combine_proposals(None, proposal("/a")), proposal("/a"));
}

#[test]
fn project_tools_are_trusted_only_with_the_reviewed_content() {
    let mut bench = Bench::new();
    let root = bench.settings.workspace.clone();
    let manifest = "name = \"lint\"\ndescription = \"d\"\ncommand = [\"./lint.sh\"]\n";
    bench.write(".aye/tools/lint.toml", manifest);
    bench.write(".aye/tools/lint.sh", "#!/bin/sh\necho ok\n");
    let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
    let seen = |manifest: &str, program: &str| {
        BTreeMap::from([(".aye/tools/lint.toml".to_owned(), hash(manifest)), (".aye/tools/lint.sh".to_owned(), hash(program))])
    };
    for (known, expected) in [
        (seen(manifest, "#!/bin/sh\necho ok\n"), true),
        (seen(manifest, "#!/bin/sh\nevil\n"), false),
        (seen("other", "#!/bin/sh\necho ok\n"), false),
        (BTreeMap::new(), false),
    ] {
        let source = Source {
            file: root.join(".aye/tools/lint.toml"),
            owner: ToolOwner::Project { root: root.clone(), hashes: Arc::new(known) },
        };
        bench.sources.custom = vec![Arc::new(CustomTool::parse(manifest.as_bytes(), source).unwrap())];
        let plan = bench.plan("lint", json!({})).unwrap();
        assert!(matches!(plan.actions.as_slice(), [Action::Custom { known, .. }] if *known == expected), "{:?}", plan.actions);
    }
}

#[test]
fn interpreted_scripts_are_part_of_the_tool_however_they_are_named() {
    let mut bench = Bench::new();
    let root = bench.settings.workspace.clone();
    bench.write("scripts/run.sh", "echo ok\n");
    bench.write("top.sh", "echo ok\n");
    bench.write("state.json", "1");
    let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
    for (words, script) in
        [("\"bash\", \"scripts/run.sh\"", "scripts/run.sh"), ("\"sh\", \"-e\", \"top.sh\", \"state.json\"", "top.sh")]
    {
        let manifest = format!("name = \"lint\"\ndescription = \"d\"\ncommand = [{words}]\n");
        bench.write(".aye/tools/lint.toml", &manifest);
        bench.write(script, "echo ok\n");
        let seen = BTreeMap::from([(".aye/tools/lint.toml".to_owned(), hash(&manifest)), (script.to_owned(), hash("echo ok\n"))]);
        let source = Source {
            file: root.join(".aye/tools/lint.toml"),
            owner: ToolOwner::Project { root: root.clone(), hashes: Arc::new(seen) },
        };
        bench.sources.custom = vec![Arc::new(CustomTool::parse(manifest.as_bytes(), source).unwrap())];
        let told = |bench: &Bench| match bench.plan("lint", json!({})).unwrap().actions.as_slice() {
            [Action::Custom { known, fingerprint, .. }] => (*known, fingerprint.clone()),
            other => panic!("{other:?}"),
        };
        let (known, before) = told(&bench);
        assert!(known, "{words}");
        bench.write("state.json", "2");
        assert_eq!(told(&bench), (true, before.clone()), "what it reads may change");
        let plan = bench.plan("lint", json!({})).unwrap();
        bench.write(script, "echo evil\n");
        let (known, after) = told(&bench);
        assert!(!known && after != before, "{words}");
        assert_eq!(bench.run(plan).error.unwrap().code, ErrorCode::Conflict);
    }
}

#[test]
fn text_tool_settings_apply_to_writing_steps() {
    let text = "name = \"c\"\ndescription = \"d\"\nsteps = [{ tool = \"TextCreate\", arguments = { filePath = \"{input.at}\", content = \"x\" } }]\n\
        input_schema = { type = \"object\", properties = { at = { type = \"string\" } } }\n";
    let mut bench = bench(&[("c.toml", text)], &[]);
    bench.settings.text.allowed_extensions = vec!["md".into()];
    let (code, message) = bench.error("c", json!({"at": "a.rs"}));
    assert_eq!((code, message.contains("allowed_extensions")), (ErrorCode::PermissionDenied, true), "{message}");
    bench.output("c", json!({"at": "a.md"}));
    bench.settings.text.enabled = false;
    assert_eq!(bench.error("c", json!({"at": "b.md"})).0, ErrorCode::PermissionDenied);
}
