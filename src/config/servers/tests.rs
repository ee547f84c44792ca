use super::*;
use crate::config::{Settings, file};
use std::path::Path;

fn environment() -> Environment {
    Environment::from_pairs(
        [("TOKEN", "t-1"), ("HOST", "example.org"), ("KEY", "sk-own")].map(|(a, b)| (a.to_owned(), b.to_owned())),
    )
}

fn own(toml: &str) -> ServerFile {
    let settings = Settings::from_values(file::parse(toml, Path::new("config.toml")).unwrap(), &[]).unwrap();
    settings.servers(&environment(), Path::new("/w"), Path::new("/h"))
}

fn project(json: &str) -> ServerFile {
    parse_project_servers(json.as_bytes(), Path::new("/w/.mcp.json"), &environment(), &["KEY".to_owned()])
}

#[test]
fn program_and_http_servers_are_parsed_with_all_settings() {
    let found =
        own("[mcp.servers.a]\ncommand = 'npx'\nargs = ['-y', 'x']\nenv = { T = '${TOKEN}' }\ncwd = '~/d'\ntimeout_seconds = 5\n\
         tool_timeouts = { build = 600 }\nretry_attempts = 1\n[mcp.servers.b]\nurl = 'https://h/mcp?x=1'\ntype = 'sse'\n\
         bearer_token_env = 'TOKEN'\nenabled = false\n[mcp.servers.b.oauth]\nscopes = ['s']\nredirect_port = 81\n");
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    let [a, b] = found.servers.as_slice() else { panic!("{found:?}") };
    let ServerTransport::Program { argv, environment, directory, network } = &a.way else { panic!("{a:?}") };
    assert_eq!(argv, &["npx", "-y", "x"]);
    assert_eq!(environment.0, [("T".to_owned(), "t-1".to_owned())]);
    assert_eq!(directory.as_deref(), Some(Path::new("/h/d")));
    assert!(!network, "only where it is said");
    assert_eq!((a.call_timeout.as_secs(), a.start_timeout.as_secs(), a.retry_attempts), (5, 30, 1));
    assert_eq!(a.tool_timeouts, [("build".to_owned(), Duration::from_secs(600))]);
    assert_eq!(a.place, "`config.toml` line 2");
    let ServerTransport::Http { kind, headers, oauth, .. } = &b.way else { panic!("{b:?}") };
    assert_eq!((*kind, headers.0[0].1.as_str(), oauth.redirect_port), (HttpTransport::Sse, "Bearer t-1", Some(81)));
    assert!(b.off.as_deref().unwrap().contains("enabled = false"));
    assert!(!format!("{found:?}").contains("t-1"), "nothing prints a value");
}

#[test]
fn invalid_servers_are_reported_with_their_line_and_the_others_are_used() {
    for (toml, said) in [
        ("[mcp.servers.x]\nargs = ['a']\n", "line 2: ignored the MCP server `x`: neither"),
        ("[mcp.servers.x]\ncommand = 'a'\nurl = 'https://h'\n", "remove one"),
        ("[mcp.servers.x]\nurl = 'http://example.org/mcp'\n", "unencrypted"),
        ("[mcp.servers.x]\nurl = 'https://u:p@h/mcp'\n", "contains a password"),
        ("[mcp.servers.x]\nurl = 'file:///x'\n", "has the scheme `file:`"),
        ("[mcp.servers.'a/b']\ncommand = 'a'\n", "invalid server name `a/b`"),
        ("[mcp.servers.Backend-Tools]\ncommand = 'a'\n", "`backend-tools` is reserved"),
        ("[mcp.servers.Agent]\ncommand = 'a'\n", "`Agent` is reserved for agents"),
        ("[mcp.servers.x]\nurl = 'https://h'\nheaders = { Host = 'a' }\n", "is set by aye"),
        ("[mcp.servers.x]\nurl = 'https://h'\nheaders = { 'a b' = 'a' }\n", "invalid header name"),
        ("[mcp.servers.x]\ncommand = ' '\n", "`command` is empty"),
    ] {
        let found = own(&format!("{toml}[mcp.servers.z]\ncommand = 'ok'\n"));
        let problems = found.problems.join("\n");
        assert!(problems.contains(said), "{toml}: {problems}");
        assert_eq!(found.servers.len(), 1, "{toml}");
    }
}

#[test]
fn a_literal_secret_causes_a_warning_that_does_not_quote_it() {
    let found = own("[mcp.servers.x]\nurl = 'https://h'\nheaders = { Authorization = 'Bearer hush', X-Trace = 'on' }\n");
    assert_eq!(found.literal_secrets, ["hush"]);
    assert!(found.problems[0].contains("line 3") && found.problems[0].contains("`Authorization`"), "{:?}", found.problems);
    assert!(!found.problems[0].contains("hush") && found.servers.len() == 1);
    let found = own("[mcp.servers.x]\nurl = 'https://h'\nheaders = { Authorization = 'Bearer ${TOKEN}' }\n");
    assert!(found.problems.is_empty() && found.literal_secrets.is_empty());
}

#[test]
fn an_unset_variable_disables_only_its_server() {
    let found = own(
        "[mcp.servers.x]\nurl = 'https://h'\nheaders = { A = '${NOPE}' }\n[mcp.servers.y]\nurl = 'https://h'\nbearer_token_env = 'NOPE'\n",
    );
    for server in &found.servers {
        assert!(server.off.as_deref().unwrap().contains("NOPE"), "{server:?}");
    }
}

#[test]
fn variables_and_defaults_are_expanded_once() {
    let of = |text: &str| expand::expand(text, &environment(), &["KEY".to_owned()]);
    for (text, expanded) in [
        ("a ${TOKEN} b", "a t-1 b"),
        ("${NOPE:-x}${TOKEN:-y}", "xt-1"),
        ("${NOPE:-}", ""),
        ("$TOKEN ${} ${a b} ${TOKEN", "$TOKEN ${} ${a b} ${TOKEN"),
        ("${NOPE:-$}{TOKEN}", "${TOKEN}"),
    ] {
        assert_eq!(of(text).as_deref(), Ok(expanded), "{text}");
    }
    assert_eq!(of("${NOPE}"), Err(expand::ExpandError::Unset("NOPE".to_owned())));
    assert_eq!(of("${KEY:-x}"), Err(expand::ExpandError::OwnKey("KEY".to_owned())));
}

#[test]
fn project_server_files_are_parsed_as_by_other_tools() {
    let found = project(
        r#"{"mcpServers": {
            "a": {"command": "${NOPE:-node}", "args": ["x", "${TOKEN}"], "env": {"T": "${TOKEN}"}, "cwd": "sub"},
            "b": {"type": "http", "url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            "c": {"url": "https://h/", "headers": {"A": "${KEY}"}},
            "d": {"type": "stdio", "command": "x", "disabled": true},
            "e": {"type": "ws", "url": "https://h"},
            "f": {"command": 1},
            "g": {"url": "http://h/mcp"},
            "h/i": {"command": "x"},
            "j": 3}}"#,
    );
    let names: Vec<&str> = found.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
    let ServerTransport::Program { argv, directory, .. } = &found.servers[0].way else { panic!() };
    assert_eq!((argv.join(" ").as_str(), directory.as_deref()), ("node x t-1", Some(Path::new("/w/sub"))));
    let ServerTransport::Http { url, headers, .. } = &found.servers[1].way else { panic!() };
    assert_eq!((url.as_str(), headers.0[0].1.as_str()), ("https://example.org/mcp", "Bearer t-1"));
    assert!(found.servers[2].off.as_deref().unwrap().contains("one of aye's API keys"));
    assert!(found.servers[3].off.as_deref().unwrap().contains("disabled"));
    assert_eq!(found.problems.len(), 5, "{:?}", found.problems);
    for json in ["", "{", "[]", "{\"servers\": {}}", "{\"mcpServers\": []}"] {
        let found = project(json);
        assert!(found.servers.is_empty() && found.problems.len() == 1, "{json}: {found:?}");
    }
}

#[test]
fn servers_are_added_and_removed_without_other_changes() {
    let server = NewServer {
        command: Some("npx".to_owned()),
        args: vec!["-y".to_owned(), "x".to_owned()],
        env: vec![("A".to_owned(), "b".to_owned())],
        ..NewServer::default()
    };
    for before in
        ["", "# mine\n[ui]\nplain = true # yes\n", "[mcp.servers.other]\ncommand = 'a' # good\n", "[mcp]\ndefer_over = 5\n"]
    {
        let with = with_server(before, "x.y", &server).unwrap().unwrap();
        assert!(with.starts_with(before.trim_end()), "{with}");
        assert!(
            with.contains("[mcp.servers.\"x.y\"]\ncommand = \"npx\"\nargs = [\"-y\", \"x\"]\nenv = { A = \"b\" }\n"),
            "{with}"
        );
        assert_eq!(own(&with).servers.last().unwrap().name, "x.y");
        assert_eq!(with_server(&with, "x.y", &server), Ok(None));
        let without = without_server(&with, "x.y").unwrap().unwrap();
        assert_eq!(without.trim_end(), before.trim_end());
        assert_eq!(without_server(before, "x.y"), Ok(None));
    }
    assert!(with_server("mcp = 3", "a", &server).unwrap_err().to_string().contains("must be a table"));
    assert!(with_server("[", "a", &server).is_err());
}
