//! Tools of MCP servers: an unknown one asks, a changed one asks again, a disabled one is none.

use super::*;

fn invoke(server: &str, tool: &str, fingerprint: &str) -> Vec<Action> {
    vec![Action::Invoke { server: server.to_owned(), tool: tool.to_owned(), fingerprint: fingerprint.to_owned() }]
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
fn cve_2025_54136_mcp_poison_a_tool_that_changed_asks_again() {
    let enforcer = under(SEARCH);
    assert_eq!(said(&enforcer, "docs", "search", "f1").0, VerdictKind::Allow);
    for other in ["f2", "", "F1", "f1 ", "f11"] {
        let (verdict, reason) = said(&enforcer, "docs", "search", other);
        assert_eq!((verdict, reason.contains("changed")), (VerdictKind::Ask, true), "{other:?}: {reason}");
    }
    // The same tool of a server that took the name of another, and a name that only begins alike.
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
fn an_mcp_tool_that_says_nothing_of_itself_asks() {
    for bundle in [SEARCH, "[capabilities.\"Mcp.Invoke\"]\nallowed_tools = [\"*\"]\nrequires_approval = true"] {
        let told = under(bundle).explain(&invoke("docs", "read", ""), now());
        assert_eq!((told.verdict, told.risk), (VerdictKind::Ask, Risk::Medium));
    }
    // Not listed is not granted; plan mode lets none through, whatever it says it does.
    assert_eq!(said(&built_in(), "docs", "read", "").0, VerdictKind::Deny);
    let mut planning = under(SEARCH);
    planning.context.mode = Mode::Plan;
    assert_eq!(said(&planning, "docs", "search", "f1").0, VerdictKind::Deny);
}

#[test]
fn an_mcp_tool_off_the_list_is_denied_whatever_rules_allow() {
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
fn a_disabled_mcp_tool_is_denied_by_any_layer() {
    for disabled in ["Mcp.docs/search", "Mcp.docs/*", "mcp.*", "*"] {
        let project = parsed(&format!("schema_version = 1\n[tools]\ndisabled = [\"{disabled}\"]"));
        let layers =
            vec![Layer::new(Scope::User, parsed(&format!("schema_version = 1\n{SEARCH}"))), Layer::new(Scope::Project, project)];
        let told = Enforcer::new(layers, context()).explain(&invoke("docs", "search", "f1"), now());
        assert_eq!((told.verdict, told.rule.starts_with("project:")), (VerdictKind::Deny, true), "{disabled}: {}", told.rule);
    }
}

#[test]
fn a_use_of_an_mcp_tool_is_not_kept_for_always() {
    let always = under(SEARCH).always(&invoke("docs", "read", ""), now());
    assert!(always.offers.is_empty() && !always.never.is_empty(), "{always:?}");
}
