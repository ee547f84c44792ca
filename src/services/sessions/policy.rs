//! Conversion of the session service's policy bundle to an aye policy, which can only tighten restrictions.

use super::flags::disabled_tools;
use crate::policy::Bundle;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use toml::Value as Toml;

/// Name by which errors refer to the policy.
const NAME: &str = "policyBundle";
/// Capability that a bundle must grant, because no model can be called without it.
const MODEL: &str = "LLM.Call";
/// Capabilities supported by aye.
pub(super) const CAPABILITIES: [&str; 11] = [
    "BackendTool.Invoke",
    "File.Delete",
    "File.Read",
    "File.Write",
    MODEL,
    "Mcp.Invoke",
    "Network.Http",
    "Network.Search",
    "Shell.Exec",
    "Tool.Custom",
    "Workspace.Upload",
];
/// Members that describe the bundle and its owner and otherwise have no effect.
const DESCRIPTIONS: [&str; 7] = ["bundleId", "createdAt", "issuedAt", "policyBundleId", "tenantId", "userId", "workspaceId"];
/// Supported major version of the bundle schema, which is given as `1`, `"1"` or `"1.0"`.
const SCHEMA: &str = "1";
/// Maximum nesting depth of a bundle.
const DEPTH: usize = 8;

/// Session policy in the form in which it is stored.
#[derive(Debug)]
pub(super) struct SessionPolicy {
    pub text: String,
    pub version: Option<String>,
    pub expires_at: Timestamp,
    /// Entries that are ignored because they would loosen the policy.
    pub ignored: Vec<String>,
}

impl SessionPolicy {
    /// Converts the policy bundle of a session.
    ///
    /// # Errors
    /// Returns an error if the bundle contains anything that aye does not support, belongs to another session, or has
    /// expired.
    pub(super) fn new(bundle: &Value, session_id: &str, flags: &BTreeMap<String, Value>, now: Timestamp) -> Result<Self, String> {
        let members = bundle.as_object().ok_or("`policyBundle` is not an object")?;
        check_schema(members.get("schemaVersion"))?;
        match members.get("sessionId").and_then(Value::as_str) {
            Some(id) if id == session_id => {}
            Some(id) => return Err(format!("the bundle is for session `{}`", crate::text::clean_line(id))),
            None => return Err("the bundle has no `sessionId`".to_owned()),
        }
        let expires_at = members.get("expiresAt").and_then(Value::as_str).and_then(|text| text.parse::<Timestamp>().ok());
        let expires_at = expires_at.ok_or("the bundle has no valid `expiresAt`; expected a time such as 2026-01-30T10:00:00Z")?;
        if expires_at <= now {
            return Err(format!("the bundle expired at {expires_at:.0}"));
        }
        let version = ["policyBundleVersion", "bundleVersion"].iter().find_map(|name| members.get(*name)?.as_str());
        let version = version.map(crate::text::clean_line);
        let table = to_policy(members, expires_at, version.as_deref(), flags)?;
        let text = toml::to_string(&table).map_err(|error| error.to_string())?;
        let parsed = Bundle::parse_bytes(text.as_bytes(), NAME).map_err(|error| error.message)?;
        let ignored = parsed.widens().iter().map(|(_, entry)| crate::text::clean_line(entry)).collect();
        Ok(Self { text, version, expires_at, ignored })
    }
}

fn check_schema(version: Option<&Value>) -> Result<(), String> {
    let found = match version {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(_) => return Err("`schemaVersion` is neither a string nor a number".to_owned()),
        None => return Err("the bundle has no `schemaVersion`".to_owned()),
    };
    if found.split('.').next() == Some(SCHEMA) {
        return Ok(());
    }
    let found = crate::text::clean_line(&found);
    Err(format!("schemaVersion `{found}` is not supported; this version of aye supports 1"))
}

fn to_policy(
    members: &Map<String, Value>,
    expires_at: Timestamp,
    version: Option<&str>,
    flags: &BTreeMap<String, Value>,
) -> Result<toml::Table, String> {
    let mut policy = toml::Table::new();
    policy.insert("schema_version".to_owned(), Toml::Integer(1));
    policy.insert("unlisted".to_owned(), Toml::String("deny".to_owned()));
    if let Some(version) = version {
        policy.insert("bundle_version".to_owned(), Toml::String(version.to_owned()));
    }
    let end = expires_at.to_string().parse().map_err(|_| "`expiresAt` is out of range")?;
    policy.insert("expires_at".to_owned(), Toml::Datetime(end));
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        match name.as_str() {
            "schemaVersion" | "sessionId" | "expiresAt" | "policyBundleVersion" | "bundleVersion" => {}
            "capabilities" => drop(policy.insert(name.clone(), Toml::Table(capabilities(value)?))),
            "llmPolicy" => drop(policy.insert("llm".to_owned(), models(value)?)),
            "approvalRules" => drop(policy.insert("approval_rules".to_owned(), Toml::Table(approval_rules(value)?))),
            // The flags that apply. The response also contains them.
            "featureFlags" => {}
            other if DESCRIPTIONS.contains(&other) => {}
            other => return Err(format!("aye does not know `{}`", crate::text::clean_line(other))),
        }
    }
    let disabled: Vec<Toml> = disabled_tools(flags).into_iter().map(|tool| Toml::String(tool.to_owned())).collect();
    if !disabled.is_empty() {
        let tools = toml::Table::from_iter([("disabled".to_owned(), Toml::Array(disabled))]);
        policy.insert("tools".to_owned(), Toml::Table(tools));
    }
    Ok(policy)
}

/// Converts the capabilities, which are given as an object keyed by name or as an array of objects with a `name`.
fn capabilities(value: &Value) -> Result<toml::Table, String> {
    let mut capabilities = toml::Table::new();
    let mut calls_models = false;
    for (name, members) in named(value, &["name", "capability"], "capabilities")? {
        if capabilities.contains_key(&name) {
            return Err(format!("the capability `{name}` is listed twice"));
        }
        if name == MODEL {
            calls_models = true;
            check_model_members(&members)?;
        }
        // Granting a capability that aye does not have has no effect.
        if name == MODEL || !CAPABILITIES.contains(&name.as_str()) {
            continue;
        }
        let mut table = toml::Table::new();
        for (key, value) in members.iter().filter(|(_, value)| !value.is_null()) {
            let key = match key.as_str() {
                "approvalRuleId" => "approval_rule".to_owned(),
                // This is the default of a policy that only tightens.
                "requiresApproval" if *value == Value::Bool(false) => continue,
                other => snake_case(other),
            };
            table.insert(key, to_toml(value, DEPTH)?);
        }
        capabilities.insert(name, Toml::Table(table));
    }
    if calls_models {
        return Ok(capabilities);
    }
    Err(format!("the bundle does not grant `{MODEL}`, so no model may be called"))
}

/// Rejects members of the model capability that would impose a limit, because model limits belong in `llmPolicy`.
fn check_model_members(members: &Map<String, Value>) -> Result<(), String> {
    let limits = |key: &str, value: &Value| match key {
        "name" | "approvalRuleId" => false,
        "requiresApproval" => *value != Value::Bool(false),
        _ => true,
    };
    match members.iter().find(|(key, value)| !value.is_null() && limits(key, value)) {
        Some((key, _)) => Err(format!("aye does not know `{}` of `{MODEL}`; use `llmPolicy`", crate::text::clean_line(key))),
        None => Ok(()),
    }
}

/// Converts `llmPolicy`. A model name without a provider is made to match any provider.
fn models(value: &Value) -> Result<Toml, String> {
    let mut limits = to_toml(value, DEPTH)?;
    if let Some(Toml::Array(models)) = limits.get_mut("allowed_models") {
        for model in models {
            if let Toml::String(name) = model
                && !name.contains('/')
            {
                *name = format!("*/{name}");
            }
        }
    }
    Ok(limits)
}

fn approval_rules(value: &Value) -> Result<toml::Table, String> {
    let rules = named(value, &["approvalRuleId", "id"], "approvalRules")?;
    let text =
        |members: &Map<String, Value>, key: &str| Some((key.to_owned(), Toml::String(members.get(key)?.as_str()?.to_owned())));
    let rule = |(id, members): (String, Map<String, Value>)| {
        (id, Toml::Table(["title", "description"].into_iter().filter_map(|key| text(&members, key)).collect()))
    };
    Ok(rules.into_iter().map(rule).collect())
}

/// Objects, each preceded by its name.
type NamedObjects = Vec<(String, Map<String, Value>)>;

/// Returns the members of an object with their names, or the elements of an array with the names found under one of
/// `keys`.
fn named(value: &Value, keys: &[&str], title: &str) -> Result<NamedObjects, String> {
    let wrong = || format!("`{title}` is neither an object of objects nor an array of objects with `{}`", keys.join("` or `"));
    match value {
        Value::Object(members) => {
            let entry = |(name, value): (&String, &Value)| Ok((name.clone(), value.as_object().ok_or_else(wrong)?.clone()));
            members.iter().map(entry).collect()
        }
        Value::Array(items) => {
            let entry = |item: &Value| {
                let mut members = item.as_object().ok_or_else(wrong)?.clone();
                let name = keys.iter().find_map(|key| members.shift_remove(*key)).ok_or_else(wrong)?;
                Ok((name.as_str().ok_or_else(wrong)?.to_owned(), members))
            };
            items.iter().map(entry).collect()
        }
        _ => Err(wrong()),
    }
}

/// Converts a value to TOML, changing its keys from `camelCase` to `snake_case`.
fn to_toml(value: &Value, depth: usize) -> Result<Toml, String> {
    if depth == 0 {
        return Err("the bundle is nested too deeply".to_owned());
    }
    Ok(match value {
        Value::Null => return Err("an array contains null".to_owned()),
        Value::Bool(flag) => Toml::Boolean(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Toml::Integer(whole),
            (None, Some(float)) => Toml::Float(float),
            (None, None) => return Err(format!("the number {number} is out of range")),
        },
        Value::String(text) => Toml::String(text.clone()),
        Value::Array(items) => Toml::Array(items.iter().map(|item| to_toml(item, depth - 1)).collect::<Result<_, _>>()?),
        Value::Object(members) => {
            let entries = members.iter().filter(|(_, value)| !value.is_null());
            let entry = |(key, value): (&String, &Value)| Ok((snake_case(key), to_toml(value, depth - 1)?));
            Toml::Table(entries.map(entry).collect::<Result<_, String>>()?)
        }
    })
}

/// Converts a name from `camelCase` to `snake_case`: `allowedPaths` becomes `allowed_paths`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn bundle() -> Value {
        json!({
            "schemaVersion": "1.0", "policyBundleVersion": "2026-02-21.1", "sessionId": "sess_1", "tenantId": "t",
            "expiresAt": "2026-02-21T16:00:00Z",
            "capabilities": [
                {"name": "LLM.Call"}, {"name": "File.Read", "allowedPaths": ["/src"], "maxFileSizeBytes": 1000},
                {"name": "Shell.Exec", "blockedCommands": ["rm"], "requiresApproval": true, "approvalRuleId": "shell"},
                {"name": "Network.Http", "requiresApproval": false}, {"name": "Clipboard.Read"},
            ],
            "llmPolicy": {"allowedModels": ["sonnet-*", "acme/one"], "maxSessionTokens": 9},
            "approvalRules": [{"approvalRuleId": "shell", "title": "Command", "description": "Runs.", "extra": 1}],
        })
    }

    fn convert(bundle: &Value) -> Result<SessionPolicy, String> {
        SessionPolicy::new(bundle, "sess_1", &BTreeMap::from([("webSearch".to_owned(), json!(false))]), now())
    }

    #[test]
    fn a_bundle_becomes_a_policy_that_denies_everything_unlisted() {
        let policy = convert(&bundle()).unwrap();
        assert_eq!((policy.version.as_deref(), policy.ignored.len()), (Some("2026-02-21.1"), 0));
        let parsed = Bundle::parse_bytes(policy.text.as_bytes(), "test").unwrap();
        assert!(parsed.denies_unlisted);
        assert_eq!(parsed.capabilities.granted, ["File.Read", "Network.Http", "Shell.Exec"]);
        assert_eq!(parsed.expires_at, Some(policy.expires_at));
        assert_eq!(parsed.llm.allowed_models.as_deref(), Some(&["*/sonnet-*".to_owned(), "acme/one".to_owned()][..]));
        assert!(parsed.capabilities.shell.is_some_and(|shell| shell.requires_approval));
        assert_eq!(parsed.disabled.iter().map(|tool| tool.text.as_str()).collect::<Vec<_>>(), ["WebSearch"]);
        let mut by_name = bundle();
        let calls = json!({"name": "LLM.Call", "approvalRuleId": "model", "requiresApproval": false, "maxTokens": null});
        by_name["capabilities"] = json!({"LLM.Call": calls, "BackendTool.Invoke": {"allowedToolNames": ["find_*"]}});
        let parsed = Bundle::parse_bytes(convert(&by_name).unwrap().text.as_bytes(), "test").unwrap();
        assert_eq!(parsed.capabilities.granted, ["BackendTool.Invoke"]);
    }

    #[test]
    fn a_bundle_that_aye_does_not_understand_completely_is_rejected() {
        for (name, value, why) in [
            ("schemaVersion", json!("2.0"), "is not supported"),
            ("schemaVersion", Value::Null, "neither a string nor a number"),
            ("sessionId", json!("sess_2"), "is for session `sess_2`"),
            ("sessionId", json!(1), "has no `sessionId`"),
            ("expiresAt", json!("2025-12-31T23:59:59Z"), "expired at 2025-12-31"),
            ("expiresAt", json!("tomorrow"), "no valid `expiresAt`"),
            ("capabilities", json!([{"name": "File.Read"}]), "does not grant `LLM.Call`"),
            ("capabilities", json!("all"), "neither an object"),
            ("capabilities", json!([{"name": "LLM.Call"}, {"paths": []}]), "neither an object"),
            ("capabilities", json!([{"name": "LLM.Call", "requiresApproval": true}]), "know `requiresApproval` of `LLM.Call`"),
            ("capabilities", json!({"LLM.Call": {"allowedModels": ["a/b"]}}), "`LLM.Call`; use `llmPolicy`"),
            ("capabilities", json!([{"name": "LLM.Call"}, {"name": "File.Read", "onlyOnMondays": true}]), "only_on_mondays"),
            ("capabilities", json!([{"name": "LLM.Call"}, {"name": "File.Read"}, {"name": "File.Read"}]), "listed twice"),
            ("capabilities", json!([{"name": "LLM.Call"}, {"name": "File.Read", "allowedPaths": [null]}]), "null"),
            ("llmPolicy", json!({"allowedModels": 7}), "allowed_models"),
            ("dataLossPrevention", json!({}), "does not know `dataLossPrevention`"),
        ] {
            let mut changed = bundle();
            changed[name] = value;
            let error = convert(&changed).unwrap_err();
            assert!(error.contains(why), "{name}: {error}");
        }
        assert!(convert(&json!([])).unwrap_err().contains("not an object"));
    }

    #[test]
    fn entries_that_would_loosen_the_policy_are_named() {
        let mut loose = bundle();
        loose["capabilities"] = json!({"LLM.Call": {}, "Shell.Exec": {"sandbox": "off"}});
        assert_eq!(convert(&loose).unwrap().ignored, ["`sandbox = \"off\"` in Shell.Exec"]);
    }
}
