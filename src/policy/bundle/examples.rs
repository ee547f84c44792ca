//! The `[[tests]]` of a policy, which `aye policy test` runs. Each one is a tool call with its expected verdict.

use super::reader::{BundleError, BundleTable, join_alternatives};
use crate::protocol::{ApproveWhen, Mode, Risk, VerdictKind};
use serde_json::{Map, Value};
use toml::de::DeValue;

const VERDICTS: &[(&str, VerdictKind)] = &[("allow", VerdictKind::Allow), ("ask", VerdictKind::Ask), ("deny", VerdictKind::Deny)];
const RISKS: &[(&str, Risk)] = &[("low", Risk::Low), ("medium", Risk::Medium), ("high", Risk::High)];
const APPROVALS: &[(&str, ApproveWhen)] = &[("before", ApproveWhen::Before), ("effects", ApproveWhen::Effects)];
const MODES: &[(&str, Mode)] = &[("plan", Mode::Plan), ("ask", Mode::Ask), ("auto-edit", Mode::AutoEdit), ("auto", Mode::Auto)];

/// A tool call with its expected result. An expectation of `None` accepts any value.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    pub line: usize,
    pub name: Option<String>,
    pub tool: String,
    pub tool_line: usize,
    pub arguments: Map<String, Value>,
    pub verdict: VerdictKind,
    /// Expected rule, such as `built-in` or `user:31`, where `31` is a line number in this file.
    pub rule: Option<String>,
    pub risk: Option<Risk>,
    pub approve: Option<ApproveWhen>,
    /// Hosts that the command is expected to reach without a prompt.
    pub hosts: Option<Vec<String>>,
    pub reason_contains: Option<String>,
    pub mode: Mode,
}

impl Test {
    pub fn list(root: &BundleTable<'_>) -> Result<Vec<Self>, BundleError> {
        root.sections("tests")?.iter().map(Self::read).collect()
    }

    fn read(section: &BundleTable<'_>) -> Result<Self, BundleError> {
        section.only(&["name", "tool", "arguments", "verdict", "rule", "risk", "approve", "hosts", "mode", "reason_contains"])?;
        let text = |key: &str| section.text(key).map(|text| text.map(|text| text.text));
        let tool = section.required_text("tool")?;
        let names: Vec<&str> = VERDICTS.iter().map(|(name, _)| *name).collect();
        let missing =
            || section.source.error(&section.span, format!("[[tests]] has no `verdict`; expected {}", join_alternatives(&names)));
        Ok(Self {
            line: section.line(),
            name: text("name")?,
            tool_line: section.source.line(&tool.span),
            tool: tool.text,
            arguments: section.section("arguments")?.map(|arguments| to_object(&arguments)).unwrap_or_default(),
            verdict: section.choice("verdict", VERDICTS)?.ok_or_else(missing)?,
            rule: text("rule")?,
            risk: section.choice("risk", RISKS)?,
            approve: section.choice("approve", APPROVALS)?,
            hosts: section.texts("hosts")?.map(|hosts| hosts.into_iter().map(|host| host.text).collect()),
            reason_contains: text("reason_contains")?,
            mode: section.choice("mode", MODES)?.unwrap_or_default(),
        })
    }
}

fn to_object(section: &BundleTable<'_>) -> Map<String, Value> {
    section.table.iter().map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref()))).collect()
}

/// Converts a TOML value to the JSON that a model would send.
fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from),
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(flag) => Value::from(*flag),
        DeValue::Datetime(time) => Value::from(time.to_string()),
        DeValue::Array(values) => values.iter().map(|value| json(value.get_ref())).collect(),
        DeValue::Table(table) => {
            Value::Object(table.iter().map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref()))).collect())
        }
    }
}
