//! Other agents' MCP servers in the form in which they are added to aye's settings: without secrets and without network
//! access.

use super::secrets::{SecretFinder, variable_name};
use super::settings::{AgentSettings, ServerEntry};
use super::sources::Sources;
use crate::config::servers::{NewServer, check_name, check_url};

/// Maximum number of characters of a server name to show in a message.
const NAME_CHARS: usize = 64;

/// Server as described by another agent. References to environment variables have been converted to `${VAR}`.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerDescription {
    pub command: Option<String>,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub url: Option<String>,
    pub kind: Option<String>,
    pub headers: Vec<(String, String)>,
    pub bearer_token_env: Option<String>,
    pub directory: Option<String>,
    pub is_off: bool,
    pub start_timeout_seconds: Option<u64>,
    pub timeout_seconds: Option<u64>,
}

/// Adds a server to the settings, or records why it will not be imported.
pub(super) fn add(settings: &mut AgentSettings, place: &str, name: &str, found: ServerDescription, secrets: &SecretFinder) {
    match convert(name, found, secrets) {
        Ok((server, variables)) => {
            settings.servers.push(ServerEntry { place: place.to_owned(), name: name.to_owned(), server, variables });
        }
        Err(why) => {
            let name: String = name.chars().take(NAME_CHARS).collect();
            settings.leave_out(place, format!("MCP server `{name}`"), why);
        }
    }
}

/// Returns the reason why a server in the project's own settings will not be imported.
pub(super) fn of_project(name: &str, sources: &Sources) -> String {
    if sources.has_project_server(name) {
        return "the `.mcp.json` of the project has a server with this name, and aye reads that file".to_owned();
    }
    let add = if check_name(name).is_ok() { format!("`aye mcp add {name}`") } else { "`aye mcp add NAME`".to_owned() };
    format!("add it to the `.mcp.json` of the project, which aye reads; {add} adds it for you only")
}

fn convert(name: &str, found: ServerDescription, secrets: &SecretFinder) -> Result<(NewServer, Vec<String>), String> {
    check_name(name)?;
    match (&found.command, &found.url) {
        (Some(_), Some(_)) => return Err("both a command and an address are set".to_owned()),
        (None, None) => return Err("neither a command nor an address is set".to_owned()),
        (Some(command), None) if command.trim().is_empty() => return Err("the command is empty".to_owned()),
        (None, Some(url)) if url.contains("${") => {
            return Err("the address contains a variable, which aye expands only in `env` and `headers`".to_owned());
        }
        (None, Some(url)) if secrets.has_secret_in_url(url) => {
            return Err(format!("the address contains a secret; add it with `aye mcp add {name} URL` and a header instead"));
        }
        (None, Some(url)) => check_url(url)?,
        (Some(_), None) => {}
    }
    let words: Vec<String> = found.command.iter().chain(&found.args).cloned().collect();
    if words.iter().any(|word| word.contains("${")) {
        return Err("the command contains a variable, which aye expands only in `env` and `headers`".to_owned());
    }
    if secrets.has_secret_argument(&words) {
        return Err("the arguments contain a secret; put the secret in an environment variable of the program".to_owned());
    }
    let mut variables = Vec::new();
    let protect = |variables: &mut Vec<String>, name: &str, value: &str, variable: String| {
        let protected = secrets.protect(name, value, &variable);
        variables.extend(protected.variable);
        protected.value
    };
    let is_name = |name: &str| !name.is_empty() && variable_name(&[name]) == name.to_ascii_uppercase();
    let mut env = Vec::new();
    for (variable, value) in &found.env {
        let own = if is_name(variable) { variable.clone() } else { variable_name(&[name, variable]) };
        env.push((variable.clone(), protect(&mut variables, variable, value, own)));
    }
    let mut bearer_token_env = found.bearer_token_env;
    let mut headers = Vec::new();
    for (header, value) in &found.headers {
        let is_bearer = header.eq_ignore_ascii_case("authorization") && value.starts_with("Bearer ");
        if is_bearer && bearer_token_env.is_none() && secrets.is_secret(header, value) {
            let variable = variable_name(&[name, "token"]);
            bearer_token_env = Some(variable.clone());
            variables.push(variable);
            continue;
        }
        headers.push((header.clone(), protect(&mut variables, header, value, variable_name(&[name, header]))));
    }
    variables.sort();
    variables.dedup();
    let server = NewServer {
        command: found.command,
        args: found.args,
        env,
        url: found.url,
        kind: found.kind,
        headers,
        // Only the user can allow network access.
        network: false,
        bearer_token_env,
        directory: found.directory,
        is_off: found.is_off,
        start_timeout_seconds: found.start_timeout_seconds,
        timeout_seconds: found.timeout_seconds,
    };
    Ok((server, variables))
}
