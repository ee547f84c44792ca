//! Manifests of custom tools. Parsing is strict: a tool with an invalid manifest is not loaded, and the error states
//! the line.

use super::program_files::ToolProgram;
use super::schema::ToolSchema;
use super::template::{TemplatePart, pieces};
use crate::tools::custom::schema::MAX_STEPS;
use crate::tools::registry::find_built_in;
use crate::tools::shell::file_hashes::FileHashes;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Spanned;

const NAME_LETTERS: usize = 64;
const DESCRIPTION_BYTES: usize = 4096;
const DEFAULT_TIMEOUT_SECONDS: u64 = 300;
const TIMEOUTS: std::ops::RangeInclusive<u64> = 1..=600;

const SCHEMA_FILE_BYTES: u64 = 64 << 10;

/// Where a manifest comes from.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Path of the manifest.
    pub file: PathBuf,
    pub owner: ToolOwner,
}

/// Owner of a custom tool, along with the hashes at which its files are trusted.
#[derive(Debug, Clone)]
pub(crate) enum ToolOwner {
    User,
    /// A project, with its root and the trusted hashes of its files by name.
    Project {
        root: PathBuf,
        hashes: Arc<BTreeMap<String, String>>,
    },
    /// A plugin, with its folder and the pinned hashes of its files by name.
    Plugin {
        name: String,
        root: PathBuf,
        hashes: Arc<BTreeMap<String, String>>,
    },
}

impl ToolOwner {
    /// Returns the root of the tool's files along with their hashes, or `None` for one of the user's own tools.
    pub(super) fn reviewed_files(&self) -> Option<(&Path, &BTreeMap<String, String>)> {
        match self {
            Self::User => None,
            Self::Project { root, hashes } | Self::Plugin { root, hashes, .. } => Some((root, hashes)),
        }
    }
}

/// A custom tool, as described by its manifest.
pub(crate) struct CustomTool {
    pub name: String,
    pub description: String,
    pub source: Source,
    /// Combined hash of the manifest and its schema files.
    pub(super) hash: String,
    /// Hash of each of these files.
    pub(super) parts: FileHashes,
    pub(super) input: ToolSchema,
    pub(super) body: ToolBody,
}

pub(super) enum ToolBody {
    Program(ToolProgram),
    Steps(Vec<Step>),
}

pub(super) struct Step {
    pub tool: String,
    pub arguments: Map<String, Value>,
}

impl fmt::Debug for CustomTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomTool").field("name", &self.name).field("source", &self.source).finish_non_exhaustive()
    }
}

/// An error in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) struct ManifestError {
    pub file: PathBuf,
    pub line: Option<usize>,
    pub message: String,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line.map(|line| format!(" line {line}")).unwrap_or_default();
        write!(f, "`{}`{line}: {}; the tool is not loaded", self.file.display(), self.message)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: Spanned<String>,
    description: Spanned<String>,
    command: Option<Spanned<Vec<Spanned<String>>>>,
    steps: Option<Spanned<Vec<Spanned<RawStep>>>>,
    input_schema: Option<Spanned<toml::Table>>,
    input_schema_file: Option<Spanned<String>>,
    arguments: Option<Spanned<InputMode>>,
    timeout: Option<Spanned<i64>>,
    output: Option<Spanned<PrintFormat>>,
    output_schema: Option<Spanned<toml::Table>>,
    output_schema_file: Option<Spanned<String>>,
    sandbox: Option<Spanned<ToolSandbox>>,
    network: Option<Spanned<ToolNetwork>>,
    effects: Option<Spanned<ToolEffects>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    tool: String,
    #[serde(default)]
    arguments: toml::Table,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum InputMode {
    Stdin,
    Argv,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum PrintFormat {
    Text,
    Json,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum ToolSandbox {
    ReadOnly,
    WorkspaceWrite,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum ToolNetwork {
    Deny,
    Policy,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum ToolEffects {
    Reads,
    Changes,
}

/// Reads a single manifest.
struct Reader<'a> {
    text: &'a str,
    source: &'a Source,
    /// Hasher that is fed every part of the tool definition.
    hasher: blake3::Hasher,
    files: Vec<(PathBuf, String)>,
}

impl CustomTool {
    /// Parses a manifest and reads the schema files to which it refers, but no other files.
    pub(crate) fn parse(bytes: &[u8], source: Source) -> Result<Self, ManifestError> {
        let whole = |line: Option<usize>, message: String| ManifestError { file: source.file.clone(), line, message };
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
            whole(Some(line), "not UTF-8 text; expected a TOML file".to_owned())
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = Reader { text, source: &source, hasher: blake3::Hasher::new(), files: Vec::new() };
        reader.part(source.file.clone(), bytes);
        let raw: Raw = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| reader.line(&span));
            whole(line, error.message().replace('\n', " "))
        })?;
        let made = reader.tool(raw)?;
        let (name, description, input, body) = made;
        let hash = reader.hasher.finalize().to_hex().to_string();
        let parts = FileHashes::new(reader.files);
        Ok(Self { name, description, source, hash, parts, input, body })
    }

    /// Returns whether the files next to the manifest belong to the tool rather than to a project.
    pub(super) fn owns_directory(&self) -> bool {
        !matches!(self.source.owner, ToolOwner::Project { .. })
    }

    /// Returns the manifest's command as a command line, or `None` if the tool is a sequence of tools.
    pub(crate) fn command_line(&self) -> Option<String> {
        match &self.body {
            ToolBody::Program(program) => Some(crate::policy::line(&program.command)),
            ToolBody::Steps(_) => None,
        }
    }
}

impl Reader<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        1 + self.text.as_bytes().iter().take(span.start).filter(|byte| **byte == b'\n').count()
    }

    fn error(&self, span: &Range<usize>, message: impl Into<String>) -> ManifestError {
        ManifestError { file: self.source.file.clone(), line: Some(self.line(span)), message: message.into() }
    }

    fn tool(&mut self, raw: Raw) -> Result<(String, String, ToolSchema, ToolBody), ManifestError> {
        let name = self.name(&raw.name)?;
        let description = raw.description.get_ref().trim().to_owned();
        if description.is_empty() || description.len() > DESCRIPTION_BYTES {
            let message = format!(
                "`description` is {} bytes, expected 1 to {DESCRIPTION_BYTES}; the model sees only this text",
                description.len()
            );
            return Err(self.error(&raw.description.span(), message));
        }
        let otherwise = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let given = self.schema("input_schema", raw.input_schema.as_ref(), raw.input_schema_file.as_ref())?;
        let input = match given {
            Some(schema) => schema,
            None => ToolSchema::new(otherwise).map_err(|why| self.error(&raw.name.span(), why))?,
        };
        if input.value().get("type").and_then(Value::as_str) != Some("object") {
            let span = raw.input_schema.as_ref().map(Spanned::span).or_else(|| raw.input_schema_file.as_ref().map(Spanned::span));
            return Err(self
                .error(&span.unwrap_or_default(), "`input_schema` must have `type = \"object\"`, because arguments are named"));
        }
        let body = match (&raw.command, &raw.steps) {
            (Some(_), None) => ToolBody::Program(self.program(&raw, &input)?),
            (None, Some(steps)) => ToolBody::Steps(self.steps(&raw, steps, &input)?),
            (None, None) => {
                return Err(self.error(&raw.name.span(), "missing `command` or `steps`; set one of them"));
            }
            (Some(_), Some(steps)) => {
                return Err(self.error(&steps.span(), "`steps` cannot be combined with `command`; remove one of them"));
            }
        };
        Ok((name, description, input, body))
    }

    fn name(&self, given: &Spanned<String>) -> Result<String, ManifestError> {
        let name = given.get_ref();
        let fits = name.len() <= NAME_LETTERS
            && name.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter));
        if !fits {
            let message = format!(
                "`{name}` is not a valid tool name; expected a letter followed by up to {} letters, digits, `_` or `-`",
                NAME_LETTERS - 1
            );
            return Err(self.error(&given.span(), message));
        }
        if let Some(tool) = find_built_in(name) {
            let message = format!("`{name}` already names the built-in tool {}; choose another name", tool.name());
            return Err(self.error(&given.span(), message));
        }
        Ok(name.clone())
    }

    fn schema(
        &mut self,
        key: &str,
        inline: Option<&Spanned<toml::Table>>,
        file: Option<&Spanned<String>>,
    ) -> Result<Option<ToolSchema>, ManifestError> {
        let (value, span) = match (inline, file) {
            (None, None) => return Ok(None),
            (Some(_), Some(file)) => {
                return Err(self.error(&file.span(), format!("`{key}_file` cannot be combined with `{key}`; remove one of them")));
            }
            (Some(table), None) => (serde_json::to_value(table.get_ref()).map_err(|error| error.to_string()), table.span()),
            (None, Some(file)) => (self.file(file.get_ref()), file.span()),
        };
        let made = value.and_then(ToolSchema::new);
        made.map(Some).map_err(|why| self.error(&span, format!("`{key}` is not a valid schema: {why}")))
    }

    /// Reads a schema file. It must be in or below the manifest's directory, so that trusting the project includes it.
    fn file(&mut self, name: &str) -> Result<Value, String> {
        let directory = self.source.file.parent().unwrap_or(Path::new("/"));
        let real = directory.join(name).canonicalize().map_err(|error| format!("`{name}`: {error}"))?;
        if !directory.canonicalize().is_ok_and(|directory| real.starts_with(directory)) {
            return Err(format!("`{name}` is not in the manifest's directory or below it"));
        }
        let bytes = crate::sys::file::read(&real, SCHEMA_FILE_BYTES);
        let bytes = bytes.map_err(|_| format!("`{name}` is not a readable file of at most {SCHEMA_FILE_BYTES} bytes"))?;
        let value = serde_json::from_slice(&bytes).map_err(|error| format!("`{name}` is not JSON: {error}"));
        self.part(real, &bytes);
        value
    }

    fn part(&mut self, file: PathBuf, bytes: &[u8]) {
        self.hasher.update(b"\0").update(bytes);
        self.files.push((file, blake3::hash(bytes).to_hex().to_string()));
    }

    fn program(&mut self, raw: &Raw, input: &ToolSchema) -> Result<ToolProgram, ManifestError> {
        let Some(command) = &raw.command else { return Err(self.error(&raw.name.span(), "missing `command`")) };
        let by_words = raw.arguments.as_ref().is_some_and(|how| *how.get_ref() == InputMode::Argv);
        let properties = input.value().get("properties").and_then(Value::as_object);
        if command.get_ref().first().is_none_or(|word| word.get_ref().is_empty()) {
            return Err(self.error(&command.span(), "`command` is empty; expected a program and its arguments"));
        }
        let mut used = Vec::new();
        for (at, word) in command.get_ref().iter().enumerate() {
            if word.get_ref().contains('\0') {
                return Err(self.error(&word.span(), "`command` contains a NUL byte"));
            }
            for piece in pieces(word.get_ref()).into_iter().filter(|_| by_words) {
                let TemplatePart::Named(name) = piece else { continue };
                if at == 0 {
                    return Err(self.error(&word.span(), "`{…}` is not allowed in the program name, only in its arguments"));
                }
                let Some(property) = properties.and_then(|known| known.get(name)) else {
                    return Err(self.error(&word.span(), format!("`{{{name}}}` is not a property of `input_schema`")));
                };
                if property.get("type").and_then(Value::as_str).is_some_and(|kind| ["array", "object"].contains(&kind)) {
                    let message = format!(
                        "`{{{name}}}` is a list or an object and cannot be a command-line argument; pass the arguments on stdin"
                    );
                    return Err(self.error(&word.span(), message));
                }
                used.push(name.to_owned());
            }
        }
        let unused = properties.into_iter().flat_map(Map::keys).find(|name| by_words && !used.contains(name));
        if let Some(unused) = unused {
            let message = format!("the property `{unused}` is not used in `command`; add `{{{unused}}}`");
            return Err(self.error(&command.span(), message));
        }
        let json = raw.output.as_ref().is_some_and(|prints| *prints.get_ref() == PrintFormat::Json);
        let output = self.schema("output_schema", raw.output_schema.as_ref(), raw.output_schema_file.as_ref())?;
        if output.is_some() && !json {
            return Err(self.error(&command.span(), "`output_schema` requires `output = \"json\"`"));
        }
        let reads_only = raw.effects.as_ref().is_some_and(|effects| *effects.get_ref() == ToolEffects::Reads);
        if let Some(sandbox) =
            raw.sandbox.as_ref().filter(|sandbox| reads_only && *sandbox.get_ref() == ToolSandbox::WorkspaceWrite)
        {
            return Err(self.error(
                &sandbox.span(),
                "`sandbox` conflicts with `effects = \"reads\"`, which runs the tool read-only; remove one of them",
            ));
        }
        Ok(ToolProgram {
            command: command.get_ref().iter().map(|word| word.get_ref().clone()).collect(),
            directory: self.source.file.parent().unwrap_or(Path::new("/")).to_owned(),
            root: self.source.owner.reviewed_files().map(|(root, _)| root.to_owned()),
            by_words,
            timeout_seconds: self.timeout(raw.timeout.as_ref())?,
            json,
            output: output.map(Arc::new),
            reads_only,
            read_only_sandbox: reads_only
                || raw.sandbox.as_ref().is_some_and(|sandbox| *sandbox.get_ref() == ToolSandbox::ReadOnly),
            no_network: raw.network.as_ref().is_some_and(|network| *network.get_ref() == ToolNetwork::Deny),
        })
    }

    fn timeout(&self, given: Option<&Spanned<i64>>) -> Result<u64, ManifestError> {
        let Some(given) = given else { return Ok(DEFAULT_TIMEOUT_SECONDS) };
        let seconds = u64::try_from(*given.get_ref()).unwrap_or_default();
        if TIMEOUTS.contains(&seconds) {
            return Ok(seconds);
        }
        let message = format!("`timeout` is {}; expected {} to {} seconds", given.get_ref(), TIMEOUTS.start(), TIMEOUTS.end());
        Err(self.error(&given.span(), message))
    }

    fn steps(&self, raw: &Raw, steps: &Spanned<Vec<Spanned<RawStep>>>, input: &ToolSchema) -> Result<Vec<Step>, ManifestError> {
        let alone = [
            raw.arguments.as_ref().map(Spanned::span),
            raw.timeout.as_ref().map(Spanned::span),
            raw.output.as_ref().map(Spanned::span),
            raw.output_schema.as_ref().map(Spanned::span),
            raw.output_schema_file.as_ref().map(Spanned::span),
            raw.sandbox.as_ref().map(Spanned::span),
            raw.network.as_ref().map(Spanned::span),
            raw.effects.as_ref().map(Spanned::span),
        ];
        if let Some(span) = alone.into_iter().flatten().next() {
            return Err(self.error(&span, "this key is only for a tool with a `command`; each of the `steps` has its own"));
        }
        let count = steps.get_ref().len();
        if !(1..=MAX_STEPS).contains(&count) {
            return Err(self.error(&steps.span(), format!("`steps` has {count} entries, expected 1 to {MAX_STEPS}")));
        }
        let properties = input.value().get("properties").and_then(Value::as_object);
        let mut made = Vec::new();
        for (at, step) in steps.get_ref().iter().enumerate() {
            let RawStep { tool, arguments } = step.get_ref();
            if tool.eq_ignore_ascii_case(raw.name.get_ref()) {
                return Err(self.error(&step.span(), "a tool cannot be a step of itself"));
            }
            let arguments = serde_json::to_value(arguments).map_err(|error| self.error(&step.span(), error.to_string()))?;
            let mut wrong = None;
            for_each_text(&arguments, &mut |text| {
                for piece in pieces(text) {
                    let TemplatePart::Named(name) = piece else { continue };
                    let fits = match (name.strip_prefix("input."), step_index(name)) {
                        (Some(input), _) => properties.is_some_and(|known| known.contains_key(input)),
                        (None, Some(before)) => before < at,
                        (None, None) => !name.starts_with("steps[") && !name.starts_with("input"),
                    };
                    if !fits {
                        wrong.get_or_insert_with(|| name.to_owned());
                    }
                }
            });
            if let Some(name) = wrong {
                let message = format!("`{{{name}}}` is neither a property of `input_schema` nor the output of an earlier step");
                return Err(self.error(&step.span(), message));
            }
            let Value::Object(arguments) = arguments else {
                return Err(self.error(&step.span(), "`arguments` must be a table"));
            };
            made.push(Step { tool: tool.clone(), arguments });
        }
        Ok(made)
    }
}

/// Returns the step index from a name such as `steps[0].output`.
pub(super) fn step_index(name: &str) -> Option<usize> {
    name.strip_prefix("steps[")?.strip_suffix("].output")?.parse().ok()
}

pub(super) fn for_each_text(value: &Value, see: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(values) => values.iter().for_each(|value| for_each_text(value, see)),
        Value::Object(values) => values.values().for_each(|value| for_each_text(value, see)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
