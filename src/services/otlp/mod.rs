//! OTLP over HTTP: settings from `OTEL_*` variables, requests in protobuf or JSON, and responses.

mod exporter;
mod settings;
mod transcode;

pub(super) use exporter::{Exporter, Loss};
pub(super) use settings::Signal;

use crate::ports::ServiceSession;
use serde_json::{Value, json};

/// Semantic conventions version to which all attributes conform. It includes the GenAI attribute
/// `gen_ai.provider.name`.
const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.37.0";
/// Maximum length in characters of a string attribute.
const ATTRIBUTE_CHARS: usize = 64 << 10;

/// Attributes of a record, span or data point. Attributes without a value are omitted.
#[derive(Default)]
pub(super) struct Attributes(Vec<Value>);

impl Attributes {
    pub(super) fn text(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            let value: String = value.chars().take(ATTRIBUTE_CHARS).collect();
            self.0.push(json!({"key": key, "value": {"stringValue": value}}));
        }
    }

    pub(super) fn number(&mut self, key: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.0.push(json!({"key": key, "value": {"intValue": value.to_string()}}));
        }
    }

    pub(super) fn flag(&mut self, key: &str, value: bool) {
        self.0.push(json!({"key": key, "value": {"boolValue": value}}));
    }

    pub(super) fn texts(&mut self, key: &str, values: &[&str]) {
        let values: Vec<Value> = values.iter().map(|value| json!({"stringValue": value})).collect();
        self.0.push(json!({"key": key, "value": {"arrayValue": {"values": values}}}));
    }

    pub(super) fn into_value(self) -> Value {
        Value::Array(self.0)
    }
}

/// Adds the tenant, the user and the IDs assigned by the session service.
pub(super) fn add_identity(attributes: &mut Attributes, session: &ServiceSession) {
    attributes.text("aye.service.session.id", Some(&session.session_id));
    attributes.text("aye.service.workspace.id", session.workspace_id.as_deref());
    attributes.text("aye.tenant.id", session.tenant_id.as_deref());
    attributes.text("user.id", session.user_id.as_deref());
}

/// Formats a time as nanoseconds, in the form used in JSON.
pub(super) fn nanos(time: jiff::Timestamp) -> String {
    time.as_nanosecond().max(0).to_string()
}
