//! Application default credentials files, which contain a service account key or a user's sign-in.

use super::SIGN_IN;
use crate::protocol::Problem;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, SystemTime};

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
/// Lifetime of a signed assertion, which is the longest that Google accepts.
const VALID: Duration = Duration::from_secs(3_600);

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum KeyFile {
    ServiceAccount(ServiceAccount),
    AuthorizedUser(AuthorizedUser),
}

#[derive(Deserialize)]
pub(super) struct ServiceAccount {
    client_email: String,
    private_key: String,
    #[serde(default)]
    private_key_id: Option<String>,
    #[serde(default)]
    token_uri: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct AuthorizedUser {
    client_id: String,
    client_secret: String,
    refresh_token: String,
    #[serde(default)]
    quota_project_id: Option<String>,
    #[serde(default)]
    token_uri: Option<String>,
}

/// Parses a credentials file. Errors never repeat its content.
pub(super) fn parse(content: &str, path: &Path) -> Result<KeyFile, Problem> {
    let problem = || Problem::new(format!("cannot use the credentials in `{}`", path.display()));
    let value: serde_json::Value = serde_json::from_str(content)
        .map_err(|error| problem().because(format!("line {}: invalid JSON", error.line())).hint(SIGN_IN))?;
    let kind = value.get("type").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    match kind.as_str() {
        "service_account" | "authorized_user" => serde_json::from_value(value)
            .map_err(|_| problem().because(format!("a required field of type `{kind}` is missing")).hint(SIGN_IN)),
        _ => {
            let problem = problem().because(format!("unsupported type `{}`", kind.chars().take(40).collect::<String>()));
            let command = "set `api_key_command = [\"gcloud\", \"auth\", \"print-access-token\"]` for this provider";
            Err(problem.hint(format!("{SIGN_IN}, or {command}")))
        }
    }
}

impl KeyFile {
    pub(super) fn token_uri(&self) -> &str {
        let given = match self {
            Self::ServiceAccount(account) => &account.token_uri,
            Self::AuthorizedUser(user) => &user.token_uri,
        };
        given.as_deref().unwrap_or(TOKEN_URI)
    }

    pub(super) fn quota_project(&self) -> Option<&str> {
        match self {
            Self::ServiceAccount(_) => None,
            Self::AuthorizedUser(user) => user.quota_project_id.as_deref(),
        }
    }

    /// Returns advice on what to do if the credentials are rejected.
    pub(super) fn remedy(&self) -> &'static str {
        match self {
            Self::ServiceAccount(_) => "create a new key for the service account, and check this machine's clock",
            Self::AuthorizedUser(_) => SIGN_IN,
        }
    }

    /// Returns the form fields of the token request.
    pub(super) fn form(&self, now: SystemTime, path: &Path) -> Result<Vec<(&'static str, String)>, Problem> {
        match self {
            Self::ServiceAccount(account) => Ok(vec![
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned()),
                ("assertion", account.assertion(self.token_uri(), now, path)?),
            ]),
            Self::AuthorizedUser(user) => Ok(vec![
                ("grant_type", "refresh_token".to_owned()),
                ("client_id", user.client_id.clone()),
                ("client_secret", user.client_secret.clone()),
                ("refresh_token", user.refresh_token.clone()),
            ]),
        }
    }
}

impl ServiceAccount {
    /// Creates the signed assertion with which a token is requested.
    fn assertion(&self, audience: &str, now: SystemTime, path: &Path) -> Result<String, Problem> {
        let wrong = || {
            let problem = Problem::new(format!("cannot use the credentials in `{}`", path.display()));
            problem
                .because("`private_key` is not an RSA key in PKCS#8 PEM format")
                .hint("create a new key for the service account")
        };
        let der = PrivatePkcs8KeyDer::from_pem_slice(self.private_key.as_bytes()).map_err(|_| wrong())?;
        let key = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(|_| wrong())?;
        let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut head = json!({"alg": "RS256", "typ": "JWT"});
        if let Some(id) = &self.private_key_id {
            head["kid"] = json!(id);
        }
        let claims = json!({
            "iss": self.client_email,
            "scope": SCOPE,
            "aud": audience,
            "iat": seconds,
            "exp": seconds + VALID.as_secs(),
        });
        let encode = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let statement = format!("{}.{}", encode(&head), encode(&claims));
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), statement.as_bytes(), &mut signature).map_err(|_| wrong())?;
        Ok(format!("{statement}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}
