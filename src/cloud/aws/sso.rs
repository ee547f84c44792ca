//! Single sign-on: exchanges the token that `aws sso login` saved for credentials of a role.

use super::AwsCredentials;
use super::profile::AwsProfile;
use crate::cloud::{CloudEnvironment, headers, json, read, server, text, unreachable};
use crate::protocol::Problem;
use crate::text::hex;
use jiff::Timestamp;
use serde_json::Value;
use sha1::{Digest, Sha1};

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
    let token = saved_token(surroundings, name, profile.get("sso_session").unwrap_or(url))?;
    let address = surroundings.variable("AWS_ENDPOINT_URL_SSO").or_else(|| surroundings.variable("AWS_ENDPOINT_URL"));
    let address = address.map_or_else(|| format!("https://portal.sso.{region}.amazonaws.com"), str::to_owned);
    let escaped = |value: &str| url::form_urlencoded::byte_serialize(value.as_bytes()).collect::<String>();
    let path = format!("/federation/credentials?role_name={}&account_id={}", escaped(role), escaped(account));
    let sent = server(&address)?.get(&path, &headers([("x-amz-sso_bearer_token", token.as_str())])).await;
    let (status, value) = json(sent.map_err(|error| unreachable("AWS single sign-on", &error))?).await;
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

/// Returns the saved token, if it is still valid.
fn saved_token(surroundings: &CloudEnvironment, profile: &str, session: &str) -> Result<String, Problem> {
    let hash = hex(&Sha1::digest(session.as_bytes()));
    let path = surroundings.home.join(".aws/sso/cache").join(format!("{hash}.json"));
    let Some(content) = read(&path)? else {
        let problem = Problem::new(format!("not signed in to AWS with the profile `{profile}`"));
        return Err(problem.hint(login_command(profile)));
    };
    let value: Value = serde_json::from_str(&content).unwrap_or_default();
    let until: Option<Timestamp> = text(&value, "expiresAt").and_then(|time| time.replace("UTC", "Z").parse().ok());
    match text(&value, "accessToken") {
        Some(token) if until.is_none_or(|until| until > Timestamp::now()) => {
            (surroundings.learn)(token);
            Ok(token.to_owned())
        }
        Some(_) | None => Err(expired_problem(profile)),
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
