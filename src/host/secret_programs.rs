//! Secrets of services that the user's programs print (`token_command`), at most once per secret.

use crate::config::Credentials;
use crate::services::SecretProgram;
use crate::sys::key_command::KeyProgram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Timeout of a program, which may ask for a fingerprint or a password in its own window.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the function that runs programs which print the secrets of services. `roots`: directories in which no program is found by
/// name. `withheld`: variables that the programs do not get.
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
