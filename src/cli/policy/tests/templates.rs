use super::*;
use crate::host::policy_templates::{TEMPLATES, Template, template_text};
use crate::policy::{Bundle, warnings};
use crate::protocol::{Action, Place, Target};

/// Determines the actions of a call without reading the disk.
fn actions(tool: &str, arguments: &serde_json::Map<String, serde_json::Value>) -> Vec<Action> {
    let text = |key: &str| arguments.get(key).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
    let target = |given: String| Target { real: Path::new("/w").join(&given), given, place: Place::Missing };
    vec![match tool {
        "ReadFile" => Action::Read { target: target(text("path")) },
        "WriteFile" => Action::Write { target: target(text("path")) },
        "RunCommand" => Action::Exec { command: text("command"), cwd: target(String::new()) },
        other => panic!("no template calls {other}"),
    }]
}

#[test]
fn every_template_passes_its_own_tests_without_warnings() {
    for (template, _) in TEMPLATES {
        let text = template_text(template);
        let parsed = bundle(&text);
        let of_project = template == Template::Project;
        assert_eq!(warnings(&parsed, of_project, jiff::Timestamp::UNIX_EPOCH), [], "{template:?}");
        assert!(parsed.tests.len() >= 3 && parsed.examples() >= 3, "{template:?}");
        for test in &parsed.tests {
            let enforcer = if of_project { over_the_default(&text) } else { enforcer(&text, test.mode) };
            let told = enforcer.explain(&actions(&test.tool, &test.arguments), jiff::Timestamp::UNIX_EPOCH);
            assert_eq!(told.verdict, test.verdict, "{template:?} line {}: {} ({})", test.line, told.reason, told.rule);
        }
    }
}

fn over_the_default(text: &str) -> Enforcer {
    let context = Context {
        roots: vec![PathBuf::from("/w")],
        home: PathBuf::from("/home/me"),
        mode: Mode::Ask,
        sandbox: Sandbox::Present,
        own: Vec::new(),
        skills: Vec::new(),
    };
    let default = Layer::new(Scope::BuiltIn, Bundle::built_in().unwrap());
    Enforcer::new(vec![default, Layer::from_file(Scope::Project, bundle(text), Path::new(".aye/policy.toml"))], context)
}

#[test]
fn templates_do_not_refer_to_built_in_rules() {
    for (template, _) in TEMPLATES {
        assert!(!template_text(template).contains("\"built-in."), "{template:?}");
    }
}
