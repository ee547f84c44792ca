//! Tests MCP tools: an unknown tool needs approval, a changed tool needs new approval, and a disabled tool does not
//! exist.

use super::*;

fn invoke(server: &str, tool: &str, fingerprint: &str) -> Vec<Action> {
    vec![Action::Invoke { server: server.to_owned(), tool: tool.to_owned(), fingerprint: fingerprint.to_owned(), changed: false }]
}

fn under(text: &str) -> Enforcer {
    enforcer(parsed(&format!("schema_version = 1\n{text}")))
}

fn said(enforcer: &Enforcer, server: &str, tool: &str, fingerprint: &str) -> (VerdictKind, String) {
    let told = enforcer.explain(&invoke(server, tool, fingerprint), now());
    (told.verdict, told.reason)
}

const SEARCH: &str = "[capabilities.\"Mcp.Invoke\"]\nallowed_tools = [\"docs/*\"]\nrequires_approval = true\n\
    [[capabilities.\"Mcp.Invoke\".rules]]\ntools = [\"docs/search\"]\ndecision = \"allow\"\nfingerprint = \"f1\"\n";

#[test]
fn cve_2025_54136_mcp_poison_a_changed_tool_needs_a_new_approval() {
    let enforcer = under(SEARCH);
    assert_eq!(said(&enforcer, "docs", "search", "f1").0, VerdictKind::Allow);
    for other in ["f2", "", "F1", "f1 ", "f11"] {
        let (verdict, reason) = said(&enforcer, "docs", "search", other);
        assert_eq!((verdict, reason.contains("changed")), (VerdictKind::Ask, true), "{other:?}: {reason}");
    }
    // The same tool on a server with a similar name, and names with the same beginning.
    for (server, tool) in [
        ("docs2", "search"),
        ("evil", "docs/search"),
        ("doc", "s/search"),
        ("Docs", "search"),
        ("docs/search", ""),
        ("docs/x", "y"),
    ] {
        assert_ne!(said(&enforcer, server, tool, "f1").0, VerdictKind::Allow, "{server} {tool}");
    }
    assert_ne!(said(&enforcer, "docs", "search2", "f1").0, VerdictKind::Allow);
    let open = under("[capabilities.\"Mcp.Invoke\"]\nallowed_tools = [\"docs/*\"]");
    for (server, verdict) in [("docs", VerdictKind::Allow), ("docs/x", VerdictKind::Deny), ("DOCS", VerdictKind::Deny)] {
        assert_eq!(said(&open, server, "y", "").0, verdict, "{server}");
    }
}

#[test]
fn mcp_tools_without_annotations_need_approval() {
    for bundle in [SEARCH, "[capabilities.\"Mcp.Invoke\"]\nallowed_tools = [\"*\"]\nrequires_approval = true"] {
        let told = under(bundle).explain(&invoke("docs", "read", ""), now());
        assert_eq!((told.verdict, told.risk), (VerdictKind::Ask, Risk::Medium));
    }
    // Unlisted tools are not granted, and plan mode allows none, whatever a tool declares.
    assert_eq!(said(&built_in(), "docs", "read", "").0, VerdictKind::Deny);
    let mut planning = under(SEARCH);
    planning.context.mode = Mode::Plan;
    assert_eq!(said(&planning, "docs", "search", "f1").0, VerdictKind::Deny);
}

#[test]
fn unlisted_mcp_tools_are_denied_despite_allow_rules() {
    let enforcer = under(&format!(
        "{SEARCH}[[capabilities.\"Mcp.Invoke\".rules]]\ntools = [\"web/*\"]\ndecision = \"allow\"\n\
         [[capabilities.\"Mcp.Invoke\".rules]]\ntools = [\"docs/delete*\"]\ndecision = \"deny\"\n\
         [[capabilities.\"Mcp.Invoke\".rules]]\ntools = [\"*/ask\"]\ndecision = \"ask\"\n"
    ));
    assert_eq!(said(&enforcer, "web", "get", "").0, VerdictKind::Deny);
    assert_eq!(said(&enforcer, "docs", "delete_all", "").0, VerdictKind::Deny);
    assert_eq!(said(&enforcer, "docs", "Delete_all", "").0, VerdictKind::Deny);
    assert_eq!(said(&enforcer, "docs", "ask", "").0, VerdictKind::Ask);
}

#[test]
fn mcp_tools_disabled_by_any_layer_are_denied() {
    for disabled in ["Mcp.docs/search", "Mcp.docs/*", "mcp.*", "*"] {
        let project = parsed(&format!("schema_version = 1\n[tools]\ndisabled = [\"{disabled}\"]"));
        let layers =
            vec![Layer::new(Scope::User, parsed(&format!("schema_version = 1\n{SEARCH}"))), Layer::new(Scope::Project, project)];
        let told = Enforcer::new(layers, context()).explain(&invoke("docs", "search", "f1"), now());
        assert_eq!((told.verdict, told.rule.starts_with("project:")), (VerdictKind::Deny, true), "{disabled}: {}", told.rule);
    }
}

#[test]
fn always_allow_saves_an_mcp_tool_with_its_exact_description_and_schema() {
    let mut enforcer = under(SEARCH);
    let always = enforcer.always(&invoke("docs", "read", "f7"), now());
    let [offer] = always.offers.as_slice() else { panic!("{always:?}") };
    let rule = offer.rules[0].to_string();
    assert_eq!((rule.as_str(), offer.rules[0].capability()), ("tools = [\"docs/read\"], fingerprint = \"f7\"", "Mcp.Invoke"));
    enforcer.keep(&offer.rules, None).expect("a rule");
    assert_eq!(said(&enforcer, "docs", "read", "f7").0, VerdictKind::Allow);
    assert_eq!(said(&enforcer, "docs", "read", "f8").0, VerdictKind::Ask);
    // Unlisted tools are not offered, and a name with a wildcard is not offered as a rule.
    assert!(under(SEARCH).always(&invoke("web", "get", "f"), now()).offers.is_empty());
    assert!(under(SEARCH).always(&invoke("docs", "*", "f"), now()).offers.is_empty());
}

#[test]
fn a_tool_that_changed_since_its_approval_needs_approval_in_every_mode() {
    let changed = |fingerprint: &str| {
        let (server, tool) = ("docs".to_owned(), "search".to_owned());
        vec![Action::Invoke { server, tool, fingerprint: fingerprint.to_owned(), changed: true }]
    };
    let open = "[capabilities.\"Mcp.Invoke\"]\nallowed_tools = [\"docs/*\"]\n";
    let rule = "[[capabilities.\"Mcp.Invoke\".rules]]\ntools = [\"docs/*\"]\ndecision = \"allow\"\n";
    for bundle in [open.to_owned(), format!("{open}{rule}"), format!("{open}requires_approval = true\n{rule}"), SEARCH.to_owned()]
    {
        for mode in [Mode::Ask, Mode::AutoEdit, Mode::Auto] {
            let mut enforcer = under(&bundle);
            enforcer.context.mode = mode;
            let told = enforcer.explain(&changed("f2"), now());
            assert_eq!((told.verdict, told.reason.contains("changed")), (VerdictKind::Ask, true), "{mode:?}: {bundle}");
        }
    }
    // A rule with exactly this fingerprint allows it.
    assert_eq!(under(SEARCH).explain(&changed("f1"), now()).verdict, VerdictKind::Allow);
    let mut auto = under(SEARCH);
    auto.context.mode = Mode::Auto;
    assert_eq!(
        auto.explain(&invoke("docs", "search", "f2"), now()).verdict,
        VerdictKind::Ask,
        "not the tool that the rule names"
    );
}

#[test]
fn a_tool_is_offered_only_if_every_layer_lists_it() {
    let lists = |enforcer: &Enforcer, server: &str, tool: &str| enforcer.lists(server, tool, now()).is_ok();
    let mut enforcer = under(SEARCH);
    assert!(lists(&enforcer, "docs", "search") && lists(&enforcer, "docs", "read"));
    assert!(!lists(&enforcer, "web", "get") && !lists(&built_in(), "docs", "read"));
    enforcer.context.mode = Mode::Plan;
    assert!(lists(&enforcer, "docs", "search"), "a mode removes no tool from the list");
    assert!(enforcer.lists_any("docs") && !enforcer.lists_any("web") && !built_in().lists_any("docs"));
    let project = |text: &str| {
        let layer = |scope, text: &str| Layer::new(scope, parsed(&format!("schema_version = 1\n{text}")));
        Enforcer::new(vec![layer(Scope::User, SEARCH), layer(Scope::Project, text)], context())
    };
    let tighter = project("[capabilities.\"Mcp.Invoke\"]\nallowed_tools = [\"docs/read\"]");
    assert!(lists(&tighter, "docs", "read") && !lists(&tighter, "docs", "search") && tighter.lists_any("docs"));
    assert!(!lists(&project("[tools]\ndisabled = [\"Mcp.docs/*\"]"), "docs", "read"));
    let (_, reason) = said(&under(SEARCH), "web", "get", "");
    assert!(reason.contains("`web/get` is not in `allowed_tools`"), "{reason}");
}

fn custom(name: &str, fingerprint: &str, known: bool) -> Vec<Action> {
    uses(name, &["/home/user/.config/aye/tools/lint.sh", "--fix"], fingerprint, known, false)
}

fn uses(name: &str, argv: &[&str], fingerprint: &str, known: bool, reads_only: bool) -> Vec<Action> {
    let cwd = Target { given: ".".into(), real: PathBuf::from(ROOT), place: Place::Directory };
    let argv = argv.iter().map(|&word| word.to_owned()).collect();
    let (name, fingerprint) = (name.to_owned(), fingerprint.to_owned());
    vec![Action::Custom { name, argv, cwd, input: Some("{}".to_owned()), fingerprint, known, reads_only }]
}

const COMMANDS: &str = "[capabilities.\"Shell.Exec\"]\nrequires_approval = false\n";

fn with_rule(rule: &str) -> Enforcer {
    under(&format!("{COMMANDS}[[capabilities.\"Tool.Custom\".rules]]\ntools = [\"lint\"]\n{rule}\n"))
}

#[test]
fn custom_tools_need_approval_unless_a_tool_rule_names_them() {
    let ask = |enforcer: &Enforcer, actions: &[Action]| enforcer.explain(actions, now()).verdict;
    assert_eq!(ask(&under(COMMANDS), &custom("lint", "f1", true)), VerdictKind::Ask);
    assert_eq!(ask(&with_rule("decision = \"allow\""), &custom("lint", "f1", true)), VerdictKind::Allow);
    assert_eq!(ask(&with_rule("decision = \"allow\""), &custom("lint2", "f1", true)), VerdictKind::Ask);
    assert_eq!(ask(&with_rule("decision = \"deny\""), &custom("Lint", "f1", true)), VerdictKind::Deny);
    // Without a grant of commands, custom tools are not granted either.
    assert_eq!(ask(&under("[capabilities.\"File.Read\"]\n"), &custom("lint", "f1", true)), VerdictKind::Deny);
    // A project cannot allow anything.
    let project = parsed("schema_version = 1\n[[capabilities.\"Tool.Custom\".rules]]\ntools = [\"*\"]\ndecision = \"allow\"\n");
    let own = parsed(&format!("schema_version = 1\n{COMMANDS}"));
    let layers = vec![Layer::new(Scope::User, own), Layer::new(Scope::Project, project)];
    assert_eq!(ask(&Enforcer::new(layers, context()), &custom("lint", "f1", true)), VerdictKind::Ask);
}

#[test]
fn changed_and_unreviewed_custom_tools_need_approval_in_every_mode() {
    let pinned = "decision = \"allow\"\nfingerprint = \"f1\"";
    for (rule, print, known, expected) in [
        (pinned, "f1", true, VerdictKind::Allow),
        // A rule with exactly this content allows it.
        (pinned, "f1", false, VerdictKind::Allow),
        (pinned, "f2", true, VerdictKind::Ask),
        ("decision = \"allow\"", "f1", false, VerdictKind::Ask),
        ("decision = \"ask\"", "f1", false, VerdictKind::Ask),
    ] {
        let mut enforcer = with_rule(rule);
        assert_eq!(enforcer.explain(&custom("lint", print, known), now()).verdict, expected, "{rule} {print} {known}");
        enforcer.context.mode = Mode::Auto;
        let auto = enforcer.explain(&custom("lint", print, known), now());
        assert_eq!(auto.verdict, expected, "auto: {rule} {print} {known}");
    }
}

#[test]
fn command_restrictions_apply_to_custom_tools() {
    let enforcer = under(
        "[capabilities.\"Shell.Exec\"]\nblocked_commands = [\"lint.sh\", \"dd\"]\n\
         [[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"curl\"]\ndecision = \"ask\"\n\
         [[capabilities.\"Tool.Custom\".rules]]\ntools = [\"*\"]\ndecision = \"allow\"\n",
    );
    let told = |argv: &[&str]| enforcer.explain(&uses("any", argv, "f", true, false), now()).verdict;
    assert_eq!(told(&["/home/user/.config/aye/tools/lint.sh"]), VerdictKind::Deny);
    assert_eq!(told(&["/usr/bin/dd", "of=x"]), VerdictKind::Deny);
    assert_eq!(told(&["/usr/bin/curl", "x"]), VerdictKind::Ask);
    assert_eq!(told(&["/opt/tool"]), VerdictKind::Allow);
}

#[test]
fn only_read_only_sandboxed_custom_tools_run_in_plan_mode() {
    let mut planning = with_rule("decision = \"allow\"");
    planning.context.mode = Mode::Plan;
    let told = |enforcer: &Enforcer, reads| enforcer.explain(&uses("lint", &["/opt/lint"], "f", true, reads), now()).verdict;
    assert_eq!((told(&planning, true), told(&planning, false)), (VerdictKind::Allow, VerdictKind::Deny));
    planning.context.sandbox = Sandbox::Absent;
    assert_eq!(told(&planning, true), VerdictKind::Deny);
}

#[test]
fn always_allow_saves_a_custom_tool_with_its_exact_content() {
    let mut enforcer = under(COMMANDS);
    let always = enforcer.always(&custom("lint", "f1", true), now());
    let [offer] = always.offers.as_slice() else { panic!("{always:?}") };
    enforcer.keep(&offer.rules, None).expect("a rule");
    assert_eq!(enforcer.explain(&custom("lint", "f1", false), now()).verdict, VerdictKind::Allow);
    assert_eq!(enforcer.explain(&custom("lint", "f2", true), now()).verdict, VerdictKind::Ask);
}

#[test]
fn settings_can_remove_tools_but_not_grant_them() {
    use crate::policy::{ToolLimit, ToolNames};
    let limit = |names: ToolNames| ToolLimit { rule: "config.toml:3".to_owned(), names };
    let listed = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let disabled = ToolNames::Disabled(listed(&["Cli*", "runcommand", "docs/*"]));
    let enabled = ToolNames::Enabled(listed(&["ReadFile", "CliRead", "RunCommand"]));
    let enforcer = built_in().with_limits(vec![limit(disabled), limit(enabled)]);
    let told = |name: &str| enforcer.offers(name).map_err(|denial| denial.rule);
    assert_eq!(told("ReadFile"), Ok(()));
    for name in ["CliRead", "RunCommand", "Grep", "Mcp.docs/x"] {
        assert_eq!(told(name), Err("config.toml:3".to_owned()), "{name}");
    }
}

#[test]
fn opening_files_needs_approval_in_every_mode_and_is_denied_in_plan_mode() {
    let open = |path: &str| vec![Action::Open { target: target(path) }];
    for (mode, verdict) in [
        (Mode::Ask, VerdictKind::Ask),
        (Mode::AutoEdit, VerdictKind::Ask),
        (Mode::Auto, VerdictKind::Ask),
        (Mode::Plan, VerdictKind::Deny),
    ] {
        let mut enforcer = built_in();
        enforcer.context.mode = mode;
        assert_eq!(enforcer.explain(&open("report.pdf"), now()).verdict, verdict, "{mode:?}");
        assert_eq!(enforcer.explain(&open("/home/user/.ssh/id_rsa"), now()).verdict, VerdictKind::Deny);
    }
    let risk = |path: &str| built_in().explain(&open(path), now()).risk;
    assert_eq!(["a.pdf", "A.PNG"].map(risk), [Risk::Medium; 2]);
    assert_eq!(["a.desktop", "a.sh", "program", "a.html", "a.pdf.exe", ".pdf"].map(risk), [Risk::High; 6]);
    assert!(built_in().always(&open("a.pdf"), now()).offers.is_empty());
}

#[test]
fn uploads_need_the_upload_capability_and_a_readable_file() {
    let said = |text: &str, path: &str| {
        let read = "[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n";
        let told = under(&format!("{read}{text}")).explain(&[Action::Upload { target: target(path) }], now());
        (told.verdict, told.reason)
    };
    let granted = "[capabilities.\"Workspace.Upload\"]\n";
    assert_eq!(said(granted, "a.txt").0, VerdictKind::Allow);
    assert_ne!(said(granted, "/etc/passwd").0, VerdictKind::Allow);
    let (verdict, reason) = said("", "a.txt");
    assert!(verdict == VerdictKind::Deny && reason.contains("`Workspace.Upload` is not granted"), "{reason}");
    assert_eq!(said(&format!("{granted}requires_approval = true\n"), "a.txt").0, VerdictKind::Ask);
    assert_eq!(said(&format!("{granted}max_file_size_bytes = 0\n"), "a.txt").0, VerdictKind::Deny);
}

#[test]
fn every_layer_must_allow_sampling_and_projects_can_only_restrict_it() {
    let own = |more: &str| format!("[capabilities.\"Mcp.Invoke\"]\nallowed_tools = [\"*\"]\n{more}");
    let layer = |scope, text: &str| Layer::new(scope, parsed(&format!("schema_version = 1\n{text}")));
    let under =
        |layers: &[(Scope, &str)]| Enforcer::new(layers.iter().map(|(scope, text)| layer(*scope, text)).collect(), context());
    let lets = own("allow_sampling = [\"docs\", \"in-*\"]\n");
    let asks = own("allow_sampling = [\"docs\"]\nrequires_approval = true\n");
    let (bare, other) = (own(""), own("allow_sampling = [\"web\"]\n"));
    let verdict = |layers: &[(Scope, &str)], server: &str| under(layers).may_sample(server).ok();
    assert_eq!(verdict(&[(Scope::User, &lets)], "docs"), Some(false));
    assert_eq!(verdict(&[(Scope::User, &lets)], "in-house"), Some(false));
    assert_eq!(verdict(&[(Scope::User, &lets)], "Docs"), None, "the name must match exactly");
    assert_eq!(verdict(&[(Scope::User, &bare)], "docs"), None, "a list of tools does not allow sampling");
    assert_eq!(verdict(&[(Scope::User, &asks)], "docs"), Some(true));
    assert_eq!(verdict(&[(Scope::User, &bare), (Scope::Project, &lets)], "docs"), None, "a project cannot allow anything");
    assert_eq!(verdict(&[(Scope::User, &lets), (Scope::Project, &other)], "docs"), None, "a project can tighten");
    assert_eq!(verdict(&[(Scope::User, &lets), (Scope::Project, &bare)], "docs"), Some(false));
    assert_eq!(verdict(&[(Scope::User, &lets), (Scope::Managed, &asks)], "docs"), Some(true));
    assert_eq!(verdict(&[(Scope::User, &lets), (Scope::Managed, &bare)], "docs"), None);
    let mut enforcer = under(&[(Scope::User, &asks)]);
    enforcer.context.mode = Mode::Auto;
    assert_eq!(enforcer.may_sample("docs").ok(), Some(true), "no mode approves for the user");
    let denial = built_in().may_sample("docs").unwrap_err();
    assert!(denial.reason.contains("not granted"), "{}", denial.reason);
}

#[test]
fn only_a_saved_rule_allows_a_backend_tool_that_requires_approval() {
    let mut enforcer =
        under("[capabilities.\"BackendTool.Invoke\"]\nallowed_tool_names = [\"find_*\"]\nrequires_approval = true");
    let call = invoke(crate::protocol::BACKEND_SERVER, "find_customer", "f1");
    for mode in [Mode::Ask, Mode::AutoEdit, Mode::Auto] {
        enforcer.context.mode = mode;
        assert_eq!(enforcer.explain(&call, now()).verdict, VerdictKind::Ask, "{mode:?}");
    }
    enforcer.set_mandate(&call, now());
    assert_eq!(enforcer.explain(&call, now()).verdict, VerdictKind::Ask, "a plan does not cover it");
    let always = enforcer.always(&call, now());
    let [offer] = always.offers.as_slice() else { panic!("{always:?}") };
    let saved = Bundle::parse_rules(&crate::policy::enforcer::grants::text(&offer.rules), "the rule").unwrap();
    let context = enforcer.context.clone();
    Arc::make_mut(&mut enforcer.stack).push(Layer::new(Scope::Mine, saved), &context);
    for mode in [Mode::Ask, Mode::Auto] {
        enforcer.context.mode = mode;
        assert_eq!(enforcer.explain(&call, now()).verdict, VerdictKind::Allow, "{mode:?}");
    }
    let other = invoke(crate::protocol::BACKEND_SERVER, "find_order", "f1");
    assert_eq!(enforcer.explain(&other, now()).verdict, VerdictKind::Ask);
}
