//! A session registered with the session service, including its current data and the file that contains its policy.

use super::policy_layers::ServiceSource;
use crate::ports::ServiceSession;
use jiff::Timestamp;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A session as known to the session service, and its policy. Clones share their state, which is replaced by each
/// renewal.
#[derive(Clone)]
pub(crate) struct RegisteredSession {
    current: Arc<Mutex<Registration>>,
    /// File that contains the policy.
    pub(super) file: PathBuf,
}

/// State after the last renewal of the registration.
struct Registration {
    facts: Arc<ServiceSession>,
    /// Time at which the policy expires. Absent for a policy that was stored by an earlier process, in which case it is
    /// unknown.
    expires_at: Option<Timestamp>,
    /// Reason the last renewal failed, if it did.
    problem: Option<String>,
}

impl RegisteredSession {
    pub(super) fn new(facts: ServiceSession, file: PathBuf, expires_at: Option<Timestamp>, problem: Option<String>) -> Self {
        Self { current: Arc::new(Mutex::new(Registration { facts: Arc::new(facts), expires_at, problem })), file }
    }

    fn current(&self) -> MutexGuard<'_, Registration> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what the session service reported about the session.
    pub(crate) fn facts(&self) -> Arc<ServiceSession> {
        self.current().facts.clone()
    }

    /// Returns the time at which the policy expires, if known.
    pub(super) fn expires_at(&self) -> Option<Timestamp> {
        self.current().expires_at
    }

    /// Stores the result of a successful renewal.
    pub(super) fn renewed(&self, facts: ServiceSession, expires_at: Timestamp) {
        *self.current() = Registration { facts: Arc::new(facts), expires_at: Some(expires_at), problem: None };
    }

    /// Records why a renewal failed.
    pub(super) fn failed(&self, why: &str) {
        self.current().problem = Some(why.to_owned());
    }

    /// Returns the source from which the policy layer is read.
    pub(super) fn policy(&self) -> ServiceSource {
        ServiceSource { url: self.facts().url.clone(), file: Some(self.file.clone()) }
    }

    /// Returns the rows to show for `/status`.
    pub(super) fn rows(&self) -> Vec<(String, String)> {
        let current = self.current();
        let ServiceSession { session_id, workspace_id, tenant_id, user_id, feature_flags, policy_bundle_version, .. } =
            current.facts.as_ref();
        let named = [("workspace", workspace_id), ("tenant", tenant_id), ("user", user_id)];
        let named = named.iter().filter_map(|(name, value)| Some(format!(", {name} {}", value.as_ref()?)));
        let mut rows = vec![("service session".to_owned(), format!("{session_id}{}", named.collect::<String>()))];
        let version = policy_bundle_version.as_deref().map(|version| format!("version {version}"));
        let expiry = current.expires_at.map(|time| format!("valid until {time:.0}"));
        let facts = [version, expiry].into_iter().flatten().collect::<Vec<_>>().join(", ");
        let problem = current.problem.as_deref().map(|why| format!("the last renewal failed: {why}"));
        let policy =
            [Some(facts).filter(|facts| !facts.is_empty()), problem].into_iter().flatten().collect::<Vec<_>>().join("; ");
        if !policy.is_empty() {
            rows.push(("service policy".to_owned(), crate::text::clean_line(&policy)));
        }
        if !feature_flags.is_empty() {
            let flags: Vec<String> = feature_flags.iter().map(|(name, value)| format!("{name}={value}")).collect();
            rows.push(("feature flags".to_owned(), crate::text::clean_line(&flags.join(", "))));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::SessionId;
    use std::collections::BTreeMap;

    #[test]
    fn the_rows_show_the_state_after_the_last_renewal() {
        let facts = ServiceSession {
            url: "https://s.example/v1".to_owned(),
            registered_id: SessionId::new("own"),
            session_id: "sess_1".to_owned(),
            workspace_id: None,
            tenant_id: Some("tenant_1".to_owned()),
            user_id: None,
            policy_bundle_version: Some("1".to_owned()),
            feature_flags: BTreeMap::new(),
        };
        let time = |text: &str| text.parse().unwrap();
        let session = RegisteredSession::new(facts.clone(), PathBuf::from("p"), Some(time("2026-01-01T00:00:00Z")), None);
        let shown = session.clone();
        let text = || shown.rows().into_iter().map(|(name, value)| format!("{name}: {value}\n")).collect::<Vec<_>>().concat();
        assert_eq!(
            text(),
            "service session: sess_1, tenant tenant_1\nservice policy: version 1, valid until 2026-01-01T00:00:00Z\n"
        );
        let earlier = RegisteredSession::new(facts.clone(), PathBuf::from("p"), None, Some("503".to_owned()));
        assert_eq!(earlier.rows()[1].1, "version 1; the last renewal failed: 503", "an unknown time is omitted");
        session.failed("503\nbusy");
        assert!(text().contains("; the last renewal failed: 503 busy"), "{}", text());
        let flags = BTreeMap::from([("webSearch".to_owned(), serde_json::json!(false))]);
        let renewed = ServiceSession { policy_bundle_version: Some("2".to_owned()), feature_flags: flags, ..facts };
        session.renewed(renewed, time("2026-01-02T00:00:00Z"));
        assert!(text().contains("version 2, valid until 2026-01-02T00:00:00Z\nfeature flags: webSearch=false"), "{}", text());
    }
}
