//! Bundle tables other than capabilities.

use super::reader::{BundleError, BundleTable};
use crate::protocol::Risk;
use std::collections::BTreeMap;

/// Models that may be used, and limits on their use.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelLimits {
    /// `PROVIDER/NAME` patterns; `None` allows every model.
    pub allowed_models: Option<Vec<String>>,
    pub models_line: usize,
    pub max_input_tokens: Option<u64>,
    pub input_line: usize,
    pub max_output_tokens: Option<u64>,
    pub max_session_tokens: Option<u64>,
    pub tokens_line: usize,
    pub max_session_cost_usd: Option<f64>,
    pub cost_line: usize,
}

impl ModelLimits {
    pub fn read(section: &BundleTable<'_>) -> Result<Self, BundleError> {
        section.only(&[
            "allowed_models",
            "max_input_tokens",
            "max_output_tokens",
            "max_session_tokens",
            "max_session_cost_usd",
        ])?;
        let models = section.texts("allowed_models")?;
        Ok(Self {
            allowed_models: models.map(|models| models.into_iter().map(|model| model.text).collect()),
            models_line: section.line_number("allowed_models").unwrap_or_default(),
            max_input_tokens: section.number("max_input_tokens")?,
            input_line: section.line_number("max_input_tokens").unwrap_or_default(),
            max_output_tokens: section.number("max_output_tokens")?,
            max_session_tokens: section.number("max_session_tokens")?,
            tokens_line: section.line_number("max_session_tokens").unwrap_or_default(),
            max_session_cost_usd: section.amount("max_session_cost_usd")?,
            cost_line: section.line_number("max_session_cost_usd").unwrap_or_default(),
        })
    }

    /// Returns whether the model `PROVIDER/NAME` may be called.
    pub fn allows(&self, model: &str) -> bool {
        self.allowed_models
            .as_ref()
            .is_none_or(|patterns| patterns.iter().any(|p| crate::policy::shell::pattern::matches(p, model)))
    }
}

/// Title and description shown in an approval prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRule {
    pub title: String,
    pub description: Option<String>,
}

pub(crate) fn approval_rules(root: &BundleTable<'_>) -> Result<BTreeMap<String, ApprovalRule>, BundleError> {
    let mut rules = BTreeMap::new();
    let Some(section) = root.section("approval_rules")? else { return Ok(rules) };
    for (name, rule) in section.children()? {
        rule.only(&["title", "description"])?;
        let title = rule.text("title")?.map_or_else(|| name.text.clone(), |text| text.text);
        let description = rule.text("description")?.map(|text| text.text).filter(|text| !text.is_empty());
        rules.insert(name.text, ApprovalRule { title, description });
    }
    Ok(rules)
}

/// Reads the timeout, in seconds, of approvals that are requested over a connection.
pub(crate) fn approval_timeout(root: &BundleTable<'_>) -> Result<Option<u64>, BundleError> {
    let Some(section) = root.section("approval")? else { return Ok(None) };
    section.only(&["timeout_seconds", "guard", "service_max_risk"])?;
    section.choice("guard", &[("normal", ()), ("strict", ())])?;
    match section.number("timeout_seconds")? {
        Some(0) => {
            let expected = "an integer of at least 1: the number of seconds an approval waits for an answer";
            Err(section.error_at("timeout_seconds", &format!("`timeout_seconds` is 0; expected {expected}")))
        }
        seconds => Ok(seconds),
    }
}

/// Highest risk that the approval service may approve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServiceRisk {
    /// The service may not approve anything.
    None,
    UpTo(Risk),
}

/// Reads the highest risk that the approval service may approve. `critical` is not a valid value.
pub(crate) fn service_risk(root: &BundleTable<'_>) -> Result<Option<ServiceRisk>, BundleError> {
    let Some(section) = root.section("approval")? else { return Ok(None) };
    let risks = [Risk::Low, Risk::Medium, Risk::High].map(|risk| (risk.as_str(), ServiceRisk::UpTo(risk)));
    section.choice("service_max_risk", &[("none", ServiceRisk::None), risks[0], risks[1], risks[2]])
}
