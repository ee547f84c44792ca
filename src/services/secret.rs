//! Secrets of services, read from the environment, from the saved keys or from a program when they are needed.

use crate::config::{ApiKey, Credentials, Environment, KeyCommand, SecretReference};
use std::sync::Arc;

/// Runs a program of the user that prints the secret with this name, unless its last secret is still valid. The last argument is a
/// secret that the service rejected. May wait a minute.
pub(crate) type SecretProgram = Arc<dyn Fn(&str, &KeyCommand, Option<&str>) -> Result<ApiKey, String> + Send + Sync>;

/// Sources of the secrets. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SecretSources {
    pub environment: Environment,
    pub credentials: Credentials,
    pub program: SecretProgram,
}

impl SecretSources {
    /// Returns the secret of a service. May wait a few seconds for the keyring, or a minute for a program. `rejected`: a secret that
    /// the service rejected, so that a program runs again.
    ///
    /// # Errors
    /// The secret is not set or not saved, or the program failed.
    pub(super) async fn read(
        &self,
        service: &str,
        reference: &SecretReference,
        rejected: Option<&str>,
    ) -> Result<String, String> {
        match reference {
            SecretReference::Variable(name) => {
                let secret = self.environment.get(name).map(str::to_owned);
                secret.ok_or_else(|| format!("the environment variable `{name}`, which must contain the secret, is not set"))
            }
            SecretReference::Saved(name) => {
                let (credentials, key) = (self.credentials.clone(), name.clone());
                let read = tokio::task::spawn_blocking(move || credentials.secret(&key)).await;
                let secret = read.map_err(|error| error.to_string())??;
                let secret = secret.ok_or_else(|| format!("no secret is saved; run `aye auth login {name}`"))?;
                Ok(secret.reveal().to_owned())
            }
            SecretReference::Program(command) => {
                let (program, command, rejected) = (self.program.clone(), command.clone(), rejected.map(str::to_owned));
                let name = format!("services.{service}");
                let printed = tokio::task::spawn_blocking(move || program(&name, &command, rejected.as_deref())).await;
                Ok(printed.map_err(|error| error.to_string())??.reveal().to_owned())
            }
        }
    }
}
