use super::ranges::special_purpose;
use super::*;
use crate::policy::{Bundle, Context, Enforcer, Layer, Sandbox, Scope};
use crate::protocol::{Action, Mode, Risk, VerdictKind};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use proptest::prelude::*;
use serde::Deserialize;
use std::path::PathBuf;

mod corpus;
mod spellings;

const OPEN: &str = "requires_approval = false";
const ASKS: &str = "requires_approval = true";

fn layer(scope: Scope, table: &str) -> Layer {
    let text = format!("schema_version = 1\n[capabilities.\"Network.Http\"]\n{table}");
    Layer::new(scope, Bundle::parse(&text, "policy.toml").unwrap_or_else(|error| panic!("{error}")))
}

fn in_mode(layers: Vec<Layer>, mode: Mode) -> Enforcer {
    let home = PathBuf::from("/home/user");
    Enforcer::new(
        layers,
        Context { roots: vec![home.join("project")], home, mode, sandbox: Sandbox::Present, own: Vec::new(), skills: Vec::new() },
    )
}

fn user(table: &str) -> Enforcer {
    in_mode(vec![layer(Scope::User, table)], Mode::Ask)
}

fn explain(enforcer: &Enforcer, method: &str, url: &str) -> crate::policy::Explanation {
    let action = Action::Fetch { url: url.to_owned(), method: method.to_owned() };
    enforcer.explain(&[action], jiff::Timestamp::UNIX_EPOCH)
}

#[track_caller]
fn expect(enforcer: &Enforcer, expected: VerdictKind, urls: &[&str]) {
    for url in urls {
        let told = explain(enforcer, "GET", url);
        assert_eq!(told.verdict, expected, "{url}: {}", told.reason);
    }
}

#[test]
fn denials_name_the_kind_of_address() {
    let enforcer = user(OPEN);
    for (url, reason) in [
        ("http://127.0.0.1/", "`127.0.0.1` is a loopback address; only public hosts are allowed"),
        (
            "http://2852039166/",
            "`169.254.169.254` is a cloud metadata address, which serves credentials; only public hosts are allowed",
        ),
        ("http://[::ffff:10.0.0.1]/", "`[::ffff:10.0.0.1]` is a private address; only public hosts are allowed"),
        ("http://db/", "`db` has no dot, so it is on the local network; only public hosts are allowed"),
        ("https://app.localhost./", "`app.localhost` is this machine (RFC 6761); only public hosts are allowed"),
        ("ftp://example.com/", "the scheme `ftp:` is not supported; start the URL with `https://` or `http://`"),
        ("https://u@example.com/", "the URL contains a user name or password; send credentials in a header"),
    ] {
        let told = explain(&enforcer, "GET", url);
        assert_eq!((told.verdict, told.reason.as_str(), told.rule.as_str()), (VerdictKind::Deny, reason, "built-in"), "{url}");
    }
}

#[test]
fn urls_are_normalized_before_evaluation() {
    for (text, normal) in [
        ("HTTPS://DOCS.example.com.:443/a/../b#part", "https://docs.example.com/b"),
        ("http://example.com", "http://example.com/"),
        ("https://example.com/ü?q=ä", "https://example.com/%C3%BC?q=%C3%A4"),
    ] {
        assert_eq!(parse(text).unwrap().as_str(), normal);
        assert_eq!(parse(normal).unwrap().as_str(), normal);
    }
}

#[test]
fn lookalike_host_names_need_approval_with_the_resolved_name_or_are_denied() {
    let enforcer = user(OPEN);
    let told = explain(&enforcer, "GET", "https://bücher.example/");
    assert_eq!(told.verdict, VerdictKind::Ask);
    assert!(told.reason.contains("`xn--bcher-kva.example`"), "{}", told.reason);
    // The first letter is Cyrillic.
    let told = explain(&enforcer, "GET", "https://\u{430}pple.com/");
    assert_eq!(told.verdict, VerdictKind::Deny);
    assert!(told.reason.contains("`xn--pple-43d.com`"), "{}", told.reason);
    expect(&enforcer, VerdictKind::Ask, &["https://xn--pple-43d.com/"]);
    expect(
        &enforcer,
        VerdictKind::Deny,
        &[
            "https://ｅxample.com/",
            "https://example。com/",
            "https://exa\u{ad}mple.com/",
            "https://\u{212a}.example/",
            "https://exa\u{200d}mple.com/",
            "https://exa\u{200c}mple.com/",
        ],
    );
}

#[test]
fn host_patterns_match_whole_labels() {
    let enforcer = user("allowed_domains = [\"docs.rs\", \"*.rust-lang.org\", \"Bücher.example\", \"93.184.216.34\"]");
    expect(
        &enforcer,
        VerdictKind::Allow,
        &[
            "https://docs.rs/x",
            "https://DOCS.RS./",
            "https://doc.rust-lang.org/",
            "https://a.b.rust-lang.org/",
            "https://xn--bcher-kva.example/",
            "http://93.184.216.34/",
        ],
    );
    expect(
        &enforcer,
        VerdictKind::Deny,
        &[
            "https://xdocs.rs/",
            "https://a.docs.rs/",
            "https://docs.rs.evil.test/",
            "https://rust-lang.org/",
            "https://xrust-lang.org/",
            "http://93.184.216.35/",
        ],
    );
}

#[test]
fn cve_2026_24052_a_host_is_not_trusted_by_its_prefix() {
    let enforcer = user("allowed_domains = [\"docs.python.org\", \"modelcontextprotocol.io\"]");
    expect(
        &enforcer,
        VerdictKind::Deny,
        &[
            "https://docs.python.org.evil.example/",
            "https://modelcontextprotocol.io.example.com/",
            "https://docs.python.org@evil.example/",
            "https://docs.python.organic/",
        ],
    );
}

#[test]
fn cve_2026_54316_no_host_is_trusted_by_default() {
    let built_in = in_mode(vec![Layer::new(Scope::BuiltIn, Bundle::built_in().unwrap())], Mode::Ask);
    expect(&built_in, VerdictKind::Ask, &["https://docs.python.org/", "https://docs.rs/", "https://github.com/"]);
    let auto = in_mode(vec![Layer::new(Scope::BuiltIn, Bundle::built_in().unwrap())], Mode::Auto);
    expect(&auto, VerdictKind::Ask, &["https://docs.python.org/", "https://docs.rs/", "https://github.com/"]);
}

#[test]
fn cve_2025_66479_an_empty_domain_list_allows_no_domain() {
    expect(&user("allowed_domains = []"), VerdictKind::Deny, &["https://example.com/", "http://93.184.216.34/"]);
}

#[test]
fn socks5_nul_byte_a_nul_byte_does_not_truncate_a_host_name() {
    let enforcer = user("allowed_domains = [\"*.example.com\"]");
    expect(&enforcer, VerdictKind::Deny, &["http://evil.test\0.example.com/", "http://evil.test%00.example.com/"]);
}

#[test]
fn ghsa_gxg4_2rrr_jhc7_a_trailing_dot_of_a_host_is_ignored() {
    expect(
        &user(OPEN),
        VerdictKind::Deny,
        &[
            "http://localhost./",
            "http://127.0.0.1./",
            "http://metadata.google.internal./",
            "http://a.local./",
            "http://db./",
            "http://example.com../",
        ],
    );
    expect(&user("allowed_domains = [\"docs.rs.\"]"), VerdictKind::Allow, &["https://docs.rs/", "https://docs.rs./"]);
    expect(&user("blocked_domains = [\"evil.test\"]"), VerdictKind::Deny, &["https://evil.test./"]);
}

#[test]
fn blocked_domains_include_their_subdomains_and_override_allowed_ones() {
    let enforcer = user(
        "allowed_domains = [\"*\"]\nblocked_domains = [\"evil.test\", \"*.cdn.test\"]\nallowed_private_hosts = [\"localhost\"]",
    );
    expect(&enforcer, VerdictKind::Deny, &["https://evil.test/", "https://a.evil.test/", "https://x.cdn.test/"]);
    expect(&enforcer, VerdictKind::Allow, &["https://notevil.test/", "https://cdn.test/", "http://localhost/"]);
    expect(
        &user("allowed_private_hosts = [\"localhost\"]\nblocked_domains = [\"localhost\"]"),
        VerdictKind::Deny,
        &["http://localhost/"],
    );
}

#[test]
fn private_hosts_are_allowed_only_by_exact_name_and_only_by_the_user() {
    let enforcer = user(
        "allowed_domains = []\nallowed_private_hosts = [\"127.0.0.1\", \"localhost:3000\", \"[::1]:9000\", \"169.254.169.254\"]",
    );
    expect(
        &enforcer,
        VerdictKind::Allow,
        &["http://127.0.0.1/", "http://127.0.0.1:8080/", "http://localhost:3000/", "http://[::1]:9000/"],
    );
    expect(&enforcer, VerdictKind::Ask, &["http://127.0.0.1:3000/", "http://169.254.169.254/", "http://2130706433/"]);
    expect(
        &enforcer,
        VerdictKind::Deny,
        &["http://localhost/", "http://127.0.0.2/", "http://[::1]/", "http://a.localhost:3000/", "http://[::ffff:7f00:1]/"],
    );
    for scope in [Scope::Managed, Scope::File] {
        expect(
            &in_mode(vec![layer(scope, "allowed_private_hosts = [\"10.0.0.5\"]")], Mode::Ask),
            VerdictKind::Allow,
            &["http://10.0.0.5/"],
        );
    }
    let project = layer(Scope::Project, "allowed_private_hosts = [\"10.0.0.5\"]");
    expect(&in_mode(vec![layer(Scope::User, OPEN), project], Mode::Ask), VerdictKind::Deny, &["http://10.0.0.5/"]);
}

#[test]
fn the_strictest_layer_wins_and_a_project_never_widens_permissions() {
    let layers = |project: &str| {
        in_mode(
            vec![
                layer(Scope::User, "allowed_domains = [\"docs.rs\", \"*.test\"]\nrequires_approval = true"),
                layer(Scope::Project, project),
            ],
            Mode::Ask,
        )
    };
    expect(&layers("allowed_domains = [\"*\"]"), VerdictKind::Ask, &["https://docs.rs/"]);
    expect(&layers("allowed_domains = [\"*\"]"), VerdictKind::Deny, &["https://example.org/"]);
    expect(&layers("allowed_domains = [\"a.test\"]"), VerdictKind::Deny, &["https://docs.rs/"]);
    let alone = in_mode(vec![layer(Scope::Project, OPEN)], Mode::Ask);
    expect(&alone, VerdictKind::Deny, &["https://docs.rs/", "https://docs.rs:22/"]);
    let auto = in_mode(vec![layer(Scope::User, ASKS), layer(Scope::Project, "allowed_domains = [\"docs.rs\"]")], Mode::Auto);
    expect(&auto, VerdictKind::Ask, &["https://docs.rs/"]);
}

#[test]
fn modes_never_allow_a_host_that_no_rule_names() {
    let named = "allowed_domains = [\"docs.rs\"]\nrequires_approval = true";
    for (mode, method, expected) in [
        (Mode::Plan, "GET", VerdictKind::Ask),
        (Mode::Plan, "POST", VerdictKind::Deny),
        (Mode::Ask, "GET", VerdictKind::Ask),
        (Mode::AutoEdit, "GET", VerdictKind::Ask),
        (Mode::Auto, "GET", VerdictKind::Allow),
        (Mode::Auto, "POST", VerdictKind::Ask),
    ] {
        let told = explain(&in_mode(vec![layer(Scope::User, named)], mode), method, "https://docs.rs/");
        assert_eq!(told.verdict, expected, "{method} in {mode:?}: {}", told.reason);
    }
    for table in [ASKS, "allowed_domains = [\"*\"]\nrequires_approval = true"] {
        expect(&in_mode(vec![layer(Scope::User, table)], Mode::Auto), VerdictKind::Ask, &["https://docs.rs/"]);
    }
    expect(&in_mode(vec![layer(Scope::Managed, named)], Mode::Auto), VerdictKind::Ask, &["https://docs.rs/"]);
}

#[test]
fn requests_that_send_data_are_high_risk_and_never_remembered() {
    let enforcer = user(ASKS);
    let long = format!("https://example.com/?d={}", "a b ".repeat(80).replace(' ', "+"));
    for (method, url, risk) in [
        ("GET", "https://docs.rs/tokio/latest/tokio/?search=a", Risk::Medium),
        ("HEAD", "https://docs.rs/", Risk::Medium),
        ("POST", "https://docs.rs/", Risk::High),
        ("DELETE", "https://docs.rs/", Risk::High),
        ("GET", "https://github.com/a/b/commit/6140285aa1c0de6140285aa1c0de6140285aa1c0", Risk::Medium),
        ("GET", "https://example.com/how-to-write-a-compiler-in-a-weekend-and-a-half-for-fun", Risk::Medium),
        ("GET", long.as_str(), Risk::High),
        ("GET", "https://example.com/?api_key=0123456789", Risk::High),
        ("GET", "https://example.com/?q=ghp_0123456789abcdef", Risk::High),
        ("GET", "https://c2VjcmV0IGJ5dGVzIHRoYXQgYXJlIGxvbmcgZW5vdWdo.evil.test/", Risk::High),
        ("GET", "https://example.com/c2VjcmV0IGJ5dGVzIHRoYXQgYXJlIGxvbmcgZW5vdWdoIHRv", Risk::High),
        ("GET", "https://example.com:6379/", Risk::High),
    ] {
        let told = explain(&enforcer, method, url);
        assert_eq!((told.verdict, told.risk), (VerdictKind::Ask, risk), "{method} {url}: {}", told.reason);
    }
    let action = Action::Fetch { url: "https://docs.rs/".to_owned(), method: "GET".to_owned() };
    assert!(enforcer.always(&[action], jiff::Timestamp::UNIX_EPOCH).offers.is_empty());
}

#[test]
fn non_web_ports_always_need_approval() {
    for table in [OPEN, "allowed_domains = [\"example.com\"]"] {
        expect(
            &user(table),
            VerdictKind::Ask,
            &["http://example.com:22/", "http://example.com:25/", "https://example.com:5432/", "http://example.com:81/"],
        );
        expect(
            &user(table),
            VerdictKind::Allow,
            &["http://example.com:8080/", "https://example.com:8443/", "http://example.com:443/"],
        );
    }
}

#[test]
fn invalid_host_lists_are_rejected_on_load() {
    for (table, words) in [
        ("allowed_domains = [\"https://docs.rs\"]", "is a URL"),
        ("allowed_domains = [\"docs.*\"]", "must be alone or the first label"),
        ("allowed_domains = [\"\"]", "is not a valid host"),
        ("allowed_domains = [\"a b\"]", "is not a valid host"),
        ("blocked_domains = [\"127.1\"]", "is not a canonical IP address"),
        ("blocked_domains = [\"*.127.0.0.1\"]", "no subdomains"),
        ("allowed_private_hosts = [\"localhost:0\"]", "expected a number from 1"),
        ("allowed_private_hosts = [\"*.local\"]", "must be alone"),
        ("allowed_domains = [\"docs.rs:8000\"]", "is not a valid host"),
    ] {
        let text = format!("schema_version = 1\n[capabilities.\"Network.Http\"]\n{table}");
        let error = Bundle::parse(&text, "policy.toml").err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.starts_with("policy.toml line 3: ") && error.contains(words), "{table}: {error}");
    }
}

#[test]
fn a_bundle_without_the_http_capability_denies_every_request() {
    let text = "schema_version = 1\n[capabilities.\"File.Read\"]";
    let enforcer = in_mode(vec![Layer::new(Scope::User, Bundle::parse(text, "p").unwrap())], Mode::Auto);
    expect(&enforcer, VerdictKind::Deny, &["https://docs.rs/", "http://127.0.0.1/", "nonsense"]);
}

#[test]
fn a_host_may_resolve_only_to_addresses_that_its_url_was_approved_for() {
    let enforcer = user("allowed_private_hosts = [\"nas.example\", \"10.0.0.5\"]");
    let may = |url: &str, address: &str| enforcer.may_connect(url, address.parse().unwrap());
    assert_eq!(may("https://docs.rs/", "93.184.216.34"), Ok(()));
    assert_eq!(
        may("https://docs.rs/", "10.0.0.5"),
        Err("`docs.rs` resolves to `10.0.0.5`, a private address; only public hosts are allowed".to_owned())
    );
    assert_eq!(may("http://nas.example/", "192.168.1.2"), Ok(()));
    assert!(may("http://nas.example/", "169.254.169.254").is_err());
    assert_eq!(may("http://10.0.0.5/", "10.0.0.5"), Ok(()));
    assert!(may("http://10.0.0.5/", "10.0.0.6").is_err());
}

#[test]
fn only_names_that_can_be_public_are_public() {
    for name in ["example.com", "registry.npmjs.org", "GITHUB.com", "B\u{fc}cher.example"] {
        assert!(is_public_name(name), "{name}");
    }
    for name in
        ["93.184.216.34", "127.0.0.1", "[::1]", "::1", "localhost", "db", "a.internal", "metadata.goog", "169.254.169.254"]
    {
        assert!(!is_public_name(name), "{name}");
    }
}
