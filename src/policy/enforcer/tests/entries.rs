//! Compares the fast checks for entries and file actions with the full verdict.

use super::*;
use proptest::prelude::*;

/// Generates one of a few names, so paths and patterns often coincide.
fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a", "b.rs", ".ssh", ".config", "gcloud", ".aye", ".env", "proc", "self", "user", "home", "root", ".aws",
    ])
}

fn path() -> impl Strategy<Value = String> {
    let start = prop::sample::select(vec![
        "",
        "/home/user",
        "/home/user/project",
        "/home/other",
        "/proc",
        "/root",
        "/home/user/.config/aye",
    ]);
    (start, prop::collection::vec(name(), 1..5)).prop_map(|(start, names)| format!("{start}/{}", names.join("/")))
}

fn pattern() -> impl Strategy<Value = String> {
    prop_oneof![
        path(),
        name().prop_map(|name| format!("**/{name}")),
        name().prop_map(|name| format!("**/{name}/*")),
        name().prop_map(|name| format!("~/{name}")),
        name().prop_map(|name| name.to_owned()),
        Just("/".to_owned()),
        Just("~".to_owned()),
        Just("${workspace}".to_owned()),
        Just("**/.e*".to_owned()),
    ]
}

fn listed(patterns: &[String]) -> String {
    patterns.iter().map(|pattern| format!("{pattern:?}")).collect::<Vec<_>>().join(", ")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn entries_are_readable_unless_a_rule_denies_them(
        allowed in prop::option::of(prop::collection::vec(pattern(), 1..4)),
        blocked in prop::collection::vec(pattern(), 0..3),
        denied in prop::collection::vec(pattern(), 0..3),
        project in prop::collection::vec(pattern(), 0..2),
        paths in prop::collection::vec(path(), 1..20),
    ) {
        let allowed = allowed.map_or_else(String::new, |allowed| format!("allowed_paths = [{}]\n", listed(&allowed)));
        let rules: String = denied.iter().map(|pattern| format!("[[capabilities.\"File.Read\".rules]]\npaths = [{pattern:?}]\ndecision = \"deny\"\n")).collect::<Vec<_>>().concat();
        let own = format!("schema_version = 1\n[capabilities.\"File.Read\"]\n{allowed}blocked_paths = [{}]\n{rules}", listed(&blocked));
        let theirs = format!("schema_version = 1\n[capabilities.\"File.Read\"]\nblocked_paths = [{}]\n", listed(&project));
        let (Ok(own), Ok(theirs)) = (Bundle::parse(&own, "own"), Bundle::parse(&theirs, "theirs")) else {
            // The pattern is not valid in a bundle.
            return Ok(());
        };
        let enforcer = Enforcer::new(vec![Layer::new(Scope::User, own), Layer::new(Scope::Project, theirs)], context());
        let may = |path: &Path| enforcer.explain(&[Action::Read { target: target(&path.to_string_lossy()) }], now()).verdict != VerdictKind::Deny;
        for path in paths {
            let path = PathBuf::from(path);
            let parent = path.parent().unwrap_or(Path::new("/"));
            if may(parent) {
                prop_assert_eq!(enforcer.is_entry_readable(&path, now()), may(&path), "{}", path.display());
            }
        }
    }

    #[test]
    fn denies_file_agrees_with_the_full_verdict(
        allowed in prop::option::of(prop::collection::vec(pattern(), 1..4)),
        blocked in prop::collection::vec(pattern(), 0..3),
        rules in prop::collection::vec((pattern(), prop::sample::select(vec!["deny", "ask", "allow"])), 0..3),
        project in prop::collection::vec(pattern(), 0..2),
        mode in prop::sample::select(vec![Mode::Plan, Mode::Ask, Mode::AutoEdit, Mode::Auto]),
        paths in prop::collection::vec(path(), 1..20),
    ) {
        let allowed = allowed.map_or_else(String::new, |allowed| format!("allowed_paths = [{}]\n", listed(&allowed)));
        let blocked = listed(&blocked);
        let of = |capability: &str| {
            let rule = |(pattern, decision): &(String, &str)| format!("[[capabilities.\"{capability}\".rules]]\npaths = [{pattern:?}]\ndecision = \"{decision}\"\n");
            let rules = rules.iter().map(rule).collect::<String>();
            format!("[capabilities.\"{capability}\"]\n{allowed}blocked_paths = [{blocked}]\n{rules}")
        };
        let own = format!("schema_version = 1\n{}{}{}", of("File.Read"), of("File.Write"), of("File.Delete"));
        let theirs = format!("schema_version = 1\n[capabilities.\"File.Write\"]\nblocked_paths = [{}]\n", listed(&project));
        let (Ok(own), Ok(theirs)) = (Bundle::parse(&own, "own"), Bundle::parse(&theirs, "theirs")) else {
            // The pattern is not valid in a bundle.
            return Ok(());
        };
        let context = Context { mode, ..context() };
        let enforcer = Enforcer::new(vec![Layer::new(Scope::User, own), Layer::new(Scope::Project, theirs)], context);
        for path in paths.iter().chain([&"/home/user".to_owned(), &"/home/user/project/.git/config".to_owned()]) {
            let target = target(path);
            for action in [Action::Read { target: target.clone() }, Action::Write { target: target.clone() }, Action::Delete { target }] {
                let verdict = enforcer.explain(std::slice::from_ref(&action), now()).verdict;
                prop_assert_eq!(enforcer.denies_file(&action, now()), verdict == VerdictKind::Deny, "{:?}", action);
            }
        }
    }
}

#[test]
fn entries_with_credentials_are_not_readable() {
    let all = enforcer(parsed(
        "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"/\"]\nblocked_paths = [\"**/.env\"]\n",
    ));
    for (path, may) in [
        ("/home/user/project/src/a.rs", true),
        ("/home/user/project/.env", false),
        ("/home/user/.ssh", false),
        ("/home/user/.config/gcloud", false),
        ("/home/user/.config/aye", false),
        ("/home/other/.aws", false),
        ("/proc/1", false),
        ("/proc/cpuinfo", true),
    ] {
        assert_eq!(all.is_entry_readable(Path::new(path), now()), may, "{path}");
    }
}
