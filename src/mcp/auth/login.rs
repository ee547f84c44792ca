//! Interactive sign-in, for which the user approves in a browser that is then redirected to this machine.

use super::flow::{AuthorizationServer, OAuthClient, challenge};
use super::session_tokens::Vault;
use super::stored_token::StoredToken;
use crate::mcp::{Reach, SignIn, Spec};
use crate::ports::BoxFuture;
use crate::protocol::Problem;
use crate::sys::oauth_callback::CallbackServer;
use std::sync::Arc;

/// User interface for sign-in.
pub(crate) trait LogIn: Send + Sync {
    /// Shows the `http` or `https` URL at which the user approves the authorization.
    fn visit<'a>(&'a self, address: &'a str) -> BoxFuture<'a, ()>;
}

/// Result of a successful sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoggedIn {
    pub scopes: Vec<String>,
    /// Whether the token can be refreshed without the user signing in again.
    pub lasts: bool,
}

/// Signs the user in to a server, and saves the tokens.
pub(crate) async fn sign_in(spec: &Spec, vault: &Arc<dyn Vault>, shown: &dyn LogIn) -> Result<LoggedIn, Problem> {
    let Reach::Http { url, headers, sign_in, .. } = &spec.reach else {
        return Err(Problem::new("the server is a local program, which needs no sign-in"));
    };
    let SignIn::OAuth { client_id, scopes, redirect_port } = sign_in else {
        let problem = Problem::new("the server already has an `Authorization` header or a `bearer_token_env`");
        return Err(problem.hint("remove it from the server's settings to sign in"));
    };
    let before = vault.load(&spec.name, url)?.and_then(|text| StoredToken::read(&text, url)).unwrap_or_default();
    let headers: Vec<_> = headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect();
    let challenge = challenge(url, &headers).await;
    let discovered = AuthorizationServer::find(url, challenge.as_deref()).await?;
    let landing = CallbackServer::open(*redirect_port).await.map_err(|error| {
        let port = redirect_port.map_or_else(|| "a port".to_owned(), |port| format!("port {port}"));
        format!("cannot listen on {port} of 127.0.0.1 for the browser redirect: {error}")
    })?;
    let mut more = before.wanted.clone();
    if !more.is_empty() {
        more.extend(before.granted_scopes().iter().cloned());
    }
    let asked = discovered.request_authorization(&client(client_id.as_deref(), scopes), &landing.uri(), &more).await;
    let asked = asked?;
    let state = asked.state().ok_or("the authorization server has an invalid URL")?;
    shown.visit(&asked.address).await;
    let came_back_to = landing.arrival(&state).await?;
    let mut kept = asked.exchange_code(&came_back_to).await?;
    kept.url.clone_from(url);
    vault.save(&spec.name, url, &kept.to_json()?)?;
    Ok(LoggedIn { scopes: kept.granted_scopes().to_vec(), lasts: kept.is_renewable() })
}

/// Returns the client to use. A client ID that is a URL refers to a metadata document, which not every authorization
/// server supports.
fn client(id: Option<&str>, scopes: &[String]) -> OAuthClient {
    let (document, id) = match id {
        Some(id) if id.starts_with("https://") => (Some(id.to_owned()), None),
        id => (None, id.map(str::to_owned)),
    };
    OAuthClient { id, secret: None, document, scopes: scopes.to_vec() }
}
