//! Obtains service secrets from programs configured by the user (`token_command`), at most once per secret.

use crate::config::Credentials;
use crate::services::SecretProgram;
use crate::sys::key_command::KeyProgram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Timeout for a program. A program may show a window that asks for a fingerprint or a password.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns a function that runs a service's program and returns the secret it prints. Programs given by name are not
/// looked up in the directories in `roots`. The variables in `withheld` are not passed to the program.
pub(super) fn secret_program(
    credentials: &Credentials,
    (home, roots): (&Path, &[PathBuf]),
    withheld: Vec<String>,
) -> SecretProgram {
    let (credentials, home, roots) = (credentials.clone(), home.to_owned(), roots.to_owned());
    Arc::new(move |name, setting, rejected| {
        let run =
            || KeyProgram { argv: &setting.argv, home: &home, timeout: TIMEOUT, withheld: &withheld, roots: &roots }.print_key();
        credentials.program_key(name, setting, rejected, run).map_err(|error| {
            let why = error.to_string();
            format!("{why}; run `{}` in a terminal to see what it prints", setting.shell_line())
        })
    })
}
