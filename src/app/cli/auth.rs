//! `aye auth …` as clap reads it, and what it asks for.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(super) enum AuthSub {
    /// Keep the key of a provider: asked for on the terminal, or read from stdin
    Login {
        /// `anthropic`, `openai`, `gemini`, …, or one of your configuration
        provider: Option<String>,
        /// Read the key from stdin
        #[arg(long)]
        key_stdin: bool,
    },
    /// Forget the key of a provider
    Logout {
        /// Whose key
        #[arg(required_unless_present = "all")]
        provider: Option<String>,
        /// The keys of all
        #[arg(long, conflicts_with = "provider")]
        all: bool,
    },
    /// Say of each provider where its key comes from; nothing is asked on the network
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Ask each provider that has a key whether it takes it
        #[arg(long)]
        check: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthAction {
    LogIn { provider: Option<String>, key_on_stdin: bool },
    LogOut(LogOut),
    Status { json: bool, check: bool },
}

/// Whose key is forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogOut {
    Of(String),
    All,
}

impl AuthSub {
    pub(super) fn check(self) -> AuthAction {
        match self {
            Self::Login { provider, key_stdin } => AuthAction::LogIn { provider, key_on_stdin: key_stdin },
            Self::Logout { provider: Some(provider), .. } => AuthAction::LogOut(LogOut::Of(provider)),
            Self::Logout { provider: None, .. } => AuthAction::LogOut(LogOut::All),
            Self::Status { json, check } => AuthAction::Status { json, check },
        }
    }
}

impl AuthAction {
    /// Whether it changes the keys, which a command that aye runs may not.
    pub(super) fn changes_keys(&self) -> bool {
        match self {
            Self::LogIn { .. } | Self::LogOut(_) => true,
            Self::Status { .. } => false,
        }
    }
}
