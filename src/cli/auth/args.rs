//! `aye auth …`: clap definition and checked action.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum AuthSub {
    /// Save an API key for a provider
    ///
    /// aye reads the key from the terminal without showing it. It saves the key in the system keyring, or in
    /// credentials.toml if there is no keyring.
    Login {
        /// Provider: anthropic, openai, gemini, … or one from config.toml
        provider: Option<String>,
        /// Read the key from stdin
        #[arg(long)]
        key_stdin: bool,
    },
    /// Delete a provider's saved API key
    Logout {
        /// Provider whose key to delete
        #[arg(required_unless_present = "all")]
        provider: Option<String>,
        /// Delete the saved keys of all providers
        #[arg(long, conflicts_with = "provider")]
        all: bool,
    },
    /// Show where the API key of each provider comes from
    ///
    /// No requests are sent without --check. With it, the exit code is 5 if a provider rejects its key.
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Send a request to each provider to check its key
        #[arg(long)]
        check: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuthAction {
    LogIn { provider: Option<String>, key_on_stdin: bool },
    LogOut(LogOut),
    Status { json: bool, check: bool },
}

/// Saved keys to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogOut {
    Of(String),
    All,
}

impl AuthSub {
    pub(crate) fn check(self) -> AuthAction {
        match self {
            Self::Login { provider, key_stdin } => AuthAction::LogIn { provider, key_on_stdin: key_stdin },
            Self::Logout { provider: Some(provider), .. } => AuthAction::LogOut(LogOut::Of(provider)),
            Self::Logout { provider: None, .. } => AuthAction::LogOut(LogOut::All),
            Self::Status { json, check } => AuthAction::Status { json, check },
        }
    }
}

impl AuthAction {
    /// Returns whether the action changes saved keys, which commands that aye runs must not do.
    pub(crate) fn changes_keys(&self) -> bool {
        match self {
            Self::LogIn { .. } | Self::LogOut(_) => true,
            Self::Status { .. } => false,
        }
    }
}
