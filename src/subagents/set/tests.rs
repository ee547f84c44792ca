//! Tests for agents loaded from files in every format, including invalid files.

use super::*;
use crate::protocol::Effort;
use proptest::prelude::*;

fn file(shown: &str, text: &str) -> AgentFile {
    AgentFile { shown: shown.to_owned(), content: Ok(text.as_bytes().to_vec()), origin: AgentOrigin::Project }
}

fn one(shown: &str, text: &str) -> AgentDefinition {
    let set = AgentSet::new(&[file(shown, text)], Vec::new());
    assert!(set.broken.is_empty(), "{:?}", set.broken);
    set.agents.into_iter().find(|agent| agent.origin == AgentOrigin::Project).unwrap()
}

#[test]
fn all_fields_of_a_claude_code_agent_are_parsed() {
    let agent = one(
        ".claude/agents/reviewer.md",
        "---\nname: Code Reviewer\ndescription: >-\n  Reviews\n  code \u{1b}[31m.\ntools: Read, Grep, Bash(git diff:*)\n\
         disallowedTools: [WebFetch]\nmodel: anthropic/claude-x\neffort: high\nmaxTurns: 12\ncolor: blue\n---\n\nYou review.\n",
    );
    assert_eq!((agent.name.as_str(), agent.description.as_str()), ("Code Reviewer", "Reviews code ."));
    assert_eq!(agent.tools.unwrap(), ["Read", "Grep", "Bash(git diff:*)"]);
    assert_eq!(agent.denied_tools, ["WebFetch"]);
    assert_eq!(
        (agent.model.as_deref(), agent.effort, agent.max_steps),
        (Some("anthropic/claude-x"), Some(Effort::High), Some(12))
    );
    assert_eq!(agent.prompt, "You review.");
}

#[test]
fn all_fields_of_a_codex_agent_are_parsed() {
    let agent = one(
        ".codex/agents/explorer.toml",
        "name = \"explorer\"\ndescription = \"Looks around\"\nmodel = \"openai/gpt-x\"\nmodel_reasoning_effort = \"low\"\n\
         sandbox_mode = \"read-only\"\ndeveloper_instructions = \"\"\"\nStay\nin scope.\n\"\"\"\n",
    );
    assert_eq!((agent.name.as_str(), agent.prompt.as_str(), agent.effort), ("explorer", "Stay\nin scope.", Some(Effort::Low)));
    assert_eq!((agent.tools, agent.model.as_deref()), (None, Some("openai/gpt-x")));
}

#[test]
fn front_matter_that_is_not_valid_yaml_is_read_line_by_line_with_a_warning() {
    let text = "---\nname: helper\ndescription: Use it. Examples: <example>user: \"x: y\"</example>\n  More: text\n\
                tools:\n- Read\n- Grep\nname: other\n---\nBody\n";
    let agent = one("helper.md", text);
    assert_eq!(agent.description, "Use it. Examples: <example>user: \"x: y\"</example> More: text");
    assert_eq!((agent.name.as_str(), agent.tools.unwrap()), ("helper", vec!["Read".to_owned(), "Grep".to_owned(),]));
    let report = check(&file("helper.md", text));
    assert!(report.errors.is_empty() && report.warnings[0].message.contains("read as plain text"), "{report:?}");
}

#[test]
fn invalid_files_are_errors_with_line_and_reason() {
    for (name, text, part) in [
        ("a.md", "no front matter", "a.md:1: the file does not begin with front matter"),
        ("a.md", "---\nname: a\n---\nx", "a.md:1: `description` is missing"),
        ("a.md", "---\nname: a/b\ndescription: x\n---\nx", "a.md:2: the name `a/b` may contain only"),
        ("a.md", "---\nname: \"a\\e[2J\"\ndescription: x\n---\nx", "a.md:2: the name `a\\u{1b}[2J` may"),
        ("a.md", "---\nname: a\ndescription: [x]\n---\nx", "a.md:3: `description` must be text"),
        ("a.md", "---\nname: a\ndescription: x\ntools: {a: b}\n---\nx", "a.md:4: `tools` must be a list of names"),
        ("a.toml", "name = ", "a.toml:1: the file is not valid TOML"),
        ("a.toml", "name = \"a\"\ndescription = 3", "a.toml:2: `description` has the wrong type"),
        ("a.toml", "name = \"a\"\ndescription = \"x\"\ntools = \"all\"", "a.toml:3: `tools` has the wrong type"),
    ] {
        let report = check(&file(name, text));
        let errors: Vec<String> = report.errors.iter().map(|fault| fault.with_file(&report.file)).collect();
        assert!(errors.iter().any(|error| error.starts_with(part)), "{text}: {errors:?}");
    }
    let large = format!("---\nname: a\ndescription: x\n---\n{}", "x".repeat(65 << 10));
    assert!(check(&file("a.md", &large)).errors[0].message.contains("the limit is 64 KB"));
    let many = format!("---\nname: a\ndescription: x\ntools: {}\n---\nx", "Read, ".repeat(300));
    assert!(check(&file("a.md", &many)).errors[0].message.contains("more than 200"));
}

#[test]
fn the_first_agent_with_a_name_is_used_and_replaces_a_built_in_agent() {
    let text = |about: &str| format!("---\nname: Explore\ndescription: {about}\n---\nx");
    let set = AgentSet::new(&[file("one.md", &text("first")), file("two.md", &text("second"))], Vec::new());
    assert_eq!(set.find("explore").unwrap().description, "first");
    let hidden: Vec<&str> = set.hidden.iter().map(|hidden| hidden.file.as_str()).collect();
    assert_eq!(hidden, ["two.md", "built-in"]);
    assert!(AgentSet::new(&[], Vec::new()).is_built_in() && !set.is_built_in());
}

#[test]
fn the_number_of_agents_is_limited() {
    let files: Vec<AgentFile> =
        (0..1_000).map(|n| file(&format!("a{n}.md"), &format!("---\nname: a{n}\ndescription: x\n---\nx"))).collect();
    let set = AgentSet::new(&files, Vec::new());
    assert_eq!((set.agents.len(), set.broken.len()), (502, 500));
    assert!(set.find("explore").is_some() && set.notice().unwrap().contains("and 499 more"));
}

proptest! {
    #[test]
    fn arbitrary_files_do_not_panic(text in "(---\n)?[a-c:\\[\\]{}&*!|>'\"%@`= \n#?,~-]{0,120}(\n---\n)?") {
        let _ = check(&file("a.md", &text));
        let _ = check(&file("a.toml", &text));
    }
}

#[test]
fn an_agent_of_a_plugin_can_always_be_named_with_its_plugin() {
    let agent = file("plugin:hookify/agents/analyzer.md", "---\nname: analyzer\ndescription: Analyzes\n---\nAnalyze.\n");
    let mut set = AgentSet::new(&[], Vec::new());
    set.add_plugin("hookify", &[agent]);
    assert_eq!(set.find("hookify:analyzer"), set.find("analyzer"));
    assert!(set.find("hookify:analyzer").is_some());
    assert!(set.find("other:analyzer").is_none() && set.find("hookify:explore").is_none());
}

#[test]
fn a_model_without_a_provider_is_kept_and_inherit_is_not() {
    for (model, kept) in [("gpt-5.4", Some("gpt-5.4")), ("opus", Some("opus")), ("Inherit", None)] {
        let text = format!("---\nname: a\ndescription: A\nmodel: {model}\n---\nDo it.\n");
        assert_eq!(one(".claude/agents/a.md", &text).model.as_deref(), kept, "{model}");
    }
}
