//! A registered session: its data from the session service, and the file with its policy.

use super::policy_layers::ServiceSource;
use crate::ports::ServiceSession;
use jiff::Timestamp;
use std::path::PathBuf;
use std::sync::Arc;

/// A session as the session service knows it, and its policy.
#[derive(Clone)]
pub(crate) struct RegisteredSession {
    pub facts: Arc<ServiceSession>,
    /// The policy, as a file.
    pub(super) file: PathBuf,
    /// Time at which the policy expires; absent if it is not known.
    pub(super) expires_at: Option<Timestamp>,
}

impl RegisteredSession {
    /// Returns the source of the policy.
    pub(super) fn policy(&self) -> ServiceSource {
        ServiceSource { url: self.facts.url.clone(), file: Some(self.file.clone()) }
    }

    /// Returns the rows for `/status`.
    pub(super) fn rows(&self) -> Vec<(String, String)> {
        let ServiceSession { session_id, workspace_id, tenant_id, user_id, feature_flags, .. } = self.facts.as_ref();
        let named = [("workspace", workspace_id), ("tenant", tenant_id), ("user", user_id)];
        let named = named.iter().filter_map(|(name, value)| Some(format!(", {name} {}", value.as_ref()?)));
        let mut rows = vec![("service session".to_owned(), format!("{session_id}{}", named.collect::<String>()))];
        if !feature_flags.is_empty() {
            let flags: Vec<String> = feature_flags.iter().map(|(name, value)| format!("{name}={value}")).collect();
            rows.push(("feature flags".to_owned(), crate::text::clean_line(&flags.join(", "))));
        }
        rows
    }
}
