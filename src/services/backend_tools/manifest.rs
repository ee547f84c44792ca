//! Manifest that describes a back-end tool service: its address, and its tools with their schemas.

use crate::config::check_tool_service_url;
use crate::ports::{MAX_SCHEMA_BYTES, RemoteTool};
use crate::protocol::{BACKEND_SERVER, Problem};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Maximum size of a manifest in bytes.
const MANIFEST_BYTES: u64 = 1 << 20;
const MAX_TOOLS: usize = 200;
/// Maximum length of a tool name in characters.
const NAME_CHARS: usize = 64;
const DEFAULT_SECONDS: u64 = 120;
const MAX_SECONDS: u64 = 3_600;

/// Where to find the token. It never contains the token itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenReference {
    /// Environment variable with this name.
    Variable(String),
    /// Key saved by `aye auth login NAME`.
    Saved(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BackendManifest {
    /// Base URL, without a trailing slash.
    pub url: String,
    pub token: Option<TokenReference>,
    pub tools: Vec<BackendTool>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BackendTool {
    pub tool: RemoteTool,
    pub timeout: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestFile {
    url: String,
    #[serde(default)]
    auth: Option<String>,
    #[serde(default)]
    timeout_seconds: Option<u64>,
    tools: Vec<ToolEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolEntry {
    name: String,
    description: String,
    #[serde(default)]
    timeout_seconds: Option<u64>,
    #[serde(default)]
    read_only: bool,
    input_schema: Value,
    #[serde(default)]
    output_schema: Option<Value>,
}

impl BackendManifest {
    /// Reads and validates a manifest file.
    pub(crate) fn read(path: &Path) -> Result<Self, Problem> {
        let failed = |why: String| {
            let problem = Problem::new(format!("cannot use the back-end tool manifest `{}`", path.display())).because(why);
            problem.hint("correct the file, or remove `services.backend_tools.manifest` from config.toml")
        };
        let bytes = crate::sys::file::read(path, MANIFEST_BYTES).map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| failed("not UTF-8 text; expected TOML".to_owned()))?;
        Self::parse(&text).map_err(failed)
    }

    /// Returns the name of the environment variable that contains the token, if it comes from one.
    pub(crate) fn token_variable(&self) -> Option<&str> {
        match &self.token {
            Some(TokenReference::Variable(name)) => Some(name),
            Some(TokenReference::Saved(_)) | None => None,
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: ManifestFile = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text.get(..span.start).unwrap_or_default().matches('\n').count());
            format!("line {line}: {}", error.message())
        })?;
        let url = check_tool_service_url(&file.url).map_err(|problem| problem.one_line())?;
        let token = file.auth.as_deref().map(parse_token).transpose()?;
        if file.tools.len() > MAX_TOOLS {
            return Err(format!("the manifest has {} tools; the limit is {MAX_TOOLS}", file.tools.len()));
        }
        let mut names = BTreeSet::new();
        let mut tools = Vec::new();
        for entry in file.tools {
            if !names.insert(entry.name.to_lowercase()) {
                return Err(format!("two tools have the name `{}`", entry.name));
            }
            tools.push(to_tool(entry, file.timeout_seconds)?);
        }
        Ok(Self { url, token, tools })
    }
}

/// Parses `env:NAME` or `keyring:NAME`. Errors never repeat the text, which could be the secret itself.
fn parse_token(text: &str) -> Result<TokenReference, String> {
    let wrong = "`auth` is not a reference to a secret; expected `env:NAME` or `keyring:NAME`";
    let (kind, name) = text.split_once(':').ok_or(wrong)?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    match kind {
        "env" if is_name => Ok(TokenReference::Variable(name.to_owned())),
        "keyring" if is_name => Ok(TokenReference::Saved(name.to_owned())),
        _ => Err(wrong.to_owned()),
    }
}

fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    text.len() <= NAME_CHARS && text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(is_plain)
}

fn to_tool(entry: ToolEntry, default_seconds: Option<u64>) -> Result<BackendTool, String> {
    let ToolEntry { name, description, timeout_seconds, read_only, input_schema, output_schema } = entry;
    if !is_name(&name) {
        let shown = name.escape_debug();
        return Err(format!("invalid tool name `{shown}`; expected a letter, then up to 63 letters, digits, `_` or `-`"));
    }
    if description.trim().is_empty() {
        return Err(format!("the tool `{name}` has no description"));
    }
    if input_schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(format!("`input_schema` of `{name}` must describe an object: `type = \"object\"`"));
    }
    if input_schema.to_string().len() > MAX_SCHEMA_BYTES {
        return Err(format!("`input_schema` of `{name}` is larger than {MAX_SCHEMA_BYTES} bytes"));
    }
    let seconds = timeout_seconds.or(default_seconds).unwrap_or(DEFAULT_SECONDS);
    if !(1..=MAX_SECONDS).contains(&seconds) {
        return Err(format!("`timeout_seconds` of `{name}` must be from 1 to {MAX_SECONDS}"));
    }
    let mut hasher = blake3::Hasher::new();
    for part in [&name, &description, &input_schema.to_string(), &format!("{output_schema:?}{read_only}")] {
        hasher.update(blake3::hash(part.as_bytes()).as_bytes());
    }
    let tool = RemoteTool {
        server: BACKEND_SERVER.to_owned(),
        name,
        title: None,
        description,
        input_schema,
        output_schema,
        says_read_only: read_only,
        fingerprint: hasher.finalize().to_hex().chars().take(32).collect(),
    };
    Ok(BackendTool { tool, timeout: Duration::from_secs(seconds) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: &str = "[[tools]]\nname = \"find\"\ndescription = \"Finds.\"\n[tools.input_schema]\ntype = \"object\"\n";

    #[test]
    fn a_manifest_has_defaults_and_references_to_secrets() {
        let manifest =
            BackendManifest::parse(&format!("url = \"https://tools.example/v1/\"\nauth = \"env:TOKEN\"\n{TOOL}")).unwrap();
        assert_eq!(manifest.url, "https://tools.example/v1");
        assert_eq!(manifest.token, Some(TokenReference::Variable("TOKEN".to_owned())));
        assert_eq!(manifest.tools[0].timeout, Duration::from_secs(120));
        let other =
            BackendManifest::parse(&format!("url = \"https://x.example\"\n{}", TOOL.replace("Finds.", "Deletes."))).unwrap();
        assert_ne!(manifest.tools[0].tool.fingerprint, other.tools[0].tool.fingerprint);
    }

    #[test]
    fn invalid_manifests_are_rejected_with_a_reason() {
        let url = "url = \"https://x.example\"\n";
        for (text, why) in [
            (TOOL.to_owned(), "url"),
            (format!("url = \"http://x.example\"\n{TOOL}"), "unencrypted"),
            (format!("{url}auth = \"sk-secret\"\n{TOOL}"), "reference to a secret"),
            (format!("{url}{}", TOOL.replace("find", "../find")), "invalid tool name"),
            (format!("{url}{}", TOOL.replace("object", "array")), "must describe an object"),
            (format!("{url}{TOOL}{}", TOOL.replace("find", "FIND")), "two tools"),
            (format!("{url}{}", TOOL.replace("name =", "nam =")), "line 3"),
            (format!("{url}timeout_seconds = 0\n{TOOL}"), "must be from 1"),
        ] {
            let error = BackendManifest::parse(&text).unwrap_err();
            assert!(error.contains(why) && !error.contains("sk-secret"), "{text}: {error}");
        }
    }
}
