//! `[services]`: settings for services on other machines. A service is disabled unless its address is set.

use super::file::{self, Values};
use super::{ConfigError, KeyCommand, address, key_command};
use crate::protocol::Problem;

/// Name under which `aye auth login` saves the approval service's secret.
pub(super) const APPROVALS_KEY: &str = "approvals";
/// Name under which `aye auth login` saves the session service's token.
pub(super) const SESSIONS_KEY: &str = "sessions";
/// Special address that means the `OTEL_EXPORTER_OTLP_*` variables.
const FROM_ENVIRONMENT: &str = "env";
/// Environment variables with headers for OTLP receivers, which may include keys.
const EXPORT_HEADERS: [&str; 4] = [
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
];
/// Default value of `services.outbox.limit` in bytes.
const OUTBOX_BYTES: u64 = 1 << 30;

/// Configured services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceSettings {
    /// Size limit in bytes for all rows waiting to be delivered to services.
    pub outbox_bytes: u64,
    pub approvals: Option<ApprovalServiceSettings>,
    pub audit: Option<AuditSettings>,
    pub telemetry: Option<TelemetrySettings>,
    pub sessions: Option<SessionServiceSettings>,
}

/// Settings for the service that registers each session and supplies its policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionServiceSettings {
    pub url: String,
    /// Bearer token. Absent if the service does not need one.
    pub token: Option<SecretReference>,
    /// Whether sessions must not start without the service.
    pub required: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApprovalServiceSettings {
    pub url: String,
    pub secret: SecretReference,
    /// Whether aye asks the service to make decisions.
    pub ask: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditSettings {
    pub endpoint: OtlpEndpoint,
    /// Whether a session pauses before its next effect if audit records can no longer be stored.
    pub required: bool,
    /// Whether to send prompts, responses, arguments and results, which are redacted first.
    pub content: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TelemetrySettings {
    pub endpoint: OtlpEndpoint,
    pub content: bool,
}

/// Address of an OTLP receiver, without the path that belongs to the signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OtlpEndpoint {
    /// The address given by the `OTEL_EXPORTER_OTLP_*` variables.
    Environment,
    Url(String),
}

/// Where to find a secret. It never contains the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SecretReference {
    /// Environment variable with this name.
    Variable(String),
    /// Key saved by `aye auth login NAME`.
    Saved(String),
    /// Program configured by the user, which prints the secret.
    Program(KeyCommand),
}

impl SecretReference {
    fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(':')?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        match kind {
            "env" if is_name => Some(Self::Variable(name.to_owned())),
            "keyring" if is_name => Some(Self::Saved(name.to_owned())),
            _ => None,
        }
    }
}

impl ServiceSettings {
    /// Reads the settings. Addresses are validated without sending any requests.
    pub(super) fn from_values(values: &Values) -> Result<Self, ConfigError> {
        let outbox_bytes = file::number(values, &["services", "outbox", "limit"]).unwrap_or(OUTBOX_BYTES);
        let audit = endpoint(values, "audit")?.map(|endpoint| AuditSettings {
            endpoint,
            required: flag(values, &["services", "audit", "required"]),
            content: flag(values, &["services", "audit", "content"]),
        });
        let telemetry = endpoint(values, "telemetry")?
            .map(|endpoint| TelemetrySettings { endpoint, content: flag(values, &["services", "telemetry", "content"]) });
        Ok(Self { outbox_bytes, approvals: approvals(values)?, audit, telemetry, sessions: sessions(values)? })
    }

    /// Returns whether no service is configured.
    pub(crate) fn is_empty(&self) -> bool {
        self.approvals.is_none() && self.audit.is_none() && self.telemetry.is_none() && self.sessions.is_none()
    }
}

fn approvals(values: &Values) -> Result<Option<ApprovalServiceSettings>, ConfigError> {
    let Some(url) = url(values, "approvals")? else { return Ok(None) };
    let path = ["services", "approvals", "secret"];
    let hint = "set it to `env:NAME` (an environment variable) or `keyring:approvals` (saved by `aye auth login approvals`)";
    let Some(text) = file::text(values, &path) else {
        let problem = Problem::new("`services.approvals.secret` is missing, but messages must be signed");
        return Err(ConfigError::single(problem.hint(hint)));
    };
    let Some(secret) = SecretReference::parse(text) else {
        // The value may be the secret itself, so errors never repeat it.
        let problem =
            Problem::new(format!("{}: `services.approvals.secret` is not a reference to a secret", origin(values, &path)));
        return Err(ConfigError::single(problem.hint(hint)));
    };
    Ok(Some(ApprovalServiceSettings { url, secret, ask: flag(values, &["services", "approvals", "ask"]) }))
}

fn sessions(values: &Values) -> Result<Option<SessionServiceSettings>, ConfigError> {
    let Some(url) = url(values, "sessions")? else { return Ok(None) };
    let path = ["services", "sessions", "token"];
    let reference = match file::text(values, &path) {
        None => None,
        Some(text) => Some(SecretReference::parse(text).ok_or_else(|| {
            // The value may be the token itself, so no error repeats it.
            let problem = Problem::new(format!("{}: `services.sessions.token` is not a reference to a secret", origin(values, &path)));
            let hint = "set it to `env:NAME` (an environment variable) or `keyring:sessions` (saved by `aye auth login sessions`), \
                or set `services.sessions.token_command`";
            ConfigError::single(problem.hint(hint))
        })?),
    };
    let token = match (reference, token_command(values)?) {
        (Some(_), Some(_)) => {
            let problem = Problem::new("`services.sessions.token` and `services.sessions.token_command` are both set");
            return Err(ConfigError::single(problem.hint(format!("remove one of them: see {}", origin(values, &path)))));
        }
        (reference, command) => reference.or(command.map(SecretReference::Program)),
    };
    Ok(Some(SessionServiceSettings { url, token, required: flag(values, &["services", "sessions", "required"]) }))
}

/// Returns the program that prints the session service's token, if one is set.
fn token_command(values: &Values) -> Result<Option<KeyCommand>, ConfigError> {
    let path = ["services", "sessions", "token_command"];
    let Some(command) = KeyCommand::read(values, &path, &["services", "sessions", "token_lifetime_seconds"]) else {
        return Ok(None);
    };
    let location = || format!("{}: `{}`", origin(values, &path), path.join("."));
    key_command::check(&command.argv).map_err(|problem| ConfigError::single(problem.with_location(location())))?;
    Ok(Some(command))
}

/// Returns the location of a setting, for use in messages.
fn origin(values: &Values, path: &[&str]) -> String {
    file::entry(values, path).map(|entry| entry.origin.to_string()).unwrap_or_default()
}

fn endpoint(values: &Values, service: &str) -> Result<Option<OtlpEndpoint>, ConfigError> {
    if file::text(values, &["services", service, "url"]) == Some(FROM_ENVIRONMENT) {
        return Ok(Some(OtlpEndpoint::Environment));
    }
    Ok(url(values, service)?.map(OtlpEndpoint::Url))
}

fn flag(values: &Values, path: &[&str]) -> bool {
    file::flag(values, path) == Some(true)
}

fn url(values: &Values, service: &str) -> Result<Option<String>, ConfigError> {
    let path = ["services", service, "url"];
    let Some(given) = file::text(values, &path).filter(|given| !given.trim().is_empty()) else { return Ok(None) };
    let location = || format!("{}: `{}`", origin(values, &path), path.join("."));
    let checked = address::check(given.trim()).map_err(|problem| ConfigError::single(problem.with_location(location())))?;
    Ok(Some(checked))
}

/// Returns the environment variables that may contain secrets of the configured services.
pub(super) fn secret_variables(values: &Values) -> Vec<String> {
    let named = [["services", "approvals", "secret"], ["services", "sessions", "token"]].into_iter().filter_map(|path| {
        match SecretReference::parse(file::text(values, &path)?)? {
            SecretReference::Variable(name) => Some(name),
            SecretReference::Saved(_) | SecretReference::Program(_) => None,
        }
    });
    let policy = ["token_env", "secret_env"].into_iter().filter_map(|key| file::text(values, &["services", "policy", key]));
    let policy = policy.map(str::to_owned);
    let exports = ["audit", "telemetry"].iter().any(|service| file::text(values, &["services", service, "url"]).is_some());
    let headers = EXPORT_HEADERS.iter().filter(|_| exports).map(|&name| name.to_owned());
    named.chain(policy).chain(headers).collect()
}

/// Validates an address from an environment variable in the same way as an address in the settings.
pub(crate) fn check_service_url(given: &str) -> Result<String, Problem> {
    address::check(given.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn read(text: &str) -> Result<ServiceSettings, String> {
        let values = file::parse(text, Path::new("config.toml")).unwrap();
        ServiceSettings::from_values(&values).map_err(|error| error.to_string())
    }

    #[test]
    fn services_are_off_unless_their_address_is_set() {
        let none = read("[services.audit]\nrequired = true\n[services.approvals]\nask = true\n").unwrap();
        assert!(none.is_empty());
        assert_eq!(none.outbox_bytes, 1 << 30);
        let some = read(
            "[services.outbox]\nlimit = \"10MB\"\n[services.approvals]\nurl = \"https://a.example/hook/\"\nsecret = \"env:HOOK\"\nask = true\n\
             [services.audit]\nurl = \"http://127.0.0.1:4318\"\nrequired = true\n[services.telemetry]\nurl = \"env\"\ncontent = true\n",
        )
        .unwrap();
        assert_eq!(some.outbox_bytes, 10 << 20);
        let secret = SecretReference::Variable("HOOK".to_owned());
        assert_eq!(some.approvals, Some(ApprovalServiceSettings { url: "https://a.example/hook".to_owned(), secret, ask: true }));
        let endpoint = OtlpEndpoint::Url("http://127.0.0.1:4318".to_owned());
        assert_eq!(some.audit, Some(AuditSettings { endpoint, required: true, content: false }));
        assert_eq!(some.telemetry, Some(TelemetrySettings { endpoint: OtlpEndpoint::Environment, content: true }));
    }

    #[test]
    fn the_token_of_a_session_service_is_optional_and_so_is_the_service_by_default() {
        let sessions =
            |more: &str| read(&format!("[services.sessions]\nurl = \"https://s.example/v1/\"\n{more}")).unwrap().sessions;
        let plain = SessionServiceSettings { url: "https://s.example/v1".to_owned(), token: None, required: false };
        assert_eq!(sessions(""), Some(plain.clone()));
        let token = Some(SecretReference::Saved("sessions".to_owned()));
        assert_eq!(
            sessions("token = \"keyring:sessions\"\nrequired = true\n"),
            Some(SessionServiceSettings { token, required: true, ..plain })
        );
        assert_eq!(read("[services.sessions]\nrequired = true\n").unwrap().sessions, None, "off without an address");
    }

    #[test]
    fn a_program_can_print_the_token_of_the_session_service() {
        let read = |more: &str| read(&format!("[services.sessions]\nurl = \"https://s.example\"\n{more}\n"));
        let settings = read("token_command = [\"pass\", \"show\", \"sessions\"]\ntoken_lifetime_seconds = 60").unwrap();
        let argv = ["pass", "show", "sessions"].map(str::to_owned).to_vec();
        let command = KeyCommand { argv, lifetime: Some(std::time::Duration::from_secs(60)) };
        assert_eq!(settings.sessions.unwrap().token, Some(SecretReference::Program(command)));
        for (more, reason) in [
            ("token_command = []", "the program is missing"),
            ("token_command = [\"pass show x\"]", "without a shell"),
            ("token_command = [\"./token\"]", "relative path"),
            ("token_command = [\"pass\"]\ntoken = \"env:TOKEN\"", "are both set"),
        ] {
            let error = read(more).unwrap_err();
            assert!(error.contains(reason), "{more}: {error}");
        }
    }

    #[test]
    fn variables_with_secrets_of_configured_services_are_known() {
        let variables = |text: &str| secret_variables(&file::parse(text, Path::new("config.toml")).unwrap());
        assert_eq!(variables("[services.approvals]\nsecret = \"keyring:approvals\"\n"), Vec::<String>::new());
        assert_eq!(
            variables(
                "[services.approvals]\nsecret = \"env:HOOK\"\n[services.policy]\ntoken_env = \"TOKEN\"\nsecret_env = \"SIGNED\"\n"
            ),
            ["HOOK", "TOKEN", "SIGNED"]
        );
        assert_eq!(variables("[services.sessions]\ntoken = \"env:SESSIONS\"\n"), ["SESSIONS"]);
        assert_eq!(variables("[services.audit]\nurl = \"env\"\n"), EXPORT_HEADERS);
    }

    #[test]
    fn plain_text_secrets_and_unencrypted_addresses_are_rejected_without_repeating_the_secret() {
        let hook = "[services.approvals]\nurl = \"https://a.example\"\n";
        for (text, reason) in [
            (hook.to_owned(), "`services.approvals.secret` is missing"),
            (format!("{hook}secret = \"whsec_c2VjcmV0c2VjcmV0\"\n"), "not a reference"),
            (format!("{hook}secret = \"env:\"\n"), "not a reference"),
            (format!("{hook}secret = \"file:x\"\n"), "not a reference"),
            ("[services.audit]\nurl = \"http://audit.example\"\n".to_owned(), "unencrypted"),
            ("[services.sessions]\nurl = \"http://s.example\"\n".to_owned(), "unencrypted"),
            ("[services.sessions]\nurl = \"https://s.example\"\ntoken = \"c2VjcmV0\"\n".to_owned(), "not a reference"),
            ("[services.telemetry]\nurl = \"ftp://x\"\n".to_owned(), "scheme"),
            ("[services.telemetry]\nurl = \"https://me:pw@x.example\"\n".to_owned(), "contains a password"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(reason) && !error.contains("c2VjcmV0"), "{text}: {error}");
        }
    }
}
