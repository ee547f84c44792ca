//! Service secrets, which are read on demand from the environment, from saved keys, or from a program.

use crate::config::{ApiKey, Credentials, Environment, KeyCommand, SecretReference};
use std::sync::Arc;

/// Function that runs a program configured by the user, which prints the secret with the given name. The program is not
/// run again while the last secret it printed is still valid. The last argument is a secret that the service has
/// rejected, if any. The call may wait up to a minute.
pub(crate) type SecretProgram = Arc<dyn Fn(&str, &KeyCommand, Option<&str>) -> Result<ApiKey, String> + Send + Sync>;

/// Sources from which secrets can be read. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SecretSources {
    pub environment: Environment,
    pub credentials: Credentials,
    pub program: SecretProgram,
}

impl SecretSources {
    /// Returns a service's secret. May wait several seconds for the keyring, or up to a minute for a program.
    /// `rejected` is a secret that the service has rejected; it makes a program run again.
    ///
    /// # Errors
    /// Returns an error if the secret is neither set nor saved, or if the program failed.
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
