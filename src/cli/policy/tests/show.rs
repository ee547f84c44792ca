use super::*;
use crate::cli::policy::paint::OutputStyle;
use crate::cli::policy::show::{InForce, LayerInForce};
use crate::policy::Bundle;

const MANAGED: &str = r#"schema_version = 1
bundle_version = "m.1"
expires_at = 2026-01-01T00:00:00Z
[capabilities."Shell.Exec"]
requires_approval = true
sandbox = "read-only"
blocked_commands = ["dd"]
"#;
const USER: &str = r#"schema_version = 1
[capabilities."Shell.Exec"]
requires_approval = true
sandbox = "off"
blocked_commands = ["sudo"]
limits = { processes = 9 }
[[capabilities."Shell.Exec".rules]]
command = ["cargo", "test"]
args = "any"
decision = "allow"
match = ["cargo test"]
[[tests]]
tool = "RunCommand"
verdict = "ask"
"#;
const PROJECT: &str = "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nsandbox = \"off\"\n";

fn in_force() -> InForce {
    let layers = [
        (Scope::Managed, MANAGED, "/etc/aye/policy.toml"),
        (Scope::User, USER, "/home/me/c/policy.toml"),
        (Scope::Project, PROJECT, "/w/.aye/policy.toml"),
    ];
    let layers: Vec<Layer> =
        layers.iter().map(|(scope, text, file)| Layer::from_file(*scope, bundle(text), Path::new(file))).collect();
    let context = Context {
        roots: vec![PathBuf::from("/w")],
        home: PathBuf::from("/home/me"),
        mode: Mode::Ask,
        sandbox: Sandbox::Absent,
        own: Vec::new(),
        skills: Vec::new(),
    };
    InForce {
        layers: layers.iter().map(LayerInForce::from_layer).collect(),
        mode: Mode::Ask,
        workspace: PathBuf::from("/w"),
        project: "trusted, its policy applies".to_owned(),
        entries: Enforcer::new(layers, context).entries(),
        home: PathBuf::from("/home/me"),
    }
}

#[test]
fn every_entry_is_shown_with_its_location_and_ineffective_entries_are_marked() {
    let text = in_force().as_text(&OutputStyle::plain(100), "2026-11-21T00:00:00Z".parse().unwrap());
    for words in [
        "layers    managed   /etc/aye/policy.toml, version m.1, EXPIRED 2026-01-01T00:00:00Z\n",
        "          user      ~/c/policy.toml\n",
        "project   trusted, its policy applies\n",
        "  blocked_commands = [\"dd\"]                         /etc/aye/policy.toml:7\n",
        "  blocked_commands = [\"sudo\"]                       ~/c/policy.toml:5\n",
        "~/c/policy.toml:4\n    ↳ overridden by managed:6\n",
        "/w/.aye/policy.toml:3\n    ↳ ignored: would widen the policy\n",
        "allow [\"cargo\", \"test\"] (args = \"any\")",
    ] {
        assert!(text.contains(words), "`{words}` is not in\n{text}");
    }
    assert!(!text.contains("verdict"), "tests decide nothing:\n{text}");
}

#[test]
fn toml_output_is_a_valid_policy() {
    let toml = in_force().as_toml();
    let again = Bundle::parse(&toml, "again").unwrap_or_else(|error| panic!("{error}\n{toml}"));
    let shell = again.capabilities.shell.unwrap();
    assert_eq!((shell.rules.len(), shell.blocked.len()), (1, 2), "{toml}");
    assert!(toml.contains("# sandbox = \"off\"  # ~/c/policy.toml:4, overridden by managed:6"), "{toml}");
}
