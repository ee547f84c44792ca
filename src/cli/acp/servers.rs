//! MCP servers that an editor passes when it opens a session.

use crate::acp::{EditorServer, ServerReach};
use crate::mcp::{Header, HttpKind, Reach, SignIn, Spec};
use std::collections::HashSet;
use std::time::Duration;

/// Maximum number of servers per session.
const MAX: usize = 64;
/// Timeout for starting a server, as for servers from the settings.
const START: Duration = Duration::from_secs(30);
const CALL: Duration = Duration::from_secs(120);
const RETRY_ATTEMPTS: u32 = 3;
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Returns the valid servers, and an error message for each invalid one. In this session, the policy treats these
/// servers like the user's own servers.
pub(crate) fn specs(servers: Vec<EditorServer>) -> (Vec<Spec>, Vec<String>) {
    let (mut specs, mut problems, mut names) = (Vec::<Spec>::new(), Vec::new(), HashSet::new());
    let left_out = servers.len().saturating_sub(MAX);
    if left_out > 0 {
        problems.push(format!("ignored {left_out} MCP servers from the editor: the limit is {MAX}"));
    }
    for server in servers.into_iter().take(MAX) {
        let name = server.name.clone();
        if !names.insert(name.clone()) {
            problems.push(format!("the editor passes two MCP servers named `{name}`; the first one is used"));
            continue;
        }
        match spec(server) {
            Ok(spec) => specs.push(spec),
            Err(why) => problems.push(format!("ignored the MCP server `{name}` from the editor: {why}")),
        }
    }
    (specs, problems)
}

fn spec(server: EditorServer) -> Result<Spec, String> {
    let EditorServer { name, reach } = server;
    if name.trim().is_empty() || name.contains('/') || name.chars().any(char::is_control) || name.len() > 100 {
        return Err("the name must be 1 to 100 characters without `/`".to_owned());
    }
    let http = |url: String, headers: Vec<(String, String)>, kind| {
        check_url(&url)?;
        let headers: Vec<Header> = headers.into_iter().map(|(name, value)| Header { name, value }).collect();
        // A server with its own authorization header needs no sign-in.
        let has_key = headers.iter().any(|header| header.name.eq_ignore_ascii_case("authorization"));
        let sign_in =
            if has_key { SignIn::None } else { SignIn::OAuth { client_id: None, scopes: Vec::new(), redirect_port: None } };
        Ok::<_, String>(Reach::Http { url, headers, sign_in, kind })
    };
    let reach = match reach {
        ServerReach::Program { command, arguments, environment } => {
            let program = command.to_str().filter(|program| !program.is_empty()).ok_or("the command is empty")?;
            let argv = std::iter::once(program.to_owned()).chain(arguments).collect();
            Reach::Program { argv, environment, directory: None, network: false }
        }
        ServerReach::Http { url, headers } => http(url, headers, HttpKind::Auto)?,
        ServerReach::Events { url, headers } => http(url, headers, HttpKind::Sse)?,
    };
    Ok(Spec {
        name,
        reach,
        off: None,
        of_project: false,
        plugin: None,
        retry_attempts: RETRY_ATTEMPTS,
        retry_delay: RETRY_DELAY,
        start_timeout: START,
        call_timeout: CALL,
        tool_timeouts: Vec::new(),
    })
}

/// Checks that the URL uses HTTPS or points to this machine, so that requests cannot be intercepted.
fn check_url(url: &str) -> Result<(), String> {
    let rest = url.strip_prefix("http://");
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    // The host follows the last `@`.
    let host = host.map(|host| host.rsplit('@').next().unwrap_or_default());
    let on_loopback = |host: &str| {
        let host = if let Some(rest) = host.strip_prefix('[') {
            rest.split(']').next().unwrap_or_default()
        } else {
            host.split(':').next().unwrap_or_default()
        };
        host.eq_ignore_ascii_case("localhost") || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    };
    match host {
        _ if url.starts_with("https://") => Ok(()),
        Some(host) if on_loopback(host) => Ok(()),
        _ => Err("the URL must be https, or on this machine".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_from_the_editor_are_validated_like_configured_ones() {
        let http = |name: &str, url: &str| EditorServer {
            name: name.to_owned(),
            reach: ServerReach::Http { url: url.to_owned(), headers: vec![("Authorization".to_owned(), "Bearer x".to_owned())] },
        };
        let program = EditorServer {
            name: "files".to_owned(),
            reach: ServerReach::Program { command: "/bin/x".into(), arguments: vec!["-y".to_owned()], environment: Vec::new() },
        };
        let (specs, problems) = specs(vec![
            program.clone(),
            program,
            http("docs", "https://example.org/mcp"),
            http("near", "http://127.0.0.1:7/mcp"),
            http("six", "http://[::1]:7/mcp"),
            http("far", "http://example.org/mcp"),
            http("sly", "http://localhost@example.org/mcp"),
            http("a/b", "https://example.org/"),
        ]);
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["files", "docs", "near", "six"]);
        assert_eq!(problems.len(), 4, "{problems:?}");
        assert!(matches!(&specs[0].reach, Reach::Program { argv, .. } if argv == &["/bin/x", "-y"]));
        assert!(matches!(&specs[1].reach, Reach::Http { sign_in: SignIn::None, .. }));
    }
}
