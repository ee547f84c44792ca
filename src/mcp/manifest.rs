//! Tool definitions received from a server. An invalid definition disables only the tool to which it belongs.

use super::failure::{one_line, truncate};
use super::pattern::unreadable;
use boon::{Compiler, Draft, SchemaIndex, Schemas, ValidationError};
use rmcp::model::{CustomResult, ServerResult, Tool};
use rmcp::service::ServiceError;
use serde_json::{Map, Value};
use std::sync::OnceLock;

/// Maximum number of bytes of a name to quote.
const NAME_BYTES: usize = 64;
/// Maximum number of bytes to show of the reason why a schema is invalid.
const REASON_BYTES: usize = 200;
/// Tool fields that aye needs. If any other field is invalid, all fields that are not needed are dropped.
const NEEDED: [&str; 4] = ["name", "description", "inputSchema", "outputSchema"];

/// Page of a tool list. Each entry is either a tool, or the name of an ignored tool and the reason why it is ignored.
pub(super) struct ToolPage {
    pub tools: Vec<Result<Tool, (String, String)>>,
    pub next: Option<String>,
}

impl ToolPage {
    /// Parses a page of a tool list.
    ///
    /// # Errors
    /// Returns an error if the server's response is not a tool list.
    pub(super) fn parse(answer: ServerResult) -> Result<Self, ServiceError> {
        match answer {
            ServerResult::ListToolsResult(list) => {
                Ok(Self { tools: list.tools.into_iter().map(Ok).collect(), next: list.next_cursor })
            }
            // At least one tool is invalid.
            ServerResult::CustomResult(CustomResult(Value::Object(mut list))) => {
                let next = list.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
                match list.remove("tools") {
                    Some(Value::Array(tools)) => Ok(Self { tools: tools.into_iter().map(parse_tool).collect(), next }),
                    _ => Err(ServiceError::UnexpectedResponse),
                }
            }
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }
}

/// Parses a tool. On failure, returns its name and the reason why it is ignored.
fn parse_tool(said: Value) -> Result<Tool, (String, String)> {
    let Value::Object(members) = &said else {
        return Err((String::new(), "the definition is not an object".to_owned()));
    };
    let name =
        members.get("name").and_then(Value::as_str).map(|name| truncate(name, NAME_BYTES).into_owned()).unwrap_or_default();
    let wrong = match (members.get("name"), members.get("inputSchema")) {
        (Some(Value::String(_)), Some(Value::Object(_))) => None,
        (Some(Value::String(_)), Some(_)) => Some("`inputSchema` is not an object"),
        (Some(Value::String(_)), None) => Some("`inputSchema` is missing"),
        _ => Some("the name is missing"),
    };
    if let Some(wrong) = wrong {
        return Err((name, wrong.to_owned()));
    }
    let needed: Map<String, Value> = members
        .iter()
        .filter(|(key, _)| NEEDED.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    // A tool is valid even if its hints, icons and similar fields are not.
    serde_json::from_value(said)
        .or_else(|_| serde_json::from_value(Value::Object(needed)))
        .map_err(|error| (name, truncate(&error.to_string(), REASON_BYTES).into_owned()))
}

/// Returns the reason why one of a tool's schemas is invalid, or `None` if it is valid. `which` says which schema it
/// is.
pub(super) fn invalid(which: &str, schema: &Value) -> Option<String> {
    let is_object = match schema.get("type") {
        None => true,
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(_) => false,
    };
    if !is_object {
        return Some(format!("`{which}` does not describe an object"));
    }
    let why = invalid_in_all_drafts(schema).or_else(|| dangling_reference(schema, schema)).or_else(|| unreadable(schema))?;
    Some(truncate(&one_line(&format!("`{which}` is not a valid JSON Schema: {why}")), REASON_BYTES).into_owned())
}

/// Keywords whose values are data instead of schemas.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// Returns the reason why a part of a schema refers to a part that does not exist, or `None` if all local references are
/// valid. A provider may reject a whole request because of such a reference.
fn dangling_reference(schema: &Value, part: &Value) -> Option<String> {
    match part {
        Value::Object(members) => members.iter().find_map(|(name, member)| match member {
            Value::String(to) if name == "$ref" => {
                let pointer = to.strip_prefix('#').filter(|pointer| pointer.starts_with('/') && !pointer.contains('%'))?;
                schema.pointer(pointer).is_none().then(|| format!("`{to}` does not exist"))
            }
            member if DATA.contains(&name.as_str()) && !member.is_object() => None,
            member => dangling_reference(schema, member),
        }),
        Value::Array(parts) => parts.iter().find_map(|part| dangling_reference(schema, part)),
        _ => None,
    }
}

/// Returns the reason why a schema is invalid in every JSON Schema draft, or `None` if at least one draft accepts it.
fn invalid_in_all_drafts(schema: &Value) -> Option<String> {
    let metaschemas = metaschemas()?;
    let mut why = None;
    for index in &metaschemas.indexes {
        match metaschemas.schemas.validate(schema, *index) {
            Ok(()) => return None,
            // The error of the newest draft is reported.
            Err(error) => why = why.or_else(|| Some(first_cause(&error))),
        }
    }
    why
}

/// Metaschemas of the JSON Schema drafts, newest first. All drafts are in use by servers, and few schemas say which one
/// they use.
struct Metaschemas {
    schemas: Schemas,
    indexes: Vec<SchemaIndex>,
}

fn metaschemas() -> Option<&'static Metaschemas> {
    static MADE: OnceLock<Option<Metaschemas>> = OnceLock::new();
    let make = || {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.set_default_draft(Draft::V2020_12);
        let places = [
            "https://json-schema.org/draft/2020-12/schema",
            "https://json-schema.org/draft/2019-09/schema",
            "http://json-schema.org/draft-07/schema",
            "http://json-schema.org/draft-04/schema",
        ];
        let indexes: Option<Vec<_>> = places.iter().map(|place| compiler.compile(place, &mut schemas).ok()).collect();
        indexes.map(|indexes| Metaschemas { schemas, indexes })
    };
    MADE.get_or_init(make).as_ref()
}

fn first_cause(error: &ValidationError<'_, '_>) -> String {
    match error.causes.first() {
        Some(cause) => first_cause(cause),
        None => format!("`{}`: {}", error.instance_location, error.kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_tool_is_parsed_separately_and_errors_name_the_fault() {
        for (said, name, why) in [
            (json!({"name": "a"}), "a", "`inputSchema` is missing"),
            (json!({"name": "a", "inputSchema": null}), "a", "not an object"),
            (json!({"name": "a", "inputSchema": "x"}), "a", "not an object"),
            (json!({"name": 7, "inputSchema": {}}), "", "name is missing"),
            (json!("a"), "", "not an object"),
            (json!({"name": "a", "inputSchema": {}, "description": 7}), "a", "invalid type"),
        ] {
            let (named, reason) = parse_tool(said.clone()).unwrap_err();
            assert!(named == name && reason.contains(why), "{said}: {named} {reason}");
        }
        let said = json!({"name": "a", "inputSchema": {}, "annotations": 7, "icons": "x"});
        assert_eq!(&*parse_tool(said).unwrap().name, "a");
    }

    #[test]
    fn a_schema_must_be_valid_under_some_draft() {
        for schema in [
            json!({}),
            json!({"type": "object"}),
            json!({"type": ["object", "null"], "properties": {"a": {"type": "string", "nullable": true}}}),
            json!({"type": "object", "properties": {"a": {"items": [{"type": "string"}], "additionalItems": false}}}),
            json!({"type": "object", "properties": {"a": {"type": "number", "exclusiveMinimum": true, "minimum": 0}}}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "$ref": "https://elsewhere.example/x"}),
            json!({"type": "object", "properties": {"a": {"pattern": "(?=x)"}}}),
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a~1b"}}, "$defs": {"a/b": {"type": "string"}}}),
            json!({"type": "object", "properties": {"$ref": {"type": "string"}, "a": {"enum": [{"$ref": "#/nope"}]}}}),
        ] {
            assert_eq!(invalid("inputSchema", &schema), None, "{schema}");
        }
        for schema in [
            json!({"type": "string"}),
            json!({"type": 7}),
            json!({"type": "object", "properties": {"a": {"type": "strng"}}}),
            json!({"type": "object", "properties": []}),
            json!({"type": "object", "required": "a"}),
            json!({"type": "object", "properties": {"a": 7}}),
            json!({"type": "object", "properties": {"a": {"minLength": -1}}}),
            json!({"type": "object", "additionalProperties": "no"}),
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}),
            json!({"type": "object", "properties": {"a": {"$ref": "#/nope"}}}),
        ] {
            let why = invalid("inputSchema", &schema);
            assert!(why.is_some_and(|why| why.contains("`inputSchema`")), "{schema}");
        }
    }

    #[test]
    fn a_malformed_tool_list_is_parsed_tool_by_tool() {
        for newer in [false, true] {
            let mut list = json!({"tools": [{"name": "b", "inputSchema": {}}, {"name": "a"}], "nextCursor": "c"});
            if newer {
                list["resultType"] = "complete".into();
            }
            let page = ToolPage::parse(serde_json::from_value(list).unwrap()).unwrap();
            assert!(page.tools[0].is_ok() && page.tools[1].as_ref().is_err_and(|(name, _)| name == "a"), "{newer}");
            assert_eq!(page.next.as_deref(), Some("c"));
        }
    }
}
