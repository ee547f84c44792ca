//! Sources of credentials, which are tried in the same order as by AWS's own tools.

use super::profile::AwsProfile;
use super::role::{AwsRole, ENVIRONMENT_RENEWAL, Source};
use super::{AwsCredentials, machine, sso};
use crate::cloud::CloudEnvironment;
use crate::protocol::Problem;
use crate::sys::key_command::KeyProgram;
use crate::text::split_words;
use jiff::Timestamp;
use serde_json::Value;
use std::time::Duration;

/// Timeout for a `credential_process` program.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum length of a chain of roles.
const MAX_ROLES: usize = 10;

/// Returns credentials from the first source that provides any. `profile` is the profile named in the settings, and
/// `region` is the region in which roles are assumed.
pub(super) async fn credentials(
    surroundings: &CloudEnvironment,
    profile: Option<&str>,
    region: &str,
) -> Result<AwsCredentials, Problem> {
    if profile.is_none()
        && let Some(credentials) = of_environment(surroundings)
    {
        return Ok(credentials);
    }
    if let Some(role) = AwsRole::of_environment(surroundings).filter(|_| profile.is_none())
        && let Source::WebIdentity(path) = &role.source
    {
        return role.assume_with_token(surroundings, region, path).await;
    }
    if let Some(profile) = read_profile(surroundings, profile).await?
        && let Some(credentials) = from_profile(surroundings, profile, region).await?
    {
        return Ok(credentials);
    }
    if let Some(credentials) = machine::credentials(surroundings).await? {
        return Ok(credentials);
    }
    let problem = Problem::new("no AWS credentials found");
    let problem = problem.because("neither the environment, nor a profile, nor this machine has credentials");
    Err(problem
        .hint("run `aws configure sso` or `aws configure`, and set AWS_PROFILE")
        .hint("or set AWS_BEARER_TOKEN_BEDROCK to a Bedrock API key"))
}

/// Returns what the user must do to renew a profile's credentials.
pub(super) fn remedy(surroundings: &CloudEnvironment, profile: Option<&str>) -> String {
    let is_of_environment = profile.is_none() && surroundings.variable("AWS_ACCESS_KEY_ID").is_some();
    if is_of_environment {
        return ENVIRONMENT_RENEWAL.to_owned();
    }
    let mut found = AwsProfile::read(surroundings, profile);
    for _ in 0..MAX_ROLES {
        // The sign-in belongs to the last profile of the chain.
        let source = found.as_ref().ok().and_then(Option::as_ref).and_then(|profile| profile.get("source_profile"));
        let Some(source) = source.map(str::to_owned) else { break };
        found = AwsProfile::read(surroundings, Some(&source));
    }
    match found {
        Ok(Some(profile)) => sso::login_command(&profile.name),
        Ok(None) | Err(_) => "run `aws sso login`".to_owned(),
    }
}

async fn read_profile(surroundings: &CloudEnvironment, name: Option<&str>) -> Result<Option<AwsProfile>, Problem> {
    let (here, name) = (surroundings.clone(), name.map(str::to_owned));
    let read = tokio::task::spawn_blocking(move || AwsProfile::read(&here, name.as_deref())).await;
    read.unwrap_or_else(|_| Err(Problem::new("cannot read the AWS profiles")))
}

fn of_environment(surroundings: &CloudEnvironment) -> Option<AwsCredentials> {
    Some(AwsCredentials {
        access_key_id: surroundings.variable("AWS_ACCESS_KEY_ID")?.to_owned(),
        secret_access_key: surroundings.variable("AWS_SECRET_ACCESS_KEY")?.to_owned(),
        session_token: surroundings.variable("AWS_SESSION_TOKEN").map(str::to_owned),
        until: None,
    })
}

/// Returns a profile's credentials, after assuming every role in the chain that starts at its source. Returns `None` if
/// the profile provides no credentials.
async fn from_profile(
    surroundings: &CloudEnvironment,
    mut profile: AwsProfile,
    region: &str,
) -> Result<Option<AwsCredentials>, Problem> {
    let mut roles: Vec<AwsRole> = Vec::new();
    let mut credentials = loop {
        let Some(role) = AwsRole::of_profile(surroundings, &profile)? else {
            let found = without_role(surroundings, &profile).await?;
            if found.is_none() && !roles.is_empty() {
                return Err(Problem::new(format!(
                    "the AWS profile `{}`, which assumes a role, has no credentials",
                    profile.name
                )));
            }
            let Some(found) = found else { return Ok(None) };
            break found;
        };
        if let Source::WebIdentity(path) = &role.source {
            break role.assume_with_token(surroundings, region, path).await?;
        }
        if roles.len() >= MAX_ROLES {
            let problem = Problem::new(format!("cannot assume the role of the AWS profile `{}`", profile.name));
            return Err(problem.because(format!("more than {MAX_ROLES} profiles name each other as `source_profile`")));
        }
        let base = base_of(surroundings, &role, &profile).await?;
        roles.push(role);
        match base {
            Base::Keys(credentials) => break credentials,
            Base::Profile(source) => profile = source,
        }
    };
    for role in roles.iter().rev() {
        credentials = role.assume(surroundings, region, &credentials).await?;
    }
    Ok(Some(credentials))
}

/// Identity with which a role is assumed: keys that are ready to use, or a profile that may have a role of its own.
enum Base {
    Keys(AwsCredentials),
    Profile(AwsProfile),
}

async fn base_of(surroundings: &CloudEnvironment, role: &AwsRole, profile: &AwsProfile) -> Result<Base, Problem> {
    let name = &profile.name;
    let (keys, reason) = match &role.source {
        Source::Environment => (of_environment(surroundings), "the environment has no AWS keys".to_owned()),
        Source::Machine => (machine::credentials(surroundings).await?, "this machine has no AWS role".to_owned()),
        // A profile may use its own keys to assume its role.
        Source::Profile(source) if source == name => (static_keys(profile), format!("the profile `{source}` has no keys")),
        Source::Profile(source) => {
            let read = read_profile(surroundings, Some(source)).await?;
            return read.map(Base::Profile).ok_or_else(|| Problem::new(format!("no AWS profile `{source}`")));
        }
        Source::WebIdentity(path) => (None, format!("`{}` is not a set of keys", path.display())),
    };
    let problem = || Problem::new(format!("cannot assume the role of the AWS profile `{name}`"));
    keys.map(Base::Keys).ok_or_else(|| problem().because(reason))
}

fn static_keys(profile: &AwsProfile) -> Option<AwsCredentials> {
    Some(AwsCredentials {
        access_key_id: profile.get("aws_access_key_id")?.to_owned(),
        secret_access_key: profile.get("aws_secret_access_key")?.to_owned(),
        session_token: profile.get("aws_session_token").map(str::to_owned),
        until: None,
    })
}

async fn without_role(surroundings: &CloudEnvironment, profile: &AwsProfile) -> Result<Option<AwsCredentials>, Problem> {
    if let Some(keys) = static_keys(profile) {
        return Ok(Some(keys));
    }
    if profile.get("sso_account_id").is_some() {
        return sso::credentials(surroundings, profile).await.map(Some);
    }
    match profile.get("credential_process") {
        Some(line) => from_process(surroundings, profile, line).await.map(Some),
        None => Ok(None),
    }
}

async fn from_process(surroundings: &CloudEnvironment, profile: &AwsProfile, line: &str) -> Result<AwsCredentials, Problem> {
    let what = format!("cannot get credentials with `credential_process` of the AWS profile `{}`", profile.name);
    let argv = split_words(line).filter(|argv| !argv.is_empty());
    let argv = argv.ok_or_else(|| Problem::new(&what).because("a quote is not closed, or the command is empty"))?;
    let here = surroundings.clone();
    let run = move || {
        let (argv, home, roots) = (&argv, &here.home, &here.roots);
        KeyProgram { argv, home, timeout: TIMEOUT, withheld: &[], roots }.output()
    };
    let output = tokio::task::spawn_blocking(run).await.map_err(|_| Problem::new(&what))?;
    let output = output.map_err(|error| Problem::new(&what).because(error).hint(sso::login_command(&profile.name)))?;
    let value: Value =
        serde_json::from_str(&output).map_err(|_| Problem::new(&what).because("the program did not print JSON"))?;
    let credentials = AwsCredentials::from_json(&value)
        .ok_or_else(|| Problem::new(&what).because("the JSON has no `AccessKeyId` and `SecretAccessKey`"))?;
    if credentials.until.is_some_and(|until| until <= Timestamp::now()) {
        let problem = Problem::new(&what).because("the program returned credentials that have expired");
        return Err(problem.hint("sign in again, then run the program; or check the clock of this machine"));
    }
    Ok(credentials)
}
