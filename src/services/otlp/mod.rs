//! OTLP over HTTP: settings from the `OTEL_*` variables, requests in protobuf or JSON, and their responses.

mod exporter;
mod settings;
mod transcode;

pub(super) use exporter::{Exporter, Loss};
pub(super) use settings::Signal;

use crate::ports::ServiceSession;
use serde_json::{Value, json};

/// Version of the semantic conventions for all attributes: the version of the GenAI conventions with
/// `gen_ai.provider.name`.
const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.37.0";
/// Maximum length of a string in an attribute, in characters.
const ATTRIBUTE_CHARS: usize = 64 << 10;

/// Attributes of a record, span or data point. Absent values are omitted.
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

/// Adds the tenant, the user and the IDs of the session service.
pub(super) fn add_identity(attributes: &mut Attributes, session: &ServiceSession) {
    attributes.text("aye.service.session.id", Some(&session.session_id));
    attributes.text("aye.service.workspace.id", session.workspace_id.as_deref());
    attributes.text("aye.tenant.id", session.tenant_id.as_deref());
    attributes.text("user.id", session.user_id.as_deref());
}

/// Formats a time in nanoseconds for JSON.
pub(super) fn nanos(time: jiff::Timestamp) -> String {
    time.as_nanosecond().max(0).to_string()
}
