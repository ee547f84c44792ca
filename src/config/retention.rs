//! Retention settings, which limit the age and size of sessions and their data.

use super::file::Values;
use super::schema;

/// Limits on age and size beyond which data is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retention {
    /// Number of days without use after which a session expires. Absent if sessions never expire.
    pub session_days: Option<u64>,
    pub sessions_bytes: u64,
    pub artifacts_bytes: u64,
    pub snapshots_bytes: u64,
    pub caches_bytes: u64,
    pub layers_bytes: u64,
    pub logs_bytes: u64,
}

impl Retention {
    pub(super) fn from_values(values: &Values) -> Self {
        let days = configured_limit(values, "session_days")
            .or_else(|| configured_limit(values, "days"))
            .unwrap_or_else(|| default_limit("session_days"));
        let bytes = |key| configured_limit(values, key).unwrap_or_else(|| default_limit(key)) << 20;
        Self {
            session_days: Some(days).filter(|days| *days > 0),
            sessions_bytes: bytes("sessions_mb"),
            artifacts_bytes: bytes("artifacts_mb"),
            snapshots_bytes: bytes("snapshots_mb"),
            caches_bytes: bytes("caches_mb"),
            layers_bytes: bytes("layers_mb"),
            logs_bytes: bytes("logs_mb"),
        }
    }
}

fn path(key: &str) -> [String; 2] {
    ["retention".to_owned(), key.to_owned()]
}

fn configured_limit(values: &Values, key: &str) -> Option<u64> {
    values.get(path(key).as_slice())?.value.as_number()
}

fn default_limit(key: &str) -> u64 {
    schema::find(&path(key)).and_then(|key| key.default.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_retention_values_have_defaults_and_zero_days_disables_deletion() {
        let read =
            |text: &str| Retention::from_values(&super::super::file::parse(text, std::path::Path::new("config.toml")).unwrap());
        let usual = read("");
        assert_eq!((usual.session_days, usual.sessions_bytes, usual.logs_bytes), (Some(90), 1 << 30, 64 << 20));
        assert_eq!(read("[retention]\nsession_days = 0\n").session_days, None);
        assert_eq!(read("[retention]\ndays = 7\n").session_days, Some(7));
        assert_eq!(
            read("[retention]\ndays = 7\nsession_days = 3\ncaches_mb = 2\n"),
            Retention { session_days: Some(3), caches_bytes: 2 << 20, ..usual }
        );
    }
}
