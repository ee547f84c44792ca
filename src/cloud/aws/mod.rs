//! AWS accounts: request signing, and credentials from the environment, profiles, roles, programs, single sign-on and
//! the machine.

mod machine;
mod profile;
mod role;
mod signature;
mod sources;
mod sso;

use super::{CloudEnvironment, text};
use crate::protocol::Problem;
use crate::sys::http::Headers;
use jiff::Timestamp;
use profile::AwsProfile;
use serde_json::Value;
use signature::{SignatureScope, sign};
use std::fmt;
use std::time::Duration;
use tokio::sync::Mutex;

/// Environment variables that are read.
pub(crate) const VARIABLES: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
    "AWS_ENDPOINT_URL_SSO",
    "AWS_ENDPOINT_URL_SSO_OIDC",
    "AWS_ENDPOINT_URL_STS",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_EC2_METADATA_DISABLED",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
];

/// How long before credentials expire they are read again.
const MARGIN: Duration = Duration::from_secs(120);

/// Credentials for signing requests. They are never displayed.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct AwsCredentials {
    pub access_key_id: String,
    pub secret_access_key: String,
    pub session_token: Option<String>,
    pub until: Option<Timestamp>,
}

impl fmt::Debug for AwsCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

impl AwsCredentials {
    /// Parses credentials in the JSON format used by credential programs and metadata servers.
    fn from_json(value: &Value) -> Option<Self> {
        let session_token = text(value, "SessionToken").or(text(value, "Token")).map(str::to_owned);
        Some(Self {
            access_key_id: text(value, "AccessKeyId")?.to_owned(),
            secret_access_key: text(value, "SecretAccessKey")?.to_owned(),
            session_token,
            until: text(value, "Expiration").and_then(|time| time.parse().ok()),
        })
    }

    fn is_valid(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| until.duration_since(now) > MARGIN.try_into().unwrap_or_default())
    }
}

/// Request to be signed. It has no query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnsignedRequest<'a> {
    pub method: &'a str,
    /// Host name, followed by the port if it is not the default.
    pub host: &'a str,
    /// Path exactly as it is sent, including its escapes.
    pub path: &'a str,
    pub body: &'a [u8],
}

/// AWS account that signs requests to a single service in a single region.
#[derive(Debug)]
pub(crate) struct AwsAccount {
    surroundings: CloudEnvironment,
    /// Profile named in the settings, which takes precedence over the environment.
    profile: Option<String>,
    region: String,
    known: Mutex<Option<AwsCredentials>>,
}

impl AwsAccount {
    pub(crate) fn new(surroundings: CloudEnvironment, profile: Option<String>, region: String) -> Self {
        Self { surroundings, profile, region, known: Mutex::default() }
    }

    /// Returns the headers of a request to Bedrock. Credentials are read first if there are none or if they are about
    /// to expire.
    pub(crate) async fn headers(&self, request: UnsignedRequest<'_>) -> Result<Headers, Problem> {
        let credentials = self.credentials().await?;
        let scope = SignatureScope { region: &self.region, service: "bedrock" };
        Ok(sign(&request, scope, &credentials, Timestamp::now()))
    }

    /// Checks that credentials are available.
    pub(crate) async fn check(&self) -> Result<(), Problem> {
        self.credentials().await.map(drop)
    }

    /// Discards the credentials after the server has rejected them.
    pub(crate) async fn forget(&self) {
        *self.known.lock().await = None;
    }

    /// Returns what the user must do to renew the credentials.
    pub(crate) fn remedy(&self) -> String {
        sources::remedy(&self.surroundings, self.profile.as_deref())
    }

    async fn credentials(&self) -> Result<AwsCredentials, Problem> {
        let mut known = self.known.lock().await;
        if let Some(known) = known.as_ref().filter(|known| known.is_valid(Timestamp::now())) {
            return Ok(known.clone());
        }
        let new = sources::credentials(&self.surroundings, self.profile.as_deref(), &self.region).await?;
        (self.surroundings.learn)(&new.secret_access_key);
        if let Some(token) = &new.session_token {
            (self.surroundings.learn)(token);
        }
        Ok(known.insert(new).clone())
    }
}

/// Returns the region set in a profile, if any.
pub(crate) fn region_of_profile(surroundings: &CloudEnvironment, profile: Option<&str>) -> Result<Option<String>, Problem> {
    Ok(AwsProfile::read(surroundings, profile)?.and_then(|profile| profile.get("region").map(str::to_owned)))
}

#[cfg(test)]
mod tests;
