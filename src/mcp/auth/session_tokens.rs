//! Tokens used in a session. They are loaded when a server requires them, refreshed before they expire, and stored for
//! later sessions.

use super::failure::AuthFailure;
use super::flow::{challenge_scopes, renew};
use super::stored_token::{StoredToken, Validity};

use crate::mcp::{AuthRefusal, Reach, SignIn, Spec, Tokens};
use crate::ports::BoxFuture;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tokio::sync::Mutex as Turn;

/// Token storage. Calls to it may block, so they are made on separate threads.
pub(crate) trait Vault: Send + Sync {
    fn load(&self, server: &str, url: &str) -> Result<Option<String>, String>;
    fn save(&self, server: &str, url: &str, tokens: &str) -> Result<(), String>;
    /// Acquires the lock for refreshing tokens, which keeps two processes from using the same refresh token.
    fn lock_renewal(&self) -> Result<Box<dyn Send>, String>;
}

/// Cache slots, by server name and URL.
type Slots = HashMap<(String, String), Arc<Turn<Slot>>>;

/// Token cache for a session. It is cheap to clone.
#[derive(Clone)]
pub(crate) struct TokenCache {
    vault: Arc<dyn Vault>,
    slots: Arc<Mutex<Slots>>,
}

/// Cached token state for one server.
#[derive(Default)]
struct Slot {
    is_read: bool,
    kept: Option<StoredToken>,
}

/// Server to which a token belongs.
struct TokenOwner<'a> {
    name: &'a str,
    url: &'a str,
}

impl TokenCache {
    pub(crate) fn new(vault: Arc<dyn Vault>) -> Self {
        Self { vault, slots: Arc::default() }
    }

    fn slot(&self, whose: &TokenOwner<'_>) -> Arc<Turn<Slot>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry((whose.name.to_owned(), whose.url.to_owned())).or_default())
    }

    async fn read(&self, whose: &TokenOwner<'_>) -> Result<Option<StoredToken>, String> {
        let (vault, name, url) = (Arc::clone(&self.vault), whose.name.to_owned(), whose.url.to_owned());
        run_on_thread(move || Ok(vault.load(&name, &url)?.and_then(|text| StoredToken::read(&text, &url)))).await
    }

    async fn write(&self, whose: &TokenOwner<'_>, kept: &StoredToken) -> Result<(), String> {
        let (vault, name, url, text) = (Arc::clone(&self.vault), whose.name.to_owned(), whose.url.to_owned(), kept.to_json()?);
        run_on_thread(move || vault.save(&name, &url, &text)).await
    }

    /// Refreshes the token in a slot, unless another process has already done so. Returns the new token.
    async fn renew(&self, whose: &TokenOwner<'_>, slot: &mut Slot, old: Option<&str>) -> Result<Option<String>, String> {
        let vault = Arc::clone(&self.vault);
        let _turn = run_on_thread(move || vault.lock_renewal()).await?;
        slot.kept = self.read(whose).await?;
        let Some(kept) = &slot.kept else { return Ok(None) };
        if let Some(token) =
            kept.token().filter(|token| Some(token.as_str()) != old && kept.validity(SystemTime::now()) == Validity::Good)
        {
            return Ok(Some(token));
        }
        if !kept.is_renewable() {
            return Ok(None);
        }
        match renew(kept).await {
            Ok(new) => {
                if let Err(why) = self.write(whose, &new).await {
                    // The tokens remain usable while this process runs.
                    tracing::warn!(server = whose.name, why, "cannot save the renewed tokens");
                }
                let token = new.token();
                slot.kept = Some(new);
                Ok(token)
            }
            Err(AuthFailure::Over) => Ok(None),
            Err(failure) => Err(failure.to_string()),
        }
    }

    async fn token_for(&self, whose: TokenOwner<'_>) -> Result<Option<String>, String> {
        let slot = self.slot(&whose);
        let mut slot = slot.lock().await;
        if !slot.is_read {
            slot.kept = self.read(&whose).await?;
            slot.is_read = true;
        }
        let Some(kept) = &slot.kept else { return Ok(None) };
        let (token, age) = (kept.token(), kept.validity(SystemTime::now()));
        if age == Validity::Good {
            return Ok(token);
        }
        match self.renew(&whose, &mut slot, token.as_deref()).await {
            // The old token is still valid for a short time.
            Ok(None) | Err(_) if age == Validity::Ending => Ok(token),
            renewed => renewed,
        }
    }

    async fn replace_rejected(&self, whose: TokenOwner<'_>, refusal: AuthRefusal) -> Result<Option<String>, String> {
        let slot = self.slot(&whose);
        let mut slot = slot.lock().await;
        match refusal {
            AuthRefusal::Unauthorized { used, .. } => {
                // A sign-in in another terminal has stored a new token.
                self.renew(&whose, &mut slot, used.as_deref()).await
            }
            AuthRefusal::InsufficientScope { challenge, scope, used } => {
                slot.kept = self.read(&whose).await?;
                let Some(kept) = &mut slot.kept else { return Ok(None) };
                if let Some(token) = kept.token().filter(|token| Some(token) != used.as_ref()) {
                    return Ok(Some(token));
                }
                // Only the user can grant more scopes, which the next sign-in requests.
                let scopes = scope.map_or_else(|| challenge_scopes(&challenge, whose.url), |scope| split_scope(&scope));
                if scopes.iter().any(|scope| !kept.wanted.contains(scope)) {
                    kept.wanted = scopes;
                    let kept = kept.clone();
                    self.write(&whose, &kept).await?;
                }
                Ok(None)
            }
        }
    }
}

fn split_scope(scope: &str) -> Vec<String> {
    scope.split_whitespace().map(str::to_owned).collect()
}

impl Tokens for TokenCache {
    fn token<'a>(&'a self, spec: &'a Spec) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move {
            match token_owner(spec) {
                Some(whose) => self.token_for(whose).await,
                None => Ok(None),
            }
        })
    }

    fn on_rejected<'a>(&'a self, spec: &'a Spec, refusal: AuthRefusal) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move {
            match token_owner(spec) {
                Some(whose) => self.replace_rejected(whose, refusal).await,
                None => Ok(None),
            }
        })
    }
}

fn token_owner(spec: &Spec) -> Option<TokenOwner<'_>> {
    match &spec.reach {
        Reach::Http { url, sign_in: SignIn::OAuth { .. }, .. } => Some(TokenOwner { name: &spec.name, url }),
        Reach::Http { .. } | Reach::Program { .. } => None,
    }
}

/// Runs a call on a separate thread, because the keyring may prompt the user.
async fn run_on_thread<T: Send + 'static>(ask: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(ask).await.unwrap_or_else(|_| Err("the token store did not respond".to_owned()))
}
