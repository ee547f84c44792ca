//! Authorization flow, from the server's challenge to obtaining and refreshing tokens. Discovered metadata is not
//! trusted: it must describe this server, and every URL in it must be allowed.

use super::failure::AuthFailure;
use super::http::{AuthClient, status};
use super::stored_token::StoredToken;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthorizationCallback, AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource, CredentialStore,
    InMemoryCredentialStore, OAuthClientConfig,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Client name that authorization servers show to the user.
const CLIENT_NAME: &str = "aye";
const PROBE_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum number of scopes to request.
const MAX_SCOPES: usize = 100;

/// Client that was registered with an authorization server beforehand.
#[derive(Debug, Clone, Default)]
pub(super) struct OAuthClient {
    pub id: Option<String>,
    pub secret: Option<String>,
    /// URL of the client's metadata document. Used if the authorization server supports such documents.
    pub document: Option<String>,
    /// Scopes to request. If empty, those named by the server are requested.
    pub scopes: Vec<String>,
}

/// Authorization server discovered for an MCP server.
pub(super) struct AuthorizationServer {
    pub(super) url: Url,
    manager: AuthorizationManager,
    store: InMemoryCredentialStore,
    pub(super) metadata: AuthorizationMetadata,
}

/// Authorization that is waiting for the user's approval.
pub(super) struct PendingAuthorization {
    discovered: AuthorizationServer,
    /// URL at which the user approves the authorization.
    pub address: String,
    redirect: String,
    client_secret: Option<String>,
}

/// Sends a request without a token. Returns the challenge in the response, if there is one.
pub(super) async fn challenge(url: &str, headers: &[(String, String)]) -> Option<String> {
    let http = AuthClient::for_server(&Url::parse(url).ok()?);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "aye", "version": env!("CARGO_PKG_VERSION")}}});
    let mut all = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("accept".to_owned(), "application/json, text/event-stream".to_owned()),
    ];
    all.extend(headers.iter().cloned());
    let answer = http.send("POST", url, all, hello.to_string(), PROBE_TIMEOUT).await.ok()?;
    let mut challenges = answer.headers.iter().filter(|(name, _)| name == "www-authenticate").map(|(_, value)| value.clone());
    (status(&answer) == 401).then(|| challenges.find(|value| value.to_ascii_lowercase().starts_with("bearer"))).flatten()
}

impl AuthorizationServer {
    pub(super) async fn find(url: &str, challenge: Option<&str>) -> Result<Self, AuthFailure> {
        let parsed = Url::parse(url).map_err(|error| AuthFailure::from_message(error.to_string()))?;
        let http = AuthClient::for_server(&parsed);
        let mut manager = AuthorizationManager::new_with_oauth_http_client(parsed.clone(), Arc::new(http.clone())).await?;
        let store = InMemoryCredentialStore::new();
        manager.set_credential_store(store.clone());
        let resolution = manager.resolve_metadata_from_challenge(challenge).await?;
        if resolution.source == AuthorizationMetadataSource::LegacyEndpointFallback && challenge.is_none() {
            return Err(AuthFailure::from_message(
                "the server does not require sign-in, or does not name its authorization server",
            ));
        }
        let metadata = resolution.metadata;
        for address in
            [&metadata.authorization_endpoint, &metadata.token_endpoint].into_iter().chain(&metadata.registration_endpoint)
        {
            http.check(address).map_err(AuthFailure::from_message)?;
        }
        manager.set_metadata(metadata.clone());
        Ok(Self { url: parsed, manager, store, metadata })
    }

    pub(super) fn issuer(&self) -> Option<&str> {
        self.metadata.issuer.as_deref()
    }

    /// Returns the scopes to request: those from the settings or, if there are none, those named by the server. Missing
    /// scopes in `more` are added.
    pub(super) async fn scopes(&self, client: &OAuthClient, more: &[String]) -> Vec<String> {
        let mut scopes =
            if client.scopes.is_empty() { self.manager.select_initial_scopes(&[]).await } else { client.scopes.clone() };
        for scope in more {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        scopes.truncate(MAX_SCOPES);
        scopes
    }

    /// Registers the client if necessary, and creates the URL at which the user approves the authorization.
    pub(super) async fn request_authorization(
        mut self,
        client: &OAuthClient,
        redirect: &str,
        more: &[String],
    ) -> Result<PendingAuthorization, AuthFailure> {
        let scopes = self.scopes(client, more).await;
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let reads_documents =
            self.metadata.additional_fields.get("client_id_metadata_document_supported") == Some(&Value::Bool(true));
        let document = client.document.as_deref().filter(|_| reads_documents);
        let config = match (&client.id, document) {
            (Some(id), _) => {
                let config = OAuthClientConfig::new(id, redirect);
                match &client.secret {
                    Some(secret) => config.with_client_secret(secret),
                    None => config,
                }
            }
            (None, Some(document)) => OAuthClientConfig::new(document, redirect),
            (None, None) if self.metadata.registration_endpoint.is_none() => {
                let who = self.issuer().unwrap_or("the authorization server").to_owned();
                return Err(AuthFailure::NotRegistered { who });
            }
            (None, None) => self.manager.register_client(CLIENT_NAME, redirect, &scopes).await?,
        };
        let client_secret = config.client_secret.clone();
        self.manager.configure_client(config)?;
        let address = self.manager.get_authorization_url(&scopes).await?;
        Ok(PendingAuthorization { discovered: self, address, redirect: redirect.to_owned(), client_secret })
    }
}

impl PendingAuthorization {
    /// Returns the `state` value that the redirect must contain.
    pub(super) fn state(&self) -> Option<String> {
        let address = Url::parse(&self.address).ok()?;
        address.query_pairs().find(|(name, _)| name == "state").map(|(_, value)| value.into_owned())
    }

    /// Exchanges the authorization code in the redirect URL for tokens.
    pub(super) async fn exchange_code(self, came_back_to: &str) -> Result<StoredToken, AuthFailure> {
        if let Some(why) = refusal(came_back_to) {
            return Err(AuthFailure::from_message(why));
        }
        let callback = AuthorizationCallback::from_redirect_url(came_back_to)?;
        let AuthorizationServer { manager, store, url, .. } = self.discovered;
        manager.exchange_code_for_token_with_issuer(&callback.code, &callback.csrf_token, callback.issuer.as_deref()).await?;
        let credentials = store.load().await?;
        Ok(StoredToken {
            url: url.to_string(),
            credentials,
            client_secret: self.client_secret,
            redirect: self.redirect,
            wanted: Vec::new(),
        })
    }
}

/// Returns the error that the authorization server sent instead of a code, if it did.
fn refusal(came_back_to: &str) -> Option<String> {
    let url = Url::parse(came_back_to).ok()?;
    let of = |name: &str| url.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned());
    let error = of("error")?;
    let more = of("error_description").map(|more| format!(": {more}")).unwrap_or_default();
    Some(if error == "access_denied" {
        format!("sign-in was declined in the browser{more}")
    } else {
        format!("sign-in was refused ({error}){more}")
    })
}

/// Refreshes tokens. If a different authorization server is now in use, the tokens are no longer valid.
pub(super) async fn renew(kept: &StoredToken) -> Result<StoredToken, AuthFailure> {
    let Some(credentials) = kept.credentials.clone() else { return Err(AuthFailure::Over) };
    let parsed = Url::parse(&kept.url).map_err(|error| AuthFailure::from_message(error.to_string()))?;
    let http = AuthClient::for_server(&parsed);
    let mut manager = AuthorizationManager::new_with_oauth_http_client(parsed, Arc::new(http.clone())).await?;
    let store = InMemoryCredentialStore::new();
    store.save(credentials.clone()).await?;
    manager.set_credential_store(store.clone());
    let metadata = manager.resolve_metadata().await?.metadata;
    http.check(&metadata.token_endpoint).map_err(AuthFailure::from_message)?;
    manager.set_metadata(metadata);
    if !manager.initialize_from_store().await? {
        return Err(AuthFailure::Over);
    }
    if let Some(secret) = &kept.client_secret {
        manager.configure_client(OAuthClientConfig::new(&credentials.client_id, &kept.redirect).with_client_secret(secret))?;
    }
    manager.refresh_token().await?;
    let credentials = store.load().await?;
    Ok(StoredToken { credentials, ..kept.clone() })
}

/// Returns the scopes listed in a challenge.
pub(super) fn challenge_scopes(challenge: &str, url: &str) -> Vec<String> {
    let Ok(url) = Url::parse(url) else { return Vec::new() };
    let params = rmcp::transport::auth::WWWAuthenticateParams::parse(challenge, &url);
    let scopes = params.scope.unwrap_or_default();
    scopes.split_whitespace().take(MAX_SCOPES).map(str::to_owned).collect()
}
