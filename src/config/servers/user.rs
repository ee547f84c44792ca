//! The user's MCP servers, which are defined as `[mcp.servers.NAME]` in `config.toml`.

use super::expand::{expand, has_variable};
use super::{
    HttpTransport, OAuth, ServerDefinition, ServerFile, ServerTransport, Values, bearer, check_header, check_name, check_url,
    is_authentication,
};
use crate::config::Environment;
use crate::config::file::{ConfigEntry, ConfigValue};
use crate::config::settings::{Settings, flag, number};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

impl Settings {
    /// Returns the user's servers. `${VAR}` is replaced with the environment variable's value. Relative directories are
    /// resolved against the workspace.
    pub(crate) fn servers(&self, environment: &Environment, workspace: &Path, home: &Path) -> ServerFile {
        let mut found = ServerFile::default();
        for name in self.server_names() {
            let entry = Description { settings: self, name: &name, environment, workspace, home };
            match entry.read(&mut found) {
                Ok(server) => found.servers.push(server),
                Err(why) => {
                    found.problems.push(format!("{}: ignored the MCP server `{name}`: {why}", entry.location()));
                }
            }
        }
        found
    }

    /// Returns the names of all servers in `[mcp.servers]`.
    pub(crate) fn server_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for path in self.values.keys() {
            if let [mcp, servers, name, ..] = path.as_slice()
                && mcp == "mcp"
                && servers == "servers"
                && names.last() != Some(name)
            {
                names.push(name.clone());
            }
        }
        names
    }
}

struct Description<'a> {
    settings: &'a Settings,
    name: &'a str,
    environment: &'a Environment,
    workspace: &'a Path,
    home: &'a Path,
}

impl Description<'_> {
    fn read(&self, found: &mut ServerFile) -> Result<ServerDefinition, String> {
        check_name(self.name)?;
        let mut off = (!self.flag("enabled")).then(|| "`enabled = false` in your settings".to_owned());
        let way = match (self.text("command"), self.text("url")) {
            (Some(_), Some(_)) => return Err("both `command` and `url` are set; remove one".to_owned()),
            (None, None) => return Err("neither `command` nor `url` is set".to_owned()),
            (Some(command), None) => self.program(command, &mut off)?,
            (None, Some(url)) => self.http(url, &mut off, found)?,
        };
        let seconds = |key| Duration::from_secs(self.number(key));
        let timeouts = self.table("tool_timeouts").into_iter().flatten();
        Ok(ServerDefinition {
            name: self.name.to_owned(),
            place: self.location(),
            way,
            off,
            retry_attempts: u32::try_from(self.number("retry_attempts")).unwrap_or(u32::MAX),
            retry_delay: Duration::from_millis(self.number("retry_delay_ms")),
            start_timeout: seconds("start_timeout_seconds"),
            call_timeout: seconds("timeout_seconds"),
            tool_timeouts: timeouts
                .filter_map(|(tool, number)| Some((tool.clone(), Duration::from_secs(number.parse().ok()?))))
                .collect(),
        })
    }

    fn program(&self, command: &str, off: &mut Option<String>) -> Result<ServerTransport, String> {
        if command.trim().is_empty() {
            return Err("`command` is empty".to_owned());
        }
        let argv = std::iter::once(command.to_owned()).chain(self.list("args")).collect();
        let environment = self.expand_table("env", off);
        let directory = self.text("cwd").map(|given| self.directory(given));
        Ok(ServerTransport::Program { argv, environment, directory, network: self.flag("network") })
    }

    fn http(&self, url: &str, off: &mut Option<String>, found: &mut ServerFile) -> Result<ServerTransport, String> {
        check_url(url)?;
        for (header, value) in self.table("headers").into_iter().flatten() {
            if is_authentication(header) && !has_variable(value) {
                let secret = value.split_once(' ').map_or(value.as_str(), |(_, token)| token);
                found.literal_secrets.push(secret.to_owned());
                found.problems.push(format!(
                    "{}: the header `{header}` of `{}` contains a secret in plain text; put the secret in an \
                    environment variable and write `${{VARIABLE}}`",
                    self.key_location(&["headers"]),
                    self.name
                ));
            }
        }
        let mut headers = self.expand_table("headers", off);
        headers.0.iter().try_for_each(|(name, value)| check_header(name, value))?;
        if let Some(variable) = self.text("bearer_token_env")
            && let Some(why) = bearer(variable, self.environment, &mut headers)
        {
            off.get_or_insert(why);
        }
        let kind = match self.text("type") {
            Some("http") => HttpTransport::Streamable,
            Some("sse") => HttpTransport::Sse,
            Some(_) | None => HttpTransport::Auto,
        };
        let port = self.entry(&["oauth", "redirect_port"]).and_then(|entry| u16::try_from(entry.value.as_number()?).ok());
        let scopes = self.entry(&["oauth", "scopes"]).and_then(|entry| entry.value.as_list()).unwrap_or_default().to_vec();
        let client_id = self.entry(&["oauth", "client_id"]).and_then(|entry| entry.value.as_text()).map(str::to_owned);
        Ok(ServerTransport::Http { url: url.to_owned(), kind, headers, oauth: OAuth { client_id, scopes, redirect_port: port } })
    }

    /// Reads a table and replaces the variables in its values. If a variable is missing, the server is disabled.
    fn expand_table(&self, key: &str, off: &mut Option<String>) -> Values {
        let mut values = Values::default();
        for (name, value) in self.table(key).into_iter().flatten() {
            match expand(value, self.environment, &[]) {
                Ok(value) => values.0.push((name.clone(), value)),
                Err(error) => drop(off.get_or_insert(format!("{error}, but `{key}` requires it"))),
            }
        }
        values
    }

    fn directory(&self, given: &str) -> PathBuf {
        match given.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None if given == "~" => self.home.to_owned(),
            None => self.workspace.join(given),
        }
    }

    fn path(&self, key: &[&str]) -> Vec<String> {
        ["mcp", "servers", self.name].iter().chain(key).map(|&part| part.to_owned()).collect()
    }

    fn entry(&self, key: &[&str]) -> Option<&ConfigEntry> {
        self.settings.values.get(&self.path(key))
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.entry(&[key])?.value.as_text()
    }

    fn list(&self, key: &str) -> Vec<String> {
        self.entry(&[key]).and_then(|entry| entry.value.as_list()).unwrap_or_default().to_vec()
    }

    fn table(&self, key: &str) -> Option<&BTreeMap<String, String>> {
        match &self.entry(&[key])?.value {
            ConfigValue::Table(table) => Some(table),
            _ => None,
        }
    }

    fn number(&self, key: &str) -> u64 {
        number(&self.settings.values, &["mcp", "servers", self.name, key])
    }

    fn flag(&self, key: &str) -> bool {
        flag(&self.settings.values, &["mcp", "servers", self.name, key])
    }

    /// Returns the location of the server's first key.
    fn location(&self) -> String {
        let keys = self.settings.values.iter().filter(|(path, _)| path.get(..3) == Some(self.path(&[]).as_slice()));
        let line = |entry: &ConfigEntry| match &entry.origin {
            crate::config::file::ValueOrigin::File { line, .. } => *line,
            crate::config::file::ValueOrigin::Profile { .. } | crate::config::file::ValueOrigin::Flag => usize::MAX,
        };
        keys.map(|(_, entry)| entry).min_by_key(|entry| line(entry)).map_or_else(String::new, |entry| entry.origin.to_string())
    }

    fn key_location(&self, key: &[&str]) -> String {
        self.entry(key).map_or_else(|| self.location(), |entry| entry.origin.to_string())
    }
}
