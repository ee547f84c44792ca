use crate::cli::policy::schema::SCHEMA;
use crate::host::policy_templates::{TEMPLATES, template_text};
use crate::policy::Bundle;
use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};
use std::collections::BTreeSet;

struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Validator {
    fn new() -> Self {
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler.enable_format_assertions();
        compiler.add_resource("policy.json", schema()).unwrap();
        let index = compiler.compile("policy.json", &mut schemas).unwrap_or_else(|error| panic!("{error:#}"));
        Self { schemas, index }
    }

    fn check(&self, text: &str) -> Result<(), String> {
        let table: toml::Table = text.parse().map_err(|error| format!("{error}"))?;
        self.schemas.validate(&as_json(&toml::Value::Table(table)), self.index).map_err(|error| format!("{error:#}"))
    }
}

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

/// Converts a TOML value to JSON. Date-times become strings.
fn as_json(value: &toml::Value) -> Value {
    match value {
        toml::Value::Datetime(time) => json!(time.to_string()),
        toml::Value::Array(values) => values.iter().map(as_json).collect(),
        toml::Value::Table(table) => Value::Object(table.iter().map(|(key, value)| (key.clone(), as_json(value))).collect()),
        other => serde_json::to_value(other).unwrap(),
    }
}

#[test]
fn the_schema_accepts_every_template() {
    let validator = Validator::new();
    for (template, _) in TEMPLATES {
        validator.check(&template_text(template)).unwrap_or_else(|error| panic!("{template:?}: {error}"));
    }
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn the_schema_accepts_the_reference_bundle() {
    let text = std::fs::read_to_string(shared!("corpora/reference.toml")).unwrap();
    Validator::new().check(&text).unwrap_or_else(|error| panic!("{error}"));
}

/// A bundle that uses most features.
const FULL: &str = r#"
schema_version = 1
expires_at = 2027-06-30T00:00:00Z
[llm]
allowed_models = ["anthropic/*"]
max_session_cost_usd = 50
[tools]
disabled = ["docs/*"]
[capabilities."File.Read"]
allowed_paths = ["${workspace}"]
max_file_size_bytes = 1000
[[capabilities."File.Write".rules]]
paths = ["docs"]
decision = "allow"
[capabilities."Shell.Exec"]
requires_approval = true
blocked_commands = ["sudo"]
sandbox = "workspace-write"
approve = "effects"
environment = ["PATH"]
limits = { processes = 512 }
[[capabilities."Shell.Exec".rules]]
command = ["git", ["status", "diff"]]
decision = "allow"
args = "any"
[capabilities."Network.Http"]
requires_approval = true
[[capabilities."Network.Search".rules]]
domains = ["docs.rs"]
decision = "allow"
[[capabilities."Mcp.Invoke".rules]]
tools = ["docs/*"]
decision = "ask"
[approval_rules.edit]
title = "File change"
[approval]
guard = "normal"
[[named_commands]]
name = "convert"
command = ["IfcConvert"]
[[tests]]
tool = "RunCommand"
arguments = { command = "git push" }
verdict = "ask"
[[redaction]]
pattern = "acme"
"#;

#[test]
fn the_schema_and_the_parser_reject_the_same_mistakes() {
    let validator = Validator::new();
    validator.check(FULL).unwrap_or_else(|error| panic!("{error}"));
    Bundle::parse(FULL, "full").unwrap_or_else(|error| panic!("{error}"));
    for (from, to) in [
        ("schema_version = 1\n", ""),
        ("schema_version = 1", "schema_version = 2"),
        ("schema_version = 1", "schema_version = \"1\""),
        ("expires_at = 2027-06-30T00:00:00Z", "expires_at = 2027-06-30"),
        ("expires_at = 2027-06-30T00:00:00Z", "expires_at = 7"),
        ("[llm]", "[llmm]"),
        ("[\"anthropic/*\"]", "\"anthropic/*\""),
        ("max_session_cost_usd = 50", "max_session_cost_usd = -1"),
        ("max_session_cost_usd = 50", "max_session_costs = 50"),
        ("disabled = [\"docs/*\"]", "disabled = [\" \"]"),
        ("disabled = [\"docs/*\"]", "enabled = [\"docs/*\"]"),
        ("\"File.Read\"", "\"File.Reed\""),
        ("allowed_paths = [\"${workspace}\"]", "allowed_paths = [\"\"]"),
        ("allowed_paths = [\"${workspace}\"]", "allowed_paths = [1]"),
        ("allowed_paths = ", "allow_paths = "),
        ("max_file_size_bytes = 1000", "max_file_size_bytes = -1"),
        ("max_file_size_bytes = 1000", "unprotected_paths = [\".envrc\"]"),
        ("paths = [\"docs\"]\n", "paths = []\n"),
        ("paths = [\"docs\"]\n", ""),
        ("requires_approval = true\nblocked", "requires_approval = \"yes\"\nblocked"),
        ("blocked_commands = [\"sudo\"]", "blocked_commands = [\" \"]"),
        ("sandbox = \"workspace-write\"", "sandbox = \"none\""),
        ("environment = [\"PATH\"]", "environment = \"all\""),
        ("processes = 512", "process = 512"),
        ("processes = 512", "processes = 0.5"),
        ("command = [\"git\", [\"status\", \"diff\"]]\n", ""),
        ("command = [\"git\", [\"status\", \"diff\"]]", "command = []"),
        ("command = [\"git\", [\"status\", \"diff\"]]", "command = [\"/usr/bin/git\"]"),
        ("command = [\"git\", [\"status\", \"diff\"]]", "command = \"git\""),
        ("decision = \"allow\"\nargs", "decision = \"permit\"\nargs"),
        ("decision = \"allow\"\nargs", "args"),
        ("args = \"any\"", "args = \"all\""),
        ("args = \"any\"", "exact = \"yes\""),
        ("tools = [\"docs/*\"]\n", "tools = []\n"),
        ("decision = \"ask\"", "decision = \"ask\"\nfingerprint = \"x\""),
        ("title = \"File change\"", "titel = \"File change\""),
        ("guard = \"normal\"", "guard = \"loose\""),
        ("name = \"convert\"\n", ""),
        ("command = [\"IfcConvert\"]\n", ""),
        ("tool = \"RunCommand\"\n", ""),
        ("verdict = \"ask\"", "verdict = \"maybe\""),
        ("verdict = \"ask\"", ""),
        ("verdict = \"ask\"", "verdict = \"ask\"\nmode = \"yolo\""),
        ("verdict = \"ask\"", "verdict = \"ask\"\nrisk = \"none\""),
        ("arguments = { command = \"git push\" }", "arguments = \"git push\""),
        ("pattern = \"acme\"", "name = \"acme\""),
    ] {
        let broken = FULL.replacen(from, to, 1);
        assert_ne!(broken, FULL, "`{from}` is not there");
        assert!(validator.check(&broken).is_err(), "the schema accepts `{to}` in place of `{from}`");
        assert!(Bundle::parse(&broken, "broken").is_err(), "the reader accepts `{to}` in place of `{from}`");
    }
}

/// Tables of a bundle, each with the text that precedes its keys and its location in the schema.
const TABLES: &[(&str, &str)] = &[
    ("", ""),
    ("[agents]", "/properties/agents"),
    ("[llm]", "/properties/llm"),
    ("[tools]", "/properties/tools"),
    ("[capabilities]", "/properties/capabilities"),
    ("[capabilities.\"File.Read\"]", "/properties/capabilities/properties/File.Read"),
    ("[capabilities.\"File.Write\"]", "/properties/capabilities/properties/File.Write"),
    ("[capabilities.\"File.Delete\"]", "/properties/capabilities/properties/File.Delete"),
    ("[capabilities.\"Shell.Exec\"]", "/properties/capabilities/properties/Shell.Exec"),
    ("[capabilities.\"Shell.Exec\".limits]", "/properties/capabilities/properties/Shell.Exec/properties/limits"),
    ("[capabilities.\"Network.Http\"]", "/properties/capabilities/properties/Network.Http"),
    ("[capabilities.\"Network.Search\"]", "/properties/capabilities/properties/Network.Search"),
    ("[capabilities.\"Mcp.Invoke\"]", "/properties/capabilities/properties/Mcp.Invoke"),
    ("[capabilities.\"BackendTool.Invoke\"]", "/properties/capabilities/properties/BackendTool.Invoke"),
    ("[capabilities.\"Tool.Custom\"]", "/properties/capabilities/properties/Tool.Custom"),
    ("[capabilities.\"Workspace.Upload\"]", "/properties/capabilities/properties/Workspace.Upload"),
    ("[approval_rules.x]", "/properties/approval_rules/additionalProperties"),
    ("[approval]", "/properties/approval"),
    ("[[capabilities.\"Shell.Exec\".rules]]", "/$defs/commandRule"),
    ("[[capabilities.\"File.Write\".rules]]", "/$defs/fileRule"),
    ("[[capabilities.\"Network.Search\".rules]]", "/$defs/searchRule"),
    ("[[capabilities.\"Mcp.Invoke\".rules]]", "/$defs/toolRule"),
    ("[[named_commands]]", "/$defs/namedCommand"),
    ("[[tests]]", "/$defs/test"),
    ("[[redaction]]", "/$defs/redaction"),
];

/// Returns the keys that the parser accepts in a table, as listed by its error message.
fn keys_of_the_reader(header: &str) -> BTreeSet<String> {
    const STRANGE: &str = "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq";
    let text = format!("schema_version = 1\n{header}\n{STRANGE} = {{}}\n");
    let error = Bundle::parse(&text, "p").expect_err("a strange key is refused").message;
    let (_, listed) = error.split_once("expected ").unwrap_or_else(|| panic!("{header}: {error}"));
    listed.replace(" or ", ", ").split(", ").map(str::to_owned).collect()
}

#[test]
fn the_schema_and_the_parser_accept_the_same_keys() {
    let schema = schema();
    for (header, pointer) in TABLES {
        let properties = schema.pointer(&format!("{pointer}/properties")).and_then(Value::as_object);
        let properties = properties.unwrap_or_else(|| panic!("{pointer} is not in the schema"));
        let listed: BTreeSet<String> = properties.keys().cloned().collect();
        assert_eq!(keys_of_the_reader(header), listed, "{header}");
        for (key, property) in properties {
            assert!(property.get("description").is_some() || property.get("$ref").is_some(), "{header} {key} has no description");
        }
    }
}

#[test]
fn every_schema_table_is_compared_with_the_parser() {
    fn closed(value: &Value) -> usize {
        let own = usize::from(value.get("additionalProperties") == Some(&json!(false)));
        let inner = match value {
            Value::Object(object) => object.values().map(closed).sum(),
            Value::Array(values) => values.iter().map(closed).sum::<usize>(),
            _ => 0,
        };
        own + inner
    }
    assert_eq!(closed(&schema()), TABLES.len());
}
