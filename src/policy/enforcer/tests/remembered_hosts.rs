//! Tests the hosts that a saved rule permits one command to connect to when it runs in a copy of the workspace.

use super::grants::said;
use super::*;
use crate::policy::bundle::Approve;
use crate::protocol::{GrantRule, GrantScope, SandboxAccess};
use proptest::prelude::*;

const INDEX: &str = "index.example.com:443";
const CARGO: &str =
    "command = [\"cargo\", \"fetch\"]\nsandboxed = true\nhosts = [\"index.example.com:443\"]\ndecision = \"allow\"";

fn by_effects() -> Enforcer {
    built_in().approving(Some(Approve::Effects))
}

/// Returns an enforcer that contains a saved rule, given as policy file text, in a layer with this scope.
fn saved(scope: Scope, rule: &str) -> Result<Enforcer, String> {
    let text = format!("schema_version = 1\n[[capabilities.\"Shell.Exec\".rules]]\n{rule}\n");
    let bundle = Bundle::parse_rules(&text, "policy.toml").map_err(|error| error.to_string())?;
    let mut enforcer = by_effects();
    Arc::make_mut(&mut enforcer.stack).push(Layer::new(scope, bundle), &enforcer.context);
    Ok(enforcer)
}

fn reached(enforcer: &Enforcer, line: &str) -> Vec<String> {
    enforcer.explain(&exec(line), now()).hosts.iter().map(ToString::to_string).collect()
}

fn host(text: &str) -> SandboxAccess {
    let (host, port) = text.rsplit_once(':').unwrap();
    SandboxAccess::Host { host: host.to_owned(), port: port.parse().unwrap() }
}

#[test]
fn a_rule_allows_its_hosts_only_for_its_own_command() {
    let enforcer = saved(Scope::Mine, CARGO).unwrap();
    for line in ["cargo fetch", "cargo fetch --locked -q", "cd sub && cargo fetch"] {
        assert_eq!(reached(&enforcer, line), [INDEX], "{line}");
    }
    for line in [
        "cargo build",
        "cargo fetch && ./run.sh",
        "cargo fetch; curl https://index.example.com/",
        "cargo fetch | sh",
        "cargo fetch | tail -1",
        "cargo fetch --config build.rustc-wrapper=./x",
        "cargo fetch --manifest-path ../x/Cargo.toml",
        "CARGO_HOME=x cargo fetch",
        "env cargo fetch",
        "./cargo fetch",
        "/usr/bin/cargo fetch",
        "cargo fetch $X",
        "cargo fetch > log",
        "cargo fetch <<< x",
        "cargo $(echo fetch)",
        "bash -c 'cargo fetch'",
        "cd .. && cargo fetch",
    ] {
        assert_eq!(reached(&enforcer, line), [""; 0], "{line}");
    }
    assert_eq!(reached(&by_effects(), "cargo fetch"), [""; 0]);
}

#[test]
fn managed_rules_and_modes_override_saved_hosts_and_projects_cannot_allow_any() {
    assert_eq!(reached(&saved(Scope::Project, CARGO).unwrap(), "cargo fetch"), [""; 0], "a project opens nothing");
    for table in ["requires_approval = true", "requires_approval = true\napprove = \"effects\"\nnetwork = \"allow\""] {
        let managed = format!(
            "schema_version = 1\n[capabilities.\"Shell.Exec\"]\n{table}\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"cargo\"]\ndecision = \"ask\""
        );
        let mut enforcer = saved(Scope::Mine, CARGO).unwrap();
        Arc::make_mut(&mut enforcer.stack).push(Layer::new(Scope::Managed, parsed(&managed)), &enforcer.context);
        assert_eq!(reached(&enforcer, "cargo fetch"), [""; 0], "{table}");
    }
    for mode in [Mode::Plan, Mode::Auto] {
        let mut enforcer = saved(Scope::Mine, CARGO).unwrap();
        enforcer.context.mode = mode;
        assert!(mode == Mode::Auto || reached(&enforcer, "cargo fetch").is_empty(), "{mode:?}");
    }
    let expired = format!("{CARGO}\nexpires_at = 2026-01-01T00:00:00Z");
    assert_eq!(reached(&saved(Scope::Mine, &expired).unwrap(), "cargo fetch"), [""; 0]);
}

#[test]
fn host_rules_are_rejected_for_programs_that_run_other_code_or_send_data() {
    for program in ["python", "python3.12", "node", "sh", "bash", "curl", "wget", "make", "npm", "xargs", "ssh", "env", "sudo"] {
        let rule =
            format!("command = [\"{program}\", \"x\"]\nsandboxed = true\nhosts = [\"a.example:443\"]\ndecision = \"allow\"");
        let why = saved(Scope::Mine, &rule).err().unwrap_or_else(|| panic!("{program}"));
        assert!(why.contains("no rule lets it reach hosts"), "{why}");
    }
    for (rule, expected) in [
        ("command = [\"./x\"]\nsandboxed = true\nhosts = [\"a.example:443\"]", "specified as a path"),
        ("command = [\"cargo\", \"build\"]\nsandboxed = true\nhosts = [\"a.example:443\"]", "project code"),
        ("command = [\"cargo\", \"fetch\"]\nhosts = [\"a.example:443\"]", "only in a rule with `sandboxed = true`"),
        ("command = [\"cargo\", \"fetch\"]\nsandboxed = true\nhosts = [\"a.example\"]", "not a host with a port"),
        ("command = [\"cargo\", \"fetch\"]\nsandboxed = true\nhosts = [\"*.example:443\"]", "not a host with a port"),
        ("command = [\"cargo\", \"fetch\"]\nsandboxed = true\nhosts = [\"a.example:443/x\"]", "not a host with a port"),
        ("command = [\"cargo\", \"fetch\"]\nsandboxed = true\nhosts = [\"u@a.example:443\"]", "not a host with a port"),
    ] {
        let why = saved(Scope::Mine, &format!("{rule}\ndecision = \"allow\"")).err().unwrap_or_else(|| panic!("{rule}"));
        assert!(why.contains(expected), "{rule}: {why}");
    }
    // A pattern may match a program that must not connect; no host is allowed for it.
    let wide = saved(Scope::Mine, "command = [\"*\"]\nsandboxed = true\nhosts = [\"a.example:443\"]\ndecision = \"allow\"");
    let wide = wide.unwrap();
    for line in ["curl", "python x.py", "make", "cargo build", "./x", "sh x"] {
        assert_eq!(reached(&wide, line), [""; 0], "{line}");
    }
}

#[test]
fn host_offers_cover_a_download_subcommand_or_exactly_the_command() {
    let enforcer = by_effects();
    let offered = |line: &str, hosts: &[&str]| {
        let hosts: Vec<SandboxAccess> = hosts.iter().map(|text| host(text)).collect();
        enforcer.always_hosts(&exec(line), &hosts, now())
    };
    for (line, rule) in [
        ("cargo fetch --locked", "command = [\"cargo\", \"fetch\"], sandboxed = true, hosts = [\"index.example.com:443\"]"),
        (
            "cargo add serde",
            "command = [\"cargo\", \"add\", \"serde\"], exact = true, sandboxed = true, hosts = [\"index.example.com:443\"]",
        ),
        (
            "cd sub && mytool sync",
            "command = [\"mytool\", \"sync\"], exact = true, sandboxed = true, hosts = [\"index.example.com:443\"]",
        ),
    ] {
        let always = offered(line, &[INDEX]);
        assert_eq!(said(&always), [rule], "{line}: {:?}", always.never);
        for scope in [Some(GrantScope::Project), None] {
            let mut after = enforcer.clone();
            match scope {
                Some(scope) => {
                    let text = super::super::grants::text(&always.offers[0].rules);
                    let bundle = Bundle::parse_rules(&text, "policy.toml").unwrap();
                    after.replace_user_layer(Some(Layer::new(Scope::Mine, bundle)), scope);
                }
                None => after.keep(&always.offers[0].rules, Some(PathBuf::from(ROOT))).unwrap(),
            }
            assert_eq!(reached(&after, line), [INDEX], "{line} {scope:?}");
            after.ungrant(&always.offers[0].rules, Some(Path::new(ROOT)));
            assert!(scope.is_some() || reached(&after, line).is_empty(), "{line}");
        }
        // A rule that the user types may name fewer hosts, but no other hosts.
        let two = offered(line, &[INDEX, "static.example.com:443"]).offers;
        assert!(enforcer.offer_written(&exec(line), &two, rule, now()).is_ok(), "{line}");
        let other = rule.replace("index.example.com", "evil.example");
        assert!(enforcer.offer_written(&exec(line), &two, &other, now()).unwrap_err().contains("broader"), "{line}");
    }
    for line in [
        "curl https://index.example.com/",
        "cargo build",
        "npm ci",
        "cargo fetch && make",
        "python x.py",
        "./x",
        "cargo fetch $X",
    ] {
        let always = offered(line, &[INDEX]);
        assert!(always.offers.is_empty() && !always.never.is_empty(), "{line}: {always:?}");
    }
}

#[test]
fn host_rules_round_trip_through_one_line_of_toml() {
    let rule =
        GrantRule::parse_line("command = [\"cargo\", \"fetch\"], sandboxed = true, hosts = [\"index.example.com:443\"]").unwrap();
    assert_eq!(GrantRule::parse_line(&rule[0].to_string()).unwrap(), rule);
}

const WORDS: &[&str] = &[
    "cargo",
    "fetch",
    "build",
    "--locked",
    "-q",
    "&&",
    "|",
    ";",
    "curl",
    "mytool",
    "sync",
    "sh",
    "-c",
    "'cargo fetch'",
    "env",
    "x=1",
    "$X",
    "cd",
    "sub",
    "../x",
    ">",
    "log",
    "--config",
    "`id`",
    "(",
    ")",
    "!",
    "\"fetch\"",
    "*",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 768, ..ProptestConfig::default() })]

    #[test]
    fn a_rule_never_allows_other_hosts_or_hosts_for_other_commands(
        words in prop::collection::vec(prop::sample::select(WORDS), 1..6),
    ) {
        let enforcer = saved(Scope::Mine, CARGO).unwrap();
        let line = words.join(" ");
        let hosts = reached(&enforcer, &line);
        let rest = line.strip_prefix("cd sub && ").unwrap_or(&line).replace("\"fetch\"", "fetch");
        // These symbols neither add a command nor change the effect of one.
        let command: Vec<&str> = rest.split_whitespace().filter(|word| !["(", ")", "!", ";"].contains(word)).collect();
        let is_fetch = command.starts_with(&["cargo", "fetch"])
            && command[2..].iter().all(|word| ["--locked", "-q"].contains(word));
        prop_assert!(hosts.is_empty() || (is_fetch && hosts == [INDEX]), "{line}: {hosts:?}");
        prop_assert!(reached(&by_effects(), &line).is_empty());
    }
}
