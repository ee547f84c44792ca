//! `aye mcp …` as clap reads it, and what it asks for.

use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(super) enum McpSub {
    /// List the servers: where each comes from, and whether the policy lists any of its tools
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a server to your settings: `aye mcp add NAME URL`, or `aye mcp add NAME -- COMMAND ARGS…`
    Add {
        /// Letters, digits, `-`, `_` and `.`
        name: String,
        /// Where it listens: https, or http on this machine
        #[arg(required_unless_present = "command", conflicts_with = "command")]
        url: Option<String>,
        /// A header for every request; `${VAR}` in it is read from the environment. May be repeated
        #[arg(long = "header", value_name = "NAME: VALUE", conflicts_with = "command")]
        headers: Vec<String>,
        /// A variable for the program; `${VAR}` in it is read from the environment. May be repeated
        #[arg(long = "env", value_name = "NAME=VALUE", conflicts_with = "url")]
        env: Vec<String>,
        /// Let the program reach the network, whatever commands may: what `npx` fetches needs it
        #[arg(long, conflicts_with = "url")]
        network: bool,
        /// The environment variable that holds its bearer token
        #[arg(long, value_name = "VAR", conflicts_with = "command")]
        bearer_token_env: Option<String>,
        /// How it speaks: http (streamable) or sse; unset: as it turns out
        #[arg(long = "type", value_name = "TYPE", value_parser = ["auto", "http", "sse"], conflicts_with = "command")]
        kind: Option<String>,
        /// The program and its arguments
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Take a server out of your settings, and forget its tokens
    Remove { name: String },
    /// Sign in to a server, in the browser
    Login {
        name: String,
        /// Open no browser: print the address only
        #[arg(long)]
        no_browser: bool,
    },
    /// Forget the tokens of a server
    Logout { name: String },
    /// Connect to a server, and show its tools and what the policy says of each
    Test {
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Offer the tools of aye to another agent, under your policy: an MCP server on stdin and stdout
    Serve {
        /// Who is asked where the policy asks: nobody, so that it is denied, or the person at the client. Only a client that you
        /// trust not to answer by itself should be asked
        #[arg(long, value_name = "WHO", value_enum, default_value = "never")]
        ask: AskArg,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum AskArg {
    Never,
    Client,
}

/// Who answers the questions of a policy where the tools are offered to another agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    Nobody,
    /// The person at the client, as the client says.
    Client,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpAction {
    List { json: bool },
    Add { name: String, server: NewServerWords },
    Remove { name: String },
    LogIn { name: String, no_browser: bool },
    LogOut { name: String },
    Test { name: String, json: bool },
    Serve { asks: Asks },
}

/// What is to be added, as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewServerWords {
    pub url: Option<String>,
    pub command: Vec<String>,
    pub headers: Vec<(String, String)>,
    pub env: Vec<(String, String)>,
    pub network: bool,
    pub bearer_token_env: Option<String>,
    pub kind: Option<String>,
}

impl McpSub {
    pub(super) fn check(self) -> Result<McpAction, String> {
        Ok(match self {
            Self::List { json } => McpAction::List { json },
            Self::Add { name, url, headers, env, network, bearer_token_env, kind, command } => {
                let headers = pairs(&headers, ':', "--header", "NAME: VALUE, for example `X-Team: ${TEAM}`")?;
                let env = pairs(&env, '=', "--env", "NAME=VALUE, for example `TOKEN=${MY_TOKEN}`")?;
                McpAction::Add { name, server: NewServerWords { url, command, headers, env, network, bearer_token_env, kind } }
            }
            Self::Remove { name } => McpAction::Remove { name },
            Self::Login { name, no_browser } => McpAction::LogIn { name, no_browser },
            Self::Logout { name } => McpAction::LogOut { name },
            Self::Test { name, json } => McpAction::Test { name, json },
            Self::Serve { ask } => McpAction::Serve {
                asks: match ask {
                    AskArg::Never => Asks::Nobody,
                    AskArg::Client => Asks::Client,
                },
            },
        })
    }
}

/// What stands there may be a secret: it is not repeated.
fn pairs(given: &[String], between: char, flag: &str, expected: &str) -> Result<Vec<(String, String)>, String> {
    let pair = |text: &String| match text.split_once(between) {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("{flag}: expected {expected}")),
    };
    given.iter().map(pair).collect()
}

impl McpAction {
    /// Whether it changes servers or tokens, which a command that aye runs may not.
    pub(super) fn changes_servers(&self) -> bool {
        match self {
            Self::Add { .. } | Self::Remove { .. } | Self::LogIn { .. } | Self::LogOut { .. } => true,
            Self::List { .. } | Self::Test { .. } | Self::Serve { .. } => false,
        }
    }
}
