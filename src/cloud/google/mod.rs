//! Google Cloud's application default credentials, which are a service account key file, a sign-in with `gcloud`, or
//! the machine's metadata server.

mod key_file;

use super::{CloudEnvironment, headers, json, metadata_server, read, server, text, unreachable};
use crate::protocol::Problem;
use crate::sys::http::Headers;
use key_file::{KeyFile, parse};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Mutex;

/// Environment variables that are read.
pub(crate) const VARIABLES: &[&str] = &["GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG", "GCE_METADATA_HOST"];

/// How long before a token expires it is replaced.
const MARGIN: Duration = Duration::from_secs(120);
/// Token lifetime in seconds that is assumed if the server reports none.
const LIFETIME: u64 = 3_600;
const METADATA: &str = "metadata.google.internal";
const TOKEN_PATH: &str = "/computeMetadata/v1/instance/service-accounts/default/token";
const SIGN_IN: &str = "run `gcloud auth application-default login`";

/// Google Cloud account whose tokens authenticate requests.
#[derive(Debug)]
pub(crate) struct GoogleAccount {
    surroundings: CloudEnvironment,
    token: Mutex<Option<AccessToken>>,
}

#[derive(Clone)]
struct AccessToken {
    text: String,
    until: Instant,
    /// Project to which a user's requests are billed.
    quota_project: Option<String>,
}

impl std::fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl GoogleAccount {
    pub(crate) fn new(surroundings: CloudEnvironment) -> Self {
        Self { surroundings, token: Mutex::default() }
    }

    /// Returns the headers of a request. A token is obtained first if there is none or if it is about to expire.
    pub(crate) async fn headers(&self) -> Result<Headers, Problem> {
        let mut known = self.token.lock().await;
        let token = if let Some(token) = known.clone().filter(|token| token.until > Instant::now()) {
            token
        } else {
            let token = self.new_token().await?;
            (self.surroundings.learn)(&token.text);
            known.insert(token).clone()
        };
        let mut headers: Headers = vec![("authorization".into(), format!("Bearer {}", token.text))];
        headers.extend(token.quota_project.map(|project| ("x-goog-user-project".into(), project)));
        Ok(headers)
    }

    /// Discards the token after the server has rejected it.
    pub(crate) async fn forget(&self) {
        *self.token.lock().await = None;
    }

    async fn new_token(&self) -> Result<AccessToken, Problem> {
        let (path, is_named) = self.file();
        let from = path.clone();
        let content = tokio::task::spawn_blocking(move || read(&from)).await;
        let content = content.unwrap_or_else(|_| Err(Problem::new(format!("cannot read `{}`", path.display()))))?;
        match content {
            Some(content) => exchange_key_file(&parse(&content, &path)?, &path).await,
            None if is_named => {
                let problem =
                    Problem::new(format!("cannot read `{}`, which GOOGLE_APPLICATION_CREDENTIALS names", path.display()));
                Err(problem.because("the file does not exist").hint("correct the variable, or unset it"))
            }
            None => self.metadata_token(&path).await,
        }
    }

    /// Returns the path of the credentials file, and whether it was set with an environment variable.
    fn file(&self) -> (PathBuf, bool) {
        if let Some(path) = self.surroundings.variable("GOOGLE_APPLICATION_CREDENTIALS") {
            return (self.surroundings.expand_path(path), true);
        }
        let config = self.surroundings.path("CLOUDSDK_CONFIG", ".config/gcloud");
        (config.join("application_default_credentials.json"), false)
    }

    async fn metadata_token(&self, path: &Path) -> Result<AccessToken, Problem> {
        let host = self.surroundings.variable("GCE_METADATA_HOST").unwrap_or(METADATA);
        let server = metadata_server(&format!("http://{host}"))?;
        let none = || {
            let problem = Problem::new("no Google Cloud credentials found");
            let problem = problem.because(format!(
                "GOOGLE_APPLICATION_CREDENTIALS is not set, `{}` does not exist, and `{host}` is not reachable",
                path.display()
            ));
            problem.hint(SIGN_IN)
        };
        let reply = server.get(TOKEN_PATH, &headers([("metadata-flavor", "Google")])).await.map_err(|_| none())?;
        if reply.header("metadata-flavor") != Some("Google") {
            return Err(none());
        }
        let (status, value) = json(reply).await;
        let problem = || Problem::new(format!("the metadata server `{host}` has no token for this machine (status {status})"));
        token(&value, None)
            .ok_or_else(|| problem().hint("attach a service account with the scope `cloud-platform` to the machine"))
    }
}

/// Exchanges the credentials in a file for an access token.
async fn exchange_key_file(file: &KeyFile, path: &Path) -> Result<AccessToken, Problem> {
    let form = file.form(SystemTime::now(), path)?;
    let server = server(file.token_uri())?;
    let sent = server.submit("", &Headers::new(), &form).await;
    let (status, value) = json(sent.map_err(|error| unreachable("Google Cloud", &error))?).await;
    if status == 200
        && let Some(token) = token(&value, file.quota_project())
    {
        return Ok(token);
    }
    let reason =
        text(&value, "error_description").or(text(&value, "error")).map_or_else(|| format!("status {status}"), str::to_owned);
    let problem = Problem::new(format!("Google Cloud rejected the credentials in `{}`", path.display())).because(reason);
    Err(if status >= 500 { problem.hint("try again later") } else { problem.hint(file.remedy()) })
}

fn token(value: &Value, quota_project: Option<&str>) -> Option<AccessToken> {
    let text = text(value, "access_token")?.to_owned();
    let seconds = value.get("expires_in").and_then(Value::as_u64).unwrap_or(LIFETIME);
    let until = Instant::now() + Duration::from_secs(seconds).saturating_sub(MARGIN);
    Some(AccessToken { text, until, quota_project: quota_project.map(str::to_owned) })
}

#[cfg(test)]
mod tests;
