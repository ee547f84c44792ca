//! Single sign-on: exchanges the token that `aws sso login` saved for credentials of a role, and renews that token.

use super::AwsCredentials;
use super::profile::AwsProfile;
use crate::cloud::{self, CloudEnvironment, headers, read, server, text, unreachable};
use crate::protocol::Problem;
use crate::sys::file::{Existing, PreparedFile};
use crate::sys::http::HttpServer;
use crate::text::hex;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use sha1::{Digest, Sha1};
use std::fs::OpenOptions;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Remaining validity below which a token is renewed.
const RENEWAL_TIME: SignedDuration = SignedDuration::from_mins(5);
/// Number of times that the file is read again after a failed renewal, and the pause before each of them.
const REREADS: u32 = 5;
const REREAD_PAUSE: Duration = Duration::from_millis(200);

/// Returns the command with which the user can sign in again.
pub(super) fn login_command(profile: &str) -> String {
    if profile == "default" { "run `aws sso login`".to_owned() } else { format!("run `aws sso login --profile {profile}`") }
}

/// Returns the credentials for a profile's role.
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
    // The file is named after the session or, in the older format, after the start URL.
    let cache = TokenCache::new(surroundings, profile.get("sso_session").unwrap_or(url));
    let token = cache.token(surroundings, name, region, None).await?;
    let address = surroundings.variable("AWS_ENDPOINT_URL_SSO").or_else(|| surroundings.variable("AWS_ENDPOINT_URL"));
    let portal = server(&address.map_or_else(|| format!("https://portal.sso.{region}.amazonaws.com"), str::to_owned))?;
    let escaped = |value: &str| url::form_urlencoded::byte_serialize(value.as_bytes()).collect::<String>();
    let path = format!("/federation/credentials?role_name={}&account_id={}", escaped(role), escaped(account));
    let (mut status, mut value) = request_credentials(&portal, &path, &token).await?;
    if status == 401 {
        // The token was revoked before its expiry. The refresh token may still be valid.
        let renewed = cache.token(surroundings, name, region, Some(&token)).await.map_err(|problem| match problem.why {
            None => problem.because(reason(status, &value)),
            Some(_) => problem,
        })?;
        (status, value) = request_credentials(&portal, &path, &renewed).await?;
    }
    let problem = || Problem::new(format!("AWS single sign-on returned no credentials for the profile `{name}`"));
    let reason = reason(status, &value);
    match status {
        200 => role_credentials(&value).ok_or_else(|| problem().because("the response has no credentials")),
        401 => Err(expired_problem(name).because(reason)),
        403 | 404 => {
            Err(problem().because(reason).hint(format!("check that you may use the role `{role}` of account {account}")))
        }
        _ => Err(problem().because(reason).hint("try again later")),
    }
}

async fn request_credentials(portal: &HttpServer, path: &str, token: &str) -> Result<(u16, Value), Problem> {
    let sent = portal.get(path, &headers([("x-amz-sso_bearer_token", token)])).await;
    Ok(cloud::json(sent.map_err(|error| unreachable("AWS single sign-on", &error))?).await)
}

/// Returns the reason in the response to a failed request.
fn reason(status: u16, value: &Value) -> String {
    text(value, "message").map_or_else(|| format!("status {status}"), str::to_owned)
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

    /// Returns a valid token, which is renewed first if it is about to expire. `rejected`: a token that the server
    /// rejected.
    async fn token(
        &self,
        surroundings: &CloudEnvironment,
        profile: &str,
        region: &str,
        rejected: Option<&str>,
    ) -> Result<String, Problem> {
        let Some(saved) = self.read()? else {
            let problem = Problem::new(format!("not signed in to AWS with the profile `{profile}`"));
            return Err(problem.hint(login_command(profile)));
        };
        let now = Timestamp::now();
        if let Some(token) = valid_token(&saved, now + RENEWAL_TIME, rejected) {
            (surroundings.learn)(token);
            return Ok(token.to_owned());
        }
        let renewed = match Registration::read(&saved, now) {
            Some(registration) => self.renew(surroundings, profile, region, &registration).await,
            None => Err(expired_problem(profile)),
        };
        let problem = match renewed {
            Ok(token) => return Ok(token),
            Err(problem) => problem,
        };
        if let Some(token) = self.read_again(&saved, rejected).await? {
            (surroundings.learn)(&token);
            return Ok(token);
        }
        let command = login_command(profile);
        Err(if problem.hints.contains(&command) { problem } else { problem.hint(command) })
    }

    /// Renews the token, and saves the new one. The refresh token is valid only once, so it is not used if the new one
    /// could not be saved.
    async fn renew(
        &self,
        surroundings: &CloudEnvironment,
        profile: &str,
        region: &str,
        registration: &Registration<'_>,
    ) -> Result<String, Problem> {
        let replacement = self.prepare().map_err(|error| {
            expired_problem(profile).because(format!("cannot renew it, because `{}` is not writable: {error}", self.0.display()))
        })?;
        let renewal = registration.renew(surroundings, region).await?;
        Ok(self.save(replacement, registration.refresh_token, renewal))
    }

    /// Returns the saved token if it is valid: for a few more minutes, or because another process renewed it. That
    /// process may have used the refresh token already, but not have saved the new token yet.
    async fn read_again(&self, saved: &Map<String, Value>, rejected: Option<&str>) -> Result<Option<String>, Problem> {
        let used = member(saved, "refreshToken");
        for attempt in 0..=REREADS {
            let latest = self.read()?;
            let latest = latest.as_ref().unwrap_or(saved);
            if let Some(token) = valid_token(latest, Timestamp::now(), rejected) {
                return Ok(Some(token.to_owned()));
            }
            if used.is_none() || attempt == REREADS {
                break;
            }
            tokio::time::sleep(REREAD_PAUSE).await;
        }
        Ok(None)
    }

    /// Returns the content; `None` if the file does not exist.
    fn read(&self) -> Result<Option<Map<String, Value>>, Problem> {
        Ok(read(&self.0)?.map(|content| serde_json::from_str(&content).unwrap_or_default()))
    }

    /// Prepares the replacement of the file. Fails if the file or its directory is not writable.
    fn prepare(&self) -> io::Result<PreparedFile> {
        let path = self.0.canonicalize()?;
        OpenOptions::new().write(true).open(&path)?;
        PreparedFile::new(&path)
    }

    /// Saves a renewed token, also for the AWS tools, and returns it. `used`: the refresh token that was sent.
    fn save(&self, replacement: PreparedFile, used: &str, renewal: Renewal) -> String {
        // A sign-in by another program during the renewal takes precedence.
        let latest = self.read().ok().flatten().filter(|latest| member(latest, "refreshToken") == Some(used));
        let Some(mut latest) = latest else { return renewal.token };
        let now = Timestamp::now();
        let until = now.checked_add(SignedDuration::from_secs(renewal.seconds)).unwrap_or(now);
        latest.insert("accessToken".to_owned(), renewal.token.as_str().into());
        latest.insert("expiresAt".to_owned(), until.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into());
        if let Some(refresh_token) = renewal.refresh_token {
            latest.insert("refreshToken".to_owned(), refresh_token.into());
        }
        let content = Value::Object(latest).to_string();
        let path = replacement.path().to_owned();
        let written = match replacement.commit(content.as_bytes(), Existing::Replace) {
            // A mounted file cannot be replaced, but it can be overwritten.
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::fs::write(&path, content),
            written => written,
        };
        if let Err(error) = written {
            // The token is still valid for this process. The next renewal fails, and its error names `aws sso login`.
            tracing::warn!(%error, "cannot save the renewed AWS sign-in");
        }
        renewal.token
    }
}

/// Returns the token if it is valid at that time and was not rejected. A token without an expiry time is valid.
fn valid_token<'a>(saved: &'a Map<String, Value>, at: Timestamp, rejected: Option<&str>) -> Option<&'a str> {
    let until = time(saved, "expiresAt");
    let token = member(saved, "accessToken").filter(|_| until.is_none_or(|until| until > at));
    token.filter(|token| Some(*token) != rejected)
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
