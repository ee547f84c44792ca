//! Parsing of a project's or plugin's `.mcp.json`, a file format that is shared with other tools.

use super::expand::{ExpandError, expand};
use super::{HttpTransport, OAuth, ServerDefinition, ServerFile, ServerTransport, Values, check_header, check_name, check_url};
use crate::config::Environment;
use crate::hooks::PLUGIN_ROOT;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of servers per file.
const MAX_SERVERS: usize = 100;

/// Parses a project's servers. `withheld` contains the environment variables that servers must not receive.
pub(crate) fn parse_project_servers(bytes: &[u8], file: &Path, environment: &Environment, withheld: &[String]) -> ServerFile {
    let mut found = ServerFile::default();
    let place = format!("`{}`", file.display());
    let document: Value = match serde_json::from_slice(bytes) {
        Ok(document) => document,
        Err(error) => {
            found.problems.push(format!("{place} line {}: invalid JSON; its servers are ignored", error.line()));
            return found;
        }
    };
    let Some(entries) = document.get("mcpServers").and_then(Value::as_object) else {
        found.problems.push(format!("{place}: expected {{\"mcpServers\": {{NAME: …}}}}; its servers are ignored"));
        return found;
    };
    let directory = file.parent().unwrap_or(Path::new(""));
    // Paths are relative to the project, even if this run uses another workspace.
    let start = Some(directory.to_owned());
    found.add(entries, &place, |entry| ProjectServer { entry, directory, start: start.clone(), environment, withheld });
    found
}

/// Parses a plugin's servers, given the plugin's name, the display name of the file, and the plugin folder. Servers are
/// named `PLUGIN:SERVER`. Their programs are started in the workspace if it is trusted. `withheld` contains the
/// environment variables that servers must not receive.
pub(crate) fn parse_plugin_servers(
    bytes: &[u8],
    (plugin, file, root): (&str, &str, &Path),
    environment: &Environment,
    withheld: &[String],
) -> ServerFile {
    let mut found = ServerFile::default();
    let place = format!("`{file}`");
    let document: Value = match serde_json::from_slice(bytes) {
        Ok(document) => document,
        Err(error) => {
            found.problems.push(format!("{place} line {}: invalid JSON; its servers are ignored", error.line()));
            return found;
        }
    };
    // Plugins may also list servers without the key `mcpServers`.
    let Some(entries) = document.get("mcpServers").unwrap_or(&document).as_object() else {
        found.problems.push(format!("{place}: expected {{\"mcpServers\": {{NAME: …}}}}; its servers are ignored"));
        return found;
    };
    let own = (PLUGIN_ROOT.to_owned(), root.to_string_lossy().into_owned());
    let given = environment.variables().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let environment = Environment::from_pairs(given.chain([own.clone()]));
    found.add(entries, &place, |entry| ProjectServer {
        entry,
        directory: root,
        start: None,
        environment: &environment,
        withheld,
    });
    for server in &mut found.servers {
        server.name = format!("{plugin}:{}", server.name);
        if let ServerTransport::Program { environment, .. } = &mut server.way
            && !environment.names(PLUGIN_ROOT)
        {
            environment.0.push(own.clone());
        }
    }
    found
}

impl ServerFile {
    /// Adds the servers that a file defines.
    fn add<'a>(
        &mut self,
        entries: &'a Map<String, Value>,
        place: &str,
        describe: impl Fn(&'a Map<String, Value>) -> ProjectServer<'a>,
    ) {
        for (name, entry) in entries.iter().take(MAX_SERVERS) {
            let read = check_name(name).and_then(|()| {
                let entry = entry.as_object().ok_or("expected an object")?;
                describe(entry).read(name, place)
            });
            match read {
                Ok(server) => self.servers.push(server),
                Err(why) => {
                    let name: String = name.chars().take(64).collect();
                    self.problems.push(format!("{place}: ignored the MCP server `{name}`: {why}"));
                }
            }
        }
        if entries.len() > MAX_SERVERS {
            self.problems.push(format!("{place}: more than {MAX_SERVERS} servers; the others are ignored"));
        }
    }
}

struct ProjectServer<'a> {
    entry: &'a Map<String, Value>,
    /// Folder against which relative paths are resolved.
    directory: &'a Path,
    /// Default working directory of server programs. If absent, it is the workspace.
    start: Option<PathBuf>,
    environment: &'a Environment,
    withheld: &'a [String],
}

impl ProjectServer<'_> {
    fn read(&self, name: &str, place: &str) -> Result<ServerDefinition, String> {
        let mut off = self.has_key("disabled").then(|| "disabled in its file".to_owned());
        if self.entry.get("enabled") == Some(&Value::Bool(false)) {
            off = Some("disabled in its file".to_owned());
        }
        let kind = self.text("type")?.or(self.text("transport")?);
        let way = match (self.text("command")?, self.text("url")?.or(self.text("serverUrl")?)) {
            (Some(_), Some(_)) => return Err("both `command` and `url` are set".to_owned()),
            (None, None) => return Err("neither `command` nor `url` is set".to_owned()),
            (Some(command), None) => match kind {
                None | Some("stdio") => self.program(command, &mut off)?,
                Some(other) => return Err(format!("`type` is `{other}`, but must be `stdio` with a `command`")),
            },
            (None, Some(url)) => self.http(url, kind, &mut off)?,
        };
        Ok(ServerDefinition {
            name: name.to_owned(),
            place: place.to_owned(),
            way,
            off,
            retry_attempts: 3,
            retry_delay: Duration::from_secs(1),
            start_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(60),
            tool_timeouts: Vec::new(),
        })
    }

    fn program(&self, command: &str, off: &mut Option<String>) -> Result<ServerTransport, String> {
        let mut argv = vec![self.expand(command, off)];
        for word in self.list("args")? {
            argv.push(self.expand(word, off));
        }
        if off.is_none() && argv.first().is_none_or(|program| program.trim().is_empty()) {
            return Err("`command` is empty".to_owned());
        }
        let environment = self.values("env", off)?;
        let directory = self.text("cwd")?.map(|given| self.directory.join(self.expand(given, off)));
        let directory = directory.or_else(|| self.start.clone());
        // Only the user can allow network access.
        Ok(ServerTransport::Program { argv, environment, directory, network: false })
    }

    fn http(&self, url: &str, kind: Option<&str>, off: &mut Option<String>) -> Result<ServerTransport, String> {
        let kind = match kind {
            None => HttpTransport::Auto,
            Some("http" | "streamable-http" | "streamable_http" | "streamableHttp") => HttpTransport::Streamable,
            Some("sse") => HttpTransport::Sse,
            Some(other) => {
                let other: String = other.chars().take(40).collect();
                return Err(format!("`type` is `{other}`, but must be `http` or `sse` with a `url`"));
            }
        };
        let url = self.expand(url, off);
        let headers = self.values("headers", off)?;
        if off.is_none() {
            check_url(&url)?;
        }
        headers.0.iter().try_for_each(|(name, value)| check_header(name, value))?;
        Ok(ServerTransport::Http { url, kind, headers, oauth: OAuth::default() })
    }

    /// Replaces the variables in a string. If a variable is missing, the server is disabled.
    fn expand(&self, text: &str, off: &mut Option<String>) -> String {
        expand(text, self.environment, self.withheld).unwrap_or_else(|error: ExpandError| {
            off.get_or_insert(error.to_string());
            text.to_owned()
        })
    }

    fn values(&self, key: &str, off: &mut Option<String>) -> Result<Values, String> {
        let Some(table) = self.entry.get(key) else { return Ok(Values::default()) };
        let wrong = || format!("`{key}` must be an object of strings");
        let mut values = Values::default();
        for (name, value) in table.as_object().ok_or_else(wrong)? {
            let value = value.as_str().ok_or_else(wrong)?;
            values.0.push((name.clone(), self.expand(value, off)));
        }
        Ok(values)
    }

    fn text(&self, key: &str) -> Result<Option<&str>, String> {
        match self.entry.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("`{key}` must be a string")),
        }
    }

    fn list(&self, key: &str) -> Result<Vec<&str>, String> {
        let wrong = || format!("`{key}` must be an array of strings");
        match self.entry.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(words)) => words.iter().map(|word| word.as_str().ok_or_else(wrong)).collect(),
            Some(_) => Err(wrong()),
        }
    }

    fn has_key(&self, key: &str) -> bool {
        self.entry.get(key) == Some(&Value::Bool(true))
    }
}
