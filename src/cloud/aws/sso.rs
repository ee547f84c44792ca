//! Single sign-on: exchanges the token that `aws sso login` saved for credentials of a role, and renews that token.

use super::AwsCredentials;
use super::profile::AwsProfile;
use crate::cloud::{self, CloudEnvironment, headers, read, server, text, unreachable};
use crate::protocol::Problem;
use crate::sys::file::{Existing, write_whole};
use crate::text::hex;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use sha1::{Digest, Sha1};
use std::path::PathBuf;

/// Remaining validity below which a token is renewed.
const RENEWAL_TIME: SignedDuration = SignedDuration::from_mins(5);

/// Returns the command that signs in again.
pub(super) fn login_command(profile: &str) -> String {
    if profile == "default" { "run `aws sso login`".to_owned() } else { format!("run `aws sso login --profile {profile}`") }
}

/// Returns the credentials for the role of a profile.
pub(super) async fn credentials(surroundings: &CloudEnvironment, profile: &AwsProfile) -> Result<AwsCredentials, Problem> {
    let name = &profile.name;
    let session = profile.get("sso_session").map(|session| format!("sso-session {session}"));
    let of_session = |key: &str| session.as_deref().and_then(|session| profile.section_value(session, key));
    let setting = |key: &str| of_session(key).or_else(|| profile.get(key));
    let need = |key: &str| {
        let problem = || Problem::new(format!("the AWS profile `{name}` has no `{key}`"));
        setting(key).ok_or_else(|| problem().hint(format!("run `aws configure sso --profile {name}`")))
    };
    let (url, region) = (need("sso_start_url")?, need("sso_region")?);
    let (account, role) = (need("sso_account_id")?, need("sso_role_name")?);
    // The file is named after the session or, in the older form, after the start URL.
    let cache = TokenCache::new(surroundings, profile.get("sso_session").unwrap_or(url));
    let token = cache.token(surroundings, name, region).await?;
    let address = surroundings.variable("AWS_ENDPOINT_URL_SSO").or_else(|| surroundings.variable("AWS_ENDPOINT_URL"));
    let address = address.map_or_else(|| format!("https://portal.sso.{region}.amazonaws.com"), str::to_owned);
    let escaped = |value: &str| url::form_urlencoded::byte_serialize(value.as_bytes()).collect::<String>();
    let path = format!("/federation/credentials?role_name={}&account_id={}", escaped(role), escaped(account));
    let sent = server(&address)?.get(&path, &headers([("x-amz-sso_bearer_token", token.as_str())])).await;
    let (status, value) = cloud::json(sent.map_err(|error| unreachable("AWS single sign-on", &error))?).await;
    let problem = || Problem::new(format!("AWS single sign-on returned no credentials for the profile `{name}`"));
    let reason = text(&value, "message").map_or_else(|| format!("status {status}"), str::to_owned);
    match status {
        200 => role_credentials(&value).ok_or_else(|| problem().because("the response has no credentials")),
        401 => Err(expired_problem(name).because(reason)),
        403 | 404 => {
            Err(problem().because(reason).hint(format!("check that you may use the role `{role}` of account {account}")))
        }
        _ => Err(problem().because(reason).hint("try again later")),
    }
}

fn expired_problem(profile: &str) -> Problem {
    Problem::new(format!("the AWS sign-in of the profile `{profile}` has expired")).hint(login_command(profile))
}

/// File in which `aws sso login` saved a token, with what is needed to renew it.
struct TokenCache(PathBuf);

impl TokenCache {
    /// Returns the cache of a session or, in the older form, of a start URL.
    fn new(surroundings: &CloudEnvironment, session: &str) -> Self {
        let hash = hex(&Sha1::digest(session.as_bytes()));
        Self(surroundings.home.join(".aws/sso/cache").join(format!("{hash}.json")))
    }

    /// Returns a valid token, which is renewed first if it is about to expire.
    async fn token(&self, surroundings: &CloudEnvironment, profile: &str, region: &str) -> Result<String, Problem> {
        let Some(saved) = self.read()? else {
            let problem = Problem::new(format!("not signed in to AWS with the profile `{profile}`"));
            return Err(problem.hint(login_command(profile)));
        };
        let now = Timestamp::now();
        if let Some(token) = valid_token(&saved, now + RENEWAL_TIME) {
            (surroundings.learn)(token);
            return Ok(token.to_owned());
        }
        let renewed = match Registration::read(&saved, now) {
            Some(registration) => registration.renew(surroundings, region).await,
            None => Err(expired_problem(profile)),
        };
        let problem = match renewed {
            Ok(renewal) => return Ok(self.save(saved, renewal, now)),
            Err(problem) => problem,
        };
        // Another process may have renewed the token, or the token is valid for a few more minutes.
        let saved = self.read()?.unwrap_or(saved);
        let token = valid_token(&saved, now).ok_or_else(|| problem.hint(login_command(profile)))?;
        (surroundings.learn)(token);
        Ok(token.to_owned())
    }

    /// Returns the content; `None` if the file does not exist.
    fn read(&self) -> Result<Option<Map<String, Value>>, Problem> {
        Ok(read(&self.0)?.map(|content| serde_json::from_str(&content).unwrap_or_default()))
    }

    /// Saves a renewed token and returns it. A refresh token is valid only once, so the AWS tools need the new one too.
    fn save(&self, mut saved: Map<String, Value>, renewal: Renewal, now: Timestamp) -> String {
        saved.insert("accessToken".to_owned(), renewal.token.as_str().into());
        let until = now.checked_add(SignedDuration::from_secs(renewal.seconds)).unwrap_or(now);
        saved.insert("expiresAt".to_owned(), until.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into());
        if let Some(refresh_token) = renewal.refresh_token {
            saved.insert("refreshToken".to_owned(), refresh_token.into());
        }
        // If the file cannot be written, the token is still good for this process; the next one asks the user to sign in.
        let path = self.0.canonicalize().unwrap_or_else(|_| self.0.clone());
        let _ = write_whole(&path, Value::Object(saved).to_string().as_bytes(), Existing::Replace);
        renewal.token
    }
}

/// Returns the token if it is valid at that time. A token without an expiry time is valid.
fn valid_token(saved: &Map<String, Value>, at: Timestamp) -> Option<&str> {
    let until = time(saved, "expiresAt");
    member(saved, "accessToken").filter(|_| until.is_none_or(|until| until > at))
}

fn member<'a>(saved: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    saved.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// Returns a time, which older tools wrote with `UTC` in place of `Z`.
fn time(saved: &Map<String, Value>, name: &str) -> Option<Timestamp> {
    member(saved, name)?.replace("UTC", "Z").parse().ok()
}

/// Client that `aws sso login` registered, and its refresh token.
struct Registration<'a> {
    client_id: &'a str,
    client_secret: &'a str,
    refresh_token: &'a str,
}

/// Response to a refresh token.
struct Renewal {
    token: String,
    /// Validity of the token, in seconds.
    seconds: i64,
    refresh_token: Option<String>,
}

impl<'a> Registration<'a> {
    /// Returns the registration if it has not expired. Sign-ins without a session have none.
    fn read(saved: &'a Map<String, Value>, now: Timestamp) -> Option<Self> {
        time(saved, "registrationExpiresAt").is_none_or(|until| until > now).then_some(())?;
        let (client_id, client_secret) = (member(saved, "clientId")?, member(saved, "clientSecret")?);
        Some(Self { client_id, client_secret, refresh_token: member(saved, "refreshToken")? })
    }

    /// Exchanges the refresh token for a new token.
    async fn renew(&self, surroundings: &CloudEnvironment, region: &str) -> Result<Renewal, Problem> {
        (surroundings.learn)(self.client_secret);
        (surroundings.learn)(self.refresh_token);
        let address = surroundings.variable("AWS_ENDPOINT_URL_SSO_OIDC").or_else(|| surroundings.variable("AWS_ENDPOINT_URL"));
        let address = address.map_or_else(|| format!("https://oidc.{region}.amazonaws.com"), str::to_owned);
        let body = json!({
            "clientId": self.client_id,
            "clientSecret": self.client_secret,
            "grantType": "refresh_token",
            "refreshToken": self.refresh_token,
        });
        let server = server(&format!("{}/token", address.trim_end_matches('/')))?;
        let accepted = headers([("accept", "application/json")]);
        let sent = server.post_as("application/json", &accepted, body.to_string().into()).await;
        let (status, value) = cloud::json(sent.map_err(|error| unreachable("AWS single sign-on", &error))?).await;
        let problem = || Problem::new("cannot renew the AWS sign-in");
        if status != 200 {
            let reason = text(&value, "error_description").or_else(|| text(&value, "error"));
            return Err(problem().because(reason.map_or_else(|| format!("status {status}"), str::to_owned)));
        }
        let token = text(&value, "accessToken").ok_or_else(|| problem().because("the response has no token"))?;
        (surroundings.learn)(token);
        let refresh_token = text(&value, "refreshToken").map(str::to_owned);
        if let Some(refresh_token) = &refresh_token {
            (surroundings.learn)(refresh_token);
        }
        let seconds = value.get("expiresIn").and_then(Value::as_i64).unwrap_or_default();
        Ok(Renewal { token: token.to_owned(), seconds, refresh_token })
    }
}

fn role_credentials(value: &Value) -> Option<AwsCredentials> {
    let value = value.get("roleCredentials")?;
    Some(AwsCredentials {
        access_key_id: text(value, "accessKeyId")?.to_owned(),
        secret_access_key: text(value, "secretAccessKey")?.to_owned(),
        session_token: text(value, "sessionToken").map(str::to_owned),
        until: value.get("expiration").and_then(Value::as_i64).and_then(|time| Timestamp::from_millisecond(time).ok()),
    })
}
