//! Parses plugin manifests in the formats of aye and Claude Code.

use crate::protocol::Problem;
use crate::skills::wrong_name;
use crate::text::clean_line;
use serde_json::{Map, Value};
use std::path::Path;

/// Possible manifest files, of which the first one that exists is used.
const FILES: [&str; 3] = [".claude-plugin/plugin.json", "plugin.json", "plugin.toml"];
/// File that lists the plugins of a marketplace.
const MARKETPLACE: &str = ".claude-plugin/marketplace.json";
/// Maximum size of the list of a marketplace, in bytes.
const MARKETPLACE_BYTES: u64 = 1 << 20;
/// Maximum number of plugins of a marketplace to list.
const MAX_LISTED: usize = 20;
/// Maximum size of a manifest, in bytes.
const FILE_BYTES: u64 = 64 << 10;
/// Maximum length of a description, in characters.
const DESCRIPTION_CHARS: usize = 1024;
/// Maximum length of a version or an author's name, in characters.
const FIELD_CHARS: usize = 100;
/// Claude Code keys that name other folders or files, and that aye ignores.
const FOLDER_KEYS: [&str; 3] = ["commands", "lspServers", "outputStyles"];

/// Manifest of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PluginManifest {
    pub name: String,
    pub version: Option<String>,
    pub description: String,
    pub author: Option<String>,
    /// Messages about parts of the manifest that have no effect.
    pub notes: Vec<String>,
}

/// Returns whether a folder contains a manifest, even if it is invalid.
pub(super) fn has_manifest(root: &Path) -> bool {
    FILES.iter().any(|file| root.join(file).symlink_metadata().is_ok())
}

/// Reads the manifest in a folder.
///
/// # Errors
/// Returns an error if the folder contains no manifest, or if the manifest is invalid.
pub(crate) fn find_manifest(root: &Path) -> Result<PluginManifest, Problem> {
    let read = |file: &str| {
        let path = root.join(file);
        path.symlink_metadata().is_ok().then(|| crate::sys::file::read(&path, FILE_BYTES).map_err(|error| error.to_string()))
    };
    let Some((file, fields)) = manifest_fields(&read) else {
        let names = FILES.map(|file| format!("`{file}`")).join(", ");
        let problem = Problem::new("the folder has no plugin manifest");
        let listed = marketplace_plugins(root);
        if !listed.is_empty() {
            let hint = format!("it is a marketplace; pass one of {}", listed.join(", "));
            return Err(problem.hint(hint));
        }
        return Err(problem.hint(format!("add one of {names} with a `name`")));
    };
    let invalid = |why: String| Problem::new(format!("`{file}` is not a valid manifest")).because(why);
    parse(&fields.map_err(invalid)?, file).map_err(invalid)
}

/// Returns the option `--path` for each plugin of a marketplace whose folder is below `root`.
fn marketplace_plugins(root: &Path) -> Vec<String> {
    let bytes = crate::sys::file::read(&root.join(MARKETPLACE), MARKETPLACE_BYTES).unwrap_or_default();
    let document: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let sources = document.get("plugins").and_then(Value::as_array).into_iter().flatten();
    let folders = sources.filter_map(|plugin| plugin.get("source")?.as_str()?.strip_prefix("./"));
    let folders = folders.map(|folder| clean_line(folder.trim_end_matches('/')));
    folders.filter(|folder| !folder.is_empty()).take(MAX_LISTED).map(|folder| format!("`--path {folder}`")).collect()
}

/// Function that reads one of the plugin's files. It returns `None` if the file does not exist.
type ReadFile<'a> = dyn Fn(&str) -> Option<Result<Vec<u8>, String>> + 'a;

/// Name of the manifest that is used, and its fields or the reason why they cannot be read.
type ManifestFields = (&'static str, Result<Map<String, Value>, String>);

/// Returns the fields of the manifest, or `None` if there is no manifest.
pub(super) fn manifest_fields(read: &ReadFile<'_>) -> Option<ManifestFields> {
    let (file, content) = FILES.into_iter().find_map(|file| Some((file, read(file)?)))?;
    Some((file, content.and_then(|bytes| fields(file, &bytes))))
}

fn fields(file: &str, bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the file is not valid UTF-8".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value: Value = if Path::new(file).extension().is_some_and(|extension| extension == "toml") {
        toml::from_str(text).map_err(|error: toml::de::Error| clean_line(error.message()))?
    } else {
        serde_json::from_str(text).map_err(|error| error.to_string())?
    };
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err("the content is not an object".to_owned()),
    }
}

/// A document to which the manifest refers, such as the hooks.
pub(super) enum Part {
    /// Path of the document within the plugin.
    File(String),
    /// Content of the document.
    Inline(Vec<u8>),
    Invalid,
}

impl Part {
    /// Parses the value of a manifest key, which may be a path, a document, or a list of both.
    pub(super) fn read(value: &Value) -> Vec<Self> {
        match value {
            Value::Null => Vec::new(),
            Value::String(path) => vec![Self::File(path.trim_start_matches("./").to_owned())],
            Value::Object(_) => vec![Self::Inline(value.to_string().into_bytes())],
            Value::Array(values) => values.iter().flat_map(Self::read).collect(),
            Value::Bool(_) | Value::Number(_) => vec![Self::Invalid],
        }
    }
}

fn parse(fields: &Map<String, Value>, file: &str) -> Result<PluginManifest, String> {
    let name = line(fields, "name", FIELD_CHARS)?.ok_or("`name` is missing; add `name`")?;
    if let Some(why) = wrong_name(&name) {
        return Err(why);
    }
    let author = match fields.get("author") {
        Some(Value::Object(author)) => line(author, "name", FIELD_CHARS)?,
        Some(_) | None => line(fields, "author", FIELD_CHARS)?,
    };
    let is_set = |key: &&str| fields.get(*key).is_some_and(|value| !value.is_null());
    let note = |key: &str| format!("`{key}` in `{file}` has no effect: aye reads only a plugin's standard folders");
    Ok(PluginManifest {
        name,
        version: line(fields, "version", FIELD_CHARS)?,
        description: line(fields, "description", DESCRIPTION_CHARS)?.unwrap_or_default(),
        author,
        notes: FOLDER_KEYS.iter().filter(|key| is_set(key)).map(|key| note(key)).collect(),
    })
}

/// Returns a field as a single line without control characters.
fn line(fields: &Map<String, Value>, key: &str, max_chars: usize) -> Result<Option<String>, String> {
    let text = match fields.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text,
        Some(_) => return Err(format!("`{key}` must be text")),
    };
    // A name is validated exactly as it is written.
    let text = if key == "name" { text.clone() } else { clean_line(text.trim()) };
    let length = text.chars().count();
    if length > max_chars {
        return Err(format!("`{key}` has {length} characters; the limit is {max_chars}"));
    }
    Ok(Some(text).filter(|text| !text.is_empty() || key == "name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str, text: &str) -> Result<PluginManifest, String> {
        let root = tempfile::TempDir::new().unwrap();
        std::fs::create_dir(root.path().join(".claude-plugin")).unwrap();
        std::fs::write(root.path().join(file), text).unwrap();
        find_manifest(&root.path().canonicalize().unwrap()).map_err(|problem| problem.text())
    }

    #[test]
    fn a_manifest_is_read_in_each_format() {
        let json = r#"{"name": "demo", "version": "1.2", "description": "Does\n\u001b[31mthings", "author": {"name": "Ada"}}"#;
        let toml = "name = \"demo\"\nversion = \"1.2\"\ndescription = \"Does\\n\\u001b[31mthings\"\nauthor = \"Ada\"\n";
        for (file, text) in [(".claude-plugin/plugin.json", json), ("plugin.json", json), ("plugin.toml", toml)] {
            let manifest = read(file, text).unwrap();
            assert_eq!((manifest.name.as_str(), manifest.version.as_deref()), ("demo", Some("1.2")), "{file}");
            assert_eq!(manifest.author.as_deref(), Some("Ada"), "{file}");
            assert!(!manifest.description.contains(['\n', '\u{1b}']), "{file}: {:?}", manifest.description);
        }
        let other = read("plugin.json", r#"{"name": "demo", "commands": "./more"}"#).unwrap();
        assert!(other.notes[0].contains("`commands` in `plugin.json` has no effect"), "{:?}", other.notes);
    }

    #[test]
    fn the_error_for_a_marketplace_lists_the_folders_of_its_plugins() {
        let text = r#"{"name": "m", "plugins": [{"name": "a", "source": "./plugins/a/"}, {"name": "b", "source": {"source": "github"}},
            {"name": "c", "source": "./c"}, {"name": "d", "source": "./"}]}"#;
        let told = read(MARKETPLACE, text).unwrap_err();
        assert!(told.contains("pass one of `--path plugins/a`, `--path c`"), "{told}");
    }

    #[test]
    fn an_invalid_manifest_is_an_error_with_the_reason() {
        let huge = format!(r#"{{"name": "demo", "description": "{}"}}"#, "x".repeat(70 << 10));
        let long = format!(r#"{{"name": "demo", "description": "{}"}}"#, "x".repeat(2000));
        for (text, why) in [
            ("", "not a valid manifest"),
            ("[]", "not an object"),
            ("{}", "`name` is missing"),
            (r#"{"name": 1}"#, "`name` must be text"),
            (r#"{"name": ""}"#, "the name is empty"),
            (r#"{"name": "../x"}"#, "may contain only lower-case letters"),
            (r#"{"name": "a\u001b[31m"}"#, "may contain only lower-case letters"),
            (r#"{"name": "Demo"}"#, "may contain only lower-case letters"),
            (r#"{"name": "demo", "version": 1}"#, "`version` must be text"),
            (long.as_str(), "the limit is 1024"),
            (huge.as_str(), "more than the 65536 allowed"),
        ] {
            let told = read("plugin.json", text).unwrap_err();
            assert!(told.contains(why), "{why}: {told}");
            assert!(!told.contains('\u{1b}'), "{told:?}");
        }
        assert!(read("other.json", "{}").unwrap_err().contains("the folder has no plugin manifest"));
    }
}
