//! Validates values against JSON Schemas and produces short error messages.

use boon::{Compiler, ErrorKind, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde_json::{Value, json};
use std::error::Error;

/// Maximum schema size in bytes, limited because the schema is part of every request.
const MAX_BYTES: usize = 64 << 10;
const PLACE: &str = "aye:///schema";
/// Maximum number of errors to report.
const MAX_ERRORS: usize = 3;

/// A compiled JSON Schema that has no external references.
pub(crate) struct ToolSchema {
    value: Value,
    compiled: Schemas,
    index: SchemaIndex,
}

/// Loader that refuses every external `$ref`, so no document is fetched and no file is opened.
struct DenyRefs;

impl UrlLoader for DenyRefs {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        Err(format!("`{url}` is outside the schema; a schema can only refer to itself").into())
    }
}

impl ToolSchema {
    pub(crate) fn new(value: Value) -> Result<Self, String> {
        let bytes = value.to_string().len();
        if bytes > MAX_BYTES {
            return Err(format!("the schema is {bytes} bytes, expected at most {MAX_BYTES}"));
        }
        let mut compiler = Compiler::new();
        compiler.use_loader(Box::new(DenyRefs));
        let mut compiled = Schemas::new();
        let wrong = |error: boon::CompileError| format!("{error:#}").replace(PLACE, "").replace('\n', " ");
        compiler.add_resource(PLACE, value.clone()).map_err(wrong)?;
        let index = compiler.compile(PLACE, &mut compiled).map_err(wrong)?;
        Ok(Self { value, compiled, index })
    }

    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// Checks a tool's arguments or its output.
    ///
    /// # Errors
    ///
    /// If the value does not match, the error describes each mismatch along with the field in which it occurs.
    pub(in crate::tools) fn check(&self, value: &Value) -> Result<(), String> {
        self.mismatches(value, "is not an argument of this tool")
    }

    /// Checks a response from the model. Returns the same errors as [`ToolSchema::check`], except that the text about
    /// unexpected fields differs.
    pub(crate) fn check_response(&self, value: &Value) -> Result<(), String> {
        self.mismatches(value, "is not in the schema")
    }

    /// Returns the mismatches as a single message. `additional` is the error text for a field that the schema does not
    /// allow.
    fn mismatches(&self, value: &Value, additional: &str) -> Result<(), String> {
        self.compiled.validate(value, self.index).map_err(|error| {
            let mut told = Vec::new();
            collect(&error, additional, &mut told);
            told.dedup();
            let more = told.len().saturating_sub(MAX_ERRORS);
            told.truncate(MAX_ERRORS);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            format!("{}{more}", told.join("; "))
        })
    }
}

/// Collects the leaves of the error tree. Its inner nodes state nothing but that there are errors below them.
fn collect(error: &ValidationError<'_, '_>, additional: &str, told: &mut Vec<String>) {
    if error.causes.is_empty() {
        let at = error.instance_location.to_string();
        let at = at.trim_start_matches('/').replace('/', ".");
        let field = |name: &str| if at.is_empty() { format!("`{name}`") } else { format!("`{at}.{name}`") };
        let place = if at.is_empty() { String::new() } else { format!("`{at}`: ") };
        match &error.kind {
            ErrorKind::Required { want } => told.extend(want.iter().map(|name| format!("{} is missing", field(name)))),
            ErrorKind::AdditionalProperties { got } => {
                told.extend(got.iter().map(|name| format!("{} {additional}", field(name))));
            }
            kind => told.push(format!("{place}{kind}")),
        }
        return;
    }
    error.causes.iter().for_each(|cause| collect(cause, additional, told));
}

/// Returns the JSON Schema for manifests, which editors can use.
pub(crate) fn manifest_schema() -> Value {
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "description": "A JSON Schema without external references."});
    let step = json!({
        "type": "object",
        "properties": {"tool": text, "arguments": {"type": "object"}},
        "required": ["tool"],
        "additionalProperties": false
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "aye custom tool",
        "type": "object",
        "properties": {
            "name": {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$"},
            "description": text,
            "command": {"type": "array", "items": text, "minItems": 1},
            "steps": {"type": "array", "items": step, "minItems": 1, "maxItems": crate::tools::custom::schema::MAX_STEPS},
            "input_schema": schema,
            "input_schema_file": text,
            "arguments": {"enum": ["stdin", "argv"]},
            "timeout": {"type": "integer", "minimum": 1, "maximum": 600},
            "output": {"enum": ["text", "json"]},
            "output_schema": schema,
            "output_schema_file": text,
            "sandbox": {"enum": ["read-only", "workspace-write"]},
            "network": {"enum": ["deny", "policy"]},
            "effects": {"enum": ["reads", "changes"]}
        },
        "required": ["name", "description"],
        "oneOf": [{"required": ["command"]}, {"required": ["steps"]}],
        "additionalProperties": false
    })
}

/// Maximum number of steps. Anything longer should be a program.
pub(super) const MAX_STEPS: usize = 16;
