//! Sources of credentials, in the order of the tools of AWS.

use super::profile::Profile;
use super::{Credentials, machine, sso};
use crate::cloud::Surroundings;
use crate::protocol::Problem;
use crate::sys::key_command::KeyCommand;
use crate::text::split_words;
use serde_json::Value;
use std::time::Duration;

/// Time limit of a `credential_process`.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Kinds of profiles that only AWS tools support.
const UNSUPPORTED: [&str; 2] = ["role_arn", "web_identity_token_file"];

/// Returns the credentials of the first source that has some. `profile`: the one of the settings.
pub(super) async fn credentials(surroundings: &Surroundings, profile: Option<&str>) -> Result<Credentials, Problem> {
    if profile.is_none()
        && let (Some(id), Some(secret)) =
            (surroundings.variable("AWS_ACCESS_KEY_ID"), surroundings.variable("AWS_SECRET_ACCESS_KEY"))
    {
        let session_token = surroundings.variable("AWS_SESSION_TOKEN").map(str::to_owned);
        return Ok(Credentials {
            access_key_id: id.to_owned(),
            secret_access_key: secret.to_owned(),
            session_token,
            until: None,
        });
    }
    let (here, named) = (surroundings.clone(), profile.map(str::to_owned));
    let read = tokio::task::spawn_blocking(move || Profile::read(&here, named.as_deref())).await;
    let read = read.unwrap_or_else(|_| Err(Problem::new("cannot read the AWS profiles")))?;
    if let Some(profile) = read
        && let Some(credentials) = of_profile(surroundings, &profile).await?
    {
        return Ok(credentials);
    }
    if let Some(credentials) = machine::credentials(surroundings).await? {
        return Ok(credentials);
    }
    let problem = Problem::new("no AWS credentials found");
    let problem = problem.because("neither the environment, nor a profile, nor this machine has any");
    Err(problem
        .hint("run `aws configure sso` or `aws configure`, and set AWS_PROFILE")
        .hint("or set AWS_BEARER_TOKEN_BEDROCK to a Bedrock API key"))
}

/// Returns the command that renews the credentials of a profile.
pub(super) fn remedy(surroundings: &Surroundings, profile: Option<&str>) -> String {
    let is_of_environment = profile.is_none() && surroundings.variable("AWS_ACCESS_KEY_ID").is_some();
    if is_of_environment {
        return "renew AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN".to_owned();
    }
    match Profile::read(surroundings, profile) {
        Ok(Some(profile)) => sso::sign_in(&profile.name),
        Ok(None) | Err(_) => "run `aws sso login`".to_owned(),
    }
}

async fn of_profile(surroundings: &Surroundings, profile: &Profile) -> Result<Option<Credentials>, Problem> {
    if let (Some(id), Some(secret)) = (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")) {
        let session_token = profile.get("aws_session_token").map(str::to_owned);
        let (access_key_id, secret_access_key) = (id.to_owned(), secret.to_owned());
        return Ok(Some(Credentials { access_key_id, secret_access_key, session_token, until: None }));
    }
    if let Some(key) = UNSUPPORTED.into_iter().find(|key| profile.get(key).is_some()) {
        let name = &profile.name;
        let problem = Problem::new(format!("the AWS profile `{name}` has `{key}`, which aye does not support"));
        let process = format!("credential_process = aws configure export-credentials --profile {name}");
        return Err(problem.hint(format!("add a profile with `{process}`, and use that one")));
    }
    if profile.get("sso_account_id").is_some() {
        return sso::credentials(surroundings, profile).await.map(Some);
    }
    match profile.get("credential_process") {
        Some(line) => of_process(surroundings, profile, line).await.map(Some),
        None => Ok(None),
    }
}

async fn of_process(surroundings: &Surroundings, profile: &Profile, line: &str) -> Result<Credentials, Problem> {
    let what = format!("cannot get credentials with `credential_process` of the AWS profile `{}`", profile.name);
    let argv = split_words(line).filter(|argv| !argv.is_empty());
    let argv = argv.ok_or_else(|| Problem::new(&what).because("a quote is not closed, or the command is empty"))?;
    let here = surroundings.clone();
    let run = move || {
        let (argv, home, roots) = (&argv, &here.home, &here.roots);
        KeyCommand { argv, home, timeout: TIMEOUT, withheld: &[], roots }.output()
    };
    let output = tokio::task::spawn_blocking(run).await.map_err(|_| Problem::new(&what))?;
    let output = output.map_err(|error| Problem::new(&what).because(error).hint(sso::sign_in(&profile.name)))?;
    let value: Value = serde_json::from_str(&output).map_err(|_| Problem::new(&what).because("it did not print JSON"))?;
    Credentials::of_json(&value).ok_or_else(|| Problem::new(&what).because("the JSON has no `AccessKeyId` and `SecretAccessKey`"))
}
