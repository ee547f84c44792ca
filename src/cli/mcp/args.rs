//! `aye mcp …`: clap definition and checked action.

use crate::cli::mcp_server::ApprovalMode;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum McpSub {
    /// List MCP servers and the tools that the policy allows
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add an MCP server to your settings
    #[command(override_usage = "aye mcp add [OPTIONS] NAME URL\n       aye mcp add [OPTIONS] NAME -- COMMAND...")]
    Add {
        /// Name for the server: letters, digits, `-`, `_` and `.`
        name: String,
        /// Address of the server: https, or http on this machine
        #[arg(required_unless_present = "command", conflicts_with = "command")]
        url: Option<String>,
        /// Send this header with every request; repeatable
        ///
        /// `${VAR}` is replaced with the value of the environment variable VAR.
        #[arg(long = "header", value_name = "NAME: VALUE", conflicts_with = "command")]
        headers: Vec<String>,
        /// Set an environment variable for the program; repeatable
        ///
        /// `${VAR}` is replaced with the value of the environment variable VAR.
        #[arg(long = "env", value_name = "NAME=VALUE", conflicts_with = "url")]
        env: Vec<String>,
        /// Allow the program network access, which `npx` needs
        ///
        /// This applies even if sandboxed commands have no network.
        #[arg(long, conflicts_with = "url")]
        network: bool,
        /// Read the bearer token from this environment variable
        #[arg(long, value_name = "VAR", conflicts_with = "command")]
        bearer_token_env: Option<String>,
        /// Set the server's transport [default: auto]
        #[arg(long = "type", value_name = "TYPE", value_parser = transports(), conflicts_with = "command")]
        kind: Option<String>,
        /// Program to start, with its arguments, after `--`
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Remove an MCP server and delete its tokens
    Remove {
        /// Name of the server, as shown by `aye mcp list`
        name: String,
    },
    /// Sign in to an MCP server in the browser
    Login {
        /// Name of the server, as shown by `aye mcp list`
        name: String,
        /// Print the sign-in address instead of opening a browser
        #[arg(long)]
        no_browser: bool,
    },
    /// Delete an MCP server's tokens
    Logout {
        /// Name of the server, as shown by `aye mcp list`
        name: String,
    },
    /// Connect to an MCP server and show its tools and verdicts
    Test {
        /// Name of the server, as shown by `aye mcp list`
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Allow an MCP server's tools in your policy
    ///
    /// Each call needs approval. Without a policy.toml, aye creates one that extends the built-in policy.
    Allow {
        /// Name of the server, as shown by `aye mcp list`
        name: String,
    },
    /// Serve aye's tools to another agent, as an MCP server
    ///
    /// Every call is subject to your policy. The server uses stdin and stdout.
    Serve {
        /// Choose who approves calls that need approval
        #[arg(long, value_name = "WHO", value_enum, default_value = "never")]
        ask: AskArg,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AskArg {
    /// No user: calls that need approval are denied
    Never,
    /// The client's user, for clients that do not ask for approval on their own
    Client,
}

fn transports() -> PossibleValuesParser {
    PossibleValuesParser::new([
        PossibleValue::new("auto").help("Streamable HTTP, or SSE if the server refuses it"),
        PossibleValue::new("http").help("Streamable HTTP"),
        PossibleValue::new("sse").help("HTTP with server-sent events, the older transport"),
    ])
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum McpAction {
    List { json: bool },
    Add { name: String, server: NewServerWords },
    Remove { name: String },
    LogIn { name: String, no_browser: bool },
    LogOut { name: String },
    Test { name: String, json: bool },
    Allow { name: String },
    Serve { asks: ApprovalMode },
}

/// A new server, as specified on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewServerWords {
    pub url: Option<String>,
    pub command: Vec<String>,
    pub headers: Vec<(String, String)>,
    pub env: Vec<(String, String)>,
    pub network: bool,
    pub bearer_token_env: Option<String>,
    pub kind: Option<String>,
}

impl McpSub {
    pub(crate) fn check(self) -> Result<McpAction, String> {
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
            Self::Allow { name } => McpAction::Allow { name },
            Self::Serve { ask } => McpAction::Serve {
                asks: match ask {
                    AskArg::Never => ApprovalMode::Nobody,
                    AskArg::Client => ApprovalMode::Client,
                },
            },
        })
    }
}

/// Splits each value at `between` into a name and a value. Errors do not repeat the value, which may be a secret.
fn pairs(given: &[String], between: char, flag: &str, expected: &str) -> Result<Vec<(String, String)>, String> {
    let pair = |text: &String| match text.split_once(between) {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("invalid value for {flag}: must be {expected}")),
    };
    given.iter().map(pair).collect()
}

impl McpAction {
    /// Returns whether the action changes servers, tokens or the policy. Commands started by aye must not do this.
    pub(crate) fn changes_servers(&self) -> bool {
        match self {
            Self::Add { .. } | Self::Remove { .. } | Self::LogIn { .. } | Self::LogOut { .. } | Self::Allow { .. } => true,
            Self::List { .. } | Self::Test { .. } | Self::Serve { .. } => false,
        }
    }
}
