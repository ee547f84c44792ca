//! Unattended sign-in for conformance tests, in which aye itself follows the redirect.

use super::failure::AuthFailure;
use super::flow::{AuthorizationServer, OAuthClient, challenge_scopes, renew};
use super::http::{AuthClient, status};
use super::stored_token::StoredToken;

use crate::mcp::{AuthRefusal, Reach, Spec, Tokens};
use crate::ports::BoxFuture;
use base64::Engine as _;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::Mutex;

/// Redirect URI on which nothing listens. The authorization code is read from the redirect instead.
const REDIRECT: &str = "http://127.0.0.1:3118/callback";
/// Maximum number of authorizations per connection, including the first one.
const AUTHORIZATIONS: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(20);

/// Client that was registered with the authorization server beforehand.
#[derive(Clone, Default)]
pub struct RegisteredClient {
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// URL of the client's metadata document.
    pub document: Option<String>,
}

pub struct UnattendedLogin {
    registered: RegisteredClient,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kept: Option<StoredToken>,
    authorizations: usize,
}

impl UnattendedLogin {
    pub fn new(registered: RegisteredClient) -> Self {
        Self { registered, state: Mutex::default() }
    }

    /// Runs a complete authorization in the way that the server requires.
    async fn authorize(&self, url: &str, challenge: Option<&str>, more: &[String]) -> Result<StoredToken, AuthFailure> {
        let found = AuthorizationServer::find(url, challenge).await?;
        let mut client = OAuthClient {
            id: self.registered.client_id.clone(),
            secret: self.registered.client_secret.clone(),
            document: self.registered.document.clone(),
            scopes: Vec::new(),
        };
        let without_person = offers(&found, "grant_types_supported", "client_credentials") == Some(true)
            && offers(&found, "grant_types_supported", "authorization_code") != Some(true);
        if without_person {
            return self.login_with_credentials(&found, more).await;
        }
        client.scopes = found.scopes(&client, more).await;
        let http = AuthClient::for_server(&found.url);
        let asked = found.request_authorization(&client, REDIRECT, &[]).await?;
        let answer =
            http.send("GET", &asked.address, Vec::new(), String::new(), TIMEOUT).await.map_err(AuthFailure::from_message)?;
        let Some(location) = answer.header("location").filter(|location| location.starts_with(REDIRECT)) else {
            let code = status(&answer);
            return Err(AuthFailure::from_message(format!(
                "the authorization server responded with {code} instead of a redirect"
            )));
        };
        asked.exchange_code(location).await
    }

    /// Obtains a token using the client credentials grant.
    async fn login_with_credentials(&self, found: &AuthorizationServer, more: &[String]) -> Result<StoredToken, AuthFailure> {
        let (Some(id), Some(secret)) = (&self.registered.client_id, &self.registered.client_secret) else {
            return Err(AuthFailure::from_message("the authorization server requires a client secret, and none is set"));
        };
        let scopes = found.scopes(&OAuthClient::default(), more).await.join(" ");
        let mut headers = vec![("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned())];
        let in_body = offers(found, "token_endpoint_auth_methods_supported", "client_secret_post") == Some(true);
        if !in_body {
            headers.push(("authorization".to_owned(), basic(id, secret)));
        }
        let mut pairs = vec![("grant_type", "client_credentials"), ("resource", found.url.as_str())];
        if !scopes.is_empty() {
            pairs.push(("scope", &scopes));
        }
        if in_body {
            pairs.extend([("client_id", id.as_str()), ("client_secret", secret.as_str())]);
        }
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let answer = AuthClient::for_server(&found.url)
            .send("POST", &found.metadata.token_endpoint, headers, body, TIMEOUT)
            .await
            .map_err(AuthFailure::from_message)?;
        let told: Value = serde_json::from_slice(&answer.body).map_err(|error| AuthFailure::from_message(error.to_string()))?;
        let response = serde_json::from_value(told).map_err(|error| {
            AuthFailure::from_message(format!(
                "the authorization server responded with {} and no token: {error}",
                status(&answer)
            ))
        })?;
        let credentials = rmcp::transport::auth::StoredCredentials::new(id.clone(), Some(response), Vec::new(), None);
        let credentials = credentials.with_issuer(found.issuer().map(str::to_owned));
        Ok(StoredToken { url: found.url.to_string(), credentials: Some(credentials), ..StoredToken::default() })
    }

    async fn renew_token(&self, url: &str, refusal: AuthRefusal) -> Result<Option<String>, String> {
        let mut state = self.state.lock().await;
        let (challenge, more) = match &refusal {
            AuthRefusal::Unauthorized { challenge, used } => {
                if let Some(kept) = &state.kept
                    && used.is_some()
                    && kept.is_renewable()
                    && let Ok(new) = renew(kept).await
                {
                    let token = new.token();
                    state.kept = Some(new);
                    return Ok(token);
                }
                (challenge.as_deref(), Vec::new())
            }
            AuthRefusal::InsufficientScope { challenge, scope, .. } => {
                let mut more: Vec<String> = state.kept.as_ref().map_or_else(Vec::new, |kept| kept.granted_scopes().to_vec());
                more.extend(scope.as_deref().map_or_else(
                    || challenge_scopes(challenge, url),
                    |scope| scope.split_whitespace().map(str::to_owned).collect(),
                ));
                (Some(challenge.as_str()), more)
            }
        };
        if state.authorizations == AUTHORIZATIONS {
            return Ok(None);
        }
        state.authorizations += 1;
        let kept = self.authorize(url, challenge, &more).await.map_err(|failure| failure.to_string())?;
        let token = kept.token();
        state.kept = Some(kept);
        Ok(token)
    }
}

/// Returns whether a list in the authorization server's metadata contains this value, or `None` if there is no such
/// list.
fn offers(server: &AuthorizationServer, list: &str, word: &str) -> Option<bool> {
    let words = server.metadata.additional_fields.get(list)?.as_array()?;
    Some(words.iter().any(|known| known.as_str() == Some(word)))
}

/// Encodes the credentials for HTTP basic authentication, as specified in RFC 6749, section 2.3.1.
fn basic(id: &str, secret: &str) -> String {
    let escaped = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", escaped(id), escaped(secret));
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
}

impl Tokens for UnattendedLogin {
    fn token<'a>(&'a self, _spec: &'a Spec) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move { Ok(self.state.lock().await.kept.as_ref().and_then(StoredToken::token)) })
    }

    fn on_rejected<'a>(&'a self, spec: &'a Spec, refusal: AuthRefusal) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move {
            match &spec.reach {
                Reach::Http { url, .. } => self.renew_token(url, refusal).await,
                Reach::Program { .. } => Ok(None),
            }
        })
    }
}
