//! JSON Schema to which the final response of a task must conform. It is either given with `--output-schema` or defined
//! by aye.

use crate::headless::ResponseCheck;
use crate::host::error::CliError;
use crate::protocol::Problem;
use crate::tools::ToolSchema;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// Maximum size of a schema file in bytes, limited because the schema is sent with every request.
const MAX_BYTES: u64 = 64 << 10;
/// Maximum length, in characters, of the description of mismatches that is sent to the model.
const MAX_REPORT_CHARS: usize = 2_000;
/// Number of times that the model may correct a response that does not conform to the schema.
pub(crate) const REPAIRS: usize = 1;
const FENCE: &str = "```";

pub(crate) struct OutputSchema {
    /// Name in messages: the path in backticks, or a description.
    name: String,
    schema: ToolSchema,
}

impl OutputSchema {
    /// Reads and compiles a schema.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, does not contain JSON, or is not a valid JSON Schema.
    pub(crate) fn load(path: &Path) -> Result<Self, CliError> {
        let shown = path.display();
        let unreadable =
            |why: &dyn std::fmt::Display| CliError::usage(Problem::new(format!("cannot read the schema `{shown}`")).because(why));
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(|error| unreadable(&error))?;
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(
                unreadable(&format!("larger than {} KB", MAX_BYTES >> 10)).hint("remove descriptions and examples from it")
            );
        }
        let value: Value = serde_json::from_slice(&bytes)
            .map_err(|error| CliError::usage(Problem::new(format!("the schema `{shown}` is not JSON")).because(error)))?;
        let schema = ToolSchema::new(value).map_err(|why| {
            CliError::usage(Problem::new(format!("`{shown}` is not a valid JSON Schema")).because(why))
                .hint("see https://json-schema.org/understanding-json-schema")
        })?;
        Ok(Self { name: format!("`{shown}`"), schema })
    }

    /// Compiles a schema defined by aye. `name` is the name used in messages.
    pub(crate) fn built_in(text: &str, name: &str) -> Result<Self, CliError> {
        let wrong = |why: &dyn std::fmt::Display| CliError::failed(Problem::new(format!("{name} is invalid")).because(why));
        let value: Value = serde_json::from_str(text).map_err(|error| wrong(&error))?;
        let schema = ToolSchema::new(value).map_err(|why| wrong(&why))?;
        Ok(Self { name: name.to_owned(), schema })
    }

    /// Returns a prompt that asks the model to correct a response. Returns `None` if the response conforms to the
    /// schema, or if no corrections remain. `repairs` is the number of remaining corrections.
    pub(crate) fn correction(&self, response: &str, repairs: &mut usize) -> Option<String> {
        let mismatch = self.extract_value(response).err()?;
        *repairs = repairs.checked_sub(1)?;
        Some(repair_prompt(&mismatch))
    }

    /// Returns the schema as a single line of JSON.
    pub(crate) fn json(&self) -> String {
        self.schema.value().to_string()
    }
}

impl ResponseCheck for OutputSchema {
    fn extract_value(&self, text: &str) -> Result<String, String> {
        let json = strip_code_fence(text);
        let value: Value = serde_json::from_str(json).map_err(|error| format!("not a JSON value: {error}"))?;
        self.schema.check_response(&value)?;
        Ok(compact(json))
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// Returns the prompt that asks the model for a response that conforms to the schema.
fn repair_prompt(mismatch: &str) -> String {
    let told: String = mismatch.chars().take(MAX_REPORT_CHARS).collect();
    format!(
        "Your response does not match the JSON Schema of the response format: {told}\n\n\
        Respond with only the corrected JSON value, without any other text and without a code fence."
    )
}

/// If the text consists of a single code block, returns the content of the block; otherwise returns the text itself.
fn strip_code_fence(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix(FENCE).and_then(|rest| rest.strip_suffix(FENCE)).filter(|inner| !inner.contains(FENCE));
    // The first line names the language.
    inner.and_then(|inner| inner.split_once('\n')).map_or(text, |(_, inner)| inner.trim())
}

/// Removes white space between the tokens of valid JSON, leaving numbers and strings unchanged.
fn compact(json: &str) -> String {
    let (mut out, mut in_string, mut escaped) = (String::with_capacity(json.len()), false, false);
    for letter in json.chars() {
        if in_string {
            in_string = escaped || letter != '"';
            escaped = !escaped && letter == '\\';
        } else if letter.is_ascii_whitespace() {
            continue;
        } else {
            in_string = letter == '"';
        }
        out.push(letter);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn loaded(text: &str) -> Result<OutputSchema, CliError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("schema.json");
        std::fs::write(&path, text).unwrap();
        OutputSchema::load(&path)
    }

    #[test]
    fn responses_must_be_a_json_value_or_a_single_code_block() {
        let schema = loaded(&json!({"type": "object", "required": ["a"]}).to_string()).unwrap();
        for (text, expected) in [
            ("{\"a\": 1}", "{\"a\":1}"),
            ("\n {\n  \"a\": [1.50, 12345678901234567890123]\n}\n", "{\"a\":[1.50,12345678901234567890123]}"),
            ("```json\n{\"a\": \"x \\\" {} \\\\\"}\n```\n", "{\"a\":\"x \\\" {} \\\\\"}"),
            ("```\n{\"a\": 1}\n```", "{\"a\":1}"),
        ] {
            assert_eq!(schema.extract_value(text).as_deref(), Ok(expected), "{text}");
        }
        for (text, why) in [
            ("Here it is: {\"a\": 1}", "not a JSON value"),
            ("```json\n{\"a\": 1}\n```\nDone.", "not a JSON value"),
            ("", "not a JSON value"),
            ("{\"b\": 1}", "`a` is missing"),
            ("[]", "want object"),
        ] {
            let mismatch = schema.extract_value(text).unwrap_err();
            assert!(mismatch.contains(why), "{text}: {mismatch}");
        }
    }

    #[test]
    fn invalid_schema_files_are_usage_errors() {
        for (text, why) in [
            ("", "is not JSON"),
            ("{", "is not JSON"),
            ("{\"type\": \"strng\"}", "is not a valid JSON Schema"),
            ("[]", "is not a valid JSON Schema"),
            ("{\"$ref\": \"https://example.org/x.json\"}", "a schema can only refer to itself"),
            (&format!("{{\"description\": \"{}\"}}", "x".repeat(70_000)), "larger than 64 KB"),
        ] {
            let Err(error) = loaded(text) else { panic!("{text} is a schema") };
            assert!(error.exit == crate::host::exit::Exit::Usage && error.to_string().contains(why), "{text}: {error}");
        }
        let Err(error) = OutputSchema::load(Path::new("/nothing/here.json")) else { panic!("there is no such file") };
        assert!(error.to_string().contains("cannot read the schema `/nothing/here.json`"), "{error}");
    }

    #[test]
    fn draft_7_schemas_and_internal_references_are_supported() {
        let text = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"name": {"type": "string", "minLength": 1}},
            "type": "object",
            "properties": {"name": {"$ref": "#/definitions/name"}},
            "additionalProperties": false,
        });
        let schema = loaded(&text.to_string()).unwrap();
        assert!(schema.extract_value("{\"name\": \"x\"}").is_ok());
        assert!(schema.extract_value("{\"name\": \"\"}").unwrap_err().contains("`name`"));
        assert!(schema.extract_value("{\"other\": 1}").unwrap_err().contains("`other` is not in the schema"));
    }
}
