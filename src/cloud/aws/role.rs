//! Roles of profiles (`role_arn`) and web identities, for which the AWS Security Token Service issues temporary
//! credentials.

use super::profile::AwsProfile;
use super::signature::{SignatureScope, sign};
use super::{AwsCredentials, UnsignedRequest};
use crate::cloud::{CloudEnvironment, MAX_BYTES, read, server, text, unreachable};
use crate::protocol::Problem;
use crate::sys::http::Headers;
use jiff::Timestamp;
use serde_json::Value;
use std::path::PathBuf;

/// Security Token Service API version.
const VERSION: &str = "2011-06-15";
/// Range of valid values for `duration_seconds`.
const DURATION: std::ops::RangeInclusive<u32> = 900..=43_200;

/// Error codes which mean that the identity has expired.
const EXPIRED: [&str; 2] = ["ExpiredToken", "ExpiredTokenException"];
/// Instruction to the user for renewing keys in the environment.
pub(super) const ENVIRONMENT_RENEWAL: &str = "renew AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN";

/// Role to be assumed.
#[derive(Debug)]
pub(super) struct AwsRole {
    arn: String,
    session_name: String,
    external_id: Option<String>,
    /// Lifetime of the credentials in seconds, if the profile sets it.
    duration: Option<String>,
    pub source: Source,
    /// Where the role is configured, for use in errors.
    origin: String,
}

/// Identity with which a role is assumed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Another profile, or the keys in the same profile.
    Profile(String),
    /// Keys in environment variables.
    Environment,
    /// Role of the container or machine on which aye runs.
    Machine,
    /// File containing a token that proves the identity of the workload.
    WebIdentity(PathBuf),
}

impl AwsRole {
    /// Returns the role that a profile configures, or `None` if it configures none.
    pub(super) fn of_profile(surroundings: &CloudEnvironment, profile: &AwsProfile) -> Result<Option<Self>, Problem> {
        let Some(arn) = profile.get("role_arn") else { return Ok(None) };
        let name = &profile.name;
        if profile.get("mfa_serial").is_some() {
            let problem = Problem::new(format!("the AWS profile `{name}` has `mfa_serial`, which aye does not support"));
            let process = format!("credential_process = aws configure export-credentials --profile {name}");
            return Err(problem.hint(format!("add a profile with `{process}`, and use that profile")));
        }
        let duration = profile.get("duration_seconds").map(str::to_owned);
        if let Some(duration) = duration.as_ref().filter(|text| !text.parse().is_ok_and(|seconds| DURATION.contains(&seconds))) {
            let problem = Problem::new(format!("`duration_seconds` of the AWS profile `{name}` is `{duration}`"));
            return Err(problem.hint(format!("set it to {} to {} seconds", DURATION.start(), DURATION.end())));
        }
        let source =
            match (profile.get("web_identity_token_file"), profile.get("source_profile"), profile.get("credential_source")) {
                (Some(path), _, _) => Source::WebIdentity(surroundings.expand_path(path)),
                (None, Some(source), _) => Source::Profile(source.to_owned()),
                (None, None, Some("Environment")) => Source::Environment,
                (None, None, Some("Ec2InstanceMetadata" | "EcsContainer")) => Source::Machine,
                (None, None, Some(other)) => {
                    let problem = Problem::new(format!("`credential_source` of the AWS profile `{name}` is `{other}`"));
                    return Err(problem.hint("set it to Environment, Ec2InstanceMetadata or EcsContainer"));
                }
                (None, None, None) => {
                    let problem = Problem::new(format!("the AWS profile `{name}` has `role_arn`, but no source of credentials"));
                    return Err(problem.hint("add `source_profile` or `credential_source`"));
                }
            };
        let session_name = profile.get("role_session_name").map_or_else(default_session_name, str::to_owned);
        let external_id = profile.get("external_id").map(str::to_owned);
        let origin = format!("of the AWS profile `{name}`");
        Ok(Some(Self { arn: arn.to_owned(), session_name, external_id, duration, source, origin }))
    }

    /// Returns the role of a web identity that a cluster has configured through the environment, or `None` if there is
    /// none.
    pub(super) fn of_environment(surroundings: &CloudEnvironment) -> Option<Self> {
        let token = surroundings.variable("AWS_WEB_IDENTITY_TOKEN_FILE")?;
        let name = surroundings.variable("AWS_ROLE_SESSION_NAME").map_or_else(default_session_name, str::to_owned);
        Some(Self {
            arn: surroundings.variable("AWS_ROLE_ARN")?.to_owned(),
            session_name: name,
            external_id: None,
            duration: None,
            source: Source::WebIdentity(surroundings.expand_path(token)),
            origin: "in AWS_ROLE_ARN".to_owned(),
        })
    }

    /// Assumes the role using the credentials of another identity.
    pub(super) async fn assume(
        &self,
        surroundings: &CloudEnvironment,
        region: &str,
        credentials: &AwsCredentials,
    ) -> Result<AwsCredentials, Problem> {
        (surroundings.learn)(&credentials.secret_access_key);
        let mut form = self.form("AssumeRole");
        form.extend(self.external_id.clone().map(|id| ("ExternalId", id)));
        self.exchange(surroundings, region, &form, Some(credentials)).await
    }

    /// Assumes the role using a token in a file, which the platform keeps up to date.
    pub(super) async fn assume_with_token(
        &self,
        surroundings: &CloudEnvironment,
        region: &str,
        path: &std::path::Path,
    ) -> Result<AwsCredentials, Problem> {
        let token = read(path)?.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
        let missing = || Problem::new(format!("cannot assume the role {}", self.origin));
        let token = token.ok_or_else(|| missing().because(format!("`{}` is missing or empty", path.display())))?;
        (surroundings.learn)(&token);
        let mut form = self.form("AssumeRoleWithWebIdentity");
        form.push(("WebIdentityToken", token));
        self.exchange(surroundings, region, &form, None).await
    }

    fn form(&self, action: &str) -> Vec<(&'static str, String)> {
        let mut form = vec![
            ("Action", action.to_owned()),
            ("Version", VERSION.to_owned()),
            ("RoleArn", self.arn.clone()),
            ("RoleSessionName", self.session_name.clone()),
        ];
        form.extend(self.duration.clone().map(|seconds| ("DurationSeconds", seconds)));
        form
    }

    /// Sends a request, signing it if there are credentials. Returns the new credentials from the response.
    async fn exchange(
        &self,
        surroundings: &CloudEnvironment,
        region: &str,
        form: &[(&str, String)],
        credentials: Option<&AwsCredentials>,
    ) -> Result<AwsCredentials, Problem> {
        let server = server(&endpoint(surroundings, region))?;
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let path = format!("{}/", server.base_path());
        let request = UnsignedRequest { method: "POST", host: server.host(), path: &path, body: body.as_bytes() };
        let scope = SignatureScope { region, service: "sts" };
        let headers: Headers = credentials.map(|keys| sign(&request, scope, keys, Timestamp::now())).unwrap_or_default();
        let sent = server.submit("/", &headers, form).await;
        let reply = sent.map_err(|error| unreachable("the AWS Security Token Service", &error))?;
        let status = reply.status();
        let answer = String::from_utf8_lossy(&reply.into_head(MAX_BYTES).await).into_owned();
        let problem = || Problem::new(format!("cannot assume the role {}", self.origin));
        if status == 200 {
            return parse(&answer).ok_or_else(|| problem().because("the response has no credentials"));
        }
        let reason = error_field(&answer, "Message").unwrap_or_else(|| format!("status {status}"));
        let is_expired = error_field(&answer, "Code").is_some_and(|code| EXPIRED.contains(&code.as_str()));
        let hint = if is_expired { self.renewal() } else { format!("check that this identity may assume `{}`", self.arn) };
        Err(problem().because(reason).hint(hint))
    }

    /// Returns what the user must do to renew the identity with which the role is assumed.
    fn renewal(&self) -> String {
        match &self.source {
            Source::Profile(name) => {
                format!("renew the credentials of the AWS profile `{name}`, for example with `aws sso login --profile {name}`")
            }
            Source::Environment => ENVIRONMENT_RENEWAL.to_owned(),
            Source::Machine => "try again: the machine renews its credentials".to_owned(),
            Source::WebIdentity(path) => format!("renew the token in `{}`", path.display()),
        }
    }
}

fn default_session_name() -> String {
    format!("aye-{}", Timestamp::now().as_second())
}

/// Returns the Security Token Service endpoint for a region.
fn endpoint(surroundings: &CloudEnvironment, region: &str) -> String {
    let set = surroundings.variable("AWS_ENDPOINT_URL_STS").or_else(|| surroundings.variable("AWS_ENDPOINT_URL"));
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    set.map_or_else(|| format!("https://sts.{region}.{domain}"), str::to_owned)
}

/// Parses a response. Although JSON is requested, some services send XML.
fn parse(answer: &str) -> Option<AwsCredentials> {
    if let Ok(value) = serde_json::from_str::<Value>(answer) {
        let response = value.get("AssumeRoleResponse").or_else(|| value.get("AssumeRoleWithWebIdentityResponse"))?;
        let result = response.get("AssumeRoleResult").or_else(|| response.get("AssumeRoleWithWebIdentityResult"))?;
        let found = result.get("Credentials")?;
        let until = found.get("Expiration").and_then(Value::as_f64).and_then(|time| Timestamp::from_second(time as i64).ok());
        return AwsCredentials::from_json(found).map(|known| AwsCredentials { until: known.until.or(until), ..known });
    }
    Some(AwsCredentials {
        access_key_id: element(answer, "AccessKeyId")?,
        secret_access_key: element(answer, "SecretAccessKey")?,
        session_token: element(answer, "SessionToken"),
        until: element(answer, "Expiration").and_then(|time| time.parse().ok()),
    })
}

/// Returns a field of the error that a response contains.
fn error_field(answer: &str, name: &str) -> Option<String> {
    let json = serde_json::from_str::<Value>(answer).ok();
    let of_json = json.as_ref().and_then(|value| text(value.get("Error")?, name)).map(str::to_owned);
    of_json.or_else(|| element(answer, name))
}

/// Returns the text content of the first XML element with this name.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (content, _) = rest.split_once(&format!("</{name}>"))?;
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    let plain = entities.iter().fold(content.to_owned(), |text, (entity, character)| text.replace(entity, character));
    Some(plain.trim().to_owned()).filter(|text| !text.is_empty())
}
