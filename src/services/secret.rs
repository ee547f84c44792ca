//! Secrets of services, read from the environment or from the saved keys when they are needed.

use crate::config::{Credentials, Environment, SecretReference};

/// Returns a secret. May wait a few seconds for the keyring.
///
/// # Errors
/// Returns an error if the secret is neither set nor saved.
pub(super) async fn read_secret(
    reference: &SecretReference,
    environment: &Environment,
    credentials: &Credentials,
) -> Result<String, String> {
    match reference {
        SecretReference::Variable(name) => {
            let secret = environment.get(name).map(str::to_owned);
            secret.ok_or_else(|| format!("the environment variable `{name}`, which must contain the secret, is not set"))
        }
        SecretReference::Saved(name) => {
            let (credentials, key) = (credentials.clone(), name.clone());
            let read = tokio::task::spawn_blocking(move || credentials.secret(&key)).await;
            let secret = read.map_err(|error| error.to_string())??;
            let secret = secret.ok_or_else(|| format!("no secret is saved; run `aye auth login {name}`"))?;
            Ok(secret.reveal().to_owned())
        }
    }
}
