//! Tests of the tool that loads skills, and of calls that need approval because of a skill.

use super::description::describe;
use crate::ports::ToolRouter;
use crate::protocol::{ErrorCode, ToolStatus};
use crate::skills::{Folder, Origin, SkillFolders, SkillSet};
use crate::tools::session_skills::SessionSkills;
use crate::tools::tests::Bench;
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;

fn skill(bench: &Bench, name: &str, more: &str, body: &str) {
    bench.write(
        &format!(".aye/skills/{name}/SKILL.md"),
        format!("---\nname: {name}\ndescription: Does {name}.\n{more}---\n{body}\n"),
    );
}

/// Returns the skills that the workspace contains at this moment.
fn set(bench: &Bench) -> Arc<SkillSet> {
    let workspace = bench.settings.workspace.clone();
    let folder = Folder {
        path: workspace.join(".aye/skills"),
        shown: ".aye/skills".to_owned(),
        origin: Origin::Project,
        boundary: Some(workspace.clone()),
        kept_apart: Vec::new(),
    };
    let project = vec![folder.contents(&mut HashSet::new())];
    Arc::new(SkillFolders { project, workspace, own: Vec::new() }.read())
}

fn with_skills(mut bench: Bench) -> Bench {
    bench.settings.session.skills = SessionSkills::new(set(&bench));
    bench
}

#[test]
fn skills_are_loaded_by_tool_names_and_arguments_of_other_agents() {
    let bench = Bench::new();
    skill(&bench, "pdf", "", "Do $ARGUMENTS in ${CLAUDE_SKILL_DIR}.");
    bench.write(".aye/skills/pdf/scripts/run.sh", "x");
    let bench = with_skills(bench);
    for (tool, arguments) in [
        ("Skill", json!({"name": "pdf", "arguments": "it"})),
        ("skill", json!({"skill": "pdf", "args": "it"})),
        ("activate_skill", json!({"name": "/pdf", "arguments": "it"})),
    ] {
        let result = bench.call(tool, arguments);
        let directory = bench.path(".aye/skills/pdf").display().to_string();
        assert_eq!((result.status, result.tool_name.as_str()), (ToolStatus::Succeeded, "Skill"), "{result:?}");
        for part in [
            "[Skill pdf, from .aye/skills/pdf/SKILL.md]",
            &format!("Do it in {directory}."),
            &format!("{directory}/scripts/run.sh"),
        ] {
            assert!(result.output_text.contains(part), "{part}: {}", result.output_text);
        }
    }
    let plan = bench.plan("Skill", json!({"name": "pdf"})).unwrap();
    assert!(!plan.changes && plan.actions.len() == 1 && plan.summary == "Use the skill pdf (.aye/skills/pdf/SKILL.md)");
    let error = bench.plan("Skill", json!({"name": "pdff"})).unwrap_err();
    assert!(error.code == ErrorCode::InvalidRequest && error.message.contains("similar skills:\npdf: Does pdf."), "{error}");
    let names: Vec<String> = bench.router().definitions().into_iter().map(|tool| tool.tool_name).collect();
    assert!(names.contains(&"Skill".to_owned()));
}

#[test]
fn without_skills_for_the_model_the_tool_is_not_offered() {
    let bench = Bench::new();
    skill(&bench, "mine", "disable-model-invocation: true\n", "x");
    let bench = with_skills(bench);
    assert!(bench.router().definitions().iter().all(|tool| tool.tool_name != "Skill"));
    assert_eq!(bench.plan("Skill", json!({"name": "mine"})).unwrap_err().code, ErrorCode::ToolNotFound);
}

#[test]
fn a_long_skill_is_truncated_with_a_reference_to_the_rest() {
    let bench = Bench::new();
    skill(&bench, "long", "", &"word ".repeat(10_000));
    let mut bench = with_skills(bench);
    bench.settings.max_output_bytes = 2000;
    let result = bench.call("Skill", json!({"name": "long"}));
    assert!(
        result.output_text.len() < 2600 && result.output_text.contains("SKILL.md for the rest]"),
        "{}",
        result.output_text.len()
    );
}

#[test]
fn while_a_skill_is_in_use_unlisted_tools_need_approval() {
    let bench = Bench::new();
    skill(&bench, "look", "allowed-tools: Read\n", "x");
    skill(&bench, "free", "", "x");
    let bench = with_skills(bench);
    bench.write("a", "x");
    let doubt = |tool: &str, arguments: serde_json::Value| bench.plan(tool, arguments).unwrap().doubts.skill;
    let write = || doubt("WriteFile", json!({"path": "b", "content": "x"}));
    let (router, active) = (bench.router(), &bench.settings.session.skills);
    assert_eq!(write(), None);
    bench.call("Skill", json!({"name": "free"}));
    assert_eq!(write(), None, "a skill without a list narrows nothing");
    bench.call("Skill", json!({"name": "look"}));
    assert_eq!(write().as_deref(), Some("the skill `look` does not list this tool in its `allowed-tools`"));
    assert_eq!(doubt("ReadFile", json!({"path": "a"})), None);
    assert_eq!(doubt("Skill", json!({"name": "free"})), None);
    router.task_ended();
    assert_eq!(write(), None);
    let header = "[Skill look, from .aye/skills/look/SKILL.md]";
    router.begin_prompt(&format!("{header}\nx"));
    assert!(write().is_some());
    router.begin_prompt("something else");
    assert_eq!(write(), None, "a new task begins without it");
    router.add_message(&format!("and\n{header}\nx"));
    assert!(write().is_some());
    active.begin_task("[Skill look, from elsewhere/SKILL.md] [Skill none, from x]");
    assert_eq!(write(), None, "only the exact line counts");
}

#[test]
fn the_list_of_skills_stays_within_its_limit() {
    for (count, words, shows) in [(3, 150, "Does it"), (150, 100, "s149"), (200, 0, "s199")] {
        let bench = Bench::new();
        for number in 0..count {
            let (name, long) = (format!("s{number:03}"), "word ".repeat(words));
            bench.write(
                &format!(".aye/skills/{name}/SKILL.md"),
                format!("---\nname: {name}\ndescription: Does it. {long}\n---\nx"),
            );
        }
        let description = describe(&set(&bench)).unwrap();
        assert!(description.len() < 4300 && description.contains(shows), "{count}: {} {description}", description.len());
    }
    let bench = Bench::new();
    for number in 0..200 {
        skill(&bench, &format!("a-very-long-name-of-a-skill-that-fills-the-list-{number:03}"), "", "x");
    }
    let description = describe(&set(&bench)).unwrap();
    assert!(
        description.len() < 4300 && description.contains("more; to find them, pass a search word as the name"),
        "{description}"
    );
}
